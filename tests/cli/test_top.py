# SPDX-License-Identifier: Apache-2.0
"""top: the table, JSON, and the screen."""
import json
import math
import os
import re
import signal

import pytest
from fakemaster import Job

SPEC = json.dumps({"name": "digits", "role": [{"roleName": "ps", "num": 1}, {"roleName": "worker", "num": 3}]})


@pytest.fixture
def job(master):
    number = len(master.jobs) + 1
    j = master.jobs[number] = Job(master, number, SPEC, {})
    j.everybody("RUNNING")
    j.state("RUNNING")
    for i in range(3):
        j.rates["worker", i] = {"cpu": 0.5 + i / 2, "cpuShare": 0.25 + i / 4, "memory": (i + 1) * float(1 << 28), "memoryShare": 0.25 * (i + 1),
                                "read": 1048576.0 * (3 - i), "write": 0.0, "dataWait": 0.1 * i, "pressure": 0.02}
    j.rates["ps", 0] = {"cpu": 0.1, "cpuShare": 0.05, "memory": 1048576.0}
    j.history = {"cpuShare": [0.1, 0.5, math.nan, 1.0], "read": [0.0, 1e6, 2e6, 3e6]}
    j.verdicts["worker", 2] = ["hung"]
    return j


def plain(text):
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", text).decode()


def test_once(master, job, ctl):
    r = ctl("top", 1)
    assert r.returncode == 0, r.stderr
    lines = r.stdout.splitlines()
    assert lines[0].split()[:3] == ["ROLE", "RUNNING", "CPU"]
    assert lines[2].split()[:5] == ["worker", "3/3", "300%", "50%", "1.5G"]
    rows = [line.split() for line in lines[5:]]
    assert [row[0] for row in rows] == ["ps/0", "worker/0", "worker/1", "worker/2"] and rows[3][3] == "hung"
    r = ctl("top", 1, "--sort", "cpu")
    assert [line.split()[0] for line in r.stdout.splitlines()[5:]] == ["worker/2", "worker/1", "worker/0", "ps/0"]
    r = ctl("top", 1, "--sort", "data", "--once")
    assert [line.split()[0] for line in r.stdout.splitlines()[5:]] == ["worker/2", "worker/1", "worker/0", "ps/0"]
    assert ctl("top", 1, "--sort", "heat").returncode == 2
    r = ctl("top", 7)
    assert r.returncode == 1 and "there is no job 7" in r.stderr


def test_ranks(master, job, ctl):
    """Executors are named as in logs, exec, stacks and trace."""
    def rows(*ranks):
        r = ctl("top", 1, *ranks, "--once")
        assert r.returncode == 0, r.stderr
        return [line.split()[0] for line in r.stdout.splitlines() if line]
    assert rows("worker/1") == ["ROLE", "worker", "EXECUTOR", "worker/1"]
    assert rows("worker") == ["ROLE", "worker", "EXECUTOR", "worker/0", "worker/1", "worker/2"]
    assert rows("0", "worker/2") == ["ROLE", "ps", "worker", "EXECUTOR", "ps/0", "worker/2"]
    assert [e["index"] for e in json.loads(ctl("top", 1, "worker/2", "--json").stdout)["executors"]] == [2]
    r = ctl("top", 1, "worker/7")
    assert r.returncode == 1 and "job 1 has no executor worker/7" in r.stderr
    for command in [["top", "1/worker/2"], ["stacks", "1/worker/2"], ["trace", "1/worker/2"], ["exec", "1/worker/2", "0", "true"]]:
        r = ctl(*command)
        assert r.returncode == 2 and "an executor is a word behind its job: 1 worker/2" in r.stderr, (command, r.stderr)
    r = ctl("logs", "1/worker/2")
    assert r.returncode == 2 and "behind its job's number" in r.stderr


def test_json(master, job, ctl):
    o = json.loads(ctl("top", 1, "--json").stdout)
    assert (o["job"], o["name"], o["state"], o["intervalUsec"]) == (1, "digits", "RUNNING", 5000000)
    worker = o["roles"][1]
    assert worker["name"] == "worker" and worker["sum"]["cpu"] == 3 and worker["max"]["cpuShare"] == 0.75
    assert worker["history"]["cpuShare"][2] is None and "memory" not in worker["history"]
    e = o["executors"][3]
    assert (e["role"], e["index"], e["verdicts"], e["values"]["cpuUsec"]) == ("worker", 2, "hung", 12345)
    jobs = json.loads(ctl("top", "--json").stdout)
    assert jobs[0]["job"] == 1 and jobs[0]["running"] == 4
    assert ctl("top").stdout.splitlines()[1].split()[:4] == ["1", "digits", "RUNNING", "4/4"]


def test_nothing_measured(master, job, ctl, tty):
    job.rates.clear()
    job.history.clear()
    r = ctl("top", 1)
    assert r.returncode == 0 and "worker/2" in r.stdout
    t = tty("top", 1)
    t.until(rb"worker/2")
    t.key(b"q")
    assert t.wait() == 0


def test_screen(master, job, tty):
    t = tty("top", "--interval", "0.3s", 1)
    t.until(rb"worker/2.*hung")
    screen = plain(t.seen)
    assert "Job 1 (digits)  RUNNING" in screen and "4 executors" in screen
    assert "▁▅ █" in screen and "░" in screen, screen
    assert "3.0 of 6 cores, most 75%" in screen
    assert re.search(r"worker/0 +n1 +50% +256M", screen), screen
    t.seen = b""
    t.key(b"c")  # sorted at once, without asking
    t.until(rb"(?s)worker/2.*worker/1.*worker/0.*ps/0.*10min/4h")
    # Telemetry is asked for without what is not shown, with the history that is.
    assert job.telemetry_options == {"noValues": ("b", True)}
    t.key(b"t")
    t.until(rb"last 8min")
    assert job.telemetry_options["history"] == ("s", "4h")
    t.key(b"q")
    assert t.wait() == 0
    assert t.seen.rstrip().endswith(b"\x1b[?25h\x1b[?1049l"), "the terminal is as it was"


def test_ascii_without_colours(master, job, tty):
    t = tty("top", 1, LC_ALL="C", NO_COLOR="1")
    t.until(rb"worker/2")
    t.until(rb"q quit")
    t.key(b"\x03")  # Ctrl-C
    assert t.wait() == 0
    assert all(byte < 128 for byte in t.seen) and not re.search(rb"\x1b\[[0-9;]*m", t.seen)
    assert b"[#" in t.seen


def test_resize_and_scrolling(master, ctl, tty):
    j = master.jobs[1] = Job(master, 1, json.dumps({"name": "wide", "role": [{"roleName": "w", "num": 100}]}), {})
    j.everybody("RUNNING")
    j.state("RUNNING")
    for i in range(100):
        j.rates["w", i] = {"cpu": 0.01 * i, "memory": 1e9}
    t = tty("top", 1, NO_COLOR="1")
    t.until(rb"1-2\d of 100")
    t.seen = b""
    t.key(b"\x1b[6~")
    t.until(rb"(?<!\d)[2-9]\d-\d\d of 100")
    t.key(b"\x1b[F")
    t.until(rb"-100 of 100")
    t.until(rb"w/99")
    import fcntl
    import struct
    import termios
    t.seen = b""
    fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 40, 0, 0))
    os.kill(t.pid, signal.SIGWINCH)
    t.until(rb"\x1b\[2J")
    t.until(rb"\x1b\[J")
    frame = plain(t.seen[t.seen.rindex(b"\x1b[H"):])
    assert all(len(line.rstrip("\r")) <= 40 for line in frame.split("\n")) and frame.count("\n") <= 12, frame
    t.key(b"q")
    assert t.wait() == 0


def test_overview_and_the_end(master, job, tty):
    t = tty("top", "--interval", "0.2s")
    t.until(rb"digits.*4/4.*\n")
    t.key(b"q")
    assert t.wait() == 0
    t = tty("top", "--interval", "0.2s", 1)
    t.until(rb"worker/2")
    job.finish()
    assert t.wait() == 0
    assert b"Job 1 (digits) is over: SUCCEEDED" in t.seen


def test_master_goes_and_comes_back(master, job, bus, tty):
    t = tty("top", "--interval", "0.2s", 1, NO_COLOR="1")
    t.until(rb"worker/2")
    master.stop()
    t.until(rb"masterd does not answer just now")
    t.seen = b""
    master.start(bus)
    t.until(rb"q quit")
    t.key(b"q")
    assert t.wait() == 0
