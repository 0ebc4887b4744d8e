#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests mirror the rooms: a module of a pure room, masterd/sched/gang.c, has a test of its name in the same place
below tests/unit, masterd/sched/test-gang.c, or is named here together with the test that drives it. Part of a module,
NAME-part.c, is tested where NAME is. And that no test uses another test: what they share is in a kit.

    tests/mirror.py [SOURCE]
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import arrows

# Modules that have no test of their name: {test: (why, [modules])}.
DRIVEN = {
    # Several files behind one header, of which none is called from outside.
    "masterd/sched/test-place-random.c": ("an answer is exact: against all nodes, one by one", ["masterd/sched/fit"]),
    "masterd/data/test-data.c": ("one interface, data.h, in random worlds",
                                   ["masterd/data/blocks", "masterd/data/leases", "masterd/data/records", "masterd/data/restore"]),
    "masterd/data/test-order.c": ("the order is that of a listing", ["masterd/data/listing"]),
    "masterd/spec/test-spec.c": ("what is written reads back as an equal spec", ["masterd/spec/effective"]),
    "masterd/store/test-store.c": ("one interface, store.h: what is put comes back, and no other file is taken",
                                   ["masterd/store/load", "masterd/store/query", "masterd/store/records", "masterd/store/sqlite"]),
    "masterd/store/test-copy.c": ("a copy is what a store is revived from", ["masterd/store/revive"]),
    "masterd/health/test-sick.c": ("each verdict in scenes, with its evidence, and who it names",
                                   ["masterd/health/apart", "masterd/health/evidence", "masterd/health/gang",
                                    "masterd/health/health", "masterd/health/observe"]),
    # What speaks to the host, the kernel or a library, through the module that uses it.
    "tests/cluster/test_hosts.py": ("hooks are units of a host's systemd", ["agentd/unit/hooks"]),
    "agentd/device/test-inventory.c": ("below a root of its own", ["agentd/device/gpu"]),
    "agentd/device/test-gpu-watch.c": ("with a library that shows what a file says", ["agentd/device/nvml"]),
    "agentd/probe/test-probe.c": ("in a control group, with and without BPF", ["agentd/probe/kernel", "agentd/probe/maps"]),
    "agentd/log/test-follow.c": ("journal files of its own", ["agentd/log/journal", "agentd/log/read"]),
    "tests/cluster/test_journal.py": ("a journal is a host's", ["agentd/log/tail"]),
    "tests/cluster/test_no_record.py": ("only systemd says such things", ["agentd/log/verdict"]),
    "tests/cluster/test_conditions.py": ("a line of a user's is not the kernel's; tests/vm has the kernel's own",
                                         ["agentd/log/kernel"]),
    "starter/observe/test-calls.c": ("both ends of the connection", ["agentd/observe/observer"]),
}


def tested(unit, room, name):
    """Whether the module has a test, or the one that it is a part of."""
    words = name.split("-")
    names = ["-".join(words[:n]) for n in range(len(words), 0, -1)]
    return any(os.path.exists(os.path.join(unit, room, f"test-{n}.c")) for n in names)


def main():
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
    unit = os.path.join(top, "tests/unit")
    wrong, modules = [], 0
    driven = {}
    for test, (_, names) in DRIVEN.items():
        where = test if test.startswith("tests/") else f"tests/unit/{test}"
        if not os.path.exists(os.path.join(top, where)):
            wrong.append(f"{where} is not there, but tests/mirror.py says that it drives {', '.join(names)}")
        driven.update({name: where for name in names})
    for room in sorted(arrows.MASTERD_PURE | arrows.AGENTD_PURE | arrows.WEBD_PURE):
        for file in sorted(os.listdir(os.path.join(top, room))):
            name, ext = os.path.splitext(file)
            if ext != ".c":
                continue
            modules += 1
            has, where = tested(unit, room, name), driven.pop(f"{room}/{name}", None)
            if has and where:
                wrong.append(f"{room}/{file} has a test of its own by now: take it out of tests/mirror.py")
            elif not has and not where:
                wrong.append(f"{room}/{file} has no tests/unit/{room}/test-{name}.c")
    wrong += [f"{name}.c is not there, but in tests/mirror.py" for name in driven]
    for directory, _, files in os.walk(os.path.join(top, "tests")):
        for file in sorted(files):
            path = os.path.join(directory, file)
            if re.fullmatch(r"test_\w+\.py", file):
                pattern = r"^\s*(?:from|import)\s+(test_\w+)"
            elif re.fullmatch(r"test-[\w-]+\.c", file):
                pattern = r'^\s*#\s*include\s+"(?:[^"]*/)?(test-[^"/]+)"'
            else:
                continue
            with open(path, encoding="utf-8") as f:
                wrong += [f"{os.path.relpath(path, top)} uses another test, {other}: a kit is for what they share"
                          for other in re.findall(pattern, f.read(), re.M)]
    for line in wrong:
        print(line)
    print(f"{modules} modules of pure rooms, {len(wrong)} without a test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
