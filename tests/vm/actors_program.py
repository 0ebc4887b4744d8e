# SPDX-License-Identifier: Apache-2.0
"""The program of actors_inside.py: a pool whose host has a control group for each actor. It prints what came of each thing that an
actor has tried, as JSON."""
import json
import os
import subprocess
import sys
import time

from primus import actors

MIB = 1 << 20


class Eater:
    def pid(self):
        return os.getpid()

    def eat(self, mib):
        self.eaten = [bytearray(MIB) for _ in range(mib)]
        return len(self.eaten)

    def fork(self, n):
        for _ in range(n):
            subprocess.Popen(["sleep", "600"])

    def child(self):
        return subprocess.Popen(["sleep", "600"]).pid

    def group(self):
        with open("/proc/self/cgroup", encoding="ascii") as f:
            return f.read().strip()


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def is_there(pid):
    return os.path.exists(f"/proc/{pid}")


def made_in(pool, n):
    """Seconds for each of so many actors, one behind the other."""
    begin = time.monotonic()
    for _ in range(n):
        pool.create(Eater).pid().result(60)
    return (time.monotonic() - begin) / n


def outcome(future):
    try:
        return {"result": future.result(60)}
    except actors.OutOfMemory as e:
        return {"out of memory": str(e), "limit": e.limit, "peak": e.peak, "signal": e.signal}
    except actors.ActorDied as e:
        return {"died": str(e)}


def main(memory):
    with actors.Pool(hosts=1, slots=3, cpus=0.3, memory=memory, address=["127.0.0.1"]) as pool:
        first, other, third = (pool.create(Eater) for _ in range(3))
        said = {"pid": other.pid().result(120), "limited": pool.stats()["limited"], "group": first.group().result(60)}
        print(json.dumps({"job": pool._job.number}), flush=True)
        sys.stdin.readline()  # somebody has looked
        begin = time.monotonic()
        said["eats"] = outcome(first.eat(400))
        said["told after"] = time.monotonic() - begin
        said["its slot"] = outcome(pool.create(Eater).eat(5))
        said["the other"] = other.pid().result(60)
        child = third.child().result(60)
        del third
        said["child gone"] = until(lambda: not is_there(child))
        bomb = pool.create(Eater)
        said["forks"] = outcome(bomb.fork(100000))
        said["beside that"] = other.child().result(60) > 0
        del bomb
        pool.create(Eater).pid().result(120)
        said["seconds to make one"] = made_in(pool, 20)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    # Its classes are to go by the name of a module.
    sys.exit(__import__("actors_program").main(*sys.argv[1:]))
