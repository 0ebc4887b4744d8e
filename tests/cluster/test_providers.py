# SPDX-License-Identifier: Apache-2.0
"""Hosts by demand: they are made for who waits, work, and are given back; what a provider says wrongly harms nobody."""
import json
import time

import pytest
from cloud import Cloud
from sandbox import MASTERD

SETTINGS = """[Provider]
Max=2
IdleSec=4s
StartSec=60s
Master=n1
[Shape small]
Cpus=1
Memory=256M
Labels=made
CostPerHour=0.25
"""
JOB = {"name": "wanting", "role": [{"roleName": "worker", "num": 1, "vcores": 0.5, "memoryMb": 32, "constraints": ["made"], "command": "sleep 3"}]}


def job(n=1, command="sleep 3", **more):
    role = {**JOB["role"][0], "num": n, "command": command, **more}
    return {"name": "wanting", "waitForHosts": True, "role": [role]}


@pytest.fixture
def cloud(cluster):
    one = Cloud(cluster, ["n2", "n3"], SETTINGS)
    try:
        yield one
    finally:
        one.close(["n2", "n3"])
        cluster.wait_nodes()


def why(cluster, number):
    return cluster.exec("n1", "primusctl", "why", str(number))


def test_from_nothing_and_back(cluster, cloud):
    """Six jobs that none of the hosts would do for: two hosts come, work, and leave."""
    time.sleep(1); print(cluster.run("n1", "journalctl", "--no-pager", "-u", "primus-provider@*").stdout)
    jobs = [cluster.submit(job()) for _ in range(6)]
    said = cluster.wait_for(lambda: [text for text in [why(cluster, jobs[0])] if "waits for cloud-1" in text], 20, "why names the host")
    assert "of 1min" in said[0], said
    for number in jobs:
        cluster.wait_state(number, "SUCCEEDED", timeout=120)
    assert {one["shape"] for one in cloud.instances()} == {"small"}
    cluster.wait_for(lambda: cloud.states() == {}, 60, "the hosts are given back")
    assert cloud.made() == {}
    nodes = json.loads(cluster.exec("n1", "primusctl", "nodes", "--json"))
    assert [node["name"] for node in nodes] == ["n1"]
    ups = [line for line in cloud.log() if line.startswith("up ")]
    assert len(set(ups)) == len(ups) == 2, ups
