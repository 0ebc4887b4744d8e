#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One version: meson.build's. What is written by hand beside it says the same, and so does every program; so with users.

usage: versions.py SOURCE [BUILD]
"""
import json
import os
import re
import subprocess
import sys

problems = []


def problem(where, text):
    problems.append(f"{where}: {text}")


def read(source, path):
    with open(os.path.join(source, path), encoding="utf-8") as f:
        return f.read()


def expect(where, what, found, expected):
    if found != expected:
        problem(where, f"{what} is {found!r}, and meson.build's version is {expected!r}")


def check_written(source, version):
    for name in sorted(os.listdir(os.path.join(source, "docs/man"))):
        head = read(source, f"docs/man/{name}").split("\n", 1)[0]
        if '"Primus @VERSION@"' not in head:
            problem(f"docs/man/{name}", 'the first line has no "Primus @VERSION@", which the build fills in')
    # The changes: what is not released yet, then versions with their dates, the newest first.
    headings = re.findall(r"^## (.*)$", read(source, "CHANGELOG.md"), re.M)
    known = []
    for i, heading in enumerate(headings):
        m = re.fullmatch(r"(\d+)\.(\d+)\.(\d+) \(\d{4}-\d\d-\d\d\)", heading)
        if m:
            known.append(tuple(map(int, m.groups())))
        elif i > 0 or heading != "Unreleased":
            problem("CHANGELOG.md", f"the section '{heading}' is neither 'X.Y.Z (YYYY-MM-DD)' nor a first one 'Unreleased'")
    if known != sorted(known, reverse=True):
        problem("CHANGELOG.md", "the versions are not in order, the newest first")
    if headings and headings[0] != "Unreleased":
        expect("CHANGELOG.md", "the newest version", headings[0].split(" ")[0], version)
    elif known and known[0] > tuple(map(int, version.split("."))):
        problem("CHANGELOG.md", f"it has a version newer than meson.build's, {version}")
    # Packages: what their tools read cannot be generated.
    if os.path.exists(os.path.join(source, "packaging/debian/changelog")):
        m = re.match(r"primus \(([^)]*)-[^-)]+\)", read(source, "packaging/debian/changelog"))
        expect("packaging/debian/changelog", "the newest version", m and m[1], version)
    if os.path.exists(os.path.join(source, "packaging/primus.spec")):
        spec = read(source, "packaging/primus.spec")
        m = re.search(r"^Version:\s*(\S+)$", spec, re.M)
        expect("packaging/primus.spec", "Version", m and m[1], version)
        release = re.search(r"^Release:\s*(\d+)", spec, re.M)
        m = re.search(r"^%changelog\n\* .* - (\S+)$", spec, re.M)
        expect("packaging/primus.spec", "the newest version of %changelog", m and m[1], f"{version}-{release and release[1]}")
        users = [line for line in read(source, "units/primus.sysusers.conf").splitlines() if line and not line.startswith("#")]
        m = re.search(r"^%pre master\n.*?<<'EOF'[^\n]*\n(.*?)\nEOF$", spec, re.M | re.S)
        if not m or m[1].splitlines() != users:
            problem("packaging/primus.spec", "%pre master makes other users than units/primus.sysusers.conf")


def check_built(build, version):
    with open(os.path.join(build, "meson-info/intro-targets.json"), encoding="utf-8") as f:
        targets = json.load(f)
    for target in targets:
        if target["type"] != "executable" or not target["installed"]:
            continue
        run = subprocess.run([target["filename"][0], "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=60)
        if run.returncode != 0 or run.stdout != f"{target['name']} {version}\n":
            problem(target["name"], f"--version says {run.stdout!r} with status {run.returncode}, not '{target['name']} {version}'")


def main(source, build=None):
    m = re.search(r"^project\(.*?\bversion: '(\d+\.\d+\.\d+)'", read(source, "meson.build"), re.M | re.S)
    if not m:
        sys.exit("versions.py: meson.build: project() has no version 'X.Y.Z'")
    check_written(source, m[1])
    if build:
        check_built(build, m[1])
    for text in problems:
        print(text, file=sys.stderr)
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
