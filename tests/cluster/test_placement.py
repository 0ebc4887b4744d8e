# SPDX-License-Identifier: Apache-2.0
"""Where executors really go: labels in agentd.conf, constraints, roles near to and apart from each other, topology, licences, whole hosts."""
import json

import pytest
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

LABELS = {"n1": "switch=s1 rack=r1 ssd", "n2": "switch=s1 rack=r1", "n3": "switch=s2 rack=r1 ssd"}


@pytest.fixture(scope="module")
def placed(build):
    with Cluster(cluster_name(), 3, build=build,
                 conf=["masterd.conf:Scheduler.Topology=switch rack", "masterd.conf:Scheduler.Licences=matlab=3"]) as cluster:
        for node, labels in LABELS.items():
            cluster.exec(node, "sh", "-c", f"mkdir -p /etc/primus/agentd.conf.d; printf '[Agent]\\nLabels={labels}\\n' >/etc/primus/agentd.conf.d/labels.conf; systemctl restart {AGENTD}")
        cluster.wait_nodes()
        yield cluster


def role(name, num=1, **keys):
    return {"roleName": name, "num": num, "vcores": 0.1, "memoryMb": 16, "command": "sleep 600", **keys}


def place(cluster, *roles, **keys):
    """Submits, waits until all run, and says where: {role: [host, …]}."""
    job = cluster.submit({"name": "place", "role": list(roles), **keys})
    cluster.wait_state(job, "RUNNING")
    where = {}
    for r in roles:
        where[r["roleName"]] = [cluster.executor(job, r["roleName"], i)["node"] for i in range(r.get("num", 1))]
    return job, where


def refused(cluster, *roles, **keys):
    done = cluster.run("n1", "sh", "-c", "f=$(mktemp /tmp/job.XXXXXX); cat > $f; primusctl submit $f", user="ml",
                       input=json.dumps({"name": "no", "role": list(roles), **keys}))
    assert done.returncode != 0
    return done.stderr


def test_constraints(placed):
    job, where = place(placed, role("a", 2, constraints=["switch=s2"]), role("b", 2, constraints=["!ssd"]), role("c", constraints=["host in (n2,n9)"]))
    assert where == {"a": ["n3", "n3"], "b": ["n2", "n2"], "c": ["n2"]}
    placed.kill(job)


def test_preferences_only_order(placed):
    job, where = place(placed, role("a", 3, prefer=[{"constraint": "switch=s2", "weight": 5}, {"constraint": "host=n2", "weight": 2}],
                                    scheduleStrategy={"maxReplicasPerNode": 1}))
    assert sorted(where["a"]) == ["n1", "n2", "n3"]
    other, where = place(placed, role("a", prefer=[{"constraint": "switch=s2", "weight": 5}, {"constraint": "host=n2", "weight": 2}]))
    assert where["a"] == ["n3"]
    placed.kill(job, other)


def test_near_and_apart(placed):
    job, where = place(placed, role("ps", constraints=["host=n2"]), role("worker", 2, affinity=["ps"]), role("lone", 2, antiAffinity=["ps", "lone"]))
    assert where["worker"] == ["n2", "n2"]
    assert sorted(where["lone"]) == ["n1", "n3"]
    placed.kill(job)


def test_topology(placed):
    job, where = place(placed, role("a", 2, scheduleStrategy={"maxReplicasPerNode": 1}), topology={"mode": "require", "level": "switch"})
    assert sorted(where["a"]) == ["n1", "n2"]
    placed.kill(job)
    job, where = place(placed, role("a", 2), topology={"mode": "spread", "level": "switch"})
    assert "n3" in where["a"] and len(set(where["a"])) == 2
    placed.kill(job)
    job = placed.submit({"name": "wide", "role": [role("a", 3, scheduleStrategy={"maxReplicasPerNode": 1})], "topology": {"mode": "require", "level": "switch"}})
    placed.wait_for(lambda: "topology" in placed.status(job)["reason"], what="a reason that names the topology")
    placed.kill(job)
    job, where = place(placed, role("a", 3, scheduleStrategy={"maxReplicasPerNode": 1}), topology={"mode": "pack"})
    assert sorted(where["a"]) == ["n1", "n2", "n3"]
    placed.kill(job)


def test_licences(placed):
    job, _ = place(placed, role("a", 1, consumables={"matlab": 2}))
    waits = placed.submit({"name": "waits", "role": [role("a", 1, consumables={"matlab": 2})]})
    placed.wait_for(lambda: "licences" in placed.status(waits)["reason"], what="a reason that names licences")
    placed.kill9_now("n1", MASTERD)
    placed.wait_nodes()
    assert placed.status(waits)["state"] == "QUEUED"
    placed.kill(job)
    placed.wait_state(waits, "RUNNING")
    placed.kill(waits)


def test_whole_hosts(placed):
    job, where = place(placed, role("a", 2), wholeHosts=True)
    host = where["a"][0]
    assert where["a"] == [host, host]
    others = [place(placed, role("b")) for _ in range(3)]
    assert all(w["b"] != [host] for _, w in others)
    placed.kill9_now("n1", MASTERD)
    placed.wait_nodes()
    more, where = place(placed, role("b", 4))
    assert host not in where["b"]
    placed.kill(job, more, *[j for j, _ in others])


def test_exclusive_cpus(placed):
    cpus = int(placed.exec("n1", "nproc"))
    job, where = place(placed, role("a", 1, vcores=1, cpuPolicy="exclusive", numa="prefer", constraints=["host=n2"]))
    def allowed(number, name):
        return placed.exec("n2", "systemctl", "show", "-P", "AllowedCPUs", f"primus-{number}-{name}-0.1.service").strip()
    own = allowed(job, "a")
    assert own.isdigit() and int(own) < cpus
    assert "PRIMUS_CPUS=" + own in placed.exec("n2", "systemctl", "show", "-P", "Environment", f"primus-{job}-a-0.1.service")
    beside, _ = place(placed, role("b", constraints=["host=n2"]))
    others = allowed(beside, "b")
    assert others and own not in others.split()
    placed.kill9_now("n1", MASTERD)
    placed.exec("n2", "systemctl", "restart", AGENTD)
    placed.wait_nodes()
    later, _ = place(placed, role("b", constraints=["host=n2"]))
    assert allowed(later, "b") == others
    rest = placed.submit({"name": "rest", "role": [role("a", cpuPolicy="exclusive", constraints=["host=n2"], **{"vcores": cpus})]})
    placed.wait_for(lambda: placed.status(rest)["reason"], what="a reason why it waits")
    placed.kill(rest, job)
    placed.wait_for(lambda: own in allowed(beside, "b") or "-" in allowed(beside, "b"), what="the CPU is everybody's again")
    placed.kill(beside, later)
    assert where["a"] == ["n2"]


def test_what_no_host_is_is_said_at_submit(placed):
    said = refused(placed, role("worker", constraints=["ssd", "switch=s9"]))
    assert "no host of the cluster has switch=s9 (role worker, constraint 2)" in said and "known values: s1, s2" in said
    assert "has no licences" in refused(placed, role("a", consumables={"abaqus": 1})) and "matlab" in refused(placed, role("a", consumables={"abaqus": 1}))
    assert "takes 4 of the licences matlab" in refused(placed, role("a", 2, consumables={"matlab": 2}))
    assert "rak is no level" in refused(placed, role("a"), topology={"mode": "pack", "level": "rak"})
    assert "together" in refused(placed, role("a", constraints=["!ssd", "switch=s2"]))
    assert "has a GPU H100" in refused(placed, role("a", gpuNum=1, gpu={"model": "H100"}))
    assert "vcores must be" in refused(placed, role("a", cpuPolicy="exclusive"))
    assert "there is no role ps" in refused(placed, role("a", affinity=["ps"]))


def test_labels_of_people(placed):
    placed.exec("n1", "primusctl", "node", "label", "n2", "gold=yes")
    job, where = place(placed, role("a", constraints=["gold"]))
    assert where["a"] == ["n2"]
    placed.exec("n2", "systemctl", "restart", AGENTD)
    placed.wait_nodes()
    other, where = place(placed, role("a", constraints=["gold", "switch=s1"]))
    assert where["a"] == ["n2"]
    placed.kill(job, other)
