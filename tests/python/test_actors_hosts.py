# SPDX-License-Identifier: Apache-2.0
"""primus.actors on several hosts (all of them this one): who is let in, hosts that come, go and lie, and calls to actors that are not
there yet."""
import asyncio
import contextlib
import json
import os
import pathlib
import pickle
import secrets
import signal
import socket
import sys
import threading
import time
import warnings

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

from acting import Counter  # noqa: E402
from acting_hosts import SECRET, children, several, until  # noqa: E402
from primus import actors  # noqa: E402
from primus.actors import _door, _hello, _job, _proof, _reach, _register, _tls, _wire, host, listing  # noqa: E402


@pytest.fixture
def pool():
    with several() as pool:
        yield pool


@pytest.fixture
def empty():
    """No host has come yet."""
    with several(()) as pool:
        yield pool


# ---- who is let in

class Evil:
    """Leaves a mark when it is read."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return pathlib.Path.touch, (pathlib.Path(self.mark),)


def dialled(pool):
    """(a Channel, what the pool has said), as anybody can."""
    return _reach.dial(socket.create_connection(("127.0.0.1", pool.port), 5), _reach.client_context())


def is_ended(channel):
    """The other end has closed it."""
    try:
        _reach.receive(channel, 1)
    except ConnectionError:
        return True
    return False


def hello_of(secret, channel, pools, ours=bytes(32), fingerprint=None):
    return _proof.hello(_proof.HOST, secret, pools, ours, fingerprint or channel.fingerprint())


HELLOS = {
    "another secret": lambda channel, pools: hello_of(b"x" * 32, channel, pools),
    "no secret": lambda channel, pools: hello_of(b"", channel, pools),
    "another certificate": lambda channel, pools: hello_of(SECRET, channel, pools, fingerprint=bytes(32)),
    "another number": lambda channel, pools: hello_of(SECRET, channel, bytes(32)),
    "the pool's proof": lambda channel, pools: _proof.HOST + bytes(32) + _proof.proof(SECRET, b"pool", bytes(32), pools, channel.fingerprint()),
    "no token": lambda channel, pools: _proof.actor_hello(bytes(32)),
    "a right one with more behind it": lambda channel, pools: hello_of(SECRET, channel, pools),
    "a right one and more at once": lambda channel, pools: hello_of(SECRET, channel, pools) + b"x",
    "a kind that is none": lambda channel, pools: b"X" + hello_of(SECRET, channel, pools)[1:],
}


@pytest.mark.parametrize("what", HELLOS)
def test_strangers(empty, tmp_path, what):
    """Refused, and nothing of what they say behind that is looked at."""
    channel, pools = dialled(empty)
    mark = tmp_path / "mark"
    evil = pickle.dumps(Evil(str(mark)))
    channel.sendmsg([HELLOS[what](channel, pools)])
    if what == "a right one with more behind it":
        _reach.receive(channel, _proof.SIZE)
    with contextlib.suppress(OSError):
        channel.sendmsg([*_wire.framed(_wire.DONE, 0, evil), *_wire.framed(_wire.TOLD, 0, evil)])
    assert is_ended(channel) and not mark.exists() and empty.stats()["hosts"] == 0


def test_no_tls(empty):
    """Neither bytes at random, nor an older TLS, nor a hello without any."""
    for said in [secrets.token_bytes(4000), b"GET / HTTP/1.0\r\n\r\n", _proof.hello(_proof.HOST, SECRET, bytes(32), bytes(32), bytes(32)), b"\x16\x03\x01\xff\xff" + bytes(70000)]:
        with socket.create_connection(("127.0.0.1", empty.port), 5) as s, contextlib.suppress(ConnectionError):
            s.sendall(said)
            while s.recv(65536):  # an alert
                pass
    old = _reach.client_context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.minimum_version = old.maximum_version = _tls.ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError, match="(?i)protocol version"):
        _reach.dial(socket.create_connection(("127.0.0.1", empty.port), 5), old)


def test_silent_strangers(empty):
    """More of them than are heard at a time do not keep a host out."""
    with contextlib.ExitStack() as opened:
        for _ in range(2 * _door.STRANGERS_MAX):
            opened.enter_context(socket.create_connection(("127.0.0.1", empty.port), 5))
        shaken = [dialled(empty)[0] for _ in range(10)]
        began = time.monotonic()
        empty.hosts_of_test.start("n1")
        assert Counter(1).add(1).result(10) == 2 and time.monotonic() - began < _door.SECONDS
        until(lambda: not empty._door._strangers, 2 * _door.SECONDS)
        assert all(map(is_ended, shaken))


def test_a_token_is_known_once(pool):
    one = Counter()
    [token] = pool._tokens.values()
    assert one.add(1).result() == 1
    channel, _ = dialled(pool)
    channel.sendmsg([_proof.actor_hello(token)])
    assert is_ended(channel) and one.add(1).result() == 2


def accepted(server, context):
    """(its socket, a Channel) of who connects next."""
    s, _ = server.accept()
    channel = _tls.Channel(s, context, True)
    while True:
        channel.fill(0)
        if channel.shake():
            return s, channel


def test_in_between(empty, tmp_path):
    """Who has taken the pool's address, and carries on what both say, has another certificate: neither a host nor an actor takes it."""
    pem, fingerprint = _tls.certificate()
    context = _tls.server_context(pem)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()

        def carry():
            s, channel = accepted(server, context)
            to, pools = dialled(empty)
            channel.sendmsg([pools])
            with contextlib.suppress(OSError):
                to.sendmsg([_reach.receive(channel, _proof.HELLO)])
                channel.sendmsg([_reach.receive(to, _proof.SIZE)])
            s.close()
        carrier = threading.Thread(target=carry)
        carrier.start()
        with pytest.raises(OSError):
            host.connect([address], SECRET, _reach.client_context())
        carrier.join()
    assert empty.stats()["hosts"] == 0
    # One that even answers, without the secret.
    with socket.create_server(("127.0.0.1", 0)) as server:
        def lie():
            s, channel = accepted(server, context)
            channel.sendmsg([bytes(32)])
            _reach.receive(channel, _proof.HELLO)
            channel.sendmsg([bytes(32)])
            s.close()
        liar = threading.Thread(target=lie)
        liar.start()
        with pytest.raises(PermissionError, match="has not the job's secret"):
            host.connect([server.getsockname()], SECRET, _reach.client_context())
        liar.join()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT), 2)
        _reach.reach(socket.create_connection(("127.0.0.1", empty.port), 5), _reach.client_context(), fingerprint, bytes(32))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == _reach.UNREACHED


# ---- hosts that lie, or are of another kind

def joined(pool, **more):
    """Frames to a pool that takes this for a host of its own."""
    _, _, frames = host.connect([("127.0.0.1", pool.port)], SECRET, _reach.client_context())
    frames.send(json.dumps({**_hello.hello(2), "host": "liar", **more}).encode(), flags=0)
    return frames


def next_of(frames):
    while not (said := frames.receive(True)):
        pass
    return said[0]


@pytest.mark.parametrize("more, why", [({"python": [3, 4]}, "liar runs Python 3.4"), ({"order": "middle"}, "byte order"), ({"protocol": 0}, "another version")])
def test_unlike(empty, more, why):
    with pytest.warns(RuntimeWarning, match=why):
        said = next_of(joined(empty, **more))
    assert why in said["refused"] and empty.stats()["hosts"] == 0


LIES = {
    "no JSON": b"{",
    "a list": b"[1]",
    "of nobody": b'{"died": 99, "status": 0}',
    "of another host's": b'{"died": 0, "status": 9}',
    "no status": b'{"died": 1, "status": {}}',
    "another's id": b'{"started": {}, "pid": 1}',
    "too much": b'"' + b"x" * _wire.PACKET_MAX + b'"',
    "nothing that is known": b'{"hello": 1}',
}


@pytest.mark.parametrize("what", LIES)
def test_a_host_that_lies(empty, what):
    """Others' actors are none of its business; what it may not say ends it alone."""
    empty.hosts_of_test.start("n1", 1)
    one = Counter()
    assert one.add(1).result(10) == 1
    frames = joined(empty)
    assert "preload" in next_of(frames)
    frames.send(b'{"ready": true}', flags=0)
    until(lambda: empty.stats()["hosts"] == 2)
    other = Counter()
    assert next_of(frames)["start"] == 1
    calling = other.add(1)
    frames.send(LIES[what], flags=0)
    if what not in ("of nobody", "of another host's"):
        assert isinstance(calling.exception(10), actors.HostLost) and "liar" in str(calling.exception())
        until(lambda: empty.stats()["hosts"] == 1)
    assert one.add(1).result(5) == 2
    frames.close()
    assert isinstance(calling.exception(10), actors.HostLost)


@pytest.mark.parametrize("said", [b"[]", b'{"host": "x"}', b'{"host": "x", "slots": "many"}', b'{"died": 1}', b"\xff"])
def test_a_host_that_cannot_greet(empty, said):
    _, _, frames = host.connect([("127.0.0.1", empty.port)], SECRET, _reach.client_context())
    frames.send(said, flags=0)
    with pytest.raises(ConnectionError):
        next_of(frames)
    empty.hosts_of_test.start("n1")
    assert Counter().add(1).result(10) == 1


def actor_of_a_liar(pool):
    """(Frames of its host, its Channel, a call to it): it is let in, and says nothing."""
    frames = joined(pool)
    next_of(frames)
    frames.send(b'{"ready": true}', flags=0)
    one = Counter()
    token = bytes.fromhex(next_of(frames)["token"])
    channel, _ = dialled(pool)
    channel.sendmsg([_proof.actor_hello(token)])
    calling = one.add(1)
    _reach.receive(channel, 1)
    return frames, channel, calling


def test_an_actor_that_says_too_much(empty):
    """An answer of sizes that nobody has memory for ends its connection."""
    frames, channel, calling = actor_of_a_liar(empty)
    channel.sendmsg([_wire.HEADER.pack(0, _wire.DONE, 0, 1, 1) + (1 << 62).to_bytes(8, sys.byteorder)])
    frames.send(b'{"died": 0, "status": 9}', flags=0)
    assert isinstance(calling.exception(10), actors.ActorDied)
    frames.close()


def test_an_actor_that_stays(empty):
    """Its host says that it has died, and its connection does not end: nobody waits for that for ever."""
    frames, channel, calling = actor_of_a_liar(empty)
    frames.send(b'{"died": 0, "status": 9}', flags=0)
    began = time.monotonic()
    assert calling.exception().signal == 9 and time.monotonic() - began < 7
    frames.close()


def test_preload_that_one_host_lacks():
    with several((), preload=["no_such_module"]) as pool:
        one = Counter()
        calling = one.add(1)
        assert pool.hosts_of_test.start("n1").wait(10) == host.REFUSED
        with pytest.raises(actors.PreloadRefused, match="n1: preload: no_such_module cannot be imported"):
            calling.result(10)


class Seen:
    """What an actor sees of GPUs."""

    def gpus(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES")


def test_gpus(monkeypatch):
    """Each actor has its own; who comes later has what was given back."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c,GPU-d")
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "none")
    with several(["n1"], 2, gpus=2) as pool:
        one, other = pool.create(Seen), pool.create(Seen)
        assert sorted([one.gpus().result(10), other.gpus().result(10)]) == ["GPU-a,GPU-b", "GPU-c,GPU-d"]
        had = one.gpus().result()
        third = pool.create(Seen)
        actors.kill(one)
        assert third.gpus().result(10) == had
    with several((), gpus=3) as pool:
        calling = pool.create(Seen).gpus()
        assert pool.hosts_of_test.start("n1", 2).wait(10) == host.REFUSED
        with pytest.raises(actors.HostRefused, match="n1: gpus: 2 slots of 3 GPUs each, and this host's executor has 4"):
            calling.result(10)
    with several(["n1"], 1) as pool:
        assert pool.create(Seen).gpus().result(10) == "GPU-a,GPU-b,GPU-c,GPU-d", "what the executor has"


# ---- hosts that come and go

def test_actors_that_wait_for_a_host(empty):
    """Calls are kept until there is one; what is told of them comes; a handle may go before."""
    one, other, gone = Counter(1), Counter(2), Counter(3)
    array, told = np.arange(100000.), threading.Event()
    echo = one.echo(array)
    array[0] = 7  # what was sent is sent
    calling = [one.add(1), other.add(1), gone.add(1)]
    calling[0].add_done_callback(lambda _: told.set())
    assert not actors.wait(calling, 0.05)[0] and empty.stats() == {"hosts": 0, "slots": 0, "running": 0, "waiting": 3, "limited": 0}
    with pytest.raises(TimeoutError):
        calling[1].result(0.05)
    dropped = one.mark("/nowhere/at/all", "x")
    assert dropped.cancel()
    del gone
    awaited = threading.Thread(target=lambda: asyncio.run(_await(other, found)))
    found = []
    awaited.start()
    empty.hosts_of_test.start("n1", 3)
    assert [c.result(10) for c in calling] == [2, 3, 4] and told.wait(5)
    awaited.join(10)
    assert found == [3] and echo.result()[0] == 0 and echo.result().nbytes == array.nbytes
    assert empty.host(one) == "n1" and isinstance(empty.pid(one), int)
    actors.kill(one)
    until(lambda: empty.stats()["running"] == 1)  # and the third has gone


async def _await(one, found):
    found.append(await one.add(0))


def test_killed_before_it_came(empty):
    one = Counter()
    calling = one.add(1)
    actors.kill(one)
    assert isinstance(calling.exception(5), actors.ActorDied) and isinstance(one.add(1).exception(5), actors.ActorDied)
    # And where a host has taken it, and it does not come.
    frames = joined(empty)
    next_of(frames)
    frames.send(b'{"ready": true}', flags=0)
    other = Counter()
    calling = other.add(1)
    assert next_of(frames)["start"] == 1
    frames.send(b'{"died": 1, "status": %d}' % (_reach.UNREACHED << 8), flags=0)
    assert calling.exception(5).status == _reach.UNREACHED
    frames.close()


def test_closed_before_any_came(empty):
    calling = Counter().add(1)
    empty.close()
    assert isinstance(calling.exception(5), actors.PoolClosed)


def test_much_is_said_before_it_came(empty):
    """More than is kept: the caller waits."""
    one, done = Counter(), threading.Event()
    array = np.zeros(1 << 20)

    def call():
        futures = [one.echo(array) for _ in range(6)]
        done.set()
        assert all(f.result().nbytes == array.nbytes for f in futures)
        ended.set()
    ended = threading.Event()
    calling = threading.Thread(target=call)
    calling.start()
    assert not done.wait(0.3)
    empty.hosts_of_test.start("n1")
    assert done.wait(10) and ended.wait(10)
    calling.join()


@pytest.mark.parametrize("whom", ["process", "zygote"])
def test_a_host_goes(pool, whom):
    """Its actors are lost, others are not; what waited for a slot gets one of the next host that comes."""
    made = [Counter(i) for i in range(5)]
    assert [one.add(0).result(10) for one in made[:4]] == [0, 1, 2, 3]
    lost = [one for one in made if pool.host(one) == "n1"]
    kept = [one for one in made[:4] if one not in lost]
    sleeping = [one.sleep(60) for one in lost]
    [process] = [p for p in pool.hosts_of_test.processes[:1]]
    began = time.monotonic()
    os.kill(process.pid if whom == "process" else children(process.pid)[0], signal.SIGKILL)
    for future in sleeping:
        assert isinstance(future.exception(5), actors.ActorDied)
    assert time.monotonic() - began < 5
    process.wait(5)
    until(lambda: pool.stats()["hosts"] == 1)
    assert isinstance(lost[0].add(1).exception(5), actors.HostLost) and "was on n1, which is gone" in str(lost[0].add(1).exception())
    assert [one.add(1).result(5) for one in kept] and pool.stats()["waiting"] == 1
    pool.hosts_of_test.start("n3")
    assert made[4].add(0).result(10) == 4 and pool.host(made[4]) == "n3"


@pytest.mark.parametrize("how, status", [("kill", 1), ("end", 2)])
def test_a_zygote_that_is_not_ready(tmp_path, monkeypatch, how, status):
    """One that is killed meanwhile is tried again; what a module does to it is said, and not tried again."""
    (tmp_path / "slowly.py").write_text("import os, time\nopen(os.environ['MARK'], 'w').close()\ntime.sleep(60 if os.environ['HOW'] == 'kill' else 0)\nos._exit(3)\n")
    for name, value in (("MARK", str(tmp_path / "mark")), ("HOW", how)):
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    with several((), preload=["slowly"]) as pool:
        process = pool.hosts_of_test.start("n1")
        until((tmp_path / "mark").exists, 20)
        if how == "kill":
            os.kill(children(process.pid)[0], signal.SIGKILL)
        assert process.wait(10) == status
        if how == "kill":
            assert pool.why_over() is None and "waits for a host" in pool.why(pool.create(dict))
        else:
            until(lambda: isinstance(pool.why_over(), actors.PreloadRefused))


def test_a_host_stops(pool):
    """Its processes do not run on, and its kernel answers: that is no host that is gone, and calls wait."""
    one = Counter()
    one.add(1).result()
    pid = pool.pid(one)
    os.kill(pid, signal.SIGSTOP)
    calling = one.add(1)
    with pytest.raises(TimeoutError):
        calling.result(_tls.GONE_MS / 1000 + 2)
    os.kill(pid, signal.SIGCONT)
    assert calling.result(5) == 2


def test_of_a_job():
    """Where the pool is, and by what."""
    assert host.addresses({"MASTER_ADDR": "fd00::1", "MASTER_PORT": "7"}) == [("fd00::1", 7)]
    assert host.addresses({"PRIMUS_ACTORS": "10.0.0.1:7,[fd00::1]:8", "MASTER_ADDR": "x", "MASTER_PORT": "7"}) == [("10.0.0.1", 7), ("fd00::1", 8)]
    with pytest.raises(actors.ActorError, match="where is the pool"):
        host.addresses({})
    with pytest.raises(actors.ActorError, match="primusctl submit --secret actors=FILE"):
        host.secret({"PRIMUS_SECRETS_DIR": "/nowhere"})
    with pytest.raises(ValueError, match="at least 16 bytes"):
        actors.Pool.of_job(port=0, secret=b"short")
    with pytest.raises(TypeError, match="for a pool of several hosts"):
        actors.Pool(cpus=1)
    for wrong in ({"hosts": 0}, {"hosts": 2, "memory": "much"}, {"hosts": "two"}):
        with pytest.raises(ValueError, match="hosts is a number|is no size"):
            actors.Pool(slots=1, address=["127.0.0.1"], **wrong)
    assert not [t for t in threading.enumerate() if t.name.startswith("primus-actors")]
    with pytest.raises(actors.ActorError, match="MASTER_PORT is not set"):
        actors.Pool.of_job()
    assert _job.configuration(3, 4, 0.5, "1.5G", 2)["role"][0].items() >= {"num": 3, "minNum": 1, "vcores": 2, "memoryMb": 6144, "gpuNum": 8}.items()


def test_without_openssl(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(actors.NotStarted, match="which the program openssl makes"):
        actors.Pool.of_job(port=0, secret=SECRET)
    (tmp_path / "openssl").symlink_to("/bin/false")
    with pytest.raises(actors.NotStarted, match="openssl has made no certificate"):
        actors.Pool.of_job(port=0, secret=SECRET)


# ---- restarts

Again = actors.remote(restarts=2)(Counter.local)


def test_it_is_made_again(pool, at_once):
    """By its constructor, on whichever host; what was under way is lost, what is called behind that waits; then it is over."""
    one = Again(5)
    assert one.add(1).result() == 6
    on, sleeping = pool.host(one), one.sleep(60)
    pool.hosts_of_test.processes[["n1", "n2"].index(on)].kill()
    assert isinstance(sleeping.exception(5), actors.HostLost)
    assert one.add(1).result(10) == 6 and pool.host(one) not in (None, on)
    os.kill(pool.pid(one), signal.SIGKILL)
    under_way = one.sleep(60)
    assert under_way.exception(5).signal == signal.SIGKILL and one.add(2).result(10) == 7
    os.kill(pool.pid(one), signal.SIGKILL)
    assert isinstance(one.sleep(60).exception(5), actors.ActorDied)
    assert isinstance(one.add(2).exception(5), actors.ActorDied) and pool.stats()["waiting"] == 0


def test_not_made_again(pool):
    """Who is killed or has exited with 0 has meant it; nor where nobody has a handle any more."""
    killed, left, dropped = Again(), Again(), Again()
    assert [one.add(1).result() for one in (killed, left, dropped)] == [1, 1, 1]
    actors.kill(killed)
    assert isinstance(left.exit(0).exception(5), actors.ActorDied)
    del dropped
    until(lambda: pool.stats()["running"] == 0)
    assert [isinstance(one.add(1).exception(5), actors.ActorDied) for one in (killed, left)] == [True, True] and pool.stats()["waiting"] == 0
    with pytest.raises(ValueError, match="not below 0"):
        actors.remote(restarts=-1)(Counter.local)


def test_it_dies_at_once(pool):
    """One that has lived for a moment is made again a while later: no storm of processes. It may be killed meanwhile."""
    one, other = actors.remote(restarts=float("inf"))(Counter.local)(), Again()
    for dies in (one, other):
        assert dies.add(1).result() == 1
        os.kill(pool.pid(dies), signal.SIGKILL)
    until(lambda: pool.stats()["running"] == 0)
    calling, never, began = one.add(1), other.add(1), time.monotonic()
    actors.kill(other)
    assert isinstance(never.exception(5), actors.ActorDied)
    assert calling.result(10) == 1 and 3 < time.monotonic() - began < 8 and pool.stats() == {"hosts": 2, "slots": 4, "running": 1, "waiting": 0, "limited": 0}


def test_its_arguments_are_kept(pool, at_once):
    array = np.zeros(1 << 20)
    one = Again(array)
    array[:] = 9
    os.kill(until_known(pool, one), signal.SIGKILL)
    until(lambda: pool.pid(one) is None)
    assert one.add(1).result(10).sum() == array.size


def until_known(pool, one):
    until(lambda: pool.pid(one) is not None)
    return pool.pid(one)


def test_a_constructor_that_takes_long(empty):
    """Much is said to it before it is there; the thread that hears the others does not wait for it to listen."""
    slow, array = empty.create(Slow, _tls.GONE_MS / 1000 + 2), np.zeros(1 << 20)
    echo = slow.echo(array)
    empty.hosts_of_test.start("n1")
    other = Counter()
    assert other.add(1).result(10) == 1
    began = time.monotonic()
    os.kill(empty.pid(other), signal.SIGKILL)
    assert isinstance(other.sleep(60).exception(2), actors.ActorDied)
    until(lambda: empty.stats()["running"] == 1, 2)
    assert time.monotonic() - began < 2 and echo.result(10).nbytes == array.nbytes


class Slow:
    def __init__(self, seconds):
        time.sleep(seconds)

    def echo(self, value):
        return value


# ---- what there is on a host

def test_who_asks_on_the_host(monkeypatch, tmp_path):
    """Those that live, by name; what a process before has left is taken away, and one that has another's number is not taken for it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(_register.tempfile, "tempdir", None)
    left = tmp_path / "primus-actors--"
    left.mkdir()
    os.symlink("1 Old 1", left / "1")
    with several(names=("n1",)) as pool:
        one = pool.create(Counter, 5)
        assert one.add(1).result() == 6
        until(lambda: [actor["actor"] for actor in listing.actors({})] == ["Plain 0"])
        [actor] = listing.actors({})
        assert actor["pid"] == pool.pid(one) and actor["memory"] > 1 << 20 and abs(actor["began"] / 1e6 - time.time()) < 60 and actor["state"] in "SR"
        os.symlink(f"{_register.began(os.getpid()) + 1} Another", left / str(os.getpid()))
        assert len(listing.actors({})) == 1 and listing.kill({}, "Another") == [] and listing.kill({}, "Plain") == []
        other = pool.create(Counter, 7)
        other.add(0).result()
        [ended] = listing.kill({}, "Plain 1")
        until(lambda: isinstance(other.add(0).exception(5), actors.ActorDied))
        assert ended["actor"] == "Plain 1" and one.add(0).result(5) == 6 and listing.kill({}, "Plain 1") == []
        del one
        until(lambda: not listing.actors({}))
    assert listing.actors({"PRIMUS_ROLE": "../..", "PRIMUS_INDEX": "0"}) == []


def test_more_at_once_than_the_door_hears(monkeypatch):
    """Actors of a pool do not push each other out while they connect: no more are started at a time than are heard, also where some die or
    a host is lost meanwhile."""
    monkeypatch.setattr(_door, "STRANGERS_MAX", 8)
    monkeypatch.setattr("primus.actors.pool.CONNECTING_MAX", 4)
    with several(slots=20) as pool:
        most, expect = [0], pool._door.expect
        monkeypatch.setattr(pool._door, "expect", lambda came: (expect(came), most.append(pool._door.expecting()))[0])
        made = [pool.create(Counter, n) for n in range(40)]
        assert [f.result(20) for f in [one.add(0) for one in made]] == list(range(40)) and max(most) <= 4
        del made
        until(lambda: pool.stats()["running"] == 0)
        made = [pool.create(Counter, n) for n in range(40)]
        pool.hosts_of_test.processes[0].kill()
        until(lambda: pool.stats()["running"] == 20 and pool.stats()["hosts"] == 1, 20)
        answers = [one.add(0).exception(20) for one in made if pool.host(one)]
        assert answers == [None] * 20
