# SPDX-License-Identifier: Apache-2.0
"""list, status, logs, events, wait, kill, nodes, node, token, config JOB."""
import json
import pwd
import threading
import time

import pytest
from fakemaster import Job, Refuse, now

SPEC = json.dumps({"name": "digits", "role": [{"roleName": "ps", "num": 1}, {"roleName": "worker", "num": 3}]})


@pytest.fixture
def job(master):
    def make(spec=SPEC):
        number = len(master.jobs) + 1
        master.jobs[number] = Job(master, number, spec, {})
        return master.jobs[number]
    return make


def running(job):
    job.everybody("RUNNING")
    job.state("RUNNING")
    for role, index in job.executors:
        job.log(role, index, f"{role} {index} a\n{role} {index} b\n".encode())


def name_of(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def test_list(master, job, ctl):
    running(job())
    job(SPEC.replace("digits", "evil\\u001b[2J\\u0007")).state("FAILED", "exit 1")
    r = ctl("list")
    assert r.returncode == 0, r.stderr
    assert [l.split()[:2] for l in r.stdout.splitlines()] == [["JOB", "NAME"], ["1", "digits"]]
    assert "4/4" in r.stdout
    r = ctl("list", "-a", "--color=always")
    assert "evil?[2J?" in r.stdout and "\x07" not in r.stdout and "\x1b[2J" not in r.stdout
    rows = json.loads(ctl("list", "--json", "-a").stdout)
    assert [row["job"] for row in rows] == [2, 1] and rows[0]["reason"] == "exit 1"
    status = json.loads(ctl("status", 1, "--json").stdout)
    assert {key: rows[1][key] for key in ("submitted", "started", "ended")} == {key: status[key] for key in ("submitted", "started", "ended")}
    assert [rows[0][key] for key in ("user", "pool", "priority", "visible")] == [name_of(1000), None, None, None]
    master.jobs[2].place = {"pool": ("s", "prod"), "priority": ("i", -5), "visible": ("s", "group"), "visibleTo": ("s", "visible to members of group lab")}
    assert [json.loads(ctl("list", "--json", "-a").stdout)[0][key] for key in ("pool", "priority", "visible")] == ["prod", -5, "group"]
    master.jobs[2].status.update(visible=("s", "group"), visibleTo=("s", "visible to members of group \x1b[2Jlab"))
    assert "  visible to members of group ?[2Jlab\n" in ctl("status", 2).stdout
    assert json.loads(ctl("status", 2, "--json").stdout)["visible"] == "group" and "visible" not in ctl("status", 1).stdout
    assert rows[1]["ended"] is None and rows[1]["started"] > 0 and rows[0]["ended"] > 0
    ctl("list", "--mine", "--state", "QUEUED", "--limit", 5)
    assert {k: v[1] for k, v in master.last_filter.items()} == {"uid": __import__("os").getuid(), "state": "QUEUED", "limit": 5}


def test_status(master, job, ctl):
    j = job()
    running(j)
    j.executor("worker", 1, "FAILED", result=("s", "oom-kill"), reason=("s", "out of memory (limit 512M)"), memoryPeak=("t", 536870912))
    j.executor("worker", 2, "FAILED", result=("s", "signal"), status=("i", 11))
    j.executor("worker", 0, "FAILED", result=("s", "exit-code"), status=("i", 3), restarts=("u", 2), ports=("au", [23000]))
    j.executor("ps", 0, "RUNNING", memory=("t", 77 << 20))
    j.status["firstError"] = ("s", "Traceback\nValueError")
    j.state("FAILED", "worker/0 failed 3 times")
    r = ctl("status")
    assert r.returncode == 0, r.stderr
    for text in ["Job 1 (digits)  FAILED", "killed: out of memory (limit 512M)", "signal SEGV", "exit 3", "ValueError",
                 "primusctl logs 1", "primus-1-worker-0.1.service", "512M", "77M"]:
        assert text in r.stdout, text
    o = json.loads(ctl("status", 1, "--json").stdout)
    assert o["executors"][1] == {**o["executors"][1], "role": "worker", "exitStatus": 3, "restarts": 2, "ports": [23000]}
    r = ctl("status", 7)
    assert (r.returncode, r.stdout) == (1, "") and "there is no job 7" in r.stderr
    assert ctl("status", "x7").returncode == 2


def test_no_job_yet(master, ctl):
    r = ctl("status")
    assert r.returncode == 1 and "you have no job yet" in r.stderr


def test_logs(master, job, ctl):
    running(job())
    r = ctl("logs")
    assert r.stdout.splitlines() == [f"{r}/{i} | {r} {i} {x}" for r, i in [("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)]
                                     for x in "ab"]
    assert ctl("logs", "ps").stdout == "ps 0 a\nps 0 b\n"
    assert ctl("logs", 1, "worker/2").stdout == "worker 2 a\nworker 2 b\n"
    assert ctl("logs", "worker", "--tail", 1).stdout == "".join(f"worker/{i} | worker {i} b\n" for i in range(3))
    for role, text in [("chief", "has no role chief"), ("worker/9", "has no executor worker/9")]:
        r = ctl("logs", role)
        assert r.returncode == 1 and text in r.stderr


def test_logs_grep(master, job, ctl):
    running(job())
    assert ctl("logs", "--grep", "[1-9] b$").stdout == "worker/1 | worker 1 b\nworker/2 | worker 2 b\n"
    assert ctl("logs", "-g", "2 B", "-i", "-C", 1).stdout == "worker/2 | worker 2 a\nworker/2 | worker 2 b\n"
    assert ctl("logs", "ps", "-g", "b").stdout == "ps 0 b\n"
    assert ctl("logs", "worker", "--tail", 1, "-g", "a$").returncode == 1, "the last lines are looked through"
    assert [json.loads(line)["match"] for line in ctl("logs", "ps", "-g", "b", "-C", 5, "--json").stdout.splitlines()] == [False, True]
    r = ctl("logs", "--grep", "nothing")
    assert r.returncode == 1 and r.stdout == "" and "no line that job 1 wrote matches nothing" in r.stderr
    for wrong in (("-g", "a("), ("-i",), ("-C", 2), ("-g", "a", "-C", "x"), ("-g", "a", "-o", "%r")):
        r = ctl("logs", *wrong)
        assert r.returncode == 2 and r.stdout == "", wrong


def test_logs_follow(master, job, ctl):
    j = job()
    running(j)

    def later():
        time.sleep(0.3)
        j.log("worker", 1, b"late\n", end=True)
        j.executor("worker", 1, "FAILED")
        j.executor("worker", 1, "RUNNING", attempt=2)
        j.log("worker", 1, b"again\n", attempt=2)
        j.finish()
    threading.Thread(target=later).start()
    r = ctl("logs", "-f", "worker", "--tail", 1)
    assert r.returncode == 0
    lines = r.stdout.splitlines()
    assert {"worker/1 | late", "worker/1.2 | again", "worker/0 | worker 0 b"} <= set(lines)
    assert "worker/0 | worker 0 a" not in lines


def several_attempts(job):
    """worker/1 has three: five lines, one, and two that are its last."""
    j = job()
    running(j)
    j.log("worker", 1, b"".join(b"first %d\n" % i for i in range(3)), end=True)
    j.executor("worker", 1, "FAILED")
    j.executor("worker", 1, "RUNNING", attempt=2)
    j.log("worker", 1, b"second\n", attempt=2, end=True)
    j.executor("worker", 1, "FAILED", attempt=2)
    j.executor("worker", 1, "RUNNING", attempt=3)
    j.log("worker", 1, b"third 0\nthird 1\n", attempt=3)
    return j


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("tail, lines", [(1, ["third 1"]), (2, ["third 0", "third 1"]), (3, ["second", "third 0", "third 1"]),
                                         (4, ["first 2", "second", "third 0", "third 1"]), (5, ["first 1", "first 2", "second", "third 0", "third 1"]),
                                         (50, ["worker 1 a", "worker 1 b", "first 0", "first 1", "first 2", "second", "third 0", "third 1"])])
def test_tail_is_of_the_executor(master, job, ctl, ended, tail, lines):
    """However many attempts it took."""
    j = several_attempts(job)
    if ended:
        j.finish()
    assert ctl("logs", "worker/1", "--tail", tail).stdout.splitlines() == lines
    everybody = ctl("logs", "worker", "--tail", tail).stdout.splitlines()
    assert [line.split(" | ")[1] for line in everybody if line.startswith("worker/1")] == lines
    others = min(tail, 2)
    assert len(everybody) == len(lines) + 2 * others


def test_tail_then_follow(master, job, ctl):
    j = several_attempts(job)

    def later():
        reads = j.reads
        while j.reads == reads:
            time.sleep(0.05)
        j.log("worker", 1, b"later\n", attempt=3, end=True)
        j.finish()
    threading.Thread(target=later).start()
    r = ctl("logs", "-f", "worker/1", "--tail", 3)
    assert (r.returncode, r.stdout.splitlines()) == (0, ["second", "third 0", "third 1", "later"])


def test_one_attempt(master, job, ctl):
    several_attempts(job)
    assert ctl("logs", "worker/1", "--attempt", 2).stdout == "second\n"
    assert ctl("logs", "worker/1", "--attempt", 1, "--tail", 1).stdout == "first 2\n"
    assert ctl("logs", "--attempt", 3).stdout.splitlines() == ["worker/1.3 | third 0", "worker/1.3 | third 1"]
    for what in (["worker/1"], ["worker"], []):
        r = ctl("logs", *what, "--attempt", 4)
        assert (r.returncode, r.stdout) == (1, "") and "there is no attempt 4 yet; the latest of them is 3" in r.stderr
    assert ctl("logs", "--attempt", 0).returncode == 2


ELEMENT = json.dumps({"name": "sweep", "role": [{"roleName": "worker", "num": 1}]})


def sweep(job, size, state="RUNNING"):
    """An array, which is job 1, with no elements yet."""
    array = job(ELEMENT)
    array.executors.clear()
    array.status["array"] = ("a{sv}", {"size": ("u", size)})
    array.state(state)
    return array


def element(job, array, index, *lines, state="SUCCEEDED"):
    e = job(ELEMENT)
    e.status["array"] = ("a{sv}", {"of": ("u", array.number), "index": ("u", index)})
    if state == "QUEUED":
        e.state(state)
        return e
    e.executor("worker", 0, "RUNNING")
    e.state("RUNNING")
    e.log("worker", 0, "".join(f"{line}\n" for line in lines).encode())
    if state != "RUNNING":
        e.finish(state)
    return e


def test_logs_of_an_array(master, job, ctl, tmp_path):
    array = sweep(job, 4, "FAILED")
    element(job, array, 2, "two")
    element(job, array, 0, "an old run", state="FAILED")
    element(job, array, 1, "one a", "one b")
    element(job, array, 0, "zero a", "zero b", state="FAILED")
    shown = ["[0] worker/0 | zero a", "[0] worker/0 | zero b", "[1] worker/0 | one a", "[1] worker/0 | one b", "[2] worker/0 | two"]
    for options in ([], ["-f"]):
        r = ctl("logs", 1, *options)
        assert (r.returncode, r.stderr) == (0, "")
        assert (sorted(r.stdout.splitlines()) if options else r.stdout.splitlines()) == shown
    assert ctl("logs", 1, "--tail", 1).stdout.splitlines() == [shown[1], shown[3], shown[4]]
    assert [json.loads(line) for line in ctl("logs", 1, "--json", "--tail", 1).stdout.splitlines()][0] == {
        "element": 0, "role": "worker", "index": 0, "attempt": 1, "line": "zero b"}
    r = ctl("logs", 1, "-o", "log-%i")
    assert r.returncode == 2 and "needs a %j" in r.stderr
    assert ctl("logs", 1, "-o", "log-%j-%i").returncode == 0 and (tmp_path / "log-5-0").read_text() == "zero a\nzero b\n"
    for what in (["ps"], ["--attempt", 2], ["worker/7"]):
        r = ctl("logs", 1, *what)
        assert (r.returncode, r.stdout) == (1, "") and "no element of array 1 has started what is asked for" in r.stderr


def test_logs_of_an_array_that_waits(master, job, ctl):
    """Never nothing, and no word about it."""
    array = sweep(job, 4, "QUEUED")
    for _ in range(2):
        r = ctl("logs", 1)
        assert (r.returncode, r.stdout) == (0, "") and "no element of array 1 has started yet" in r.stderr
        element(job, array, 0, state="QUEUED")


def test_logs_of_a_large_array(master, job, ctl):
    """More than one page of the list."""
    array = sweep(job, 2000, "FAILED")
    element(job, array, 1999, "the first to run")
    for index in range(1010):
        e = element(job, array, index, state="QUEUED")
        e.state("KILLED")
    element(job, array, 1998, "the last")
    r = ctl("logs", 1, timeout=100)
    assert r.stdout.splitlines() == ["[1998] worker/0 | the last", "[1999] worker/0 | the first to run"], r.stderr


def test_follow_an_array(master, job, ctl):
    """Elements that are there, that run later, and that are made later; more of them than are followed at a time."""
    array = sweep(job, 60)
    running_now = [element(job, array, i, f"was {i}", state="RUNNING") for i in range(40)]
    waits = element(job, array, 40, state="QUEUED")

    def later():
        while sum(j.reads > 0 for j in running_now) < 30:
            time.sleep(0.05)
        waits.executor("worker", 0, "RUNNING")
        waits.state("RUNNING")
        for i, e in enumerate(running_now):
            e.log("worker", 0, b"is %d\n" % i)
            e.finish()
        waits.log("worker", 0, b"is 40\n")
        waits.finish()
        element(job, array, 41, "is 41")
        last = element(job, array, 42, state="RUNNING")
        array.state("FAILED")  # the last words of one come behind it
        last.log("worker", 0, b"is 42\n")
        last.finish("FAILED")
    threading.Thread(target=later).start()
    r = ctl("logs", "-f", 1, timeout=60)
    assert r.returncode == 0
    assert sorted(r.stdout.splitlines()) == sorted([f"[{i}] worker/0 | was {i}" for i in range(40)] + [f"[{i}] worker/0 | is {i}" for i in range(43)])
    assert "32 elements are followed at a time" in r.stderr


def test_follow_an_array_over_a_restart(master, job, ctl, bus):
    array = sweep(job, 2)
    e = element(job, array, 0, "before", state="RUNNING")

    def later():
        while e.reads < 2:
            time.sleep(0.05)
        master.move(bus)
        e.log("worker", 0, b"behind\n")
        e.finish()
        element(job, array, 1, "another")
        array.state("SUCCEEDED")
    threading.Thread(target=later).start()
    r = ctl("logs", "-f", 1, timeout=60)
    assert (r.returncode, r.stdout.splitlines()) == (0, ["[0] worker/0 | before", "[0] worker/0 | behind", "[1] worker/0 | another"]), r.stderr


def test_follow_while_masterd_is_busy(master, job, ctl):
    """Whatever is refused for a moment is asked again: of an array, of its elements, of a job that is waited for."""
    array = sweep(job, 3)
    for i in range(3):
        e = element(job, array, i, f"was {i}", state="RUNNING")
        e.log("worker", 0, end=True)
        e.executor("worker", 0, "RUNNING", attempt=2)  # the attempt before is asked for as well
        e.log("worker", 0, b"is %d\n" % i)
        e.finish()
    array.state("SUCCEEDED")
    for member in ("ListJobs", "GetJob", "GetAll", "ListExecutors", "ReadLog"):
        master.busy[member] = 3
    r = ctl("logs", "-f", 1, timeout=60)
    assert (r.returncode, r.stderr) == (0, "")
    assert sorted(r.stdout.splitlines()) == sorted(f"[{i}] worker/0{attempt} | {word} {i}" for i in range(3) for attempt, word in (("", "was"), (".2", "is")))
    assert not any(master.busy.values())
    master.busy.update({"GetAll": 3, "GetJob": 2})
    r = ctl("wait", 1, timeout=60)
    assert r.returncode == 0 and "try again" not in r.stderr and not any(master.busy.values())
    master.busy.update({"GetAll": 3, "ListEvents": 2, "GetJob": 2})
    r = ctl("events", "-f", 1, timeout=60)
    assert r.returncode == 0 and "SUCCEEDED" in r.stdout and not any(master.busy.values())


def test_follow_what_is_not_on_the_bus(master, job, ctl):
    """Of a masterd that has just been started: what has ended comes onto its bus when it is asked for, and only what it does not know then is not there."""
    array = sweep(job, 2)
    ended = [element(job, array, i, f"was {i}") for i in range(2)]
    array.state("SUCCEEDED")
    master.vanished = {ended[0].number: 2, ended[1].number: 3}
    r = ctl("logs", "-f", 1, timeout=60)
    assert (r.returncode, r.stderr) == (0, "")
    assert sorted(r.stdout.splitlines()) == ["[0] worker/0 | was 0", "[1] worker/0 | was 1"]
    assert not any(master.vanished.values())
    master.vanished = {ended[0].number: 1000}
    r = ctl("wait", ended[0].number, timeout=60)
    assert r.returncode == 1 and f"there is no job {ended[0].number}" in r.stderr and master.vanished[ended[0].number] > 900


def test_logs_to_files(master, job, ctl, tmp_path):
    j = job()
    running(j)
    j.finish()
    assert ctl("logs", "--output", "log-%j-%r.%i.%n%%").returncode == 0
    assert (tmp_path / "log-1-worker.2.3%").read_text() == "worker 2 a\nworker 2 b\n"


def test_lost_log(master, job, ctl):
    j = job()
    j.executor("ps", 0, "LOST")
    j.logs.clear()
    j.state("FAILED")
    r = ctl("logs", 1, "ps")
    assert r.stdout == "" and r.stderr == "primusctl: no log\n"


def test_fast_log(master, job, ctl):
    """50,000 lines of one executor, none lost or broken."""
    j = job()
    j.executor("ps", 0, "RUNNING")
    j.state("RUNNING")
    j.log("ps", 0, b"".join(b"%d some text that makes a line of usual length\n" % i for i in range(50_000)))
    j.finish()
    lines = ctl("logs", "ps", timeout=60).stdout.splitlines()
    assert [int(l.split()[0]) for l in lines] == list(range(50_000))


def test_events(master, job, ctl):
    j = job()
    running(j)
    threading.Timer(0.3, lambda: j.finish("KILLED")).start()
    r = ctl("events", "-f")
    assert r.returncode == 0 and r.stdout.splitlines()[-1].endswith("KILLED")
    assert len(r.stdout.splitlines()) == len(j.events)
    first = json.loads(ctl("events", "--json", 1).stdout.splitlines()[0])
    assert first["sequence"] == 1


@pytest.mark.parametrize("ends,code", [(["SUCCEEDED", "SUCCEEDED"], 0), (["SUCCEEDED", "KILLED"], 3), (["FAILED", "KILLED"], 1)])
def test_wait(master, job, ctl, ends, code):
    jobs = [job(), job()]
    threading.Timer(0.3, lambda: [j.finish(end) for j, end in zip(jobs, ends)]).start()
    r = ctl("wait", 1, 2)
    assert r.returncode == code
    assert sorted(r.stdout.splitlines()) == [f"Job {i + 1} {end}" for i, end in enumerate(ends)]


def test_wait_latest_that_has_ended(master, job, ctl):
    job().finish("FAILED")
    assert ctl("wait", "-q").returncode == 1
    assert ctl("wait", 5).returncode == 1


def test_signals_of_others_are_not_believed(master, job, ctl, bus):
    from jeepney import DBusAddress, new_signal
    from jeepney.io.blocking import open_dbus_connection
    job()
    forger = open_dbus_connection(bus)

    def forge():
        forger.send(new_signal(DBusAddress("/org/primus/Master1/job/1", interface="org.freedesktop.DBus.Properties"),
                               "PropertiesChanged", "sa{sv}as", ("org.primus.Master1.Job", {"State": ("s", "SUCCEEDED")}, [])))
        time.sleep(0.3)
        master.jobs[1].finish("FAILED")
    threading.Timer(0.3, forge).start()
    assert ctl("wait", 1).returncode == 1


def test_kill(master, job, ctl):
    job(), job()
    r = ctl("kill", "--reason", "enough", 1, 2)
    assert r.returncode == 0 and master.jobs[1].killed == "enough" == master.jobs[2].killed
    assert ctl("kill").returncode == 2
    assert ctl("kill", 9).returncode == 1
    master.refuse["Kill"] = Refuse("org.freedesktop.DBus.Error.AccessDenied", "job 1 is of another user")
    r = ctl("kill", 1)
    assert r.returncode == 1 and "another user" in r.stderr


def test_delete(master, job, ctl):
    job(), job()
    master.jobs[1].finish("FAILED")
    r = ctl("delete", 2, 1)
    assert r.returncode == 1 and "only what has ended" in r.stderr and r.stdout == "Job 1 is deleted\n"
    assert list(master.jobs) == [2]
    assert ctl("delete", 1).returncode == 1
    assert ctl("delete").returncode == 2, "never a job that nobody named"


def test_kill_with_its_own_exit_status(master, job, ctl):
    for n in range(3):
        job().state("RUNNING")
    assert ctl("kill", "--exit-status", "42", "--reason", "no GPU", 1).returncode == 0
    assert (master.jobs[1].killed, master.jobs[1].kill_status, master.jobs[1].kill_grace) == ("no GPU", 42, None)
    assert ctl("wait", 1).returncode == 42
    assert json.loads(ctl("wait", "--json", 1).stdout) == {"job": 1, "state": "KILLED", "exitStatus": 42}
    assert ctl("kill", "--exit-status=7", "--grace=1s", 2).returncode == 0 and master.jobs[2].kill_grace == 1_000_000
    assert ctl("wait", 1, 2).returncode == 3, "of several, the word that stands for all"
    assert ctl("kill", 3).returncode == 0 and ctl("wait", 3).returncode == 3
    for wrong in ("0", "126", "-1", "x"):
        r = ctl("kill", f"--exit-status={wrong}", 3)
        assert r.returncode == 2 and "1 to 125" in r.stderr, wrong


def test_kill_with_its_own_grace(master, job, ctl):
    job(), job()
    assert ctl("kill", "--grace", "90s", "--reason", "enough", 1).returncode == 0
    assert (master.jobs[1].killed, master.jobs[1].kill_grace) == ("enough", 90_000_000)
    assert ctl("kill", "--grace=0", 2).returncode == 0 and master.jobs[2].kill_grace == 0
    for wrong in ("soon", "-1s", ""):
        r = ctl("kill", f"--grace={wrong}", 1)
        assert r.returncode == 2 and "--grace" in r.stderr, wrong
    assert ctl("succeed", "--grace=1s", 1).returncode == 2, "it is kill's alone"


def test_nodes(master, ctl):
    master.nodes = [("n1", "READY", "10.99.0.11", 2.0, 1.5, 8 << 30, 6 << 30, 1, 0, 3, now(), {"limits": ("b", True), "takenOver": ("t", now() - 7200_000_000)}),
                    ("n3", "READY", "10.99.0.13", 2.0, 1.5, 8 << 30, 6 << 30, 0, 0, 3, now(), {"limits": ("b", True), "takenOver": ("t", now() - 8 * 86400_000_000)}),
                    ("n2", "LOST", "10.99.0.12", 2.0, 2.0, 8 << 30, 8 << 30, 0, 0, 0, now() - 90_000_000,
                     {"reason": ("s", "silent"), "limits": ("b", False)})]
    r = ctl("nodes")
    assert "1.5/2 free" in r.stdout and "6G/8G free" in r.stdout and "0/1 free" in r.stdout
    assert "taken over by a host that joined 2h ago" in r.stdout and r.stdout.count("taken over") == 1
    assert "silent; limits are not enforced" in r.stdout and "1min 30s ago" in r.stdout
    rows = json.loads(ctl("nodes", "--json").stdout)
    assert rows[0]["cpusFree"] == 1.5 and rows[2]["state"] == "LOST"
    r = ctl("node", "events", "n2")
    assert (r.returncode, r.stdout) == (0, "") and "Nothing has happened to n2 yet" in r.stderr
    master.node_events = [(7, 1_700_000_000_000_000, "held", "takes nothing new (uid 0: \x1b[31mslow)"), (8, 1_700_000_060_000_000, "state", "is LOST (was READY)")]
    r = ctl("node", "events", "n2")
    assert [line[21:] for line in r.stdout.splitlines()] == ["takes nothing new (root: ?[31mslow)", "is LOST (was READY)"]
    assert json.loads(ctl("node", "events", "n2", "--json").stdout)[1] == {"sequence": 8, "time": 1_700_000_060_000_000, "kind": "state", "text": "is LOST (was READY)"}
    assert ctl("node", "remove", "n2").returncode == 0
    r = ctl("node", "declare-dead", "n9")
    assert r.returncode == 1 and r.stderr.count("\n") == 1
    assert ctl("node", "paint", "n2").returncode == 2


@pytest.mark.parametrize("arguments, says", (
    (("cordon",), "usage"), (("cordon", "No_Name"), "not a node's name"), (("label", "n1"), "usage: primusctl node label"),
    (("drain", "n1", "--deadline", "soon"), "--deadline"), (("drain", "n1", "--grace", "x"), "--grace"),
    (("drain", "n1", "--from", "+1h"), "go with maintenance"), (("cordon", "n1", "--wait"), "go with drain"),
    (("uncordon", "n1", "--reason", "x"), "--reason goes with"), (("maintenance", "n1", "--from", "+1h"), "go together"),
    (("maintenance", "n1", "--from", "2026-02-30 08:00", "--to", "+1h"), "no such date"),
    (("maintenance", "n1", "soon"), "cancel"), (("show", "n1", "n2"), "usage")))
def test_node_command_lines(master, ctl, arguments, says):
    r = ctl("node", *arguments)
    assert r.returncode == 2 and says in r.stderr, r.stderr


def test_token(master, ctl):
    r = ctl("token", "create", "--uses", 3, "--expires", "2h", "--from", "10.0.0.0/8")
    assert r.stdout == "primus1.abcdef\n" and r.stderr == ""
    assert {k: v[1] for k, v in master.last_token.items()} == {"uses": 3, "expires": 7200_000_000, "from": "10.0.0.0/8"}
    for arguments, terms in ((("--name", "n7"), {"name": "n7", "replace": False}), (("--replace=n7",), {"name": "n7", "replace": True})):
        assert ctl("token", "create", *arguments).returncode == 0
        assert {k: v[1] for k, v in master.last_token.items()} == terms
    both = ctl("token", "create", "--name=n7", "--replace=n7")
    assert both.returncode == 2 and "leave --name out" in both.stderr


def test_config_of_a_job(master, job, ctl):
    job()
    assert json.loads(ctl("config", 1).stdout) == json.loads(SPEC)


def test_tokens(master, ctl, tty):
    r = ctl("token", "list")
    assert r.returncode == 0 and r.stdout == "There is no token that is still good; 'primusctl token create' makes one\n"
    soon = int((time.time() + 3600) * 1e6)
    bound = {"name": ("s", "n7"), "replace": ("b", True), "more": ("u", 1)}
    master.tokens = [("00ff", 1, soon, "", 0, {}), ("abcd", 5, soon, "10.0.0.0/8", 4000000000, {}), ("eeee", 1, soon, "", 0, bound)]
    lines = ctl("token", "list").stdout.splitlines()
    assert lines[0].split() == ["TOKEN", "HOSTS", "LEFT", "FOR", "FROM", "MADE", "BY"] and lines[1].split()[0] == "00ff" and lines[1].split()[-2:] == ["anywhere", "root"]
    assert lines[2].split()[-3:] == ["10.0.0.0/8", "uid", "4000000000"]
    assert "new hosts" in lines[1] and "n7 (replaced)" in lines[3]
    rows = json.loads(ctl("token", "list", "--json").stdout)
    assert [(row["token"], row["name"], row["replace"]) for row in rows] == [("00ff", "", False), ("abcd", "", False), ("eeee", "n7", True)]
    assert ctl("token", "revoke", "abcd").stdout == "Token abcd opens nothing any more\n" and len(master.tokens) == 2
    for arguments, status, says in [(("revoke", "abcd"), 1, "There is no token 'abcd'"), (("revoke",), 2, "token list"), (("revoke", "primus1.x"), 2, "token list"),
                                    (("list", "x"), 2, "unexpected: x"), (("list", "--uses=2"), 2, "token create"), (("make",), 2, "create, list and revoke")]:
        r = ctl("token", *arguments)
        assert r.returncode == status and says in r.stderr and r.stdout == "", r
    # Alone on stdout; what a person wants to know stands beside it, for people.
    r = ctl("token", "create")
    assert r.stdout == "primus1.abcdef\n" and r.stderr == ""
    t = tty("token", "create", "--uses=3")
    assert t.wait() == 0 and b"Good for 3 new hosts, for 1h" in t.seen and b"primusctl join " in t.seen


def test_help(ctl):
    commands = [word for word in ctl("--words").stdout.splitlines() if not word.startswith("-")]
    everything = ctl("--help").stdout
    assert len(commands) > 30 and max(map(len, everything.splitlines())) <= 110
    for command in commands:
        r = ctl(command, "--help")
        assert r.returncode == 0 and r.stdout.startswith(f"primusctl {command}") and r.stderr == "", command
        assert max(map(len, r.stdout.splitlines())) <= 110 and not r.stdout.splitlines()[0].endswith(" "), command
        options = [line.split()[0] for line in r.stdout.splitlines() if line.startswith("      --")]
        assert len(options) == len(set(option.split("=")[0] for option in options)), command
        assert f"\n  {command} " in everything, command


def test_words(ctl):
    assert "submit" in ctl("--words").stdout.splitlines()
    assert "--follow" in ctl("--words", "logs").stdout.splitlines()
    assert "--name=" in ctl("--words", "run").stdout.splitlines()


def test_color(master, job, ctl, tty):
    running(job())
    assert "\x1b[" not in ctl("list").stdout
    assert "\x1b[32m" in ctl("list", "--color=always").stdout
    t = tty("list")
    assert t.wait() == 0 and b"\x1b[32m" in t.seen
    t = tty("list", NO_COLOR="1")
    assert t.wait() == 0 and b"\x1b[32m" not in t.seen
    assert ctl("list", "--color=pink").returncode == 2
