# SPDX-License-Identifier: Apache-2.0
"""Actors on three hosts while everything is killed at random: actors, zygotes, hosts' processes, agents, the master. The campaign is
PRIMUS_ACTOR_SEEDS=20 PRIMUS_ACTOR_CALLS=50000 with this file; the check has one short round of it."""
import os
import random
import subprocess
import time

import pytest

from sandbox import AGENTD, MASTERD

SEEDS = int(os.environ.get("PRIMUS_ACTOR_SEEDS", "1"))
CALLS = int(os.environ.get("PRIMUS_ACTOR_CALLS", "10000"))
THREADS = 4

# Each call is noted where it is done, and has to be answered, or to fail by name, soon. Prints how the calls ended.
CALLER = """
import collections, os, sys, threading, time
from primus import actors

calls, threads, done = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

class Doer:
    def __init__(self):
        self.file = os.open(done, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    def do(self, call):
        os.write(self.file, b"%d\\n" % call)
        return call
    def ready(self):
        pass

ended, again, answered, slowest = collections.Counter(), collections.Counter(), [], [0.0]

def settle(under_way):
    "Whether all were answered."
    lost = 0
    for number, began, future in under_way:
        try:
            assert future.result(60) == number
            answered.append(number)
            ended["answered"] += 1
        except actors.ActorError as e:
            ended[type(e).__name__] += 1
            lost += 1
        slowest[0] = max(slowest[0], time.monotonic() - began)
    return not lost

def made(pool):
    while True:
        try:
            one = pool.create(Doer)
            one.ready().result(120)
            return one
        except actors.ActorError as e:
            assert not isinstance(e, (actors.PoolClosed, actors.PreloadRefused, actors.HostRefused)), e
            again[type(e).__name__] += 1

def run(pool, first):
    one, mine = None, range(first, calls, threads)
    for at in range(0, len(mine), 8):
        one = one or made(pool)
        if not settle([(call, time.monotonic(), one.do(call)) for call in mine[at:at + 8]]):
            one = None

with actors.Pool(hosts=3, slots=2, cpus=0.1, memory="64M") as pool:
    pool.create(Doer).ready().result(60)
    print("begun", flush=True)
    working = [threading.Thread(target=run, args=(pool, n)) for n in range(threads)]
    for one in working:
        one.start()
    for one in working:
        one.join()
    with open(done + ".answered", "w") as file:
        file.write("".join(f"{number}\\n" for number in answered))
assert sum(ended.values()) == calls
print("over", round(slowest[0], 2), dict(ended), "made again for", dict(again), flush=True)
"""

# What is killed of a pool on a host.
KILL = """
case $1 in
host) pids=$(pgrep -u ml -f 'primus.actors.host' | head -n 1) ;;
zygote) pids=$(pgrep -u ml -o -f 'primus.actors._zygote') ;;
actor) pids=$(pgrep -u ml -P "$(pgrep -u ml -o -f 'primus.actors._zygote')" | head -n 1) ;;
esac
[ -z "$pids" ] || kill -9 $pids
"""


def kill(cluster, r):
    kind = r.choice(["actor"] * 6 + ["zygote", "host", AGENTD, AGENTD, MASTERD])
    node = r.choice(cluster.nodes)
    if kind in (MASTERD, AGENTD):  # which may just be dead
        cluster.run("n1" if kind == MASTERD else node, "systemctl", "kill", "--signal=KILL", "--kill-whom=main", kind)
    else:
        cluster.run(node, "sh", "-c", KILL, "-", kind)
    return kind


@pytest.mark.parametrize("seed", range(SEEDS))
def test_everything_is_killed(cluster, shared_dir, seed):
    """Each call is answered once or fails by name; none is done twice; nobody hangs."""
    r, killed = random.Random(seed), []
    (shared_dir / "killed.py").write_text(CALLER)
    done = f"/shared/done-{seed}"
    with cluster.process("n1", "python3", "/shared/killed.py", str(CALLS), str(THREADS), done, user="ml", stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == "begun\n"
        while program.poll() is None:
            killed.append(kill(cluster, r))
            time.sleep(r.uniform(0, 0.2))
        said = program.stdout.read()
    assert said.startswith("over "), said
    did = (shared_dir / f"done-{seed}").read_text().split()
    answered = (shared_dir / f"done-{seed}.answered").read_text().split()
    print(f"seed {seed}: {len(killed)} killed; {said.strip()}")
    assert len(did) == len(set(did)), "a call was done twice"
    assert len(answered) == len(set(answered)) and set(answered) <= set(did), "what was answered was done"
    slowest = float(said.split()[1])
    assert slowest < 10, f"{slowest} s for a call"
    cluster.wait_nodes()
    cluster.wait_for(lambda: not cluster.primusctl_json("list"), 60, "the end of the job")
