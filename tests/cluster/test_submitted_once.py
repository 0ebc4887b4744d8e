# SPDX-License-Identifier: Apache-2.0
"""Submissions under a key: the same again is the same job, whoever dies meanwhile; and trials, of which nothing stays."""
import json
import random
import threading

import pytest
from bus_calls import BUSABLE
from sandbox import MASTERD

JOB = {"name": "once", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "exec sleep 600"}]}


def submit(cluster, config, *options, user="ml"):
    return cluster.run("n1", "primusctl", "submit", *options, "-", user=user, input=json.dumps(config))


def numbers(cluster, name):
    return [row["job"] for row in cluster.primusctl_json("list", "-a") if row["name"] == name]


@pytest.fixture
def name(cluster, request):
    """Of this test's jobs, which end with it."""
    name = request.node.name.replace("[", "-").replace("]", "").replace("test_", "")[:60]
    yield name
    for number in numbers(cluster, name):
        cluster.run("n1", "primusctl", "kill", str(number))


def test_the_same_again(quick, name):
    config = {**JOB, "name": name}
    first = submit(quick, config, "--key", name)
    number = quick.primusctl_json("list")[0]["job"]
    assert first.stdout == f"Submitted job {number} ({name})\n"
    quick.kill9("n1", MASTERD)
    again = submit(quick, config, "--key", name)
    assert (again.stdout, numbers(quick, name)) == (first.stdout, [number])
    other = submit(quick, {**config, "priority": 1}, "--key", name)
    assert other.returncode == 1 and f"was used for job {number}" in other.stderr
    assert submit(quick, config, "--key", name, "--env", "A=1").returncode == 1
    eves = submit(quick, {**config, "name": name + "-eve"}, "--key", name, user="eve")
    assert eves.returncode == 0 and f"job {number} " not in eves.stdout
    quick.primusctl("kill", *map(str, numbers(quick, name + "-eve")), user="root")
    # Also when the job has ended, and when it is gone.
    quick.primusctl("kill", str(number))
    quick.wait_job(number)
    assert submit(quick, config, "--key", name).stdout == first.stdout
    quick.primusctl("delete", str(number))
    assert submit(quick, config, "--key", name).stdout == first.stdout
    assert numbers(quick, name) == []


def test_many_at_once(quick, name):
    """Whoever comes while the first is under way waits for its answer."""
    done = []
    threads = [threading.Thread(target=lambda: done.append(submit(quick, {**JOB, "name": name}, "--key", name, "--parsable"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (number,) = numbers(quick, name)
    assert [d.stdout for d in done] == [f"{number}\n"] * 8


@pytest.mark.parametrize("seed", range(8))
def test_masterd_dies(quick, name, seed):
    """`submit` asks again, under a key of its own, and there is one job."""
    timer = threading.Timer(random.Random(seed).uniform(0.005, 0.09), quick.kill9_now, ("n1", MASTERD))
    timer.start()
    done = submit(quick, {**JOB, "name": name}, "--parsable")
    timer.join()
    assert done.returncode == 0, done.stderr
    assert numbers(quick, name) == [int(done.stdout)]


def test_a_dependency_that_is_looked_up(quick, name):
    """Of a job that waits for one that has left memory nothing is known until that was found; the key is taken all the while."""
    gone = quick.submit({**JOB, "role": [{**JOB["role"][0], "command": "true"}]})
    quick.wait_job(gone)
    quick.kill9("n1", MASTERD)
    config = {**JOB, "name": name}
    unknown = submit(quick, config, "--key", name, "--after", "999999")
    assert unknown.returncode == 1 and "no job 999999" in unknown.stderr
    first = submit(quick, config, "--key", name, "--after", str(gone), "--parsable")
    assert submit(quick, config, "--key", name, "--after", str(gone), "--parsable").stdout == first.stdout
    assert numbers(quick, name) == [int(first.stdout)]


def test_trial(quick, name):
    def trial(config, *options, user="ml"):
        return json.loads(quick.exec("n1", "primusctl", "submit", "--dry-run", "--json", *options, "-", user=user, input=json.dumps(config)))

    config = {**JOB, "name": name}
    before = quick.submit({**JOB, "name": name})
    quick.wait_state(before, "RUNNING")
    answer = trial(config)
    assert (answer["starts"], answer["executors"], answer["pool"], answer["warnings"]) == (True, 1, "default", [])
    # What is on its hosts cannot be had: why it would wait is what `why` says when it does.
    filling = quick.submit({**JOB, "name": name, "role": [{**JOB["role"][0], "num": 60, "minNum": 1, "vcores": 1}], "timeLimit": "1h"})
    quick.wait_state(filling, "RUNNING")
    large = {**config, "role": [{**JOB["role"][0], "num": 3, "vcores": 1}]}
    answer = trial(large)
    assert not answer["starts"] and answer["executors"] == 0
    number = quick.submit(large)
    quick.wait_for(lambda: quick.primusctl_json("why", str(number))["summary"] not in ("", "waits for its turn"), what="a reason")
    why = quick.primusctl_json("why", str(number))
    for member in ("summary", "position", "hosts", "suggestions", "pool", "priority", "ahead", "victims"):
        assert answer[member] == why[member], member
    behind = why["position"] + 1
    assert trial(large)["position"] == behind
    said = quick.primusctl("submit", "--dry-run", "-", input=json.dumps(large))
    assert said.startswith(f"Nothing was submitted. It would wait in pool default at priority 0, number {behind} in the queue\n") and why["summary"] in said

    answer = trial(config, "--after", str(before), "--array", "0-9%3")
    assert not answer["starts"] and answer["reason"] == f"after job {before} (RUNNING)" and answer["elements"] == 10
    assert "begins at" in trial(config, "--begin", "+2h")["reason"]
    over = quick.submit({**JOB, "name": name, "role": [{**JOB["role"][0], "vcores": 0.01, "command": "true"}]})
    quick.wait_job(over)
    assert trial(config, "--after", f"{over}:ok")["reason"] == "" and not trial(config, "--after", f"{over}:ok")["ends"]
    never = trial(config, "--after", f"{over}:fail")
    assert never["ends"] and not never["starts"] and f"{over}" in never["reason"], never
    assert submit(quick, config, "--dry-run", "--after", f"{over}:fail").stdout.startswith("Nothing was submitted. It would end at once: ")
    refused = submit(quick, {**JOB, "role": [{**JOB["role"][0], "memoryMb": 10 ** 9}]}, "--dry-run")
    assert refused.returncode == 1 and "memory" in refused.stderr
    refused = submit(quick, {**JOB, "rol": 1}, "--dry-run")
    assert refused.returncode == 1 and "rol" in refused.stderr
    assert submit(quick, config, "--dry-run", "--after", "999999").returncode == 1
    # Nothing of it is there: no job, no number, nobody who is known to the pools.
    assert trial(config, user="eve")["pool"] == "default"
    assert 1001 not in [u["user"] for pool in quick.primusctl_json("pools") for u in pool["users"]]
    assert quick.submit(config) == over + 1
    assert sorted(numbers(quick, name)) == [before, filling, number, over, over + 1]


def test_trial_needs_no_files(quick, name):
    """They are looked for where they are, and stay there."""
    quick.exec("n1", "sh", "-c", "mkdir -p /tmp/once && cd /tmp/once && echo x > a && cat > job.json", user="ml", input=json.dumps({**JOB, "name": name, "files": ["a"]}))
    assert "would start now" in quick.primusctl("submit", "--dry-run", "/tmp/once/job.json")
    quick.exec("n1", "rm", "/tmp/once/a", user="ml")
    missing = quick.run("n1", "primusctl", "submit", "--dry-run", "/tmp/once/job.json", user="ml")
    assert missing.returncode == 1 and "a" in missing.stderr
    quick.exec("n1", "rm", "-r", "/tmp/once", user="ml")
    assert numbers(quick, name) == []


def test_on_the_bus(quick):
    """A trial has no key; a key is a text of a kind."""
    said = json.loads(quick.exec("n1", "/usr/bin/python3", "-", user="ml", input=BUSABLE + """
c = json.dumps(%r).encode()
print(json.dumps([call("TrySubmit", "aya{sv}", c, {"key": ("s", "a")}), call("Submit", "aya{sv}", c, {"key": ("s", "a b")}),
                  call("Submit", "aya{sv}", c, {"key": ("u", 1)}), call("TrySubmit", "aya{sv}", c, {"colour": ("s", "a")}),
                  call("TrySubmit", "aya{sv}", b"", {"savepoint": ("s", "mine")})]))
""" % (JOB,)))
    assert [s[0] for s in said] == ["org.freedesktop.DBus.Error.InvalidArgs"] * 4 + ["org.primus.Error.Refused"], said
