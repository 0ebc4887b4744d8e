# SPDX-License-Identifier: Apache-2.0
"""An end without a record, because primus-exit was killed (it runs within the unit's own limits): systemd's word stands. On the cluster
`cluster`, whose hosts get a drop-in that kills what primus-exit would be."""
import pytest
from sandbox import AGENTD

DROP_IN = "/run/systemd/system/primus-.service.d/60-killed.conf"


@pytest.fixture
def killed(cluster):
    """What systemd starts in the place of primus-exit dies as it would for want of memory."""
    text = "[Service]\nExecStopPost=\nExecStopPost=-+/bin/sh -c 'kill -KILL $$$$'\n"
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-c", f"mkdir -p {DROP_IN.rsplit('/', 1)[0]} && cat > {DROP_IN} && systemctl daemon-reload", input=text)
    yield cluster
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-c", f"rm {DROP_IN}; systemctl daemon-reload")
        cluster.run(node, "systemctl", "start", AGENTD)
    cluster.wait_nodes()


def submit(cluster, command):
    return cluster.submit({"name": "no-record", "nodes": "n2", "role": [
        {"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": command, "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}}]})


def unrecorded(cluster, job):
    assert "left no exit record" in cluster.exec("n2", "journalctl", "-u", AGENTD, "-o", "cat", "-g", f"primus-{job}-")
    return [e["text"] for e in cluster.events(job) if "record" in e["text"]]


ENDS = {"exit 0": ("SUCCEEDED", 0, 0), "exit 3": ("FAILED", 3, 0), "kill -KILL $$": ("FAILED", 0, 9), "kill -TERM $$": ("SUCCEEDED", 0, 0)}


@pytest.mark.parametrize("command", ["exit 0", "exit 3", "kill -KILL $$"])
@pytest.mark.parametrize("agent", ["there", "stopped"])
def test_systemds_word(killed, command, agent):
    state, status, signal = ENDS[command]
    job = submit(killed, f"sleep 2; {command}")
    killed.wait_state(job, "RUNNING")
    if agent == "stopped":
        killed.exec("n2", "systemctl", "stop", AGENTD)
        killed.wait_for(lambda: f"primus-{job}-" not in killed.exec("n2", "systemctl", "list-units", "--all", "--plain", "--no-legend"), 20, "its end")
        killed.exec("n2", "systemctl", "start", AGENTD)
    killed.wait_job(job)
    executor = killed.status(job)["executors"][0]
    print(executor)
    assert killed.status(job)["state"] == state
    assert unrecorded(killed, job) == []
    assert killed.status(job)["executors"][0]["attempt"] == 1
    killed.wait_for(lambda: not killed.exec("n2", "ls", "/run/primus/x"), 10, "nothing of it left")
