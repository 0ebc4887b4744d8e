# SPDX-License-Identifier: Apache-2.0
"""Machines on the premises: put to sleep when nobody needs them, woken by a packet, and they are who they were."""
import json
import threading

import pytest
from sandbox import Cluster, cluster_name

DIRECTORY = "/etc/primus/providers/rack"
SETTINGS = """[Provider]
Max=1
IdleSec=3s
StartSec=60s
PowerOff=yes
[Shape box]
Cpus=1
Memory=256M
Labels=rack
"""
MAC = "02:00:00:00:00:42"
# What a network card does while its machine sleeps.
CARD = r"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.bind(("127.0.0.1", 40009))
mac = bytes.fromhex("020000000042")
while True:
    if b"\xff" * 6 + mac * 16 in s.recv(2000):
        print("woken", flush=True)
        break
"""


@pytest.fixture(scope="module")
def cluster(build):
    with Cluster(cluster_name(), 2, build=build, conf=["masterd.conf:Master.LostSec=6s"]) as one:
        yield one


def nodes(cluster):
    return {node["name"]: node["state"] for node in json.loads(cluster.exec("n1", "primusctl", "nodes", "--json"))}


def job(command, **where):
    return {"name": "far", "waitForHosts": True, "role": [{"roleName": "w", "num": 1, "vcores": 0.5, "memoryMb": 32, "command": command, **where}]}


def test_asleep_and_awake(cluster):
    setup = f"mkdir -p {DIRECTORY}; for v in list up down; do ln -sf /usr/lib/primus/providers/wol/$v {DIRECTORY}/; done; cat > {DIRECTORY}/provider.conf"
    cluster.exec("n1", "sh", "-c", setup, input=SETTINGS)
    cluster.exec("n1", "sh", "-c", f"cat > {DIRECTORY}/machines", input=f"n2 {MAC} box 127.0.0.1:40009\n")
    before = cluster.exec("n2", "sha256sum", "/etc/primus/node/node.key")
    working = cluster.submit(job("sleep 8", nodes=["n2"]))
    cluster.wait_state(working, "RUNNING")
    cluster.exec("n1", "systemctl", "reload", "primus-masterd")
    cluster.wait_for(lambda: "rack" in cluster.exec("n1", "primusctl", "provider", "hosts"), 20, "it is taken over")
    cluster.wait_state(working, "SUCCEEDED", timeout=20)  # and goes on with what it does
    cluster.wait_for(lambda: cluster.leader("n2") is None, 40, "it is switched off")
    cluster.wait_for(lambda: nodes(cluster)["n2"] == "POWERED_DOWN", 30, "it is known to be")
    # A person hears nothing of that: no strike, no hook, no alarm.
    assert "host-lost" not in cluster.exec("n1", "journalctl", "-q", "--no-pager", "-u", "primus-masterd")
    cluster.wait_for(lambda: cluster.exec("n1", "primusctl", "provider", "hosts", "--json").strip() == "[]", 40, "it is given back")
    woken = []
    card = threading.Thread(target=lambda: woken.append(cluster.run("n1", "timeout", "60", "python3", "-c", CARD).stdout))
    card.start()
    number = cluster.submit(job("hostname", constraints=["rack"]))
    card.join()
    assert woken == ["woken\n"]
    cluster.boot("n2")
    cluster.wait_state(number, "SUCCEEDED", timeout=60)
    assert cluster.exec("n2", "sha256sum", "/etc/primus/node/node.key") == before
    assert cluster.executor(number, role="w")["node"] == "n2"
