# SPDX-License-Identifier: Apache-2.0
"""primusctl doctor on a host, whole and broken."""
import json

import pytest
from conftest import PATIENT
from sandbox import AGENTD, Cluster, cluster_name


@pytest.fixture(scope="module")
def hosts(build):
    with Cluster(cluster_name(), 1, build=build, conf=[PATIENT]) as cluster:
        cluster.wait_nodes()
        yield cluster


def doctor(hosts, user="root"):
    done = hosts.run("n1", "primusctl", "doctor", "--json", user=user)
    rows = json.loads(done.stdout)
    worst = {}
    for row in rows:
        order = ["ok", "unknown", "warn", "fail"]
        if row["check"] not in worst or order.index(row["result"]) > order.index(worst[row["check"]]["result"]):
            worst[row["check"]] = row
    assert done.returncode == any(row["result"] == "fail" for row in rows)
    return worst


@pytest.mark.parametrize("user", ["root", "ml"])
def test_whole(hosts, user):
    found = doctor(hosts, user)
    assert found["systemd"]["result"] == "ok" and found["systemd"]["text"].startswith("version 252")
    # These hosts have no controllers, and that is said.
    assert found["cgroup"]["result"] == "fail" and "unified_cgroup_hierarchy" in found["cgroup"]["help"]
    assert found["agent"]["result"] == "ok" and "connected to masterd" in found["agent"]["text"]
    assert found["master"]["result"] == "ok" and found["ports"]["result"] == "ok"
    if user == "root":
        assert found["certificate"]["result"] == "ok"
    else:
        assert found["certificate"]["result"] in ("ok", "unknown")
    assert "-> " in hosts.run("n1", "primusctl", "doctor", user=user).stdout


def test_no_agent(hosts):
    hosts.exec("n1", "systemctl", "stop", AGENTD)
    try:
        found = doctor(hosts)
        assert found["agent"]["result"] == "fail" and "primus-agentd does not run" in found["agent"]["text"]
        assert "systemctl enable --now primus-agentd" in found["agent"]["help"] and found["bpf"]["result"] == "unknown"
    finally:
        hosts.exec("n1", "systemctl", "start", AGENTD)
        hosts.wait_nodes()


def test_no_master(hosts):
    hosts.exec("n1", "systemctl", "stop", "primus-masterd")
    try:
        found = doctor(hosts)
        assert found["master"]["result"] == "fail" and "7747" in found["master"]["text"]
        hosts.wait_for(lambda: doctor(hosts)["agent"]["result"] == "fail", 10, "the agent is not connected")
        assert "is not connected to masterd" in doctor(hosts)["agent"]["text"]
    finally:
        hosts.exec("n1", "systemctl", "start", "primus-masterd")
        hosts.wait_nodes()


def test_names(hosts):
    hosts.exec("n1", "sh", "-c", "cp /etc/hosts /tmp/hosts; grep -v n1 /tmp/hosts > /etc/hosts; echo 127.0.1.1 n1 >> /etc/hosts")
    try:
        found = doctor(hosts)["dns"]
        assert found["result"] == "warn" and "loopback" in found["text"]
    finally:
        hosts.exec("n1", "cp", "/tmp/hosts", "/etc/hosts")
