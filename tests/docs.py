#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents (*.md) can be read beside code, and name what there is: no line has more than 130 columns, and files of the source and
pages that they name exist.

usage: docs.py SOURCE
"""
import os
import re
import sys

COLUMNS = 130
# Markdown has no way to go on with a row of a table, and JSON none to break a string.
WHOLE = re.compile(r'\||\s*"[^"]+": ".*",?$')
ROOMS = "agentd|bpf|dbus|docs|examples|executor|lib|masterd|packaging|session|sim|starter|tests|tools|units"
FILE = re.compile(rf"`((?:{ROOMS})/[\w./-]+\.(?:c|h|py|sh|md|xml|json|build))`")
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def documents(source):
    for folder, folders, files in os.walk(source):
        # Builds, and what is not ours.
        folders[:] = [f for f in folders if not f.startswith((".", "build")) and not os.path.exists(os.path.join(folder, f, "build.ninja"))]
        yield from (os.path.join(folder, f) for f in files if f.endswith(".md"))


def complaints(source, path):
    fence = False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if line.startswith("```"):
                fence = not fence
            if len(line) > COLUMNS and not WHOLE.match(line):
                yield number, f"{len(line)} columns; {COLUMNS} are the most"
            # A folder in capitals stands for any.
            yield from ((number, f"there is no {name}") for name in FILE.findall(line)
                        if not re.search("/[A-Z]+/", name) and not os.path.exists(os.path.join(source, name)))
            if not fence:
                yield from ((number, f"there is no {link}") for link in LINK.findall(re.sub("`[^`]*`", "", line))
                            if not os.path.exists(os.path.join(os.path.dirname(path), link)))


def main(source):
    status = 0
    for path in sorted(documents(source)):
        for number, text in complaints(source, path):
            print(f"{os.path.relpath(path, source)}:{number}: {text}", file=sys.stderr)
            status = 1
    return status


sys.exit(main(*sys.argv[1:]))
