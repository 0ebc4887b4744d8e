# SPDX-License-Identifier: Apache-2.0
"""Many executors at once, many one after the other: everything works, nothing piles up. tools/soak does more of both.
Executors that ask for no core and no memory fit in any number onto a host."""
import time

import pytest
from footprint import footprint, left_over
from sandbox import AGENTD, MASTERD

AT_ONCE = 300  # one host; tools/soak: 1,000
COME_AND_GONE = 600  # three hosts; tools/soak: 20,000


def role(command, num, **more):
    return {"roleName": "w", "num": num, "vcores": 0, "memoryMb": 0, "command": command, "successPercent": 100, **more}


def job(name, command, num, nodes=None, **more):
    return {"name": name, "role": [role(command, num, **({"nodes": nodes} if nodes else {}))], **more}


def states(cluster, number):
    found = {}
    for executor in cluster.primusctl_json("status", str(number))["executors"]:
        found.setdefault(executor["state"], []).append(executor)
    return found


@pytest.fixture(scope="module")
def quiet(_cluster):
    """What the daemons hold before this module's jobs."""
    _cluster.wait_nodes()
    return {node: footprint(_cluster, node) for node in _cluster.nodes}


def all_gone(cluster, nodes):
    for node in nodes:
        cluster.wait_for(lambda n=node: not left_over(cluster, n), 30, f"nothing left on {node}")


def test_many_at_once(cluster, quiet):
    number = cluster.submit(job("at-once", "echo $PRIMUS_INDEX; exec sleep infinity", AT_ONCE, ["n2"]))
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(number))["state"] == "RUNNING", 120, "all run")

    found = states(cluster, number)
    assert set(found) == {"RUNNING"} and len(found["RUNNING"]) == AT_ONCE
    assert {executor["node"] for executor in found["RUNNING"]} == {"n2"}
    assert footprint(cluster, "n2")["units"] == AT_ONCE
    # One line of each, whichever way it is asked.
    lines = cluster.primusctl("logs", str(number)).splitlines()
    assert sorted(int(line.split("|")[1]) for line in lines) == list(range(AT_ONCE))

    before = time.monotonic()
    cluster.primusctl("kill", str(number))
    assert cluster.wait_job(number, timeout=120) == 3
    print(f"{AT_ONCE} stopped in {time.monotonic() - before:.1f} s")
    found = states(cluster, number)
    assert set(found) == {"KILLED"}
    # Each by the signal that can be caught: the grace was not over before systemd got to it.
    assert {executor["result"] for executor in found["KILLED"]} == {"stopped, signal TERM"}
    all_gone(cluster, ["n2"])


def test_many_killed_while_they_start(cluster, quiet):
    number = cluster.submit(job("early-end", "exec sleep infinity", AT_ONCE, ["n2"]))
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(number))["roles"][0]["running"] > 0, 60, "the first runs")
    cluster.primusctl("kill", str(number))
    assert cluster.wait_job(number, timeout=120) == 3
    all_gone(cluster, ["n2"])


def test_come_and_gone(cluster, quiet):
    each = 50
    numbers = [cluster.submit(job(f"brief-{i}", "echo done", each)) for i in range(COME_AND_GONE // each)]
    for number in numbers:
        assert cluster.wait_job(number, timeout=120) == 0
    all_gone(cluster, cluster.nodes)
    for node in cluster.nodes:
        now = footprint(cluster, node)
        assert now["matches"] <= quiet[node]["matches"] + 2, "match rules pile up"
        for unit in (MASTERD, AGENTD) if node == "n1" else (AGENTD,):
            unit = unit.removesuffix(".service")
            # What the last executors had is let go a moment behind their end; what piles up stays.
            cluster.wait_for(lambda node=node, unit=unit: footprint(cluster, node)[f"{unit}.fds"] <= quiet[node][f"{unit}.fds"] + 8, 20, f"that descriptors of {unit} do not pile up")
            print(node, unit, {key: now[f"{unit}.{key}"] for key in ("rss_kib", "anon_kib", "file_kib")})
