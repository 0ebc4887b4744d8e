# SPDX-License-Identifier: Apache-2.0
"""What a search costs: deciding (a program of its own), and a result's way from a trainer to the disk of the master and back."""
import json
import os
import resource
import subprocess
import tempfile
import time

TRIALS = 8
SIMULATED = 100000

# A trial: how long report() takes the trainer, how long until it is on disk (one at a time), and how many a second get there.
TRAINER = """
import statistics, time
from primus import trial
own, durable, step = [], [], 0
def report():
    global step
    step += 1
    began = time.perf_counter()
    trial.report_validation(step, loss=1)
    return began, time.perf_counter()
report(), trial.flush()
for _ in range(300):
    began, end = report()
    trial.flush()
    own.append(end - began)
    durable.append(time.perf_counter() - began)
began = time.perf_counter()
for _ in range(500):
    report()
trial.flush()
print("figures", 1e6 * statistics.median(own), 1e3 * statistics.median(durable), 500 / (time.perf_counter() - began), flush=True)
"""


def run_search(hosts, trials):
    """[(µs, ms, a second)] of each trial; that many at a time."""
    job = {"name": "bench", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", TRAINER]}],
           "search": {"method": "random", "metric": "loss", "space": {"x": 1}, "maxTrials": trials, "maxConcurrent": trials}}
    with open(os.path.join(hosts.shared, "search.json"), "w", encoding="utf-8") as f:
        json.dump(job, f)
    number = json.loads(hosts.execute("primusctl", "submit", "--json", "/opt/bench/search.json"))["job"]
    hosts.execute("primusctl", "wait", str(number))
    found = json.loads(hosts.execute("primusctl", "search", "show", str(number), "--json"))
    figures = [hosts.execute("primusctl", "logs", f"{number}[{row['trial']}]") for row in found["list"]]
    return [tuple(map(float, text.split("figures")[1].split()[:3])) for text in figures]


def simulate(program, report):
    """A search of so many trials that primus-sim plays: each is a job that is placed, and reports at its rungs."""
    job = {"name": "big", "user": "u", "runtime": "4h", "gpus": 1, "cpus": 4, "memory": "32G",
           "search": {"method": "adaptive-asha", "mode": "conservative", "maxTrials": SIMULATED, "maxTime": 256, "maxConcurrent": 1000, "divisor": 4}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"hosts": "100x64/512G/8", "jobs": [job]}, f)
        f.flush()
        began = time.perf_counter()
        found = json.loads(subprocess.run([program, "--json", f.name], check=True, capture_output=True, text=True).stdout)["searches"][0]
        took = time.perf_counter() - began
    assert found["over"] and found["trials"] == SIMULATED, found
    ok = report("search", f"primus-sim of {SIMULATED} trials, a decision with all around it", 1e6 * took / found["results"], "µs", goal=("value", "<=", 50))
    return report("search", "its memory", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, "MiB") and ok


def bench(hosts, report):
    (own, durable, rate), = run_search(hosts, 1)
    ok = report("search", "report_validation() for the trainer, p50", own, "µs")
    ok &= report("search", "result to masterd's disk and back, p50", durable, "ms", goal=("value", "<=", 10))
    ok &= report("search", "results a second, of one trial", rate, "1/s")
    many = run_search(hosts, TRIALS)
    return report("search", f"results a second, of {TRIALS} trials at a time", sum(r for _, _, r in many), "1/s", goal=("value", ">=", 1000)) and ok
