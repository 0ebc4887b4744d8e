# SPDX-License-Identifier: Apache-2.0
"""The ledger: N records in, N distinct records processed, none lost, none twice beyond what the way of delivery promises,
whatever is killed, loses its power or its cable meanwhile. Ten seeds, each a way of delivery, a splitting and three faults."""
import collections
import random
import time

import pytest
from conftest import LOST
from ledger import failover
from sandbox import AGENTD, MASTERD

WIDTH = 60
PIPE = 64 << 10
SLOT = 64 << 10
WORKERS = 3
TOTAL = 15000

# What counts is what a trainer has written down: every record, one write() each, in a file of the attempt.
STDIN = ('n=0; while read -r line; do echo "$line" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; n=$((n + 1)); '
         '[ $((n % 100)) != 0 ] || sleep 0.05; done; say eof')
# It takes many lines at once, and the first time it is killed right then, with the pipe empty and nothing done.
DRAINING = ('n=0; while mapfile -t -n 300 lines && [ ${#lines[@]} != 0 ]; do n=$((n + 1)); '
            '[ $n != 4 ] || [ $PRIMUS_ATTEMPT != 1 ] || { say drained; kill -KILL $$; }; '
            'printf "%s\\n" "${lines[@]}" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; sleep 0.1; done; say eof')
LIBRARY = """
import os, time
import primus
name = "{PRIMUS_INDEX}.{PRIMUS_ATTEMPT}".format_map(os.environ)
with open(os.environ["LEDGER"] + "." + name, "ab", buffering=0) as out:
    for n, record in enumerate(primus.records(), 1):
        out.write(bytes(record) + b"\\n")
        if n % 100 == 0:
            time.sleep(0.05)
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
        result[int(index), int(attempt)] = path.read_text().split("\n")[:-1]
    return result


class Faults:
    """Each hurts one executor, host or daemon, and says how."""

    def __init__(self, cluster, job, rng):
        self.cluster, self.job, self.rng = cluster, job, rng
        self.done = []

    def running(self):
        return [e for e in self.cluster.status(self.job)["executors"] if e["state"] == "RUNNING"]

    def trainer(self):
        e = self.rng.choice(self.running())
        self.cluster.run(e["node"], "sh", "-c", f"pkill -KILL -P $(systemctl show -P MainPID {e['unit']})")

    def feeder(self):
        e = self.rng.choice(self.running())
        self.cluster.run(e["node"], "systemctl", "kill", "-s", "KILL", "--kill-whom=main", e["unit"])

    def agentd(self):
        for node in self.rng.sample(self.cluster.nodes, self.rng.randint(1, 3)):
            self.cluster.kill9_now(node, AGENTD)

    def masterd(self):
        self.cluster.kill9_now("n1", MASTERD)

    def both(self):
        self.masterd()
        self.agentd()

    def power(self):
        node = self.rng.choice(["n2", "n3"])
        self.cluster.crash(node)
        time.sleep(self.rng.uniform(0, 2))
        self.cluster.boot(node)

    def short_cut(self):
        node = self.rng.choice(["n2", "n3"])
        self.cluster.cut(node)
        time.sleep(self.rng.uniform(0.5, LOST - 3))
        self.cluster.heal(node)

    def long_cut(self):
        node = self.rng.choice(["n2", "n3"])
        self.cluster.cut(node)
        time.sleep(LOST + 1)
        self.cluster.heal(node)

    def do(self, name):
        self.done.append(name)
        getattr(self, name)()


CHEAP = ["trainer", "feeder", "agentd", "masterd", "both"]
# seed: mode, command, first fault
PLAN = [("stdin", STDIN, "power"), ("ring", LIBRARY, "trainer"), ("descriptor", LIBRARY, "feeder"),
        ("stdin", DRAINING, "both"), ("ring", LIBRARY, "power"), ("descriptor", LIBRARY, "long_cut"),
        ("stdin", STDIN, "long_cut"), ("ring", LIBRARY, "short_cut"), ("descriptor", LIBRARY, "trainer"),
        ("stdin", STDIN, "short_cut")]


@pytest.mark.parametrize("seed", range(len(PLAN)))
def test_ledger(quick, ledger, seed):
    rng = random.Random(seed)
    mode, command, first = PLAN[seed]
    wanted = make_data(ledger, rng)
    if command is LIBRARY:
        script = ledger.path.with_name(ledger.path.name + ".py")
        script.write_text(LIBRARY)
        script.chmod(0o644)
        command = f"python3 {ledger.inside}.py && say eof"
    job = ledger.config(command, num=WORKERS, inputPolicy="STREAMING", failover=failover(30), memoryMb=64,
                        job={"backoff": {"initial": "0s", "max": "0.1s"}}, scheduleStrategy={"maxReplicasPerNode": 2})
    job["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": [
        {"name": "data", "spec": {"pathPattern": ledger.inside + ".data", "textInput": {}}}]}}
    job["input"] = {"mode": mode, "split": rng.choice(["16K", "100K", "1M"]), "order": rng.choice(["listed", "shuffle"])}
    job["input"] |= {"pipeSize": PIPE} if mode == "stdin" else {"slots": 4, "slotSize": SLOT} if mode == "ring" else {}
    job = quick.submit(job)
    faults = Faults(quick, job, rng)
    plan = [first, *rng.choices(CHEAP, k=2)]
    rng.shuffle(plan)
    for fault, share in zip(plan, sorted(rng.uniform(0.05, 0.8) for _ in plan)):
        quick.wait_for(lambda share=share: sum(map(len, processed(ledger).values())) >= share * TOTAL, 30, f"{share:.0%} of the records")
        faults.do(fault)
    assert quick.wait_job(job, timeout=90) == 0

    lines = processed(ledger)
    counts = collections.Counter(line for some in lines.values() for line in some)
    again = [line for line, n in counts.items() if n > 1]
    print(f"{mode} {plan}: {len(lines)} attempts, {sum(counts.values()) - TOTAL} of {TOTAL} records twice")
    assert set(counts) == set(wanted), f"lost: {sorted(set(wanted) - set(counts))[:10]}"

    # Only of an attempt that did not come to its end, and only the last of it: what the trainer had and nobody knew of yet.
    ended = {(e.index, e.attempt) for e in ledger.entries("eof")}
    tail = 2 * (PIPE if mode == "stdin" else 4 * SLOT) // (WIDTH + 1) + 2000 * (LOST + 4 if "long_cut" in plan or "power" in plan else 1)
    if len(ended) == len(lines):
        assert not again, "nobody died, so nothing comes twice"
    excused = {line for attempt, some in lines.items() if attempt not in ended for line in some[-tail:]}
    assert set(again) <= excused, f"twice without an excuse: {sorted(set(again) - excused)[:10]}"
