#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the examples with primus-sim: the numbers of the worked example in docs/scheduling.md are those that come out,
totals of the longer trace are what they were, and twice the same is the same.

    tests/sim.py PRIMUS-SIM SOURCE
"""
import json
import os
import subprocess
import sys
import tempfile

SIM, TOP = sys.argv[1:3]
CLUSTER = ["--hosts", "8x64/512G/8", "--pool", "prod:3", "--pool", "research:2"]


def sim(*args):
    return subprocess.run([SIM, *args], check=True, capture_output=True, text=True).stdout


def example(name):
    return os.path.join(TOP, "examples/sim", name)


def table(name):
    lines = [line.split(",") for line in sim("--jobs", example(name)).splitlines()]
    return "\n".join(",".join([line[0], *line[3:9]]) for line in lines)


text = open(os.path.join(TOP, "docs/scheduling.md"), encoding="utf-8").read()
for name in ("backfill.json", "shares.json"):
    assert f"```\n{table(name)}\n```" in text, f"docs/scheduling.md does not say what {name} gives:\n{table(name)}"

week = [*CLUSTER, "--preempt", "--json", example("week.csv")]
first = sim(*week)
assert first == sim(*week)
totals = json.loads(first)["totals"]
assert (totals["jobs"], totals["done"], totals["waiting"]) == (200, 200, 0), totals
assert totals["backfilled"] > 20 and totals["gpu_used"] > 0.4, totals

# Searches: the same twice, whatever fails; who is behind is stopped, and the best is found with a fraction of the work.
one = sim("--json", example("search.json"))
assert one == sim("--json", example("search.json"))
asha, at_random = json.loads(one)["searches"]
assert (asha["trials"], at_random["trials"], asha["over"], at_random["over"]) == (200, 50, True, True), one
assert at_random["trained"] == 1 and at_random["results"] == 50 and at_random["stopped_early"] == 0, at_random
assert asha["trained"] < 0.25 and asha["stopped_early"] > 100 and asha["best"] < at_random["best"], asha
assert sum(line.startswith("asha[") for line in sim("--jobs", example("search.json")).splitlines()) == 200
short = json.loads(sim("--json", "--until", "2h", example("search.json")))["searches"][0]
assert not short["over"] and 0 < short["results"] < asha["results"], short

with tempfile.TemporaryDirectory() as d:
    failures = os.path.join(d, "failures.csv")
    with open(failures, "w", encoding="utf-8") as f:
        f.write("host,from,to\n0,1h,2h\n1,90min,3h\n")
    failing = json.loads(sim("--json", "--failures", failures, example("search.json")))
    assert failing["totals"]["failed"] > 0 and [s["trials"] for s in failing["searches"]] == [200, 50] and all(s["over"] for s in failing["searches"]), failing
    for search, says in (({"maxTrials": 3}, '"maxTime" of the search is missing'), ({"maxTime": 3}, '"maxTrials" of the search is missing'), ([], '"search" of the search'),
                         ({"maxTrials": 3, "maxTime": 0}, '"maxTime"'), ({"maxTrials": 1e9, "maxTime": 1}, '"maxTrials"'), ({"method": "external"}, '"method"'),
                         ({"variant": "promote"}, 'no field of a search is called "variant" here'), ({"maxTrials": 3, "maxTime": 3, "divisor": 1}, '"divisor"')):
        with open(os.path.join(d, "bad.json"), "w", encoding="utf-8") as f:
            json.dump({"hosts": "1x1/1G", "jobs": [{"name": "a", "user": "u", "runtime": 60, "search": search}]}, f)
        r = subprocess.run([SIM, os.path.join(d, "bad.json")], capture_output=True, text=True, check=False)
        assert r.returncode == 1 and says in r.stderr, (search, r.stderr)

with tempfile.TemporaryDirectory() as d:
    picture = os.path.join(d, "t.svg")
    sim(*CLUSTER, "--svg", picture, example("week.csv"))
    assert open(picture, encoding="utf-8").read().rstrip().endswith("</svg>")
    one, two = (sim("--hosts", "4x8/32G", "--generate", "50", "--seed", str(s)) for s in (1, 2))
    assert one != two and one == sim("--hosts", "4x8/32G", "--generate", "50", "--seed", "1")

for args, says in ((["--hosts", "8", "x.csv"], "8x64/512G/8"), (["--hosts", "1x1/1G", "/nonexistent.csv"], "No such file"),
                   ([example("week.csv")], "there are no hosts"), ([], "one trace is needed")):
    r = subprocess.run([SIM, *args], capture_output=True, text=True, check=False)
    assert r.returncode == 1 and says in r.stderr, (args, r.stderr)
print("primus-sim gives what is documented")
