# SPDX-License-Identifier: Apache-2.0
"""Memory that a program and its actors share for large arrays."""
import gc
import mmap
import os
import pathlib
import random
import signal
import sys
import threading

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

from acting import Counter, Friend, Keeper, Plain  # noqa: E402
from acting_hosts import until  # noqa: E402
from primus import actors  # noqa: E402
from primus.actors import _arena, _wire  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def pool():
    with actors.Pool(slots=3, shared="4M") as pool:
        yield pool


def arena_of(handle):
    return handle._life.connection._arena


def pair(size):
    fd = _arena.file(size)
    return _arena.Arena(os.dup(fd), False), _arena.Arena(fd, True)


def free(arena):
    return sum(end - begin for begin, end in arena._free)


# ---- what is given out

def test_blocks_are_given_out_and_come_back():
    """At random, in either half; they never overlap, and in the end all of it is one piece again."""
    r = random.Random(1)
    one, other = pair(8 * MIB)
    for writes, reads, begin in ((one, other, 0), (other, one, 4 * MIB)):
        assert writes._free == [(begin, begin + 4 * MIB)]
        held = {}
        for n in range(2000):
            buffers = [memoryview(bytes([n % 256]) * r.randrange(1, 300000)) for _ in range(r.randrange(1, 4))]
            places = writes.put(buffers)
            if places is not None:
                assert [size for _, size in places] == [b.nbytes for b in buffers] and begin <= places[0][0] and sum(places[-1]) <= begin + 4 * MIB
                held[places[0][0]] = n % 256, reads.views(places)
            for block in [block for block in held if r.random() < 0.3]:
                value, views = held.pop(block)
                assert all(bytes(view[:1]) == bytes(view[-1:]) == bytes([value]) for view in views)
                del views
                assert reads.gone.pop() == block
                writes.give_back(block)
        for block in list(held):
            del held[block]
        view = views = None
        while reads.gone:
            writes.give_back(reads.gone.popleft())
        assert writes._free == [(begin, begin + 4 * MIB)] and not writes._taken and not reads._views


def test_what_is_none():
    one, other = pair(8 * MIB)
    few, many = memoryview(bytes(1000)), memoryview(bytes(5 * MIB))
    assert one.put([few]) is None and one.put([many]) is None, "too few bytes for it, and too many"
    places = one.put([memoryview(bytes(MIB))])
    for wrong in ([], [(4 * MIB, MIB)], [(0, 4 * MIB + 1)], [(4 * MIB - 1, 2)], [(1 << 63, 10)], [(0, 1 << 63)], [*places, (5 * MIB, 1)]):
        with pytest.raises(ValueError, match="no place"):
            other.views(wrong)
    with pytest.raises(ValueError, match="not given"):
        one.give_back(MIB)
    one.give_back(0)
    with pytest.raises(ValueError, match="not given"):
        one.give_back(0)
    with pytest.raises(OSError):
        os.ftruncate(sealed := _arena.file(MIB), 1)
    with pytest.raises(OSError):
        os.ftruncate(sealed, 2 * MIB)
    os.close(sealed)


def test_frames_without_shared_memory():
    """Who says that something lies in memory that is not shared is not believed."""
    import socket
    a, b = socket.socketpair()
    a.sendall(b"".join(_wire.shared(_wire.CALL, 1, b"x", [(0, 10)])))
    reader = _wire.Reader(b)
    reader.read(True)
    with pytest.raises(_wire.Malformed):
        list(reader.frames())
    a.sendall(b"".join(_wire.shared(_wire.CALL, 1, b"x", [(0, 10)])))
    reader = _wire.Reader(b)
    reader.arena = pair(8 * MIB)[0]
    reader.read(True)
    with pytest.raises(_wire.Malformed, match="no place"):
        list(reader.frames())


# ---- actors

def test_arrays_lie_there(pool):
    """In both directions; they can be written to where they are, and nobody else's change."""
    one, array = Counter(), np.arange(MIB, dtype=np.uint8)
    before = free(arena_of(one))
    back = one.change(array).result()
    assert back[0] == 1 and array[0] == 0 and (back[1:] == array[1:]).all()
    back[:] = 5
    assert one.takes(back).result() == 5
    assert any("primus-actors" in line for line in pathlib.Path(f"/proc/{pool.pid(one)}/maps").read_text().splitlines())
    del back
    gc.collect()
    until(lambda: one.add(1).result() and free(arena_of(one)) == before)


def test_more_than_there_is(pool):
    """What does not fit goes through the socket: arrays that are kept, and one that is too large."""
    one = Counter()
    kept = [one.echo(np.full(MIB, n, dtype=np.uint8)).result() for n in range(12)]
    assert [int(a[0]) for a in kept] == list(range(12)) and [int(a[-1]) for a in kept] == list(range(12))
    large = np.full(9 * MIB, 3, dtype=np.uint8)
    assert (one.echo(large).result() == large).all()
    held = Friend(one)
    assert held.ask("takes", kept[5]).result() == 5 and (held.ask("echo", kept[6]).result() == 6).all()


def test_it_is_no_leak(pool):
    one, array = Counter(), np.ones(MIB, dtype=np.uint8)
    for n in range(200):
        array[0] = n
        assert int(one.echo(array).result()[0]) == n
    assert free(arena_of(one)) >= 2 * MIB
    futures = [one.echo(array) for _ in range(30)]
    assert all((f.result() == array).all() for f in futures)


def test_who_dies(pool, at_once):
    """What was got from it is here still; the next one has memory of its own; nothing is left open."""
    one = actors.remote(restarts=float("inf"))(Plain)()
    held = one.echo(np.full(MIB, 7, dtype=np.uint8)).result()
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        pid = pool.pid(one)
        os.kill(pid, signal.SIGKILL)
        until(lambda: pool.pid(one) not in (None, pid), 20)
        assert (one.echo(held).result(20) == 7).all()
    gc.collect()
    assert (held == 7).all() and len(os.listdir("/proc/self/fd")) <= descriptors + 2
    keeper = Keeper(5)
    keeper.add(1).result()
    pid = pool.pid(keeper)
    os.kill(pid, signal.SIGKILL)
    until(lambda: pool.pid(keeper) not in (None, pid), 20)
    assert keeper.add(1).result(20) == 7


def test_where_there_is_none():
    with pytest.raises(TypeError, match="shared is for a pool on this host"):
        actors.Pool(hosts=2, shared="1M")
    before = threading.active_count()
    with pytest.raises(ValueError, match="is no size"):
        actors.Pool(slots=1, shared="much")
    assert threading.active_count() == before, "nothing of it has begun"
    with actors.Pool(slots=1) as pool:
        assert arena_of(pool.create(Plain)) is None
    assert mmap.PAGESIZE == _arena.BLOCK
