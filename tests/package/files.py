#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is in the packages, with owner and mode, against packaging/files.list, which is part of what is reviewed.

usage: files.py [--write] [DIRECTORY]      DIRECTORY with the .deb files (default: build/packages)
"""
import difflib
import glob
import io
import os
import subprocess
import sys
import tarfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(SOURCE, "packaging/files.list")
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Every file of every package: package, mode, owner, path. Checked by tests/package/files.py, written anew by "files.py --write".
"""


def entries(package):
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True).stdout
    name = os.path.basename(package).partition("_")[0]
    triplet = subprocess.run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    for member in tarfile.open(fileobj=io.BytesIO(tar)):
        path = member.name.lstrip(".").replace(triplet, "TRIPLET") or "/"
        kind = {tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l"}.get(member.type, "-" if member.isreg() else "?")
        # Directories of the system are every package's.
        if kind == "d" and "primus" not in path:
            continue
        link = f" -> {member.linkname}" if kind == "l" else ""
        mode = "" if kind == "l" else f"{member.mode:04o}"
        yield f"{name:<15} {kind} {mode:<4} {member.uname}:{member.gname} {path}{link}"


def listed(directory):
    packages = [p for p in sorted(glob.glob(os.path.join(directory, "*.deb"))) if "-dbgsym_" not in p]
    if not packages:
        sys.exit(f"files.py: there are no packages in {directory}; 'tools/package deb' makes them")
    return [line for package in packages for line in sorted(entries(package), key=lambda line: line.split()[-1])]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    found = listed(arguments[0] if arguments else os.path.join(SOURCE, "build/packages"))
    if "--write" in sys.argv:
        with open(LIST, "w") as f:
            f.write(HEAD + "\n".join(found) + "\n")
        return
    with open(LIST) as f:
        expected = [line for line in f.read().splitlines() if not line.startswith("#")]
    difference = list(difflib.unified_diff(expected, found, "packaging/files.list", "the packages", lineterm="", n=0))
    print("\n".join(difference) or f"{len(found)} files, as listed")
    sys.exit(bool(difference))


if __name__ == "__main__":
    main()
