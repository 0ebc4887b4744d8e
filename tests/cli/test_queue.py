# SPDX-License-Identifier: Apache-2.0
"""queue and pools."""
import json
import os

from fakemaster import now

GIB = 1 << 30


def waiting(job, position, **more):
    return {"job": ("u", job), "name": ("s", f"j{job}"), "user": ("u", os.getuid()), "pool": ("s", "prod"), "priority": ("i", -5),
            "state": ("s", "QUEUED"), "position": ("t", position), "since": ("t", now() - 90_000_000), "executors": ("u", 4), "cpus": ("d", 6.5),
            "memory": ("t", 8 * GIB), "gpus": ("u", 2), "startsBy": ("t", 0), "reason": ("s", "3 of 4 fit now"), **more}


def amount(cpus, memory, gpus):
    return ("(ttu)", (cpus, memory, gpus))


def pool(name, **more):
    nothing, everything = amount(0, 0, 0), amount(2**64 - 1, 2**64 - 1, 2**32 - 1)
    user = {"user": ("u", os.getuid()), "usage": ("d", 7200.0), "running": ("u", 1), "waiting": ("u", 2), "held": amount(1500, GIB, 0)}
    return {"name": ("s", name), "open": ("b", True), "preempts": ("b", False), "preemptible": ("b", True), "weight": ("u", 3), "priority": ("i", 0),
            "maxPriority": ("i", 1000), "defaultTime": ("t", 2**64 - 1), "maxTime": ("t", 3600_000_000), "guarantee": nothing, "limit": everything,
            "userLimit": amount(4000, 2**64 - 1, 2**32 - 1), "held": amount(1500, GIB, 1), "usage": ("d", 10800.0), "running": ("u", 1),
            "waiting": ("u", 2), "users": ("aa{sv}", [user]), **more}


def test_queue(master, ctl):
    assert (ctl("queue").stdout, json.loads(ctl("queue", "--json").stdout)) == ("", [])
    master.queue = [waiting(7, 1), waiting(8, 0, reason=("s", "held"), gpus=("u", 0))]
    lines = [line.split() for line in ctl("queue").stdout.splitlines()]
    assert lines[0][:5] == ["#", "JOB", "NAME", "USER", "POOL"]
    assert lines[1][:3] == ["1", "7", "j7"] and lines[1][4:12] == ["prod", "-5", "1min", "30s", "4", "6.5C", "8G", "2G"]
    assert lines[2][:2] == ["-", "8"] and lines[2][-1] == "held"
    rows = json.loads(ctl("queue", "--json").stdout)
    assert [row["job"] for row in rows] == [7, 8] and rows[0] == {**rows[0], "owner": os.getuid(), "cpus": 6.5, "position": 1, "startsBy": 0}


def test_pools(master, ctl):
    master.pools = [pool("prod"), pool("lab", open=("b", False))]
    r = ctl("pools")
    lines = r.stdout.splitlines()
    assert r.returncode == 0 and lines[0].startswith("POOL") and len(lines) == 5, r.stdout + r.stderr
    assert lines[1].split() == ["prod", "1", "2", "1.5C", "1G", "1G", "3.0", "3", "-", "-", "4C", "1h"]
    assert lines[3].startswith("lab (closed)")
    rows = json.loads(ctl("pools", "--json").stdout)
    assert rows[0]["userLimit"] == {"cpus": 4.0} and rows[0]["limit"] == {} and rows[0]["users"][0]["user"] == os.getuid()
