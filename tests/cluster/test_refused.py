# SPDX-License-Identifier: Apache-2.0
"""What cannot be done is refused in one sentence that says why, and has changed nothing."""
import json

import pytest

ROLE = {"roleName": "a", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "sleep 600"}


def role(**more):
    return {**ROLE, **more}


def order(*names):
    return {"schedulePolicy": {"orderPolicy": {"rolePolicy": [{"roleName": name} for name in names]}}}


BAD_JOBS = {
    "pool": ({"queue": "nosuch", "role": [ROLE]}, "there is no pool nosuch; there are: "),
    "constraint": ({"role": [role(constraints=["gpu.model=H100"])]}, "no host of the cluster has gpu.model=H100 (role a, constraint 1)"),
    "memory": ({"role": [role(memoryMb=900 * 1024)]}, "no host that role a may use has 900 GiB of memory for one executor; the most that one has is "),
    "cpus": ({"role": [role(vcores=1000)]}, "has 1000 CPUs for one executor; the most that one has is "),
    "gpus": ({"role": [role(gpuNum=1)]}, "has 1 GPU for one executor; the most that one has is none; ask for less, or let the job wait for hosts that come later: --wait-for-hosts"),
    "many": ({"role": [role(num=100, scheduleStrategy={"maxReplicasPerNode": 1})]}, "role a needs 100 executors at once, each on a host of its own; even when they are empty, the hosts that it may use (3) hold 3 of them"),
    "host": ({"role": [ROLE], "nodes": ["n99"]}, "no host of the cluster is called n99 (role a, nodes)"),
    "order": ({"scheduler": order("a", "b", "a"), "role": [ROLE, role(roleName="b")]}, "rolePolicy[0] is for a already"),
    "affinity": ({"role": [role(affinity=["b"]), role(roleName="b", affinity=["a"])]}, "goes in a circle"),
    "array": ({"array": "5-2", "role": [ROLE]}, "must have the smaller index first"),
    "after": ({"after": ["999999"], "role": [ROLE]}, "there is no job 999999"),
    "signal": ({"signal": "KILL@5s", "role": [ROLE]}, "must be a signal that can be caught"),
}

# To a job that runs (RUNS) or has failed (ENDED).
BAD_CALLS = (
    (("scale", "RUNS", "a=-1"), "must be 1 to 100000 executors, not -1"),
    (("scale", "RUNS", "nosuch=3"), "there is no role nosuch"),
    (("role", "remove", "RUNS", "a"), "is the job's only role"),
    (("scale", "RUNS", "a=90000"), "role a needs 90000 executors at once; even when they are empty, "),
    (("update", "RUNS", "a.nosuch=3"), "there is neither a role nor a key nosuch"),
    (("update", "RUNS", "priority=x"), "must be a whole number"),
    (("update", "RUNS", "priority=5", "--if-version", "7"), "is at version 1"),
    (("update", "ENDED", "priority=3"), "is FAILED: it cannot be changed any more"),
    (("resume", "RUNS"), "is RUNNING: it is not suspended"),
    (("resume", "ENDED"), "is FAILED: there is nothing to resume"),
    (("suspend", "ENDED", "--stop"), "is FAILED: there is nothing to suspend"),
    (("requeue", "ENDED"), "is FAILED: there is nothing to requeue"),
    (("restart", "ENDED"), "is FAILED: nothing of it can be restarted"),
    (("restart", "RUNS", "nosuch"), "has no role nosuch"),
    (("rerun", "RUNS"), "only what has ended can be run again"),
    (("rerun", "ENDED", "--failed"), "is no array"),
    (("replace", "RUNS", "n99"), "There is no node 'n99'"),
    (("replace", "ENDED", "n1"), "is FAILED: there is nothing to move"),
    (("exec", "RUNS", "9", "--", "true"), "has no executor of rank 9"),
    (("exec", "ENDED", "a/0", "--", "true"), "only in one that is RUNNING a session can be opened"),
)


def all_jobs(cluster):
    return [(row["job"], row["state"]) for row in cluster.primusctl_json("list", "--all", user="root")]


def one_sentence(done, says):
    assert done.returncode not in (0, 4) and done.stdout == "", done.stdout + done.stderr
    assert says in done.stderr and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("name", BAD_JOBS)
def test_submit(quick, name):
    config, says = BAD_JOBS[name]
    before = all_jobs(quick)
    text = json.dumps({"name": "refused", **config})
    one_sentence(quick.run("n1", "sh", "-c", "cat > /tmp/refused.json; primusctl submit /tmp/refused.json", input=text, user="ml"), says)
    assert all_jobs(quick) == before


@pytest.mark.parametrize("name", ["constraint", "memory", "cpus", "gpus", "many", "host"])
def test_waits_where_it_says_so(quick, name):
    """The same as what is refused, of a job that waits for hosts; why says what they would have to be."""
    job = quick.submit({"name": "waits", **BAD_JOBS[name][0], "waitForHosts": True})
    quick.wait_state(job, "QUEUED")
    assert quick.status(job)["state"] == "QUEUED"
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3


def test_calls(quick):
    runs = quick.submit({"name": "runs", "role": [ROLE]})
    ended = quick.submit({"name": "ended", "role": [role(command="exit 3", failover={"commonFailoverPolicy": {"maxFailureTimes": 1}})]})
    quick.wait_job(ended)
    quick.wait_state(runs, "RUNNING")
    before, config = all_jobs(quick), quick.primusctl("config", str(runs))
    events = len(quick.events(runs)), len(quick.events(ended))
    for arguments, says in BAD_CALLS:
        words = [{"RUNS": str(runs), "ENDED": str(ended)}.get(word, word) for word in arguments]
        one_sentence(quick.run("n1", "primusctl", *words, user="ml"), says)
    assert all_jobs(quick) == before and quick.primusctl("config", str(runs)) == config
    assert (len(quick.events(runs)), len(quick.events(ended))) == events
