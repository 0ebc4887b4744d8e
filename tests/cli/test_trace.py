# SPDX-License-Identifier: Apache-2.0
"""trace: what is counted from call to call."""
import json

import pytest
from fakemaster import Job

SPEC = json.dumps({"name": "reads", "role": [{"roleName": "worker", "num": 1}]})


def answer(age, count):
    """age: usec since the trace began on the host."""
    return "ta(stttat)a{sv}", (age, [("read", count, count * 1000, count * 4096, [0] * 10 + [count])], {"missed": ("t", 0)})


@pytest.fixture
def job(master):
    j = master.jobs[1] = Job(master, 1, SPEC, {})
    j.everybody("RUNNING")
    j.state("RUNNING")
    return j


def traced(master, ctl, answers):
    left = iter(answers)
    master.do_Trace = lambda job, role, index, kind, options: answer(*next(left))
    r = ctl("trace", 1, "--io", "2s", "--json")
    return r.returncode, json.loads(r.stdout), r.stdout


def test_difference(master, job, ctl):
    status, _, text = traced(master, ctl, [(1, 100), (1_000_000, 150), (2_000_000, 190)])
    assert status == 0 and '"count":90' in text.replace(" ", ""), text


def test_agent_that_counts_anew(master, job, ctl):
    """It was started again between two calls: what it has counted since then says nothing about the time before."""
    status, _, text = traced(master, ctl, [(1, 100), (1_000_000, 150), (10, 3), (900_000, 40)])
    assert status == 1 and "started again" in text and '"count":50' in text.replace(" ", ""), text
