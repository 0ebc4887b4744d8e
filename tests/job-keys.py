#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each key of a job that is taken without a warning is used: its field is read outside of the room that reads
configurations, or, of keys that executors are told as JSON, its name is read there. Each key of upstream's that is refused because
it is not built is in docs/upstream.md, with the way to do it here. job-keys.py SOURCE"""
import glob
import os
import re
import sys

ROW = re.compile(r'(?:\{|SHORT\()\s*"(\w+)",\s*(KEY_\w+),(.*?)(?=\n\s*(?:\{\s*"|SHORT|WARNED|UNBUILT|SLIP|CHECKED|[A-Z]+_[A-Z_]*ROWS?\b|\};))', re.S)
FIELD = re.compile(r'\b(?:LIST_AT|AT|CHOOSES)\(\s*(?:\d+,\s*)?(\w+),\s*([\w.]+)')
# What follows from these is worked out where configurations are read, and has another name there.
ELSEWHERE = {
    ("ready_spec", "notify"): "ready_spec.kind",
    ("role_spec", "actors"): "role_spec.argv",
    ("input_spec", "reader"): "input_spec.command",
    ("input_spec", "reader_params"): "input_spec.command",
    ("failover_spec", "max_role_failures"): "spec_role_budget()",
    ("job_spec", "failure.max_role_failures"): "spec_role_budget()",
    ("role_spec", "failure.restart_scope"): "spec_restart_scope()",
    ("job_spec", "failure.restart_scope"): "spec_restart_scope()",
}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def rows(source):
    """The key, and the struct and member that it is stored in."""
    for path in sorted(glob.glob(os.path.join(source, "masterd/spec/schema-*.[ch]"))):
        for name, kind, rest in ROW.findall(read(path).replace("\\\n", "\n")):
            field = FIELD.search(rest)
            if field and kind != "KEY_MESSAGE":  # what is in it counts
                yield os.path.basename(path), name, field[1], field[2]


def refused(source):
    """Keys that are not built."""
    for path in sorted(glob.glob(os.path.join(source, "masterd/spec/schema-*.[ch]"))):
        yield from re.findall(r'UNBUILT\("(\w+)"', read(path))


def main(source):
    files = [path for room in ("masterd", "lib") for path in glob.glob(os.path.join(source, room, "**/*.[ch]"), recursive=True)]
    ours = [path for path in files if not os.path.relpath(path, source).startswith(("masterd/spec/", "lib/wire/input-read.c"))]
    code = "".join(map(read, ours))
    used = set(re.findall(r"(?:->|\.)(\w+)", code))
    told = set(re.findall(r'"(\w+)"', read(os.path.join(source, "lib/wire/input-read.c"))))
    found, idle = 0, []
    for file, name, struct, member in rows(source):
        found += 1
        worked_out = ELSEWHERE.get((struct, member))
        if worked_out:
            good = re.search(r"\b" + re.escape(worked_out.split(".")[-1].rstrip("()")) + r"\b", code)
        else:
            good = name in told if struct in ("input_spec", "topic_spec") else member.split(".")[-1] in used or name in told
        if not good:
            idle.append(f"{file}: {name} is taken, and nothing reads {struct}.{member}")
    if found < 150:
        idle.append(f"{found} keys were found: the tables are written in another way than this expects")
    page = read(os.path.join(source, "docs/upstream.md"))
    unbuilt = list(refused(source))
    idle += [f"docs/upstream.md: {key} is refused, and there is no word about what to do instead" for key in unbuilt
             if not re.search(rf"^\| [^|]*{key}`", page, re.M)]
    if not unbuilt:
        idle.append("no key is refused any more, as far as this can tell")
    print("\n".join(idle) or f"{found} keys, each with an effect")
    return 1 if idle else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
