# SPDX-License-Identifier: Apache-2.0
"""primusctl exec, shell and forward: a person beside the trainer."""
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import struct
import subprocess
import termios
import time

import pytest
from sandbox import AGENTD, MASTERD

SECRET = "s3cret-4a7c"
TRAINER = r"""
import json, os, sys, time
print(json.dumps(dict(os.environ)), flush=True)
open("environment.json", "w").write(json.dumps(dict(os.environ)))
time.sleep(600)
"""


def job(command, num=1, **more):
    role = {"roleName": "worker", "num": num, "vcores": 0.1, "memoryMb": 64, **more.pop("role", {}),
            ("argv" if isinstance(command, list) else "command"): command}
    return {"name": "session", "role": [role], **more}


@pytest.fixture(scope="module")
def running(_cluster):
    """A job of ml with a secret, an environment and a limit, one executor on each host."""
    cluster = _cluster
    cluster.wait_nodes()
    cluster.exec("n1", "sh", "-c", f"umask 077; printf %s {SECRET} > ~/token", user="ml")
    text = json.dumps(job(["python3", "-c", TRAINER], 3, role={"scheduleStrategy": {"maxReplicasPerNode": 1}}))
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp); cat > $f; echo $f", user="ml", input=text).strip()
    number = cluster.primusctl_json("submit", "--env=WORD=two words", "--secret=token=/home/ml/token", path)["job"]
    cluster.wait_state(number, "RUNNING", timeout=30)
    cluster.wait_for(lambda: len(cluster.primusctl("logs", str(number))) > 0, 20, "the trainer's first line")
    yield str(number)
    cluster.run("n1", "primusctl", "kill", str(number), user="ml")


def run(cluster, number, *command, executor="worker/0", user="ml", node="n1", **options):
    return cluster.run(node, "primusctl", "exec", number, executor, "--", *command, user=user, **options)


def session_units(cluster, node):
    return cluster.exec(node, "systemctl", "list-units", "--plain", "--no-legend", "primus-session-*").split("\n")[:-1]


def no_sessions(cluster):
    cluster.wait_for(lambda: not any(session_units(cluster, node) for node in cluster.nodes), 10, "no session is left")


# ---- exec --------------------------------------------------------------------------------------------------------------


def test_output_errors_and_status(cluster, running):
    done = run(cluster, running, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 7)
    assert run(cluster, running, "sh", "-c", "kill -9 $$").returncode == 128 + 9
    done = run(cluster, running, "no-such-command")
    assert done.returncode == 127 and "cannot run no-such-command" in done.stderr
    assert run(cluster, running, "echo", "$HOME", "a b").stdout == "$HOME a b\n", "no shell in between"
    no_sessions(cluster)


def test_ranks_and_what_is_not_there(cluster, running):
    nodes = {run(cluster, running, "printenv", "PRIMUS_NODE", executor=rank).stdout.strip() for rank in ("0", "1", "2")}
    assert nodes == set(cluster.nodes)
    assert run(cluster, running, "printenv", "PRIMUS_RANK", executor="worker/2").stdout == "2\n"
    for where, text in (("3", "no executor of rank 3"), ("worker/9", "no executor worker/9"), ("ps", "no executor ps/0")):
        done = run(cluster, running, "true", executor=where)
        assert done.returncode == 255 and text in done.stderr
    done = run(cluster, "99999", "true")
    assert done.returncode == 255 and "there is no job 99999" in done.stderr


def test_it_is_like_the_trainer(cluster, running):
    theirs = json.loads(run(cluster, running, "cat", "environment.json").stdout)
    ours = json.loads(run(cluster, running, "python3", "-c", "import json, os; print(json.dumps(dict(os.environ)))").stdout)
    own = {"JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "LC_CTYPE"}
    assert {k: v for k, v in ours.items() if k not in own} == {k: v for k, v in theirs.items() if k not in own}
    assert ours["WORD"] == "two words"
    assert run(cluster, running, "sh", "-c", "cat $PRIMUS_SECRETS_DIR/token").stdout == SECRET
    script = ("import os; print(os.getuid(), os.getgid(), sorted(os.getgroups()), os.getcwd(), open('/proc/self/limits').read(),"
              " [l for l in open('/proc/self/status') if l.startswith(('NoNewPrivs', 'CapEff', 'SigBlk', 'Umask'))],"
              " open('/proc/self/cgroup').read())")
    mine = run(cluster, running, "python3", "-c", script).stdout
    node = cluster.executor(int(running))["node"]
    unit = f"primus-{running}-worker-0.1.service"
    pid = cluster.exec(node, "systemctl", "show", "-P", "MainPID", unit).strip()
    for part in ("limits", "cgroup"):
        assert cluster.exec(node, "cat", f"/proc/{pid}/{part}") in mine
    for line in cluster.exec(node, "cat", f"/proc/{pid}/status").splitlines():
        if line.startswith(("NoNewPrivs", "CapEff", "SigBlk", "Umask")):
            assert repr(line + "\n") in mine, line
    assert unit in mine


def test_nothing_of_the_users_runs_before_it_is_there(cluster):
    """Until primus-enter has moved it the session is outside of the executor's limits: no loader does what LD_PRELOAD says there."""
    number = cluster.submit(job("sleep 600", role={"env": {"LD_PRELOAD": "/home/ml/first.so"}}))
    cluster.wait_state(number, "RUNNING")
    done = run(cluster, str(number), "/bin/true")
    assert "first.so" in done.stderr, done  # the command's own loader, which is in the executor's group
    host = cluster.executor(number)["node"]
    assert "first.so" not in cluster.exec(host, "journalctl", "-q", "--no-pager", "-o", "cat", f"_SYSTEMD_SLICE=primus-{number}.slice", "_COMM=primus-session")
    assert "first.so" not in cluster.run(host, "journalctl", "-q", "--no-pager", "-o", "cat", "-u", f"primus-session-{number}-*").stdout
    cluster.kill(number)


def test_ten_megabytes_both_ways(cluster, running, tmp_path):
    data = os.urandom(10 << 20)
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        done = subprocess.run(cluster.argv("n1", "primusctl", "exec", running, "1", "cat", user="ml"), stdin=source, stdout=target, timeout=60)
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == data
    # Through a pipe, and into something that stops reading.
    done = subprocess.run(cluster.argv("n1", "primusctl", "exec", running, "1", "sha256sum", user="ml"), input=data, capture_output=True, timeout=60)
    assert done.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()
    done = subprocess.run(cluster.argv("n1", "primusctl", "exec", running, "1", "head", "-c", "3", user="ml"), input=data, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, data[:3])


def test_nobody_reads(cluster, running):
    """Output that its reader does not take stops the command, not the daemons, and is all there afterwards."""
    with cluster.process("n1", "primusctl", "exec", running, "1", "sh", "-c", "head -c 30000000 /dev/zero; echo done >&2", user="ml", text=False) as slow:
        time.sleep(1)
        begin = time.monotonic()
        assert run(cluster, running, "echo", "quick", executor="1").stdout == "quick\n"
        assert time.monotonic() - begin < 5
        peak = {unit: int(cluster.exec(node, "systemctl", "show", "-P", "MainPID", unit)) for node, unit in (("n1", MASTERD),)}
        rss = cluster.exec("n1", "grep", "VmRSS", f"/proc/{peak[MASTERD]}/status")
        assert int(rss.split()[1]) < 1_000_000, rss
        data = slow.stdout.read()
        assert len(data) == 30000000 + len("done\n")


# ---- a terminal ----------------------------------------------------------------------------------------------------------


def test_shell_on_a_terminal(cluster, running, terminal):
    t = terminal("shell", running, "2")
    t.type("PS1='> '\r")
    t.until("> ")
    t.type("stty size; tty; echo $TERM-$PRIMUS_RANK\r")
    t.until(r"40 132\r\n/dev/pts/\d+\r\nxterm-2")
    fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 99, 0, 0))
    t.type("while [ \"$(stty size)\" != '50 99' ]; do sleep 0.1; done; echo re''sized\r")
    t.until("resized")
    t.type("sleep 500\r")
    time.sleep(0.5)
    t.type("\x03")  # Ctrl-C goes to what runs there
    t.type("echo sta''tus $?\r")
    t.until("status 130")
    t.type("exit 9\r")
    assert t.end() == 9


def test_detach(cluster, running, terminal):
    t = terminal("exec", "-t", running, "0", "--", "sh", "-c", "echo ready; cat")
    t.until("ready\r\n")
    t.type("a~.b\r")
    t.until("a~.b\r\na~.b")
    t.type("~~x\r")
    t.until("~x\r\n~x")
    t.type("~.")
    t.until("Detached")
    assert t.end() == 130
    no_sessions(cluster)


def test_the_terminal_is_restored_whatever_happens(cluster, running, terminal):
    t = terminal("exec", running, "0", "--", "sleep", "500")
    cluster.wait_for(lambda: any(session_units(cluster, node) for node in cluster.nodes), 10, "a session")
    time.sleep(0.5)
    cluster.exec("n1", "pkill", "-TERM", "-x", "primusctl")
    assert t.end() == 128 + signal.SIGTERM
    no_sessions(cluster)


# ---- ends ----------------------------------------------------------------------------------------------------------------


def submit_one(cluster, command="exec sleep 600", **more):
    number = cluster.submit(job(command, **more))
    cluster.wait_state(number, "RUNNING", timeout=20)
    return str(number)


@contextlib.contextmanager
def session(cluster, number, *command, executor="worker/0"):
    """One that has said hello."""
    with cluster.process("n1", "primusctl", "exec", number, executor, "--", "sh", "-c", "echo hello; " + " ".join(command), user="ml") as running:
        assert running.stdout.readline() == "hello\n"
        yield running


def test_it_ends_with_its_executor(cluster):
    number = submit_one(cluster)
    with session(cluster, number, "trap '' HUP TERM; sleep 600 & wait; wait") as running:
        begin = time.monotonic()
        cluster.primusctl("kill", number)
        assert running.wait(20) == 255
        assert cluster.wait_job(int(number)) == 3
        assert time.monotonic() - begin < 8, "the session did not hold up the end of its executor"
    no_sessions(cluster)


def test_it_does_not_outlive_the_trainer(cluster):
    number = submit_one(cluster, "sleep 3")
    with session(cluster, number, "sleep 600") as running:
        assert running.wait(20) == 255
    assert cluster.wait_job(int(number)) == 0
    done = run(cluster, number, "true")
    assert done.returncode == 255 and "SUCCEEDED" in done.stderr


def test_the_client_vanishes(cluster):
    number = submit_one(cluster)
    node = cluster.executor(int(number))["node"]
    with session(cluster, number, "exec sleep 4242"):
        assert cluster.exec(node, "pgrep", "-fx", "sleep 4242")
        cluster.exec("n1", "pkill", "-KILL", "-x", "primusctl")
        cluster.wait_for(lambda: cluster.run(node, "pgrep", "-fx", "sleep 4242").returncode == 1, 10, "the command was hung up")
    no_sessions(cluster)
    cluster.primusctl("kill", number)


@pytest.mark.parametrize("daemon", [AGENTD, MASTERD])
def test_a_daemon_is_killed(cluster, daemon):
    number = submit_one(cluster)
    node = cluster.executor(int(number))["node"]
    with session(cluster, number, "exec sleep 4243") as running:
        cluster.kill9(node if daemon == AGENTD else "n1", daemon)
        assert running.wait(20) == 255
        cluster.wait_for(lambda: cluster.run(node, "pgrep", "-fx", "sleep 4243").returncode == 1, 10, "the command was hung up")
    no_sessions(cluster)
    cluster.wait_nodes()
    cluster.wait_for(lambda: run(cluster, number, "echo", "again").stdout == "again\n", 10, "a session in the job, which is as it was")
    assert cluster.executor(int(number))["attempt"] == 1
    cluster.primusctl("kill", number)


OPEN = """
import json
from jeepney import DBusAddress, HeaderFields, new_method_call
from jeepney.io.blocking import open_dbus_connection
bus = open_dbus_connection("SYSTEM")
job = DBusAddress("/org/primus/Master1/job/{number}", "org.primus.Master1", "org.primus.Master1.Job")
for _ in range(12):
    bus.send(new_method_call(job, "OpenSession", "suaaya{{sv}}", ("worker", 0, [b"true"], {{}})))
refused = []
while len(refused) < 4:
    reply = bus.receive(timeout=10)
    if HeaderFields.error_name in reply.header.fields:
        refused.append((reply.header.fields[HeaderFields.error_name], reply.body[0]))
print(json.dumps(refused))
"""


def test_few_are_begun_at_a_time(cluster):
    """Each is a process that its host makes beside others' starts."""
    number = int(submit_one(cluster))
    node = cluster.executor(number)["node"]
    pid = cluster.main_pid(node, AGENTD)
    os.kill(pid, signal.SIGSTOP)
    try:
        done = cluster.run("n1", "/usr/bin/python3", "-c", OPEN.format(number=number), user="ml")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert done.returncode == 0, done.stderr
    assert {tuple(refused) for refused in json.loads(done.stdout)} == \
        {("org.primus.Error.Busy", f"8 commands of yours are being begun on {node}; try again in a moment")}
    # They begin only now, and then end.
    cluster.wait_for(lambda: run(cluster, str(number), "echo", "again").stdout == "again\n", 10, "room for another one")
    no_sessions(cluster)
    cluster.kill(number)


# ---- who may ---------------------------------------------------------------------------------------------------------------


def test_only_the_owner_and_root(cluster, running):
    done = run(cluster, running, "id", user="eve")
    assert done.returncode == 255 and done.stdout == ""
    assert "uid=1000(ml)" in run(cluster, running, "id", user="root").stdout, "as the job's user, not as root"


def test_a_session_is_its_openers(cluster, running):
    """Its number is of no use to another connection, not even of the same user."""
    with session(cluster, running, "cat"):
        for user in ("ml", "root", "eve"):
            for method, *arguments in (("ReadSession", "ut", "1", "0"), ("WriteSession", "uayb", "1", "1", "120", "false"), ("CloseSession", "u", "1")):
                done = cluster.run("n1", "busctl", "call", "org.primus.Master1", f"/org/primus/Master1/job/{running}", "org.primus.Master1.Job", method,
                                   *arguments, user=user)
                assert done.returncode != 0 and "no session" in done.stderr


def test_bad_arguments(cluster, running):
    assert cluster.run("n1", "primusctl", "exec", running, "0", user="ml").returncode == 2
    assert cluster.run("n1", "primusctl", "exec", "-t", running, "0", "true", user="ml").returncode == 2
    assert cluster.run("n1", "primusctl", "forward", running, "0", "70000", user="ml").returncode == 2
    done = run(cluster, running, "echo", "x" * 70000)
    assert done.returncode == 255 and "61440" in done.stderr


# ---- forward -----------------------------------------------------------------------------------------------------------------

ECHO = r"""
import os, socket, threading
s = socket.create_server(("", int(os.environ["PRIMUS_PORTS"].split(",")[0])), backlog=64)
def serve(c):
    data = b""
    while chunk := c.recv(1 << 16):
        data += chunk
    c.sendall(b"%d " % len(data) + data)  # only when the client has finished: half-close has to pass
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""
CLIENT = r"""
import os, socket, sys, threading
where = sys.argv[1]
def one(i):
    data = os.urandom(300000 + i)
    if "/" in where:
        c = socket.socket(socket.AF_UNIX); c.connect(where)
    else:
        c = socket.create_connection((("127.0.0.1", "::1")[i % 2], int(where)))
    c.sendall(data); c.shutdown(socket.SHUT_WR)
    got = b""
    while chunk := c.recv(1 << 16):
        got += chunk
    results.append(got == b"%d " % len(data) + data)
results = []
threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(all(results), len(results))
"""


@pytest.fixture(scope="module")
def echo(_cluster):
    cluster = _cluster
    number = submit_one(cluster, ["python3", "-c", ECHO], role={"portNum": 1})
    port = str(cluster.executor(int(number))["ports"][0])
    cluster.wait_for(lambda: port in run(cluster, number, "ss", "-tln").stdout, 20, "the server listens")
    yield number, port
    cluster.run("n1", "primusctl", "kill", number, user="ml")


@contextlib.contextmanager
def forwarding(cluster, number, port, local):
    with cluster.process("n1", "primusctl", "forward", number, "0", port, local, user="ml") as running:
        yield running, running.stdout.readline().split(" -> ")[0]


def test_forward(cluster, echo):
    number, port = echo
    with forwarding(cluster, number, port, "0") as (_, where):
        local = where.removeprefix("127.0.0.1:")
        assert cluster.exec("n1", "python3", "-c", CLIENT, local, user="ml", timeout=60) == "True 8\n"
    no_sessions(cluster)


def test_forward_ends_with_the_server(cluster):
    """Who answers and closes, as HTTP/1.0 does, is heard to the end by a client that has not finished writing."""
    server = ("import os, socket\ns = socket.create_server((\"\", int(os.environ[\"PRIMUS_PORTS\"].split(\",\")[0])))\n"
              "while True:\n    c = s.accept()[0]; c.recv(10); c.sendall(b\"all of it\"); c.close()")
    client = ("import socket, sys\nc = socket.create_connection((\"127.0.0.1\", int(sys.argv[1])), 10)\nc.sendall(b\"give\")\n"
              "got = b\"\"\nwhile chunk := c.recv(100):\n    got += chunk\nprint(got.decode())")
    number = submit_one(cluster, ["python3", "-c", server], role={"portNum": 1})
    port = str(cluster.executor(int(number))["ports"][0])
    cluster.wait_for(lambda: port in run(cluster, number, "ss", "-tln").stdout, 20, "the server listens")
    with forwarding(cluster, number, port, "0") as (_, where):
        assert cluster.exec("n1", "python3", "-c", client, where.split(":")[1], user="ml").strip() == "all of it"
    cluster.primusctl("kill", number)


def test_forward_to_a_socket(cluster, echo):
    number, port = echo
    with forwarding(cluster, number, port, "/tmp/forward.sock") as (running, where):
        assert where == "/tmp/forward.sock"
        assert cluster.exec("n1", "stat", "-c", "%a %U", where).split() == ["700", "ml"]
        assert cluster.exec("n1", "python3", "-c", CLIENT, where, user="ml", timeout=60) == "True 8\n"
        cluster.exec("n1", "pkill", "-TERM", "-x", "primusctl")
        assert running.wait(10) == 0
    assert cluster.run("n1", "test", "-e", "/tmp/forward.sock").returncode == 1


def test_forward_only_to_the_executors_own_ports(cluster, echo):
    number, _ = echo
    with forwarding(cluster, number, "7747", "0") as (running, where):  # masterd's, or nobody's
        code = f"import socket; c = socket.create_connection(('127.0.0.1', {where.rsplit(':', 1)[1]})); print(c.recv(10))"
        assert cluster.exec("n1", "python3", "-c", code, user="ml") == "b''\n"
        assert "no process of this executor listens on port 7747" in running.stdout.readline()
