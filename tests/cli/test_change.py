# SPDX-License-Identifier: Apache-2.0
"""update, scale, role, restart, and the version that config shows."""
import json

import pytest
from fakemaster import Job

SPEC = '{"name": "j", "role": [{"roleName": "worker", "num": 2, "command": "x"}]}'


@pytest.fixture
def job(master):
    master.jobs[1] = Job(master, 1, SPEC, {})
    return master.jobs[1]


def test_update(job, ctl):
    r = ctl("update", 1, "priority=5", "worker.env.A=x=y", "env.B=")
    assert r.stdout == "Job 1 is at version 2: updated\n" and r.stderr == ""
    assert job.edits == [{"priority": "5", "worker.env.A": "x=y", "env.B": ""}]
    assert json.loads(ctl("update", 1, "queue=q", "--if-version", 2, "--json").stdout) == {"job": 1, "version": 3, "change": "updated"}
    for n in (1, 2, 4, 2**64 - 1):
        r = ctl("update", 1, "queue=r", f"--if-version={n}")
        assert r.returncode == 1 and "is at version 3" in r.stderr
    r = ctl("update", 1, "queue=r", "--if-version=0")
    assert r.returncode == 1 and "versions begin at 1" in r.stderr
    for wrong in [(1,), (1, "priority"), (1, "=5"), ("x", "a=b"), (1, "a=b", "--if-version=-1"), (1, "a=b", "--if-version="),
                  (1, "a=b", "--if-version=18446744073709551616")]:
        assert ctl("update", *wrong).returncode == 2, wrong
    assert len(job.edits) == 2


def test_scale(job, ctl):
    assert ctl("scale", 1, "worker=4", "ps=-1").stdout == "Job 1 is at version 2: scaled\n"
    assert job.edits == [{"worker": 4, "ps": -1}]  # what is too few is masterd's to say
    for wrong in [(1,), (1, "worker"), (1, "worker="), (1, "worker=x"), (1, "worker=4x"), (1, "worker=99999999999999999999")]:
        assert ctl("scale", *wrong).returncode == 2, wrong


def test_role(job, ctl, tmp_path):
    (tmp_path / "role.json").write_text('{"roleName": "eval"}')
    assert ctl("role", "add", 1, "role.json").stdout == "Job 1 is at version 2: role added\n"
    assert ctl("role", "add", 1, "-", input='{"roleName": "e2"}').stdout == "Job 1 is at version 3: role added\n"
    assert ctl("role", "remove", 1, "eval").stdout == "Job 1 is at version 4: role removed\n"
    assert job.edits == [{"roleName": "eval"}, {"roleName": "e2"}, "eval"]
    r = ctl("role", "add", 1, "missing.json")
    assert r.returncode == 1 and "missing.json" in r.stderr
    assert ctl("role", "paint", 1, "x").returncode == 2 and ctl("role", "add", 1).returncode == 2


def test_restart(job, ctl):
    assert ctl("restart", 1).stdout == "Job 1: 3 executors start again, 1 at a time\n"
    assert ctl("restart", 1, "worker", "--batch", 2).stdout == "Job 1: 3 executors start again, 2 at a time\n"
    assert ctl("restart", 1, "worker/1").stdout == "Job 1: 1 executor starts again, 1 at a time\n"
    assert job.edits == [("", -1, 0), ("worker", -1, 2), ("worker", 1, 0)]
    for wrong in [(1, "/1"), (1, "worker/"), (1, "worker/x"), (1, "worker", "--batch=0")]:
        assert ctl("restart", *wrong).returncode == 2, wrong


def test_version(job, ctl):
    job.version = 7
    r = ctl("config", 1)
    assert json.loads(r.stdout) == json.loads(SPEC) and r.stderr == "Job 1 is at version 7\n"
