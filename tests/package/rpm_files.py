#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is in the RPMs, with owner, mode and kind, against packaging/files-rpm.list, which is part of what is reviewed.

usage: rpm_files.py [--write] [DIRECTORY]      DIRECTORY with the .rpm files (default: build/packages)
"""
import difflib
import glob
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(SOURCE, "packaging/files-rpm.list")
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Every file of every RPM as Debian's rpm makes them: package, mode, owner, path; then c: configuration, n: kept as it is, d: documentation,
# l: licence. Checked by tests/package/rpm_files.py, written anew by "rpm_files.py --write".
"""
QUERY = "[%{=NAME} %{FILEMODES:perms} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES} %{FILEFLAGS:fflags} %{FILELINKTOS}\n]"


def listed(directory):
    files = sorted(f for f in glob.glob(os.path.join(directory, "*.rpm")) if not f.endswith(".src.rpm"))
    if not files:
        sys.exit(f"rpm_files.py: there are no RPMs in {directory}; 'tools/package rpm' makes them")
    triplet = subprocess.run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], capture_output=True, text=True, check=True).stdout.strip()
    version = subprocess.run(["rpm", "-qp", "--qf", "%{VERSION}", files[0]], capture_output=True, text=True, check=True).stdout
    lines = subprocess.run(["rpm", "-qp", "--qf", QUERY, *files], capture_output=True, text=True, check=True).stdout.splitlines()
    # Examples and documents are many, and one is like the other.
    return [" ".join(line.split()).replace(triplet, "TRIPLET").replace(f"-{version}", "-VERSION") for line in lines
            if "/share/doc/primus/" not in line]


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    found = listed(arguments[0] if arguments else os.path.join(SOURCE, "build/packages"))
    if "--write" in sys.argv:
        with open(LIST, "w", encoding="utf-8") as f:
            f.write(HEAD + "\n".join(found) + "\n")
        return
    with open(LIST, encoding="utf-8") as f:
        expected = [line for line in f.read().splitlines() if not line.startswith("#")]
    difference = list(difflib.unified_diff(expected, found, "packaging/files-rpm.list", "the RPMs", lineterm="", n=0))
    print("\n".join(difference) or f"{len(found)} files, as listed")
    sys.exit(bool(difference))


if __name__ == "__main__":
    main()
