# SPDX-License-Identifier: Apache-2.0
"""primusctl run with a standard input, on a terminal, and as an array."""
import contextlib
import fcntl
import hashlib
import os
import re
import struct
import subprocess
import termios
import time

import pytest
from sandbox import AGENTD, MASTERD


def run(cluster, *arguments, user="ml", timeout=90, **options):
    options = {"capture_output": True, **options}
    return subprocess.run(cluster.argv("n1", "primusctl", "run", *arguments, user=user), timeout=timeout, **options)


def begin(cluster, *arguments, **options):
    return subprocess.Popen(cluster.argv("n1", "primusctl", "run", *arguments, user="ml"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, **options)


def last_job(cluster):
    return max(job["job"] for job in jobs(cluster))


def jobs(cluster):
    listed = cluster.primusctl_json("list", "-a")
    return listed["jobs"] if isinstance(listed, dict) else listed


@pytest.fixture(autouse=True)
def ready(cluster):
    cluster.wait_nodes()


def test_it_goes_through(cluster):
    done = run(cluster, "--", "cat", input=b"hi\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hi\n", b"")
    data = os.urandom(64 << 20)
    done = run(cluster, "--", "sha256sum", input=data)
    assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), done
    done = run(cluster, "--", "sh", "-c", "cat > /dev/null; exit 7", input=b"x")
    assert done.returncode == 7, done
    assert run(cluster, "--", "cat", stdin=subprocess.DEVNULL).stdout == b""
    assert run(cluster, "--", "sh", "-c", "kill -9 $$", input=b"").returncode == 137
    assert run(cluster, "--", "no-such-command", input=b"").returncode == 127


def test_a_command_that_does_not_read(cluster):
    started = time.monotonic()
    done = run(cluster, "--", "true", input=bytes(8 << 20))
    assert (done.returncode, done.stdout) == (0, b"") and time.monotonic() - started < 20
    done = run(cluster, "--", "head", "-c", "3", input=b"abcdef" * (1 << 20))
    assert (done.returncode, done.stdout) == (0, b"abc\n")
    # Standard input that nobody ends.
    with begin(cluster, "--", "echo", "done") as quiet:
        assert quiet.stdout.read() == b"done\n" and quiet.wait(10) == 0
    # A file that it is in no hurry with: the pipe is full, and the daemons hold nothing.
    with begin(cluster, "--", "sh", "-c", "sleep 3; wc -c") as slow:
        slow.communicate(bytes(20 << 20), timeout=60)
        assert slow.returncode == 0


def test_ranks(cluster):
    done = run(cluster, "-n", "2", "--", "sh", "-c", "echo $PRIMUS_RANK $(cat)", input=b"hi")
    assert sorted(done.stdout.splitlines()) == [b"[0] 0 hi", b"[1] 1"], done
    done = run(cluster, "-n", "2", "--input=1", "--", "sh", "-c", "echo $PRIMUS_RANK $(cat)", input=b"hi")
    assert sorted(done.stdout.splitlines()) == [b"[0] 0", b"[1] 1 hi"], done
    done = run(cluster, "--input=none", "--", "cat", input=b"hi")
    assert (done.returncode, done.stdout) == (0, b""), done
    assert b"--detach" in run(cluster, "--detach", "--pty", "--", "sh", input=b"").stderr


@pytest.mark.parametrize("unit", [MASTERD, AGENTD])
def test_a_daemon_is_killed_meanwhile(cluster, unit):
    """It goes on with the very next byte."""
    half = os.urandom(4 << 20)
    with begin(cluster, "--hosts", "n1", "--", "sha256sum") as flowing:
        flowing.stdin.write(half)
        flowing.stdin.flush()
        for _ in range(2):
            cluster.exec("n1", "systemctl", "kill", "-s", "KILL", unit)
            time.sleep(3)
            flowing.stdin.write(half)
            flowing.stdin.flush()
        flowing.stdin.close()
        out = flowing.stdout.read()
        assert flowing.wait(60) == 0, out
    assert hashlib.sha256(half * 3).hexdigest().encode() in out, out


def test_a_client_that_is_gone(cluster):
    """Never an end that is none: the program is killed."""
    with begin(cluster, "--", "sh", "-c", "sort > /tmp/sorted; echo wrong > /tmp/ended") as flowing:
        flowing.stdin.write(b"b\na\n")
        flowing.stdin.flush()
        number = cluster.wait_for(lambda: next((j["job"] for j in jobs(cluster) if j["state"] == "RUNNING"), None), 20, "it runs")
        node = cluster.executor(number, "task")["node"]
        time.sleep(2)
        cluster.exec("n1", "sh", "-c", "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = primusctl ] && kill -9 ${p#/proc/}; done; true")
        flowing.stdin.close()
    time.sleep(5)
    assert cluster.status(number)["state"] == "RUNNING"  # for two minutes somebody may come back
    cluster.wait_state(number, "FAILED", timeout=150)
    assert "standard input of this command broke off after 4 bytes" in cluster.primusctl("logs", str(number))
    assert cluster.run(node, "test", "-e", "/tmp/ended").returncode == 1
    assert cluster.exec(node, "stat", "-c", "%s", "/tmp/sorted").strip() == "0"


def test_a_read_error_is_no_end(cluster):
    """An error, EIO too, is no end."""
    with open("/proc/self/mem", "rb", buffering=0) as unreadable:
        done = run(cluster, "--", "sh", "-c", "cat; echo wrong", stdin=unreadable)
    assert done.returncode != 0 and b"cannot read standard input: Input/output error" in done.stderr and b"wrong" not in done.stdout, done


@pytest.mark.parametrize("trap", ["''", "-"])
def test_the_holder_is_killed(cluster, trap):
    """A stop without grace kills it before the others, and so may anybody: the command sees no end, and the unit ends."""
    cluster.run("n1", "rm", "-f", "/tmp/o.tmp")  # of the time before
    with begin(cluster, "--hosts", "n1", "--", "sh", "-c", f"trap {trap} TERM; cd /tmp; rm -f o; cat > o.tmp && mv o.tmp o") as flowing:
        flowing.stdin.write(b"half")
        flowing.stdin.flush()
        cluster.wait_for(lambda: cluster.run("n1", "grep", "-q", "half", "/tmp/o.tmp").returncode == 0, 20, "it reads")
        e = cluster.executor(last_job(cluster), "task")
        started = time.monotonic()
        cluster.kill9("n1", e["unit"])
        assert flowing.wait(60) == 137
        assert trap == "''" or time.monotonic() - started < 5  # nothing of ours makes it last
    assert cluster.run("n1", "test", "-e", "/tmp/o").returncode == 1
    assert cluster.exec("n1", "systemctl", "list-units", "--no-legend", e["unit"]) == ""


def test_ctrl_c_before_the_end(cluster):
    with begin(cluster, "--", "cat") as flowing:
        flowing.stdin.write(b"x\n")
        flowing.stdin.flush()
        assert flowing.stdout.readline() == b"x\n"
        number = last_job(cluster)
        cluster.exec("n1", "sh", "-c", "for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = primusctl ] && kill -INT ${p#/proc/}; done; true")
        assert flowing.wait(20) == 3
        assert b"is killed" in flowing.stdout.read()
    cluster.wait_state(number, "KILLED", timeout=20)


def test_input_that_cannot_be_read(cluster):
    """A folder: that is no end of the input, and the job is killed."""
    done = cluster.run("n1", "sh", "-c", "primusctl run -- sh -c 'cat; echo wrong' < /tmp", user="ml")
    assert done.returncode == 3 and done.stdout == "", done
    assert "cannot read standard input: Is a directory" in done.stderr and "is killed" in done.stderr, done


def test_another_attempt_cannot_have_it(cluster):
    """What the first attempt read is gone; the second is told, and does not begin."""
    with begin(cluster, "--requeue", "--", "sh", "-c", "head -c 2 >&2; exit 75") as flowing:
        with contextlib.suppress(BrokenPipeError):  # it may be over before it has taken all of it
            os.write(flowing.stdin.fileno(), b"ab" + bytes(300000))
        out = flowing.stdout.read()
        assert flowing.wait(90) != 0
    assert b"an earlier attempt" in out, out


def test_nobody_else(cluster):
    cluster.run("n1", "useradd", "-m", "-u", "1007", "eve")
    with begin(cluster, "--hosts", "n1", "--", "cat") as flowing:
        flowing.stdin.write(b"x\n")
        flowing.stdin.flush()
        assert flowing.stdout.readline() == b"x\n"
        number = last_job(cluster)
        assert cluster.run("n1", "primusctl", "exec", str(number), "0", "--", "true", user="eve").returncode == 255
        path, key = re.search(r"(/\S+/tmp/\.stdio-([0-9a-f]{32})\.1)$", cluster.exec("n1", "cat", "/proc/net/unix"), re.M).groups()
        attack = ("import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nprint(s.recv(100))")
        done = cluster.run("n1", "python3", "-c", attack, path, user="eve")
        assert "PermissionError" in done.stderr, done
        assert cluster.run("n1", "primusctl", "config", str(number), user="eve").stdout.find(key) == -1
        flowing.stdin.close()
        assert flowing.wait(20) == 0


# ---- a terminal ----------------------------------------------------------------------------------------------------------


def test_a_shell(cluster, terminal):
    t = terminal("run", "--pty", "--", "bash", "--norc")
    t.until(r"\$ ")
    t.type("stty size; tty; echo $TERM-$PRIMUS_RANK\r")
    t.until(r"40 132\r\n/dev/pts/\d+\r\nxterm-0")
    fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 99, 0, 0))
    t.type("while [ \"$(stty size)\" != '50 99' ]; do sleep 0.1; done; echo re''sized\r")
    t.until("resized")
    t.type("sleep 500\r")
    time.sleep(0.5)
    t.type("\x03")
    t.type("echo sta''tus $?\r")
    t.until("status 130")
    t.type("seq 100000; exit 9\r")
    t.until("\r\n100000\r\n", 30)
    assert t.end() == 9


def test_pdb(cluster, terminal):
    cluster.exec("n1", "sh", "-c", "printf 'x = 41\\nx += 1\\nprint(x)\\n' > ~/x.py", user="ml")
    t = terminal("run", "--pty", "--hosts", "n1", "--", "python3", "-m", "pdb", "/home/ml/x.py")
    t.until(r"\(Pdb\) ")
    t.type("n\rn\rp x + 100\r")
    t.until("142")
    t.type("q\r")
    assert t.end() == 0


def test_a_terminal_outlives_the_daemons(cluster, terminal):
    t = terminal("run", "--pty", "--hosts", "n1", "--", "bash", "--norc")
    t.until(r"\$ ")
    for unit in (MASTERD, AGENTD):
        cluster.exec("n1", "systemctl", "kill", "-s", "KILL", unit)
        t.type("echo sti''ll $$\r")
        t.until("still", 40)
    t.type("exit\r")
    assert t.end(30) == 0


def test_a_terminal_that_is_closed(cluster, terminal):
    t = terminal("run", "--pty", "--", "sleep", "500")
    cluster.wait_for(lambda: any(j["state"] == "RUNNING" for j in jobs(cluster)), 20, "it runs")
    number = last_job(cluster)
    time.sleep(2)
    t.type("\r~.")
    assert t.end() == 3
    cluster.wait_state(number, "KILLED", timeout=20)


def test_typed_without_a_terminal_there(cluster, terminal):
    t = terminal("run", "--", "sh", "-c", "read line; echo got $line; sleep 1; exit 4")
    cluster.wait_for(lambda: any(j["state"] == "RUNNING" for j in jobs(cluster)), 20, "it runs")
    t.type("word\r")
    t.until("got word")
    assert t.end() == 4


def test_who_types_may_leave(cluster, terminal):
    t = terminal("run", "--", "sh", "-c", "echo begun; sleep 4; read line || exit 5; exit 6")
    t.until("begun")
    t.type("\x03")
    t.until("Detached")
    assert t.end() == 130
    number = last_job(cluster)
    time.sleep(5)
    assert cluster.status(number)["state"] == "RUNNING"  # it waits for a line, and does not take our leave for the end
    cluster.kill(number)


def test_signals_of_the_job(cluster):
    """The job's own signal reaches the command, whatever it ends of what brings the input."""
    with begin(cluster, "--signal=ALRM@2s", "--time=9s", "--", "sh", "-c", "trap 'echo caught' ALRM; while read line; do echo $line; done; exit 3") as flowing:
        for i in range(5):
            flowing.stdin.write(b"%d\n" % i)
            flowing.stdin.flush()
            time.sleep(0.5)
        out = flowing.stdout.read()
    assert b"caught" in out and b"4\n" in out, out


def test_put_back_into_the_queue(cluster, terminal):
    """Nothing was read yet: the next attempt gets all of it. Something was: it is told."""
    t = terminal("run", "--pty", "--", "sh", "-c", "echo begun; read line; echo got $line; read line")
    t.until("begun")
    number = last_job(cluster)
    cluster.primusctl("requeue", str(number))
    t.until("begun", 40)
    t.type("word\r")
    t.until("got word")
    cluster.primusctl("requeue", str(number))
    cluster.wait_state(number, "FAILED", timeout=40)
    assert t.end(20) == 125
    assert "has read the beginning" in cluster.primusctl("logs", str(number))


# ---- arrays --------------------------------------------------------------------------------------------------------------


def test_array(cluster):
    done = run(cluster, "--array=1-4%2", "--", "sh", "-c", "echo index $PRIMUS_ARRAY_INDEX", input=b"not for them")
    assert done.returncode == 0, done
    assert sorted(done.stdout.splitlines()) == [b"[%d] task/0 | index %d" % (i, i) for i in range(1, 5)]
    done = run(cluster, "--array=0-3", "--", "sh", "-c", "[ $PRIMUS_ARRAY_INDEX -lt 2 ] || exit $((PRIMUS_ARRAY_INDEX + 5))")
    assert done.returncode == 7, done
