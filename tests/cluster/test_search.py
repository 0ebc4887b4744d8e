# SPDX-License-Identifier: Apache-2.0
"""Searches: trials with parameters of their own, what they report, who is stopped; over kills of everything between them."""
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from sandbox import AGENTD, MASTERD, SOURCE
from searching import consistent, kill_rounds, same_to_a_new_master, shown

# The loss falls with the steps to what the trial's quality is. A trial goes on where it was when it is started again.
TRAINER = """
import os, sys, time
from primus import trial
p = trial.params
if p["quality"] in map(int, os.environ.get("INVALID", "").split()):
    trial.invalid()
for step in range(1, 28):
    time.sleep(float(os.environ.get("STEP_SECONDS", "0.05")))
    trial.report_validation(step, loss=p["quality"] + 1 / step, accuracy=step)
print("trained to the end with seed", trial.seed, flush=True)
"""
SPACE = {"quality": {"type": "int", "minval": 1, "maxval": 80}, "net": {"width": {"type": "categorical", "vals": [8, 16]}}}
ASHA = {"method": "asha", "metric": "loss", "space": SPACE, "maxTrials": 9, "maxConcurrent": 3, "maxTime": 27, "divisor": 3, "maxRungs": 4, "seed": 7}


def search_job(search, env=None, command=None):
    role = {"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", TRAINER]}
    if command:
        role = {**role, "command": command}
        del role["argv"]
    return {"name": "s", "search": search, "env": env or {}, "role": [role]}


def test_asha(cluster):
    """From a file to the best trial; each says why it ended."""
    job = cluster.submit(search_job(ASHA))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    rows = consistent(found)
    assert len(rows) == 9 and {r["state"] for r in rows} == {"succeeded"}
    assert found["bestStep"] == 27 and [r["units"] for r in found["rungs"]] == [1, 3, 9, 27]
    # All trials came to the first rung, and few to the top: that is what it is for.
    assert found["rungs"][0]["trials"] == 9 and found["rungs"][3]["trials"] <= 4
    assert sum(r["step"] for r in rows) < 9 * 27 * 0.6
    reason = cluster.primusctl_json("status", str(job))["reason"]
    assert reason == f"9 of 9 trials succeeded; best: trial {found['best']}, loss {found['bestMetric']:.6g} at 27"
    short = next(r for r in rows if r["step"] < 27)
    said = cluster.primusctl("search", "why", f"{job}[{short['trial']}]")
    assert said == cluster.primusctl("why", f"{job}[{short['trial']}]")
    assert "stopped at rung" in said and "loss" in said and ("goes on" in said or "go on" in said)
    best = cluster.primusctl("logs", f"{job}[{found['best']}]")
    assert "trained to the end with seed" in best
    assert f"best: trial {found['best']}, loss" in cluster.primusctl("search", "show", str(job))
    # What the best was given is what its environment had, and what a preview says.
    params = next(r["params"] for r in rows if r["trial"] == found["best"])
    assert found["bestMetric"] == pytest.approx(params["quality"] + 1 / 27) and params["net"]["width"] in (8, 16)
    cluster.exec("n1", "tee", "/tmp/search.json", input=json.dumps(search_job(ASHA)))
    preview = cluster.primusctl_json("search", "preview", "/tmp/search.json", "--trials", "9")
    assert preview["first"] == [r["params"] for r in rows]
    assert [r["expected"] for r in preview["rungs"]] == [9, 3, 1, 1]


@pytest.mark.parametrize("killed", ["masterd", "agentd", "both"])
def test_over_kills(cluster, killed):
    """kill -9 at any time: no trial is lost or made twice, no result counted twice; the search ends with the same trials."""
    search = {**ASHA, "maxTrials": 12, "maxConcurrent": 4}
    job = cluster.submit(search_job(search, env={"STEP_SECONDS": "0.2"}))
    kill_rounds(cluster, killed)
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    rows = consistent(shown(cluster, job))
    assert len(rows) == 12 and {r["state"] for r in rows} == {"succeeded"}
    # A new master reads it back to the same.
    same_to_a_new_master(cluster, job)
    # Every report of every trial arrived: all that ran to the end say so.
    for row in rows:
        if row["rungs"] == 4:
            assert row["step"] == 27


def test_killed_at_every_commit(new_cluster, build, shared_dir):
    """masterd ends ahead of and behind every commit of a trial's event: nothing is lost, made twice or decided otherwise."""
    killer = Path(build, "tests/die-at-commit.so")
    if not killer.exists():
        pytest.skip("die-at-commit is not built")
    cluster = new_cluster(2, binds=[f"{shared_dir}:/shared"])
    log = cluster.state_path("n1", "primus", "die-log")
    shutil.copy(killer, shared_dir / "die-at-commit.so")
    cluster.exec("n1", "sh", "-c", "mkdir -p /run/systemd/system/primus-masterd.service.d && printf '[Service]\n"
                 "Environment=LD_PRELOAD=/shared/die-at-commit.so DIE_LOG=/var/lib/primus/die-log\n' > "
                 "/run/systemd/system/primus-masterd.service.d/die.conf && systemctl daemon-reload && systemctl restart primus-masterd")
    cluster.wait_nodes()
    search = {**ASHA, "maxTrials": 5, "maxConcurrent": 2, "maxTime": 9, "maxRungs": 3}
    job = cluster.submit(search_job(search))
    cluster.exec("n1", "touch", "/var/lib/primus/die-log")
    cluster.exec("n1", "chown", "--reference=/var/lib/primus", "/var/lib/primus/die-log")
    cluster.wait_state(job, "SUCCEEDED", timeout=200)
    kills = Path(log).stat().st_size
    print("killed", kills, "times")
    os.unlink(log)
    # What was seen may have been ahead of a commit that the master did not live to make; from here on it is on disk.
    cluster.wait_nodes()
    cluster.wait_state(job, "SUCCEEDED", timeout=30)
    rows = consistent(shown(cluster, job))
    assert len(rows) == 5 and {r["state"] for r in rows} == {"succeeded"}
    # Each was made, said something and ended: in a commit of its own, or in one with what came of the other one that ran.
    assert kills >= 2 * 3 * 5 // search["maxConcurrent"]
    same_to_a_new_master(cluster, job)
    undisturbed = cluster.submit(search_job(search))
    cluster.wait_state(undisturbed, "SUCCEEDED", timeout=60)
    assert [r["params"] for r in shown(cluster, undisturbed)["list"]] == [r["params"] for r in rows]


def test_invalid(cluster):
    """A trial that says that its parameters make no sense does not count, and there is another; a space of such alone ends."""
    values = [row["quality"] for row in preview_params(cluster, ASHA, 9)]
    job = cluster.submit(search_job({"method": "random", "metric": "loss", "space": SPACE, "seed": 7, "maxTrials": 4}, env={"INVALID": f"{values[1]} {values[2]}", "STEP_SECONDS": "0.01"}))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    assert found["invalid"] == 2 and found["made"] == 6
    assert [r["state"] for r in found["list"]][1:3] == ["invalid", "invalid"]
    assert found["best"] not in (1, 2)
    job = cluster.submit(search_job({"method": "random", "metric": "loss", "space": SPACE, "maxTrials": 2}, env={"INVALID": " ".join(map(str, range(81)))}))
    cluster.wait_state(job, "FAILED", timeout=60)
    assert "too many of its trials were invalid: look at its space" in cluster.primusctl_json("status", str(job))["reason"]


def test_invalid_by_status(cluster):
    """Exit status 78 says the same for programs in any language, is not tried again, and is no fault of the host; a rule of the
    job's own goes before it, and in a job that is no trial it is a failure like any."""
    values = [row["quality"] for row in preview_params(cluster, ASHA, 9)]
    command = f"case $PRIMUS_TRIAL_PARAMS in *'\"quality\":{values[1]}'[,}}]*) exit 78;; esac"
    search = {"method": "random", "space": SPACE, "seed": 7, "maxTrials": 3}
    job = cluster.submit({**search_job(search, command=command), "maxAppAttempts": 3})
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    assert found["invalid"] == 1 and found["made"] == 4 and [r["state"] for r in found["list"]] == ["succeeded", "invalid", "succeeded", "succeeded"]
    ended = cluster.primusctl_json("status", str(found["list"][1]["job"]))
    assert ended["state"] == "KILLED" and ended["attempt"] == 1 and ended["executors"][0]["attempt"] == 1
    assert "exit status 78: its parameters make no sense" in cluster.primusctl("events", f"{job}[1]")
    plain = search_job(search, command=command)
    plain["role"][0].update(exitCodes=[{"codes": "78", "action": "success"}])
    job = cluster.submit(plain)
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    assert shown(cluster, job)["invalid"] == 0
    job = cluster.submit({"name": "plain", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "command": "exit 78", "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}}]})
    cluster.wait_state(job, "FAILED", timeout=30)


def test_parameters_in_arguments(cluster):
    """{hp.NAME} in argv is a parameter's value, one argument whatever it holds; what a trial does not have is left out."""
    points = [{"lr": 0.5, "net": {"width": 8}, "opt": "a b; touch /tmp/hacked $(id)"}, {"lr": 2, "net": {"width": 16}}]
    argv = ["python3", "-c", "import sys; print(sys.argv[1:], flush=True)", "--lr={hp.lr}", "{hp.net.width}x{hp.net}", "--opt={hp.opt}", "{lr}"]
    config = search_job({"method": "list", "points": points})
    config["role"][0]["argv"] = argv
    job = cluster.submit(config)
    cluster.wait_state(job, "SUCCEEDED", timeout=30)
    assert cluster.primusctl("logs", f"{job}[0]").strip() == str(["--lr=0.5", '8x{"width":8}', "--opt=a b; touch /tmp/hacked $(id)", "{lr}"])
    assert cluster.primusctl("logs", f"{job}[1]").strip() == str(["--lr=2", '16x{"width":16}', "{lr}"])
    for change, said in (({"argv": ["true", "{hp.rate}"]}, "{hp.rate}: the search has no parameter of that name"), ({"argv": ["{hp.lr}"]}, "cannot be a parameter"),
                         ({"command": "train --lr {hp.lr}"}, "a shell would take the value of {hp.lr} for a part of the program")):
        config["role"][0] = {k: v for k, v in config["role"][0].items() if k not in ("argv", "command")} | change
        refused = cluster.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(config))
        assert refused.returncode != 0 and said in refused.stderr, refused.stderr
    # Without a search it is a text as any.
    plain = cluster.submit({"name": "plain", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "argv": ["echo", "{hp.lr}"]}]})
    cluster.wait_state(plain, "SUCCEEDED")
    assert cluster.primusctl("logs", str(plain)).strip() == "{hp.lr}"


def preview_params(cluster, search, n):
    cluster.exec("n1", "tee", "/tmp/search.json", input=json.dumps(search_job(search)))
    return cluster.primusctl_json("search", "preview", "/tmp/search.json", "--trials", str(n))["first"]


DIGITS = "/usr/share/doc/primus/examples/digits/data"


def digits_job(**more):
    with open(f"{SOURCE}/examples/search/search.json", encoding="utf-8") as file:
        job = json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.M))
    with open(f"{SOURCE}/examples/search/train.py", encoding="utf-8") as file:
        program = file.read()
    del job["files"]
    job["role"][0] = {**job["role"][0], "argv": ["python3", "-c", program, DIGITS]}
    del job["role"][0]["command"]
    job["search"].update(more)
    return job


def test_better_than_random(cluster):
    """The example: with the same work and the same trials, ASHA's best is better than that of trials trained to the end."""
    job = cluster.submit(digits_job())
    # In the middle of it a trial is to go elsewhere, and both daemons of a host die.
    cluster.wait_for(lambda: shown(cluster, job)["made"] > 9, 60, "ten trials")
    running = [r["trial"] for r in shown(cluster, job)["list"] if r["state"] == "runs"]
    for trial in running[:2]:
        cluster.run("n1", "primusctl", "requeue", f"{job}[{trial}]", user="ml")
    cluster.kill9_now("n2", AGENTD)
    cluster.kill9_now("n1", MASTERD)
    cluster.wait_nodes()
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    asha = shown(cluster, job)
    rows = consistent(asha)
    assert len(rows) == 27
    units = sum(r["step"] for r in rows)
    alone = max(units // 27, 1)
    job = cluster.submit(digits_job(method="random", maxTrials=alone, maxConcurrent=3, maxTime=0, divisor=4, maxRungs=5))
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    random_search = shown(cluster, job)
    print(f"ASHA: trial {asha['best']}, loss {asha['bestMetric']:.4f} after {units} epochs in all; "
          f"random: trial {random_search['best']}, loss {random_search['bestMetric']:.4f} after {sum(r['step'] for r in random_search['list'])}")
    assert sum(r["step"] for r in random_search["list"]) == 27 * alone
    assert [r["params"] for r in random_search["list"]] == [r["params"] for r in rows[:alone]]
    assert asha["best"] == 17  # of all 27 the best after the first epoch, and at the end
    assert asha["bestMetric"] < random_search["bestMetric"] * 0.8


def refused_to_continue(cluster, said, *arguments, user="ml"):
    refused = cluster.run("n1", "primusctl", "search", "continue", *arguments, user=user)
    assert refused.returncode != 0 and said in refused.stderr, refused.stderr


def test_continue(cluster):
    """More trials: while it runs, and when it has ended, over a restart of the master; what was decided counts. Then one that was killed."""
    job = cluster.submit(search_job({**ASHA, "maxTrials": 4}, env={"STEP_SECONDS": "0.1"}))
    assert cluster.primusctl("search", "continue", "--trials", "6", str(job)) == f"Search {job} goes on, to 6 trials\n"
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    before = shown(cluster, job)
    assert len(consistent(before)) == 6 and before["trials"] == 6
    for said, *args in (("is to have 6 trials already", "--trials", "6", str(job)), ("All 6 trials", str(job)),
                        ("may have 100000 trials", "--trials", "100001", str(job)), ("is no search", str(before["list"][0]["job"]))):
        refused_to_continue(cluster, said, *args)
    happened = cluster.events(job)
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    cluster.primusctl("search", "continue", "--trials", "9", str(job))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    rows = consistent(found)
    assert len(rows) == 9 and [r["job"] for r in rows[:6]] == [r["job"] for r in before["list"]]
    assert [r for r in rows if r["trial"] < 6] == [r for r in before["list"]]
    assert "9 of 9 trials succeeded" in cluster.primusctl_json("status", str(job))["reason"]
    events = [e["text"] for e in sorted(cluster.events(job, "continued"), key=lambda e: e["time"])]
    assert re.fullmatch(r"more: 6 trials altogether, \d are there \(uid 1000\)", events[0]) and events[1:] == ["begun again: 9 trials altogether, 6 are there (uid 1000)"], events
    # All that happened before is there, too.
    assert len(happened) > 3 and [e for e in cluster.events(job) if e in happened] == happened
    # The parameters are those of a search that was to have nine from the beginning.
    cluster.exec("n1", "tee", "/tmp/search.json", input=json.dumps(search_job(ASHA)))
    preview = cluster.primusctl_json("search", "preview", "/tmp/search.json", "--trials", "9")
    assert preview["first"] == [r["params"] for r in sorted(rows, key=lambda r: r["trial"])]
    same_to_a_new_master(cluster, job)
    killed = cluster.submit(search_job({**ASHA, "maxConcurrent": 1}, env={"STEP_SECONDS": "0.1"}))
    cluster.wait_for(lambda: len(shown(cluster, killed)["list"]) == 2, 30, "its second trial")
    cluster.primusctl("suspend", "--stop", str(killed))
    cluster.primusctl("kill", str(killed))
    cluster.wait_state(killed, "KILLED")
    assert cluster.primusctl("search", "continue", str(killed)) == f"Search {killed} goes on\n"
    cluster.wait_state(killed, "SUCCEEDED", timeout=90)
    rows = consistent(shown(cluster, killed))
    assert len(rows) == 9 and sum(r["state"] == "failed" for r in rows) <= 2
    later = cluster.submit({**search_job(ASHA), "begin": "2030-01-01T00:00:00Z"})
    cluster.primusctl("search", "continue", "--trials", "12", str(later))
    assert shown(cluster, later)["trials"] == 12 and shown(cluster, later)["list"] == [] and cluster.status(later)["state"] == "QUEUED"
    cluster.primusctl("kill", str(later))
    grid = cluster.submit(search_job({"method": "list", "points": [{"quality": 1, "net": {}}], "metric": "loss"}))
    refused_to_continue(cluster, "a trial for each of its 1 points", "--trials", "2", str(grid))
    refused_to_continue(cluster, "is ml's: only ml and administrators", "--trials", "20", str(job), user="eve")
    cluster.primusctl("kill", str(grid))


def test_grid_and_list(cluster):
    """Every point once; no metric is needed; a trial that says invalid is not replaced."""
    echo = 'case "$PRIMUS_TRIAL_PARAMS" in *3*) exit 1;; esac; echo "$PRIMUS_TRIAL of $PRIMUS_ARRAY_SIZE: $PRIMUS_TRIAL_PARAMS"'
    job = cluster.submit(search_job({"method": "grid", "space": {"a": {"type": "int", "minval": 1, "maxval": 2, "count": 2}, "b": {"c": {"type": "categorical", "vals": ["x", None]}}}}, command=echo))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    assert [cluster.primusctl("logs", f"{job}[{n}]").strip().split("| ")[-1] for n in range(4)] == [
        '0 of 4: {"a":1,"b":{"c":"x"}}', '1 of 4: {"a":1,"b":{"c":null}}', '2 of 4: {"a":2,"b":{"c":"x"}}', '3 of 4: {"a":2,"b":{"c":null}}']
    job = cluster.submit(search_job({"method": "list", "points": [{"a": 1}, {"a": 3}, {"a": "2"}]}, command=echo))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    assert [r["state"] for r in found["list"]] == ["succeeded", "failed", "succeeded"] and found["best"] is None
    assert cluster.run("n1", "primusctl", "rerun", "--failed", str(job), user="ml").stderr.count("is a search") == 1
    # What is no search says so; what it is told, too.
    other = cluster.submit({"name": "o", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "true"}]})
    assert f"Job {other} is no search" in cluster.run("n1", "primusctl", "search", "show", str(other), user="ml").stderr


def test_hostile_reports(cluster):
    """A trial that reports without end and all wrong is bounded: its own search has as many events as there may be, and others go on."""
    flood = "\n".join(("from primus import trial, _lib", "import ctypes, sys, time", "end = time.monotonic() + 8", "n = 0", "while time.monotonic() < end:", "    n += 1",
                       "    trial.report_validation(n % 3 and n or 1, loss=float('nan') if n % 5 else -n)", "print('said', n, flush=True)"))
    job = search_job({"method": "random", "metric": "loss", "space": SPACE, "maxTrials": 1})
    job["role"][0]["argv"] = ["python3", "-c", flood]
    loud = cluster.submit(job)
    cluster.wait_state(loud, "RUNNING")
    began = time.monotonic()
    quiet = cluster.submit(search_job({**ASHA, "maxTrials": 3}, env={"STEP_SECONDS": "0.01"}), user="eve")
    cluster.wait_state(quiet, "SUCCEEDED", timeout=30)
    took = time.monotonic() - began
    cluster.wait_state(loud, "SUCCEEDED", timeout=60)
    found = shown(cluster, loud)
    said = int(cluster.primusctl("logs", f"{loud}[0]").split("said")[-1])
    print(f"{said} results in 8 s; another search of 3 trials took {took:.1f} s meanwhile")
    # 1,000 are kept of a search of one trial: the best of them is the best that is known.
    assert found["best"] == 0 and -1500 < found["bestMetric"] < -500


def test_end_of_a_search(cluster):
    """Killing it kills its trials, and makes no others; it is not changed while it runs."""
    job = cluster.submit(search_job({**ASHA, "maxTrials": 50}, env={"STEP_SECONDS": "5"}))
    cluster.wait_for(lambda: sum(r["state"] == "runs" for r in shown(cluster, job)["list"]) == 3, 20, "three run")
    assert "is an array: its configuration" in cluster.run("n1", "primusctl", "update", str(job), "search.maxTrials=99", user="ml").stderr
    cluster.kill(job)
    found = shown(cluster, job)
    assert found["made"] == 3 and {r["state"] for r in found["list"]} == {"failed"} and found["best"] is None


def test_a_store_that_does_not_fit(new_cluster):
    """What happened to the trials is told again by each new master. Where that does not fit, the search is stopped, and everything else goes on."""
    cluster = new_cluster(1)
    job = cluster.submit(search_job({**ASHA, "maxTrials": 50}, env={"STEP_SECONDS": "0.5"}))
    other = cluster.submit({"name": "o", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "sleep 600"}]})
    cluster.wait_for(lambda: any(r["rungs"] > 1 for r in shown(cluster, job)["list"]), 30, "a trial at the second rung")
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    cluster.exec("n1", "python3", "-c", "import sqlite3; d = sqlite3.connect('/var/lib/primus/primus.db'); "
                 "d.execute('UPDATE trial SET verdict = 1 - verdict WHERE seq = (SELECT max(seq) FROM trial WHERE kind = 1)'); d.commit()")
    cluster.exec("n1", "systemctl", "start", MASTERD)
    cluster.wait_nodes()
    cluster.wait_state(job, "FAILED", timeout=30)
    reason = cluster.primusctl_json("status", str(job))["reason"]
    assert "does not follow from its configuration (event" in reason and "submit it anew" in reason
    cluster.wait_for(lambda: all(cluster.primusctl_json("status", f"{job}[{n}]")["state"] in ("KILLED", "SUCCEEDED") for n in range(3)), 20, "its trials have ended")
    assert cluster.primusctl_json("status", str(other))["state"] == "RUNNING"
    replayed = cluster.run("n1", "primusctl", "search", "replay", str(job), user="ml")
    assert replayed.returncode == 1 and re.search(r"event \d+ of \d+ does not follow from those before it", replayed.stdout)
    assert "is no search" in cluster.run("n1", "primusctl", "search", "replay", str(other), user="ml").stderr
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    assert cluster.primusctl_json("status", str(job))["state"] == "FAILED" and shown(cluster, job)["made"] >= 3


def test_a_host_goes(new_cluster):
    """A host that loses its power takes its trials along; they go on elsewhere, and the search ends with the trial that it would have ended with."""
    cluster = new_cluster(3, conf=["masterd.conf:Master.LostSec=6s"])
    cluster.wait_nodes()
    undisturbed = cluster.submit(search_job({**ASHA, "maxTrials": 6, "maxConcurrent": 6}, env={"STEP_SECONDS": "0.01"}))
    cluster.wait_state(undisturbed, "SUCCEEDED", timeout=60)
    config = search_job({**ASHA, "maxTrials": 6, "maxConcurrent": 6, "method": "random", "maxTime": 0, "divisor": 4, "maxRungs": 5}, env={"STEP_SECONDS": "0.4"})
    job = cluster.submit({**config, "nodes": ["n2", "n3"]})
    cluster.wait_for(lambda: sum(r["step"] > 2 for r in shown(cluster, job)["list"]) == 6, 30, "all have reported")
    where = {r["trial"]: cluster.primusctl_json("status", f"{job}[{r['trial']}]")["executors"][0]["node"] for r in shown(cluster, job)["list"]}
    gone = where[0]
    cluster.crash(gone)
    cluster.wait_state(job, "SUCCEEDED", timeout=90)
    found = shown(cluster, job)
    rows = consistent(found)
    assert len(rows) == 6 and all(r["state"] == "succeeded" and r["step"] == 27 for r in rows)
    assert found["best"] == shown(cluster, undisturbed)["best"] == min(rows, key=lambda r: r["params"]["quality"])["trial"]
    for trial, node in where.items():
        now = cluster.primusctl_json("status", f"{job}[{trial}]")["executors"][0]
        assert now["node"] != gone and now["attempt"] == (2 if node == gone else 1)


# As TRAINER, but that it knows where it was, and remembers how often it was begun.
RESUMED = """
import os, time
from primus import trial
p = trial.params
path = f"/shared/{os.environ['PRIMUS_ARRAY_JOB']}.{os.environ['PRIMUS_TRIAL']}"
done = int(open(path).read()) if os.path.exists(path) else 0
print(f"begins behind {done}", flush=True)
for step in range(done + 1, 28):
    time.sleep(float(os.environ.get("STEP_SECONDS", "0.05")))
    with open(path + "~", "w") as file:
        file.write(str(step))
    os.replace(path + "~", path)
    trial.report_validation(step, loss=p["quality"] + 1 / step)
    while os.path.exists(f"/shared/{os.environ['PRIMUS_ARRAY_JOB']}.hold"):
        time.sleep(0.1)
print("trained to the end", flush=True)
"""


def promotion_job(search=None, env=None):
    job = search_job({**ASHA, "variant": "promote", **(search or {})}, env)
    job["role"][0]["argv"] = ["python3", "-c", RESUMED]
    return job


def units_of(cluster, node, job):
    """What a host has of a job: units, and cgroups."""
    units = cluster.run(node, "systemctl", "list-units", "--all", "--plain", "--no-legend", f"primus-{job}-*").stdout
    groups = cluster.run(node, "find", "/sys/fs/cgroup", "-type", "d", "-name", f"primus-{job}-*").stdout
    return units.strip() + groups.strip()


def test_promotion(cluster, shared_dir):
    """Who is not among the best is parked, and goes on where it was when it is; one is trained to the end. A person cannot resume
    what is parked, and can end it."""
    job = cluster.submit(promotion_job())
    cluster.wait_state(job, "SUCCEEDED", timeout=90)
    found = shown(cluster, job)
    rows = consistent(found)
    assert len(rows) == 9 and {r["state"] for r in rows} == {"succeeded"} and found["bestStep"] == 27
    assert found["rungs"][0]["trials"] == 9 and found["rungs"][3]["trials"] == 1
    best = cluster.primusctl("logs", f"{job}[{found['best']}]")
    assert "trained to the end" in best
    # The first ones were parked; those that went on later did where they were.
    again = [r for r in rows if "it is among the best of its rung now" in cluster.primusctl("events", f"{job}[{r['trial']}]")]
    assert again
    for row in again:
        began = [int(n) for n in re.findall(r"begins behind (\d+)", cluster.primusctl("logs", f"{job}[{row['trial']}]"))]
        assert len(began) >= 2 and began == sorted(began) and began[1] >= 1
    ended = next(r for r in rows if r["step"] < 27)
    said = cluster.primusctl("why", f"{job}[{ended['trial']}]")
    assert "parked to the end" in said
    assert re.search(r"parked at rung 1 of 4 \(1\): loss [\d.]+ is rank \d+ of \d+ there", cluster.primusctl("events", f"{job}[{ended['trial']}]"))
    same_to_a_new_master(cluster, job)

    refused = cluster.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(promotion_job({"maxTrials": 1001})))
    assert refused.returncode != 0 and "at most 1000 where trials are parked" in refused.stderr
    refused = cluster.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(search_job({"method": "random", "space": SPACE, "maxTrials": 2, "variant": "promote"})))
    assert refused.returncode != 0 and "search.variant" in refused.stderr and "means nothing to this method" in refused.stderr
    searched = promotion_job()
    searched["role"].append({**searched["role"][0], "roleName": "searcher"})
    refused = cluster.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(searched))
    assert refused.returncode != 0 and "does not know of parked trials" in refused.stderr


def parked(cluster, job):
    return [r for r in shown(cluster, job)["list"] if r["state"] == "parked"]


def test_parked_holds_nothing(new_cluster, shared_dir):
    """A parked trial has no unit, no cgroup and nothing of what its host has to give; it stays parked over a restart of its host
    and of the master, over a hold of the whole search, and nobody but the search lets it go on."""
    cluster = new_cluster(2, binds=[f"{shared_dir}:/shared"])
    cluster.wait_nodes()
    search = {"maxTrials": 6, "maxConcurrent": 2, "maxTime": 9, "maxRungs": 3}
    job = cluster.submit({**promotion_job(search, env={"STEP_SECONDS": "0.5"}), "nodes": ["n2"]})
    cluster.wait_for(lambda: len(parked(cluster, job)) >= 1, 30, "one is parked")
    cluster.exec("n1", "touch", f"/shared/{job}.hold")
    cluster.wait_for(lambda: parked(cluster, job) and sum(r["state"] == "runs" for r in shown(cluster, job)["list"]) == 2, 30, "others run in its place")
    row = parked(cluster, job)[0]
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(row["job"]))["state"] == "QUEUED", 30, "it has stopped")
    assert units_of(cluster, "n2", row["job"]) == ""
    running = next(r for r in shown(cluster, job)["list"] if r["state"] == "runs")
    cluster.wait_for(lambda: units_of(cluster, "n2", running["job"]) != "", 20, "one that runs has a unit")
    status = cluster.primusctl_json("status", str(row["job"]))
    assert not [x for x in status["executors"] if x["node"]] or all(x["state"] == "PENDING" for x in status["executors"])
    assert "parked by search" in cluster.primusctl("why", str(row["job"]))
    assert re.search(r"\d+ run, \d+ wait, \d+ parked", cluster.primusctl("list"))
    resumed = cluster.run("n1", "primusctl", "resume", str(row["job"]), user="ml")
    assert resumed.returncode != 0 and "lets it go on when it is among the best" in resumed.stderr
    # All of it held and let go on: those that were parked still are.
    cluster.primusctl("suspend", "--stop", str(job))
    cluster.primusctl("resume", str(job))
    assert row["trial"] in [r["trial"] for r in parked(cluster, job)]
    cluster.crash("n2")
    cluster.kill9("n1", MASTERD)
    cluster.boot("n2")
    cluster.wait_nodes()
    assert row["trial"] in [r["trial"] for r in parked(cluster, job)]
    assert cluster.primusctl_json("status", str(row["job"]))["state"] == "QUEUED" and units_of(cluster, "n2", row["job"]) == ""
    cluster.exec("n1", "rm", f"/shared/{job}.hold")
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    rows = consistent(shown(cluster, job))
    assert len(rows) == 6 and all(r["state"] == "succeeded" for r in rows) and max(r["step"] for r in rows) == 9
    same_to_a_new_master(cluster, job)


def test_promotion_over_kills(cluster, shared_dir):
    """kill -9 of all daemons at any time: nobody is parked for good, or promoted twice."""
    job = cluster.submit(promotion_job({"maxTrials": 12, "maxConcurrent": 4}, env={"STEP_SECONDS": "0.2"}))
    kill_rounds(cluster, "both")
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    rows = consistent(shown(cluster, job))
    assert len(rows) == 12 and {r["state"] for r in rows} == {"succeeded"} and sum(r["step"] == 27 for r in rows) == 1
    same_to_a_new_master(cluster, job)
