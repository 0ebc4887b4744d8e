# SPDX-License-Identifier: Apache-2.0
"""Data sources of a running job that are paused, resumed, re-weighted and removed, while masterd is killed."""
import collections

import pytest
from data_jobs import all_lines, make_source, slowly
from sandbox import MASTERD

FILES = 500
LINES = 10
# A pause after each tenth line: a task of each source takes 50 ms.
READER = slowly(10, 0.05)


@pytest.fixture
def fed_twice(quick, ledger):
    """A job with the sources "a" and "b": (its number, the lines of both)."""
    inputs, lines = zip(*(make_source(ledger, name, FILES, LINES) for name in "ab"))
    job = ledger.config(READER, num=2, inputPolicy="STREAMING")
    job["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": list(inputs)}}
    job["input"] = {"pipeSize": "4K"}
    number = quick.submit(job)
    yield number, [line for of in lines for line in of]
    quick.run("n1", "primusctl", "kill", str(number), user="ml")


def come(ledger):
    """How many lines of each source have come."""
    return collections.Counter(line[0] for line in all_lines(ledger))


def sources(quick, number):
    return {s["name"]: s for s in quick.primusctl_json("status", str(number))["data"]["sources"]}


def more(quick, ledger, source, n):
    """Waits for so many further lines of the source; returns what has come then."""
    there = come(ledger)[source]
    quick.wait_for(lambda: come(ledger)[source] >= there + n, 60, f"{n} lines of {source}")
    return come(ledger)


def finished(quick, ledger, number):
    """Waits until nobody has any of "b"; returns how many lines of it have come."""
    quick.wait_for(lambda: sources(quick, number)["b"]["leased"] == 0, 60, "what executors had of b to be read")
    return more(quick, ledger, "a", 200)["b"]  # what was in the pipes has come before


def test_paused_weighted_and_resumed_over_kills(quick, ledger, fed_twice):
    number, wanted = fed_twice
    more(quick, ledger, "a", 20)
    assert not sources(quick, number)["a"]["paused"] and sources(quick, number)["b"]["weight"] is None
    # Files of one batch come source by source: with weights they take turns at once.
    quick.primusctl("data", "weight", str(number), "b", "3")
    assert come(ledger)["b"] == 0
    before = more(quick, ledger, "b", 300)
    after = more(quick, ledger, "b", 600)
    assert 0.2 < (after["a"] - before["a"]) / (after["b"] - before["b"]) < 0.5, (before, after)
    quick.primusctl("data", "pause", str(number), "b")
    quiet = finished(quick, ledger, number)
    quick.kill9(quick.nodes[0], MASTERD)
    assert quiet < FILES * LINES
    more(quick, ledger, "a", 300)
    assert come(ledger)["b"] == quiet
    now = sources(quick, number)
    assert now["b"]["paused"] and now["b"]["weight"] == 3 and now["a"]["weight"] == 1 and not now["a"]["paused"]
    assert [e["text"] for e in quick.events(job=number, kind="source-paused")] == ["data source 'b' is paused: no more of it is given out"]
    # All of the other source is through: who waits is told why, and the job does not end.
    quick.wait_for(lambda: come(ledger)["a"] == FILES * LINES, 120, "all of a")
    quick.wait_for(lambda: "primusctl data resume" in quick.primusctl("why", str(number)), 30, "a reason")
    assert quick.status(number)["state"] == "RUNNING" and not ledger.entries("eof")
    quick.kill9(quick.nodes[0], MASTERD)
    quick.primusctl("data", "resume", str(number), "b")
    assert quick.wait_job(number) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted) and set(counts.values()) == {1}


def test_removed(quick, ledger, fed_twice):
    number, _ = fed_twice
    more(quick, ledger, "a", 20)
    quick.primusctl("data", "weight", str(number), "b", "1")
    more(quick, ledger, "b", 50)
    quick.primusctl("data", "remove", str(number), "b")
    quiet = finished(quick, ledger, number)
    quick.kill9(quick.nodes[0], MASTERD)
    refused = quick.run("n1", "primusctl", "data", "resume", str(number), "b", user="ml")
    assert refused.returncode == 1 and "was removed" in refused.stderr
    assert sources(quick, number)["b"]["removed"]
    assert quick.wait_job(number) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts.values()) == {1} and come(ledger) == {"a": FILES * LINES, "b": quiet}
    data = quick.primusctl_json("status", str(number))["data"]
    assert data["done"] == data["tasks"] == FILES + quiet // LINES and data["bytes"] == data["acked"]
    again = quick.run("n1", "primusctl", "data", "pause", str(number), "a", user="ml")
    assert again.returncode == 1 and "is over" in again.stderr


def test_refused(quick, ledger, fed_twice):
    number, _ = fed_twice
    eve = quick.run("n1", "primusctl", "data", "pause", str(number), "a", user="eve")
    assert eve.returncode != 0
    none = quick.run("n1", "primusctl", "data", "pause", str(number), "c", user="ml")
    assert none.returncode == 1 and f"Job {number} has no data source 'c'" in none.stderr
    assert not sources(quick, number)["a"]["paused"]


def test_two_of_one_name(quick, ledger):
    """Which is meant cannot be told, so nothing happens to either."""
    inputs = [make_source(ledger, name, 2, LINES)[0] for name in "ab"]
    job = ledger.config(READER, inputPolicy="STREAMING")
    job["inputManager"] = {"fileConfig": {"inputs": [{**source, "name": "twin"} for source in inputs]}}
    number = quick.submit(job)
    done = quick.run("n1", "primusctl", "data", "pause", str(number), "twin", user="ml")
    assert done.returncode == 1 and "are called 'twin'" in done.stderr, done
    assert [s["paused"] for s in quick.status(number)["data"]["sources"]] == [False, False]
    quick.kill(number)
