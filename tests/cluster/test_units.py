# SPDX-License-Identifier: Apache-2.0
"""Executors as units of a real systemd: how they end when they are killed, and what is left of them: nothing."""
import itertools

import pytest

HERD = 24

# What the executors do when they are told to stop, so that some of them end just when the grace does.
MANNERS = {
    "deaf": "trap '' TERM; sleep 1000",
    "deaf child": "sh -c \"trap '' TERM; sleep 1000\" & wait",
    "slow": "trap 'sleep 0.1; exit 0' TERM; sleep 1000 & wait",
    "ending": "sleep 0.$((PRIMUS_INDEX % 10))",
}


def herd(command):
    return {"name": "herd", "stopGrace": "100ms",
            "role": [{"roleName": "worker", "num": HERD, "vcores": 0.01, "memoryMb": 8, "command": command}]}


@pytest.mark.parametrize("manner, kill", itertools.product(MANNERS, ["at once", "when it runs"]))
def test_a_killed_executor_has_an_end(cluster, manner, kill):
    """A SIGKILL that hits primus-exit, or a unit whose start was called off, is no executor that vanished."""
    job = cluster.submit(herd(MANNERS[manner]))
    if kill == "when it runs":
        cluster.wait_state(job, "RUNNING", "SUCCEEDED", timeout=30)
    cluster.run("n1", "primusctl", "kill", str(job), user="ml")
    assert cluster.wait_job(job) in (0, 3)
    states = {e["state"] for e in cluster.status(job)["executors"]}
    assert states <= {"KILLED", "SUCCEEDED"}
    results = [e["result"] for e in cluster.status(job)["executors"] if e["result"]]
    assert not [result for result in results if "record" in result]


def test_who_may_divide_his_group(cluster):
    """With "delegate" the user makes groups below his executor's, where its end is an end of them as well; never beside it, or without that.
    Their limits are seen in a virtual machine, where there are controllers."""
    command = ("top=/sys/fs/cgroup/unified$(sed -n s/^0:://p /proc/self/cgroup); mkdir $top/part; sleep 600 & echo $! > $top/part/cgroup.procs && echo divided;"
               " mkdir $top/../beside || echo not beside; echo 1 > $top/cgroup.freeze || echo not its own; echo that is all; wait")
    role = {"num": 1, "vcores": 0.1, "memoryMb": 64, "command": command}
    job = cluster.submit({"name": "divides", "role": [{"roleName": "one", **role, "delegate": True}, {"roleName": "whole", **role}]})
    out = cluster.wait_for(lambda: (text := cluster.primusctl("logs", str(job))).count("that is all") == 2 and text, 20, "their words")
    said = {name: [line.partition("| ")[2] for line in out.splitlines() if line.startswith(name)] for name in ("one", "whole")}
    assert "divided" in said["one"] and {"not beside", "not its own"} <= set(said["one"]) & set(said["whole"]) and "divided" not in said["whole"], out
    where = {role: cluster.executor(job, role) for role in ("one", "whole")}
    for role, policy in (("one", "continue"), ("whole", "kill")):
        assert cluster.exec(where[role]["node"], "systemctl", "show", "-P", "OOMPolicy", where[role]["unit"]).strip() == policy
    cluster.kill(job)
    cluster.wait_for(lambda: not leftovers(cluster, job), 15, f"nothing left of job {job}")


def leftovers(cluster, job):
    """Everything on the hosts that bears the job's name, but its artifacts: these are kept for a week."""
    found = []
    for node in cluster.nodes:
        directories = "/run/primus", "/run/systemd/units", "/run/systemd/transient", "/var/lib/primus-agent"  # not all are always there
        found += cluster.run(node, "find", *directories, "-path", "/var/lib/primus-agent/artifacts", "-prune", "-o", "-name", f"*primus-{job}-*", "-o", "-name", f"primus-{job}.slice",
                             "-o", "-name", f"{job}-????????").stdout.replace("/var/lib/primus-agent/artifacts\n", "").split()
        found += cluster.exec(node, "systemctl", "list-units", "--all", "--plain", "--no-legend", f"primus-{job}-*", f"primus-{job}.slice").split()
    return found


def test_nothing_is_left_of_a_job(cluster):
    job = cluster.submit(herd("sleep 0.1"))
    assert cluster.wait_job(job) == 0
    cluster.wait_for(lambda: not leftovers(cluster, job), 15, f"nothing left of job {job}")


def test_what_an_earlier_agent_left_goes(cluster):
    """Files of units that are gone, and work directories of jobs that are over, go when the agent starts."""
    state, work = "/run/systemd/units/log-extra-fields:", "/var/lib/primus-agent/work"
    stale, foreign = f"{state}primus-999-worker-0.1.service", f"{state}primus-foo.service"
    cluster.exec("n3", "touch", stale, foreign)
    cluster.exec("n3", "mkdir", "-p", f"{work}/999-0123abcd/tmp", f"{work}/.998-0123abcd.5f/tmp")
    cluster.exec("n3", "systemctl", "restart", "primus-agentd.service")
    cluster.wait_for(lambda: cluster.run("n3", "test", "-e", stale).returncode == 1, 10, "the file of the unit to go")
    # One that was being removed, and one of a job that masterd says is over.
    cluster.wait_for(lambda: cluster.exec("n3", "ls", "-A", work) == "", 10, "the directories to go")
    cluster.exec("n3", "rm", foreign)
    cluster.wait_nodes()


def test_the_first_second_is_not_limited(cluster):
    """More lines at once than journald's default limit lets pass, printed before journald knows the unit's own."""
    lines = cluster.primusctl("run", "-n", "4", "--", "seq", "30000", timeout=120).splitlines()
    assert len(lines) == 4 * 30000


def test_a_user_that_the_host_does_not_have(cluster):
    cluster.exec("n1", "useradd", "-u", "4711", "-m", "guest")
    try:
        config = {"name": "guest", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 8, "nodes": "n2", "command": "true"}]}
        job = cluster.submit(config, user="guest")
        assert cluster.wait_job(job, user="guest") == 1
        assert "no user with uid 4711 on host n2" in cluster.primusctl("events", str(job), user="root")
    finally:
        cluster.exec("n1", "userdel", "-r", "guest")


def test_an_administrators_unit_of_that_prefix(cluster):
    """primus-foo.service gets the executors' drop-in, and nothing happens to it."""
    cluster.exec("n2", "systemd-run", "-q", "--wait", "--unit=primus-foo.service", "/bin/true")
    cluster.exec("n2", "systemd-run", "-q", "--wait", "--unit=primus-1-worker-0.1.service", "/bin/true")
    assert cluster.exec("n2", "ls", "/run/primus/exits") == ""
