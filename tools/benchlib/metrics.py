# SPDX-License-Identifier: Apache-2.0
"""What reporting a training's metrics costs: the trainer, and masterd beside a thousand ranks."""
import json
import os
import time

from benchlib.web import cpu

NAMES, SECONDS = 10, 20
EXECUTORS, CONNECTIONS, RATE = 18, 8, 7  # so many packets a second of each connection are as many as those ranks say

# Each call by itself; then calls one after another, where the clock is not part of it, in Python and in C alone.
TRAINER = """
import ctypes, resource, statistics, time
from primus import metrics
clock = time.perf_counter_ns
def step(n):
    began = clock()
    metrics.report(n, loss=1.5, accuracy=0.5, rate=1000.0)
    return clock() - began
for n in range(1000):
    step(n)
metrics.flush()
before = resource.getrusage(resource.RUSAGE_THREAD)
own = []
for n in range(1000, 5000): # a step of a millisecond
    own.append(step(n))
    end = clock() + 1000000
    while clock() < end:
        pass
own.sort()
slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before.ru_nvcsw
array, kind, count = metrics._names["loss", "accuracy", "rate"]
values = kind(1.5, 0.5, 1000.0)
call = metrics._library.primus_report
began = clock()
for n in range(5000, 105000):
    call(n, array, values, count)
ctypes_ns = (clock() - began) / 100000
print("figures", own[len(own) // 2] / 1e3, own[len(own) * 99 // 100] / 1e3, ctypes_ns / 1e3, slept, flush=True)
"""

# A connection to agentd as a trainer's library makes it, in a program of its own; tests/cluster/test_training.py has it as well.
DIAL = """
import os, random, socket, struct, sys, time
HELLO, ANSWER, METRICS, CHALLENGE, WELCOME = 1, 2, 9, 64, 65
def dial():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.environ["PRIMUS_SOCKET"])
    s.send(struct.pack("=IIII", HELLO, 8, 4, os.getpid()))
    while True:
        packet = s.recv(65536)
        kind, size = struct.unpack_from("=II", packet)
        if kind == CHALLENGE:
            s.send(struct.pack("=II", ANSWER, size) + packet[8:])
        elif kind == WELCOME:
            return s
def say(s, body):
    s.send(struct.pack("=II", METRICS, len(body)) + body)
def point(name, step):
    return bytes([len(name)]) + name + struct.pack("<QQIdddd", step, int(time.time() * 1e6), 1, 1.0, 1.0, 1.0, 1.0)
"""

# What the threads of many trainers would say, without the trainers.
SAYS = DIAL + """
connections, rate, names, seconds = map(int, sys.argv[1:])
time.sleep(10)
sockets = [dial() for _ in range(connections)]
names = [b"train/metric%d" % n for n in range(names)]
for step in range(rate * seconds):
    began = time.monotonic()
    for local, s in enumerate(sockets):
        say(s, struct.pack("=II", local, 0) + b"".join(point(name, step) for name in names))
    time.sleep(max(0, began + 1 / rate - time.monotonic()))
time.sleep(10)
"""


def submit(hosts, name, role):
    with open(os.path.join(hosts.shared, f"{name}.json"), "w", encoding="utf-8") as f:
        json.dump({"name": name, "role": [{"roleName": "w", "vcores": 0.01, "memoryMb": 32, **role}]}, f)
    return json.loads(hosts.execute("primusctl", "submit", "--json", f"/opt/bench/{name}.json"))["job"]


def bench(hosts, report):
    number = submit(hosts, "trainer", {"num": 1, "argv": ["python3", "-c", TRAINER]})
    hosts.execute("primusctl", "wait", str(number))
    p50, p99, alone, slept = map(float, hosts.execute("primusctl", "logs", str(number)).split("figures")[1].split()[:4])
    ok = report("metrics", "report() of three values, for a Python trainer, p50", p50, "µs", goal=("value", "<=", 5))
    ok &= report("metrics", "report() of three values, for a Python trainer, p99", p99, "µs")
    ok &= report("metrics", "primus_report() of three values, called by ctypes, mean", alone, "µs")
    ok &= report("metrics", "times that the trainer slept in 4,000 of them", slept, "")
    number = submit(hosts, "says", {"num": EXECUTORS, "argv": ["python3", "-c", SAYS, *map(str, (CONNECTIONS, RATE, NAMES, SECONDS + 20))]})
    while "RUNNING" not in hosts.execute("primusctl", "status", str(number)):
        time.sleep(0.5)
    time.sleep(18)
    before, began = cpu(hosts, "primus-masterd"), time.monotonic()
    time.sleep(SECONDS)
    share = 100 * (cpu(hosts, "primus-masterd") - before) / 1e6 / (time.monotonic() - began)
    ok &= report("metrics", f"masterd, {EXECUTORS * CONNECTIONS * RATE} packets of {NAMES} points a second", share, "% of a core", goal=("value", "<=", 5))
    hosts.execute("primusctl", "wait", str(number))
    found = json.loads(hosts.execute("primusctl", "metrics", str(number), "--json"))
    said = EXECUTORS * CONNECTIONS * RATE * (SECONDS + 20)
    return report("metrics", "points that arrived, of those that were said", sum(m["reports"] for m in found) / NAMES / said, "", goal=("value", ">=", 1)) and ok
