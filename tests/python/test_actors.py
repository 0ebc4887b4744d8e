# SPDX-License-Identifier: Apache-2.0
"""primus.actors on one host: objects in processes of their own; what they raise, how they die, and who waits for whom."""
import asyncio
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

import acting  # noqa: E402
import acting_hosts  # noqa: E402
from acting import Async, Counter, Few, Mindful, Plain, Threaded  # noqa: E402
from acting_hosts import until  # noqa: E402
from primus import actors  # noqa: E402


@pytest.fixture(params=[1, 2])
def pool(request):
    """Four slots, here or on two hosts."""
    if request.param == 1:
        with actors.Pool(slots=4) as pool:
            pool.zygotes = lambda: [pool._places[0].control.pid]
            yield pool
    else:
        with acting_hosts.several() as pool:
            pool.zygotes = lambda: [child for process in pool.hosts_of_test.processes for child in acting_hosts.children(process.pid)]
            yield pool


@pytest.fixture
def here():
    with actors.Pool(slots=4) as pool:
        yield pool


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ---- calls

def test_it_keeps_its_state(pool):
    one, other = Counter(5), Counter.on(pool)(n=7)
    assert [one.add(1).result(), one.add(2).result(), other.add(0).result()] == [6, 8, 7]
    assert one.echo(1, 2, a=3).result() == (1, (2,), {"a": 3})
    assert pool.create(Plain, 3).add(1).result() == 4 and Counter.local(1).add(1) == 2
    for k in range(1000):
        one.note(k)
    assert one.noted().result() == list(range(1000)), "in their order"
    with pytest.raises(AttributeError, match="not for others"):
        one._n


def test_what_it_raises(pool):
    """Comes as it was, with the actor's traceback; and the actor lives on."""
    one = Counter(5)
    with pytest.raises(ZeroDivisionError) as e:
        one.fail().result()
    assert isinstance(e.value.__cause__, actors.RemoteTraceback) and "acting.py" in str(e.value.__cause__) and "return 1 / 0" in str(e.value.__cause__)
    with pytest.raises(KeyError, match="mine"):
        one.fail(KeyError("mine")).result()
    with pytest.raises(RuntimeError, match="Odd: 1"):
        one.odd().result()
    with pytest.raises(AttributeError, match="nothing"):
        one.nothing().result()
    assert isinstance(one.fail().exception(), ZeroDivisionError) and one.add(1).result() == 6


def test_constructors(pool):
    broken = Counter(3, fail=True)
    for _ in range(2):
        with pytest.raises(actors.NotConstructed, match="no 3") as e:
            broken.add(1).result()
        assert isinstance(e.value.__cause__, ValueError) and "acting.py" in str(e.value.__cause__.__cause__)
    with pytest.raises(actors.NotConstructed, match="missing 1 required"):
        pool.create(acting.Odd, 1).anything().result()


def test_what_cannot_be_sent(pool):
    one = Counter()
    with pytest.raises(actors.NotSent, match="cannot be sent: cannot pickle"):
        one.echo(threading.Lock()).result()
    with pytest.raises(actors.NotSent, match="returned cannot be sent: cannot pickle"):
        one.lock().result()
    assert one.add(1).result() == 1


@pytest.mark.parametrize("n", [1, 16383, 16384, 16385, 1 << 20, (1 << 20) + 1, 30 << 20])
def test_arrays(pool, n):
    one, array = Counter(), np.arange(n, dtype=np.uint8)
    back = one.change(array).result()
    assert back.flags.writeable and back[0] == array[0] + 1 and (back[1:] == array[1:]).all()
    some = [np.full(n // 7 + 1, i) for i in range(7)]
    assert all((a == b).all() for a, b in zip(some, one.echo({"a": some}).result()["a"]))


# ---- futures

def test_many_under_way(pool):
    """More than sockets hold, both ways: nobody waits for the other."""
    one, text = Counter(), "x" * 3000
    futures = [one.echo(text) for _ in range(3000)]
    assert all(f.result() == text for f in futures)
    futures = [one.add(1) for _ in range(10000)]
    assert [f.result() for f in futures] == list(range(1, 10001))


def test_callbacks_that_call(pool):
    """Whoever gets an answer may call at once, also while another call waits for room."""
    one, done, text = Counter(), [], "x" * 5000
    again = lambda f: done.append(one.add(1)) if len(done) < 500 else None
    for f in [one.echo(text) for _ in range(500)]:
        f.add_done_callback(again)
    until(lambda: len(done) == 500)
    assert sorted(f.result() for f in done) == list(range(1, 501))


def test_callbacks_that_wait(pool):
    """A callback may even wait for another answer of the same actor, which may have come already."""
    one, heard = Counter(), []
    futures = [one.echo(k) for k in range(100)]
    futures[0].add_done_callback(lambda f: heard.append([g.result(10) for g in futures] + [one.add(1).result(10)]))
    until(lambda: heard)
    assert heard == [[*range(100), 1]]


def test_large_calls_of_many(pool):
    """Threads whose calls and answers are larger than the sockets take: each reads for the others."""
    one, text, wrong = Counter(), "x" * 300000, []

    def caller(me):
        futures = [one.echo(f"{me} {k} {text}") for k in range(20)]
        for k, f in enumerate(futures):
            if f.result(60) != f"{me} {k} {text}":
                wrong.append((me, k))
    threads = [threading.Thread(target=caller, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(90)
        assert not t.is_alive()
    assert not wrong


def test_callers(pool):
    """Eight threads, of one actor: each gets its own answers, and its calls are in their order."""
    one, wrong = Counter(), []

    def caller(me):
        for k in range(300):
            if one.echo((me, k)).result(20) != (me, k):
                wrong.append(me)
            one.note((me, k))
    threads = [threading.Thread(target=caller, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    seen = one.noted().result()
    assert not wrong and all([k for who, k in seen if who == i] == list(range(300)) for i in range(8))


def test_waiting(pool):
    slow, quick = Counter(), Counter()
    sleeping = slow.sleep(0.5)
    with pytest.raises(TimeoutError):
        sleeping.result(0.05)
    futures = [quick.add(1) for _ in range(5)]
    done, left = actors.wait([sleeping, *futures], n=3)
    assert 3 <= len(done) <= 5 and sleeping in left and len(done) + len(left) == 6
    assert [f.result() for f in actors.as_completed([sleeping, *futures])][-1] == 0.5
    assert concurrent.futures.wait([quick.add(1), slow.add(1)]).not_done == set() and actors.wait([quick.sleep(5)], timeout=0.05)[0] == set()
    told = threading.Event()
    slow.add(1).add_done_callback(lambda f: told.set())
    assert told.wait(5)
    future = slow.add(1)
    until(future.done)


def test_await(pool):
    async def go():
        one = Counter()
        assert await one.add(1) == 1
        with pytest.raises(ZeroDivisionError):
            await one.fail()
        return await asyncio.gather(*(one.add(1) for _ in range(100)))
    assert asyncio.run(go())[-1] == 101


def test_cancel(pool):
    one = Counter()
    sleeping, adding, last = one.sleep(0.3), one.add(1000), one.add(1)
    assert adding.cancel() and adding.cancelled() and adding.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        adding.result()
    assert sleeping.result() == 0.3 and last.result() == 1, "it has not begun, and does not"
    assert not last.cancel() and concurrent.futures.wait([adding]).done == {adding}


def test_threads(pool):
    one = Threaded()
    assert len({f.result(20) for f in [one.meet() for _ in range(4)]}) == 4


def test_async(pool):
    one = Async()
    waiting = [one.wait() for _ in range(50)]
    assert one.plain().result() == []  # they have begun
    waiting[7].cancel()
    until(lambda: one.plain().result() == ["cancelled"])
    with pytest.raises(KeyError):
        one.fail().result()
    one.tell()
    assert [f.result(10) for i, f in enumerate(waiting) if i != 7] == ["told"] * 49
    few = Few()
    assert max(f.result() for f in [few.work() for _ in range(10)]) == 2


def test_streams(pool):
    """Of generators: item by item, some ahead; what it raises and returns; closed when nobody has it."""
    one = Counter()
    rows = one.count(100).result()
    assert list(rows) == list(range(100)) and rows.value == "over" and next(rows, None) is None
    none = one.count(0).result()
    assert list(none) == [] and none.value == "over" and one.add(1).result() == 100
    rows = one.count(50, bad=20).result()
    with pytest.raises(KeyError, match="20"):
        list(rows)
    endless = one.forever().result()
    assert [next(endless) for _ in range(100)] == list(range(20, 120)), "as the object is now"
    state = one.state()
    assert not actors.wait([state], 0.1)[0], "no other call runs meanwhile"
    del endless
    n, seen = state.result(10)
    assert seen == ["closed"] and 119 < n <= 119 + 32, "not much further than somebody took"
    endless = one.forever().result()
    endless.close()
    assert one.state().result(10)[1] == ["closed"] * 2
    one.forever().cancel()
    assert one.state().result(10)[1][:2] == ["closed"] * 2
    assert sum(Counter().count(1000).result()) == 499500, "of one whose handle has gone"


def test_streams_at_once(pool):
    """Of threads, and of tasks; with others between."""
    threaded, tasks = Threaded(), Async()
    streams = [threaded.count(200).result() for _ in range(3)]
    assert [sum(rows) for rows in zip(*streams)] == [3 * i for i in range(200)]

    async def go():
        found = []
        async for i in await tasks.count(100):
            found.append(i)
            if i == 50:
                assert await tasks.plain() == []
        return found
    assert asyncio.run(go()) == list(range(100)) and tasks.plain().result() == ["closed"]
    rows = tasks.count(10**9).result()
    assert next(rows) == 0
    del rows
    until(lambda: tasks.plain().result() == ["closed"] * 2)


def test_streams_end_with_the_actor(pool):
    one = Counter()
    endless = one.forever().result()
    next(endless)
    actors.kill(one)
    with pytest.raises(actors.ActorDied, match="SIGKILL"):
        for _ in range(1000):
            next(endless)
    with pytest.raises(actors.ActorDied, match="status 4"):
        Threaded().leave().result(10)


# ---- ends

def test_how_it_dies(pool):
    one = Counter()
    under_way = [one.exit(3), one.add(1)]
    with pytest.raises(actors.ActorDied, match="Plain 0 has exited with status 3") as e:
        under_way[0].result()
    assert (e.value.status, e.value.signal) == (3, None) and isinstance(under_way[1].exception(), actors.ActorDied) and isinstance(one.add(1).exception(), actors.ActorDied)
    other = Counter()
    with pytest.raises(actors.ActorDied, match="SIGABRT") as e:
        other.abort().result()
    assert e.value.signal == signal.SIGABRT
    third = Counter()
    sleeping, began = third.sleep(60), time.monotonic()
    actors.kill(third)
    assert isinstance(sleeping.exception(5), actors.ActorDied) and time.monotonic() - began < 2
    until(lambda: pool.stats()["running"] == pool.stats()["waiting"] == 0)


def test_asked_again(pool, at_once, tmp_path):
    """What was under way at a death and is idempotent, and that alone, in its order; by whoever waits: one thread, several, nobody."""
    path = tmp_path / "asked"
    one, array, told = Mindful(str(path)), np.ones(1 << 18), []
    first = one.again("a", 1, array)
    array[:] = 7  # behind the call
    behind = [one.again(n) for n in range(50)]
    behind[7].add_done_callback(told.append)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda f: f.result(20)[0], behind)) == list(range(50))
    word, pid, total = first.result(0)
    assert (word, total) == ("a", 1 << 18) and {f.result()[1] for f in behind} == {pid} and told == [behind[7]]
    assert path.read_text().split() == ["a", "a", *map(str, range(50))]

    async def ask():
        return await one.again("awaited", 1)
    assert asyncio.run(ask())[0] == "awaited" and path.read_text().split().count("awaited") == 2
    once = one.once("o")
    until(lambda: "o" in path.read_text())
    asleep, cancelled = one.asleep(), one.asleep()
    os.kill(pool.pid(one), signal.SIGKILL)
    assert isinstance(once.exception(10), actors.ActorDied) and path.read_text().split().count("o") == 1
    with pytest.raises(TimeoutError):
        asleep.result(0.3)
    assert cancelled.cancel()
    actors.kill(one)
    assert isinstance(asleep.exception(10), actors.ActorDied), "killed for good"


def test_asked_in_vain(pool, at_once, tmp_path):
    """As often as it is made again, and no more; a generator that has begun is not begun again; without restarts= nobody would be asked."""
    one = Mindful(str(tmp_path / "asked"))
    assert isinstance(one.again("a", 9).exception(20), actors.ActorDied) and (tmp_path / "asked").read_text().split() == ["a"] * 4
    other = Mindful(str(tmp_path / "other"))
    stream = other.forever().result()
    assert next(stream) == 1
    os.kill(pool.pid(other), signal.SIGKILL)
    with pytest.raises(actors.ActorDied):
        collections.deque(stream, 0)
    with pytest.raises(ValueError, match="Mindful.again is idempotent, and nobody would call it again"):
        actors.remote(Mindful.local)


def test_told_without_waiting(pool):
    """Who waits for nothing is told as well."""
    one, told = Counter(), []
    one.sleep(60).add_done_callback(told.append)
    until(lambda: pool.pid(one))
    os.kill(pool.pid(one), signal.SIGKILL)
    until(lambda: told)
    assert "SIGKILL" in str(told[0].exception())


def test_slots(pool):
    """Others wait for their turn; whoever is not needed any more makes room, behind what it was still to do."""
    held = [Counter(i) for i in range(4)]
    late = Counter(9)
    adding = late.add(1)
    assert pool.stats() == {"hosts": len(pool.zygotes()), "slots": 4, "running": 4, "waiting": 1, "limited": 0} and not actors.wait([adding], 0.1)[0]
    last = held[0].sleep(0.1)
    began = time.monotonic()
    del held[0]
    assert adding.result(5) == 10 and last.result() == 0.1 and time.monotonic() - began < 2
    queued = Counter()
    calls = queued.add(1)
    actors.kill(queued)
    assert isinstance(calls.exception(5), actors.ActorDied) and pool.stats()["waiting"] == 0
    broken = [Counter(fail=True) for _ in range(3)]
    del held, late, broken
    until(lambda: pool.stats()["running"] == 0)


def test_a_slot_in_a_callback(pool):
    """Who is told in the thread that hears of deaths may make room, and wait for who takes it."""
    held, found, done = [Counter(i) for i in range(4)], [], threading.Event()
    assert [one.add(0).result(10) for one in held] == [0, 1, 2, 3]

    def told(_):
        actors.kill(held[0])
        found.append(Counter(7).add(1).result(10))
        done.set()

    held[1].sleep(0.1).add_done_callback(told)
    assert done.wait(15) and found == [8]


def test_hundreds():
    """More at once than the zygote is told of in one go, for which its socket has room for less than 300."""
    n = 400
    with actors.Pool(slots=n, preload=["acting"], warm=0) as pool:
        made = [Counter(i) for i in range(n)]
        assert [f.result(60) for f in [one.add(0) for one in made]] == list(range(n)) and pool.stats()["running"] == n
        for one in made[:n // 2]:
            actors.kill(one)
        del made
        until(lambda: pool.stats()["running"] == 0, 30)


def test_slots_again_and_again(pool):
    for i in range(50):
        one = Counter(i)
        assert one.add(0).result(5) == i
    del one
    until(lambda: pool.stats()["running"] == 0)
    assert len(os.listdir("/proc/self/fd")) < 60


def test_pool_ends():
    pool = actors.Pool(slots=2)
    one, waits = Counter(), [Counter() for _ in range(3)]
    sleeping = one.sleep(60)
    until(lambda: pool.pid(one))
    pid = pool.pid(one)
    pool.close()
    pool.close()
    assert not alive(pid) and isinstance(sleeping.exception(1), actors.PoolClosed) and isinstance(waits[2].add(1).exception(1), actors.PoolClosed)
    with pytest.raises(actors.PoolClosed):
        pool.create(Plain)
    with pytest.raises(actors.ActorError, match="there is no pool"):
        Counter()


SEEDS = int(os.environ.get("PRIMUS_ACTOR_SEEDS", "2"))
CALLS = int(os.environ.get("PRIMUS_ACTOR_CALLS", "2000"))


@contextlib.contextmanager
def killing(pool, draw, ended):
    """Processes of actors, warm ones as well, and of hosts; others come for those. Not before some calls have ended since, on a machine that
    makes processes no faster: ended is the list of them."""
    over, hosts = threading.Event(), getattr(pool, "hosts_of_test", None)

    def killer():
        while not over.wait(draw.uniform(0.002, 0.05)):
            before, until_then = len(ended), time.monotonic() + 1
            while len(ended) < before + 10 and time.monotonic() < until_then and not over.wait(0.002):
                pass
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                pids = [pid for zygote in pool.zygotes() for pid in acting_hosts.children(zygote)]  # warm ones as well
                if pids:
                    os.kill(draw.choice(pids), draw.choice([signal.SIGKILL, signal.SIGSEGV]))
                if hosts and draw.random() < 0.05:
                    os.kill(draw.choice([hosts.processes[-1].pid, *acting_hosts.children(hosts.processes[-1].pid)]), signal.SIGKILL)
                if hosts and hosts.processes[-1].poll() is not None:
                    hosts.start(f"n{len(hosts.processes) + 1}")

    killer = threading.Thread(target=killer)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()
        if hosts:  # one that has just come does not find the pool gone, which it would look for for a minute
            until(lambda: pool.stats()["hosts"] >= sum(process.poll() is None for process in hosts.processes), 30)


def in_threads(caller):
    """caller(0) … caller(3), none of which hangs."""
    threads = [threading.Thread(target=caller, args=(i,), daemon=True) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_random(pool, tmp_path, seed):
    """Each call is answered once, or fails with why; none is done twice; nobody waits for ever."""
    marks, answered, failed = tmp_path / "marks", [], []
    made, until_then, hosts = [], time.monotonic() + 30, getattr(pool, "hosts_of_test", None)

    def caller(me):
        one, under_way, k = Counter(), collections.deque(), 0
        # So many, and on until some were hit.
        while under_way or k < CALLS // 4 or len(failed) < 3 and time.monotonic() < until_then:
            more = k < CALLS // 4 or len(failed) < 3
            if more:
                made.append(f"{me}-{k}")
                under_way.append((f"{me}-{k}", one.mark(str(marks), f"{me}-{k}")))
                k += 1
            while len(under_way) > 20 or under_way and not more:
                word, future = under_way.popleft()
                try:
                    answered.append((word, future.result(20)))
                except actors.ActorDied as e:
                    failed.append((word, str(e)))
                    if one.add(0).exception(20) is not None:
                        one = Counter()

    with killing(pool, random.Random(seed), answered):
        in_threads(caller)
    done = marks.read_text().split()
    assert sorted([w for w, _ in answered] + [w for w, _ in failed]) == sorted(made) and all(word == said for word, said in answered)
    assert len(done) == len(set(done)) and {word for word, _ in answered} <= set(done)
    # An actor may also be on its way to its pool when its host's process is killed.
    assert failed and all("was ended by SIG" in why or hosts and ("which is gone" in why or "status 71" in why) for _, why in failed)


def test_killed_at_random_and_asked_again(pool, at_once, tmp_path):
    """Of actors that are made again as often as it takes, and idempotent calls: all are answered, each by what it asked for."""
    path, answered = tmp_path / "asked", []
    words = [[f"{me}-{k}" for k in range(CALLS // 10)] for me in range(4)]

    def caller(me):
        one = actors.remote(restarts=float("inf"))(Mindful.local).on(pool)(str(path))
        for future in [one.again(word) for word in words[me]]:
            answered.append(future.result(60)[0])
    with killing(pool, random.Random(4), answered):
        in_threads(caller)
    assert sorted(answered) == sorted(sum(words, [])) and set(path.read_text().split()) == set(answered)


def test_zygote_is_killed(here):
    one = Counter()
    one.add(1).result()
    pid, zygote = here.pid(one), here._places[0].control.pid
    sleeping = one.sleep(60)
    os.kill(zygote, signal.SIGKILL)
    with pytest.raises(actors.PoolClosed, match="zygote has ended"):
        sleeping.result(10)
    until(lambda: not alive(pid))
    with pytest.raises(actors.PoolClosed):
        Counter()


def test_what_is_loaded(here):
    """What several hosts take is in no process of one: each actor is a copy of what its zygote has."""
    maps = pathlib.Path(f"/proc/{here._places[0].control.pid}/maps").read_text()
    assert "libc.so" in maps and "libssl" not in maps and "libcrypto" not in maps


PROGRAM = """
import os, sys, time
from primus import actors
from acting import Counter
pool = actors.Pool(slots=2)
one = Counter()
one.add(1).result()
print(pool.pid(one), pool._places[0].control.pid, flush=True)
sleeping = one.sleep(60)
time.sleep(60)
"""


def program(source, *arguments, **more):
    env = {**os.environ, "PYTHONPATH": f"{HERE.parents[2] / 'lib/primus/python'}:{HERE.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(source), *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_caller_is_killed():
    """Nothing of it is left."""
    caller = program(PROGRAM)
    pids = [int(p) for p in caller.stdout.readline().split()]
    assert len(pids) == 2 and all(map(alive, pids))
    caller.kill()
    caller.communicate()
    until(lambda: not any(map(alive, pids)))


def test_caller_is_killed_that_has_forked():
    """A child of the caller's, which lives on, does not keep the actors."""
    caller = program(PROGRAM.replace("sleeping = ", """
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
sleeping = """), stdin=subprocess.DEVNULL)
    pids, child = [int(p) for p in caller.stdout.readline().split()], int(caller.stdout.readline())
    try:
        caller.kill()
        until(lambda: not any(map(alive, pids)))
        assert alive(child)
    finally:
        os.kill(child, signal.SIGKILL)
        caller.communicate()


def test_programs_that_end():
    """Without close() and with a handle at hand; what actors print is there."""
    done = program("""
        from primus import actors
        from acting import Counter
        actors.Pool(slots=1)
        one = Counter()
        one.speak("said").result()
        one.sleep(60)
    """)
    assert done.communicate(timeout=30) == ("said\n", "said\n") and done.returncode == 0


def test_forked_callers(pool):
    """A handle is of the process that made it."""
    one = Counter()
    one.add(1).result()
    pid = os.fork()
    if pid == 0:
        try:
            one.add(1)
        except actors.ActorError as e:
            os._exit(0 if "another process" in str(e) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and one.add(1).result() == 2


# ---- the zygote

def test_fresh_and_alone(here):
    """A child of the zygote, with nothing of the pool's but its own socket, and nothing to read; its random numbers are its own."""
    pid, parent, files, standard_input = Counter().where().result()
    assert parent == here._places[0].control.pid and pid != parent and standard_input == "" and files.count("socket") == 1 and "/dev/null" in files
    with actors.Pool(slots=3, preload=["numpy"]) as pool:
        drawn = [f.result() for f in [c.draw() for c in [Counter.on(pool)() for _ in range(3)]]]
        assert len({d[0] for d in drawn}) == 3 and len({d[1] for d in drawn}) == 3
        assert Counter.on(pool)().threads().result() == 1


def test_preload_refused(tmp_path, monkeypatch):
    (tmp_path / "threading_one.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(actors.PreloadRefused, match="threading_one starts threads"):
        actors.Pool(preload=["threading_one"])
    with pytest.raises(actors.PreloadRefused, match="no_such_module cannot be imported"):
        actors.Pool(preload=["no_such_module"])
    with pytest.raises(ValueError):
        actors.Pool(slots=0)
    for bad in (lambda: actors.remote(test_fresh_and_alone), lambda: actors.remote(3)):
        with pytest.raises(TypeError, match="is for classes"):
            bad()


def test_classes_of_the_script():
    """By value."""
    pytest.importorskip("cloudpickle")
    done = program("""
        from primus import actors
        base = 40
        @actors.remote
        class Here:
            def __init__(self):
                self.f = lambda x: base + x
            def add(self, x):
                return self.f(x)
        with actors.Pool(slots=1), actors.Executor(2) as e:
            print(Here().add(2).result(), e.submit(lambda x: x + base, 1).result())
    """)
    out, error = done.communicate(timeout=30)
    assert (out, error, done.returncode) == ("42 41\n", "", 0)


# ---- executors

def test_executor(pool):
    with actors.Executor(3) as executor:
        assert actors.current() is pool, "its own pool is nobody else's"
        assert list(executor.map(acting.double, range(100))) == [2 * x for x in range(100)]
        assert executor.submit(acting.double, 4).result() == 8
        with pytest.raises(TypeError):
            executor.submit(acting.double).result()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(acting.double, 1)
    with actors.Executor(1) as executor, pytest.raises(concurrent.futures.BrokenExecutor, match="status 3"):
        executor.submit(acting.die, 1).result()


@pytest.mark.parametrize("end", ["", "t.shutdown(wait=False)", "t.shutdown()"])
def test_executor_at_the_end_of_a_program(end):
    """What was submitted is done, and nothing hangs."""
    done = program(f"""
        from primus import actors
        import acting
        t = actors.Executor(max_workers=3)
        f = t.submit(acting.slowly, "apple")
        {end}
    """)
    assert done.communicate(timeout=30) == ("apple\n", "") and done.returncode == 0


def test_submit_at_the_end_of_a_program():
    done = program("""
        import atexit
        from primus import actors
        import acting
        t = actors.Executor(max_workers=1)
        @atexit.register
        def late():
            try:
                t.submit(acting.double, 1)
            except RuntimeError as e:
                print("refused:", e)
        t.submit(acting.double, 1).result()
    """)
    assert done.communicate(timeout=30) == ("refused: cannot schedule new futures after shutdown\n", "") and done.returncode == 0


def test_actor_pool(pool):
    workers = actors.ActorPool([Counter(), Counter()])
    assert list(workers.map(lambda a, v: a.echo(v), range(10))) == list(range(10))
    assert sorted(workers.map_unordered(lambda a, v: a.echo(v), range(10))) == list(range(10))
    workers.submit(lambda a, v: a.sleep(v), 0.3)
    with pytest.raises(TimeoutError):
        workers.get_next(timeout=0.01)
