# SPDX-License-Identifier: Apache-2.0
"""onPartition: stop holds on a host whose agent cannot see to it: primus-alone does. On a cluster of its own, where agents are stopped
for longer than a host may be silent."""
import time

import pytest
from sandbox import AGENTD, Cluster, cluster_name

LOST = 15
STARTER, ALONE = "primus-starter.service", "primus-alone.service"
LOOP = "trap '' TERM; while :; do sleep 1; done"


@pytest.fixture(scope="module")
def _pair(build):
    with Cluster(cluster_name(), 2, build=build, conf=["masterd.conf:Master.QuarantineScore=0", f"masterd.conf:Master.LostSec={LOST}"]) as cluster:
        yield cluster


def agent_back(pair):
    pair.run("n2", "systemctl", "unmask", "--runtime", AGENTD)
    for unit in (STARTER, AGENTD):
        pair.run("n2", "systemctl", "kill", "-s", "CONT", unit)
    pair.run("n2", "systemctl", "start", AGENTD)
    pair.heal_all()
    pair.wait_nodes(timeout=60)


@pytest.fixture
def pair(_pair):
    agent_back(_pair)
    yield _pair
    agent_back(_pair)


def units(cluster, node, job):
    return cluster.exec(node, "systemctl", "list-units", "--all", "--plain", "--no-legend", f"primus-{job}-*.service")


def started(cluster, on_partition):
    job = cluster.submit({"name": "alone", "onPartition": on_partition, "nodes": "n2", "stopGrace": "1s", "role": [
        {"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 16, "command": LOOP}]})
    cluster.wait_state(job, "RUNNING")
    return job


def freeze(cluster, unit):
    cluster.exec("n2", "systemctl", "kill", "--kill-who=main", "-s", "STOP", unit)


def stopped(pair):
    pair.exec("n2", "systemctl", "stop", AGENTD)


def masked(pair):
    pair.exec("n2", "systemctl", "mask", "--runtime", AGENTD)
    pair.kill9_now("n2", AGENTD)


def hangs(pair):
    """And so does whatever else there is of Primus."""
    for unit in (AGENTD, STARTER, ALONE):
        freeze(pair, unit)


def cut(pair):
    """With an agent that dies and one that hangs instead; and the other is killed."""
    pair.cut("n2")
    freeze(pair, AGENTD)
    pair.kill9_now("n2", ALONE)


@pytest.mark.parametrize("how", [stopped, masked, hangs, cut], ids=lambda how: how.__name__)
def test_without_the_agent(pair, how):
    job, others = started(pair, "stop"), [started(pair, "replace"), started(pair, "wait")]
    assert pair.exec("n2", "systemctl", "is-active", ALONE).strip() == "active"
    before = time.monotonic()
    how(pair)
    pair.wait_for(lambda: "running" not in units(pair, "n2", job), 30, "nothing left of those that have to stop")
    took = time.monotonic() - before
    print(f"measured: gone {took:.2f} s after the agent, where the host is LOST after {LOST} s")
    assert took < LOST, "before the host is LOST"
    assert all(units(pair, "n2", other).count("running") == 2 for other in others), "the others go on"
    agent_back(pair)
    pair.wait_for(lambda: pair.status(job)["state"] == "RUNNING" and pair.status(job)["executors"][0]["attempt"] == 2, 40, "another attempt")
    assert not [e for e in pair.events(job) if "record" in e["text"]], "their ends are known"
    assert not pair.events(job, "executor-failed")
    assert "executors with onPartition=stop are killed" in pair.exec("n2", "journalctl", "-u", ALONE, "-o", "cat")
    pair.kill(job, *others)


def test_nothing_to_do(pair):
    """Killed, it may find that all has ended before it is back."""
    shown = pair.exec("n2", "systemctl", "show", "-pNRestarts", ALONE)
    pair.exec("n2", "systemctl", "start", ALONE)
    pair.wait_for(lambda: pair.run("n2", "systemctl", "is-active", ALONE).stdout.strip() == "inactive", 10, "its end")
    assert pair.exec("n2", "systemctl", "show", "-pResult", ALONE).strip() == "Result=success"
    assert pair.exec("n2", "systemctl", "show", "-pNRestarts", ALONE) in (shown, "NRestarts=0\n")


def test_a_restart_is_no_absence(pair):
    """Nor is an upgrade, which is one too; nor is a host that has been away, whose agent is there again."""
    job = started(pair, "stop")
    pids = [pair.main_pid("n2", f"primus-{job}-worker-{i}.1.service") for i in range(2)]
    end = time.monotonic() + LOST + 2
    while time.monotonic() < end:
        pair.exec("n2", "systemctl", "restart", AGENTD)
        pair.wait_for(lambda: pair.kill9_now("n2", AGENTD), 10, "an agent to kill")
        pair.kill9_now("n2", ALONE)
        pair.wait_nodes()
    assert [pair.main_pid("n2", f"primus-{job}-worker-{i}.1.service") for i in range(2)] == pids
    pair.kill(job)
    pair.wait_job(job)
    pair.wait_for(lambda: not pair.exec("n2", "ls", "/run/primus/alone"), 10, "no name left")
    pair.wait_for(lambda: pair.run("n2", "systemctl", "is-active", ALONE).stdout.strip() == "inactive", 10, "its own end")
