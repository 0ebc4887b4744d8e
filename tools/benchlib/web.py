# SPDX-License-Identifier: Apache-2.0
"""What the page and REST cost: answers beside busctl asking the same, events, memory, masterd beside readers that wait."""
import json
import os
import re
import time

JOBS = 970  # a user has 1,000 at most
READERS = 30
MANY = 1000

# Runs on n1 as the user: prints one JSON object.
CLIENT = """
import http.client, json, os, resource, socket, statistics, subprocess, sys, threading, time
class C(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/run/user/%d/primus/web.sock" % os.getuid())
H = {"Content-Type": "application/json", "Primus-Request": "1"}
def ask(c, method, path, body=None):
    c.request(method, "/v1/" + path, body, H if body else {})
    return c.getresponse().read()
def timed(f, n=21):
    took = []
    for _ in range(n):
        began = time.perf_counter()
        f()
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)
BUS = ["busctl", "call", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager"]
def bus(*words):
    subprocess.run(BUS + list(words), stdout=subprocess.DEVNULL, check=True)
def first():
    began = time.perf_counter()
    ask(C("primus"), "GET", "cluster")
    return 1000 * (time.perf_counter() - began)
out = {"first": first()}
kept = C("primus")
role = {"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "exec sleep 600"}
head = json.loads(ask(kept, "POST", "jobs", json.dumps({"name": "head", "role": [role]})))["job"]
began = time.perf_counter()
for _ in range(JOBS):
    ask(kept, "POST", "jobs", json.dumps({"name": "waits", "after": ["%d:ok" % head], "role": [role]}))
out["submit"] = 1000 * (time.perf_counter() - began) / JOBS
out["trial"] = timed(lambda: ask(kept, "POST", "jobs?dryRun=1", json.dumps({"name": "tried", "role": [role]})))
out["list"] = timed(lambda: ask(kept, "GET", "jobs?limit=%d" % JOBS))
out["list bus"] = timed(lambda: bus("ListJobs", "a{sv}", "1", "limit", "u", str(JOBS)))
out["pools"] = timed(lambda: ask(kept, "GET", "pools"))
out["pools bus"] = timed(lambda: bus("ListPools"))
def stream():
    c = C("primus")
    c.request("GET", "/v1/events")
    c.sock.settimeout(30)
    return c.getresponse()
late, r = [], stream()
for _ in range(3): r.readline()
for _ in range(20):
    job = json.loads(ask(kept, "POST", "jobs", json.dumps({"name": "event", "after": ["%d:ok" % head], "role": [role]})))["job"]
    began = time.perf_counter()
    while b"%d" % job not in r.readline(): pass
    late.append(1000 * (time.perf_counter() - began))
out["event"] = statistics.median(late)
streams = [stream() for _ in range(READERS - 1)]
print(json.dumps(out), flush=True)
sys.stdin.readline()
# Everybody's door.
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
everybody = []
for _ in range(MANY):
    s = socket.create_connection(("127.0.0.1", 8479))
    s.sendall(b"GET /v1/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    everybody.append(s)
print(sum(b" 200 " in s.recv(64) for s in everybody), flush=True)
sys.stdin.readline()
"""


def cpu(hosts, program):
    """Microseconds of processor time that a process of n1 has had."""
    fields = hosts.execute("sh", "-c", f"cat /proc/$(pidof {program})/stat", user="root").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def pss(hosts, pid):
    """pid: a shell's words that say it."""
    text = hosts.execute("sh", "-c", f"cat /proc/$({pid})/smaps_rollup", user="root")
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) / 1024


def bench(hosts, source, report, popen):
    hosts.execute("sh", "-c", "systemctl --global enable primus-web.socket 2>/dev/null; loginctl enable-linger ml; "
                              "until test -S /run/user/1000/primus/web.sock; do sleep 0.1; done", user="root")
    path = os.path.join(hosts.shared, "web.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"JOBS, READERS, MANY = {JOBS}, {READERS}, {MANY}\n{CLIENT}")
    running = popen("python3", "/opt/bench/web.py")
    with running:
        line = running.stdout.readline()
        out = json.loads(line) if line else {}
        ok = report("web", "first answer, with the start of the service", out["first"], "ms")
        ok &= report("web", f"submit, each of {JOBS}", out["submit"], "ms")
        ok &= report("web", f"a trial behind {JOBS} jobs", out["trial"], "ms")
        ok &= report("web", f"list of {JOBS} jobs, beside busctl", out["list"], "ms", out["list bus"], ("ratio", "<=", 2))
        ok &= report("web", "pools, beside busctl", out["pools"], "ms", out["pools bus"])
        ok &= report("web", "event, behind the answer to what it tells of", out["event"], "ms", goal=("value", "<=", 100))
        time.sleep(2)
        began, before = time.monotonic(), cpu(hosts, "primus-masterd")
        time.sleep(20)
        busy = cpu(hosts, "primus-masterd") - before
        lasted = 1e6 * (time.monotonic() - began)
        ok &= report("web", f"masterd's processor beside {READERS} readers of events that wait, and {JOBS} jobs", 100 * busy / lasted, "%", goal=("value", "<=", 1))
        ok &= report("web", f"memory of primus-webd with {READERS} streams (PSS)", pss(hosts, "pidof primus-webd"), "MiB", goal=("value", "<=", 4))
        hosts.execute("systemctl", "start", "primus-web.socket", user="root")
        running.stdin.write("\n")
        running.stdin.flush()
        if int(running.stdout.readline()) != MANY:
            raise RuntimeError("not all streams of everybody's door were answered")
        time.sleep(2)
        ok &= report("web", f"memory of everybody's primus-webd with {MANY} streams (PSS)", pss(hosts, "systemctl show --value -p MainPID primus-web.service"), "MiB",
                     goal=("value", "<=", 16))
        running.stdin.write("\n")
        running.stdin.flush()
    page = os.path.join(source, "webd/page")
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(page) for name in names if not name.endswith(".txt"))
    return report("web", "the whole page over the wire", size / 1024, "KiB", goal=("value", "<=", 300)) and ok
