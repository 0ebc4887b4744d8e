#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what is not written any more in new code (CONTRIBUTING.md, "Errors" and "Names"), for each program: the numbers do
not grow. Where they have shrunk, the table below may be lowered.

chains: "if (r >= 0) r = next();", which goes on past a failure and hides what failed.
names: static functions whose name is one word that static functions of three or more other files have, too, so that neither
gdb nor grep finds the one that is meant.
quotes: escaped quotation marks in C tests, where tests/kit/json.h has JSON without them. What is left is no JSON (metrics,
tracebacks, what a shell is told) or counts columns.

    tests/idioms.py [SOURCE]
"""
import collections
import os
import re
import sys

CHAIN = re.compile(r"\bif \((\w+) >= 0(?: &&[^;{}]*)?\)\s*\{?\s*\1 = ")
STATIC = re.compile(r"^static (?:inline |_Noreturn )?(?:const )?(?:struct |enum |unsigned )?\w+ \**([a-z0-9]+)\(", re.M)
SHARED_BY = 4

#          chains, names
LIMITS = {
    "agentd": (51, 1),
    "executor": (24, 1),
    "lib": (32, 1),
    "masterd": (490, 86),
    "session": (0, 0),
    "sim": (14, 0),
    "starter": (19, 0),
    "tools": (240, 57),
    "webd": (0, 0),
}


QUOTES = 948


def quotes(top):
    n = 0
    for room in ("tests/unit", "tests/kit"):
        for directory, _, files in os.walk(os.path.join(top, room)):
            for name in files:
                if name.endswith((".c", ".h")):
                    with open(os.path.join(directory, name), encoding="utf-8") as f:
                        n += f.read().count('\\"')
    return n


def count(top):
    """{program: [chains, names]}"""
    chains, owners = collections.Counter(), collections.defaultdict(set)
    for program in LIMITS:
        for directory, _, files in os.walk(os.path.join(top, program)):
            for name in files:
                if name.endswith((".c", ".h")):
                    path = os.path.join(directory, name)
                    with open(path, encoding="utf-8") as f:
                        text = f.read()
                    chains[program] += len(CHAIN.findall(text))
                    for function in set(STATIC.findall(text)):
                        owners[function].add((program, path))
    names = collections.Counter(program for files in owners.values() if len(files) >= SHARED_BY for program, _ in files)
    return {program: (chains[program], names[program]) for program in LIMITS}


def main():
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
    grown = 0
    if (n := quotes(top)) > QUOTES:
        grown += 1
        print(f"tests: {n} escaped quotation marks, and not more than {QUOTES} before: tests/kit/json.h does without")
    for program, found in count(top).items():
        for what, n, limit in zip(("chains of if (r >= 0) r =", "static names of one word that many files have"), found, LIMITS[program]):
            if n > limit:
                grown += 1
                print(f"{program}: {n} {what}, and not more than {limit} before")
            elif n < limit:
                print(f"{program}: {n} {what}: tests/idioms.py may say so, instead of {limit}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
