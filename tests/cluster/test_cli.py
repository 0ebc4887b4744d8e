# SPDX-License-Identifier: Apache-2.0
"""Every command of primusctl on a real cluster: what it prints, what --json holds, how it exits."""
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest
from sandbox import SANDBOX, SOURCE

HELLO = os.path.join(SOURCE, "examples/hello/hello.json")


def run(cluster, *arguments, **options):
    """primusctl as ml on n1. (status, standard output, standard error)"""
    done = cluster.run("n1", "primusctl", *arguments, **{"user": "ml", **options})
    return done.returncode, done.stdout, done.stderr


def latest(cluster):
    return cluster.primusctl_json("status")["job"]


def sleeper(cluster, seconds=300, **options):
    config = {"name": "sleeper", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 16,
                                           "command": f"echo here; exec sleep {seconds}"}]}
    job = cluster.submit(config, **options)
    cluster.wait_state(job, "RUNNING")
    return job


# Looking at jobs

def test_a_job_that_succeeds(cluster):
    assert run(cluster, "submit", "/usr/share/doc/primus/examples/hello/hello.json", "--wait")[0] == 0
    job = latest(cluster)
    assert run(cluster, "wait", str(job)) == run(cluster, "wait")  # JOB left out is the latest
    assert run(cluster, "wait", "-q", str(job)) == (0, "", "")
    status = cluster.primusctl_json("status", str(job))
    assert (status["state"], status["name"], status["owner"]) == ("SUCCEEDED", "hello", 1000)
    assert {(e["role"], e["index"], e["state"], e["exitStatus"]) for e in status["executors"]} == {
        ("chief", 0, "SUCCEEDED", 0), ("worker", 0, "SUCCEEDED", 0), ("worker", 1, "SUCCEEDED", 0)}
    text = cluster.primusctl("status")
    assert f"Job {job} (hello)  SUCCEEDED" in text and f"primus-{job}-chief-0.1.service" in text
    assert "hello from worker 1" in cluster.primusctl("logs", str(job), "worker/1")
    lines = cluster.primusctl("logs").splitlines()
    assert {line.split(" | ")[0] for line in lines} == {"chief/0", "worker/0", "worker/1"}
    events = [json.loads(line) for line in cluster.primusctl("events", str(job), "--json").splitlines()]
    assert events and all({"time", "kind"} <= set(e) for e in events)
    assert cluster.primusctl("events").splitlines()


def test_a_job_that_fails(cluster):
    config = {"name": "bad", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "exit 5", "successPercent": 100,
                                       "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}}]}
    job = cluster.submit(config)
    assert cluster.wait_job(job) == 1
    status = cluster.primusctl_json("status", str(job))
    assert status["state"] == "FAILED" and status["executors"][0]["exitStatus"] == 5
    assert "exit status 5" in cluster.primusctl("status", str(job))


def test_list(cluster):
    job = sleeper(cluster)
    rows = cluster.primusctl_json("list")
    row = next(row for row in rows if row["job"] == job)
    assert (row["name"], row["state"]) == ("sleeper", "RUNNING")
    assert all(row["state"] not in ("SUCCEEDED", "FAILED", "KILLED") for row in rows)
    line = next(line for line in cluster.primusctl("list", "--mine").splitlines() if line.split()[0] == str(job))
    assert line.split()[1:4] == ["sleeper", "ml", "RUNNING"] and "2/2" in line
    assert run(cluster, "kill", str(job))[0] == 0
    assert cluster.wait_job(job) == 3
    assert job not in [row["job"] for row in cluster.primusctl_json("list")]
    assert [row["job"] for row in cluster.primusctl_json("list", "-a", "--limit", "1")] == [job]
    assert job in [row["job"] for row in cluster.primusctl_json("list", "-a", "--state", "KILLED")]


def test_kill_says_why(cluster):
    job = sleeper(cluster)
    assert run(cluster, "kill", "--reason", "enough of it", str(job))[0] == 0
    status, out, _ = run(cluster, "wait", str(job))
    assert status == 3 and "KILLED" in out
    assert "enough of it" in cluster.primusctl("events", str(job))
    assert cluster.primusctl_json("status", str(job))["state"] == "KILLED"


def test_logs_follow(cluster):
    config = {"name": "counts", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 16, "successPercent": 100,
                                          "command": "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done"}]}
    job = cluster.submit(config)
    out = cluster.primusctl("logs", "-f", str(job))
    assert sorted(out.splitlines()) == sorted(f"worker/{i} | line {n}" for i in range(2) for n in range(1, 6))
    assert cluster.primusctl("logs", "--tail", "1", str(job), "worker/0").strip().endswith("line 5")
    objects = [json.loads(line) for line in cluster.primusctl("logs", "--json", str(job)).splitlines()]
    assert len(objects) == 10 and {(o["role"], o["index"]) for o in objects} == {("worker", 0), ("worker", 1)}
    directory = cluster.exec("n1", "mktemp", "-d", user="ml").strip()
    cluster.primusctl("logs", "--output", f"{directory}/%r-%i.log", str(job))
    assert cluster.exec("n1", "cat", f"{directory}/worker-1.log", user="ml") == "".join(f"line {n}\n" for n in range(1, 6))


def test_no_such_job(cluster):
    for command in ("status", "logs", "events", "wait", "kill", "config"):
        status, out, err = run(cluster, command, "999999")
        assert (status, out) == (1, "") and "999999" in err and len(err.splitlines()) == 1, command


def test_wrong_command_line(cluster):
    for arguments in (["frobnicate"], ["status", "x"], ["kill"], ["run"], ["submit"], ["list", "--nonsense"], ["run", "-n", "0", "--", "true"]):
        status, out, err = run(cluster, *arguments)
        assert (status, out) == (2, "") and err, arguments


# Looking at hosts and configurations

def test_nodes(cluster):
    rows = cluster.primusctl_json("nodes")
    assert {row["name"]: row["state"] for row in rows} == {node: "READY" for node in cluster.nodes}
    lines = cluster.primusctl("nodes").splitlines()
    assert lines[0].split()[:3] == ["NODE", "STATE", "ADDRESS"] and [line.split()[0] for line in lines[1:]] == cluster.nodes


def test_validate_and_config(cluster):
    path = "/usr/share/doc/primus/examples/hello/hello.json"
    status, out, _ = run(cluster, "validate", path)
    assert status == 0 and "good" in out
    effective = json.loads(cluster.primusctl("config", path))
    assert effective["role"][0]["failover"] and effective["maxAppAttempts"] == 1  # defaults are written out
    assert json.loads(cluster.primusctl("config", "--json", path)) == effective
    job = cluster.primusctl_json("submit", path)["job"]
    of_job = json.loads(cluster.primusctl("config", str(job)))
    assert of_job == {**effective, "priority": 0, "visible": "owner"}  # its pool's
    cluster.wait_job(job)
    status, _, err = run(cluster, "submit", "-", input='{"role": [{"roleName": "w", "comand": "true"}]}')
    assert status == 1 and "did you mean" in err and "command" in err


# run

def test_run(cluster):
    status, out, err = run(cluster, "run", "-n", "4", "--cpus", "0.1", "--mem", "16M", "--", "hostname")
    assert (status, err) == (0, "")
    assert sorted(line.split()[0] for line in out.splitlines()) == [f"[{rank}]" for rank in range(4)]
    assert {line.split()[1] for line in out.splitlines()} <= set(cluster.nodes)


def test_run_on_named_hosts(cluster):
    status, out, _ = run(cluster, "run", "--hosts", "n[1-3]", "--cpus", "0.1", "--mem", "16M", "--", "hostname")
    assert status == 0 and sorted(line.split()[1] for line in out.splitlines()) == cluster.nodes
    status, out, _ = run(cluster, "run", "--hosts", "n[2,3]", "--per-host", "2", "--cpus", "0.1", "--mem", "16M", "--", "hostname")
    assert status == 0 and sorted(line.split()[1] for line in out.splitlines()) == ["n2", "n2", "n3", "n3"]


def test_run_on_a_host_that_is_not_there(cluster, terminal):
    """It is refused, or waits for the host to join, and says so."""
    status, _, err = run(cluster, "run", "--hosts", "n9", "--", "true")
    assert status != 0 and "no host of the cluster is called n9" in err and "--wait-for-hosts" in err and "known hosts: n1, n2, n3" in err
    t = terminal("primusctl", "run", "--hosts", "n9", "--wait-for-hosts", "--", "true")
    t.read_until(r"job \d+ waits: .*no usable node")
    t.press(b"\x03")
    t.read_until("Detached")
    t.press(b"\x03")
    assert t.wait() == 3


def test_run_so_many_on_so_many(cluster):
    script = "echo $(hostname) $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $NODE_RANK"
    status, out, _ = run(cluster, "run", "--hosts", "2", "--per-host", "2", "--cpus", "0.1", "--mem", "16M", "--", "sh", "-c", script)
    assert status == 0
    rows = sorted((line.split()[1:] for line in out.splitlines()), key=lambda row: int(row[1]))
    assert [row[1:3] for row in rows] == [[str(i), "4"] for i in range(4)]
    hosts = [row[0] for row in rows]
    assert hosts[0] == hosts[1] and hosts[2] == hosts[3] and hosts[0] != hosts[2]
    assert [row[3:] for row in rows] == [["0", "2", "0"], ["1", "2", "0"], ["0", "2", "1"], ["1", "2", "1"]]


@pytest.mark.parametrize("command, expected", [("true", 0), ("exit 9", 9), ("exit 75", 75), ("kill -SEGV $$", 139)])
def test_run_status(cluster, command, expected):
    status, out, err = run(cluster, "run", "--cpus", "0.1", "--mem", "16M", "--", "sh", "-c", command)
    assert (status, out) == (expected, "")
    assert expected == 0 or re.search(r"primusctl: job \d+ FAILED: rank 0 on n\d: ", err)


def test_run_time_limit(cluster):
    started = time.monotonic()
    status, _, err = run(cluster, "run", "--time", "2s", "--", "sleep", "100")
    assert status == 1 and "time limit" in err
    assert 1.5 < time.monotonic() - started < 15


def test_run_environment(cluster):
    def environment(*options, **more):
        done = cluster.run("n1", "env", "COLOUR=blue", "OTHER=x", "primusctl", "run", *options, "--", "env", user="ml", **more)
        assert done.returncode == 0, done.stderr
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    own = environment()
    assert own["COLOUR"] == "blue" and own["OTHER"] == "x" and own["HOME"] == "/home/ml"
    named = environment("--env", "COLOUR", "--env", "SIZE=3")
    assert named["COLOUR"] == "blue" and named["SIZE"] == "3" and "OTHER" not in named
    none = environment("--no-env")
    assert "COLOUR" not in none and none["RANK"] == "0"


def test_run_keeps_the_working_directory(cluster, shared_dir):
    work = shared_dir / "work dir"
    work.mkdir(exist_ok=True)
    os.chmod(work, 0o777)
    status, out, _ = run(cluster, "run", "--hosts", "n[1-3]", "--cpus", "0.1", "--mem", "16M", "--", "sh", "-c", "pwd; touch from-$PRIMUS_NODE",
                         cwd="/shared/work dir")
    assert status == 0 and {line.split(" ", 1)[1] for line in out.splitlines()} == {"/shared/work dir"}
    assert sorted(path.name for path in work.iterdir()) == ["from-n1", "from-n2", "from-n3"]
    cluster.exec("n1", "mkdir", "-p", "/tmp/only-here", user="ml")
    status, _, err = run(cluster, "run", "--hosts", "n3", "--", "true", cwd="/tmp/only-here")
    assert status == 200 and "/tmp/only-here" in err


def test_run_json(cluster):
    status, out, _ = run(cluster, "run", "--json", "-n", "2", "--cpus", "0.1", "--mem", "16M", "--", "echo", "x")
    assert status == 0
    assert [json.loads(line) for line in out.splitlines()]


def test_run_is_quick(cluster):
    """As quick to use as srun: well below a second from Enter to the prompt."""
    times = []
    for _ in range(5):
        started = time.monotonic()
        assert run(cluster, "run", "-n", "4", "--cpus", "0.1", "--mem", "16M", "--", "hostname")[0] == 0
        times.append(time.monotonic() - started)
    assert min(times) < 1, times


def test_send(cluster):
    """Code that only the submitting host has: it is the directory of every executor, and what git leaves out stays here."""
    cluster.exec("n1", "sh", "-c", "mkdir -p /home/ml/code/lib && cd /home/ml/code && printf 'import lib.a\\nprint(lib.a.word)\\n' > train.py && "
                 "echo 'word = \"there\"' > lib/a.py && echo x > secret.key && echo '*.key' > .gitignore", user="ml")
    status, out, err = run(cluster, "run", "-n", "2", "--hosts", "n[2-3]", "--cpus", "0.1", "--mem", "16M", "--send", "/home/ml/code", "--",
                           "sh", "-c", "python3 train.py && ls -I tmp")
    assert status == 0, err
    assert sorted(out.splitlines()) == sorted(f"[{i}] {line}" for i in (0, 1) for line in ("there", "lib", "train.py")), out
    assert "go along" in err and "left out" in err, err


def test_script(cluster):
    """It is sent along, runs where it was submitted, and gets its arguments as they are."""
    cluster.exec("n1", "sh", "-c", "mkdir -p /tmp/only-here && cd /tmp/only-here && printf '#!/bin/sh\\n#PRIMUS -n 2 --hosts=n[2-3] --cpus=0.1 --mem=16M\\n"
                 "echo in $PWD, $# arguments: $2\\n' > job.sh && chmod 755 job.sh", user="ml")
    out = cluster.exec("n1", "sh", "-c", "cd /tmp && primusctl submit --wait --logs /tmp/only-here/job.sh -- --a 'b c'", user="ml")
    assert out.count("in /tmp, 2 arguments: b c") == 2, out


# From another machine

@pytest.fixture
def remote(cluster, build, tmp_path):
    """primusctl of the build machine, with an ssh that leads into hosts."""
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\n"
                   'echo "$@" >> "$0.log"\n'
                   'while [ $# -gt 2 ]; do shift; done\n'
                   f'exec {SANDBOX} exec --name {cluster.name} --user "${{1%%@*}}" "${{1##*@}}" -- $2\n')
    ssh.chmod(0o755)

    def primusctl(*arguments, cwd=None):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/none"}
        return subprocess.run([os.path.join(build, "tools/primusctl/primusctl"), *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60, env=environment, cwd=cwd)
    primusctl.log = tmp_path / "ssh.log"
    return primusctl


def test_over_ssh(cluster, remote):
    done = remote("-H", "ml@n1", "submit", HELLO, "--wait")
    assert done.returncode == 0, done.stderr
    assert "systemd-stdio-bridge" in remote.log.read_text()
    done = remote("list", "-a", "--limit", "1", "--json", "--host", "ml@n1")
    assert done.returncode == 0 and json.loads(done.stdout)[0]["name"] == "hello"
    number = str(json.loads(done.stdout)[0]["job"])
    assert cluster.primusctl_json("status")["owner"] == 1000
    # A working directory that is there on the hosts, too.
    done = remote("-H", "ml@n1", "run", "-n", "2", "--cpus", "0.1", "--mem", "16M", "--no-env", "--", "echo", "far", cwd="/")
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["[0] far", "[1] far"], done
    done = remote("-H", "ml@n1", "logs", number)
    assert done.returncode == 0 and "hello" in done.stdout.lower(), done


def test_nobody_there(remote):
    done = remote("list")
    assert done.returncode == 4 and len(done.stderr.splitlines()) == 1
    done = remote("-H", "ml@n9", "list")
    assert done.returncode == 4 and done.stderr


# Ctrl-C

class Terminal:
    """A command of a host on a terminal of its own."""

    def __init__(self, cluster, *argv):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

        def own():
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(cluster.argv("n1", *argv, user="ml"), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        preexec_fn=own, env={**os.environ, "TERM": "xterm"})
        os.close(slave)
        self.text = ""

    def read_until(self, pattern, timeout=20):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in:\n{self.text}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode(errors="replace")
                except OSError:  # the last one who had it open is gone
                    assert re.search(pattern, self.text), f"no {pattern!r} in:\n{self.text}"

    def press(self, key):
        os.write(self.master, key)

    def wait(self):
        with contextlib.suppress(AssertionError):
            self.read_until(r"\Znever", 0.1)
        return self.process.wait(20)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(cluster):
    opened = []

    def start(*argv):
        opened.append(Terminal(cluster, *argv))
        return opened[-1]
    yield start
    for one in opened:
        one.close()


def test_ctrl_c_detaches(cluster, terminal):
    t = terminal("primusctl", "run", "--cpus", "0.1", "--mem", "16M", "--", "sh", "-c", "echo it runs; exec sleep 300")
    t.read_until("it runs")
    t.press(b"\x03")
    t.read_until(r"Detached: job \d+ goes on")
    job = re.search(r"Detached: job (\d+) goes on. Back to it: primusctl logs -f \1 +Kill it: primusctl kill \1", t.text)[1]
    assert t.wait() == 130
    assert cluster.status(job)["state"] == "RUNNING"
    cluster.primusctl("kill", job)
    assert cluster.wait_job(job) == 3


def test_ctrl_c_twice_kills(cluster, terminal):
    t = terminal("primusctl", "run", "--cpus", "0.1", "--mem", "16M", "--", "sh", "-c", "echo it runs; exec sleep 300")
    t.read_until("it runs")
    t.press(b"\x03")
    t.read_until("Detached")
    t.press(b"\x03")
    t.read_until(r"Killed job \d+")
    assert t.wait() == 3
    assert cluster.wait_job(latest(cluster)) == 3


def test_submit_wait_redraws_and_detaches(cluster, terminal):
    config = {"name": "drawn", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "echo tick; exec sleep 300"}]}
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp /tmp/job.XXXXXX); cat > $f; echo $f", user="ml", input=json.dumps(config)).strip()
    t = terminal("primusctl", "submit", path, "--wait", "--follow", "worker")
    t.read_until(r"worker +1 running")
    t.read_until(r"tick")
    t.read_until(r"\x1b\[\d+A")  # up again, to draw over it
    t.press(b"\x03")
    t.read_until(r"Detached: job \d+")
    assert t.wait() == 130
    job = latest(cluster)
    assert cluster.status(job)["state"] == "RUNNING"
    cluster.primusctl("kill", str(job))


def test_a_directory_that_one_host_lacks(cluster):
    """The host is to blame, not the program; the exit status is systemd's."""
    cluster.exec("n1", "install", "-d", "-m", "0777", "/tmp/only-n1")
    done = cluster.run("n1", "sh", "-c", "cd /tmp/only-n1 && exec primusctl run --hosts=n1,n2 -- true", user="ml")
    assert done.returncode == 200 and "primusctl run --send . -- ...' sends it along" in done.stderr
    why = cluster.primusctl_json("why")
    assert why["blame"] == "the host n2, which has not got the job's directory, or does not let its user in"
    assert cluster.primusctl_json("status", str(why["job"]))["state"] == "FAILED"
    done = cluster.run("n1", "primusctl", "run", "--hosts=n1", "--", "sh", "-c", "exit 3", user="ml")
    assert done.returncode == 3 and cluster.primusctl_json("why")["blame"] == "the program of task/0"


def test_variables_that_are_numbers(cluster):
    """A program has what stands in the file, letter by letter, from JSON and from YAML."""
    cluster.exec("n1", "sh", "-c", "cat > /tmp/numbers.yaml", input="name: numbers\ncommand: echo \"$LR $N $A $V\"\nenv: {LR: 1e-3, N: -0, A: true, V: 3.10}\n")
    job = cluster.submit({"name": "numbers", "env": {"LR": 0.1, "N": -7}, "role": [{"roleName": "worker", "num": 1, "command": "echo $LR $N", "vcores": 0.1, "memoryMb": 16}]})
    assert cluster.wait_job(job) == 0 and cluster.primusctl("logs", str(job)) == "0.1 -7\n"
    assert cluster.run("n1", "primusctl", "submit", "--wait", "/tmp/numbers.yaml", user="ml").returncode == 0
    assert cluster.primusctl("logs") == "1e-3 -0 true 3.10\n"


def test_a_reader_that_left(cluster):
    """As systemd starts a service, with SIGPIPE ignored: primusctl dies of the signal without a word."""
    done = cluster.run("n1", "sh", "-c", "trap '' PIPE; for i in 1 2 3; do primusctl --help | head -n 1; primusctl list -a --json | true; done", user="ml")
    assert done.returncode == 0 and done.stderr == ""
