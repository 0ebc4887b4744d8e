# SPDX-License-Identifier: Apache-2.0
"""Handles that go along to other actors, what those ask by them, and actors that are found by a name."""
import contextlib
import os
import pathlib
import pickle
import random
import re
import signal
import sys
import time

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

import acting_hosts  # noqa: E402
from acting import AsyncFriend, Counter, Friend, Keeper, Maker, Nesting, Plain, Seldom, Taker, Tasked, ThreadedFriend  # noqa: E402
from acting_hosts import until  # noqa: E402
from primus import actors  # noqa: E402
from primus.actors import _wire  # noqa: E402


@pytest.fixture(params=[1, 2])
def pool(request):
    """Four slots, here or on two hosts."""
    with acting_hosts.places(request.param) as pool:
        yield pool


def running(pool):
    return pool.stats()["running"]


# ---- handles

def test_of_another_pool(pool):
    """An actor with a pool of its own: what is of that goes to nobody here, in whose pool such a number is another actor."""
    nesting, other = Nesting(), Counter(1)
    nesting.make().result(20)
    assert nesting.call(5).result(10) == 5
    for wrong in (nesting.give(), nesting.give(other)):
        error = wrong.exception(10)
        assert isinstance(error, actors.NotSent) and "is of another pool" in str(error), repr(error)
    assert isinstance(nesting.call(other).exception(10), actors.NotSent) and other.add(1).result(5) == 2
    nesting.end().result(10)


def test_as_an_argument_and_as_a_result(pool):
    """It is the same actor, whoever asks; the program gets it back as its own."""
    counter = Counter(5)
    one, other = Friend(counter), Friend()
    assert one.ask("add", 2).result() == 7
    other.know(counter).result()
    assert other.ask("add", 1).result() == 8 and counter.add(1).result() == 9
    back = one.known().result()
    assert isinstance(back, actors.Handle) and repr(back) == repr(counter) and back.add(1).result() == 10
    assert [f.result() for f in [other.ask("add", 1) for _ in range(100)]] == list(range(11, 111)), "in their order"
    assert one.ask("echo", {"deep": [counter]}).result()["deep"][0].add(1).result() == 111


def test_from_one_actor_to_another(pool):
    """As an argument, and in what another one returns."""
    counter, one, other, third = Counter(1), Friend(), Friend(), Friend()
    one.know(counter).result()
    one.tell(other).result()
    assert other.ask("add", 1).result() == 2
    third.know(other).result()
    assert third.ask("known").result().add(1).result() == 3
    one.forget().result()
    other.forget().result()
    assert counter.add(1).result() == 4


def test_arrays(pool):
    friend, array = Friend(Counter()), np.arange(1 << 20, dtype=np.uint8)
    back = friend.ask("change", array).result()
    assert back[0] == 1 and (back[1:] == array[1:]).all() and back.flags.writeable


def test_it_lives_while_somebody_has_it(pool):
    counter, one, other = Counter(1), Friend(), Friend()
    counter.add(1).result()
    one.know(counter).result()
    one.tell(other).result()
    del counter
    one.forget().result()
    assert other.ask("add", 1).result() == 3 and running(pool) == 3
    other.forget().result()
    until(lambda: running(pool) == 2)
    made = Friend(Counter(7))
    assert made.ask("add", 1).result() == 8 and running(pool) == 4
    del made  # the last one who has it ends
    until(lambda: running(pool) == 2)


def test_who_had_it_is_killed(pool):
    counter = Counter(1)
    one = pool.create(Plain)
    one.note(counter).result()
    pid = pool.pid(counter)
    del counter
    assert one.noted().result()[0].add(1).result() == 2
    os.kill(pool.pid(one), signal.SIGKILL)
    until(lambda: running(pool) == 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_program_that_never_waits(pool):
    """What actors ask each other is heard all the same."""
    counter = Counter(0)
    friends = [Friend(counter) for _ in range(2)]
    for friend in friends:
        for _ in range(50):
            friend.ask("add", 1)
    time.sleep(0.1)
    until(lambda: counter.add(0).result() == 100)


def test_what_goes_wrong(pool):
    """An exception of the other one, what cannot be sent, and how it has died: as the program hears it."""
    plain = pool.create(Plain, 1)
    one = Friend(plain)
    with pytest.raises(ZeroDivisionError) as e:
        one.ask("fail").result()
    assert "return 1 / 0" in str(e.value.__cause__), "where in the other actor"
    for name, args, match in (("lock", (), "returned cannot be sent"), ("_n", (), "not for others"), ("nothing", (), "no attribute")):
        with pytest.raises((actors.NotSent, AttributeError), match=match):
            one.ask(name, *args).result()
    assert one.ask("add", 1).result() == 2
    with pytest.raises(actors.ActorDied, match="exited with status 5"):
        one.ask("exit", 5).result()
    with pytest.raises(actors.ActorDied, match="exited with status 5"):
        one.ask("add", 1).result()
    one.know(pool.create(Plain, 2, fail=True)).result()
    with pytest.raises(actors.NotConstructed, match="no 2"):
        one.ask("add", 1).result()


# ---- generators

def test_what_another_actor_yields(pool):
    """All of it in its order, what it returns, and what it raises; of any kind of actor, for any kind."""
    plain = Counter()
    assert Friend(plain).ask_all(1000).result(20) == (list(range(1000)), "over")
    one = Friend(plain)
    with pytest.raises(KeyError, match="7"):
        one.ask_all(10, 7).result(10)
    assert one.ask_all(0).result(10) == ([], "over") and one.ask_all(3).result(10) == ([0, 1, 2], "over"), "behind one that has failed"
    assert AsyncFriend(plain).ask_all(100).result(10) == (list(range(100)), "over")
    threaded = ThreadedFriend(plain)
    assert [f.result(20) for f in [threaded.ask_all(50) for _ in range(4)]] == [list(range(50))] * 4


def test_calls_between_the_items(pool):
    """Of another actor, by the same one that takes them."""
    one = Friend(Counter())
    one.others_are(Counter(0)).result(5)
    assert one.ask_by_turns(50).result(20) == [(i, i + 1) for i in range(50)]


def test_no_more_is_made_than_is_wanted(pool):
    """At most as many items as may be ahead, and the generator is closed when nobody has the stream."""
    endless = Counter()
    assert Friend(endless).ask_some(100).result(20) == list(range(1, 101))
    until(lambda: endless.state().result(5)[1] == ["closed"])
    assert endless.state().result(5)[0] <= 100 + 2 * _wire.WINDOW


def test_who_takes_them_dies(pool):
    """The generator is closed, and its actor goes on."""
    endless, one = Counter(), Friend()
    one.know(endless).result(5)
    asking = one.ask_some(10 ** 9)
    until(lambda: pool.pid(one))
    time.sleep(0.2)
    os.kill(pool.pid(one), signal.SIGKILL)
    assert isinstance(asking.exception(10), actors.ActorDied)
    until(lambda: endless.state().result(5)[1] == ["closed"])


def test_who_makes_them_dies(pool):
    """Whoever takes them is told."""
    endless, one = Counter(), Friend()
    one.know(endless).result(5)
    asking = one.ask_some(10 ** 9)
    time.sleep(0.2)
    os.kill(pool.pid(endless), signal.SIGKILL)
    assert isinstance(asking.exception(10), actors.ActorDied) and "SIGKILL" in str(asking.exception())


def test_handles_among_the_items(pool):
    """They are good, also when who has yielded them has dropped them."""
    maker = pool.create(Maker)
    assert pool.create(Taker, maker).take(2).result(20) == [1, 2]


def test_it_is_asked_again_of_the_next_process(pool, at_once, tmp_path):
    """What is idempotent; and a constructor's handles are there again, too."""
    counter = Counter(3)
    sleeper = Friend(counter)
    one = Friend(sleeper)
    told = tmp_path / "told"
    asked = one.ask("sleepily", str(told), 1.0)
    until(lambda: told.exists() and told.read_text())
    os.kill(pool.pid(sleeper), signal.SIGKILL)
    assert asked.result(30) == pool.pid(sleeper) and told.read_text() == ".."
    del counter
    assert sleeper.ask("add", 1).result() == 4


def test_timeouts_and_ways_to_wait(pool):
    plain = pool.create(Plain)
    one = Friend(plain)
    assert one.ask("add", 1).result() == 1
    began = time.monotonic()
    assert one.ask_within(0.05, "sleep", 4).result() == "later" and time.monotonic() - began < 3
    counter = Counter(0)
    one.know(counter).result()
    n = 0
    for way in ("result", "wait", "as_completed", "thread"):
        assert one.ask_many(20, way).result(10) == list(range(n + 1, n + 21)), way
        n += 20
        assert one.ask("add", 0).result(10) == n, "calls that came meanwhile are done"


def test_tasks_and_threads(pool):
    counter = Counter(0)
    one = AsyncFriend(counter)
    assert sorted(one.ask(20).result(10)) == list(range(1, 21))
    several = [one.ask_and_wait(5), one.note(7), one.ask(5)]
    assert several[0].result(10) == list(range(21, 26)) and several[1].result(10) == 7 and len(several[2].result(10)) == 5
    threaded = ThreadedFriend(counter)
    got = [f.result(10) for f in [threaded.ask(10) for _ in range(4)]]
    assert sorted(sum(got, [])) == list(range(31, 71))


def test_it_goes_nowhere_else(pool):
    counter = Counter(1)
    with pytest.raises(pickle.PicklingError, match="nowhere else"):
        pickle.dumps(counter)
    with actors.Pool(slots=1, private=True) as other:
        stranger = other.create(Plain)
        with pytest.raises(actors.NotSent, match="of another pool"):
            stranger.echo(counter).result()
        with pytest.raises(actors.ActorError, match="of another pool"):
            other.create(Friend, counter)
        assert stranger.add(1).result() == 1
    assert counter.add(1).result() == 2


def test_the_pool_is_closed_meanwhile(pool):
    plain = pool.create(Plain)
    asked = Friend(plain).ask("sleep", 60)
    time.sleep(0.2)
    pool.close()
    with pytest.raises(actors.PoolClosed):
        asked.result(10)


@pytest.mark.parametrize("seed", [1])
def test_killed_at_random(pool, at_once, seed):
    """Actors that ask each other, by handles and by a name, and give handles away: each call is answered or fails by name, nobody hangs, and
    no slot is lost."""
    r, known = random.Random(seed), Friend(None)
    askers, outcomes = [Friend(known) for _ in range(2)], set()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        called = []
        for k in range(20):
            one = r.choice(askers)
            called += [one.ask("known"), one.find_or_make("n", Counter, k), one.know(known), one.ask("find", "n"), one.ask("sleepily", os.devnull, 0)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pool.pid(r.choice([known, *askers])) or 1 << 22, signal.SIGKILL)
        outcomes |= {type(f.exception(20)) for f in called}
        askers = [one if one.pid().exception(20) is None else Friend(known) for one in askers]
        if known.pid().exception(20) is not None:
            known = Friend(None)
    assert outcomes <= {type(None), actors.ActorDied, actors.ActorError} and actors.ActorDied in outcomes
    del askers, known, one, called
    until(lambda: running(pool) == 1, 30)


# ---- names

def test_names(pool):
    """Whoever asks, program or actor, gets the same one; it lives while nobody has a handle."""
    with pytest.raises(actors.ActorError, match="no actor by the name of 'x'"):
        actors.get("x")
    one, other = Friend(), Friend()
    with pytest.raises(actors.ActorError, match="no actor by the name of 'x'"):
        one.find("x").result()
    made = [f.result() for f in [friend.find_or_make("x", Counter, 5) for friend in (one, other) for _ in range(5)]]
    assert len({repr(m) for m in made}) == 1 and running(pool) == 3
    del made
    assert actors.get_or_create("x", Counter, 100).add(1).result() == 6
    assert pool.get("x").add(1).result() == 7 and other.find("x").result().add(1).result() == 8
    one.know(pool.get("x")).result()
    one.kill().result()
    until(lambda: running(pool) == 2)
    with pytest.raises(actors.ActorError, match="no actor by the name"):
        pool.get("x")
    assert pool.get_or_create("x", Counter, 1).add(1).result() == 2


def test_a_name_outlives_a_restart(pool, at_once):
    named = actors.get_or_create("y", Friend)
    pid = named.pid().result()
    os.kill(pid, signal.SIGKILL)
    until(lambda: pool.pid(pool.get("y")) not in (None, pid), 20)
    assert pool.get("y").pid().result(20) != pid
    one = Friend(Counter(3))
    assert one.find_or_make("z", Friend, one.known().result()).result().ask("add", 1).result() == 4, "handles go along to what an actor makes"


# ---- what an actor is, over restarts

def test_it_is_what_it_was(pool, at_once):
    """Behind each call that was answered, however it dies; one that could not be kept says so."""
    one = Keeper(5)
    assert [one.add(1).result() for _ in range(4)] == [6, 7, 8, 9]
    for n in range(9, 12):
        pid = pool.pid(one)
        os.kill(pid, signal.SIGKILL)
        until(lambda: pool.pid(one) not in (None, pid), 20)
        assert one.seen().result(20) == (n, n, n) and one.add(1).result(20) == n + 1
    assert isinstance(one.change_and_fail().exception(), ZeroDivisionError)
    one.die().exception()
    assert one.add(-100).result(20) == 12, "what a call has changed that raised is kept, too"
    with pytest.raises(ValueError, match="thirteen is not kept"):
        one.add(1).result()
    with pytest.raises(actors.ActorDied):
        one.die().result()
    assert one.seen().result(20)[0] == 12


def test_it_is_kept_now_and_then(pool, at_once):
    for made, kept in ((actors.remote(restarts=1, saves=3)(Seldom), 3), (actors.remote(restarts=1, concurrency=4)(Seldom), 5), (actors.remote(restarts=1)(Tasked), 5)):
        one = pool.create(made, 0)
        assert [one.add(1).result(20) for _ in range(5)] == [1, 2, 3, 4, 5]
        one.die().exception(20)
        assert one.seen().result(20)[0] == kept, made


def test_what_cannot_be_kept(pool, at_once):
    one = Keeper(5, wrong=True)
    one.add(1).result()
    one.die().exception()
    with pytest.raises(actors.NotConstructed, match="not restored"):
        one.seen().result(20)
    for options in ({"saves": 1}, {"restarts": 1, "saves": 0}):
        with pytest.raises(ValueError, match="saves is at least 1"):
            actors.remote(**options)(Seldom)
    with pytest.raises(ValueError, match="saves is at least 1"):
        actors.remote(restarts=1, saves=1)(Plain)


# ---- what there is of them

def test_what_there_is(pool):
    """Who runs where, who waits for what, and how who is gone has ended."""
    one, other = Friend(), pool.get_or_create("x", Counter, 5)
    one.pid().result(), other.add(1).result()
    found = {actor["actor"]: actor for actor in pool.actors()}
    assert found["Friend 0"] == {"actor": "Friend 0", "name": None, "state": "running", "host": pool.host(one), "pid": pool.pid(one), "calls": 0, "restarts": 1}
    assert found["Plain 1"]["name"] == "x" and found["Plain 1"]["restarts"] == 0
    assert re.fullmatch(rf"Friend 0 runs on .+ as process {pool.pid(one)}, 0 calls are under way", pool.why(one))
    more = [pool.create(Plain) for _ in range(4)]
    slow = more[0].sleep(2)
    assert pool.why(more[2]) == "Plain 4 waits for a slot: all 4 are taken, and 0 others wait before it"
    assert pool.why(more[3]) == "Plain 5 waits for a slot: all 4 are taken, and 1 others wait before it"
    assert {actor["actor"]: actor["state"] for actor in pool.actors()}["Plain 5"] == "waiting"
    until(lambda: "1 calls are under way" in pool.why(more[0]))
    slow.result()
    more[0].exit(4).exception()
    assert pool.why(more[0]) == "Plain 2 has ended: Plain 2 has exited with status 4"
    os.kill(pool.pid(one), signal.SIGKILL)
    until(lambda: pool.why(one) == "Friend 0 has died soon after it was made, and is made again within some seconds")


def test_no_host_yet():
    with actors.Pool.of_job(port=0, secret=acting_hosts.SECRET) as pool:
        one = Counter(1)
        assert pool.why(one) == "Plain 0 waits for a host: none has connected yet" and pool.actors()[0]["state"] == "waiting"
