# SPDX-License-Identifier: Apache-2.0
"""Daemons killed around the submission and the start of a job: what was accepted runs, once; what was not, never."""
import json
import random
import threading
import time

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD


class Submission(threading.Thread):
    def __init__(self, quick, config):
        super().__init__(daemon=True)
        self.quick, self.config, self.done = quick, config, None

    def run(self):
        self.done = self.quick.run("n1", "primusctl", "submit", "--json", "-", user="ml", input=json.dumps(self.config))


@pytest.mark.parametrize("seed", range(12))
def test_killed_around_the_start(quick, ledger, seed):
    rng = random.Random(seed)
    unit = rng.choice([MASTERD, AGENTD, None])
    name = f"start{seed}"
    thread = Submission(quick, ledger.config("sleep 0.2; say end", num=6, name=name, failover=failover(1), scheduleStrategy={
        "maxReplicasPerNode": 2}))
    thread.start()
    begin = time.monotonic()
    # The submission itself takes some 50 ms, the starts follow.
    moment = begin + rng.uniform(0.02, 0.25)
    while time.monotonic() < moment:
        time.sleep(0.001)
    if unit != AGENTD:
        quick.kill9_now("n1", MASTERD)
    if unit != MASTERD:
        for node in quick.nodes:
            quick.kill9_now(node, AGENTD)
    thread.join(60)
    quick.wait_nodes()
    jobs = [row for row in quick.primusctl_json("list", "--all", user="ml") if row["name"] == name]
    if thread.done.returncode == 0:
        assert [row["job"] for row in jobs] == [json.loads(thread.done.stdout)["job"]]
    assert len(jobs) <= 1
    for row in jobs:  # recorded, perhaps without its submitter having heard of it
        assert quick.wait_job(row["job"]) == 0
    starts, ends = ledger.attempts()
    assert starts == ends == {("worker", index, 1): 1 for index in range(6 if jobs else 0)}


@pytest.mark.parametrize("seed", range(6))
def test_killed_around_a_kill(quick, ledger, seed):
    """`primusctl kill` that was answered ends the job as KILLED, whoever dies meanwhile."""
    rng = random.Random(seed)
    job = quick.submit(ledger.config("trap 'say end; exit 0' TERM; say ready; sleep 60 & wait", num=3, scheduleStrategy={
        "maxReplicasPerNode": 1}))
    quick.wait_for(lambda: len(ledger.entries("ready")) == 3, what="three running executors")
    timer = threading.Timer(rng.uniform(0, 0.1), lambda: [quick.kill9_now(node, unit) for node, unit in rng.choice([
        [("n1", MASTERD)], [(node, AGENTD) for node in quick.nodes], [("n1", MASTERD), ("n2", AGENTD)]])])
    timer.start()
    killed = quick.run("n1", "primusctl", "kill", str(job), user="ml")
    timer.join()
    if killed.returncode != 0:
        quick.wait_nodes()
        quick.run("n1", "primusctl", "kill", str(job), user="ml")
    assert quick.wait_job(job) == 3
    assert len(ledger.entries("end")) == len(ledger.entries("start")) == 3


def test_warnings_are_kept(quick):
    """What a configuration was warned of is said at its submission and by `status`, over a kill of masterd."""
    config = json.dumps({"name": "warned", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "javaOpts": "-Xmx1g", "command": "sleep 60"}]})
    submitted = quick.run("n1", "primusctl", "submit", "--json", "-", user="ml", input=config)
    job = json.loads(submitted.stdout)["job"]
    assert "javaOpts" in submitted.stderr
    told = quick.status(job)["warnings"]
    assert len(told) == 1 and "javaOpts" in told[0], told
    quick.kill9("n1", MASTERD)
    quick.wait_nodes()
    assert quick.status(job)["warnings"] == told
    assert told[0] in quick.primusctl("status", str(job))
    quick.kill(job)
    assert quick.status(job)["warnings"] == told
