# SPDX-License-Identifier: Apache-2.0
"""Pools of actors on several hosts: as jobs, and of a job's own hosts."""
import json
import pathlib
import re
import subprocess
import time

from sandbox import AGENTD, MASTERD

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


GAME = """
class Player:
    def rules(self):
        return int(open("rules.txt").read())
"""
PLAY = """
from primus import actors
from game import Player

with actors.Pool(hosts=2, slots=1, cpus=0.1, memory="64M", files=["game", "rules.txt"], preload=["game"]) as pool:
    print(*[player.rules().result() for player in [pool.create(Player) for _ in range(2)]])
"""


def put(cluster, shared_dir, name, text):
    (shared_dir / name).write_text(text)
    return f"/shared/{name}"


def test_counters(cluster, shared_dir):
    """The example: four actors on two hosts; the job ends with the pool."""
    script = put(cluster, shared_dir, "count.py", (EXAMPLES / "actors/count.py").read_text())
    done = cluster.run("n1", "python3", script, user="ml")
    assert done.returncode == 0 and not done.stderr, (done.stderr, cluster.primusctl("logs", check=False))
    said = sorted(done.stdout.split("\n"))
    assert [line.split()[0] for line in said if line] == ["10", "11", "12", "13"] and len({line.split()[-1] for line in said if line}) == 2


LOUD = """
import os, sys
from primus import actors

class Loud:
    def say(self, what):
        print(what)
        sys.stderr.write(what + "!\\n")
    def die(self):
        os.write(2, b"its last words\\n")
        os.abort()

with actors.Pool(hosts=2, slots=1, cpus=0.1, memory="64M") as pool:
    one, other = pool.create(Loud), pool.create(Loud)
    one.say("hello").result()
    other.say("good day").result()
    one.die().exception()
    other.say("still here").result()
    print(pool._job.number, flush=True)
    sys.stdin.readline()
    print(repr(other.say("more").exception(10)))
"""


SLEEPS = """
import sys, time
from primus import actors

class Sleeper:
    def rest_of_the_night(self):
        time.sleep(600)

with actors.Pool(hosts=2, slots=2, cpus=0.1, memory="64M") as pool:
    three = [pool.create(Sleeper) for _ in range(3)]
    asleep = [one.rest_of_the_night() for one in three]
    print(pool._job.number, flush=True)
    sys.stdin.readline()
"""


def test_one_of_them_looked_into(cluster, shared_dir):
    """By its name: what its threads do, and a command and a shell where it is, which know its process."""
    script = put(cluster, shared_dir, "sleeps.py", SLEEPS)
    with cluster.process("n1", "python3", script, user="ml", stdin=subprocess.PIPE) as program:
        job = program.stdout.readline().strip()

        def listed():
            return json.loads(cluster.exec("n1", "primusctl", "actors", "--json", job, user="ml"))

        cluster.wait_for(lambda: len(listed()) == 3, 30, "all of them")
        (second,) = [a for a in listed() if a["actor"] == "Sleeper 1"]
        (looked,) = json.loads(cluster.exec("n1", "primusctl", "stacks", "--json", job, "Sleeper 1", user="ml"))
        assert (looked["role"], looked["index"], looked["node"]) == (second["role"], second["index"], second["node"])
        assert looked["threads"] and {t["pid"] for t in looked["threads"]} == {second["pid"]} and looked["total"] == len(looked["threads"])
        shown = cluster.exec("n1", "primusctl", "stacks", job, "Sleeper 1", user="ml")
        assert str(second["pid"]) in shown and "sleep" in shown
        inside = "tr '\\0' ' ' < /proc/$PRIMUS_ACTOR_PID/cmdline | grep -c python; hostname; echo $PRIMUS_ACTOR_PID"
        assert cluster.exec("n1", "primusctl", "exec", job, "Sleeper 1", "--", "sh", "-c", inside, user="ml").split() == ["1", second["node"], str(second["pid"])]
        assert cluster.exec("n1", "primusctl", "shell", job, "Sleeper 1", user="ml", input="echo $PRIMUS_ACTOR_PID\n").strip() == str(second["pid"])
        for command in (["stacks", job, "Sleeper 7"], ["exec", job, "Sleeper 7", "--", "true"]):
            done = cluster.run("n1", "primusctl", *command, user="ml")
            assert done.returncode != 0 and f"no executor of job {job} has the actor Sleeper 7" in done.stderr, done
        assert cluster.run("n1", "primusctl", "exec", job, "Sleeper 1", "--", "true", user="eve").returncode != 0
        program.communicate("go on\n")


def test_what_one_of_them_prints(cluster, shared_dir):
    """On both of its outputs, up to its last words; by its name, while all of it is in the job's log as well."""
    script = put(cluster, shared_dir, "loud.py", LOUD)
    with cluster.process("n1", "python3", script, user="ml", stdin=subprocess.PIPE) as program:
        job = program.stdout.readline().strip()
        killing = "primusctl", "actors", "--kill", "Loud 1", job
        assert cluster.run("n1", *killing, user="eve").returncode == 1
        ended = cluster.exec("n1", *killing, user="ml").splitlines()
        assert len(ended) == 2 and ended[1].startswith("Loud 1"), ended
        again = cluster.run("n1", *killing, user="ml")
        assert again.returncode == 1 and "such an actor" in again.stdout + again.stderr, again
        out, _ = program.communicate("go on\n")
        assert "ActorDied('Loud 1 was ended by SIGKILL')" in out

    def said(*options, status=0):
        done = cluster.run("n1", "primusctl", "logs", *options, job, user="ml")
        assert done.returncode == status, done
        return [line.rpartition("| ")[2] for line in done.stdout.splitlines()]

    assert sorted(said("--actor", "Loud 0")) == ["hello", "hello!", "its last words"]
    assert sorted(said("--actor=Loud 1")) == ["good day", "good day!", "still here", "still here!"]
    assert said("--actor=Loud 1", "--grep=still") == ["still here", "still here!"] or said("--actor=Loud 1", "--grep=still") == ["still here!", "still here"]
    assert len(said()) == 7 and said("--actor=Loud 2") == []
    assert cluster.run("n1", "primusctl", "logs", "--actor=Loud 0", job, user="eve").returncode == 1
    for wrong, text in ((["--tail=3"], "--tail counts the lines of an executor"), (["--actor=" + "x" * 300], "identifier: a text of at most 256 bytes")):
        done = cluster.run("n1", "primusctl", "logs", "--actor=Loud 0", *wrong, job, user="ml")
        assert done.returncode != 0 and text in done.stderr, done


SERVED = """
import sys
from primus import actors

class Counter:
    def __init__(self, n=0):
        self.n = n
    def add(self, k):
        self.n += k
        return self.n

if sys.argv[1] == "serve":
    print(actors.serve("kept", hosts=2, slots=2, cpus=0.1, memory="64M"))
else:
    with actors.attach("kept") as pool:
        it, own = pool.get_or_create("it", Counter, 5), pool.create(Counter)
        print(it.add(1).result(30), own.add(1).result(30), pool.stats()["running"])
"""


def test_a_pool_that_outlives_programs(cluster, shared_dir):
    """What has a name is there for the next program; a pool whose process was killed comes again, empty; only its user comes to it."""
    script = put(cluster, shared_dir, "served.py", SERVED)
    job = cluster.exec("n1", "python3", script, "serve", user="ml").strip()

    def attached():
        return cluster.exec("n1", "python3", script, "attach", user="ml", timeout=90).split()

    assert [attached() for _ in range(2)] == [["6", "1", "2"], ["7", "1", "2"]]
    again = cluster.run("n1", "python3", script, "serve", user="ml")
    assert again.returncode == 1 and f"the pool 'kept' is there already: job {job}" in again.stderr
    of_another = cluster.run("n1", "python3", script, "attach", user="eve")
    assert of_another.returncode == 1 and "there is no pool by the name of 'kept'" in of_another.stderr
    assert cluster.exec("n1", "stat", "-c", "%a %U", "/home/ml/.local/state/primus-actors/kept.json").split() == ["600", "ml"]
    executor = cluster.executor(int(job), "pool")
    cluster.exec(executor["node"], "systemctl", "kill", "-s", "KILL", executor["unit"])
    cluster.wait_for(lambda: cluster.executor(int(job), "pool")["attempt"] == 2, 30, "its next attempt")
    assert attached() == ["6", "1", "2"]
    assert attached() == ["7", "1", "2"]
    cluster.kill(int(job))
    ended = cluster.run("n1", "python3", script, "attach", user="ml")
    assert ended.returncode == 1 and f"the pool's job {job} has ended: killed by uid 1000" in ended.stderr


def test_a_host_is_lost(cluster, shared_dir):
    """The example of an evolution strategy on three hosts: the reward rises; one host loses its power in the middle of it and comes back."""
    script = put(cluster, shared_dir, "evolution.py", (EXAMPLES / "evolution/evolution.py").read_text())
    lines = []

    def until(program, pattern, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines.append(program.stdout.readline())
            assert lines[-1], ("it has ended", lines[-20:])
            if re.search(pattern, lines[-1]):
                return time.monotonic()
        raise AssertionError(lines[-20:])

    with cluster.process("n1", "sh", "-c", f"echo $$; exec python3 {script} --hosts 3 --generations 100000", user="ml") as program:
        until(program, "generation [0-9]+: .* 3 hosts", 60)
        cut = time.monotonic()
        cluster.crash("n3")
        assert until(program, "Player [0-9]+ was on n3, which is gone", 10) - cut < 8
        until(program, "generation [0-9]+: .* 2 hosts", 10)
        cluster.boot("n3")
        until(program, "generation [0-9]+: .* 3 hosts", 120)
        assert lines[1] == "untrained: reward 8\n" and float(re.search(r"reward (\d+)", lines[-1])[1]) > 250
        cluster.exec("n1", "kill", "-9", lines[0].strip())
    # Its pool was not closed; the hosts' processes have seen it go.
    cluster.wait_for(lambda: not cluster.primusctl_json("list"), 30, "the end of the job")
    assert cluster.primusctl_json("list", "--all", "--limit", "1")[0]["state"] == "SUCCEEDED"


def test_of_a_job(cluster):
    """The example: a driver whose actors run in another role of its job, by the job's secret."""
    cluster.exec("n1", "sh", "-c", "umask 077; head -c 32 /dev/urandom > ~/actors.secret", user="ml")
    submit = "submit", "--secret=actors=/home/ml/actors.secret", "--wait", "/usr/share/doc/primus/examples/actors/driver.json"
    cluster.primusctl(*submit)
    said = cluster.primusctl("logs").splitlines()
    assert len(said) == 4 and len({line.split()[-1] for line in said}) == 2
    # One without the secret says so.
    done = cluster.run("n1", "primusctl", "submit", "--wait", submit[-1], user="ml")
    assert done.returncode == 1 and "the job needs the secret that the pool has" in cluster.primusctl("logs")


# Says what becomes of calls, one after the other, until it is killed.
CALLING = """
import sys, time
from primus import actors

class Counter:
    def __init__(self):
        self.n = 0
    def add(self):
        self.n += 1
        return self.n

with actors.Pool(hosts=2, slots=1, cpus=0.1, memory="64M") as pool:
    two = [pool.create(Counter) for _ in range(2)]
    print(*[one.add().result() for one in two], pool._job.number, flush=True)
    for line in sys.stdin:
        try:
            two = two or [pool.create(Counter) for _ in range(2)]
            print(*[one.add().result(10) for one in two], flush=True)
        except actors.ActorError as e:
            two = []
            print(f"{type(e).__name__}: {e}", flush=True)
"""


def test_daemons_are_killed(cluster, shared_dir):
    """Neither master nor agents are asked by a call: actors keep what they have. A job that is killed ends the pool, and says so."""
    script = put(cluster, shared_dir, "calling.py", CALLING)
    with cluster.process("n1", "python3", script, user="ml", stdin=subprocess.PIPE) as program:
        def call():
            program.stdin.write("\n")
            program.stdin.flush()
            return program.stdout.readline().strip()
        first = program.stdout.readline().split()
        assert first[:2] == ["1", "1"], first
        assert call() == "2 2"
        cluster.kill9("n1", MASTERD)
        assert call() == "3 3"
        for node in cluster.nodes:
            cluster.kill9(node, AGENTD)
        assert call() == "4 4"
        cluster.wait_nodes()
        assert call() == "5 5"
        cluster.primusctl("kill", first[2], "--reason=enough")
        # The command has been answered when masterd has recorded it; the hosts hear of it behind that.
        answers = []
        cluster.wait_for(lambda: answers.append(call()) or not re.fullmatch(r"(\d+) \1", answers[-1]), 10, "the hosts to be gone")
        assert re.fullmatch("HostLost: Counter [01] was on n[1-3], which is gone", answers[-1])
        cluster.wait_for(lambda: call() == f"PoolClosed: job {first[2]}, which the pool runs in: killed by uid 1000: enough", 10, "its end")


def test_files_go_along(cluster):
    """To hosts that have no directory with the program's: a package, and what it reads."""
    cluster.exec("n1", "sh", "-c", "mkdir -p ~/along/game && cd ~/along && cat > game/__init__.py && echo 7 > rules.txt", user="ml", input=GAME)
    cluster.exec("n1", "sh", "-c", "cat > ~/along/play.py", user="ml", input=PLAY)
    done = cluster.run("n1", "sh", "-c", "cd ~/along && exec python3 play.py", user="ml")
    assert done.returncode == 0 and done.stdout == "7 7\n", (done.stdout, done.stderr)
    done = cluster.run("n1", "sh", "-c", "cd ~/along && exec python3 -c 'from primus import actors; actors.Pool(hosts=2, files=[\"nothing\"])'", user="ml")
    assert "NotStarted" in done.stderr and "nothing" in done.stderr


def test_listed(cluster, shared_dir):
    """Who runs where, for the job's owner from any host; one can be ended from there. Another user is told that he may not."""
    script = put(cluster, shared_dir, "calling.py", CALLING)
    with cluster.process("n1", "python3", script, user="ml", stdin=subprocess.PIPE) as program:
        job = program.stdout.readline().split()[2]
        listed = cluster.primusctl_json("actors", job)
        assert sorted(one["actor"] for one in listed) == ["Counter 0", "Counter 1"]
        assert {one["node"] for one in listed} == {e["node"] for e in cluster.status(job)["executors"]} and all(one["memory"] > 1 << 20 for one in listed)
        text = cluster.primusctl("actors", job).splitlines()
        assert text[0].split() == ["ACTOR", "EXECUTOR", "HOST", "PID", "STATE", "CPU", "MEMORY", "MADE"] and len(text) == 3
        done = cluster.run("n1", "primusctl", "actors", job, user="eve")
        assert done.returncode != 0 and "Counter" not in done.stdout
        cluster.primusctl("exec", job, f"actors/{listed[0]['index']}", "--", "kill", "-9", str(listed[0]["pid"]))
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == f"ActorDied: {listed[0]['actor']} was ended by SIGKILL\n"
    cluster.wait_for(lambda: not cluster.primusctl_json("list"), 30, "its end")


def test_another_user(cluster, shared_dir):
    """Sees neither the secret nor a way in; cannot end it."""
    script = put(cluster, shared_dir, "calling.py", CALLING)
    with cluster.process("n1", "python3", script, user="ml", stdin=subprocess.PIPE) as program:
        job = program.stdout.readline().split()[2]
        node = cluster.executor(job, "actors")["node"]
        [pid] = cluster.exec(node, "pgrep", "-o", "-f", "primus.actors.host", "-u", "ml").split()
        for user, readable in (("eve", False), ("ml", True)):
            seen = cluster.run(node, "sh", "-c", f"cat $(tr '\\0' '\\n' < /proc/{pid}/environ | sed -n s/^PRIMUS_SECRETS_DIR=//p)/actors | wc -c", user=user)
            assert (seen.stdout.strip() == "32") == readable
        argv = cluster.exec(node, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '", user="eve")
        assert "primus.actors.host" in argv
        assert cluster.run("n1", "primusctl", "kill", job, user="eve").returncode != 0
        where = cluster.exec(node, "sh", "-c", f"tr '\\0' '\\n' < /proc/{pid}/environ | sed -n s/^PRIMUS_ACTORS=//p").strip()
        attempt = ("import os\nfrom primus.actors import host, _reach\n"
                   f"try:\n    host.connect(host.addresses({{'PRIMUS_ACTORS': '{where}'}}), b'x' * 32, _reach.client_context())\nexcept OSError as e:\n    print('refused')")
        assert cluster.exec("n2", "python3", "-c", attempt, user="eve").strip() == "refused"
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "2 2\n"


CABLE = """
import time
from primus import actors

class Sleeper:
    def sleep(self, seconds):
        time.sleep(seconds)

with actors.Pool(hosts=2, slots=1, cpus=0.1, memory="64M") as pool:
    two = [pool.create(Sleeper) for _ in range(2)]
    for one in two:
        one.sleep(0).result()
    far = next(one for one in two if pool.host(one) != "n1")
    call = far.sleep(600)
    print(pool.host(far), flush=True)
    try:
        call.result()
    except actors.HostLost as e:
        print(e, flush=True)
"""


def test_a_cable_is_cut(cluster, shared_dir):
    """Nothing comes from there any more, not even an end: who waits without a limit is told."""
    script = put(cluster, shared_dir, "cable.py", CABLE)
    with cluster.process("n1", "python3", script, user="ml") as program:
        node, began = program.stdout.readline().strip(), time.monotonic()
        cluster.cut(node)
        assert re.fullmatch(f"Sleeper [01] was on {node}, which is gone\n", program.stdout.readline()) and time.monotonic() - began < 7
        cluster.heal(node)
