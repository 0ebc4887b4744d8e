# SPDX-License-Identifier: Apache-2.0
"""What is said where there is nothing to show, where something went wrong, and where nobody reads any more."""
import json
import os
import pwd
import signal
import subprocess

import pytest
from fakemaster import Job, Refuse

SPEC = json.dumps({"name": "digits", "role": [{"roleName": "worker", "num": 3}]})
ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def job(master):
    def make(spec=SPEC):
        number = len(master.jobs) + 1
        master.jobs[number] = Job(master, number, spec, {})
        return master.jobs[number]
    return make


def errors(result):
    """The objects on standard error, one a line."""
    return [json.loads(line) for line in result.stderr.splitlines()]


# Nothing to show

@pytest.mark.parametrize("command, says", (
    (("list",), "No job waits or runs; -a shows those that have ended, too"), (("list", "-a"), "There is no job"),
    (("list", "--state=QUEUED", "-a"), "There is no such job"), (("queue",), "No job waits"), (("pools",), "There is no pool"),
    (("nodes",), "No host has joined; 'primusctl token create' makes what one joins with"), (("savepoint", "list"), "There is no savepoint"),
    (("top", "--once"), "No job runs or waits")))
def test_nothing_to_show_is_said(master, ctl, command, says):
    r = ctl(*command)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", says + "\n")
    r = ctl(*command, "--json")
    assert r.returncode == 0 and not errors(r) and json.loads(r.stdout) in ([], {"jobs": []})


# Nobody reads

@pytest.mark.parametrize("command", (("list", "-a"), ("list", "--json", "-a"), ("status",), ("events",), ("logs",), ("--help",), ("config", 1), ("why",), ("nodes",)))
def test_a_reader_that_left_is_no_error(master, job, programs, bus, command):
    """With SIGPIPE ignored, as a service hands it on, too: it dies of the signal, and says nothing."""
    from conftest import environment
    j = job()
    j.everybody("RUNNING")
    j.log("worker", 0, b"out\n" * 1000)
    j.finish()
    reading, writing = os.pipe()
    os.close(reading)
    program = os.path.join(programs, "primusctl")
    r = subprocess.run([program, *map(str, command)], stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, env=environment(bus),
                       restore_signals=False, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN), timeout=20)
    os.close(writing)
    if command == ("nodes",):  # it has nothing to write
        assert r.returncode == 0
    else:
        assert (r.returncode, r.stderr) == (-signal.SIGPIPE, b"Job 1 is at version 1\n" if command[0] == "config" else b"")


# Something went wrong

def test_errors_are_json_with_json(master, job, ctl, tmp_path):
    job()
    for command, status, name, says in (
            (("status", 7), 1, "org.primus.Error.NoSuchJob", "there is no job 7"),
            (("status", "x7"), 2, "org.primus.Error.Usage", "not a job's number"),
            (("list", "--nope"), 2, "org.primus.Error.Usage", "there is no option --nope"),
            (("data", "tasks"), 2, "org.primus.Error.Usage", ""),
            (("submit", "none.json"), 1, "org.primus.Error.BadConfig", "none.json: No such file"),
            (("logs", 1, "ps/7"), 1, None, "")):
        r = ctl(*command, "--json")
        assert r.returncode == status and len(errors(r)) == 1, r
        error = errors(r)[0]["error"]
        assert set(error) == {"name", "message"} and says in error["message"] and error["name"] == (name or error["name"])
        assert not error["message"].startswith("primusctl: ")
    master.refuse["Kill"] = Refuse("org.freedesktop.DBus.Error.AccessDenied", "job 1 is \x1b[2J another user's")
    r = ctl("kill", 1, 9, "--json")
    assert r.returncode == 1 and r.stdout == ""
    assert errors(r) == [{"error": {"name": "org.freedesktop.DBus.Error.AccessDenied", "message": "job 1 is ?[2J another user's"}},
                         {"error": {"name": "org.primus.Error.NoSuchJob", "message": "there is no job 9; 'primusctl list -a' shows the jobs"}}]
    # Of a command's own --json behind "--", and of a program's, nothing is known.
    assert ctl("run", "--nope", "--", "train", "--json").stderr.startswith("primusctl: ")


def test_warnings_and_notes_are_json_with_json(master, ctl, tmp_path):
    (tmp_path / "a.json").write_text(SPEC)
    master.warnings = ["1:3: x changes nothing"]
    r = ctl("submit", "a.json", "--json")
    assert errors(r) == [{"warning": {"message": "a.json:1:3: warning: x changes nothing"}}] and json.loads(r.stdout)["job"] == 1
    assert errors(ctl("config", 1, "--json")) == [{"note": {"message": "Job 1 is at version 1"}}]


def test_a_master_that_is_away(master, bus, ctl):
    master.stop()
    r = ctl("list", "--json")
    assert r.returncode == 4 and [e["error"]["name"] for e in errors(r)] == ["org.primus.Error.Unreachable"]
    master.start(bus)


# Jobs that have ended

def test_kill_of_a_job_that_has_ended(master, job, ctl):
    job().finish("SUCCEEDED"), job()
    r = ctl("kill", 1, 2)
    assert (r.returncode, r.stdout) == (0, "Job 1 has ended already: SUCCEEDED\nJob 2 is being killed\n")


# Users by their names

def test_users_have_names(master, job, ctl):
    j = job()
    j.status["reason"] = ("s", f"killed by uid {os.getuid()}: as uid 4000000000 said")
    j.event("submitted", f"submitted by uid {os.getuid()}: 3 executors in 1 role")
    j.finish("KILLED", f"killed by uid {os.getuid()}: as uid 4000000000 said")
    assert f"submitted by {ME}: 3 executors" in ctl("events").stdout
    for command in (("list", "-a"), ("status",), ("why",)):
        assert f"killed by {ME}: as uid 4000000000 said" in ctl(*command).stdout, command
    assert f"submitted by uid {os.getuid()}" in ctl("events", "--json").stdout


def test_a_reason_of_a_waiting_job_moves_no_cursor(master, job, ctl):
    j = job()
    j.do_why = None
    type(master).do_Why = lambda self, job: ("a{sv}", ({"state": ("s", "QUEUED"), "pool": ("s", "default"), "priority": ("i", 0),
                                                        "summary": ("s", "waits \x1b[2J\x07"), "reason": ("s", "")},))
    try:
        r = ctl("why")
    finally:
        del type(master).do_Why
    assert r.returncode == 0 and "waits ?[2J?" in r.stdout and "\x1b" not in r.stdout


# Who is to blame

@pytest.mark.parametrize("status, reason, blame", (
    (200, "directory /data/x does not exist on host n2 or user 1000 may not enter it", "the host n2, which has not got the job's directory, or does not let its user in"),
    (203, "command not found or not executable on host n2: train", "the host n2, which has not got the command, or cannot execute it"),
    (217, "no user with uid 1000 on host n2", "the host n2, which does not know the job's user"),
    (219, "systemd could not move the executor into its cgroup on host n2 (status 219)", "the host n2, which could not set the executor up"),
    (200, "", "the program of worker/1"), (1, "directory listing failed", "the program of worker/1")))
def test_what_a_host_lacks_is_not_the_programs_fault(master, job, ctl, status, reason, blame):
    j = job()
    j.everybody("RUNNING")
    if reason and status != 1:
        reason = f"exit status {status}: {reason}"  # as masterd has it
    j.executor("worker", 1, "FAILED", node="n2", result=("s", "exit-code"), status=("i", status), reason=("s", reason))
    j.finish("FAILED", f"worker/1 on n2: {reason or 'exit status 200'}")
    assert json.loads(ctl("why", "--json").stdout)["blame"] == blame
    assert f"blame         {blame}\n" in ctl("why").stdout


# Waiting while it runs

def test_a_job_that_runs_and_waits(master, job, ctl, monkeypatch):
    j = job()
    j.everybody("RUNNING")
    j.state("RUNNING")
    for index in (1, 2):
        j.executors["worker", index]["state"] = "PENDING"
    answer = {"state": ("s", "RUNNING"), "pool": ("s", "default"), "priority": ("i", 0), "summary": ("s", "1 of 2 fit now"), "position": ("t", 1)}
    monkeypatch.setattr(type(master), "do_Why", lambda self, job: ("a{sv}", (answer,)), raising=False)
    assert ctl("why").stdout.startswith("Job 1 is RUNNING, but 2 of its 3 executors wait for a place in pool default at priority 0, number 1 in the queue\n")
    answer["state"] = ("s", "QUEUED")
    j.state("QUEUED")
    assert ctl("why").stdout.startswith("Job 1 is QUEUED in pool default at priority 0, number 1 in the queue\n")


def test_usage_names_the_command(ctl, master):
    assert ctl("status", "--nope").stderr.splitlines()[-1] == "Try 'primusctl status --help'."
    assert ctl("--nope").stderr.splitlines()[-1] == "Try 'primusctl --help'."
