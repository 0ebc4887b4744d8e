# SPDX-License-Identifier: Apache-2.0
"""What primus.client asks of primusctl, and what becomes of its answers. The real one is asked in tests/cluster/test_data_replaced.py."""
import json
import pathlib
import subprocess
import sys

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

# The package loads the library, here into the tests' own process: without a sanitizer, as for what loads torch.
LOADS_TORCH = True
PROGRAM = """#!/usr/bin/python3
import json, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "asked").write_text(json.dumps({"argv": sys.argv[1:], "input": sys.stdin.read()}))
answer = json.loads((here / "answer").read_text())
sys.stdout.write(answer.get("out", ""))
sys.stderr.write(answer.get("err", ""))
sys.exit(answer.get("status", 0))
"""


@pytest.fixture
def client(environment, monkeypatch):
    monkeypatch.setenv("PRIMUS_LIBRARY", environment["PRIMUS_LIBRARY"])
    import primus.client
    return primus.client


@pytest.fixture
def fake(tmp_path):
    program = tmp_path / "primusctl"
    program.write_text(PROGRAM)
    program.chmod(0o755)

    def answer(out=None, **more):
        (tmp_path / "answer").write_text(json.dumps({**({"out": json.dumps(out)} if out is not None else {}), **more}))
        return str(program)
    answer.asked = lambda: json.loads((tmp_path / "asked").read_text())
    return answer


@pytest.mark.parametrize("call, out, argv, given, result", [
    (lambda c: c.submit({"command": "x"}), {"job": 7}, ["submit", "--", "-"], {"command": "x"}, 7),
    (lambda c: c.status(7), {"job": 7, "state": "RUNNING"}, ["status", "--", "7"], None, {"job": 7, "state": "RUNNING"}),
    (lambda c: c.jobs(ended=True), [{"job": 7}], ["list", "--all", "--"], None, [{"job": 7}]),
    (lambda c: c.scale(7, worker=4, version=2), {"version": 3}, ["scale", "--if-version=2", "--", "7", "worker=4"], None, 3),
    (lambda c: c.sources(7), {"data": {"sources": [{"name": "a"}]}}, ["status", "--", "7"], None, [{"name": "a"}]),
    (lambda c: c.sources(7), {"data": None}, ["status", "--", "7"], None, []),
    (lambda c: c.add_source(7, {"name": "b"}), {"version": 2}, ["data", "--", "add", "7", "-"], {"name": "b"}, 2),
    (lambda c: c.replace_sources(7, [{"name": "b"}], version=4), {"version": 5, "added": 1, "removed": 1},
     ["data", "--if-version=4", "--", "replace", "7", "-"], [{"name": "b"}], {"version": 5, "added": 1, "removed": 1}),
    (lambda c: c.pause_source(7, "a", "--failed"), None, ["data", "--", "pause", "7", "a", "--failed"], None, None),
    (lambda c: c.weigh_source(7, "a", 3), None, ["data", "--", "weight", "7", "a", "3"], None, None),
    (lambda c: c.kill(7), None, ["kill", "--", "7"], None, None),
])
def test_calls(client, fake, call, out, argv, given, result):
    assert call(client.Client("far", program=fake(out))) == result
    asked = fake.asked()
    assert asked["argv"] == ["-H", "far", "--json", *argv]
    assert (json.loads(asked["input"]) if asked["input"] else None) == given


def test_wait(client, fake):
    assert [client.Client(program=fake(status=status)).wait(7) for status in (0, 1, 3, 42)] == [0, 1, 3, 42]
    assert fake.asked()["argv"] == ["--json", "wait", "--", "7"]


def test_refusals(client, fake):
    def line(name, message):
        return json.dumps({"error": {"name": name, "message": message}}) + "\n"
    note = json.dumps({"note": {"message": "by the way"}}) + "\n"
    with pytest.raises(client.Error, match="there is no job 7") as raised:
        client.Client(program=fake(err=note + line("org.primus.Error.NoSuchJob", "there is no job 7"), status=1)).status(7)
    assert raised.value.name == "org.primus.Error.NoSuchJob"
    with pytest.raises(client.Error, match="there is no job 7"):
        client.Client(program=fake(err=line("org.primus.Error.NoSuchJob", "there is no job 7"), status=1)).wait(7)
    with pytest.raises(client.Conflict, match="Job 7 is at version 3"):
        client.Client(program=fake(err=line("org.primus.Error.Conflict", "Job 7 is at version 3"), status=1)).add_source(7, {}, version=2)
    with pytest.raises(client.Error, match="ssh: no route") as raised:
        client.Client("far", program=fake(err="ssh: no route\n", status=255)).kill(7)
    assert raised.value.name == ""
    with pytest.raises(client.Error, match="ended with status 9"):
        client.Client(program=fake(status=9)).kill(7)
    with pytest.raises(FileNotFoundError):
        client.Client(program="/nowhere/primusctl").kill(7)
