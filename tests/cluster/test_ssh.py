# SPDX-License-Identifier: Apache-2.0
"""primusctl -H, from a host that is not the master, over a real ssh and sshd: as if one sat there, or one sentence why not."""
import hashlib
import json
import re
import time

import pytest

SLEEPER = {"name": "afar", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "echo here; exec sleep 300"}]}
SMALL = ("--cpus", "0.1", "--mem", "16M")


@pytest.fixture(scope="module", autouse=True)
def sshd(_cluster):
    """n1 lets ml in from n2, who has seen its key before."""
    _cluster.exec("n1", "systemctl", "start", "ssh")
    public = _cluster.exec("n2", "sh", "-c", "install -d -m 0700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && "
                           "ssh-keyscan n1 > .ssh/known_hosts 2> /dev/null && cat .ssh/id_ed25519.pub", user="ml", cwd="/home/ml")
    _cluster.exec("n1", "sh", "-c", "install -d -m 0700 .ssh && cat > .ssh/authorized_keys", user="ml", cwd="/home/ml", input=public)
    yield
    _cluster.exec("n1", "systemctl", "stop", "ssh")


def far(cluster, *arguments, **options):
    return cluster.run("n2", "primusctl", "-H", "n1", *arguments, **{"user": "ml", **options})


# On n2, as ml, where nothing of a cluster is: as on a laptop.
LAPTOP = """mount -t tmpfs none /run/primus && exec setpriv --reuid=1000 --regid=1000 --clear-groups env -C /home/ml HOME=/home/ml "$@" """


def laptop(cluster, *command):
    return cluster.run("n2", "unshare", "-m", "sh", "-c", LAPTOP, "sh", *command)


@pytest.fixture
def afar(cluster):
    job = cluster.submit(SLEEPER)
    cluster.wait_state(job, "RUNNING")
    yield str(job)
    cluster.kill(job)


def test_run(cluster):
    """Who he is there, what comes out, and the command's own status."""
    done = far(cluster, "run", "-n", "2", *SMALL, "--", "echo", "far")
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0] far", "[1] far"]), done
    assert cluster.primusctl_json("status")["owner"] == 1000
    assert far(cluster, "run", *SMALL, "--", "sh", "-c", "exit 7").returncode == 7
    assert far(cluster, "run", *SMALL, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_input(cluster):
    """A few megabytes through ssh and back are what they were."""
    text = "".join(f"{n}: {hashlib.sha256(str(n).encode()).hexdigest()}\n" for n in range(40000))
    done = far(cluster, "run", *SMALL, "--", "cat", input=text, timeout=60)
    assert done.returncode == 0 and hashlib.sha256(done.stdout.encode()).digest() == hashlib.sha256(text.encode()).digest()


def test_logs_follow(cluster):
    """What is written later comes when it is written, and following ends with the job."""
    job = str(cluster.submit({**SLEEPER, "role": [{**SLEEPER["role"][0], "command": "echo one; while ! [ -e /tmp/go-on ]; do sleep 0.1; done; echo two"}]}))
    with cluster.process("n2", "primusctl", "-H", "n1", "logs", "-f", job, user="ml") as follower:
        assert follower.stdout.readline() == "one\n"
        cluster.exec(cluster.executor(int(job))["node"], "touch", "/tmp/go-on")
        assert follower.stdout.readline() == "two\n"
        assert follower.stdout.read() == "" and follower.wait(20) == 0
    assert [json.loads(line)["line"] for line in far(cluster, "logs", "--json", job).stdout.splitlines()] == ["one", "two"]


def test_a_terminal(cluster, terminal, afar):
    """exec on a terminal: its size, Ctrl-C for what runs there, and its status."""
    t = terminal("-H", "n1", "exec", "-t", afar, "0", "--", "sh", node="n2")
    t.type("PS1='> '\r")
    t.until("> ")
    t.type("stty size; tty\r")
    t.until(r"40 132\r\n/dev/pts/\d+")
    t.type("echo be''gins; sleep 500\r")
    t.until("begins")
    t.type("\x03")
    t.type("echo sta''tus $?\r")
    t.until("status 130")
    t.type("exit 9\r")
    assert t.end() == 9


def test_ctrl_c_detaches(cluster, terminal):
    """The terminal sends it to ssh, too, which has to outlive it."""
    t = terminal("-H", "n1", "run", *SMALL, "--", "sh", "-c", "echo it runs; exec sleep 300", node="n2")
    t.until("it runs")
    t.type("\x03")
    job = int(t.until(r"Detached: job (\d+) goes on")[1])
    assert t.end() == 130
    assert cluster.status(job)["state"] == "RUNNING"
    cluster.kill(job)


def test_ctrl_c_twice_kills(cluster, terminal):
    t = terminal("-H", "n1", "run", *SMALL, "--", "sh", "-c", "echo it runs; exec sleep 300", node="n2")
    t.until("it runs")
    t.type("\x03")
    t.until("Detached")
    t.type("\x03")
    job = int(t.until(r"Killed job (\d+)")[1])
    assert t.end() == 3
    assert cluster.wait_job(job) == 3


def test_ctrl_c_of_logs(cluster, terminal, afar):
    t = terminal("-H", "n1", "logs", "-f", afar, node="n2")
    t.until("here")
    t.type("\x03")
    assert t.end() in (0, 130)
    assert "lost" not in t.seen.decode() and "reach" not in t.seen.decode(), t.seen


def test_the_connection_breaks(cluster, afar):
    """Said at once and in one sentence; the job knows nothing of it."""
    with cluster.process("n2", "primusctl", "-H", "n1", "logs", "-f", afar, user="ml") as follower:
        assert follower.stdout.readline() == "here\n"
        began = time.monotonic()
        cluster.exec("n1", "loginctl", "terminate-user", "ml")
        assert follower.wait(20) == 4 and time.monotonic() - began < 10
        said = follower.stdout.read().splitlines()
    assert [line for line in said if line.startswith("primusctl: ")] and len(said) <= 3, said
    assert cluster.status(int(afar))["state"] == "RUNNING"


@pytest.mark.parametrize("host, says", [("eve@n1", "Permission denied"), ("n3", "refused"), ("no-such-host", "resolve")])
def test_no_way_in(cluster, host, says):
    """ssh says what it is, primusctl what to try; nobody is asked for a password that he cannot type."""
    began = time.monotonic()
    done = cluster.run("n2", "primusctl", "-H", host, "list", user="ml")
    assert done.returncode == 4 and time.monotonic() - began < 10
    assert says in done.stderr and done.stderr.splitlines()[-1] == (
        f"primusctl: cannot reach masterd on {host}: ssh does not get there; does this work? ssh {host} true"), done.stderr


@pytest.mark.parametrize("host", ["-oProxyCommand=touch /tmp/owned", "n1 -oProxyCommand=x", "n1;touch /tmp/owned", "n1\n", ""])
def test_no_host(cluster, host):
    """A name is a name: never an option of ssh, nor anything to a shell."""
    done = cluster.run("n2", "primusctl", "-H", host, "list", user="ml")
    assert done.returncode in (2, 4) and re.search("primusctl: .", done.stderr), done
    assert cluster.run("n2", "test", "-e", "/tmp/owned").returncode == 1


def test_login(cluster, afar):
    """Once said, every command goes there; what is no way there is not kept, and on a host of a cluster it is not looked at."""
    assert "which is not the master's" in laptop(cluster, "primusctl", "list").stderr
    assert laptop(cluster, "primusctl", "login").returncode == 1
    done = laptop(cluster, "primusctl", "login", "n9")
    assert done.returncode == 4 and "does this work? ssh n9 true" in done.stderr
    assert laptop(cluster, "primusctl", "login", "-oProxyCommand=touch /tmp/hacked").returncode == 2
    assert laptop(cluster, "primusctl", "login").returncode == 1
    done = laptop(cluster, "primusctl", "login", "n1")
    assert done.returncode == 0 and "goes to the master on n1 (version" in done.stdout, done
    assert laptop(cluster, "stat", "-c", "%a", "/home/ml/.config/primus/login").stdout == "600\n"
    assert laptop(cluster, "primusctl", "login").stdout == "n1\n"
    assert [j["job"] for j in json.loads(laptop(cluster, "primusctl", "list", "--json").stdout)] == [int(afar)]
    assert laptop(cluster, "primusctl", "run", "--no-env", *SMALL, "--", "echo", "far").stdout == "far\n"
    # By the agent, where there is one: it works also when n1's sshd does not.
    cluster.exec("n1", "systemctl", "stop", "ssh")
    assert cluster.run("n2", "primusctl", "list", user="ml").returncode == 0
    assert laptop(cluster, "primusctl", "list").returncode == 4
    cluster.exec("n1", "systemctl", "start", "ssh")
    # What somebody else has put there is no option of ssh's.
    laptop(cluster, "sh", "-c", "echo '-oProxyCommand=touch /tmp/hacked' > ~/.config/primus/login")
    assert laptop(cluster, "primusctl", "list").returncode == 4 and cluster.run("n2", "test", "-e", "/tmp/hacked").returncode == 1
    assert laptop(cluster, "primusctl", "login", "--forget").returncode == 0 and laptop(cluster, "primusctl", "login").returncode == 1
