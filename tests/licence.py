#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file of ours names its licence in its first lines.

usage: licence.py SOURCE
"""
import fnmatch
import os
import subprocess
import sys

OURS = "Apache-2.0"
# The licence itself, prose, settings of tools, and data, whose origin and licence stand beside it.
NONE = """
    LICENSE *.md .gitignore .gitattributes .clang-format .clang-tidy
    examples/*/data/* examples/files/names/* examples/digits/heldout.txt tests/data/* *.png *.svg webd/page/vendor/*
""".split()
# Configurations as their authors wrote them, and traces: JSON knows no comments. And bytes for the fuzz targets.
NO_COMMENTS = "tests/*.json examples/upstream/* examples/sim/*.json examples/sim/*.csv tests/fuzz/corpus/* webd/cockpit/manifest.json".split()


def files(source):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True)
    if listed.returncode == 0:
        return [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    found = [os.path.relpath(os.path.join(top, name), source) for top, _, names in os.walk(source) for name in names]
    return [name for name in found if not name.startswith((".git/", "build"))]


def licence(name, head):
    """What the file has to say; None: nothing."""
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in NONE + NO_COMMENTS):
        return None
    if name.startswith("packaging/debian/") and not head.startswith(b"#!"):
        return None  # formats that have no place for it; packaging/debian/copyright speaks for them. Scripts have
    return "GPL-2.0-only OR BSD-2-Clause" if fnmatch.fnmatchcase(name, "bpf/*.bpf.c") else OURS


def main(source):
    wrong, seen = [], 0
    for name in files(source):
        path = os.path.join(source, name)
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        with open(path, "rb") as f:
            head = b"".join(f.readline(4096) for _ in range(5))
        wanted = licence(name, head)
        if not head or wanted is None:
            continue
        seen += 1
        if f"SPDX-License-Identifier: {wanted}".encode() not in head:
            wrong.append(f'{name}: no "SPDX-License-Identifier: {wanted}" in its first five lines')
    if seen < 500:
        wrong.append(f"licence.py: {seen} files were looked at, which are not all")
    print("\n".join(wrong) or f"{seen} files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
