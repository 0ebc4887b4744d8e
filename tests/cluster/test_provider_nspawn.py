# SPDX-License-Identifier: Apache-2.0
"""The provider nspawn: hosts that are made, join, work, are drained and go; by hand, and by demand."""
import json

import nested
import pytest
from sandbox import Cluster, cluster_name

PROVIDER = "lab"


@pytest.fixture(scope="module")
def cluster(request):
    name = cluster_name()
    with Cluster(name, 1, binds=nested.binds(name), build=request.config.getoption("--build")) as one:
        nested.prepare(one, PROVIDER)
        yield one


def token_of(number):
    return f"{nested.CLUSTER_ID[:8]}-{number:016x}"


def unit_of(number):
    return f"primus-host-{PROVIDER}-{token_of(number)}.service"


def ok(cluster, what, request):
    status, lines, errors = nested.verb(cluster, PROVIDER, what, request)
    assert status == 0, errors
    return lines


def up(cluster, number):
    name = f"{PROVIDER}-{number}"
    secret = cluster.exec("n1", "primusctl", "token", "create", "--name", name).strip()
    request = {"token": token_of(number), "node": name, "shape": "small", "join": f"{nested.MASTER} {name} {secret}", "labels": [], "deadline": 0}
    assert ok(cluster, "up", request) == [{"id": unit_of(number)}]
    return request


def down(cluster, number, **more):
    return ok(cluster, "down", {"token": token_of(number), "id": unit_of(number), "node": f"{PROVIDER}-{number}", **more})


def listed(cluster):
    return {row["token"]: (row["state"], row.get("node")) for row in ok(cluster, "list", {"cluster": nested.CLUSTER_ID})}


def nothing_is_left(cluster):
    assert listed(cluster) == {}
    assert cluster.exec("n1", "ls", "-A", f"{nested.STATE}/{PROVIDER}") == ""
    assert cluster.exec("n1", "systemctl", "list-units", "--all", "--no-legend", "primus-host-*") == ""
    assert "primus1." not in cluster.exec("n1", "journalctl", "--no-pager", "-o", "export")


def ready(cluster, *numbers):
    cluster.wait_nodes(nodes=[f"{PROVIDER}-{n}" for n in numbers], timeout=40)


def test_a_life(cluster):
    assert listed(cluster) == {}
    request = up(cluster, 1)
    ready(cluster, 1)
    assert listed(cluster) == {token_of(1): ("running", "lab-1")}
    # Once more: the same one, though its secret is spent.
    assert ok(cluster, "up", request) == [{"id": unit_of(1)}]
    assert cluster.exec("n1", "ls", "-A", f"{nested.STATE}/{PROVIDER}") == ""
    assert cluster.primusctl("run", "--hosts=lab-1", "--", "hostname").split()[-1] == "lab-1"
    cluster.exec("n1", "primusctl", "node", "drain", "lab-1", "--wait")
    assert down(cluster, 1) == down(cluster, 1) == down(cluster, 1, id="") == []
    nothing_is_left(cluster)
    cluster.exec("n1", "primusctl", "node", "remove", "lab-1")


def test_two_that_work_together(cluster):
    for number in (2, 3):
        up(cluster, number)
    ready(cluster, 2, 3)
    done = cluster.primusctl("run", "--hosts=lab-2,lab-3", "--per-host=1", "--", "sh", "-c", "echo $(hostname) $MASTER_ADDR")
    rows = sorted(line.split()[-2:] for line in done.splitlines())
    assert [row[0] for row in rows] == ["lab-2", "lab-3"] and rows[0][1] == rows[1][1]
    for number in (2, 3):
        cluster.exec("n1", "primusctl", "node", "drain", f"lab-{number}", "--wait")
        down(cluster, number)
        cluster.exec("n1", "primusctl", "node", "remove", f"lab-{number}")
    nothing_is_left(cluster)


def test_one_that_dies(cluster):
    up(cluster, 4)
    ready(cluster, 4)
    cluster.exec("n1", "systemctl", "kill", "--signal=KILL", unit_of(4))
    cluster.wait_for(lambda: listed(cluster) == {token_of(4): ("failed", "lab-4")}, 20, "it has failed")
    down(cluster, 4)
    nothing_is_left(cluster)


def test_one_that_switches_itself_off(cluster):
    """As after a drain with --then=poweroff."""
    up(cluster, 5)
    ready(cluster, 5)
    cluster.exec("n1", "primusctl", "node", "drain", "lab-5", "--then=poweroff")
    cluster.wait_for(lambda: listed(cluster) == {}, 30, "it is gone")
    down(cluster, 5)
    nothing_is_left(cluster)


def test_one_that_cannot_join(cluster):
    """Its credential is none: primus-join gives up, and the host is there all the same, until it is put away."""
    request = {"token": token_of(6), "node": "lab-6", "shape": "small", "join": f"{nested.MASTER} lab-6 primus1.none", "labels": [], "deadline": 0}
    assert ok(cluster, "up", request) == [{"id": unit_of(6)}]
    cluster.wait_for(lambda: "Failed to start primus-join.service" in cluster.exec("n1", "journalctl", "--no-pager", "-u", unit_of(6)), 20, "it has tried")
    assert listed(cluster) == {token_of(6): ("running", "lab-6")}
    down(cluster, 6)
    assert listed(cluster) == {}


def test_a_tree_that_is_none(cluster):
    """It does not boot: a failure of `up`, and nothing is left of it."""
    cluster.exec("n1", "sh", "-c", f"mkdir -p /srv/empty/usr; sed -i s,^Tree=.*,Tree=/srv/empty, {nested.ETC}/{PROVIDER}/nspawn.conf")
    request = {"token": token_of(7), "node": "lab-7", "shape": "small", "join": "n1 lab-7 primus1.none", "labels": [], "deadline": 0}
    status, lines, errors = nested.verb(cluster, PROVIDER, "up", request)
    assert status == 1 and lines == [] and "systemd-run" in errors
    assert cluster.exec("n1", "ls", "-A", f"{nested.STATE}/{PROVIDER}") == "" and listed(cluster) == {}
    down(cluster, 7)


BY_DEMAND = f"""[Provider]
Max=2
IdleSec=5s
StartSec=60s
Master={nested.MASTER}
[Shape small]
Cpus=1
Memory=256M
Labels=made
"""


def wanting(hosts=1, command="sleep 2"):
    role = {"roleName": "worker", "num": hosts, "vcores": 0.5, "memoryMb": 32, "constraints": ["made"], "command": command}
    return {"name": "wanting", "waitForHosts": True, "role": [role]}


def test_by_demand(cluster):
    """From no host that would do to two, with masterd's part: six jobs and a gang run on them, and the hosts are gone again, with all that was theirs."""
    nested.prepare(cluster, "farm", conf=BY_DEMAND)
    cluster.exec("n1", "systemctl", "reload", "primus-masterd")
    jobs = [cluster.submit(wanting()) for _ in range(6)] + [cluster.submit(wanting(4, "hostname"))]
    for number in jobs:
        cluster.wait_state(number, "SUCCEEDED", timeout=90)
    names = {e["node"] for number in jobs for e in cluster.status(number)["executors"]}
    assert names == {"farm-1", "farm-2"}, names
    cluster.wait_for(lambda: cluster.exec("n1", "primusctl", "provider", "hosts", "--json").strip() == "[]", 60, "they are given back")
    assert not [node["name"] for node in json.loads(cluster.exec("n1", "primusctl", "nodes", "--json")) if node["name"].startswith("farm-")]
    assert cluster.exec("n1", "ls", "-A", f"{nested.STATE}/farm") == ""
    assert cluster.exec("n1", "systemctl", "list-units", "--all", "--no-legend", "primus-host-*") == ""
    assert "primus1." not in cluster.exec("n1", "journalctl", "--no-pager", "-o", "export")
    assert not cluster.run("n1", "ls", "/run/primus/exits").stdout, "no unit of a provider's is taken for an executor's"
