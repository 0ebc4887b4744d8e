# SPDX-License-Identifier: Apache-2.0
"""Jobs that a person holds: stopped and kept waiting, or frozen where a host can (tests/vm shows that)."""
import os
import time

from sandbox import AGENTD, MASTERD

PATIENT = "trap 'echo stopping; sleep 0.5; exit 0' TERM; echo attempt $PRIMUS_ATTEMPT; while :; do sleep 0.1; done"


def config(command=PATIENT, num=2, **more):
    role = {"roleName": "worker", "num": num, "vcores": 0.5, "memoryMb": 64, "command": command, **more.pop("role", {})}
    return {"name": "held", "role": [role], **more}


def started(cluster, **more):
    job = cluster.submit(config(**more))
    cluster.wait_state(job, "RUNNING", timeout=20)
    return job


def reason(cluster, job):
    return cluster.status(job).get("reason") or ""


def refused(cluster, *arguments):
    done = cluster.run("n1", "primusctl", *map(str, arguments), user="ml")
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def free(cluster):
    rows = cluster.primusctl_json("nodes")
    rows = rows["nodes"] if isinstance(rows, dict) else rows
    return sum(row["cpusFree"] for row in rows)


def test_stopped_and_resumed(quick):
    before = free(quick)
    job = started(quick, maxAppAttempts=1)
    assert free(quick) < before
    quick.primusctl("suspend", "--stop", str(job))
    quick.wait_state(job, "QUEUED", timeout=20)
    assert reason(quick, job).startswith("held by uid 1000 since 20")
    assert free(quick) == before, "what it held is free"
    for node in quick.nodes:
        assert not quick.exec(node, "systemctl", "list-units", "--plain", "--no-legend", f"primus-{job}-*").strip()
    assert "held already" in refused(quick, "suspend", "--stop", job)
    time.sleep(1)
    assert quick.status(job)["state"] == "QUEUED"
    quick.primusctl("resume", str(job))
    quick.wait_state(job, "RUNNING", timeout=20)
    executors = quick.status(job)["executors"]
    assert all(e["attempt"] == 2 for e in executors)
    log = quick.primusctl("logs", str(job), "worker/0")
    assert "stopping" in log.splitlines(), "the grace was given"
    assert "not suspended" in refused(quick, "resume", job)
    # It was nobody's failure: with maxAppAttempts 1 it may be held as often as one likes.
    quick.primusctl("suspend", "--stop", str(job))
    quick.wait_state(job, "QUEUED", timeout=20)
    quick.primusctl("resume", str(job))
    quick.wait_state(job, "RUNNING", timeout=20)
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3
    assert "KILLED" in refused(quick, "resume", job)
    assert "KILLED" in refused(quick, "suspend", "--stop", job)


def test_masterd_and_agents_are_killed(quick):
    job = started(quick)
    quick.primusctl("suspend", "--stop", str(job))
    quick.kill9_now("n1", MASTERD)
    for node in quick.nodes:
        quick.kill9_now(node, AGENTD)
    quick.wait_nodes()
    quick.wait_state(job, "QUEUED", timeout=30)
    time.sleep(1)
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    time.sleep(1)
    assert quick.status(job)["state"] == "QUEUED" and "held by" in reason(quick, job)
    quick.primusctl("resume", str(job))
    quick.wait_state(job, "RUNNING", timeout=20)
    quick.primusctl("kill", str(job))


def test_a_job_that_waits(quick):
    """It keeps waiting, and is killed as any other."""
    job = quick.submit({**config(num=1, role={"vcores": 1000}), "waitForHosts": True})
    quick.wait_state(job, "QUEUED")
    quick.primusctl("suspend", "--stop", str(job))
    assert "held by" in reason(quick, job)
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3


def test_array(quick):
    """As a whole: what runs is stopped, what waits does not start, and nothing more is made, over a restart of masterd."""
    job = quick.submit({**config("sleep 3600", num=1), "array": "0-99%4"})
    count = lambda: quick.status(job)["array"]  # noqa: E731
    quick.wait_for(lambda: count()["running"] == 4, 20, "four that run")
    assert "not fed with data" in refused(quick, "suspend", job)
    quick.primusctl("suspend", "--stop", str(job))
    assert quick.status(job)["state"] == "SUSPENDED"
    assert "is held already" in refused(quick, "suspend", "--stop", job)
    quick.wait_for(lambda: all(quick.status(f"{job}[{i}]")["state"] == "QUEUED" for i in range(4)), 20, "none of it runs")
    assert f"'primusctl resume {job}'" in refused(quick, "resume", f"{job}[2]")
    quick.primusctl("kill", f"{job}[3]")  # no other begins for it
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    assert quick.status(job)["state"] == "SUSPENDED"
    assert count() == {"size": 100, "waiting": 99, "running": 0, "succeeded": 0, "failed": 0, "killed": 1}
    quick.primusctl("resume", str(job))
    quick.wait_for(lambda: count()["running"] == 4, 20, "they run again, and one more in the place of who was killed")
    assert quick.status(f"{job}[2]")["attempt"] == 2
    quick.wait_for(lambda: quick.status(f"{job}[4]")["state"] == "RUNNING", 20, "who came in its place")
    assert "is not suspended" in refused(quick, "resume", job)
    quick.primusctl("suspend", "--stop", str(job))
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3


def test_array_that_waits(quick):
    job = quick.submit({**config("true", num=1), "array": "0-3", "begin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))})
    assert "No element" in refused(quick, "suspend", "--freeze", job)
    quick.primusctl("suspend", "--stop", str(job))
    assert "held by" in reason(quick, job)
    quick.primusctl("resume", str(job))
    assert reason(quick, job).startswith("begins at")
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3
    job = quick.submit({**config("true", num=1, role={"vcores": 1000}), "array": "0-3", "waitForHosts": True})
    quick.primusctl("suspend", "--stop", str(job))
    assert "held by" in reason(quick, job)
    quick.wait_for(lambda: "held by" in reason(quick, f"{job}[1]"), 20, "its elements are held as well")
    quick.primusctl("resume", str(job))
    quick.wait_for(lambda: "held by" not in reason(quick, f"{job}[1]"), 20, "and go on")
    quick.primusctl("kill", str(job))


def test_resumed_while_it_stops(quick):
    job = started(quick)
    quick.primusctl("suspend", "--stop", str(job))
    quick.primusctl("resume", str(job))
    quick.wait_for(lambda: {e["attempt"] for e in quick.status(job)["executors"]} == {2} and quick.status(job)["state"] == "RUNNING", 20, "it runs again")
    quick.primusctl("kill", str(job))


def test_data_goes_on_where_it_was(quick, shared_dir):
    folder = shared_dir / "held"
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o777)
    for i in range(4):
        (folder / f"in-{i}.txt").write_text("".join(f"{i}-{n}\n" for n in range(1000)))
    slowly = "while read -r line; do echo \"$line\" >> /shared/held/out.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; sleep 0.002; done"
    files = {"pathPattern": "/shared/held", "namePattern": "in-*.txt", "textInput": {}}
    job = quick.submit(config(slowly, role={"inputPolicy": "STREAMING"}, input={"pipeSize": "4K"},
                              inputManager={"fileConfig": {"inputs": [{"name": "in", "spec": files}]}}))
    quick.wait_state(job, "RUNNING", timeout=20)
    count = lambda: sum(len(p.read_text().splitlines()) for p in folder.glob("out.*"))  # noqa: E731
    quick.wait_for(lambda: count() > 800, 30, "some lines")
    quick.primusctl("suspend", "--stop", str(job))
    quick.wait_state(job, "QUEUED", timeout=20)
    n = count()
    assert n < 4000
    quick.primusctl("resume", str(job))
    assert quick.wait_job(job, timeout=150) == 0
    lines = [line for p in folder.glob("out.*") for line in p.read_text().splitlines()]
    assert len(set(lines)) == 4000, "none is lost"
    assert len(lines) < 8000, "what was acknowledged is not read again"


def test_freezing_is_refused_where_a_host_cannot(quick):
    """Container hosts have their controllers on version 1."""
    job = started(quick)
    text = refused(quick, "suspend", "--freeze", job)
    assert "cannot freeze" in text and "--stop" in text and any(f"Host {node} " in text for node in quick.nodes)
    assert quick.status(job)["state"] == "RUNNING" and not quick.events(job, "suspended")
    assert "--freeze or --stop" in refused(quick, "suspend", job), "it has no data"
    done = quick.run("n1", "primusctl", "suspend", "--freeze", "--stop", str(job), user="ml")
    assert done.returncode == 2
    done = quick.run("n1", "primusctl", "suspend", "--stop", str(job), user="eve")
    assert done.returncode == 1 and quick.status(job)["state"] == "RUNNING"
    quick.primusctl("kill", str(job))
