# SPDX-License-Identifier: Apache-2.0
"""What checks ask a cluster of virtual machines: a has the master, ml is a user on both."""
import json
import shlex

import checks
from checks import need
from pair import PATIENCE as FACTOR

CTL = "cd / && runuser -u ml -- primusctl"
PATIENCE = 600 * FACTOR  # seconds that a change of state may take on emulated machines that share processors


def wait_for(what, predicate, seconds=PATIENCE):
    """Asks not too often: who asks takes processor time from who is asked."""
    return checks.wait_for(what, predicate, seconds, 2)


def nodes(pair):
    """{name: state}, or {} while nobody answers."""
    done = pair.a.try_sh("primusctl nodes --json")
    if done.status != 0:
        return {}
    rows = json.loads(done.out)
    return {row["name"]: row["state"] for row in (rows["nodes"] if isinstance(rows, dict) else rows)}


def ready(pair, names, seconds=PATIENCE):
    wait_for(f"{sorted(names)} are READY", lambda: nodes(pair) == dict.fromkeys(names, "READY"), seconds)


def submit(pair, *roles, **job):
    """Submits a job of these roles as ml; they are small and do not come back unless they say otherwise. Returns its number."""
    defaults = {"num": 1, "memoryMb": 32, "vcores": 0.1}
    config = {"name": "vm", **job, "role": [{**defaults, **role} for role in roles]}
    return json.loads(pair.a.sh(f"{CTL} submit - --json", input=json.dumps(config)))["job"]


def status(pair, job):
    return json.loads(pair.a.sh(f"{CTL} status {job} --json"))


def executors(pair, job):
    """{"role/index": executor}"""
    return {f"{e['role']}/{e['index']}": e for e in status(pair, job)["executors"]}


def running(pair, job, count=1, seconds=PATIENCE):
    """The executors once so many run."""
    def those():
        found = executors(pair, job)
        return sum(e["state"] == "RUNNING" for e in found.values()) >= count and found
    return wait_for(f"{count} executors of job {job} run", those, seconds)


def end(pair, job):
    pair.a.try_sh(f"{CTL} wait {job}", seconds=600)
    return status(pair, job)


def kill(pair, *jobs):
    words = " ".join(map(str, jobs))
    pair.a.sh(f"{CTL} kill {words}; {CTL} wait -q {words} || true", seconds=600)


def logs(pair, job):
    return pair.a.sh(f"{CTL} logs {job}")


def pids(pair, job):
    """{"role/index": (host, main process, its start)} of what runs, as systemd of its host says it."""
    found = {}
    for name, e in executors(pair, job).items():
        if e["state"] == "RUNNING":
            m = pair.machines[e["node"]]
            out = m.sh(f"p=$(systemctl show -P MainPID {shlex.quote(e['unit'])}) && [ $p != 0 ] && echo $p $(cut -d' ' -f22 /proc/$p/stat)")
            found[name] = (e["node"], *out.split())
    need(f"executors of job {job}", found)
    return found
