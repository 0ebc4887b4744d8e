# SPDX-License-Identifier: Apache-2.0
"""Arrays, dependencies, begin, rerun, and what all of it costs (usage): also when masterd is killed."""
import json
import random
import time
from collections import Counter

import pytest
from sandbox import MASTERD

NEVER = {"commonFailoverPolicy": {"restartType": "NEVER", "maxFailureTimes": 1, "maxFailurePolicy": "FAIL_APP"}}
DAY = 86400 * 10**6


def config(command, name="job", num=1, **keys):
    role = {"roleName": "worker", "num": num, "command": command, "vcores": 0.1, "memoryMb": 16, "failover": NEVER}
    return {"name": name, "role": [role], **keys}


def elements(cluster, array):
    """index -> rows, the latest first."""
    found = {}
    for row in cluster.primusctl_json("list", "--all", "--array", str(array), user="root"):
        found.setdefault(row["index"], []).append(row)
    return found


def kill_master(cluster, pause):
    cluster.kill9_now("n1", MASTERD)
    time.sleep(pause)


def test_a_hundred_and_a_killed_master(cluster, shared_dir):
    """100 elements, 8 at a time, every seventh fails; masterd is killed again and again. None runs twice, none is lost."""
    log = shared_dir / "array.log"
    log.touch()
    log.chmod(0o666)
    flag = shared_dir / "array.good"
    job = cluster.submit(config(f"echo $PRIMUS_ARRAY_JOB $PRIMUS_ARRAY_INDEX $PRIMUS_ARRAY_SIZE >> /shared/{log.name}; sleep 0.1;"
                                f" test -e /shared/{flag.name} || test $((PRIMUS_ARRAY_INDEX % 7)) != 3", array="0-99%8"))
    rng = random.Random(418)
    most = 0
    for _ in range(4):
        time.sleep(rng.uniform(0.3, 1.2))
        kill_master(cluster, 0.2)
        cluster.wait_nodes()
        most = max(most, cluster.status(job)["array"]["running"])
    assert cluster.wait_job(job, timeout=120) == 1
    assert most <= 8
    ran = Counter(log.read_text().split("\n")[:-1])
    assert ran == {f"{job} {i} 100": 1 for i in range(100)}
    rows = elements(cluster, job)
    assert {index: row[0]["state"] for index, row in rows.items()} == {
        i: "FAILED" if i % 7 == 3 else "SUCCEEDED" for i in range(100)}
    assert all(len(row) == 1 for row in rows.values())
    status = cluster.status(job)
    assert status["state"] == "FAILED"
    assert status["array"] == {"size": 100, "waiting": 0, "running": 0, "succeeded": 86, "failed": 14, "killed": 0}
    assert status["reason"].startswith(f"86 of 100 succeeded, 14 failed; first: {job}[")

    # Addressed as N[I].
    element = cluster.status(f"{job}[3]")
    assert (element["state"], element["array"]) == ("FAILED", {"of": job, "index": 3})
    assert cluster.run("n1", "primusctl", "wait", f"{job}[4]", user="ml").returncode == 0
    assert "attempt 1 on" in cluster.primusctl("events", f"{job}[3]")
    assert cluster.run("n1", "primusctl", "status", f"{job}[100]", user="ml").returncode == 1
    # One line in the list.
    listed = [row for row in cluster.primusctl_json("list", "--all", user="ml") if row["job"] == job or row.get("array") == job]
    assert [row["job"] for row in listed] == [job]

    # What failed again, under the same number; masterd is killed in the middle of it.
    flag.touch()
    cluster.primusctl("rerun", str(job), "--failed")
    kill_master(cluster, 0.1)
    assert cluster.wait_job(job, timeout=60) == 0
    ran = Counter(log.read_text().split("\n")[:-1])
    assert ran == {f"{job} {i} 100": 2 if i % 7 == 3 else 1 for i in range(100)}
    assert {index: [row["state"] for row in rows] for index, rows in elements(cluster, job).items()} == {
        i: ["SUCCEEDED", "FAILED"] if i % 7 == 3 else ["SUCCEEDED"] for i in range(100)}
    refused = cluster.run("n1", "primusctl", "rerun", str(job), "--failed", user="ml")
    assert refused.returncode == 1 and "has succeeded" in refused.stderr


def test_kill_of_an_array(cluster):
    job = cluster.submit(config("sleep 60", array="0-999%5"))
    cluster.wait_for(lambda: cluster.status(job)["array"]["running"] == 5, what="five elements that run")
    cluster.primusctl("kill", f"{job}[2]")
    cluster.wait_for(lambda: cluster.status(job)["array"]["killed"] == 1, what="one that is killed")
    cluster.wait_for(lambda: cluster.status(job)["array"]["running"] == 5, what="another in its place")
    behind = json.loads(cluster.primusctl("submit", "--json", "--after", str(job), "-", input=json.dumps(config("true"))))["job"]
    cluster.primusctl("kill", str(job))
    assert cluster.wait_job(job) == 3
    assert cluster.status(job)["array"]["running"] == 0
    assert {row[0]["state"] for row in elements(cluster, job).values()} == {"KILLED"}
    assert len(elements(cluster, job)) == 6
    assert cluster.wait_job(behind) == 3


def test_what_an_array_as_a_whole_cannot_do(cluster):
    """Each says that elements are meant, and none is silent or says that nothing runs."""
    job = cluster.submit(config("exec sleep 300", array="2,5"))
    cluster.wait_for(lambda: cluster.status(job)["array"]["running"] == 2, what="both elements")
    own = {row[0]["index"]: row[0]["job"] for row in elements(cluster, job).values()}
    for one in own.values():
        cluster.wait_state(one, "RUNNING")
    for command in (("stacks",), ("stacks", "worker/0"), ("trace", "--runqueue=1s"), ("exec", "worker/0", "--", "true"), ("exec", "0", "--", "true"), ("forward", "0", "8765"),
                    ("restart",), ("restart", "worker/0"), ("replace", "n1"), ("requeue",), ("succeed",), ("scale", "worker=2"), ("update", "priority=1")):
        done = cluster.run("n1", "primusctl", command[0], str(job), *command[1:], user="ml")
        assert done.returncode not in (0, 2) and "is an array: " in done.stderr and done.stdout == "", (command, done)
    # Of an element it goes, by its index or by its own number.
    for name in (f"{job}[2]", str(own[5])):
        for command in (("status",), ("stacks",), ("exec", "worker/0", "--", "true"), ("events",), ("why",), ("config",), ("top", "--once"), ("restart",), ("logs",)):
            done = cluster.run("n1", "primusctl", command[0], name, *command[1:], user="ml")
            assert done.returncode == 0 and (done.stdout or command[0] in ("exec", "logs")), (command, name, done)
            cluster.wait_for(lambda: cluster.status(job)["array"]["running"] == 2, what="the element again")
    cluster.primusctl("kill", str(job))
    assert cluster.primusctl("kill", str(job)) in (f"Job {job} is being killed\n", f"Job {job} has ended already: KILLED\n")
    assert cluster.wait_job(job) == 3
    assert cluster.primusctl("kill", f"{job}[5]") == f"Job {own[5]} has ended already: KILLED\n"


def test_output_of_an_array(cluster):
    """Every line of every element, also from who follows while masterd is killed; what failed is said to be whose."""
    command = ("echo begin $PRIMUS_ARRAY_INDEX; sleep 0.$((PRIMUS_ARRAY_INDEX % 3)); echo end $PRIMUS_ARRAY_INDEX; test $PRIMUS_ARRAY_INDEX != 5 || "
               "python3 -c 'raise KeyError(\"no such rate\")'")
    text = json.dumps(config(command, array="0-39%6"))
    job = cluster.submit(config(command, array="0-39%6"))
    with cluster.process("n1", "primusctl", "logs", "-f", str(job), user="ml") as follow:
        cluster.wait_for(lambda: cluster.status(job)["array"]["succeeded"] >= 6, what="elements that have ended")
        kill_master(cluster, 0.2)
        followed = follow.communicate(timeout=120)[0]
    assert cluster.wait_job(job, timeout=60) == 1
    wanted = sorted(f"[{i}] worker/0 | {word} {i}" for i in range(40) for word in ("begin", "end"))
    for how, output in (("followed", followed), ("afterwards", cluster.primusctl("logs", str(job)))):
        lines = output.splitlines()
        missing = Counter(wanted) - Counter(lines)
        assert not missing, f"{how}: {missing}; said: {[line for line in lines if 'worker/0 |' not in line]}"
        assert sum(" | begin " in line or " | end " in line for line in lines) == 80
        assert "[5] worker/0 | KeyError: 'no such rate'" in lines
    done = cluster.run("n1", "primusctl", "submit", "--wait", "-", user="ml", input=text)
    assert done.returncode == 1
    number = int(done.stdout.split("Submitted job ")[1].split()[0])
    assert f"{number}[5]: " in done.stdout and "KeyError: 'no such rate'" in done.stdout
    assert f"primusctl logs {number}[5] " in done.stdout
    assert "no such rate" in cluster.status(number)["firstError"]
    assert cluster.primusctl("logs", str(number), "--tail", "1").splitlines()[:6] == [
        f"[{i}] worker/0 | " + (f"end {i}" if i != 5 else "KeyError: 'no such rate'") for i in range(6)]


def test_after(cluster):
    first = cluster.submit(config("sleep 5; exit 3", name="first"))

    def behind(name, *after):
        options = [o for a in after for o in ("--after", a)]
        return json.loads(cluster.primusctl("submit", "--json", "--name", name, *options, "-",
                                            input=json.dumps(config("true"))))["job"]

    ok, fail, both = behind("ok", f"{first}:ok"), behind("fail", f"{first}:fail"), behind("both", f"{first}:any")
    chain = behind("chain", str(ok))
    late = behind("late", f"{fail},{both}:any")
    assert cluster.status(ok)["reason"].startswith(f"after job {first} (")
    assert cluster.status(chain)["reason"] == f"after job {ok} (QUEUED)"
    kill_master(cluster, 0.2)
    cluster.wait_nodes()
    assert cluster.wait_job(first) == 1
    assert [cluster.wait_job(j) for j in (ok, fail, both, chain, late)] == [3, 0, 0, 3, 0]
    assert cluster.status(ok)["reason"] == f"job {first} failed, and this one was to run after its success (after {first}:ok)"
    assert cluster.status(chain)["reason"] == f"job {ok} was killed, and this one was to run after its success (after {ok}:ok)"
    # Of one that has ended.
    assert cluster.wait_job(behind("again", f"{first}:fail")) == 0
    done = cluster.run("n1", "primusctl", "submit", "--after", "999999", "-", user="ml", input=json.dumps(config("true")))
    assert done.returncode == 1 and "there is no job 999999" in done.stderr


def test_after_an_element(cluster, shared_dir):
    """Also of one that is not made yet, over a restart, and of one that never is."""
    go = shared_dir / "after-an-element"  # for the first three; the others never get one
    text = json.dumps(config(f"while [ ! -e /shared/{go.name}.$((PRIMUS_ARRAY_INDEX > 2)) ]; do sleep 0.1; done; test $PRIMUS_ARRAY_INDEX != 1", array="0-9%1"))
    array = json.loads(cluster.primusctl("submit", "--json", "-", input=text))["job"]

    def behind(after):
        return json.loads(cluster.primusctl("submit", "--json", "--after", after, "-", input=json.dumps(config("true"))))["job"]

    first, failed, wrong, late, killed, never = (behind(f"{array}[{after}") for after in ("0]", "1]:fail", "1]", "2]:any", "9]:any", "9]"))
    assert cluster.status(late)["reason"] == f"after job {array}[2] (not begun)"
    assert cluster.status(first)["reason"].startswith(f"after job {array}[0] (")
    cluster.wait_for(lambda: cluster.status(array)["array"]["running"] == 1, what="one that runs")
    kill_master(cluster, 0.2)
    cluster.wait_nodes()
    assert cluster.status(late)["reason"] == f"after job {array}[2] (not begun)"
    go.with_suffix(".0").touch()
    assert [cluster.wait_job(j, timeout=60) for j in (first, failed, wrong, late)] == [0, 0, 3, 0]
    assert cluster.status(wrong)["reason"] == f"job {array}[1] failed, and this one was to run after its success (after {array}[1]:ok)"
    ended = {row["index"]: row["ended"] for (row,) in elements(cluster, array).values()}
    for job, index in ((first, 0), (failed, 1), (late, 2)):
        assert cluster.status(job)["executors"][0]["started"] >= ended[index]
    assert cluster.status(killed)["state"] == cluster.status(never)["state"] == "QUEUED"
    cluster.primusctl("kill", str(array))
    assert [cluster.wait_job(j) for j in (killed, never)] == [0, 3]
    assert cluster.status(never)["reason"].startswith(f"job {array}[9] was killed")
    # Of one that has ended; what there is not is refused.
    assert cluster.wait_job(behind(f"{array}[0]")) == 0
    assert cluster.wait_job(behind(f"{array}[1]")) == 3
    for there_is_no in (f"{array}[10]", f"{first}[0]", "999999[0]"):
        done = cluster.run("n1", "primusctl", "submit", "--after", there_is_no, "-", user="ml", input=json.dumps(config("true")))
        assert done.returncode == 1 and f"there is no job {there_is_no}" in done.stderr


def test_begin(cluster):
    begin = time.time() + 3
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begin))
    job = cluster.submit(config("true", begin=text))
    assert cluster.status(job)["reason"] == f"begins at {text}"
    kill_master(cluster, 0.2)
    cluster.wait_nodes()
    assert cluster.wait_job(job) == 0
    assert cluster.status(job)["executors"][0]["started"] >= int(begin) * 10**6


def test_rerun(cluster):
    job = cluster.submit(config("test -n \"$KEY\" || exit 3"))
    assert cluster.wait_job(job) == 1
    again = cluster.primusctl_json("rerun", str(job), "--env", "KEY=1")["job"]
    assert again > job and cluster.wait_job(again) == 0
    refused = cluster.run("n1", "primusctl", "rerun", str(again), user="ml")
    assert refused.returncode == 1 and "had variables of its submitter" in refused.stderr


def test_rerun_changed(cluster):
    """Another value of any key; what is no key, or would not be valid, is refused as at submit."""
    job = cluster.submit(config("exit 3"))
    assert cluster.wait_job(job) == 1
    again = cluster.primusctl_json("rerun", str(job), "--set", "worker.command=echo changed $WORD", "--set", "env.WORD=word", "--set", "name=other")["job"]
    assert cluster.wait_job(again) == 0 and "changed word" in cluster.primusctl("logs", str(again)) and cluster.status(again)["name"] == "other"
    for wrong, says in (("worker.nothing=1", "nothing"), ("worker.num=0", "num"), ("=1", "--set KEY=VALUE"), ("priority", "--set KEY=VALUE"), ("visible=everybody", "visible")):
        refused = cluster.run("n1", "primusctl", "rerun", str(job), "--set", wrong, user="ml")
        assert refused.returncode in (1, 2) and says in refused.stderr, wrong
    refused = cluster.run("n1", "primusctl", "rerun", str(job), "--set", "priority=1", user="eve")
    assert refused.returncode != 0
    array = cluster.submit(config("exit 3", array="0-1"))
    assert cluster.wait_job(array) == 1
    refused = cluster.run("n1", "primusctl", "rerun", "--failed", "--set", "priority=1", str(array), user="ml")
    assert refused.returncode == 1 and "runs again as what it was" in refused.stderr


@pytest.mark.parametrize("bad", ["", "1-", "9-0", "0-9%0", "0-9%", "0-9:0", "1,1", "0-100000", "a", "0-9%8%8", "-1"])
def test_bad_ranges(cluster, bad):
    done = cluster.run("n1", "primusctl", "submit", f"--array={bad}", "-", user="ml", input=json.dumps(config("true")))
    assert done.returncode in (1, 2) and "array" in done.stderr


@pytest.mark.parametrize("options, expected", [
    (["--after", "0"], "must be a job's number"),
    (["--after", "1:maybe"], "must be a job's number"),
    (["--begin", "noon"], "expected a time"),
    (["--begin", "2026-02-30"], "expected a time"),
])
def test_bad_options(cluster, options, expected):
    done = cluster.run("n1", "primusctl", "submit", *options, "-", user="ml", input=json.dumps(config("true")))
    assert done.returncode in (1, 2) and expected in done.stderr


# ---- usage


def pieces(begin, end):
    while begin < end:
        stop = min(end, (begin // DAY + 1) * DAY)
        yield begin // DAY, stop - begin
        begin = stop


def expected_usage(cluster, owner):
    """From the executors of every job that there is: (day, job) -> cpu held, cpu used, memory held, attempts."""
    sums = {}
    for row in cluster.primusctl_json("list", "--all", "--elements", "--limit", "10000", user="root"):
        if row["owner"] != owner:
            continue
        roles = {r["roleName"]: r for r in json.loads(cluster.primusctl("config", str(row["job"]), user="root"))["role"]}
        listed = cluster.bus_executors(row["job"])
        for e in listed:
            if not e["placed"] or not e["ended"]:
                continue
            milli = round(float(roles[e["role"]]["vcores"]) * 1000)
            mib = roles[e["role"]]["memoryMb"]
            last = None
            for day, usec in pieces(e["placed"], max(e["ended"], e["placed"])):
                s = sums.setdefault((day, row.get("array", row["job"])), [0, 0, 0, 0])
                s[0] += milli * usec // 1000
                s[2] += mib * usec // 1000
                last = s
            if last:
                last[1] += e["cpu"] or 0
                last[3] += 1
    return {key: tuple(value) for key, value in sums.items()}


def told_usage(cluster):
    rows = cluster.primusctl_json("usage", "--by", "day,job", user="ml")
    return {(row["day"], row["job"]): (row["cpuHeldUsec"], row["cpuUsedUsec"], row["memoryHeldMibMsec"], row["attempts"])
            for row in rows if row["attempts"]}


def bus_executors(cluster, job):
    """Every attempt, as masterd tells it."""
    cluster.primusctl("status", str(job), user="root")  # brings it into memory
    answer = json.loads(cluster.exec("n1", "busctl", "--json=short", "call", "org.primus.Master1", f"/org/primus/Master1/job/{job}",
                                     "org.primus.Master1.Job", "ListExecutors", "b", "true"))
    found = []
    for role, index, attempt, state, _node, _unit, _rank, started, ended, more in answer["data"][0]:
        value = {key: v["data"] for key, v in more.items()}
        found.append({"role": role, "index": index, "attempt": attempt, "state": state, "started": started, "ended": ended,
                      "placed": value.get("placed", 0), "cpu": value.get("cpu", 0)})
    return found


def test_usage_is_the_sum_over_history(new_cluster):
    cluster = new_cluster(nodes=2, conf=["masterd.conf:Master.KeepJobs=1"])
    cluster.bus_executors = lambda job: bus_executors(cluster, job)
    cluster.wait_nodes()
    owner = int(cluster.exec("n1", "id", "-u", "ml"))
    failing = config("sleep 0.2; exit 3", num=2)
    failing["role"][0]["failover"] = {"commonFailoverPolicy": {"restartType": "ON_FAILURE", "maxFailureTimes": 2,
                                                               "maxFailurePolicy": "FAIL_APP"}}
    jobs = [cluster.submit(config("for i in $(seq 20000); do :; done", num=3)),
            cluster.submit(failing), cluster.submit(config("sleep 0.3", array="0-9%4")),
            cluster.submit(config("sleep 30"))]
    time.sleep(0.7)
    kill_master(cluster, 0.2)
    cluster.wait_nodes()
    for job in jobs[:3]:
        cluster.wait_job(job)
    running = [row for row in cluster.primusctl_json("usage", "--by", "job", user="ml") if row["running"]]
    assert [row["job"] for row in running] == [jobs[3]]
    assert running[0]["cpuHeldUsec"] > 0
    cluster.kill(jobs[3])
    kill_master(cluster, 0.2)
    cluster.wait_nodes()
    wanted, told = expected_usage(cluster, owner), told_usage(cluster)
    day = lambda n: time.strftime("%Y-%m-%d", time.gmtime(n * 86400))
    assert told == {(day(n), job): value for (n, job), value in wanted.items()}
    # All of it is one row by user and pool; the sum does not change when nobody asks by job.
    (row,) = cluster.primusctl_json("usage", user="ml")
    assert (row["user"], row["pool"]) == ("ml", "default")
    assert row["cpuHeldUsec"] == sum(v[0] for v in wanted.values())
    assert row["memoryHeldMibMsec"] == sum(v[2] for v in wanted.values())
    assert row["gpuUsedUsec"] is None
    assert cluster.primusctl("usage", "--csv").count("\n") == 2
    assert cluster.run("n1", "primusctl", "usage", "--by", "colour", user="ml").returncode == 2
    # Of somebody else's by job those that one may look at (none), by role nothing, and all by user.
    others = cluster.run("n1", "primusctl", "usage", "--by", "job", "--user", "root", user="ml")
    assert others.returncode == 0 and others.stdout == ""
    others = cluster.run("n1", "primusctl", "usage", "--by", "role", "--user", "root", user="ml")
    assert others.returncode == 1 and "that you may look at" in others.stderr
