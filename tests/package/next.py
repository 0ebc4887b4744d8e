#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the version after this one out of a source tree, for tests of upgrades: another number, the next minor of the link, one
more migration of the store, and keys on the link that this version has never heard of. Edits by anchors, and fails where one is
not there exactly once, so that it does not rot in silence.

    next.py TREE                 edits TREE (an unpacked tarball) in place
    next.py --from SOURCE TREE   copies a checkout's files to TREE first (tracked ones, and new ones that git does not ignore)
    next.py --minors N ...       the link's minor is raised by N instead (2: a version that this one refuses)
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

SUFFIX = "+next"
STEP = '''
        /* A version that is not there yet: what it makes of the hosts can be looked up. */
        "CREATE TABLE next_note(node TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;"
        "INSERT INTO next_note SELECT name, 'seen before the upgrade' FROM node;",
        NULL,
};
'''


class Anchor(Exception):
    pass


def edit(tree, path, pattern, replacement):
    """pattern is a regular expression that has to match exactly once."""
    name = os.path.join(tree, path)
    with open(name) as f:
        text = f.read()
    text, n = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if n != 1:
        raise Anchor(f"{path}: {n} places look like /{pattern}/, expected one; adapt tests/package/next.py")
    with open(name, "w") as f:
        f.write(text)


def make(tree, minors):
    edit(tree, "meson.build", r"(project\([^)]*?\bversion: ')([^']+)'", rf"\g<1>\g<2>{SUFFIX}'")
    edit(tree, "lib/wire/version.h", r"^#define LINK_MINOR (\d+)$", lambda m: f"#define LINK_MINOR {int(m[1]) + minors}")
    edit(tree, "masterd/store/migrate.c", r"\n        NULL,\n};\n", lambda m: STEP)
    # Keys that the version before passes over: with every start, every Hello, every heartbeat.
    edit(tree, "lib/wire/messages-extra.c", r"^(        for \(size_t i = 0; r >= 0 && i < ELEMENTSOF\(keys\); i\+\+\)\n"
         r"                r = append_key\(m, keys \+ i, x\);\n)", r'\1        if (r >= 0)\n'
         r'                r = sd_bus_message_append(m, "{sv}", "next", "s", "with every start");' + "\n")
    edit(tree, "agentd/link/link.c", r'"ta\{sv\}", l->seq, 0\)', '"ta{sv}", l->seq, 1, "next", "u", 7)')
    edit(tree, "agentd/link/link.c", r"PRIMUS_VERSION, 0, 3,", 'PRIMUS_VERSION, 1, "next", 4, "next", "as", 0,')
    changelog = os.path.join(tree, "packaging/debian/changelog")
    if os.path.exists(changelog):
        with open(changelog) as f:
            text = f.read()
        first = re.match(r"(\S+) \(([^)]+)-(\d+)\) ", text)
        if not first:
            raise Anchor("packaging/debian/changelog: the first line is not understood; adapt tests/package/next.py")
        stamp = re.search(r"^ -- .*$", text, re.MULTILINE)[0]
        with open(changelog, "w") as f:
            f.write(f"{first[1]} ({first[2]}{SUFFIX}-{first[3]}) unstable; urgency=medium\n\n"
                    f"  * Made by tests of upgrades.\n\n{stamp}\n\n{text}")


def copy(source, tree):
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                            capture_output=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if os.path.lexists(os.path.join(source, name)):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy2(os.path.join(source, name), os.path.join(tree, name), follow_symlinks=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree")
    parser.add_argument("--from", dest="source", metavar="SOURCE")
    parser.add_argument("--minors", type=int, default=1)
    arguments = parser.parse_args()
    try:
        if arguments.source:
            if os.path.exists(arguments.tree):
                raise Anchor(f"{arguments.tree} is there already")
            copy(arguments.source, arguments.tree)
        make(arguments.tree, arguments.minors)
    except Anchor as e:
        sys.exit(f"next.py: {e}")


if __name__ == "__main__":
    main()
