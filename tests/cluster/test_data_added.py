# SPDX-License-Identifier: Apache-2.0
"""Sources of data that a running job is given, in each way of delivery, while daemons are killed."""
import collections
import json

import pytest
from data_jobs import all_lines, library, make_source, slowly
from sandbox import AGENTD, MASTERD

FILES = 150
LINES = 10
# A pause after each tenth line: there is time to add something.
STDIN = slowly(10, 0.05)
LIBRARY = library(10, 0.05)


class Sources:
    """Directories of lines that are all different: "a", which a job has from its start, and others for later."""
    def __init__(self, cluster, ledger):
        self.cluster, self.ledger, self.wanted = cluster, ledger, []

    def make(self, name):
        source, lines = make_source(self.ledger, name, FILES, LINES)
        self.wanted += lines
        return source

    def submit(self, command=STDIN, mode="stdin", **input):
        job = self.ledger.config(command, num=2, inputPolicy="STREAMING", **({"memoryMb": 64} if mode != "stdin" else {}))
        job["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": [self.make("a")]}}
        job["input"] = {"mode": mode, **({"pipeSize": "4K"} if mode == "stdin" else {}), **input}
        return self.cluster.submit(job)

    def add(self, number, source, *options, user="ml"):
        text = source if isinstance(source, str) else json.dumps(source)
        return self.cluster.run("n1", "primusctl", "data", "add", *options, str(number), "-", input=text, user=user)

    def come(self):
        return collections.Counter(line[0] for line in all_lines(self.ledger))

    def wait(self, name, n):
        self.cluster.wait_for(lambda: self.come()[name] >= n, 60, f"{n} lines of {name}")


@pytest.fixture
def data(quick, ledger):
    return Sources(quick, ledger)


@pytest.mark.parametrize("mode", ("stdin", "ring", "descriptor"))
def test_added_over_kills(quick, ledger, data, mode):
    command = STDIN
    if mode != "stdin":
        script = ledger.path.with_name(ledger.path.name + ".py")
        script.write_text(LIBRARY)
        script.chmod(0o644)
        command = f"python3 {ledger.inside}.py && say eof"
    number = data.submit(command, mode, **({"slots": 2, "slotSize": "64K"} if mode == "ring" else {}))
    data.wait("a", 50)
    added = data.add(number, data.make("b"))
    quick.kill9(quick.nodes[0], MASTERD)
    assert added.returncode == 0, added.stderr
    assert added.stdout == f"Job {number} is at version 2: data source b added\n"
    data.wait("a", 300)
    for node in quick.nodes[1:]:
        quick.kill9(node, AGENTD)
    assert data.add(number, data.make("c")).returncode == 0
    data.wait("b", 100)
    quick.kill9(quick.nodes[0], MASTERD)
    assert quick.wait_job(number) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(data.wanted)
    # Nobody but daemons was killed: what a trainer has, it has once.
    assert set(counts.values()) == {1}
    assert {e.attempt for e in ledger.entries("start")} == {1}
    status = quick.primusctl_json("status", str(number))["data"]
    assert [s["name"] for s in status["sources"]] == ["a", "b", "c"]
    assert status["done"] == status["tasks"] == 3 * FILES
    config = json.loads(quick.primusctl("config", str(number)))
    assert [i["name"] for i in config["inputManager"]["fileConfig"]["inputs"]] == ["a", "b", "c"]


def test_added_in_a_later_epoch(quick, data, ledger):
    number = data.submit(epochs=3, order="shuffle", seed=4)
    data.wait("a", FILES * LINES + 200)
    assert data.add(number, data.make("b")).returncode == 0
    assert quick.wait_job(number) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(data.wanted)
    assert {counts[line] for line in counts if line[0] == "a"} == {3}
    assert {counts[line] for line in counts if line[0] == "b"} == {2}


def test_who_may_add_what(quick, data, ledger):
    number = data.submit()
    data.wait("a", 20)
    b = data.make("b")
    data.wanted = [line for line in data.wanted if line[0] == "a"]

    def refused(source, sentence, *options, user="ml"):
        r = data.add(number, source, *options, user=user)
        assert r.returncode != 0 and sentence in r.stderr, (source, r.stderr)
        return r

    refused(b, "may change it", user="eve")
    refused(b, "not yet 2", "--if-version=2")
    refused("{", "1:")
    refused({"spec": b["spec"]}, "needs a name")
    refused({"name": "a", "spec": b["spec"]}, "has a source a already")
    refused({"name": "b", "spec": {"pathPattern": "b", "textInput": {}}}, "pathPattern")
    refused({"name": "b", "spec": {"pathPattern": "/b", "fixedInput": {"recordSize": 4}}}, "has another format than a")
    refused({"name": "b", "spec": {"pathPattern": "/b", "textInput": {}, "weight": 3}}, "weight")
    refused({"topic": "t", "consumerGroup": "g", "config": {"bootstrap.servers": "h:1"}}, "no inputManager.kafkaConfig")
    assert quick.primusctl_json("status", str(number))["data"]["sources"][-1]["name"] == "a"
    assert quick.wait_job(number) == 0
    refused(b, "cannot be changed any more")
    assert sorted(all_lines(ledger)) == sorted(data.wanted)
