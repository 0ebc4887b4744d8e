# SPDX-License-Identifier: Apache-2.0
"""What the ordinary tools show of a running job, as README says."""
import json
import re
import subprocess

import pytest
from sandbox import MASTERD

PATH = "/org/primus/Master1"


@pytest.fixture(scope="module")
def job(_cluster):
    """(number, {executor: node}) of a job of two roles that goes on."""
    config = {"name": "seen", "role": [
        {"roleName": "ps", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "echo parameters of $PRIMUS_JOB; exec sleep 1000"},
        {"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 16, "command": "echo gradients $PRIMUS_INDEX; exec sleep 1000",
         "scheduleStrategy": {"maxReplicasPerNode": 1}}]}
    number = _cluster.submit(config)
    _cluster.wait_for(lambda: all(e["state"] == "RUNNING" for e in _cluster.status(number)["executors"]), 20, "everybody running")
    yield number, {(e["role"], e["index"]): e["node"] for e in _cluster.status(number)["executors"]}
    _cluster.primusctl("kill", str(number))


def test_busctl_tree(cluster, job):
    tree = cluster.exec("n1", "busctl", "tree", "--list", "org.primus.Master1", user="ml").split()
    assert {f"{PATH}/job/{job[0]}", *(f"{PATH}/node/{node}" for node in cluster.nodes)} <= set(tree)
    assert "/org/primus/Agent1" in cluster.exec("n2", "busctl", "tree", "--list", "org.primus.Agent1").split()


@pytest.mark.parametrize("place, interface, members", [
    ("", "Manager", {".Submit": "method", ".ListJobs": "method", ".ListNodes": "method"}),
    ("/job/{job}", "Job", {".GetStatus": "method", ".ListExecutors": "method", ".Kill": "method", ".State": "property",
                           ".ExecutorChanged": "signal"}),
    ("/node/n2", "Node", {".State": "property"}),
])
def test_busctl_introspect(cluster, job, place, interface, members):
    out = cluster.exec("n1", "busctl", "introspect", "org.primus.Master1", PATH + place.format(job=job[0]), f"org.primus.Master1.{interface}", user="ml")
    rows = {fields[0]: fields[1] for fields in (line.split() for line in out.splitlines()) if len(fields) > 1}
    assert members.items() <= rows.items(), out


def test_busctl_properties(cluster, job):
    state = cluster.exec("n1", "busctl", "get-property", "org.primus.Master1", f"{PATH}/job/{job[0]}", "org.primus.Master1.Job", "State", user="ml")
    assert state == 's "RUNNING"\n'


def test_busctl_monitor(cluster):
    """Every change of an executor and of a job is a signal."""
    with cluster.process("n1", "busctl", "monitor", "--json=short", "--match", "sender=org.primus.Master1,type=signal",
                         stderr=subprocess.PIPE) as monitor:
        assert "Monitoring" in monitor.stderr.readline()
        number = cluster.submit({"name": "watched", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "true", "successPercent": 100}]})
        executor, job = [], []
        while True:
            message = json.loads(monitor.stdout.readline())
            data = message["payload"]["data"]
            if message["member"] == "JobRemoved" and data[0] == number:
                assert data == [number, f"{PATH}/job/{number}", "SUCCEEDED"]
                break
            if message.get("path") != f"{PATH}/job/{number}":
                continue
            if message["member"] == "ExecutorChanged":
                assert data[:3] == ["w", 0, 1]
                executor.append(data[3])
            elif message["member"] == "PropertiesChanged" and "State" in data[1]:
                job.append(data[1]["State"]["data"])
    assert executor == ["PLACED", "RUNNING", "SUCCEEDED"]
    assert job[0] == "STARTING" and job[-1] == "SUCCEEDED"


def test_systemctl_status(cluster, job):
    number, nodes = job
    node = nodes["worker", 0]
    out = cluster.exec(node, "systemctl", "status", "--no-pager", "-l", "primus.slice")
    assert f"primus-{number}.slice" in out and f"primus-{number}-worker-0.1.service" in out and "sleep 1000" in out
    out = cluster.exec(node, "systemctl", "status", "--no-pager", "-l", f"primus-{number}-worker-0.1.service")
    assert "active (running)" in out and "gradients 0" in out
    assert f"primus-{number}-worker-0.1.service" in cluster.exec(node, "systemctl", "list-units", "--plain", "--no-legend", "primus-*")


def test_systemd_cgls(cluster, job):
    number, nodes = job
    out = cluster.exec(nodes["worker", 1], "systemd-cgls", "--no-pager", "-u", "primus.slice")
    assert f"primus-{number}.slice" in out and f"primus-{number}-worker-1.1.service" in out and "sleep 1000" in out


def test_journalctl(cluster, job):
    number, nodes = job
    seen = {}
    for (role, index), node in nodes.items():
        out = cluster.exec(node, "journalctl", "-q", "--no-pager", "-o", "cat", f"PRIMUS_JOB={number}", f"PRIMUS_ROLE={role}", f"PRIMUS_INDEX={index}")
        seen[role, index] = out.splitlines()
    assert f"parameters of {number}" in seen["ps", 0]
    assert "gradients 0" in seen["worker", 0] and "gradients 1" in seen["worker", 1]
    assert "gradients 1" not in seen["worker", 0]
    out = cluster.exec("n1", "journalctl", "-q", "--no-pager", "-o", "json", "-u", MASTERD, f"PRIMUS_JOB={number}")
    assert out and all(json.loads(line)["PRIMUS_JOB"] == str(number) for line in out.splitlines())


def test_systemctl_stop_is_no_failure(cluster, job):
    """Last, as it changes the job: the executor is started again, at once, and nothing is counted."""
    number, nodes = job
    cluster.exec(nodes["worker", 1], "systemctl", "stop", f"primus-{number}-worker-1.1.service")
    again = cluster.wait_for(lambda: (e := cluster.executor(number, "worker", 1))["attempt"] == 2 and e["state"] == "RUNNING" and e, 20, "running again")
    assert re.fullmatch(rf"primus-{number}-worker-1\.2\.service", again["unit"])
    assert cluster.status(number)["state"] == "RUNNING"
