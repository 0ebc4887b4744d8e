#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: every folder of the source is a room, and ALLOWED names the rooms it may look into.

A room may always look into itself. Headers are named from the top of the source ("lib/base/log.h") or by their bare name
inside the room. A room that is not in the table is an error: its arrows want deciding, not finding out.

    tests/arrows.py [SOURCE]
"""
import os
import re
import sys

BASE = {"lib/base"}
WIRE = {"lib/base", "lib/wire"}
HTTP = {"lib/http"}
POLICY = {"lib/policy"}
HOST = WIRE | POLICY | {"lib/unit"}

# The rooms of a program that know its state, from the highest to the lowest: each sees those that stand behind it, and none
# before it. Upwards one speaks through the tables of masterd/core/listeners.h and agentd/core/manager.h.
MASTERD = ["masterd", "masterd/api", "masterd/recover", "masterd/admit", "masterd/calls", "masterd/relay", "masterd/watch", "masterd/providers", "masterd/fleet", "masterd/life",
           "masterd/queue", "masterd/feed", "masterd/link", "masterd/core", "masterd/caller", "masterd/conf"]
AGENTD = ["agentd", "agentd/api", "agentd/telemetry", "agentd/relay", "agentd/session", "agentd/host", "agentd/calls", "agentd/link", "agentd/executors", "agentd/core"]
STARTER = ["starter", "starter/calls", "starter/systemd", "starter/unit", "starter/policy"]
EXECUTOR = ["executor", "executor/files", "executor/scan", "executor/feed", "executor/read"]
PRIMUSCTL = ["tools/primusctl", "tools/primusctl/commands", "tools/primusctl/doctor", "tools/primusctl/view", "tools/primusctl/bus", "tools/primusctl/cli"]

# Pure rooms: they decide, and know neither the state nor the loop of their program.
MASTERD_PURE = {"masterd/spec", "masterd/job", "masterd/sched", "masterd/data", "masterd/node", "masterd/store", "masterd/health", "masterd/search",
                "masterd/metric", "masterd/checkpoint", "masterd/provision"}
WEBD_PURE = {"webd/route"}
AGENTD_PURE = {"agentd/unit", "agentd/device", "agentd/probe", "agentd/cgroup", "agentd/net", "agentd/metrics",
               "agentd/feed", "agentd/log", "agentd/capture", "agentd/observe"}


def below(order, more):
    """{room: what it may look into}, of an order of rooms; all of them see more besides."""
    return {room: set(order[n + 1:]) | more for n, room in enumerate(order)}


ALLOWED = {
    "lib/base": set(),
    "lib/wire": BASE,
    "lib/policy": BASE,
    "lib/record": set(),
    # What both daemons of a host know of its executors.
    "lib/unit": WIRE | POLICY,
    "lib/primus": WIRE | {"lib/record"},
    "lib/checkpoint": WIRE | {"lib/primus"},
    "lib/group": BASE | {"lib/primus"},
    # masterd: the pure rooms see base alone; above them each sees what it decides about.
    "masterd/search": BASE,
    "masterd/metric": WIRE,
    "masterd/checkpoint": WIRE,
    "masterd/spec": BASE | {"masterd/search"},
    "masterd/sched": BASE,
    "masterd/store": BASE,
    "masterd/health": BASE,
    "masterd/provision": BASE,
    "masterd/node": WIRE | {"masterd/store"},
    "masterd/data": WIRE | {"masterd/spec", "masterd/store"},
    "masterd/job": WIRE | {"masterd/search", "masterd/spec", "masterd/sched", "masterd/store", "masterd/node", "masterd/data"},
    **below(MASTERD, WIRE | POLICY | MASTERD_PURE),
    # Who calls is found out without a look at any state.
    "masterd/caller": WIRE,
    # What masterd replies, as JSON: it asks nobody.
    "lib/json": WIRE,
    "lib/http": BASE,
    # The gateway: what a request means, and those under way. It knows nothing of jobs but what masterd says of them.
    "webd": BASE | {"webd/serve", "webd/route"},
    "webd/serve": WIRE | HTTP | {"lib/json", "webd/route"},
    "webd/route": WIRE | {"lib/json"},
    # What the starter and agentd share where the one looks for the other.
    "lib/observe": BASE,
    # What is root on a host: it knows neither daemon, nor the network.
    **below(STARTER, HOST | {"starter/files", "starter/observe"}),
    "starter/policy": HOST,
    "starter/unit": HOST | {"starter/files"},
    "starter/files": HOST,
    "starter/observe": BASE | {"lib/observe", "bpf"} | WIRE | {"lib/unit", "starter/files"},
    # agentd: only probe sees what the BPF programs share.
    "agentd/unit": HOST,
    "agentd/feed": WIRE,
    "agentd/log": WIRE,
    "agentd/capture": WIRE | {"lib/observe"},
    "agentd/observe": BASE | {"lib/observe"},
    "agentd/device": WIRE,
    "agentd/cgroup": BASE,
    "agentd/net": BASE,
    "agentd/metrics": WIRE | HTTP | {"agentd/cgroup", "agentd/net", "agentd/probe"},
    "agentd/probe": BASE | {"bpf", "lib/observe"},
    **below(AGENTD, HOST | AGENTD_PURE | {"lib/observe"}),
    "bpf": set(),
    **below(EXECUTOR, WIRE | {"lib/record", "lib/primus"}),
    "executor/read": WIRE | {"lib/record"},
    "executor/programs": WIRE,
    "session": WIRE,
    # `validate` and `config` work without a master: the rules are the ones it would apply.
    # A file that was fetched is summed as its records are.
    **below(PRIMUSCTL, WIRE | {"masterd/spec", "masterd/search", "lib/record", "lib/json"}),
    "tools/join": WIRE,
    # The state as a file: the store, and nothing that decides about jobs.
    "tools/state": BASE | {"masterd/store"},
    # The simulator: the very scheduler, and no daemon.
    "sim": BASE | {"masterd/sched", "masterd/search"},
}

# Headers that publish the inside of a module, for the modules that are cut out of it: nobody outside the room sees them.
INSIDE = re.compile(r"(^|/)[\w-]*-?(parts|internal)\.h$")

# Single headers of a daemon's own folder that its rooms stand on.
# The words of an input stand in the configuration as they do in what executors are told of it.
# What is measured is one table, for all who measure.
HEADERS = {"lib/wire/telemetry-fields.h": AGENTD_PURE | {"masterd/health"}, "lib/wire/input.h": {"masterd/spec"},
           # The starter's names are one list.
           "lib/wire/starter.h": {"lib/observe"},
           # What a capture may hold is one set of bounds.
           "lib/wire/capture.h": {"lib/observe", "starter/observe"}}

# Headers of libraries that only some rooms may use: the point of a room is what it does not know.
LIBRARIES = {
    r"sqlite3\.h": {"masterd/store"},
    r"gnutls/(?!crypto).*": {"lib/wire"},  # hashing is anybody's
    r"archive(_entry)?\.h": {"executor/files", "tools/primusctl/bus", "tools/state"},
    r"jansson\.h": {"executor/read", "lib/wire", "lib/json", "lib/checkpoint", "lib/group", "webd/route", "webd/serve", "masterd/data", "masterd/search", "masterd/checkpoint", "masterd/spec", "masterd/job", "masterd/store", "masterd/api", "masterd/providers", "masterd/life",
                      "masterd/admit", *PRIMUSCTL, "tools/state", "sim"},
    r"bpf/.*": {"starter/observe", "bpf"},
    r"microhttpd\.h": {"lib/http"},
    r"curl/.*": {"executor/scan", "executor/read"},
    r"librdkafka/.*": {"executor/read"},
    r"(zlib|zstd)\.h": {"executor/read"},
    r"seccomp\.h": {"agentd/capture"},  # for the names of system calls
    r"libsmartcols/.*": {"tools/primusctl/view"},
}

# Rooms that must not speak to systemd, a bus or a clock at all.
CLOCKLESS = r"(systemd/.*|time\.h|sys/time\.h|unistd\.h|sys/socket\.h|lib/base/(clock|log)\.h)"
PURE = {"masterd/sched": CLOCKLESS, "masterd/health": CLOCKLESS, "masterd/search": CLOCKLESS, "masterd/checkpoint": CLOCKLESS, "masterd/provision": CLOCKLESS}

SKIPPED = ("tests", "build", "docs", "examples", "packaging", ".git", ".cache")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def sources(top):
    for directory, names, files in os.walk(top):
        room = os.path.relpath(directory, top)
        if room == ".":
            names[:] = sorted(n for n in names if not n.startswith(SKIPPED))
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                yield room, os.path.join(directory, name)


def check_file(top, room, path):
    """Yields (line, what is wrong)."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quoted, angled = match.groups()
            header = quoted or angled
            if quoted:
                target = os.path.dirname(quoted)
                if quoted.startswith(("../", "./")):
                    yield number, f'"{quoted}": name it from the top of the source'
                    continue
                if target and not os.path.isdir(os.path.join(top, target)) and room not in ("bpf", "starter/observe"):
                    yield number, f'"{quoted}": no such folder; use <> for a library'
                    continue
                if target != room and INSIDE.search(quoted) and not room.startswith("tests"):
                    yield number, f'"{quoted}" is the inside of {target}, and for that room alone'
                if target and target != room and target not in ALLOWED[room] and room not in HEADERS.get(quoted, ()):
                    yield number, f"{room} may not look into {target}"
            for pattern, rooms in LIBRARIES.items():
                if angled and re.fullmatch(pattern, header) and room not in rooms:
                    yield number, f"{room} may not use <{header}>: it belongs to {', '.join(sorted(rooms))}"
            if room in PURE and re.fullmatch(PURE[room], header):
                yield number, f"{room} is pure and may not use {header}"


def circles(looks):
    """Rooms that look into each other, over however many others. looks: {room: rooms that it looks into}. Tarjan's strongly
    connected components (1972)."""
    number, low, stack, found = {}, {}, [], []

    def visit(room):
        number[room] = low[room] = len(number)
        stack.append(room)
        for other in sorted(looks.get(room, ())):
            if other not in number:
                visit(other)
                low[room] = min(low[room], low[other])
            elif other in stack:
                low[room] = min(low[room], number[other])
        if low[room] == number[room]:
            circle = stack[stack.index(room):]
            del stack[stack.index(room):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for room in sorted(looks):
        if room not in number:
            visit(room)
    return found


def main():
    top = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
    wrong, files, looks = [], 0, {}
    for room, path in sources(top):
        files += 1
        with open(path, encoding="utf-8") as f:
            named = {os.path.dirname(match[1]) for match in map(INCLUDE.match, f) if match and match[1]}
        looks.setdefault(room, set()).update(named - {room, ""})
        where = os.path.relpath(path, top)
        if room not in ALLOWED:
            wrong.append(f"{where}: the room {room} is not in the table of tests/arrows.py")
            continue
        wrong += [f"{where}:{number}: {text}" for number, text in check_file(top, room, path)]
    wrong += [f"these rooms look into each other: {', '.join(circle)}" for circle in circles(looks)]
    for line in wrong:
        print(line)
    print(f"{files} files, {len(wrong)} arrows that should not be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
