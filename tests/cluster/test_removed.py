# SPDX-License-Identifier: Apache-2.0
"""A host that is taken out of the cluster does not go on with what it was given to run."""
import pytest
from sandbox import AGENTD


@pytest.fixture
def pair(new_cluster):
    return new_cluster(2, conf=["masterd.conf:Master.QuarantineScore=0"])


def units(cluster, node):
    return cluster.exec(node, "systemctl", "list-units", "--all", "--plain", "--no-legend", "primus-*-worker-*.service")


def on_n2(cluster):
    job = cluster.submit({"name": "left", "nodes": "n2", "role": [
        {"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 16, "command": "trap '' TERM; while :; do sleep 1; done"}]})
    cluster.wait_state(job, "RUNNING")
    assert units(cluster, "n2").count("running") == 2


def test_removed(pair):
    on_n2(pair)
    pair.primusctl("node", "remove", "n2", user="root")
    pair.wait_for(lambda: "This host was removed from the cluster: its 2 executors are stopped" in pair.journal("n2", AGENTD), 20, "the agent to know")
    pair.wait_for(lambda: not units(pair, "n2"), 30, "nothing left of them")


def test_removed_while_away(pair):
    """The agent hears of it when it comes again, and not before."""
    on_n2(pair)
    pair.exec("n2", "systemctl", "stop", AGENTD)
    pair.primusctl("node", "remove", "n2", user="root")
    assert units(pair, "n2").count("running") == 2
    pair.exec("n2", "systemctl", "start", AGENTD)
    pair.wait_for(lambda: not units(pair, "n2"), 30, "nothing left of them")
