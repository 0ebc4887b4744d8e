# SPDX-License-Identifier: Apache-2.0
"""What trainers say of their training: kept with the job through restarts of everything, and bounded."""
import csv
import json
import math
import re
import time

from ledger import failover
from sandbox import AGENTD, MASTERD  # also finds tools

from benchlib.metrics import DIAL

TRAIN = r"""
import math, os, sys, time
from primus import metrics
rank, n = int(os.environ["RANK"]), int(sys.argv[1])
for step in range(n):
    metrics.report(step, loss=1 / (step + 1) + rank, **{"train/rate": 100.0 + rank})
    if step + 1 in (50, n):
        metrics.flush()
        print("said", step + 1, flush=True)
    time.sleep(float(sys.argv[2]))
if "stay" in sys.argv:
    time.sleep(600)
"""


def job(steps=100, pause=0.01, *more, num=2, script=TRAIN, role=None, **keys):
    return {"name": "metrics", "role": [{"roleName": "worker", "num": num, "argv": ["python3", "-c", script, str(steps), str(pause), *more],
                                         "vcores": 0.1, "memoryMb": 64, **(role or {})}], **keys}


def listed(cluster, number, **options):
    return {(row["role"], row["name"]): row for row in json.loads(cluster.primusctl("metrics", str(number), "--json", **options))}


def read(cluster, number, name, *more, **options):
    return json.loads(cluster.primusctl("metrics", str(number), "--json", "--name", name, *more, **options))


def test_of_a_job_that_has_ended(cluster):
    number = cluster.submit(job())
    assert cluster.wait_job(number) == 0
    rows = listed(cluster, number)
    assert set(rows) == {("worker", "loss"), ("worker", "train/rate")}
    loss = rows["worker", "loss"]
    assert (loss["series"], loss["reports"], loss["step"], loss["min"], loss["max"]) == (2, 200, 99, 0.01, 2)
    assert math.isclose(loss["last"], 0.51)
    series = read(cluster, number, "loss")
    assert [(s["role"], s["index"], s["local"]) for s in series] == [("worker", 0, 0), ("worker", 1, 0)]
    for rank, s in enumerate(series):
        assert sum(s["reports"]) == 100 and s["step"][-1] == 99 and s["last"][-1] == 0.01 + rank
        assert s["step"] == sorted(s["step"]) and s["at"] == sorted(s["at"])
        assert min(s["min"]) == 0.01 + rank and max(s["max"]) == 1 + rank


def test_while_it_runs(cluster):
    """Seen within seconds, also by the columns for people, as CSV, and beside another job's."""
    number = cluster.submit(job(50, 0, "stay", num=1))
    try:
        cluster.wait_for(lambda: listed(cluster, number), 15, "what is said")
        loss = listed(cluster, number)["worker", "loss"]
        assert (loss["step"], loss["last"], loss["series"]) == (49, 0.02, 1)
        text = cluster.primusctl("metrics", str(number)).splitlines()
        assert text[0].split() == ["JOB", "ROLE", "NAME", "SERIES", "STEP", "LAST", "MIN", "MAX", "REPORTS", "SAID"]
        assert text[1].split()[:9] == [str(number), "worker", "loss", "1", "49", "0.02", "0.02", "1", "50"]
        assert cluster.primusctl("metrics", str(number), "--name", "loss").splitlines()[1].split() == [str(number), "worker/0", "loss", "49", "0.02", "0.02", "1"]
        rows = list(csv.DictReader(cluster.primusctl("metrics", str(number), "--csv", "--points", "1").splitlines()))
        assert [(r["name"], r["step"], r["reports"], r["last"], r["min"], r["max"]) for r in rows] == [
            ("loss", "49", "50", "0.02", "0.02", "1"), ("train/rate", "49", "50", "100", "100", "100")]
        done = cluster.run("n1", "primusctl", "metrics", str(number), "--name", "nothing", user="ml")
        assert done.returncode == 0 and "No trainer has reported that" in done.stderr
    finally:
        cluster.kill(number)
    cluster.wait_job(number)
    assert listed(cluster, number)["worker", "loss"]["reports"] == 50


def test_through_kills(cluster):
    """masterd and all agents are killed in the middle, and the job goes on meanwhile and ends: none of it is lost, and none counts
    twice."""
    number = cluster.submit(job(300, 0.05))
    cluster.wait_for(lambda: listed(cluster, number), 15, "what is said")
    for round in range(3):
        cluster.exec("n1", "systemctl", "kill", "-s", "KILL", MASTERD)
        time.sleep(2)
        if round == 1:
            cluster.wait_nodes()
            for n in ("n1", "n2", "n3"):  # an agent forgets what it has said; masterd, killed in a moment, had it in memory
                cluster.exec(n, "systemctl", "kill", "-s", "KILL", AGENTD)
            time.sleep(2)
    assert cluster.wait_job(number, timeout=60) == 0
    for rank, s in enumerate(read(cluster, number, "loss")):
        assert (s["step"][0], s["step"][-1], sum(s["reports"])) == (s["step"][0], 299, 300)
        assert s["last"][-1] == 1 / 300 + rank and max(s["max"]) == 1 + rank


def test_masterd_is_away(cluster):
    """The trainer begins and ends while nobody listens to its host."""
    number = cluster.submit(job(100, 0.05, num=1))
    cluster.wait_state(number, "RUNNING")
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    time.sleep(8)
    cluster.exec("n1", "systemctl", "start", MASTERD)
    assert cluster.wait_job(number, timeout=60) == 0
    s, = read(cluster, number, "loss")
    assert (s["step"][-1], sum(s["reports"]), s["last"][-1]) == (99, 100, 0.01)


BACK = r"""
import os, sys, time
from primus import metrics
begin = 0 if os.environ["PRIMUS_ATTEMPT"] == "1" else 20
for step in range(begin, 30):
    metrics.report(step, loss=step + 1000 * begin)
metrics.flush()
sys.exit(begin == 0)
"""


def test_an_attempt_that_goes_back(cluster):
    """What was said beyond the checkpoint is not in the curve of the attempt that begins there."""
    number = cluster.submit(job(num=1, script=BACK, role={"failover": failover(2)}))
    assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
    s, = read(cluster, number, "loss")
    assert s["step"][-1] == 29 and s["last"][-1] == 20029


STOPS = """
import sys, time, primus
for step in range(100000):
    if primus.should_stop():
        print("saved at", step, flush=True)
        sys.exit(0)
    if step == 3:
        print("begun", flush=True)
    time.sleep(0.02)
"""


def test_of_an_array(cluster):
    """Its elements have them."""
    number = cluster.submit(job(20, 0, num=1, array="0-1"))
    assert cluster.wait_job(number) == 0
    done = cluster.run("n1", "primusctl", "metrics", str(number), user="ml")
    assert done.returncode == 1 and f"name one of its elements, {number}[INDEX]" in done.stderr
    rows = json.loads(cluster.primusctl("metrics", "--json", f"{number}[0]", f"{number}[1]"))
    assert [(r["name"], r["reports"]) for r in rows] == [("loss", 20), ("train/rate", 20)] * 2 and len({r["job"] for r in rows}) == 2


def test_should_stop(cluster):
    number = cluster.submit(job(script=STOPS))
    cluster.wait_for(lambda: cluster.primusctl("logs", str(number)).count("begun") == 2, 20, "both trainers")
    cluster.kill(number)
    cluster.wait_job(number)
    log = cluster.primusctl("logs", str(number))
    assert len(re.findall(r"saved at \d+", log)) == 2, log


# ---- as an enemy

FLOOD = r"""
import os, time
from primus import metrics
end = time.monotonic() + 8
n = 0
while time.monotonic() < end:  # in a circle: ten thousands of reports a second, of which each second is one point
    metrics.report(n, loss=n, **{f"m{k}": k for k in range(100)})
    n += 1
metrics.flush()
print("reports", n, flush=True)
for k in range(200):
    try:
        metrics.report(n, **{f"other{k}": 1})
    except OSError as e:
        print("refused:", e, flush=True)
        break
for name in ("a b", "", "x" * 65, "\n", "<b>"):
    try:
        metrics.report(n, **{name: 1})
    except ValueError as e:
        print("bad", flush=True)
if os.fork() == 0:
    try:
        metrics.report(n, loss=1)
    except OSError as e:
        print("child:", e, flush=True)
    os._exit(0)
os.wait()
"""


def test_reports_in_a_circle(cluster):
    number = cluster.submit(job(num=1, script=FLOOD))
    assert cluster.wait_job(number, timeout=60) == 0
    log = cluster.primusctl("logs", str(number))
    said = int(re.search(r"reports (\d+)", log)[1])
    assert "a process reports at most 128 names" in log and log.count("bad") == 5 and "child: [Errno 10]" in log
    loss = read(cluster, number, "loss")[0]
    assert sum(loss["reports"]) == said and loss["last"][-1] == said - 1 and len(loss["step"]) <= 15
    print(f"{said / 8:.0f} calls a second, 101 values each")


RAW = DIAL + r"""
random.seed(3)
head = struct.pack("=II", 0, 0)
bodies = [b"", head, head[:4], head + b"\xff" * 20, head + point(b"a\0b", 1), head + point(b"a b", 1), head + point(b"<script>", 1), head + point(b"", 1),
          head + point(b"x" * 64, 1)[:-1], struct.pack("=II", 2**31, 0) + point(b"loss", 1), head + os.urandom(16384), head + os.urandom(16385),
          head + point(b"good", 2**64 - 1), head + b"".join(point(b"m%d" % k, 1) for k in range(200)), head + point(b"good", 3)]
for n in range(600):
    body = bodies[n % len(bodies)] if n < 60 else head + bytes(random.randrange(256) for _ in range(random.randrange(200)))
    try:
        say(dial(), body)
    except OSError:
        pass
print("done", flush=True)
"""


def test_what_no_libprimus_says(cluster):
    """Bodies that are cut, wrong, huge: no daemon minds, and another job's metrics arrive."""
    before = {n: cluster.main_pid(n, AGENTD) for n in ("n1", "n2", "n3")} | {"master": cluster.main_pid("n1", MASTERD)}
    number = cluster.submit(job(num=1, script=RAW))
    other = cluster.submit(job(100, 0.05, num=1), user="eve")
    assert cluster.wait_job(other) == 0 and cluster.wait_job(number, timeout=60) == 0
    assert "done" in cluster.primusctl("logs", str(number))
    names = {name for _, name in listed(cluster, number)}
    assert "good" in names and all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}", name) for name in names)
    assert sum(read(cluster, other, "loss", user="eve")[0]["reports"]) == 100
    assert before == {n: cluster.main_pid(n, AGENTD) for n in ("n1", "n2", "n3")} | {"master": cluster.main_pid("n1", MASTERD)}


def test_who_may_look(cluster):
    number = cluster.submit(job(10, 0, num=1, visible="owner"))
    assert cluster.wait_job(number) == 0
    done = cluster.run("n1", "primusctl", "metrics", str(number), user="eve")
    assert done.returncode == 1 and "loss" not in done.stdout + done.stderr
