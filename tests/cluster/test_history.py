# SPDX-License-Identifier: Apache-2.0
"""Jobs that are over: every question is answered as before, however often masterd was killed meanwhile; and nothing that was
acknowledged is missing afterwards."""
import json
import os
import random
import re
import subprocess
import threading
import time

import pytest
from sandbox import MASTERD

HERE = os.path.dirname(os.path.abspath(__file__))


def config(command, name="job", failures=1, **keys):
    role = {"roleName": "worker", "num": 2, "command": command, "vcores": 0.1, "memoryMb": 64, "failover": {
        "commonFailoverPolicy": {"restartType": "ON_FAILURE", "maxFailureTimes": failures, "maxFailurePolicy": "FAIL_APP"}}}
    return {"name": name, "role": [role], "backoff": {"initial": "10ms", "max": "10ms"}, **keys}


def told(cluster, job):
    """What every command says of a job; times that go on are none of it."""
    said = {}
    for command in (["status", "--all"], ["events"], ["logs"], ["config"], ["why"], ["data", "--failed"]):
        done = cluster.run("n1", "primusctl", command[0], str(job), *command[1:], user="ml")
        said[command[0]] = (done.returncode, done.stdout, done.stderr)
    return said


# The other one has said something by then, so that its log is one, too.
FAILS = "echo out; [ $PRIMUS_INDEX = 0 ] || exec sleep 60; sleep 0.5; echo ValueError: bad shape >&2; exit 3"


def test_a_finished_job_after_a_restart(cluster, shared_dir):
    data = shared_dir / "history"
    data.mkdir(exist_ok=True)
    (data / "part").write_text("a\nb\n")
    source = {"fileConfig": {"inputs": [{"name": "i", "spec": {"pathPattern": f"/shared/{data.name}", "textInput": {}}}]}}
    with_data = config("cat", name="fed", inputManager=source)
    with_data["role"][0]["inputPolicy"] = "STREAMING"
    jobs = [cluster.submit(config(FAILS, name="bad", failures=2)),
            cluster.submit(config("echo good", name="good")), cluster.submit(with_data)]
    for job in jobs:
        cluster.wait_job(job)
    cluster.wait_for(lambda: "bad shape" in cluster.primusctl("logs", str(jobs[0])), what="the kept log")
    cluster.wait_for(lambda: cluster.status(jobs[0])["firstError"], what="the first error")
    before = {}

    def settled():
        """The ends of logs arrive behind the job's own."""
        last = dict(before)
        before.update({job: told(cluster, job) for job in jobs})
        time.sleep(0.5)
        return before == last
    cluster.wait_for(settled, what="the last of the kept logs")
    assert all(said["status"][0] == said["events"][0] == said["why"][0] == said["config"][0] == 0 for said in before.values())
    cluster.kill9_now("n1", MASTERD)
    time.sleep(0.2)
    cluster.wait_nodes()
    after = {job: told(cluster, job) for job in jobs}
    assert after == before

    why = before[jobs[0]]["why"][1]
    assert re.search(r"first cause   worker/[01] on n[123]: exit status 3 at .* after 1 restart; its role takes 2 failures of an "
                     r"executor; then the job fails \(maxFailurePolicy FAIL_APP\)", why), why
    assert re.search(r"blame         the program of worker/[01]\n", why), why
    assert "first error   ValueError: bad shape" in why
    assert why.index("In order:") < why.rindex("exit status 3", 0, why.index("FAILED after")) < why.index("FAILED after")

    # Filters of the list.
    def listed(*options):
        return {row["job"] for row in cluster.primusctl_json("list", "--all", *options, user="ml")} & set(jobs)

    assert listed() == set(jobs)
    assert listed("--state", "FAILED") == {jobs[0]}
    assert listed("--name", "goo") == {jobs[1]}
    assert listed("--user", "root") == set()
    assert listed("--user", "ml", "--since", "1h") == set(jobs)
    assert listed("--since", "1ms") == set()
    assert cluster.run("n1", "primusctl", "list", "--user", "nobody-here", user="ml").returncode == 2
    assert cluster.run("n1", "primusctl", "list", "--since", "soon", user="ml").returncode == 2


def test_why_of_other_ends(cluster):
    first = cluster.submit(config("sleep 30", name="first"))
    second = json.loads(cluster.primusctl("submit", "--json", "--after", str(first), "-", input=json.dumps(config("true"))))["job"]
    assert f"after job {first} (" in cluster.primusctl("why", str(second))
    cluster.wait_state(first, "RUNNING")
    cluster.primusctl("kill", str(first), "--reason", "enough")
    cluster.wait_job(first)
    why = cluster.primusctl("why", str(first))
    assert "enough" in why and "blame         a person" in why
    why = cluster.primusctl_json("why", str(second))
    assert why["blame"] == f"another job: primusctl why {first}" and why["state"] == "KILLED"
    limited = cluster.submit(config("sleep 30", timeLimit="1s"))
    cluster.wait_job(limited)
    assert "blame         its time limit" in cluster.primusctl("why", str(limited))


def submit_and_kill(cluster, seed, n, kills):
    rng = random.Random(seed)
    prefix = f"durable{seed}"
    held = config("true", begin="2099-01-01T00:00:00Z")
    over = threading.Event()

    def killer():
        for _ in range(kills):
            if over.wait(rng.uniform(0.2, 2.5)):
                return
            cluster.kill9_now("n1", MASTERD)

    thread = threading.Thread(target=killer)
    thread.start()
    done = subprocess.run(cluster.argv("n1", "/usr/bin/python3", f"{cluster.tests}/submitter.py", prefix, str(n), user="ml"),
                          input=json.dumps(held), capture_output=True, text=True, timeout=280)
    over.set()
    thread.join()
    assert done.returncode == 0, done.stderr
    answers = dict(line.split() for line in done.stdout.splitlines())
    assert len(answers) == n
    cluster.wait_nodes(timeout=60)
    found = {}
    for k in range((n + 999) // 1000):
        for row in cluster.primusctl_json("list", "--name", f"{prefix}.{k}.", "--limit", "10000", user="ml"):
            found.setdefault(row["name"], []).append(str(row["job"]))
    acknowledged = {name: number for name, number in answers.items() if number != "?"}
    assert {name for name, numbers in found.items() if len(numbers) > 1} == set()
    assert {name: found.get(name) for name in acknowledged} == {name: [number] for name, number in acknowledged.items()}
    assert set(found) <= set(answers)
    return len(acknowledged)


# Ten thousand: PRIMUS_TEST_SUBMITS=10000.
@pytest.mark.parametrize("seed", range(3))
def test_every_acknowledged_submission_is_there_once(new_cluster, seed, tmp_path):
    n = int(os.environ.get("PRIMUS_TEST_SUBMITS", "600"))
    cluster = new_cluster(nodes=1, binds=[f"{HERE}:/tests"],
                          conf=[f"masterd.conf:Master.JobsMax={2 * n}", f"masterd.conf:Master.JobsPerUserMax={2 * n}"])
    cluster.tests = "/tests"
    acknowledged = submit_and_kill(cluster, seed, n, kills=3)
    assert acknowledged > 0
