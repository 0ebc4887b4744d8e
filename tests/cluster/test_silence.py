# SPDX-License-Identifier: Apache-2.0
"""A host that nothing is heard of, with the times that users have."""
import os
import re
import signal

import pytest
from sandbox import AGENTD, MASTERD


@pytest.mark.parametrize("before", ("a new master", "nobody was heard of"))
def test_silence_is_said_with_the_defaults(cluster, before):
    """Of a host that is not heard of nobody says that all is well, long before it is given up: also right behind a start of the master,
    and when for a moment it heard of none."""
    job = cluster.submit({"role": [{"roleName": "worker", "num": 3, "vcores": 0.1, "memoryMb": 16, "command": "sleep 1000", "scheduleStrategy": {"maxReplicasPerNode": 1}}]})
    cluster.wait_for(lambda: cluster.status(job)["state"] == "RUNNING", what="it runs")
    if before == "a new master":
        cluster.kill9("n1", MASTERD)
    else:
        pids = [cluster.main_pid(node, AGENTD) for node in cluster.nodes]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        cluster.wait_for(lambda: set(cluster.node_states().values()) == {"SUSPECT"}, 20, "nobody is heard of")
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    cluster.wait_nodes()
    cluster.wait_for(lambda: len(cluster.status(job).get("verdicts", [])) == 0, what="all is well")
    index = next(e["index"] for e in cluster.status(job)["executors"] if e["node"] == "n3")
    cluster.cut("n3")
    cluster.wait_for(lambda: cluster.node_states()["n3"] == "SUSPECT", 10, "n3 is not heard of")
    for command in ("status", "why"):
        said = cluster.primusctl(command, str(job))
        assert re.search(rf"silent for \d+s: worker/{index} on n3: nothing has been heard of n3 for \d+s; it is given up in 5\ds", said), said
    assert "silent" in next(line for line in cluster.primusctl("top", "--once", str(job)).splitlines() if f"worker/{index}" in line)
    silent = cluster.events(job, "host-silent")[-1]
    assert (silent["role"], silent["index"]) == ("worker", index) and "n3" in silent["text"]
    cluster.heal("n3")
    cluster.wait_nodes()
    assert cluster.events(job, "host-heard")[-1]["text"] == "n3 is heard again"
    assert "nothing is seen that ails it" in cluster.primusctl("why", str(job))
    cluster.kill(job)
