# SPDX-License-Identifier: Apache-2.0
"""The sources of a running job's data, replaced as a whole by compare and set."""
import collections
import json

import pytest
from data_jobs import all_lines, make_source, slowly
from sandbox import MASTERD

FILES, LINES = 60, 10


@pytest.fixture
def fed(quick, ledger):
    """A job that reads a and b, and the sources a to d with their lines."""
    sources, lines = {}, {}
    for name in "abcd":
        sources[name], lines[name] = make_source(ledger, name, FILES, LINES)
    job = ledger.config(slowly(10, 0.05), num=2, inputPolicy="STREAMING")
    job["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": [sources["a"], sources["b"]]}}
    job["input"] = {"pipeSize": "4K"}
    number = quick.submit(job)
    quick.wait_for(lambda: len(all_lines(ledger)) > 50, 60, "the first lines")
    yield number, sources, lines
    quick.run("n1", "primusctl", "kill", str(number), user="ml")


def replace(quick, number, sources, *options, user="ml"):
    return quick.run("n1", "primusctl", "data", "replace", *options, str(number), "-", input=json.dumps(sources), user=user)


def test_replaced_over_a_kill(quick, ledger, fed):
    """b goes, c and d come, a stays; nothing comes twice, and what comes of b is what executors had of it."""
    number, sources, lines = fed
    done = replace(quick, number, [sources["a"], sources["d"], sources["c"]], "--if-version", "1")
    quick.kill9(quick.nodes[0], MASTERD)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Job {number} is at version 2: 2 data sources added, 1 removed\n"
    status = {s["name"]: s for s in quick.primusctl_json("status", str(number))["data"]["sources"]}
    assert list(status) == ["a", "b", "d", "c"] and [s["removed"] for s in status.values()] == [False, True, False, False]
    assert quick.wait_job(number) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts.values()) == {1}
    assert {line for line in counts if line[0] != "b"} == {line for name in "acd" for line in lines[name]}
    assert sum(line[0] == "b" for line in counts) < FILES * LINES
    # The same once more is too late, and says so.
    late = replace(quick, number, [sources["a"]])
    assert late.returncode == 1 and f"Job {number} is over" in late.stderr


def test_the_same_changes_nothing(quick, fed):
    number, sources, _ = fed
    assert replace(quick, number, [sources["b"], sources["a"]]).stdout == f"Job {number} is at version 1: 0 data sources added, 0 removed\n"
    quick.primusctl("data", "pause", str(number), "b")
    weighted = [{**sources[name], "spec": {**sources[name]["spec"], "weight": weight}} for name, weight in (("a", 1), ("b", 4))]
    assert replace(quick, number, weighted).returncode == 0
    status = {s["name"]: s for s in quick.primusctl_json("status", str(number))["data"]["sources"]}
    assert status["b"]["paused"] and status["b"]["weight"] == 4 and status["a"]["weight"] == 1


PYTHON = """
import json, sys
from primus.client import Client, Conflict, Error
cluster, (number, a, b, c) = Client(), json.load(sys.stdin)
assert [s["name"] for s in cluster.sources(number)] == ["a", "b"]
version = cluster.version(number)
cluster.pause_source(number, "b")
cluster.weigh_source(number, "a", 2)
assert [(s["paused"], s["weight"]) for s in cluster.sources(number)] == [(False, 2), (True, 1)]
cluster.resume_source(number, "b")
done = cluster.replace_sources(number, [a, c], version=version)
assert done == {"version": version + 1, "added": 1, "removed": 1}, done
for call in (lambda: cluster.replace_sources(number, [a], version=version), lambda: cluster.add_source(number, b, version=version)):
    try:
        call()
        sys.exit("no conflict")
    except Conflict as e:
        print(e)
try:
    cluster.pause_source(number, "--failed")
    sys.exit("taken")
except Error as e:
    print(e)
assert cluster.wait(number) == 0
other = cluster.submit({"command": "sleep 60"})
assert other in [j["job"] for j in cluster.jobs()]
cluster.kill(other)
assert cluster.wait(other) == 3
"""


def test_from_python(quick, fed):
    number, sources, _ = fed
    done = quick.run("n1", "python3", "-c", PYTHON, input=json.dumps([number, sources["a"], sources["b"], sources["c"]]), user="ml")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"Job {number} is at version 2, it was changed since version 1") == 2
    assert f"Job {number} has no data source '--failed'" in done.stdout


def test_refused_as_a_whole(quick, fed):
    """Where one of them is wrong, nothing has changed."""
    number, sources, _ = fed
    elsewhere = {**sources["a"], "spec": {**sources["a"]["spec"], "pathPattern": "/elsewhere"}}
    for wanted, options, user, words in (
            ([sources["c"], elsewhere], (), "ml", "the source a is there, and is another one than that"),
            ([sources["c"], {"name": "x", "spec": {"pathPattern": "x"}}], (), "ml", "inputManager.fileConfig.inputs[1].spec.pathPattern"),
            ([], (), "ml", "an array of sources is expected"),
            ([sources["c"]], ("--if-version", "7"), "ml", f"Job {number} is at version 1, not yet 7"),
            ([sources["c"]], (), "eve", "is ml's: only ml and administrators"),
    ):
        done = replace(quick, number, wanted, *options, user=user)
        assert done.returncode != 0 and words in done.stderr, done
    status = quick.primusctl_json("status", str(number))["data"]["sources"]
    assert [(s["name"], s["removed"]) for s in status] == [("a", False), ("b", False)]
    # What was removed does not come back under its name.
    assert replace(quick, number, [sources["a"]]).returncode == 0
    done = replace(quick, number, [sources["a"], sources["b"]])
    assert done.returncode == 1 and "the source b was removed, and that is for ever: give the new one another name" in done.stderr
