# SPDX-License-Identifier: Apache-2.0
"""The ledger: N records in, N distinct records processed, none lost, none twice beyond what the way of delivery promises,
whatever is killed, loses its power or its cable meanwhile. Each seed is a way of delivery, a splitting and three faults;
PRIMUS_LEDGER_SEEDS=100 runs more of them."""
import collections
import os
import random
import time

import pytest
from conftest import LOST
from data_jobs import library, slowly
from ledger import failover
from sandbox import AGENTD, MASTERD

WIDTH = 60
PIPE = 64 << 10
SLOT = 64 << 10
WORKERS = 3
TOTAL = 15000

# What counts is what a trainer has written down: every record, one write() each, in a file of the attempt.
STDIN = slowly(100, 0.05)
# It takes many lines at once, and the first time it is killed right then, with the pipe empty and nothing done.
DRAINING = ('n=0; while mapfile -t -n 300 lines && [ ${#lines[@]} != 0 ]; do n=$((n + 1)); '
            '[ $n != 4 ] || [ $PRIMUS_ATTEMPT != 1 ] || { say drained; kill -KILL $$; }; '
            'printf "%s\\n" "${lines[@]}" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; sleep 0.1; done; say eof')
LIBRARY = library(100, 0.05)
# Its own checkpoints: how long its file is, and where the data are. It is killed anywhere in between.
EXACTLY = """
import os, time
import primus
name = os.environ["LEDGER"] + "." + os.environ["PRIMUS_INDEX"]
kept, length, where = name + ".kept", 0, None
if os.path.exists(kept):
    with open(kept, "rb") as f:
        length, where = int.from_bytes(f.read(8), "big"), f.read()
feed = primus.Feed(checkpoint=where)
with open(name + ".0", "ab") as out:
    out.truncate(length)
    def keep():
        out.flush()
        where = feed.checkpoint()
        with open(kept + ".new", "wb") as f:
            f.write(os.fstat(out.fileno()).st_size.to_bytes(8, "big") + where)
        os.replace(kept + ".new", kept)
        time.sleep(0.02)
        feed.commit(where)
    for n, record in enumerate(feed.records(), 1):
        out.write(record + b"\\n")
        if n % 150 == 0:
            keep()
            time.sleep(0.05)
    keep()
"""


def make_data(ledger, rng):
    """Files of unequal length under the shared directory; every line is unique. Returns the lines."""
    path = ledger.path.with_name(ledger.path.name + ".data")
    path.mkdir()
    wanted, files = [], rng.choice([2, 5, 40])
    cuts = sorted(rng.sample(range(TOTAL), files - 1))
    for f, (begin, end) in enumerate(zip([0, *cuts], [*cuts, TOTAL])):
        lines = [f"{f:04d}-{line:06d}-".ljust(WIDTH, "x") for line in range(begin, end)]
        (path / f"part-{f:04d}.txt").write_text("".join(line + "\n" for line in lines))
        wanted += lines
    for one in (path, *path.iterdir()):
        one.chmod(0o755)
    return wanted


def processed(ledger):
    """{(index, attempt): lines in order}; a line that was being written when its writer was killed is none."""
    result = {}
    for path in ledger.path.parent.glob(ledger.path.name + ".[0-9]*"):
        _, index, attempt = path.name.rsplit(".", 2)
        if attempt.isdigit():
            result[int(index), int(attempt)] = path.read_text().split("\n")[:-1]
    return result


def where(lines, line):
    """Each place of it: (index, attempt), how many before it there, how many in all."""
    return [(attempt, n, len(some)) for attempt, some in sorted(lines.items()) for n, one in enumerate(some) if one == line]


class Faults:
    """Each hurts one executor, host or daemon, and says how."""

    def __init__(self, cluster, job, rng):
        self.cluster, self.job, self.rng = cluster, job, rng
        self.done = []

    def running(self):
        """Executors; none where the job was faster than us."""
        def look():
            job = self.cluster.status(self.job)
            return [e for e in job["executors"] if e["state"] == "RUNNING"] or job["state"] not in ("RUNNING", "STARTING", "PENDING")

        found = self.cluster.wait_for(look, 15, "an executor that runs")
        return [] if found is True else found

    def victim(self):
        return self.rng.choice(self.running() or [{"node": "n1", "unit": "none.service"}])

    def trainer(self):
        e = self.victim()
        self.cluster.run(e["node"], "sh", "-c", f"pid=$(systemctl show -P MainPID {e['unit']}); [ $pid = 0 ] || pkill -KILL -P $pid")

    def feeder(self):
        e = self.victim()
        self.cluster.run(e["node"], "systemctl", "kill", "-s", "KILL", "--kill-whom=main", e["unit"])

    def agentd(self):
        for node in self.rng.sample(self.cluster.nodes, self.rng.randint(1, 3)):
            self.cluster.kill9_now(node, AGENTD)

    def masterd(self):
        self.cluster.kill9_now("n1", MASTERD)

    def both(self):
        self.masterd()
        self.agentd()

    def restarting(self):
        """The daemons go while an executor is between two attempts."""
        self.trainer()
        time.sleep(self.rng.uniform(0, 0.3))
        self.both()

    def host(self):
        """One that has an executor, but not masterd."""
        return self.rng.choice(sorted({e["node"] for e in self.running()} - {"n1"}) or ["n2"])

    def power(self):
        node = self.host()
        self.cluster.crash(node)
        time.sleep(self.rng.uniform(0, 2))
        self.cluster.boot(node)

    def short_cut(self):
        node = self.host()
        self.cluster.cut(node)
        time.sleep(self.rng.uniform(0.5, LOST - 3))
        self.cluster.heal(node)

    def long_cut(self):
        node = self.host()
        self.cluster.cut(node)
        time.sleep(LOST + 1)
        self.cluster.heal(node)

    def do(self, name):
        self.done.append(name)
        getattr(self, name)()


CHEAP = ["trainer", "feeder", "agentd", "masterd", "both", "restarting"]
DEAR = [*CHEAP, "power", "short_cut", "long_cut"]
# By seed: mode, trainer, first fault. A long cut has two of the same executor run at once, and neither knows: that is no
# place for checkpoints in one file.
PLAN = [("stdin", STDIN, "power"), ("ring", LIBRARY, "trainer"), ("descriptor", LIBRARY, "feeder"),
        ("stdin", DRAINING, "both"), ("ring", LIBRARY, "power"), ("descriptor", LIBRARY, "long_cut"),
        ("stdin", STDIN, "long_cut"), ("ring", LIBRARY, "short_cut"), ("descriptor", LIBRARY, "power"),
        ("stdin", STDIN, "short_cut"), ("ring", EXACTLY, "power"), ("descriptor", EXACTLY, "restarting")]


def configuration(ledger, rng, mode, trainer):
    command = trainer
    if trainer in (LIBRARY, EXACTLY):
        script = ledger.path.with_name(ledger.path.name + ".py")
        script.write_text(trainer)
        script.chmod(0o644)
        command = f"python3 {ledger.inside}.py && say eof"
    job = ledger.config(command, num=WORKERS, inputPolicy="STREAMING", failover=failover(30), memoryMb=64,
                        job={"backoff": {"initial": "0s", "max": "0.1s"}}, scheduleStrategy={"maxReplicasPerNode": 2})
    job["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": [
        {"name": "data", "spec": {"pathPattern": ledger.inside + ".data", "textInput": {}}}]}}
    job["input"] = {"mode": mode, "split": rng.choice(["16K", "100K", "1M"]), "order": rng.choice(["listed", "shuffle"])}
    job["input"] |= {"pipeSize": PIPE} if mode == "stdin" else {"slots": 4, "slotSize": SLOT} if mode == "ring" else {}
    if trainer is EXACTLY:
        job["input"]["ack"] = "checkpoint"
    return job


@pytest.mark.parametrize("seed", range(int(os.environ.get("PRIMUS_LEDGER_SEEDS", len(PLAN)))))
def test_ledger(quick, ledger, seed):
    rng = random.Random(seed)
    mode, trainer, first = PLAN[seed % len(PLAN)]
    wanted = make_data(ledger, rng)
    job = quick.submit(configuration(ledger, rng, mode, trainer))
    faults = Faults(quick, job, rng)
    plan = [first, *rng.choices(CHEAP if trainer is EXACTLY else DEAR if seed >= len(PLAN) else CHEAP, k=2)]
    rng.shuffle(plan)
    for fault, share in zip(plan, sorted(rng.uniform(0.05, 0.7) for _ in plan)):
        quick.wait_for(lambda share=share: sum(map(len, processed(ledger).values())) >= share * TOTAL, 30, f"{share:.0%} of the records")
        faults.do(fault)
    assert quick.wait_job(job, timeout=90) == 0

    data = quick.status(job)["data"]
    assert (data["done"], data["failed"], data["acked"]) == (data["tasks"], 0, data["bytes"]), "masterd knows of every byte"

    lines = processed(ledger)
    counts = collections.Counter(line for some in lines.values() for line in some)
    again = {line for line, n in counts.items() if n > 1}
    starts = len(ledger.entries("start"))
    print(f"{mode} {plan}: {starts} attempts, {sum(counts.values()) - TOTAL} of {TOTAL} records twice")
    assert set(counts) == set(wanted), f"lost: {len(set(wanted) - set(counts))}, as {sorted(set(wanted) - set(counts))[:10]}"
    if trainer is EXACTLY or starts == WORKERS:
        assert not again, f"twice: {[(line[:11], where(lines, line)) for line in sorted(again)[:10]]}"

    # What comes twice is the last of an attempt that was followed by another: what the trainer had, and nobody knew of yet.
    ended = {(e["index"], e["attempt"]) for e in quick.status(job)["executors"]}
    unknown = 2 * PIPE if mode == "stdin" else 4 * SLOT if mode == "ring" else 1 << 20
    tail = unknown // (WIDTH + 1) + 2000 * (LOST + 4 if "long_cut" in plan or "power" in plan else 1)
    excused = {line for attempt, some in lines.items() if attempt not in ended for line in some[-tail:]}
    assert again <= excused, f"twice without an excuse: {[(line[:11], where(lines, line)) for line in sorted(again - excused)[:10]]}"
