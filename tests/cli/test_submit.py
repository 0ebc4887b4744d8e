# SPDX-License-Identifier: Apache-2.0
"""primusctl submit, primus-submit: what is sent, what is said, bad input."""
import hashlib
import io
import json
import os
import subprocess
import tarfile
import time

import pytest
from fakemaster import Job, Refuse

HELLO = {"name": "primus-hello", "role": [
    {"roleName": "worker", "num": 2, "command": "true", "successPercent": 100},
    {"roleName": "ps", "num": 1, "command": "true", "successPercent": 100}]}


@pytest.fixture
def hello(tmp_path):
    (tmp_path / "job.json").write_text("// the first job\n" + json.dumps(HELLO, indent=2))
    return "job.json"


@pytest.fixture
def lenient(master):
    """The fake reads plain JSON only."""
    import fakemaster
    submit = master.do_Submit
    master.do_Submit = lambda target, config, options: submit(
        target, b"\n".join(l for l in bytes(config).split(b"\n") if not l.startswith(b"//")), options)
    return fakemaster


def test_submit(master, lenient, ctl, hello):
    master.warnings = ["3:5: role[0]: odd", "all of it is odd"]
    r = ctl("submit", hello)
    assert (r.returncode, r.stdout) == (0, "Submitted job 1 (primus-hello)\n")
    assert r.stderr == "job.json:3:5: warning: role[0]: odd\njob.json: warning: all of it is odd\n"
    assert master.calls == ["Submit"]


def test_options(master, lenient, ctl, hello, tmp_path):
    (tmp_path / "key").write_bytes(b"s\0cret")
    r = ctl("submit", "--name=other", "--env", "A=1", "--env", "HOME", "--secret", "TOKEN=key", hello)
    assert r.stdout == "Submitted job 1 (other)\n"
    options = master.jobs[1].options
    assert options["name"] == ("s", "other")
    assert [bytes(e) for e in options["env"][1]] == [b"A=1", b"HOME=" + os.environ["HOME"].encode()]
    assert [(n, bytes(v)) for n, v in options["secrets"][1]] == [("TOKEN", b"s\0cret")]


def test_json(master, lenient, ctl, hello):
    assert json.loads(ctl("submit", "--json", hello).stdout) == {"job": 1, "name": "primus-hello",
                                                                "path": "/org/primus/Master1/job/1"}


def test_bad_config_names_the_file(master, ctl, hello):
    master.refuse["Submit"] = Refuse("org.primus.Error.BadConfig", "4:7: role[0].comand: there is no such key")
    r = ctl("submit", hello)
    assert (r.returncode, r.stdout, r.stderr) == (1, "", "job.json:4:7: role[0].comand: there is no such key\n")


def test_refused(master, ctl, hello):
    master.refuse["Submit"] = Refuse("org.primus.Error.Refused", "kafkaConfig is not built yet")
    r = ctl("submit", hello)
    assert (r.returncode, r.stderr) == (1, "primusctl: kafkaConfig is not built yet\n")


def test_bad_files(master, ctl, tmp_path):
    with open(tmp_path / "huge.json", "wb") as f:
        f.truncate(100 << 20)
    (tmp_path / "latin.json").write_bytes(b'{\n"name": "\xff"}')
    (tmp_path / "nul.json").write_bytes(b'{}\0')
    start = time.monotonic()
    for path, text in [("latin.json", "latin.json:2:10: error: not UTF-8"), ("nul.json", "nul.json:1:3: error: ")]:
        r = ctl("validate", path)
        assert r.returncode == 1 and r.stderr.startswith(text) and r.stderr.count("\n") == 1, (path, r.stderr)
    for path, text in [("huge.json", "huge.json: larger than 4 MiB"), (".", ".: is a directory"),
                       ("none.json", "none.json: No such file"), ("/dev/zero", "/dev/zero: larger than 4 MiB")]:
        r = ctl("submit", path)
        assert r.returncode == 1 and r.stderr.startswith(text) and r.stderr.count("\n") == 1, (path, r.stderr)
    assert time.monotonic() - start < 5
    assert master.calls == []


def test_nobody_there(ctl, hello, bus):
    r = ctl("submit", hello)
    assert r.returncode == 4 and "systemctl enable --now primus-masterd" in r.stderr and r.stderr.count("\n") == 1
    r = ctl("list", env={"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent"})
    assert r.returncode == 4 and r.stderr.count("\n") == 1


def test_files(master, ctl, tmp_path):
    (tmp_path / "src" / "lib").mkdir(parents=True)
    (tmp_path / "src" / "train.py").write_text("print(1)")
    (tmp_path / "src" / "lib" / "b.py").write_text("b")
    (tmp_path / "src" / "lib" / "a.py").write_text("a")
    (tmp_path / "src" / "lib" / "link").symlink_to("a.py")
    os.chmod(tmp_path / "src" / "train.py", 0o4755)
    (tmp_path / "outside").write_bytes(os.urandom(700_000))
    (tmp_path / "src" / "job.json").write_text(json.dumps({**HELLO, "files": ["train.py", "./lib/", "../outside"]}))
    r = ctl("submit", "src/job.json")
    assert r.returncode == 0, r.stderr
    (digest, data), = master.bundles.items()
    assert master.jobs[1].options["bundle"] == ("s", digest)
    assert hashlib.sha256(data).hexdigest() == digest
    plain = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        members = tar.getmembers()
        assert [m.name for m in members] == ["outside", "lib", "lib/a.py", "lib/b.py", "lib/link", "train.py"]
        assert {(m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, "", "")}
        assert tar.getmember("train.py").mode == 0o755
        assert tar.extractfile("lib/a.py").read() == b"a"
    # Again: the same bytes, and none is sent twice.
    master.calls.clear()
    assert ctl("submit", "src/job.json").returncode == 0
    assert list(master.bundles) == [digest] and master.calls == ["PutBundle", "Submit"]


@pytest.mark.parametrize("files,text", [
    (["missing.py"], "missing.py: No such file"),
    (["fifo"], "neither a file nor a folder"),
    (["bad"], "bad/link: is a link that leaves what is sent, to ../../etc/passwd; leave it out with a line in .primusignore"),
])
def test_bad_files_list(master, ctl, tmp_path, files, text):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "link").symlink_to("../../etc/passwd")
    (tmp_path / "job.json").write_text(json.dumps({**HELLO, "files": files}))
    r = ctl("submit", "job.json")
    assert r.returncode == 1 and text in r.stderr and r.stderr.startswith("job.json: files[]") and master.jobs == {}


def script(job):
    job.status["data"] = ("a{sv}", {"tasks": ("t", 30), "done": ("t", 12), "bytes": ("t", 3 << 20), "acked": ("t", 1 << 20),
                                    "scanned": ("b", True)})
    job.state("QUEUED", "3 executors wait for 1 more GPU")
    job.status["reason"] = ("s", "")
    job.everybody("RUNNING")
    job.state("RUNNING")
    job.log("ps", 0, b"loss 0.5\n")
    time.sleep(0.7)
    job.executor("worker", 1, "FAILED", result=("s", "exit-code"), status=("i", 3))
    job.executor("worker", 1, "RUNNING", attempt=2, restarts=("u", 1))
    job.log("ps", 0, b"loss 0.1\n")
    job.finish("SUCCEEDED")


def test_wait_on_a_pipe(master, lenient, ctl, hello):
    master.on_submit = script
    r = ctl("submit", "--wait", "--follow", "ps", hello)
    assert r.returncode == 0, r.stderr
    lines = r.stdout.splitlines()
    assert lines[0] == "Submitted job 1 (primus-hello)"
    assert "Job 1: RUNNING" in lines and "Job 1: worker/1 attempt 1 FAILED on n1" in lines
    assert "ps/0 | loss 0.5" in lines and "ps/0 | loss 0.1" in lines
    assert "\x1b" not in r.stdout
    assert [l.split() for l in lines if l.startswith("worker ")] == [["worker", "2", "0", "0", "2", "0", "0", "1",
                                                                      next(l for l in lines if l.startswith("worker ")).split()[-1]]]
    assert any(l.startswith("Job 1 (primus-hello)  SUCCEEDED") for l in lines)


def test_wait_on_a_terminal(master, lenient, tty, hello):
    master.on_submit = script
    t = tty("submit", "--wait", "--follow", "ps", hello)
    assert t.wait() == 0
    text = t.seen.decode()
    assert "12/30 tasks" in text and "1M of 3M" in text and "[########" in text
    assert "\x1b[J" in text
    assert "ps/0 | \x1b[0mloss 0.1\r\n" in text
    assert "SUCCEEDED" in text


def test_wait_failed(master, lenient, ctl, hello):
    def fail(job):
        job.state("RUNNING")
        job.everybody("RUNNING")
        job.status["firstError"] = ("s", "Traceback:\n  ValueError: x\x1b[2J")
        job.finish("FAILED", "worker/1: exit 1")
    master.on_submit = fail
    r = ctl("submit", "-w", hello)
    assert r.returncode == 1
    assert "worker/1: exit 1" in r.stdout and "ValueError: x?[2J" in r.stdout
    r = ctl("submit", "-w", "--json", hello)
    assert r.returncode == 1
    status = json.loads(r.stdout[r.stdout.index("}") + 1:])
    assert status["state"] == "FAILED" and status["reason"] == "worker/1: exit 1"


def test_wait_failed_array(master, lenient, ctl, hello):
    """What failed is an element; its output is shown too, when it is asked for."""
    def fail(array):
        array.executors.clear()
        array.status["array"] = ("a{sv}", {"size": ("u", 9), "failed": ("u", 2), "firstFailed": ("u", 4)})
        array.status["firstError"] = ("s", f"{array.number}[4]: ValueError: x")
        array.state("RUNNING")
        number = len(master.jobs) + 1
        element = master.jobs[number] = Job(master, number, array.config.encode(), {})
        element.status["array"] = ("a{sv}", {"of": ("u", array.number), "index": ("u", 4)})
        element.everybody("RUNNING")
        for role, index in element.executors:
            element.log(role, index, b"some words\n")
        element.finish("FAILED", "exit 1")
        array.state("FAILED", "7 of 9 succeeded, 2 failed; first: 1[4] FAILED: exit 1")
    master.on_submit = fail
    r = ctl("submit", "-w", hello)
    assert r.returncode == 1 and "1[4]: ValueError: x" in r.stdout
    assert "more: primusctl status 1[4]   primusctl logs 1[4]   primusctl list --all --state FAILED --array 1\n" in r.stdout
    r = ctl("submit", "-w", "--logs", hello)
    assert r.returncode == 1 and "/0 | some words\n" in r.stdout and "[4] " in r.stdout


def test_wait_detach(master, lenient, tty, hello):
    master.on_submit = lambda job: (job.everybody("RUNNING"), job.state("RUNNING"))
    t = tty("submit", "--wait", hello)
    t.until(b"3 of 3 executors")
    t.key(b"\x03")
    t.until(b"job 1 goes on")
    assert t.wait() == 130 and master.jobs[1].killed is None


def test_upstream_command_line(master, lenient, ctl, hello):
    master.on_submit = lambda job: job.finish("KILLED")
    assert ctl("--primus_conf", hello, program="primus-submit").stdout == "Submitted job 1 (primus-hello)\n"
    r = ctl(f"--primus_conf={hello}", "--wait_app_completion=true", "--command", "submit", program="/usr/bin/primus-submit")
    assert r.returncode == 3 and "KILLED" in r.stdout
    for args, text in [([], "--primus_conf FILE is missing"), (["--primus_conf", hello, "--command", "kill"], "only submit"),
                       (["--primus_conf", hello, "--wait_app_completion", "maybe"], "true or false")]:
        r = ctl(*args, program="primus-submit")
        assert r.returncode == 2 and text in r.stderr and r.stderr.startswith("primus-submit: ")


def test_validate_and_config(ctl, tmp_path, hello):
    assert ctl("validate", hello).stdout == "job.json: good: primus-hello, 2 roles, 3 executors\n"
    effective = json.loads(ctl("config", hello).stdout)
    assert effective["role"][0]["num"] == 2 and effective["role"][0]["vcores"] == 1
    (tmp_path / "bad.json").write_text('{\n  "role": [ { "roleName": "a", "num": 1, "comand": "x" } ]\n}')
    r = ctl("validate", "bad.json")
    assert r.returncode == 1 and r.stderr.startswith("bad.json:2:") and "error: role[0].comand" in r.stderr
    report = json.loads(ctl("validate", "--json", hello, "bad.json").stdout)
    assert [f["valid"] for f in report] == [True, False] and report[1]["diagnostics"][0]["line"] == 2


def test_start_options(master, lenient, ctl, hello):
    """--after, --begin and --array reach the master; times of people are absolute there."""
    r = ctl("submit", "--after", "12,13:any", "--after=14:fail", "--begin", "2096-01-31T09:00:00+01:00", "--array", "0-9%2", hello)
    assert r.returncode == 0, r.stderr
    options = master.jobs[0].options if isinstance(master.jobs, list) else master.jobs[1].options
    assert options["after"] == ("as", ["12", "13:any", "14:fail"])
    assert options["begin"] == ("s", "2096-01-31T08:00:00Z")
    assert options["array"] == ("s", "0-9%2")
    begin = time.time() + 7200
    assert ctl("submit", "--begin", "+2h", hello).returncode == 0
    told = (master.jobs[1] if isinstance(master.jobs, list) else master.jobs[2]).options["begin"][1]
    assert abs(time.mktime(time.strptime(told, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone - begin) < 30


def test_bad_begin(master, lenient, ctl, hello):
    for bad in ("noon", "25:00", "2026-02-30", "+", ""):
        r = ctl("submit", "--begin", bad, hello)
        assert r.returncode == 2 and "--begin: expected a time" in r.stderr
    assert not master.jobs
    r = ctl("submit", "--begin", "2020-01-31 08:00", hello)
    assert r.returncode == 2 and "--begin: 2020-01-31" in r.stderr and "is over" in r.stderr and not master.jobs
    r = ctl("submit", "--priority", "1001", hello)
    assert r.returncode == 2 and "--priority: expected a number from -1000 to 1000, not '1001'" in r.stderr


BROKEN = json.dumps({"name": "x", "files": ["train.py", "gone.py", "train.py", "../out/link"],
                     "role": [{"roleName": "worker", "num": 1, "command": "true"}]})


def test_validate_sees_the_files_that_submit_would_send(master, ctl, tmp_path):
    """Both say of every file what is wrong with it, before anything is sent."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "job.json").write_text(BROKEN)
    says = ["../out/link: No such file or directory", "gone.py: No such file or directory", "train.py: No such file or directory"]
    r = ctl("validate", "a/job.json")
    assert (r.returncode, r.stdout) == (1, "") and r.stderr.splitlines() == [f"a/job.json: error: files[]: {text}" for text in says]
    r = ctl("submit", "a/job.json")
    assert r.returncode == 1 and r.stderr.splitlines() == [f"a/job.json: files[]: {text}" for text in says] and not master.jobs
    (found,) = json.loads(ctl("validate", "a/job.json", "--json").stdout)
    assert not found["valid"] and [(d["severity"], d["path"], d["message"]) for d in found["diagnostics"]] == [("error", "files", text) for text in says]
    assert ctl("validate", "a/job.json", "--json").stderr == ""
    (tmp_path / "a" / "job.json").write_text(BROKEN.replace(', "../out/link"', ""))
    for name in ("train.py", "gone.py"):
        (tmp_path / "a" / name).write_text("pass\n")
    r = ctl("validate", "a/job.json")
    assert r.returncode == 0 and r.stdout == "a/job.json: good: x, 1 role, 1 executor\n" and r.stderr == "" and not master.bundles


def test_submit_says_all_that_is_wrong(master, ctl, tmp_path):
    """As validate does, when masterd has refused the configuration."""
    (tmp_path / "job.json").write_text('{"name": "x",\n "quene": "y",\n "role": [{"roleName": "worker", "num": "two", "command": "true"}]}')
    every = ctl("validate", "job.json").stderr
    assert every.count("error:") >= 2
    first = every.splitlines()[0].replace(" error:", "").removeprefix("job.json:")
    master.refuse["Submit"] = Refuse("org.primus.Error.BadConfig", first)
    r = ctl("submit", "job.json")
    assert r.returncode == 1 and r.stderr == every
    # A master that knows better than this primusctl.
    master.refuse["Submit"] = Refuse("org.primus.Error.BadConfig", "9:9: something newer")
    assert ctl("submit", "job.json").stderr == "job.json:9:9: something newer\n" + every


def test_visible(master, lenient, ctl, hello):
    """Who may look is the master's to decide; the words are checked here."""
    r = ctl("submit", "--visible=friends", hello)
    assert r.returncode == 2 and "--visible: expected owner, group, pool or all, not 'friends'" in r.stderr and not master.jobs
    assert ctl("submit", "--visible=group", hello).returncode == 0
    assert master.jobs[1].options["visible"] == ("s", "group")
    assert ctl("run", "--visible", "all", "--detach", "--", "true").returncode == 0
    assert master.jobs[2].options["visible"] == ("s", "all")
    assert ctl("submit", hello).returncode == 0 and "visible" not in master.jobs[3].options


# ---- what the site says of all jobs

LAYERS = [("10-site.json", json.dumps({"defaults": {"time": "2h", "role": {"memoryMb": 64, "env": {"OMP_NUM_THREADS": "4"}}}})),
          ("20-night.json", json.dumps({"pools": ["night"], "forced": {"onPartition": "stop"}}))]


def test_config_origin(master, ctl, tmp_path):
    """Each value of a file, and which file it is from: the person's, one of the site's, or none."""
    master.job_defaults = LAYERS
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"command": "true", "memory": "2G", "queue": "night"}))
    rows = {row["key"]: row for row in json.loads(ctl("config", "--origin", job, "--json").stdout)}
    assert rows["role[0].memoryMb"] == {"key": "role[0].memoryMb", "value": 2048, "from": "file", "file": str(job)}
    assert rows["role[0].env.OMP_NUM_THREADS"] == {"key": "role[0].env.OMP_NUM_THREADS", "value": "4", "from": "site", "file": "job-defaults.d/10-site.json"}
    assert rows["onPartition"]["file"] == "job-defaults.d/20-night.json"
    assert rows["requeue"] == {"key": "requeue", "value": False, "from": "built in"}
    text = ctl("config", "--origin", job).stdout
    assert text.splitlines()[0].split() == ["KEY", "VALUE", "FROM"]
    assert ["timeLimit", "7200", "job-defaults.d/10-site.json"] in [line.split() for line in text.splitlines()]
    job.write_text(json.dumps({"command": "true", "queue": "night", "onPartition": "wait"}))
    done = ctl("config", "--origin", job)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"{job}: error: onPartition: 20-night.json forces \"stop\" for all jobs of this pool, and not \"wait\"; leave it out\n")
    # Of other pools nothing is forced.
    job.write_text(json.dumps({"command": "true", "onPartition": "wait"}))
    assert ctl("config", "--origin", job).returncode == 0


def test_config_origin_without_a_master(ctl, tmp_path):
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"command": "true"}))
    assert ctl("config", job).returncode == 0
    done = ctl("config", "--origin", job)
    assert done.returncode == 4 and done.stdout == "" and "cannot reach masterd" in done.stderr
    assert ctl("config", "--origin", tmp_path / "none.json").returncode == 1


def test_dry_run(master, lenient, ctl, hello):
    master.warnings = ["3:5: role[0]: odd"]
    master.trial = {"starts": ("b", True), "executors": ("u", 3), "pool": ("s", "research"), "priority": ("i", 5), "reason": ("s", "")}
    r = ctl("submit", "--dry-run", "--priority=5", "--after=7", hello)
    assert (r.returncode, r.stdout) == (0, "Nothing was submitted. It would start now in pool research at priority 5: 3 executors\n")
    assert r.stderr == "job.json:3:5: warning: role[0]: odd\n" and master.calls == ["TrySubmit"]
    assert set(master.tried) == {"priority", "after"}
    assert json.loads(ctl("submit", "-n", "--json", hello).stdout)["warnings"] == ["3:5: role[0]: odd"]
    master.trial.update({"starts": ("b", False), "executors": ("u", 0), "reason": ("s", "after job 7 (RUNNING)"), "elements": ("u", 10),
                         "savepoint": ("s", "monday"), "summary": ("s", "role worker: 1 of 3 fit now"), "position": ("t", 2), "victims": ("u", 1),
                         "hosts": ("a(us)", [(2, "short of GPUs now")]), "suggestions": ("as", ["worker minNum 1 (instead of 3)"])})
    assert ctl("submit", "-n", hello).stdout == """\
Nothing was submitted. The first element would wait in pool research at priority 5, number 2 in the queue
  after job 7 (RUNNING)
  then, as things are now: role worker: 1 of 3 fit now
  1 job would be stopped for it
  hosts: 2 short of GPUs now
  would start now with worker minNum 1 (instead of 3)
  an array of 10 elements
  goes on from savepoint monday, which is looked at when it is submitted
"""
    master.trial.update({"ends": ("b", True), "reason": ("s", "job 7 FAILED (after 7:ok)")})
    assert ctl("submit", "-n", hello).stdout == "Nothing was submitted. It would end at once: job 7 FAILED (after 7:ok)\n"
    assert not master.jobs
    for option in ("--wait", "--parsable", "--key=a"):
        r = ctl("submit", "-n", option, hello)
        assert r.returncode == 2 and "--dry-run submits nothing" in r.stderr


def test_a_key_of_its_own(master, lenient, ctl, hello):
    """Each call has one, so that masterd may be asked again."""
    assert ctl("submit", "--key", "nightly", hello).returncode == 0
    assert master.jobs[1].options["key"] == ("s", "nightly")
    ctl("submit", hello)
    ctl("submit", hello)
    own = [master.jobs[n].options["key"][1] for n in (2, 3)]
    assert own[0] != own[1] and all(len(key) == 32 for key in own)


def test_asked_again_under_the_same_key(master, lenient, ctl, hello):
    """masterd has gone without an answer."""
    submit, keys = master.do_Submit, []

    def lost_once(target, config, options):
        keys.append(options["key"])
        if len(keys) == 1:
            raise Refuse("org.freedesktop.DBus.Error.NoReply", "Remote peer disconnected")
        return submit(target, config, options)

    master.do_Submit = lost_once
    assert ctl("submit", hello).stdout == "Submitted job 1 (primus-hello)\n"
    assert len(keys) == 2 and keys[0] == keys[1]
