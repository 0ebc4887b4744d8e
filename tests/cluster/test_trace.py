# SPDX-License-Identifier: Apache-2.0
"""primusctl stacks and trace: what executors are doing, and how long it takes them."""
import glob
import json
import time

import pytest
from sandbox import AGENTD, MASTERD, STARTER

IDLE = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
THREADS = r"""
import os, select, socket, threading, time
import primus
lock = threading.Lock(); lock.acquire()
def in_recv():
    a = socket.create_server(("127.0.0.1", 0)); b = socket.create_connection(a.getsockname()); b.recv(1)
def in_unix():
    pair = socket.socketpair(); pair[0].recv(1)
def in_pipe(): os.read(os.pipe()[0], 1)
def in_sleep(): time.sleep(600)
def in_poll():
    s = socket.create_server(("127.0.0.1", 0)); p = select.poll(); p.register(s); p.poll()
def in_epoll():
    s = socket.create_server(("127.0.0.1", 0)); p = select.epoll(); p.register(s); p.poll()
def deadlocked_here(): lock.acquire()
def spinning():
    while True: pass
tids = {}
def run(f):
    tids[f.__name__] = threading.get_native_id()
    f()
functions = (in_recv, in_unix, in_pipe, in_sleep, in_poll, in_epoll, spinning)
for f in functions:
    threading.Thread(target=run, args=(f,), daemon=True).start()
tids["deadlocked_here"] = threading.get_native_id()
while len(tids) <= len(functions): time.sleep(0.01)
time.sleep(0.3)
for name, tid in sorted(tids.items()): print(name, tid)
print("up", flush=True)
deadlocked_here()
"""
# A read takes 20 ms: as long as the other end is silent.
SLOW_READS = r"""
import os, time
r, w = os.pipe()
if os.fork() == 0:
    while True:
        time.sleep(0.02)
        os.write(w, b"x" * 100)
print("up", flush=True)
while True:
    os.read(r, 1000)
"""
CROWDED = r"""
import os
for _ in range(3 * os.cpu_count()):
    if os.fork() == 0:
        while True: pass
print("up", flush=True)
os.wait()
"""
MANY = r"""
import threading, time
threading.stack_size(65536)
for _ in range(1000):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def start(_cluster):
    """Starts a program as a job's only executor, on n1; ended after the test."""
    cluster, jobs = _cluster, []
    cluster.wait_nodes()

    def run(program, **more):
        number = cluster.submit({"name": "trace", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "nodes": ["n1"],
                                                           "argv": ["python3", "-c", program]}], **more})
        jobs.append(number)
        cluster.wait_state(number, "RUNNING", timeout=30)
        cluster.wait_for(lambda: "up" in cluster.primusctl("logs", str(number)), 30, "the program is up")
        return str(number)

    yield run
    for number in jobs:
        cluster.run("n1", "primusctl", "kill", str(number), user="ml")


def stacks(cluster, number, *arguments):
    return cluster.primusctl_json("stacks", *arguments, number)[0]


def main_pid(cluster, number):
    unit = cluster.executor(int(number))["unit"]
    return cluster.exec("n1", "systemctl", "show", "-P", "MainPID", unit).strip()


def programs(cluster):
    """The kernel's programs of n1's starter: ids that its descriptors name."""
    ids = set()
    for path in glob.glob(f"/proc/{cluster.main_pid('n1', STARTER)}/fdinfo/*"):
        try:
            with open(path, encoding="utf-8") as f:
                ids |= {line.split()[1] for line in f if line.startswith("prog_id:")}
        except OSError:
            pass  # closed meanwhile
    return sorted(ids)


def traced(cluster, number, *arguments, **options):
    return cluster.primusctl_json("trace", number, *arguments, **options)


def histogram(result, name, kind="io"):
    one = next(r for r in result if r["trace"] == kind)["executors"][0]
    assert "error" not in one, one
    return next(h for h in one["histograms"] if h["name"] == name)


# ---- stacks


def test_what_threads_wait_for(_cluster, start):
    number = start(THREADS)
    text = _cluster.primusctl("logs", number)
    tids = {name: int(tid) for name, tid in (line.split() for line in text.splitlines() if line != "up")}
    result = stacks(_cluster, number)
    assert result["node"] == "n1" and result["total"] == 8
    pid = result["threads"][0]["pid"]
    # Of the host's own numbers and the container's.
    by_tid = {t["tid"]: t for t in result["threads"]}
    waits = {name: by_tid[tid]["waits"] for name, tid in tids.items()}
    assert waits == {"in_recv": "network", "in_unix": "pipe", "in_pipe": "pipe", "in_sleep": "sleep", "in_poll": "network",
                     "in_epoll": "network", "spinning": "running", "deadlocked_here": "futex"}
    assert by_tid[tids["in_recv"]]["call"] == "recvfrom"
    assert "hrtimer" in by_tid[tids["in_sleep"]]["kernel"] or "nanosleep" in by_tid[tids["in_sleep"]]["kernel"]
    # Python says where it hangs, of all its threads.
    said = result["programs"][0]
    assert said["pid"] == pid
    assert "in deadlocked_here" in said["text"] and "in in_recv" in said["text"]
    assert not stacks(_cluster, number, "--quiet")["programs"]
    assert _cluster.status(int(number))["state"] == "RUNNING"
    shown = _cluster.primusctl("stacks", number, "worker/0")
    assert "worker/0 on n1" in shown and "futex" in shown and "in deadlocked_here" in shown


def test_stopped(_cluster, start):
    number = start(IDLE)
    _cluster.exec("n1", "kill", "-STOP", main_pid(_cluster, number))
    result = stacks(_cluster, number)
    assert [t["waits"] for t in result["threads"]] == ["stopped"] and not result["programs"]
    _cluster.exec("n1", "kill", "-CONT", main_pid(_cluster, number))
    # It has been woken, and may be waiting for a processor still.
    _cluster.wait_for(lambda: [t["waits"] for t in stacks(_cluster, number)["threads"]] == ["sleep"], 10, "that it sleeps on")


def test_a_thousand_threads(_cluster, start):
    number = start(MANY)
    result = stacks(_cluster, number)
    assert len(result["threads"]) == 256 and result["total"] == 1001
    assert "745 of 1001 threads are left out." in _cluster.primusctl("stacks", number)


def test_refused(_cluster, start):
    number = start(IDLE)
    for user, arguments, sentence in (("ml", (number, "worker/7"), "no executor worker/7"),
                                      ("ml", (number, "9"), "no executor 9"),
                                      ("nobody", (number,), "")):
        for command in (("stacks",), ("trace", "--io", "1s")):
            done = _cluster.run("n1", "primusctl", *command, *arguments, user=user)
            assert done.returncode == 1 and sentence in done.stderr, done
    for arguments in (("--io", "11min"), ("--io", "1ms"), ()):
        assert _cluster.run("n1", "primusctl", "trace", number, *arguments, user="ml").returncode == 2


# ---- trace


def test_slow_reads(_cluster, start):
    number = start(SLOW_READS)
    before = programs(_cluster)
    result = traced(_cluster, number, "--io", "3s")
    read, write = histogram(result, "read"), histogram(result, "write")
    most = max(read["buckets"], key=lambda b: b["count"])
    assert most["from"] <= 20e6 <= most["to"], read
    assert 60 <= read["count"] <= 160 and abs(read["bytes"] - 100 * read["count"]) <= 400
    assert abs(read["count"] - write["count"]) <= 4 and write["nsec"] < read["nsec"] / 10
    _cluster.wait_for(lambda: programs(_cluster) == before, 5, "nothing is left in the kernel")
    text = _cluster.primusctl("trace", number, "--io", "1s")
    assert "worker/0 on n1" in text and "16.8ms - 33.6ms" in text


def test_a_crowd_waits_for_processors(_cluster, start):
    number = start(CROWDED)
    wait = histogram(traced(_cluster, number, "--runqueue", "3s"), "wait", "runqueue")
    assert wait["count"] > 50
    # Three for each processor: who is put aside waits for two slices of others.
    assert wait["nsec"] / wait["count"] > 500e3, wait
    quiet = histogram(traced(_cluster, start(SLOW_READS), "--runqueue", "2s"), "wait", "runqueue")
    assert quiet["count"] > 50


def test_two_share_one_trace(_cluster, start):
    number = start(SLOW_READS)
    with _cluster.process("n1", "primusctl", "trace", number, "--io", "4s", "--json", user="ml") as first:
        time.sleep(1)
        second = traced(_cluster, number, "--io", "1s", "--runqueue", "1s")
        one, two = histogram(json.loads(first.communicate(timeout=30)[0]), "read"), histogram(second, "read")
    assert 20 < two["count"] < one["count"] and one["count"] > 100
    assert histogram(second, "wait", "runqueue")["count"] > 10


def test_nobody_takes_every_slot(_cluster):
    """16 executors of one user on one host; whoever asks for them one by one gets no more."""
    number = _cluster.submit({"name": "trace", "role": [{"roleName": "worker", "num": 18, "vcores": 0.01, "memoryMb": 8, "nodes": ["n1"],
                                                         "command": "sleep 600"}]})
    try:
        _cluster.wait_state(number, "RUNNING", timeout=60)
        path = f"/org/primus/Master1/job/{number}"
        script = "for i in $(seq 0 17); do busctl call org.primus.Master1 $0 org.primus.Master1.Job Trace 'susa{sv}' worker $i runqueue 0; done 2>&1"
        said = _cluster.exec("n1", "sh", "-c", script + "; true", path, user="ml").splitlines()
        assert len(said) == 18 and sum("16 executors of this user" in line for line in said) == 2, said
    finally:
        _cluster.kill(number)


@pytest.mark.parametrize("ends", ["Ctrl-C", "primusctl killed", "masterd killed", "agentd killed"])
def test_nothing_stays(_cluster, start, ends):
    number = start(SLOW_READS)
    before = programs(_cluster)
    with _cluster.process("n1", "primusctl", "trace", number, "--io", "60s", user="ml") as p:
        _cluster.wait_for(lambda: len(programs(_cluster)) > len(before), 20, "the trace is on")
        time.sleep(1.5)
        if ends == "Ctrl-C":
            _cluster.exec("n1", "pkill", "-INT", "-f", f"^primusctl trace {number}")
        elif ends == "primusctl killed":
            _cluster.exec("n1", "pkill", "-KILL", "-f", f"^primusctl trace {number}")
        else:
            _cluster.kill9("n1", MASTERD if ends == "masterd killed" else AGENTD)
        text = p.communicate(timeout=30)[0]
    if ends == "Ctrl-C":
        assert "read: " in text and "(interrupted)" in text and p.returncode == 130
    elif ends != "primusctl killed":
        assert "read: " in text and p.returncode == 1, text
    _cluster.wait_for(lambda: len(programs(_cluster)) == len(before), 20, "nothing is left in the kernel")
    _cluster.wait_nodes()
    assert _cluster.status(int(number))["state"] == "RUNNING"
