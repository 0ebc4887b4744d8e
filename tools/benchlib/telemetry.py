# SPDX-License-Identifier: Apache-2.0
"""What being looked at costs: executors that work while agentd comes and goes, and agentd beside executors that sleep."""
import os
import shutil
import statistics
import time

TRAIN = """
import time
import numpy as np
rng = np.random.default_rng(1)
x, w = rng.standard_normal((256, 256)), rng.standard_normal((256, 256)) * 0.05
while True:
    cpu, wall = time.process_time_ns(), time.monotonic_ns()
    for _ in range(12):
        h = np.tanh(x @ w)
        w -= 1e-4 * (x.T @ (h * (1 - h * h)))
    end = time.monotonic_ns()
    print(end, time.process_time_ns() - cpu, end - wall, flush=True)
"""
WORKS = {
    "training (numpy)": f"exec python3 -c 'exec(open(\"{{place}}/train.py\").read())'",
    "read() of 4 KiB": "exec {place}/bench-telemetry read",
    "getppid()": "exec {place}/bench-telemetry getppid",
    "TCP to itself, 64 KiB": "exec {place}/bench-telemetry tcp",
}
SETTLE, PHASE = 1.0, 3.0  # seconds: agentd has begun or ended; a phase that is measured
AGENTD = "primus-agentd.service"


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def phases(hosts, rounds):
    """agentd runs and does not, in turn: [(running, begin, end)] by the monotonic clock, which all hosts share."""
    out = []
    for i in range(rounds):
        # Which comes first changes, so that what drifts cancels out.
        for running in (True, False) if i % 2 == 0 else (False, True):
            hosts.execute("systemctl", "start" if running else "stop", AGENTD, user="root")
            time.sleep(SETTLE)
            begin = now()
            time.sleep(PHASE)
            out.append((running, begin, now()))
    hosts.execute("systemctl", "start", AGENTD, user="root")
    return out


def cost(lines, turns, column):
    """The median, over the rounds, of what a piece of work took with agentd beside it to what it took without."""
    pieces = [tuple(map(int, line.split())) for line in lines]
    ratios = []
    for i in range(0, len(turns), 2):
        medians = {}
        for running, begin, end in turns[i:i + 2]:
            inside = [p[column] for p in pieces if begin < p[0] - p[2] and p[0] < end]
            if not inside:
                break
            medians[running] = statistics.median(inside)
        if len(medians) == 2:
            ratios.append(medians[True] / medians[False])
    return statistics.median(ratios), len(ratios)


def overhead(hosts, place, args, report, say):
    shutil.copy(os.path.join(args.build, "tests/bench/bench-telemetry"), hosts.shared)
    with open(os.path.join(hosts.shared, "train.py"), "w", encoding="utf-8") as f:
        f.write(TRAIN)
    ok = True
    for name, command in WORKS.items():
        say(f"telemetry: {name}")
        out = os.path.join(hosts.shared, "pieces")
        with open(out, "w", encoding="utf-8"):
            os.chmod(out, 0o666)
        config = hosts.configure("work.json", {"num": 1, "vcores": 0.01, "memoryMb": 16,
                                               "command": command.format(place=place) + f" > {place}/pieces"})
        number = hosts.execute("primusctl", "submit", config).split()[2]
        time.sleep(3)
        turns = phases(hosts, args.telemetry_rounds)
        hosts.execute("sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9; do primusctl kill {number} && break; sleep 1; done")
        with open(out, encoding="utf-8") as f:
            lines = [line for line in f if line.endswith("\n") and len(line.split()) == 3]
        if len(lines) < 100:
            raise RuntimeError(f"{name}: the executor has done next to nothing: " + hosts.execute("primusctl", "logs", number))
        for column, what in ((1, "CPU"), (2, "time")):
            ratio, n = cost(lines, turns, column)
            # Time is the machine's mood; packets are worth their 2 × 80 ns, which only a program that talks to itself feels.
            goal = ("value", "<=", 1.01) if what == "CPU" and "TCP" not in name else None
            ok &= report("telemetry", f"{name}: {what} sampled by agentd, to not sampled; median of {n} pairs", ratio, "", None, goal)
        os.unlink(out)
    return ok



def run_seconds(hosts, pid):
    """CPU time, to the nanosecond, of all its threads."""
    lines = hosts.execute("sh", "-c", f"cat /proc/{pid}/task/*/schedstat", user="root").splitlines()
    return sum(int(line.split()[0]) for line in lines) / 1e9


SCRAPE = "import time, urllib.request as u\nwhile True:\n    u.urlopen('http://127.0.0.1:7748/metrics').read()\n    time.sleep(1)"


def agent(hosts, args, report, say):
    say(f"telemetry: agentd beside {args.sleepers} executors that sleep")
    config = hosts.configure("sleep.json", {"num": args.sleepers, "vcores": 0, "memoryMb": 0, "argv": ["/bin/sleep", "infinity"]})
    number = hosts.execute("primusctl", "submit", config).split()[2]
    end = time.monotonic() + 120
    while f'"running": {args.sleepers}' not in hosts.execute("primusctl", "status", number, "--json") and time.monotonic() < end:
        time.sleep(1)
    time.sleep(20)  # what the start took has been given back
    pid = hosts.execute("systemctl", "show", "-P", "MainPID", AGENTD, user="root").strip()
    ok = True
    scraper = None
    for what in ("nobody scrapes it", "one scrape a second"):
        if what.startswith("one"):
            scraper = hosts.background("python3", "-S", "-c", SCRAPE)
            time.sleep(3)
        used, begin = run_seconds(hosts, pid), time.monotonic()
        time.sleep(args.telemetry_seconds)
        share = (run_seconds(hosts, pid) - used) / (time.monotonic() - begin)
        ok &= report("telemetry", f"agentd beside {args.sleepers} executors, {what}: share of a core", 100 * share, "%", None, ("value", "<=", 1))
    if scraper:
        scraper.terminate()
        scraper.wait()
    for field, goal in (("RssAnon", 3), ("VmRSS", None)):
        ok &= report("telemetry", f"agentd beside {args.sleepers} executors: {field}", hosts.resident("n1", "primus-agentd", field), "MiB", None,
                     ("value", "<=", goal) if goal else None)
    hosts.execute("primusctl", "kill", number)
    return ok
