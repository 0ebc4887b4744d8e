# SPDX-License-Identifier: Apache-2.0
"""Trainers that tie their checkpoints to the data: killed at any moment, between writing a checkpoint and committing it too,
they end up with every record exactly once, as a run without kills does."""
import json
import os
import random
import time

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD

LINES = 12000
WORKERS = 2

# Its model is the list of the lines that it was trained with; it is what its checkpoint says and nothing else. DEATHS are
# the checkpoints (counted over all attempts by a file) at which it kills itself, and where: before writing it, between
# writing and commit, right behind the commit.
TRAINER = """
import json, os, signal, sys, time
import primus
path = os.environ["LEDGER"] + ".model." + os.environ["PRIMUS_INDEX"]
deaths = json.loads(os.environ["DEATHS"])
model = {"lines": [], "primus": ""}
if os.path.exists(path):
    model = json.load(open(path))
count = path + ".count"
def here(place):
    n = os.path.getsize(count) if os.path.exists(count) else 0
    if deaths.get(str(n)) == place:
        open(count, "a").write("x")
        os.kill(os.getpid(), signal.SIGKILL)
def save(state):
    here("before")
    with open(path + ".new", "w") as f:
        json.dump({**model, "primus": state.hex()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)
    here("between")
    feed.commit(state)
    here("behind")
    open(count, "a").write("x")
feed = primus.open(bytes.fromhex(model["primus"]) or None)
for n, line in enumerate(feed.records(), 1):
    model["lines"].append(int(line[:6]))
    if n % 250 == 0:
        save(feed.checkpoint())
        time.sleep(0.05)
save(feed.checkpoint())
"""


def make_data(ledger):
    path = ledger.path.with_name(ledger.path.name + ".data")
    path.mkdir()
    for f in range(5):
        (path / f"part-{f}.txt").write_text("".join(f"{i:06d} ".ljust(60, "x") + "\n" for i in range(f, LINES, 5)))
    for one in (path, *path.iterdir()):
        one.chmod(0o755)


def submit(cluster, ledger, mode, deaths, **data):
    config = ledger.config('exec python3 -c "$TRAINER"', num=WORKERS, inputPolicy="STREAMING", successPercent=100,
                           memoryMb=64, failover=failover(times=1000), job={"backoff": {"initial": "100ms", "max": "1s"}})
    config["env"].update(TRAINER=TRAINER, DEATHS=json.dumps(deaths))
    config["inputManager"] = {
        "fileConfig": {"inputs": [{"name": "lines", "spec": {"pathPattern": f"{ledger.inside}.data", "textInput": {}, "split": "40K"}}]},
        "gracefulShutdown": True,
    }
    config["input"] = {"mode": mode, "ack": "checkpoint", **data}
    return cluster.submit(config)


def trained(ledger):
    return sorted(line for path in ledger.path.parent.glob(ledger.path.name + ".model.[0-9]")
                  for line in json.loads(path.read_text())["lines"])


def status_of(cluster, job):
    """The executors; masterd may just have been killed."""
    said = cluster.run("n1", "primusctl", "status", str(job), "--json", user="ml")
    return json.loads(said.stdout)["executors"] if said.returncode == 0 else []


@pytest.mark.parametrize("seed", (1, 2))
@pytest.mark.parametrize("mode", ("ring", "descriptor", "stdin"))
def test_killed_at_any_moment(quick, ledger, mode, seed):
    rng = random.Random(f"{mode} {seed}")
    make_data(ledger)
    deaths = {n: rng.choice(["before", "between", "between", "behind"]) for n in rng.sample(range(1, 40), 8)}
    # Places within a window of shuffled records are counted and not bytes.
    shuffled = {"order": "shuffle", "seed": 5, "window": 64} if seed == 2 and mode != "descriptor" else {}
    job = submit(quick, ledger, mode, deaths, **shuffled)
    for _ in range(6):
        time.sleep(rng.uniform(0.3, 1.2))
        running = [e for e in status_of(quick, job) if e["state"] == "RUNNING"]
        what = rng.choice(["trainer", "trainer", "feeder", "daemon"])
        if what == "daemon":
            node = rng.choice(quick.nodes)
            quick.kill9_now(*(("n1", MASTERD) if rng.random() < 0.5 else (node, AGENTD)))
        elif running:
            e = rng.choice(running)
            quick.run(e["node"], "sh", "-c", f"pkill -KILL -P $(systemctl show -P MainPID {e['unit']})" if what == "trainer"
                      else f"systemctl kill -s KILL --kill-whom=main {e['unit']}")
    assert quick.wait_job(job, timeout=120) == 0
    got = trained(ledger)
    assert len(got) == len(set(got)), f"{len(got) - len(set(got))} lines twice"
    assert got == list(range(LINES))
    assert all(e["attempt"] > 2 for e in status_of(quick, job))


# The same by primus.checkpoints: it is killed by a clock that knows nothing of what it does just then, its first attempts are.
KEEPER = """
import json, os, random, signal, time
import primus
from primus import checkpoints
kept = checkpoints.Store(os.environ["LEDGER"] + ".kept." + os.environ["PRIMUS_INDEX"], rank=0, world=1)
if int(os.environ["PRIMUS_ATTEMPT"]) <= 8:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    seed = os.environ["SEED"] + os.environ["PRIMUS_INDEX"] + os.environ["PRIMUS_ATTEMPT"]
    signal.setitimer(signal.ITIMER_REAL, random.Random(seed).uniform(0.1, 0.5))
latest = kept.latest(verify=True)
lines = json.loads((latest.path / "lines").read_text()) if latest else []
feed = primus.open(latest.data if latest else None)
def save():
    with kept.save(len(lines), feed=feed) as path:
        (path / "lines").write_text(json.dumps(lines))
for line in feed.records():
    lines.append(int(line[:6]))
    if len(lines) % 50 == 0:
        save()
        time.sleep(0.01)
if not latest or len(lines) > latest.step:
    save()
"""
SEEDS = int(os.environ.get("PRIMUS_EXACT_SEEDS", "2"))


def test_checkpoints_of_the_library(quick, ledger):
    """primus.checkpoints: killed at any moment eight times, each record is in the last checkpoint once."""
    make_data(ledger)
    jobs = {}
    for seed in range(SEEDS):
        config = ledger.config('exec python3 -c "$KEEPER"', num=WORKERS, inputPolicy="STREAMING", successPercent=100, memoryMb=64,
                               failover=failover(times=1000), job={"backoff": {"initial": "10ms", "max": "10ms"}})
        config["env"].update(KEEPER=KEEPER, SEED=str(seed), LEDGER=f"{ledger.inside}.{seed}")
        config["inputManager"] = {"fileConfig": {"inputs": [{"name": "lines", "spec": {"pathPattern": f"{ledger.inside}.data", "textInput": {}, "split": "40K"}}]},
                                  "gracefulShutdown": True}
        config["input"] = {"mode": "ring", "ack": "checkpoint"}
        os.chmod(ledger.path.parent, 0o777)
        jobs[seed] = quick.submit(config)
    attempts = 0
    for seed, job in jobs.items():
        assert quick.wait_job(job, timeout=280) == 0, quick.primusctl("events", str(job))
        attempts += sum(e["attempt"] for e in status_of(quick, job))
        got = []
        for top in ledger.path.parent.glob(f"{ledger.path.name}.{seed}.kept.*"):
            last = max(p for p in top.iterdir() if p.name.startswith("step-"))
            got += json.loads((last / "rank-0" / "lines").read_text())
        assert sorted(got) == list(range(LINES)), f"seed {seed}: {len(got)} lines, {len(set(got))} different ones"
    print(f"{attempts} attempts of {len(jobs) * WORKERS} executors")
    assert attempts > 3 * len(jobs) * WORKERS
