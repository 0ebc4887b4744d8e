# SPDX-License-Identifier: Apache-2.0
"""primusctl run: output, status, Ctrl-C."""
import json
import re
import time

import pytest
from fakemaster import ranks


def test_output_is_prefixed_by_rank(master, ctl):
    master.on_submit = ranks()
    r = ctl("run", "-n", 4, "--", "hostname")
    assert (r.returncode, r.stderr) == (0, "")
    assert sorted(r.stdout.splitlines()) == [f"[{i}] host{i}" for i in range(4)]


def test_one_rank_has_no_prefix(master, ctl):
    master.on_submit = ranks(lambda i: b"a\rb\n\x1b[2Jc\xff\nno newline")
    r = ctl("run", "--", "x", text=False)
    assert r.stdout == b"a\rb\n\x1b[2Jc\xff\nno newline"  # a pipe gets the bytes as they are


@pytest.mark.parametrize("state,code", [("SUCCEEDED", 0), ("FAILED", 1), ("KILLED", 3)])
def test_status_is_the_jobs(master, ctl, state, code):
    master.on_submit = ranks(state=state, reason="task/0: exit 3")
    r = ctl("run", "--", "false")
    assert r.returncode == code
    assert ("task/0: exit 3" in r.stderr) == (code != 0)


def failing(rows, reason="1 of 2 succeeded"):
    """rows: (index, result, status) in the order of their ends."""
    def script(job):
        job.everybody("RUNNING")
        for index, result, status in rows:
            job.executor("task", index, "FAILED", result=("s", result), status=("i", status), node="n2")
            time.sleep(0.01)
        job.finish("FAILED", reason)
    return script


def test_why_it_failed(master, ctl):
    master.on_submit = failing([(1, "exit-code", 3)])
    r = ctl("run", "-n", 2, "--", "false")
    assert (r.returncode, r.stderr) == (3, "primusctl: job 1 FAILED: rank 1 on n2: exit 3\n")


@pytest.mark.parametrize("result,status,code", [
    ("exit-code", 255, 255), ("exit-code", 75, 75), ("exit-code", 203, 203), ("signal", 11, 139), ("core-dump", 6, 134),
    ("oom-kill", 9, 137), ("timeout", 15, 1), ("no-record", 0, 1)])
def test_status_is_the_commands(master, ctl, result, status, code):
    master.on_submit = failing([(0, result, status)])
    assert ctl("run", "--", "x").returncode == code


def test_status_is_that_of_the_first_that_failed(master, ctl):
    master.on_submit = failing([(1, "exit-code", 7), (0, "signal", 15)])
    assert ctl("run", "-n", 2, "--", "x").returncode == 7


def test_a_status_of_75_comes_back_too(master, ctl):
    master.on_submit = ranks()
    ctl("run", "--", "x")
    ctl("run", "--requeue", "--", "x")
    assert master.jobs[1].spec["role"][0]["exitCodes"] == [{"codes": "75", "action": "fail"}]
    assert "exitCodes" not in master.jobs[2].spec["role"][0]


def test_detach(master, ctl):
    r = ctl("run", "--detach", "--name", "long", "--", "sleep", 100)
    assert (r.returncode, r.stdout, r.stderr) == (0, "Submitted job 1 (long)\n", "")
    r = ctl("run", "-d", "--parsable", "--", "sleep", 100)
    assert (r.returncode, r.stdout) == (0, "2\n")
    r = ctl("run", "-d", "--json", "--", "sleep", 100)
    assert json.loads(r.stdout)["job"] == 3
    assert "GetStatus" not in master.calls and "ListExecutors" not in master.calls


def test_what_it_waits_for(master, ctl):
    def script(job):
        job.state("QUEUED", "3 wanted, 2 free")
        time.sleep(1.3)
        job.finish("SUCCEEDED")
    master.on_submit = script
    r = ctl("run", "--", "x")
    assert (r.returncode, r.stderr) == (0, "primusctl: job 1 waits: 3 wanted, 2 free\n")


def test_configuration(master, ctl, tmp_path):
    master.on_submit = ranks()
    r = ctl("run", "--hosts", "n[1-3]", "--per-host", 2, "--cpus", "0.5", "--mem", "1.5G", "--gpus", 1, "--time", "2h",
            "--name", "mine", "--", "echo", "a b", "$HOME", env={"FOO": "bar", "XDG_SESSION_ID": "3", "PRIMUS_JOB": "7"})
    assert r.returncode == 0, r.stderr
    job = master.jobs[1]
    role = job.spec["role"][0]
    assert job.spec["name"] == "mine" and job.spec["timeLimit"] == "7200000ms"
    assert role["num"] == 6 and role["nodes"] == ["n1", "n2", "n3"]
    assert role["scheduleStrategy"]["replicasPerNode"] == 2
    assert role["argv"] == ["echo", "a b", "$HOME"]
    assert (role["vcores"], role["memoryMb"], role["gpuNum"]) == (0.5, 1536, 1)
    env = [bytes(e).decode() for e in job.options["env"][1]]
    assert "FOO=bar" in env and not [e for e in env if e.startswith(("XDG_", "DBUS_", "PRIMUS_"))]
    assert bytes(job.options["cwd"][1]).decode() == str(tmp_path)


def test_run_configuration_is_valid(master, ctl, tmp_path):
    master.on_submit = ranks()
    ctl("run", "--hosts", "n[1-3]", "--per-host", 2, "--cpus", "0.5", "--mem", "1G", "--gpus", 1, "--time", "2h", "--", "echo")
    (tmp_path / "run.json").write_text(master.jobs[1].config)
    r = ctl("validate", "run.json")
    assert r.returncode == 0, r.stderr
    assert "warning" not in r.stderr


def test_named_environment_only(master, ctl):
    master.on_submit = ranks()
    ctl("run", "--env", "FOO", "--env=BAR=1", "--env", "UNSET_HERE", "--", "env", env={"FOO": "x", "BAZ": "y"})
    assert [bytes(e) for e in master.jobs[1].options["env"][1]] == [b"FOO=x", b"BAR=1"]


def test_a_restart_is_followed(master, ctl):
    def script(job):
        job.executor("task", 0, "RUNNING")
        job.state("RUNNING")
        job.log("task", 0, b"first\n", end=True)
        job.executor("task", 0, "FAILED")
        job.executor("task", 0, "RUNNING", attempt=2)
        job.log("task", 0, b"second\n", attempt=2)
        job.finish()
    master.on_submit = script
    assert ctl("run", "--", "x").stdout == "first\nsecond\n"


def test_many_executors(master, ctl):
    master.on_submit = ranks()
    r = ctl("run", "-n", 300, "--", "hostname", timeout=60)
    assert r.returncode == 0, r.stderr
    assert len(r.stdout.splitlines()) == 300


def test_masterd_restarts(master, ctl, bus):
    def script(job):
        job.everybody("RUNNING")
        job.state("RUNNING")
        job.log("task", 0, b"before\n")
        time.sleep(0.3)
        master.move(bus)
        job.log("task", 0, b"after\n")
        job.finish()
    master.on_submit = script
    r = ctl("run", "--", "x")
    assert (r.returncode, r.stdout) == (0, "before\nafter\n"), r.stderr


def test_no_polling(master, ctl):
    def script(job):
        job.everybody("RUNNING")
        job.state("RUNNING")
        time.sleep(1.5)
        job.finish()
    master.on_submit = script
    ctl("run", "-n", 2, "--", "x")
    assert len(master.calls) < 15, master.calls


def test_bars_on_a_terminal(master, tty):
    def script(job):
        job.everybody("RUNNING")
        job.state("RUNNING")
        job.log("task", 0, b"\r 10%\r 50%\r100%\n")
        job.log("task", 1, b"\x1b]0;title\x07\x1b[31mred\x1b[2J\x1b[0m plain\n")
        job.finish()
    master.on_submit = script
    t = tty("run", "-n", "2", "--color=never", "--", "x")
    assert t.wait() == 0
    assert b"[0] 100%\r\n" in t.seen
    assert b"\x1b[31mred\x1b[0m plain" in t.seen
    assert b"title" not in t.seen and b"\x1b[2J" not in t.seen


def test_ctrl_c_detaches(master, tty):
    master.on_submit = lambda job: (job.everybody("RUNNING"), job.state("RUNNING"), job.log("task", 0, b"hello\n"))
    t = tty("run", "--", "sleep", "100")
    t.until(b"hello")
    t.key(b"\x03")
    t.until(rb"job 1 goes on.*primusctl logs -f 1.*primusctl kill 1")
    assert t.wait() == 130
    assert master.jobs[1].killed is None


def test_ctrl_c_twice_kills(master, tty):
    master.on_submit = lambda job: (job.everybody("RUNNING"), job.state("RUNNING"), job.log("task", 0, b"hello\n"))
    t = tty("run", "--", "sleep", "100")
    t.until(b"hello")
    t.key(b"\x03")
    t.until(b"goes on")
    t.key(b"\x03")
    assert t.wait() == 3
    assert master.jobs[1].killed is not None


@pytest.mark.parametrize("args,text", [
    (["-n", "0", "--", "x"], "at least 1"),
    (["-n"], "wants a value"),
    ([], "usage: primusctl run"),
    (["--per-host", "2", "--", "x"], "--hosts"),
    (["--hosts", "n[1-", "--", "x"], "host list"),
    (["--cpus", "many", "--", "x"], "--cpus"),
    (["--mem", "1Q", "--", "x"], "size"),
    (["--parsable", "--", "x"], "--detach"),
    (["-d", "--parsable", "--json", "--", "x"], "exclude"),
])
def test_bad_command_lines(ctl, args, text):
    r = ctl("run", *args)
    assert r.returncode == 2 and text in r.stderr and len(r.stderr.splitlines()) <= 2


def test_json_lines(master, ctl):
    master.on_submit = ranks()
    r = ctl("run", "--json", "-n", 2, "--", "hostname")
    rows = [json.loads(line) for line in r.stdout.splitlines()]
    assert rows[0] == {"job": 1} and rows[-1] == {"job": 1, "state": "SUCCEEDED", "exitStatus": 0}
    lines = sorted(rows[1:-1], key=lambda o: o["index"])
    assert lines[1] == {"role": "task", "index": 1, "attempt": 1, "line": "host1"}


def test_json_says_how_it_ended(master, ctl):
    master.on_submit = failing([(0, "exit-code", 3)])
    r = ctl("run", "--json", "--", "false")
    assert r.returncode == 3
    assert json.loads(r.stdout.splitlines()[-1]) == {"job": 1, "state": "FAILED", "exitStatus": 3,
                                                     "reason": "rank 0 on n2: exit 3"}
    master.on_submit = ranks(state="KILLED", reason="killed by ml")
    r = ctl("run", "--json", "--", "false")
    assert json.loads(r.stdout.splitlines()[-1]) == {"job": 2, "state": "KILLED", "exitStatus": 3, "reason": "killed by ml"}


# ---- standard input ------------------------------------------------------------------------------------------------------


def hold(job):
    argv = job.spec["role"][0]["argv"]
    return argv[1:] if argv[0].endswith("/primus-stdio") else None


def test_standard_input_is_held(master, ctl):
    master.on_submit = ranks()
    ctl("run", "--", "cat")
    assert hold(master.jobs[1]) is None, "/dev/null is no input"
    r = ctl("run", "--no-env", "-n", 2, "--input", 1, "--", "/bin/cat", "-n", input="hi")
    assert r.returncode == 0, r.stderr
    assert hold(master.jobs[2]) == ["hold", "--rank", "1", "--", "/bin/cat", "-n"]
    assert master.jobs[2].spec["name"] == "cat"
    env = [bytes(e).decode() for e in master.jobs[2].options["env"][1]]
    assert len(env) == 1 and re.fullmatch("PRIMUS_STDIO=[0-9a-f]{32}", env[0])
    ctl("run", "--input=none", "--", "cat", input="hi")
    ctl("run", "--detach", "--", "cat", input="hi")
    assert hold(master.jobs[3]) is None and hold(master.jobs[4]) is None


@pytest.mark.parametrize("arguments,text", [
    (["--pty"], "standard input is not a terminal"), (["--pty", "--detach"], "does not go with --detach"),
    (["--input=0", "--detach"], "does not go with --detach"), (["--input=x"], "a rank, or none, not 'x'"),
    (["--input=1"], "there is no rank 1, the last is 0"), (["--pty", "--input=none"], "exclude each other"),
    (["--array=0-3", "--pty"], "an array has no standard input"), (["--array=0-3", "--input=0"], "an array has no standard input")])
def test_what_cannot_have_it(master, ctl, arguments, text):
    r = ctl("run", *arguments, "--", "cat", input="hi")
    assert r.returncode == 2 and text in r.stderr, r
    assert not master.jobs
