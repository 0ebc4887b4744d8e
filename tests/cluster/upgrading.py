# SPDX-License-Identifier: Apache-2.0
"""Other builds of Primus on hosts that run: files are replaced as dpkg does it, each by a new one of the same name."""
import filecmp
import os
import shutil
import subprocess

from sandbox import AGENTD, MASTERD, SOURCE

BUILD = "build-next"

# LeakSanitizer cannot look at a daemon without privileges, and says so by another exit status.
QUIET = "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n"
REPLACE = ('cd "$1" && find usr -type f -o -type l | while read -r f; do mkdir -p "/${f%/*}"; cp -a "$f" "/$f.dpkg-new" && '
           'mv -f "/$f.dpkg-new" "/$f"; done && systemctl daemon-reload')


def installed(build, tree):
    """What a build installs, below tree."""
    subprocess.run(["meson", "install", "-C", build, "--destdir", tree, "--quiet", "--no-rebuild"], check=True, stdin=subprocess.DEVNULL,
                   capture_output=True)
    return tree


def _mirror(fresh, source):
    """Only what differs is touched, so that only that is built again."""
    for path, _, files in os.walk(fresh):
        there = os.path.join(source, os.path.relpath(path, fresh))
        os.makedirs(there, exist_ok=True)
        for name in files:
            one, other = os.path.join(path, name), os.path.join(there, name)
            if not os.path.lexists(other) or os.path.islink(one) or not filecmp.cmp(one, other, shallow=False):
                shutil.copy2(one, other, follow_symlinks=False) if not os.path.islink(other) else None
    for path, directories, files in os.walk(source):
        if path == source and BUILD in directories:
            directories.remove(BUILD)
        for name in files:
            if not os.path.lexists(os.path.join(fresh, os.path.relpath(path, source), name)):
                os.unlink(os.path.join(path, name))


def next_build(directory, *options):
    """A meson build of the version after this one (tests/package/next.py), kept in directory. It stands within its source, as
    the builds of tools/check do; with the same options, to ccache most of its files are those that were compiled for them."""
    source = os.path.join(directory, "source")
    ready = os.path.join(source, BUILD)
    fresh = os.path.join(directory, "fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    subprocess.run([os.path.join(SOURCE, "tests/package/next.py"), "--from", SOURCE, fresh], check=True)
    _mirror(fresh, source)
    shutil.rmtree(fresh)
    env = {**os.environ, "CC": "ccache gcc" if shutil.which("ccache") else "gcc", "CCACHE_NOHASHDIR": "1"}
    if not os.path.exists(os.path.join(ready, "build.ninja")):
        subprocess.run(["meson", "setup", ready, source, "-Dtests=false", "-Ddocs=disabled", *(options or ("-Dwerror=true",))],
                       check=True, stdout=subprocess.DEVNULL, env=env)
    subprocess.run(["ninja", "-C", ready], check=True, stdout=subprocess.DEVNULL, env=env)
    return ready


def without_leaks(cluster):
    for node in cluster.nodes:
        for unit in (MASTERD, AGENTD):
            cluster.exec(node, "sh", "-c", 'mkdir -p "/etc/systemd/system/$1.d" && cat > "/etc/systemd/system/$1.d/leaks.conf"', "-", unit, input=QUIET)
        cluster.exec(node, "systemctl", "daemon-reload")


def replace_files(cluster, node, tree):
    cluster.exec(node, "sh", "-c", REPLACE, "-", tree, timeout=120)


def version(cluster, node):
    """Of the agent, as masterd has it."""
    return next(row for row in cluster.primusctl_json("nodes", user="root") if row["name"] == node)["version"]


def main_pids(cluster, job):
    """{(role, index): (host, unit, PID)} of the executors that run."""
    found = {}
    for e in cluster.status(job)["executors"]:
        if e["state"].upper() == "RUNNING":
            pid = cluster.exec(e["node"], "systemctl", "show", "-P", "MainPID", e["unit"]).strip()
            found[e["role"], e["index"]] = (e["node"], e["unit"], pid)
    return found
