# SPDX-License-Identifier: Apache-2.0
"""How hosts are: a cable that is cut, a disk that is full, what the kernel complains of; told, shown, and holding the host where that is set."""
import json
import os
import shutil
import subprocess
import time

import pytest
from conftest import PATIENT
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

SLEEP = {"name": "c", "nodes": ["n2"], "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "sleep 300"}]}


@pytest.fixture(scope="module")
def hosts(build, tmp_path_factory):
    shared = tmp_path_factory.mktemp("fake")
    program = os.path.join(build, "tests/fake-master")
    with subprocess.Popen([program, shared, "n2", "17747"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        time.sleep(1)  # it has made identities
        running.kill()
    shutil.copy(program, shared / "fake-master")
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared}:/fake"], conf=[PATIENT, "agentd.conf:Agent.ConditionSettleSec=1", "agentd.conf:Agent.Interfaces=x*",
                                               "agentd.conf:Agent.Disks=/scratch", "agentd.conf:Agent.ClockKeptSec=1", "agentd.conf:Agent.DiskDrain=20%"]) as cluster:
        cluster.wait_nodes()
        cluster.exec("n2", "sh", "-c", "ip link add x0 type veth peer name y0 && ip link set x0 up && ip link set y0 up && mkdir -p /scratch && mount -t tmpfs -o size=16m none /scratch")
        yield cluster


def conditions(cluster, kind=None, node="n2"):
    shown = cluster.shown(node)
    return [c for c in shown["conditions"] if kind in (None, c["kind"]) and c["severity"] != "note"]


def held(cluster, node="n2"):
    return [h for h in cluster.shown(node)["holds"] if h["cause"] == "condition"]


def test_cable(hosts):
    """A link that was up and is not: shown, an event of the jobs there, and no hold by default."""
    job = hosts.submit(SLEEP, user="ml")
    hosts.wait_state(job, "RUNNING")
    hosts.exec("n2", "ip", "link", "set", "y0", "down")
    found = hosts.wait_for(lambda: conditions(hosts, "link"), 15, "the link is told")
    assert [(c["subject"], c["severity"]) for c in found] == [("x0", "warn")] and "no carrier" in found[0]["text"]
    assert "x0: no carrier" in hosts.primusctl("nodes", user="root") and "x0: no carrier" in hosts.primusctl("node", "show", "n2", user="root")
    assert hosts.node_states()["n2"] == "READY"
    assert any("x0: no carrier" in e["text"] for e in hosts.events(job, "host-condition"))
    # masterd is told again, and so is one that was away.
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes()
    hosts.wait_for(lambda: conditions(hosts, "link"), 15, "the link is told again")
    hosts.kill9("n2", AGENTD)
    hosts.wait_nodes()
    hosts.wait_for(lambda: conditions(hosts, "link"), 15, "the link is told by a new agent")
    hosts.exec("n2", "ip", "link", "set", "y0", "up")
    hosts.wait_for(lambda: not conditions(hosts, "link"), 20, "the link is well again")
    hosts.kill(job)


def test_disk(hosts):
    """Full: the host takes nothing new until there is room."""
    hosts.exec("n2", "sh", "-c", "head -c 15M /dev/zero > /scratch/fill")
    found = hosts.wait_for(lambda: conditions(hosts, "disk"), 25, "the disk is told")
    assert [(c["subject"], c["severity"]) for c in found] == [("/scratch", "drain")] and "full" in found[0]["text"]
    assert held(hosts)[0]["reason"].startswith("disk /scratch: ")
    assert hosts.node_states()["n2"] in ("DRAINING", "DRAINED")
    job = hosts.submit(SLEEP)
    hosts.wait_state(job, "QUEUED")
    # A master that is started again knows of the hold, and hears of the rest.
    hosts.kill9("n1", MASTERD)
    hosts.wait_for(lambda: held(hosts) and conditions(hosts, "disk"), 20, "it is held still")
    hosts.exec("n2", "rm", "/scratch/fill")
    hosts.wait_for(lambda: not held(hosts), 30, "it is released")
    hosts.wait_state(job, "RUNNING")
    hosts.kill(job)


def test_uncordon_waves_it_through(hosts):
    hosts.exec("n2", "sh", "-c", "head -c 15M /dev/zero > /scratch/fill")
    hosts.wait_for(lambda: held(hosts), 25, "it is held")
    hosts.primusctl("node", "uncordon", "n2", user="root")
    assert not held(hosts) and conditions(hosts, "disk")
    assert hosts.node_states()["n2"] == "READY"
    hosts.exec("n2", "rm", "/scratch/fill")
    hosts.wait_for(lambda: not conditions(hosts, "disk"), 30, "it is over")
    # Once it was over, it holds the host again.
    hosts.exec("n2", "sh", "-c", "head -c 15M /dev/zero > /scratch/fill")
    hosts.wait_for(lambda: held(hosts), 25, "it is held again")
    hosts.exec("n2", "rm", "/scratch/fill")
    hosts.wait_for(lambda: not held(hosts), 60, "it is released")


def test_words_are_not_the_kernels(hosts):
    """Only what journald marks as the kernel's counts (tests/vm has the kernel itself say it)."""
    line = "EXT4-fs error (device sdz9): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0"
    hosts.exec("n2", "sh", "-c", f"echo '{line}' | systemd-cat -t kernel -p err", user="ml")
    hosts.exec("n2", "sh", "-c", f"logger -t kernel -p kern.err '{line}' 2>/dev/null || true")
    assert hosts.run("n2", "sleep", "7").returncode == 0
    assert not conditions(hosts, "kernel")


def test_agents_view(hosts):
    """The same on the host itself, without a master."""
    hosts.exec("n2", "ip", "link", "set", "x0", "down")
    def seen():
        value = json.loads(hosts.exec("n2", "busctl", "get-property", "--json=short", "org.primus.Agent1", "/org/primus/Agent1", "org.primus.Agent1.Manager", "Conditions"))
        return [row for row in value["data"] if row[1] == "x0"]
    found = hosts.wait_for(seen, 15, "the agent sees it")
    assert found[0][0] == "link" and found[0][2] == "warn" and "ip link set x0 up" in found[0][3]
    hosts.exec("n2", "ip", "link", "set", "x0", "up")
    hosts.wait_for(lambda: not seen(), 60, "it is over")


def test_clock_that_nobody_keeps(hosts):
    """What timedated says of the kernel's clock is what the host says; a container, whose clock is its host's, says nothing."""
    marker = hosts.exec("n2", "cat", "/run/systemd/container")

    def told():
        conditions = hosts.primusctl_json("node", "show", "n2").get("conditions", [])
        return [c["text"] for c in conditions if c["kind"] == "clock" and c["subject"] == "kept"]
    assert told() == []
    try:
        hosts.exec("n2", "rm", "/run/systemd/container")
        hosts.exec("n2", "systemctl", "restart", AGENTD)
        hosts.wait_nodes()
        kept = hosts.exec("n2", "timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
        assert kept == "no", "it cannot ask the kernel in there"
        hosts.wait_for(told, 30, "the condition")
        assert told() == ["no time service keeps it ('timedatectl set-ntp yes')"]
    finally:
        hosts.exec("n2", "tee", "/run/systemd/container", input=marker)
        hosts.exec("n2", "rm", "-f", "/run/primus/agent/conditions")
        hosts.exec("n2", "systemctl", "restart", AGENTD)
        hosts.wait_nodes()


def test_clock(hosts):
    """masterd's clock comes with its answers to heartbeats. The last test here: n2 follows another master."""
    def seen():
        value = json.loads(hosts.exec("n2", "busctl", "get-property", "--json=short", "org.primus.Agent1", "/org/primus/Agent1", "org.primus.Agent1.Manager", "Conditions"))
        return [row for row in value["data"] if row[:2] == ["clock", "skew"]]
    assert not seen()
    with hosts.process("n2", "/fake/fake-master", "/fake", "n2", "17747", "10s", "1", "1h", stdin=subprocess.PIPE):
        hosts.exec("n2", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /run/primus/agent/link; cp /fake/ca.crt /fake/node.crt /fake/node.key /etc/primus/node/; chmod 600 /etc/primus/node/node.key; "
                                     f"mkdir -p /etc/primus/agentd.conf.d; printf '[Agent]\\nMaster=127.0.0.1:17747\\n' > /etc/primus/agentd.conf.d/99-test.conf; systemctl start {AGENTD}")
        found = hosts.wait_for(seen, 40, "the clock is told")
        assert found[0][2] == "drain" and "behind masterd's" in found[0][3]
        done = hosts.run("n2", "primusctl", "doctor")
        assert done.returncode == 1 and "clock skew: " in done.stdout
