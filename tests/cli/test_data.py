# SPDX-License-Identifier: Apache-2.0
"""data, savepoint, suspend, resume, and what status says of data."""
import json
import threading
import time

import pytest
from fakemaster import Job, Refuse

SPEC = json.dumps({"name": "digits", "role": [{"roleName": "worker", "num": 4}]})
SPLIT_OFF = 1 << 63
TO_END = (1 << 64) - 1


@pytest.fixture
def job(master):
    master.jobs[1] = Job(master, 1, SPEC, {})
    return master.jobs[1]


def source(name, kind, tasks, done, **more):
    types = {"failed": "t", "leased": "t", "bytes": "t", "acked": "t", "records": "t", "files": "t", "rate": "d",
             "recordRate": "d", "eta": "t", "scanned": "b", "waitingFor": "s"}
    row = {"files": tasks, "failed": 0, "leased": 0, "bytes": 0, "acked": 0, "records": 0, "rate": 0.0, "recordRate": 0.0,
           "scanned": True, "waitingFor": "", **more}
    return {"name": ("s", name), "kind": ("s", kind), "tasks": ("t", tasks), "done": ("t", done),
            **{key: (types[key], value) for key, value in row.items()}}


def fed(job, waiting=1):
    job.everybody("RUNNING")
    job.state("RUNNING")
    wait = lambda index, data, trainer, tasks=1, idle=False: job.executor(
        "worker", index, "RUNNING", dataTasks=("u", tasks), dataWait=("t", data), trainerWait=("t", trainer), dataIdle=("b", idle))
    wait(0, 90_500_000, 1_200_000)
    wait(1, 400_000, 200_700_000)
    wait(2, 5_000_000, 0, 0, True)
    wait(3, 0, 0)
    job.status["data"] = ("a{sv}", {
        "tasks": ("t", 130), "done": ("t", 42), "failed": ("t", 1), "leased": ("t", 3), "bytes": ("t", 8 << 30), "read": ("t", 3 << 30),
        "acked": ("t", 2 << 30), "records": ("t", 1_234_567), "scanned": ("b", False), "waiting": ("u", waiting),
        "sources": ("aa{sv}", [
            source("logs", "files", 120, 42, failed=1, leased=3, bytes=8 << 30, acked=2 << 30, records=1_200_000,
                   rate=float(12 << 20), recordRate=10_250.0, eta=512_000_000),
            source("hourly", "files", 10, 10, scanned=False, waitingFor="/data/2026/02/01/_SUCCESS"),
            source("clicks", "kafka", 4, 0, records=34_567, recordRate=3.2, scanned=False),
            source("late", "s3", 0, 0, scanned=False)])})


def table(text, head):
    """The rows of the table whose first column is called so."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if " ".join(line.split()).startswith(head))
    end = next((i for i in range(begin, len(lines)) if not lines[i]), len(lines))
    return lines[begin:end]


def test_status(master, job, ctl):
    fed(job)
    r = ctl("status")
    assert r.returncode == 0, r.stderr
    assert "42/130+ tasks, 1 failed  2G of 8G+  12M/s" in r.stdout
    head, logs, hourly, clicks, late = table(r.stdout, "SOURCE")
    assert logs.split() == ["logs", "files", "42/120", "1", "2G/8G", "1.2M", "12M/s", "10k", "8min", "32s"]
    assert "waiting for /data/2026/02/01/_SUCCESS" in hourly
    assert "35k" in clicks and "3.2" in clicks and "0/4+" in clicks
    assert "is being listed" in late
    rows = [line.split() for line in table(r.stdout, "EXECUTOR TASKS")[1:]]
    assert rows[:4] == [["worker/0", "1", "1min", "30s", "1s", "data-bound"], ["worker/1", "1", "400ms", "3min", "20s", "trainer-bound"],
                        ["worker/2", "0", "5s", "0s", "no", "task"], ["worker/3", "1", "0s", "0s"]]
    assert "4 executors fed: 1 without a task, 1 data-bound (the trainer waits), 1 trainer-bound (the trainer is busy), 1 balanced" in r.stdout
    fed(job, waiting=0)
    assert "waits for executors" in table(ctl("status").stdout, "SOURCE")[1]
    job.finish("KILLED")
    assert not any("wait" in line for line in table(ctl("status").stdout, "SOURCE"))


def test_status_json(master, job, ctl):
    fed(job)
    o = json.loads(ctl("status", "--json").stdout)
    assert o["data"]["records"] == 1_234_567 and o["data"]["waiting"] == 1
    assert o["data"]["sources"][0] == {**o["data"]["sources"][0], "name": "logs", "etaUsec": 512_000_000, "rate": 12582912.0}
    assert o["data"]["sources"][2]["etaUsec"] is None and o["data"]["sources"][1]["waitingFor"] == "/data/2026/02/01/_SUCCESS"
    assert o["executors"][2] == {**o["executors"][2], "dataIdle": True, "dataTasks": 0, "dataWaitUsec": 5_000_000, "trainerWaitUsec": 0}


def test_many_executors_are_cut(master, job, ctl):
    master.jobs[1] = job = Job(master, 1, SPEC.replace("4", "40"), {})
    for index in range(40):
        job.executor("worker", index, "RUNNING", dataTasks=("u", 1), dataWait=("t", 0), trainerWait=("t", 0), dataIdle=("b", False))
    job.status["data"] = ("a{sv}", {"tasks": ("t", 1), "scanned": ("b", True)})
    assert len(table(ctl("status").stdout, "EXECUTOR TASKS")) == 1 + 32 + 2
    assert "... and 8 more (status -a)" in ctl("status").stdout
    assert len(table(ctl("status", "-a").stdout, "EXECUTOR TASKS")) == 1 + 40 + 1


def test_waiting_is_shown_while_it_waits(master, ctl):
    def script(job):
        fed(job)
        time.sleep(1.5)
        job.finish()
    master.on_submit = script
    r = ctl("submit", "-", "--wait", input=SPEC)
    assert r.returncode == 0, r.stderr
    assert "waiting for /data/2026/02/01/_SUCCESS (hourly)" in r.stdout


def row(task, state="PENDING", path="/data/a", start=0, end=64 << 20, acked=0, records=0, failures=0, holder="", error="", name="logs"):
    return (task, state, name, path.encode(), start, end, acked, records, failures, holder, error,
            {"splitOff": ("b", task >= SPLIT_OFF), "epoch": ("u", 0), "rate": ("d", 0.0)})


def tasks(job):
    job.tasks = [row(7, "LEASED", acked=16 << 20, records=1000, holder="worker/3"),
                 row(8, "FAILED", "/data/b\x07", 64 << 20, TO_END, 64 << 20, failures=2, error="/data/b\x07: record of 99M, at most 64M"),
                 row(9, "LEASED", "t/3", 1000, TO_END, 1500, 500, name="t", holder="worker/0"),
                 row(SPLIT_OFF | 5, path="/data/a", start=32 << 20, acked=32 << 20)]


def test_data(master, job, ctl):
    tasks(job)
    r = ctl("data")
    assert r.returncode == 0, r.stderr
    lines = [line.split() for line in r.stdout.splitlines()]
    assert lines[0] == ["TASK", "STATE", "SOURCE", "FILE", "RANGE", "DONE", "RECORDS", "FAILED", "HOLDER", "ERROR"]
    assert lines[1] == ["7", "LEASED", "logs", "/data/a", "0-64M", "25%", "1000", "0", "worker/3"]
    assert lines[2] == ["8", "FAILED", "logs", "/data/b?", "64M-", "64M", "-", "2", "-", "record", "of", "99M,", "at", "most", "64M"]
    assert lines[3] == ["9", "LEASED", "t", "t/3", "1000-", "1500", "500", "0", "worker/0"]
    assert lines[4] == ["s5", "PENDING", "logs", "/data/a", "32M-64M", "0%", "-", "0", "-"]
    assert [line.split()[0] for line in ctl("data", 1, "--failed").stdout.splitlines()] == ["TASK", "8"]
    assert [line.split()[0] for line in ctl("data", "--state=LEASED").stdout.splitlines()] == ["TASK", "7", "9"]
    rows = json.loads(ctl("data", "--json").stdout)
    assert [(r["task"], r["end"], r["splitOff"]) for r in rows] == [("7", 64 << 20, False), ("8", None, False), ("9", None, False),
                                                                   ("s5", 64 << 20, True)]
    job.tasks = []
    assert "has no task that was begun or waits" in ctl("data").stdout
    assert ctl("data", "--failed").stdout == "Job 1 has no such task\n"
    assert json.loads(ctl("data", "--json").stdout) == []


def test_data_by_pages(master, job, ctl):
    job.tasks = [row(i) for i in range(1, 3001)]
    assert len(json.loads(ctl("data", "--json", "--limit=0").stdout)) == 3000
    r = ctl("data", 1)
    assert len(r.stdout.splitlines()) == 1002 and r.stdout.endswith("... and more: --limit=0 shows all\n")
    r = ctl("data", "--limit=3000")
    assert len(r.stdout.splitlines()) == 3001
    assert [o["task"] for o in json.loads(ctl("data", "--limit", 2, "--json").stdout)] == ["1", "2"]


def test_retry_and_skip(master, job, ctl):
    tasks(job)
    assert ctl("data", "retry", 1, 8).stdout == "Task 8 is tried again\n"
    assert ctl("data", "skip", 1, 8, "s5").stdout == "Task 8 counts as done\nTask s5 counts as done\n"
    assert ctl("data", "retry", 1, "--failed").stdout == "1 failed task is tried again\n"
    assert job.changed == [("retry", 8), ("skip", 8), ("skip", SPLIT_OFF | 5), ("retry", 0)]
    r = ctl("data", "retry", 1, 77)
    assert r.returncode == 1 and "no task 77" in r.stderr and r.stderr.count("\n") == 1
    assert json.loads(ctl("data", "skip", 1, "--failed", "--json").stdout) == {"changed": 1}
    for wrong in [("retry", 1), ("retry",), ("skip", 1, "x"), ("skip", 1, 0), ("skip", 1, 7, "--failed"), ("paint", 1),
                  ("--state=DONE",), ("retry", 1, 8, "--state=FAILED"), ("--failed", "--state=FAILED")]:
        assert ctl("data", *wrong).returncode == 2, wrong


def test_suspend(master, job, ctl):
    job.state("RUNNING")
    assert ctl("suspend", 1).stdout == "Job 1 is suspended: its data is held back\n" and job.state_now == "SUSPENDED" and job.suspended == "data"
    assert "SUSPENDED" in ctl("status", 1).stdout
    r = ctl("suspend", 1)
    assert r.returncode == 1 and "The job is SUSPENDED" in r.stderr
    assert ctl("resume", 1).stdout == "Job 1 goes on\n" and job.state_now == "RUNNING"
    for mode, says in (("freeze", "frozen"), ("stop", "is held")):
        assert says in ctl("suspend", 1, f"--{mode}").stdout and job.suspended == mode
        assert ctl("resume", 1).returncode == 0
    assert ctl("suspend").returncode == 2 and ctl("suspend", 1, "--freeze", "--stop").returncode == 2


def test_savepoints(master, job, ctl):
    job.state("RUNNING")
    r = ctl("savepoint", "create", 1)
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines() == ["Savepoint 1-1 of job 1", "Go on from it: primusctl savepoint restore 1-1"]
    assert json.loads(ctl("savepoint", "create", 1, "before", "--kill", "--json").stdout) == {"savepoint": "before", "job": 1}
    assert job.killed == "savepoint"
    r = ctl("savepoint", "create", 1, "before")
    assert r.returncode == 1 and "already" in r.stderr
    lines = ctl("savepoint", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["SAVEPOINT", "before", "1-1"]
    assert lines[1].split()[2] == "digits" and lines[1].split()[-5:] == ["120", "3", "1", "5G", "987654"]
    assert [row["name"] for row in json.loads(ctl("savepoint", "list", "--json").stdout)] == ["before", "1-1"]
    r = ctl("savepoint", "show", "before")
    assert "Savepoint before of job 1 (digits)" in r.stdout and "sources: logs, clicks" in r.stdout
    assert "120 tasks done, 3 begun, 1 failed; 5G acknowledged, 987654 records" in r.stdout
    assert json.loads(ctl("savepoint", "show", "before", "--json").stdout)["version"] == 1
    assert ctl("savepoint", "delete", "1-1").stdout == "Savepoint 1-1 is deleted\n"
    r = ctl("savepoint", "delete", "1-1")
    assert r.returncode == 1 and "There is no savepoint '1-1'" in r.stderr


def test_restore(master, job, ctl, tmp_path):
    job.state("RUNNING")
    ctl("savepoint", "create", 1, "s")
    master.on_submit = lambda job: job.finish()
    r = ctl("savepoint", "restore", "s", "--name", "again")
    assert r.returncode == 0 and r.stdout == "Submitted job 2 (again)\n", r.stderr
    assert master.jobs[2].options["savepoint"] == ("s", "s")
    assert ctl("savepoint", "restore", "s").stdout == "Submitted job 3\n"
    (tmp_path / "job.json").write_text(SPEC.replace("digits", "other"))
    assert ctl("savepoint", "restore", "s", "job.json", "--wait").returncode == 0
    assert master.jobs[4].options["savepoint"] == ("s", "s") and master.jobs[4].name == "other"
    r = ctl("savepoint", "restore", "none")
    assert r.returncode == 1 and "There is no savepoint 'none'" in r.stderr


def test_savepoint_usage(ctl):
    for wrong in [(), ("create",), ("list", "x"), ("show",), ("restore",), ("delete",), ("paint", "x"), ("list", "--kill"),
                  ("create", "1", "--name", "x"), ("restore", "a", "b", "c")]:
        r = ctl("savepoint", *wrong)
        assert r.returncode == 2, (wrong, r.stderr)


def test_refusals(master, job, ctl):
    for member in ("SuspendAs", "ListTasks", "CreateSavepoint"):
        master.refuse[member] = Refuse("org.freedesktop.DBus.Error.AccessDenied", "job 1 is of another user")
    for command in (["suspend", 1], ["data", 1], ["savepoint", "create", 1]):
        r = ctl(*command)
        assert r.returncode == 1 and "another user" in r.stderr and r.stderr.count("\n") == 1


def test_sources_are_steered(master, job, ctl):
    r = ctl("data", "pause", "1", "logs", "clicks")
    assert r.returncode == 0
    assert r.stdout == ("Data source logs is paused: no more of it is given out\n"
                     "Data source clicks is paused: no more of it is given out\n")
    assert ctl("data", "resume", "1", "logs").stdout == "Data source logs goes on\n"
    assert ctl("data", "weight", "1", "logs", "3").stdout == "Data source logs has weight 3\n"
    assert ctl("data", "end", "1", "logs").stdout == "Data source logs is ended: it brings no more than it has by now\n"
    assert "is removed" in ctl("data", "remove", "1", "clicks").stdout
    assert job.changed == [("logs", "state", "paused"), ("clicks", "state", "paused"), ("logs", "state", "running"), ("logs", "weight", 3),
                           ("logs", "state", "ended"), ("clicks", "state", "removed")]
    r = ctl("data", "pause", "1", "none")
    assert r.returncode == 1 and "no data source 'none'" in r.stderr
    for wrong in (("pause", "1"), ("weight", "1", "logs"), ("weight", "1", "logs", "0"), ("weight", "1", "logs", "3", "4"),
                  ("pause", "--failed", "1", "logs"), ("stop", "1", "logs")):
        assert ctl("data", *wrong).returncode == 2, wrong
    assert len(job.changed) == 6


def test_status_of_steered_sources(master, job, ctl):
    fed(job)
    rows = [{k: v for k, v in row.items()} for row in job.status["data"][1]["sources"][1]]
    rows[0].update(paused=("b", True), weight=("u", 3))
    rows[2].update(removed=("b", True), weight=("u", 1))
    rows[1].update(ended=("b", True), waitingFor=("s", ""))
    job.status["data"][1]["sources"] = ("aa{sv}", rows)
    shown = table(ctl("status").stdout, "SOURCE KIND")
    assert shown[1].split()[-1] == "paused" and shown[3].split()[-1] == "removed" and shown[2].split()[-1] == "ended"
    o = json.loads(ctl("status", "--json").stdout)["data"]["sources"]
    assert [(s["weight"], s["paused"], s["removed"]) for s in o] == [(3, True, False), (None, False, False), (1, False, True), (None, False, False)]


def test_source_is_added(master, job, ctl, tmp_path):
    file = tmp_path / "b.json"
    file.write_text('{"name": "b", "spec": {"pathPattern": "/b"}}')
    version = job.version
    r = ctl("data", "add", "1", file)
    assert r.returncode == 0 and r.stdout == f"Job 1 is at version {version + 1}: data source added\n"
    assert job.edits == [{"name": "b", "spec": {"pathPattern": "/b"}}]
    r = ctl("data", "add", f"--if-version={version}", "1", file)
    assert r.returncode == 1 and f"at version {version + 1}" in r.stderr
    assert json.loads(ctl("data", "add", "--json", "1", file).stdout) == {"job": 1, "version": version + 2, "change": "data source added"}
    missing = ctl("data", "add", "1", tmp_path / "none")
    assert missing.returncode == 1 and "cannot read" in missing.stderr
    for wrong in (("add", "1"), ("add", "1", file, "x"), ("add", "--failed", "1", file), ("pause", "--if-version=1", "1", "logs"), ("--if-version=1", "1")):
        assert ctl("data", *wrong).returncode == 2, wrong


def test_sources_are_replaced(master, job, ctl):
    sources = '[{"name": "logs", "spec": {"pathPattern": "/l"}}, {"name": "b", "spec": {"pathPattern": "/b"}}]'
    version = job.version
    r = ctl("data", "replace", "1", "-", input=sources)
    assert r.returncode == 0 and r.stdout == f"Job 1 is at version {version + 1}: 1 data source added, 1 removed\n"
    assert job.edits == [sources]
    r = ctl("data", "replace", f"--if-version={version}", "1", "-", input=sources)
    assert r.returncode == 1 and f"at version {version + 1}" in r.stderr
    assert json.loads(ctl("data", "replace", "--json", "1", "-", input=sources).stdout) == {"job": 1, "version": version + 2, "added": 1, "removed": 1}
    for wrong in (("replace", "1"), ("replace", "1", "-", "x"), ("replace", "--state=FAILED", "1", "-")):
        assert ctl("data", *wrong).returncode == 2, wrong


def test_status_of_days(master, job, ctl):
    fed(job)
    job.status["data"][1]["sources"][1][0]["timePoint"] = ("s", "2026-02-01T05")
    assert table(ctl("status").stdout, "SOURCE KIND")[1].endswith(" at 2026-02-01T05")
    assert [s["timePoint"] for s in json.loads(ctl("status", "--json").stdout)["data"]["sources"]] == ["2026-02-01T05", None, None, None]
