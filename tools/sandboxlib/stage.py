# SPDX-License-Identifier: Apache-2.0
"""The layer of a cluster above the root tree: what the build installs, the users it declares, addresses, settings."""
import configparser
import os
import re
import shutil
import subprocess

from .state import SandboxError, write_file

FILES = ("masterd.conf", "agentd.conf")


def parse_conf(text):
    """FILE:Section.Key=VALUE, also of a section with a name: masterd.conf:Pool small.Weight=2"""
    match = re.fullmatch(r"([a-z]+\.conf):([A-Za-z0-9]+(?: [A-Za-z0-9_-]+)?)\.([A-Za-z0-9]+)=(.*)", text)
    if not match or match[1] not in FILES:
        raise SandboxError(f"--conf {text}: expected FILE:Section.Key=VALUE, FILE one of {', '.join(FILES)}")
    return match.groups()


def _install(build, stage, rebuild):
    if not os.path.exists(os.path.join(build, "build.ninja")):
        raise SandboxError(f"{build} is not a build directory; run 'meson setup {build}' or name one by --build")
    command = ["meson", "install", "-C", build, "--destdir", stage, "--quiet"] + ([] if rebuild else ["--no-rebuild"])
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise SandboxError(f"{' '.join(command)} failed:\n" + "\n".join((done.stdout + done.stderr).splitlines()[-15:]))


def _users(stage, root):
    """Makes the users of the installed sysusers.d files, in copies of the root tree's user databases."""
    if not os.path.isdir(f"{stage}/usr/lib/sysusers.d"):
        return
    for name in ("passwd", "group", "shadow", "gshadow"):
        shutil.copy2(f"{root}/etc/{name}", f"{stage}/etc/{name}")
    done = subprocess.run(["systemd-sysusers", f"--root={stage}"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SandboxError(f"systemd-sysusers: {done.stderr.strip()}")


def _settings(stage, conf):
    files = {"agentd.conf": [("Agent", "Master", "n1")]}
    for name, section, key, value in conf:
        files.setdefault(name, []).append((section, key, value))
    for name, settings in files.items():
        parser = configparser.RawConfigParser()
        parser.optionxform = str
        for section, key, value in settings:
            if not parser.has_section(section):
                parser.add_section(section)
            parser.set(section, key, value)
        os.makedirs(f"{stage}/etc/primus/{name}.d", exist_ok=True)
        with open(f"{stage}/etc/primus/{name}.d/50-sandbox.conf", "w") as f:
            parser.write(f, space_around_delimiters=False)


def make(cluster, root, build, rebuild, conf):
    stage = cluster.path("stage")
    shutil.rmtree(stage, ignore_errors=True)
    os.makedirs(f"{stage}/etc")
    os.makedirs(f"{stage}/usr")
    if build:
        _install(build, stage, rebuild)
        _users(stage, root)
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    for node in cluster.nodes():
        lines += [f"{node.address} {node.name}", f"{node.address6} {node.name}"]
    write_file(f"{stage}/etc/hosts", "\n".join(lines) + "\n")
    if not cluster.record.get("plain"):
        _settings(stage, conf)
    if build:
        # Where the build has sanitizers, the one for leaks traces the process at its end, which the services' filters refuse.
        for unit in ("primus-masterd", "primus-agentd", "primus-alone", "primus-first-contact", "primus-join", "primus-backup"):
            os.makedirs(f"{stage}/etc/systemd/system/{unit}.service.d", exist_ok=True)
            write_file(f"{stage}/etc/systemd/system/{unit}.service.d/sanitizer.conf", "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
    # Says that /etc and /var belong to this /usr, or every boot would spend its time on updating them.
    os.makedirs(f"{stage}/var", exist_ok=True)
    for name in ("etc", "var"):
        write_file(f"{stage}/{name}/.updated", "")
    for node in [] if cluster.record.get("plain") else cluster.nodes():
        shutil.copytree(f"{stage}/etc/primus", node.path("etc-primus"), dirs_exist_ok=True)


def has_primus(cluster):
    return os.path.exists(cluster.path("stage/usr/lib/systemd/system/primus-masterd.service"))


