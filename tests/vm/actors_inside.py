# SPDX-License-Identifier: Apache-2.0
"""What limits_inside.py checks of actors: each is held to what is its own, and the others are not harmed."""
import json
import os
import subprocess

MIB = 1 << 20
LIMIT = 64 * MIB


def start():
    return subprocess.Popen(["runuser", "-u", "ml", "--", "env", "PYTHONPATH=/payload", "python3", "/payload/actors_program.py", "64M"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def look(inside, job):
    """From outside, while three actors are there."""
    listed = json.loads(inside.primusctl("actors", job, "--json").stdout)
    inside.need("limits are listed", len(listed) == 3 and all(a["limit"] == LIMIT for a in listed), listed)
    executor = inside.running(job)
    names = sorted(entry.name for entry in os.scandir(f"{inside.slice_of(job)}/{executor['unit']}") if entry.is_dir())
    inside.figure(f"control groups below an executor with three actors, three that wait for one, and a session: {', '.join(names)}")
    inside.need("the session's", "session" in names and "pool" in names and sum(n.startswith("actor-") for n in names) >= 3, names)
    whole, part = (int(inside.group(job, executor, name)) for name in ("pids.max", f"{names[0]}/pids.max"))
    inside.need("an equal part of the processes", part == whole // 4, (whole, part))
    session = inside.primusctl("exec", job, "actors/0", "--", "cat", "/proc/self/cgroup")
    inside.need("a session", session.returncode == 0 and session.stdout.strip().endswith("/session"), session.stdout + session.stderr)
    return executor


def check(inside):
    with start() as program:
        job = json.loads(program.stdout.readline())["job"]
        look(inside, job)
        out, _ = program.communicate("go on\n", timeout=600)
    said = json.loads(out)
    print(said)
    inside.need("limited", said["limited"] == 1, said)
    inside.need("its own group", "/actor-" in said["group"], said["group"])
    eats = said["eats"]
    inside.need("out of memory", eats.get("limit") == LIMIT and eats["signal"] == 9 and LIMIT / 2 < eats["peak"] <= LIMIT, eats)
    inside.need("its sentence", "out of memory (limit 64M, peak 6" in eats["out of memory"], eats)
    inside.need("siblings and the slot", said["the other"] == said["pid"] and said["its slot"] == {"result": 5}, said)
    inside.need("what it has started ends with it", said["child gone"], said)
    inside.need("one that forks without end", said["forks"].get("limit") == LIMIT and said["beside that"], said)
    inside.figure(f"an actor that eats: \"{eats['out of memory']}\", told after {said['told after']:.2f} s")
    inside.figure(f"an actor with a group of its own is made in {1000 * said['seconds to make one']:.0f} ms")
    seen = inside.end(job)
    executor = seen["executors"][0]
    inside.need("the executor has ended by itself", seen["state"] == "SUCCEEDED", seen)
    inside.need("its account", executor["memoryPeak"] > LIMIT and executor["cpuUsec"] > 0, executor)
