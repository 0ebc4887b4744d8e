#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/metrics.md explains every metric of agentd/metrics/families.h, in its order and with its unit, and no other; the names are
those that Prometheus' rules ask for.

usage: metrics.py SOURCE"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
SUFFIX = {"INFO": "_info", "GAUGE": "", "COUNTER": "_total"}
header = (source / "agentd/metrics/families.h").read_text(encoding="utf-8").replace("\\\n", "\n")
table = re.findall(r'X\(\s*(\w+),\s*"([a-z0-9_]+)",\s*(INFO|GAUGE|COUNTER),\s*"(\w*)",\s*"([^"]+)"\)', header)
page = re.findall(r"^\| `(primus_\w+)` \|([^|]*)\| *(\w*) *\| *([^|]+?) *\| *([^|]+?) *\| *([^|]+?) *\|$",
                  (source / "docs/metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
failures = []


def check(good, what):
    if not good:
        failures.append(what)


check(len(table) == header.count("X(") - 2, f"{header.count('X(') - 2} families in the table, {len(table)} of them readable")
shown, told = [name + SUFFIX[kind] for _, name, kind, _, _ in table], [row[0] for row in page]
for name in sorted(set(shown) ^ set(told)):
    check(False, f"{name} is only in {'families.h' if name in shown else 'docs/metrics.md'}")
if not failures:
    check(shown == told, "the order differs at " + str(next((a, b) for a, b in zip(shown, told) if a != b) if shown != told else ""))
units = {row[0]: row[2] for row in page}
for (_, name, kind, unit, text), metric in zip(table, shown):
    check(units.get(metric, unit) == unit, f"{metric}: unit {unit!r} in families.h, {units.get(metric)!r} in docs/metrics.md")
    check(not unit or name.endswith("_" + unit), f"{name} does not end in its unit {unit}")
    check(not name.endswith(("_total", "_info")), f"{name}: the suffix is added")
    check(text.endswith("."), f"{name}: its help is no sentence")
check(len(set(shown)) == len(shown), "a name is there twice")
for failure in failures:
    print(f"metrics: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
