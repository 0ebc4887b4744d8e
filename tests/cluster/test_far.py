# SPDX-License-Identifier: Apache-2.0
"""Calls from hosts that are not the master's, and from inside jobs."""
import json
import os
import shutil
import time

import pytest
from sandbox import AGENTD, MASTERD

SOCKET = "/run/primus/agent/master.sock"
JOB = {"name": "far", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "command": "echo hello; exec sleep 600"}]}


@pytest.fixture
def cluster(quick):
    """Whose daemons are looked at in the end: none has crashed."""
    return quick


def submit(cluster, node, config, *options, user="ml"):
    done = cluster.run(node, "sh", "-c", "umask 077; f=$(mktemp /tmp/job.XXXXXX); cat > $f; exec primusctl submit --json $* $f", "sh", *options, user=user, input=json.dumps(config))
    return json.loads(done.stdout)["job"] if done.returncode == 0 else done


def test_from_another_host(cluster):
    """Submitted, watched and steered as oneself from a host that has no masterd."""
    job = submit(cluster, "n2", JOB)
    cluster.wait_state(job, "RUNNING", timeout=30)
    assert cluster.status(job)["owner"] == 1000
    assert [e["text"] for e in cluster.events(job, "submitted-from")] == ["from host n2"]
    assert cluster.exec("n2", "primusctl", "logs", str(job), user="ml").endswith("hello\n")
    with cluster.process("n3", "primusctl", "wait", str(job), user="ml") as waits:
        other = cluster.run("n3", "primusctl", "kill", str(job), user="eve")
        assert other.returncode == 1 and "only" in other.stderr, other
        cluster.exec("n2", "primusctl", "kill", "--reason=seen", str(job), user="ml")
        assert waits.wait(20) == 3
    assert "seen" in cluster.exec("n3", "primusctl", "status", str(job), user="ml")
    assert cluster.exec("n2", "busctl", f"--address=unix:path={SOCKET}", "get-property", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager", "NumNodes", user="ml") == "u 3\n"


# Without the system bus, which is hidden from executors.
INSIDE = """
set -e
! test -r /run/dbus/system_bus_socket
id -u
child=$(primusctl run --detach --parsable --name=child --mem=64M --cpus=0.1 -- sleep 300)
primusctl config $child > job.json 2> /dev/null
primusctl submit --dry-run --with-parent job.json > /dev/null
primusctl list --json | grep -c '"name": *"child"'
primusctl kill --reason=enough $child
primusctl wait $child || echo ended $?
"""


def test_from_inside_a_job(cluster):
    """An executor submits, follows and kills as its user, on every host, the master's as well."""
    for node in cluster.nodes:
        said = cluster.exec("n1", "primusctl", "run", "--no-env", f"--hosts={node}", "--mem=128M", "--cpus=0.1", "--", "sh", "-c", INSIDE, user="ml", timeout=60)
        said = said.splitlines()
        assert said[:2] == ["1000", "1"] and said[-2].endswith("KILLED") and said[-1] == "ended 3", said


def test_not_for_others(cluster):
    """Never root, nor what polkit would allow; and the line of each change has the host that it came from."""
    job = submit(cluster, "n2", JOB)
    for arguments in (["list"], ["kill", str(job)], ["node", "drain", "n3"]):
        done = cluster.run("n2", "primusctl", *arguments, user="root")
        assert done.returncode != 0 and "root are taken on the master's own" in done.stderr, done
    done = cluster.run("n2", "primusctl", "node", "drain", "n3", user="ml")
    assert done.returncode == 1 and "from another host it is not asked" in done.stderr, done
    assert set(cluster.node_states().values()) == {"READY"}
    cluster.exec("n2", "primusctl", "kill", str(job), user="ml")

    def kills():
        lines = cluster.exec("n1", "journalctl", "-q", "-o", "json", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_METHOD=Job.Kill", f"PRIMUS_JOB={job}").splitlines()
        return [json.loads(line) for line in lines]

    cluster.wait_for(kills, 10, "the line of the kill")
    (kill,) = kills()
    assert (kill["PRIMUS_AUDIT_FROM"], kill["PRIMUS_AUDIT_UID"], kill["PRIMUS_AUDIT_RESULT"]) == ("n2", "1000", "ok")
    assert "uid 1000 on n2" in kill["MESSAGE"]
    drains = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_METHOD=Node.Drain").splitlines()
    assert drains and "polkit:far" in drains[-1] and "AccessDenied" in drains[-1], drains


def test_over_kills(cluster):
    """Who waits on another host is told, whatever was killed meanwhile."""
    job = submit(cluster, "n2", JOB)
    cluster.wait_state(job, "RUNNING", timeout=30)
    with cluster.process("n3", "primusctl", "wait", str(job), user="ml") as waits:
        cluster.wait_for(lambda: cluster.run("n3", "grep", "-c", SOCKET, "/proc/net/unix").stdout == "2\n", 10, "its connection")
        time.sleep(0.5)  # it has asked about the job
        cluster.kill9("n1", MASTERD)
        cluster.wait_nodes()
        cluster.kill9("n3", AGENTD)
        cluster.wait_nodes()
        cluster.primusctl("kill", str(job))
        said = waits.communicate(timeout=20)
        assert waits.returncode == 3, said
    # What is asked while masterd is away waits for it.
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    with cluster.process("n2", "primusctl", "list", "--json", user="ml") as asks:
        cluster.exec("n1", "systemctl", "start", MASTERD)
        assert asks.communicate(timeout=30)[0].strip() == "[]" and asks.returncode == 0


def test_questions_over_kills(cluster):
    """Whoever asks again and again while the agent is killed again and again is always answered."""
    asking = "i=0; while [ $i -lt 150 ]; do primusctl list --json > /dev/null || exit 1; i=$((i + 1)); done"
    with cluster.process("n3", "sh", "-c", asking, user="ml") as asks:
        for _ in range(4):
            cluster.kill9("n3", AGENTD)
            cluster.wait_for(lambda: cluster.run("n3", "systemctl", "is-active", AGENTD).returncode == 0, 10, "its next process")
            time.sleep(0.4)
        said = asks.communicate(timeout=90)[0]
        assert asks.returncode == 0, said


GOES_ON = {"name": "goes-on", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "command": "echo one; while ! [ -e /tmp/go-on ]; do sleep 0.1; done; echo two"}]}


def test_following_over_a_kill(cluster):
    """Output, progress and the run of a command go on where they were when the agent of their host is started again."""
    cluster.exec("n3", "tee", "/tmp/goes-on.json", input=json.dumps(GOES_ON))
    command = ("sh", "-c", "echo one; while ! [ -e /tmp/go-on ]; do sleep 0.1; done; echo two; exit 7")
    with cluster.process("n3", "primusctl", "submit", "--wait", "--logs", "/tmp/goes-on.json", user="ml") as submits, \
         cluster.process("n3", "primusctl", "run", "--no-env", "--cpus=0.1", "--mem=64M", "--", *command, user="ml") as runs:
        cluster.wait_for(lambda: [j["state"] for j in cluster.primusctl_json("list")] == ["RUNNING"] * 2, 30, "both")
        (job,) = [j["job"] for j in cluster.primusctl_json("list") if j["name"] == "goes-on"]
        with cluster.process("n3", "primusctl", "logs", "-f", str(job), user="ml") as follows:
            assert follows.stdout.readline() == runs.stdout.readline() == "one\n"
            cluster.kill9("n3", AGENTD)
            cluster.wait_nodes()
            time.sleep(1)
            for node in cluster.nodes:
                cluster.exec(node, "touch", "/tmp/go-on")
            said = follows.communicate(timeout=30)[0]
            assert "two\n" in said and "one" not in said and follows.returncode == 0, said
        said = runs.communicate(timeout=30)[0]
        assert "two\n" in said and runs.returncode == 7, said
        said = submits.communicate(timeout=30)[0]
        assert "two" in said and submits.returncode == 0, said
    for node in cluster.nodes:
        cluster.exec(node, "rm", "/tmp/go-on")


def test_settings(new_cluster):
    """RelayFrom= of masterd.conf and Relay= of agentd.conf: sentences, and a reload changes them."""
    cluster = new_cluster(3, conf=["masterd.conf:Master.RelayFrom=n2:ml n3"])
    cluster.exec("n3", "sh", "-c", "printf '[Agent]\nDenyUsers=eve\n' > /etc/primus/agentd.conf.d/far.conf && systemctl restart primus-agentd")
    cluster.wait_nodes()

    def asked(node, user):
        done = cluster.run(node, "primusctl", "list", user=user)
        return "" if done.returncode == 0 else done.stderr

    assert asked("n2", "ml") == "" and asked("n3", "ml") == "" and asked("n1", "eve") == ""
    assert "takes no calls of uid 1001 from host n2 (RelayFrom=" in asked("n2", "eve")
    assert "Host n3 does not serve uid 1001" in asked("n3", "eve")
    cluster.exec("n1", "sh", "-c", "sed -i s/RelayFrom=.*/RelayFrom=n3/ /etc/primus/masterd.conf.d/*.conf && systemctl reload primus-masterd")
    cluster.wait_for(lambda: "RelayFrom=" in asked("n2", "ml"), 10, "the new setting")
    assert asked("n3", "ml") == ""
    cluster.exec("n3", "sh", "-c", "printf '[Agent]\nRelay=no\n' > /etc/primus/agentd.conf.d/far.conf && systemctl restart primus-agentd")
    cluster.wait_nodes()
    assert "which is not the master's" in asked("n3", "ml")
    refused = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_FROM=n2").splitlines()
    assert any("uid 1001 on n2" in line and "AccessDenied" in line for line in refused), refused


# Submits two children, one of which ends with it, says their numbers, and stays.
PARENT = """
set -e
for option in --with-parent ""; do
    primusctl run --detach --parsable $option --name=child --mem=64M --cpus=0.1 -- sleep 300
done
exec sleep 300
"""


def test_jobs_of_a_job(cluster):
    """They know their parent, are shown below it, and end with it where they were asked to; over a kill of masterd too."""
    config = {"name": "parent", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 128, "argv": ["sh", "-c", PARENT]}]}
    job = cluster.submit(config)

    def children():
        return [r["job"] for r in cluster.primusctl_json("list") if r.get("parent") == job]

    cluster.wait_for(lambda: len(children()) == 2, 30, "the children")
    free, ward = children()  # newest first
    for one in (free, ward):
        cluster.wait_state(one, "RUNNING", timeout=30)
    status = cluster.primusctl_json("status", str(ward))
    assert (status["parent"], status["withParent"]) == (job, True) and cluster.primusctl_json("status", str(free))["withParent"] is False
    (event,) = cluster.events(ward, "submitted-from")
    assert event["text"].startswith(f"from inside job {job}, on host n"), event
    assert f"submitted from inside job {job}, with which it ends" in cluster.primusctl("status", str(ward))
    tree = [line.split() for line in cluster.primusctl("list", "--tree").splitlines()[1:]]
    assert [(row[0], row[1]) for row in tree] == [(str(job), "parent"), (str(free), "+"), (str(ward), "+")]
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    cluster.primusctl("kill", str(job))
    cluster.wait_state(ward, "KILLED", timeout=30)
    assert f"its parent, job {job}, has ended" in cluster.primusctl_json("status", str(ward))["reason"]
    assert cluster.status(free)["state"] == "RUNNING"
    cluster.primusctl("kill", str(free))
    # Nobody's child: from a shell, and of another user's job, whose number makes no difference.
    done = submit(cluster, "n2", JOB, "--with-parent")
    assert done.returncode == 1 and "does not come from inside a job" in done.stderr


def test_a_child_of_an_ended_job(cluster):
    """A parent that ends while masterd is killed again and again: its ward ends, whatever the new master finds."""
    config = {"name": "parent", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 128, "argv": ["sh", "-c", PARENT]}]}
    job = cluster.submit(config)
    cluster.wait_for(lambda: sum(r.get("parent") == job for r in cluster.primusctl_json("list")) == 2, 30, "the children")
    free, ward = [r["job"] for r in cluster.primusctl_json("list") if r.get("parent") == job]
    cluster.primusctl("kill", str(job))
    for _ in range(3):
        cluster.kill9("n1", MASTERD)
        cluster.wait_nodes()
    cluster.wait_state(ward, "KILLED", timeout=30)
    assert cluster.status(free)["state"] in ("QUEUED", "STARTING", "RUNNING")
    cluster.primusctl("kill", str(free))


def test_a_captured_host(new_cluster, build, tmp_path):
    """With a good certificate, and any uid that it likes: it speaks for whom it may, and for nobody else, under no name of another."""
    program = os.path.join(build, "tests/false-calls")
    if not os.path.exists(program):
        pytest.skip("false-calls is not built")
    shutil.copy(program, tmp_path / "false-calls")
    cluster = new_cluster(3, conf=["masterd.conf:Master.RelayFrom=n1 n3:ml"], binds=[f"{tmp_path}:/shared"])
    mine = cluster.submit(JOB, user="eve")
    cluster.wait_state(mine, "RUNNING", timeout=30)
    manager = "/org/primus/Master1 org.primus.Master1.Manager"

    def says(node, *lines):
        return cluster.exec(node, "/shared/false-calls", "n1", "7747", input="".join(line + "\n" for line in lines)).splitlines()

    assert says("n2", "caller :0.1 1000") == ["refused: no calls are taken from this host"]
    said = says("n3", "caller :0.1 1000", "caller :0.2 0", "caller :0.3 1001", "caller :0.4 5", "caller :0.5 65534", "caller :0.1 1001", "caller :far.n1.0.1 1000",
                "caller org.primus.Master1 1000", "caller :1.2.3 1000", f"caller :0.6 1000 {mine}", "caller :0.7 4294967295",
                *(f"call {name} {manager} ListJobs" for name in (":0.1", ":0.2", ":0.3", ":0.4", ":0.5", ":0.7", ":0.8", ":far.n1.0.1", ":1.2", "org.primus.Master1", "-")),
                "gone :0.9", "gone :0.2", f"call :0.2 {manager} ListJobs",
                f"call :0.6 /org/primus/Master1/job/{mine} org.primus.Master1.Job GetConfig", f"call :0.1 /org/primus/Master1/job/{mine} org.primus.Master1.Job Succeed",
                f"call :0.1 {manager} Backup", "call :0.1 /org/primus/Link1 org.freedesktop.DBus.Introspectable Introspect",
                "call :0.1 / org.freedesktop.DBus.Peer Ping", f"call :0.1 {manager} NoSuch", "call :0.1 /x a.b c")
    answers = {line.split(": ")[0]: line.split(": ", 1)[1] for line in said}
    assert answers[":0.1 ListJobs"] == "ok" and answers[":0.1 Ping"] == "ok", said
    for name in (":0.2", ":0.3", ":0.4", ":0.5", ":0.7", ":0.8", ":far.n1.0.1", ":1.2", "org.primus.Master1", "-"):
        assert "AccessDenied" in answers[f"{name} ListJobs"], (name, said)
    assert "AccessDenied" in answers[":0.6 GetConfig"] and "without an answer" not in said[-1], said
    for what in ("Succeed", "Backup", "NoSuch", "c"):
        assert answers[f":0.1 {what}"] != "ok", said
    # As many names as there may be; and none of them is left.
    said = says("n3", "flood :0. 1050", f"call :0.1000 {manager} ListJobs", f"call :0.1040 {manager} ListJobs")
    assert sorted(said) == sorted([":0.1000 ListJobs: ok", next(line for line in said if line.startswith(":0.1040 ListJobs: org.freedesktop.DBus.Error.AccessDenied"))])
    for _ in range(12):
        assert says("n3", "flood :0. 1000", f"call :0.999 {manager} ListJobs") == [":0.999 ListJobs: ok"]
    assert cluster.status(mine)["state"] == "RUNNING" and cluster.exec("n3", "primusctl", "list", user="ml")
    # The honest agent has its connection again, and who is where is in the audit.
    told = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_FROM=n3")
    assert "uid 0 on n3" in told and "uid 1001 on n3" in told


# What users of a host may send to its agent's socket: no D-Bus, too much of it, and nothing more; and never reading.
SOCKET_TRIALS = r"""
import os, socket, struct, sys, time
PATH = "/run/primus/agent/master.sock"

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(PATH)
    return s

def ended(s):
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False

def login(s):
    s.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
    assert s.recv(1024).startswith(b"OK ")
    s.sendall(b"BEGIN\r\n")

def header(body, fields=b""):
    return struct.pack("<BBBBIII", ord("l"), 1, 0, 1, body, 1, len(fields)) + fields

for junk in (b"GET / HTTP/1.1\r\n\r\n" * 100, b"\0" * 5000, b"\0AUTH EXTERNAL\r\n" * 200, os.urandom(5000)):
    s = connect()
    try:
        s.sendall(junk)
        s.shutdown(socket.SHUT_WR)
    except ConnectionError:
        pass
    assert ended(s), junk[:20]
s = connect()
login(s)
s.sendall(header(100 << 20))
assert ended(s), "a message of 100 MiB"
# Five large ones that never come to an end: the fifth is too many, the others may go on.
many = [connect() for _ in range(5)]
for s in many:
    login(s)
    s.sendall(header(4 << 20))
    time.sleep(0.1)
assert ended(many[4]), "the fifth"
many[0].settimeout(0.2)
assert not ended(many[0]), "the first"
# Who never reads what is answered: by D-Bus's AddMatch, whose rule is longer than any that means something.
def call(serial, rule):
    def field(code, kind, text):
        text = text.encode()
        return struct.pack("<BBBB", code, len(kind), ord(kind), 0) + struct.pack("<I", len(text)) + text + b"\0"
    def padded(data):
        return data + b"\0" * (-len(data) % 8)
    fields = [field(1, "o", "/org/freedesktop/DBus"), field(2, "s", "org.freedesktop.DBus"), field(3, "s", "AddMatch"), field(6, "s", "org.freedesktop.DBus")]
    fields = b"".join(padded(f) for f in fields) + struct.pack("<BBBB", 8, 1, ord("g"), 0) + b"\1s\0"
    body = struct.pack("<I", len(rule)) + rule.encode() + b"\0"
    return padded(struct.pack("<BBBBIII", ord("l"), 1, 0, 1, len(body), serial, len(fields)) + fields) + body
s = connect()
login(s)
try:
    for serial in range(1, 200000):
        s.sendall(call(serial, "path='/" + "x" * 1000 + "'"))
    sys.exit("nobody has hung up")
except (ConnectionError, TimeoutError):
    pass
# As many connections as there may be.
held = []
refused = 0
while refused < 20:
    s = connect()
    try:
        login(s)
        held.append(s)
    except (AssertionError, ConnectionError):
        refused += 1
        time.sleep(0.05)  # those from above may still be on their way out
print(len(held), flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_what_a_user_sends_to_the_socket(cluster):
    """It is bounded, and another user of the host has the way to the master meanwhile."""
    before = cluster.main_pid("n2", AGENTD)
    with cluster.process("n2", "python3", "-c", SOCKET_TRIALS, "60", user="eve") as tries:
        held = tries.stdout.readline()
        assert held.strip().isdigit() and 100 <= int(held) <= 128, held + tries.stdout.read()
        assert cluster.run("n2", "primusctl", "list", user="ml").returncode == 0
        assert cluster.run("n2", "primusctl", "list", user="eve").returncode != 0
    assert cluster.run("n2", "primusctl", "list", user="eve").returncode == 0
    assert cluster.main_pid("n2", AGENTD) == before


POOL = """
from primus import actors

class Counter:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
        return self.n

with actors.Pool(hosts=2, slots=1, cpus=0.1, memory="64M") as pool:
    print(*[pool.create(Counter).add().result(30) for _ in range(2)])
"""


def test_actors_from_anywhere(cluster):
    """A pool of the cluster's hosts, from another host than the master's and from inside a job."""
    assert cluster.exec("n2", "python3", "-c", POOL, user="ml", timeout=60) == "1 1\n"
    assert cluster.exec("n1", "primusctl", "run", "--no-env", "--hosts=n3", "--mem=256M", "--cpus=0.1", "--", "python3", "-c", POOL, user="ml", timeout=90) == "1 1\n"
    assert cluster.primusctl_json("list") == []


CLIENT = """
import json, sys
from primus.client import Client
with Client() as cluster:
    job = cluster.submit(json.loads(sys.argv[1]))
    for status in cluster.watch(job):
        if status["state"] == "RUNNING":
            cluster.kill(job, "seen")
    print(status["state"], cluster.wait(job))
"""


def test_client_from_anywhere(cluster):
    """primus.client, and with it the gateway, on another host."""
    assert cluster.exec("n2", "python3", "-c", CLIENT, json.dumps(JOB), user="ml", timeout=60) == "KILLED 3\n"
