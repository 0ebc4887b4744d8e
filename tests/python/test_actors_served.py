# SPDX-License-Identifier: Apache-2.0
"""Pools that outlive programs: who comes to one and goes, and what stays; how they are called and found."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

from acting import Counter  # noqa: E402
from acting_hosts import PATH, SECRET, several, until  # noqa: E402
from primus import actors  # noqa: E402
from primus.actors import _guest, _job, _proof, _reach, _serve  # noqa: E402
from primus.actors.errors import NotStarted  # noqa: E402

BEGIN = """
import contextlib, os, pickle, signal, sys, threading, time
from primus import actors
from primus.actors import _guest
from acting import Counter, Friend, Keeper, Plain, Tasked
def come():
    return _guest.Attached(_guest.dial(("127.0.0.1", int(sys.argv[1])), b"of a job, for all of its hosts.."), 7)
"""


@pytest.fixture
def served():
    with several(guests=True) as pool:
        yield pool


@contextlib.contextmanager
def program(pool, text):
    """Another process, which has what BEGIN has."""
    with subprocess.Popen([sys.executable, "-c", BEGIN + text, str(pool.port)], env={**os.environ, "PYTHONPATH": PATH}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def said(pool, text):
    """What it prints; it has to end well."""
    with program(pool, text) as running:
        out, _ = running.communicate(timeout=50)
        assert running.returncode == 0, out
    return out.splitlines()


# ---- programs that come and go

def test_names_stay(served):
    """What has a name is there for the next program, and for the pool's own; what has none ends with the program that made it."""
    first = "with come() as pool:\n one = Counter(1); print(pool.get_or_create('c', Counter, 5).add(1).result(5), one.add(1).result(5), pool.stats()['running'])"
    assert said(served, first) == ["6 2 2"]
    until(lambda: served.stats()["running"] == 1)
    assert said(served, "with come() as pool:\n print(actors.get('c').add(1).result(5), [a['name'] for a in pool.actors()])") == ["7 ['c']"]
    assert served.get("c").add(1).result(5) == 8


def test_who_is_killed_takes_its_own_along(served):
    with program(served, "pool = come(); one = Counter(); one.add(1).result(5); named = pool.get_or_create('k', Counter); print('there', flush=True); time.sleep(60)") as running:
        assert running.stdout.readline() == "there\n"
        until(lambda: served.stats()["running"] == 2)
        running.send_signal(signal.SIGKILL)
    until(lambda: [one["name"] for one in served.actors()] == ["k"])


def test_a_handle_that_goes(served):
    """Its actor ends at once, though the program asks for nothing more."""
    with program(served, "pool = come(); one = Counter(); one.add(1).result(5); print(1, flush=True); sys.stdin.readline(); del one; time.sleep(60)") as running:
        running.stdout.readline()
        assert served.stats()["running"] == 1
        running.stdin.write("\n")
        running.stdin.flush()
        until(lambda: served.stats()["running"] == 0, 5)


def test_handles_travel(served):
    """To an actor, from one, and between two programs by an actor."""
    made = "with come() as pool:\n f = pool.get_or_create('f', Friend); c = Counter(5); f.know(c).result(5); print(f.ask('add', 2).result(5), f.known().result(5).add(1).result(5))"
    assert said(served, made) == ["7 8"]
    assert said(served, "with come() as pool:\n print(pool.get('f').known().result(5).add(1).result(5))") == ["9"]


def test_errors(served):
    """The same as in the program that has the pool."""
    out = said(served, """
with come() as pool:
    print(type(pool.create(Plain).fail().exception(5)).__name__, type(pool.create(Plain, 1, fail=True).add(1).exception(5).__cause__).__name__)
    print(repr(Counter().add(lambda: 0).exception(5))[:60])
    one = Counter()
    one.add(1).result(5)
    actors.kill(one)
    while not one.add(1).exception(5): pass
    print(one.add(1).exception(5))
    try: actors.get("none")
    except actors.ActorError as e: print(e)
    try: come()
    except actors.ActorError as e: print(e)
try: pool.get("x")
except actors.PoolClosed as e: print(e)
try: Counter()
except actors.ActorError as e: print(e)
with come() as pool: print(pool.stats()["slots"])
""")
    assert out[0] == "ZeroDivisionError ValueError" and "NotSent" in out[1] and out[2].endswith("was ended by SIGKILL"), out
    assert out[3:] == ["there is no actor by the name of 'none'", "this process is an actor, or attached to a pool already",
                       "this program is not attached to the pool any more", "there is no pool: with actors.Pool(slots=4): ...", "4"]


def test_much_of_it(served):
    """Threads of one program, each in its order; arrays; and what can be awaited."""
    out = said(served, """
import asyncio
import numpy as np
with come() as pool:
    counters = [Counter() for _ in range(4)]
    def work(one):
        assert [f.result(20) for f in [one.add(1) for _ in range(500)]] == list(range(1, 501))
    threads = [threading.Thread(target=work, args=[one]) for one in counters]
    [t.start() for t in threads]; [t.join() for t in threads]
    print([one.add(0).result(5) for one in counters])
    array = np.arange(1 << 20)
    assert (counters[0].echo(array).result(10) == array).all()
    async def asked():
        return await counters[1].add(1)
    stream = counters[0].count(100).result(5)
    assert list(stream) == list(range(100)) and stream.value == "over"
    endless = counters.pop()
    assert next(endless.forever().result(5)) == 501  # and nobody has it any more
    while endless.state().result(5)[1] != ["closed"]: time.sleep(0.01)
    print(asyncio.run(asked()), sorted(f.result() for f in actors.as_completed([one.add(1) for one in counters])))
""")
    assert out == ["[500, 500, 500, 500]", "501 [100, 501, 502]"]


def test_a_forked_child(served):
    """Has nothing of it, and does its parent no harm."""
    out = said(served, """
with come() as pool:
    one = Counter()
    one.add(1).result(5)
    if os.fork() == 0:
        try: pool.get("x")
        except actors.ActorError as e: print(e, flush=True)
        os._exit(0)
    os.wait()
    print(one.add(1).result(5))
""")
    assert out == ["this program is not attached to the pool any more", "2"]


def test_the_pool_ends():
    """Whoever waits for something of it is told."""
    with several(guests=True) as pool, program(pool, "pool = come(); one = Counter(); sleeping = one.sleep(60); print(1, flush=True); print(repr(sleeping.exception(20))); "
                                               "print(type(one.add(1).exception(5)).__name__)") as running:
        assert running.stdout.readline() == "1\n"
        pool.close()
        out, _ = running.communicate(timeout=20)
    assert "PoolClosed" in out and out.splitlines()[-1] == "PoolClosed", out


def test_who_asks_just_then():
    """While the connection breaks, nothing but PoolClosed comes of a call."""
    with several(guests=True) as pool, program(pool, """
pool = come()
one = Counter()
one.add(1).result(5)
print(1, flush=True)
while True:
    error = one.add(1).exception(20)
    if error is not None: break
print(repr(error)[:40], repr(one.add(bytes(1 << 20)).exception(5))[:40])
""") as running:
        assert running.stdout.readline() == "1\n"
        time.sleep(0.2)
        pool.close()
        out, _ = running.communicate(timeout=30)
    assert running.returncode == 0 and out.count("PoolClosed(") == 2, out


def test_a_program_beside_its_own_pool(served):
    """Handles of either are what they are; a handle of one goes to no actor of the other."""
    out = said(served, """
with come() as there, actors.Pool(slots=2) as here:
    one, other = here.create(Counter, 1), there.create(Counter, 10)
    print(one.add(1).result(5), other.add(1).result(5), here.create(Friend, one).known().result(5).add(1).result(5))
    print(type(here.create(Friend).know(other).exception(5)).__name__, type(there.create(Friend).know(one).exception(5)).__name__)
    print(actors.current() is here)
print(end="")
""")
    assert out[0] == "2 11 3" and out[2] == "True", out
    assert out[1] == "NotSent NotSent", out


# ---- who is let in

@pytest.mark.parametrize("what", ["another secret", "a host's proof", "a host's proof as a program's", "no such kind"])
def test_strangers(served, what):
    channel, pools = _reach.dial(socket.create_connection(("127.0.0.1", served.port), 5), _reach.client_context())
    ours, fingerprint = bytes(32), channel.fingerprint()
    hello = {"another secret": lambda: _proof.hello(_proof.GUEST, b"x" * 32, pools, ours, fingerprint),
             "a host's proof": lambda: _proof.hello(_proof.HOST, SECRET, pools, ours, fingerprint)[:33] + _proof.proof(SECRET, b"guest", pools, ours, fingerprint),
             "a host's proof as a program's": lambda: _proof.GUEST + _proof.hello(_proof.HOST, SECRET, pools, ours, fingerprint)[1:],
             "no such kind": lambda: b"X" + _proof.hello(_proof.HOST, SECRET, pools, ours, fingerprint)[1:]}[what]()
    channel.sendmsg([hello])
    with pytest.raises(ConnectionError):
        _reach.receive(channel, 32)
    assert served.stats()["hosts"] == 2 and not served._guests


def test_a_pool_of_one_program():
    """Nobody else comes to it, with the secret either."""
    with several(()) as pool, pytest.raises(OSError):
        _guest.dial(("127.0.0.1", pool.port), SECRET)


def test_who_says_what_no_program_does(served):
    """Is gone, and the pool is as it was."""
    from primus.actors import _wire
    for frames in ([(_wire.ASK, 0, b"short")], [(_wire.WISH, 0, b"x" * 100)], [(_wire.DROP, 5, b"")], [(_wire.STATE, 0, b"")], [(_wire.DONE, 0, b"")], [(99, 0, b"")]):
        channel = _guest.dial(("127.0.0.1", served.port), SECRET)
        for frame in frames:
            channel.sendmsg(_wire.framed(*frame))
        channel.close()
    one = served.create(Counter)
    assert one.add(1).result(5) == 1
    until(lambda: all(guest.over for guest in served._guests))


def test_another_python(served, monkeypatch):
    monkeypatch.setattr(_guest, "hello", lambda slots: {"python": [2, 7], "order": sys.byteorder, "protocol": 1})
    channel = _guest.dial(("127.0.0.1", served.port), SECRET)
    with pytest.raises(actors.ActorError, match="the program runs Python 2.7, and this is"):
        _guest.Attached(channel, 7)
    with pytest.raises(actors.ActorError, match="is no actor"):
        _guest._asker.pool_says("stats")


# ---- names

@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """What primusctl would say."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    jobs, calls = {}, []

    def run(arguments, text="", *descriptors):
        calls.append((arguments, text))
        if arguments[0] == "submit":
            if "refused" in text:
                raise NotStarted("a role's name: no")
            number = 418 + len(jobs)
            jobs[number] = {"state": "RUNNING", "executors": [{"role": "pool", "state": "RUNNING", "node": "n1", "ports": [7]}]}
            return f"{number}\n"
        if arguments[0] == "status":
            if int(arguments[-1]) not in jobs:
                raise _job.NoSuchJob("there is no job")
            return json.dumps(jobs[int(arguments[-1])])
        return json.dumps([{"name": "n1", "address": "10.0.0.1"}, {"name": "n2", "address": None}])

    monkeypatch.setattr(_job, "run", run)
    return jobs, calls


def test_serve_and_find(cluster, tmp_path):
    jobs, calls = cluster
    assert actors.serve("sims", hosts=2, slots=3, memory="1G", preload=["numpy"]) == 418
    config = json.loads(calls[0][1])
    assert [role["roleName"] for role in config["role"]] == ["pool", "actors"] and config["name"] == "actors-sims"
    assert config["role"][1]["argv"][-2:] == ["3", "--again"] and json.loads(config["role"][0]["argv"][-1])["preload"] == ["numpy"]
    path = tmp_path / "primus-actors/sims.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    job, secret = _serve.known("sims")
    assert job == 418 and len(secret) == 32 and secret.hex() not in str(calls) and _serve.place(418) == ("10.0.0.1", 7)
    jobs[418]["executors"][0]["node"] = "n2"
    assert _serve.place(418) == ("n2", 7)
    jobs[418]["executors"][0]["state"] = "PENDING"
    assert _serve.place(418) is None
    with pytest.raises(actors.ActorError, match="is there already: job 418"):
        actors.serve("sims", hosts=1)
    jobs[418] |= {"state": "KILLED", "reason": "by uid 1000"}
    with pytest.raises(actors.ActorError, match="job 418 has ended: by uid 1000"):
        actors.attach("sims")
    assert actors.serve("sims", hosts=1) == 419 and _serve.known("sims")[1] != secret
    del jobs[419]
    assert actors.serve("sims", hosts=1) == 419, "of one that is forgotten"


def test_the_master_is_away(cluster, monkeypatch, tmp_path):
    """Then nobody knows whether the pool is there: its secret is kept, and who attaches waits."""
    actors.serve("kept", hosts=1)
    before, there = (tmp_path / "primus-actors/kept.json").read_text(), _job.run

    def away(*arguments):
        raise NotStarted("masterd does not run here")

    monkeypatch.setattr(_job, "run", away)
    with pytest.raises(NotStarted, match="does not run here"):
        actors.serve("kept", hosts=1)
    with pytest.raises(actors.ActorError, match="not to be had: masterd does not run here"):
        actors.attach("kept", seconds=0.3)
    assert (tmp_path / "primus-actors/kept.json").read_text() == before
    monkeypatch.setattr(_job, "run", there)
    with pytest.raises(actors.ActorError, match="is there already"):
        actors.serve("kept", hosts=1)


def test_what_primusctl_says():
    """With --json and without."""
    said = json.dumps({"error": {"name": "org.primus.Error.NoSuchJob", "message": "there is no job 7"}})
    for text, kind, sentence in ((said, _job.NoSuchJob, "there is no job 7"), (said.replace("NoSuchJob", "Busy"), NotStarted, "there is no job 7"),
                                 ("primusctl: no", NotStarted, "primusctl: no"), ("", NotStarted, "primusctl has ended with status 3"), ("[]", NotStarted, "[]")):
        error = _job._refused(text, 3)
        assert type(error) is kind and str(error) == sentence


def test_serve_refused(cluster, tmp_path):
    """What is refused leaves nothing that later ones stumble over."""
    for name in ("", "../x", "a/b", "-x", ".x", "x" * 49, "a b", "ü"):
        with pytest.raises(ValueError, match="is no name of a pool"):
            actors.serve(name, hosts=1)
    with pytest.raises(NotStarted, match="a role's name"):
        actors.serve("refused", hosts=1)
    assert list((tmp_path / "primus-actors").iterdir()) == []
    with pytest.raises(actors.ActorError, match=r"no pool by the name of 'none': actors.serve\('none', hosts=…\) makes one"):
        actors.attach("none")
    actors.serve("open", hosts=1)
    path = tmp_path / "primus-actors/open.json"
    path.chmod(0o644)
    with pytest.raises(actors.ActorError, match="others could have written or read it"):
        actors.attach("open")
    path.chmod(0o600)
    for text in (json.dumps({"job": None, "secret": "00"}), "", "{", "[]", '{"job": 418, "secret": "x"}'):
        path.write_text(text)
        for do in (lambda: actors.serve("open", hosts=1), lambda: actors.attach("open")):
            with pytest.raises(actors.ActorError, match="is just being made"):
                do()


def test_not_to_be_had(cluster, monkeypatch):
    """Who waits for a pool is told what it waits for."""
    jobs, _ = cluster
    actors.serve("late", hosts=1)
    jobs[418]["executors"] = []
    began = time.monotonic()
    with pytest.raises(actors.ActorError, match="it does not run yet: primusctl why"):
        actors.attach("late", seconds=0.5)
    assert 0.4 < time.monotonic() - began < 5
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        jobs[418]["executors"] = [{"role": "pool", "state": "RUNNING", "node": "127.0.0.1", "ports": [nobody.getsockname()[1] + 0]}]
        nobody.close()
        with pytest.raises(actors.ActorError, match="127.0.0.1:[0-9]+: .*refused"):
            actors.attach("late", seconds=0.3)
