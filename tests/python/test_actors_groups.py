# SPDX-License-Identifier: Apache-2.0
"""Control groups of actors: what is written where, and what an end for want of memory becomes. That the kernel does what it is told is
seen in a virtual machine (tests/vm/actors_inside.py)."""
import pathlib
import pickle
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python"), str(HERE.parent)]

from acting_hosts import several, until  # noqa: E402
from primus import actors  # noqa: E402
from primus.actors import _groups, _size, errors  # noqa: E402

MIB = 1 << 20


@pytest.fixture
def top(monkeypatch, tmp_path):
    """An executor's group with the files that the kernel has there, and in .written what was written, in its order."""
    class Top(type(tmp_path)):
        written = []

    def write(path, text):
        Top.written.append((str(path).removeprefix(f"{tmp_path}/"), str(text)))

    monkeypatch.setattr(_groups, "_write", write)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.procs").write_text("7\n8\n")
    (tmp_path / "pids.max").write_text("16384\n")
    return Top(tmp_path)


def test_divide(top):
    """Nobody is left in the group itself when its controllers are given on; a second time does no harm."""
    for _ in range(2):
        _groups.divide(top)
        assert top.written == [("pool/cgroup.procs", "7"), ("pool/cgroup.procs", "8"), ("cgroup.subtree_control", "+memory +pids +cpu")]
        top.written.clear()


def test_divide_waits_for_who_begins(top, monkeypatch):
    """The kernel refuses while there is a process; one that never goes is said."""
    write, refused = _groups._write, []

    def busy(path, text):
        if path.name == "cgroup.subtree_control" and len(refused) < times:
            refused.append(path)
            raise OSError(16, "Device or resource busy")
        write(path, text)

    monkeypatch.setattr(_groups, "_write", busy)
    times = 2
    _groups.divide(top)
    assert top.written.count(("pool/cgroup.procs", "7")) == 3 and top.written[-1][0] == "cgroup.subtree_control"
    times = 100
    with pytest.raises(OSError, match="busy"):
        _groups.divide(top)


def test_no_controller_of_memory(top):
    (top / "cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(OSError, match="no controller of memory"):
        _groups.divide(top)
    assert top.written == []


def test_limits_come_first(top):
    """A process enters a group that has them already."""
    groups = _groups.Groups(top, 64 * MIB, 3)
    groups.add(42)
    assert top.written == [("actor-42/memory.oom.group", "1"), ("actor-42/memory.max", str(64 * MIB)), ("actor-42/pids.max", "4096"),
                           ("/proc/42/oom_score_adj", "1000"), ("actor-42/cgroup.procs", "42")]
    top.written.clear()
    (top / "pids.max").write_text("max\n")
    _groups.Groups(top, None, 3).add(43)
    assert [path for path, _ in top.written] == ["actor-43/memory.oom.group", "/proc/43/oom_score_adj", "actor-43/cgroup.procs"]
    top.written.clear()
    (top / "pids.max").write_text("100\n")
    _groups.Groups(top, None, 50).add(44)
    assert ("actor-44/pids.max", "64") in top.written


@pytest.mark.parametrize("events, limit, peak, found", [
    ("oom 3\noom_kill 2\n", "1048576", "1044480", {"limit": 1048576, "peak": 1044480}),
    ("oom 0\noom_kill 1\n", "1048576", "4096", {"limit": None, "peak": 4096}),  # of the executor, or of the host
    ("oom 1\noom_kill 1\n", "1048576", "", {"limit": 1048576, "peak": None}),  # an older kernel
    ("oom 1\noom_kill 1\n", "max", "4096", {"limit": None, "peak": 4096}),
    ("oom 2\noom_kill 0\n", "1048576", "4096", None),
    ("", "", "", None),  # it had no group
])
def test_what_ended_it(top, events, limit, peak, found):
    groups = _groups.Groups(top, MIB, 3)
    group = top / "actor-42"
    if events:
        group.mkdir()
        for name, text in (("memory.events", events), ("memory.max", limit), ("memory.peak", peak)):
            (group / name).write_text(text)
    assert groups.remove(42) == found
    assert ("actor-42/cgroup.kill", "1") in top.written


def test_groups_go(top):
    """At once, or as soon as what the actor had started is gone; and those of a zygote before."""
    (top / "actor-1").mkdir()
    groups = _groups.Groups(top, None, 3)
    groups.add(42)
    groups.add(43)
    (top / "actor-42/still").touch()
    groups.remove(42)
    groups.remove(43)
    assert sorted(path.name for path in top.glob("actor-*")) == ["actor-42"]
    (top / "actor-42/still").unlink()
    groups.add(44)
    assert sorted(path.name for path in top.glob("actor-*")) == ["actor-44"]


def test_limit_of(top, monkeypatch):
    monkeypatch.setattr(_groups, "own", lambda pid: top / "actor-42")
    (top / "actor-42").mkdir()
    (top / "actor-42/memory.max").write_text("1048576\n")
    assert _groups.limit_of(42) == MIB and _groups.limit_of(43) is None  # which is of another actor, that has started it
    (top / "actor-42/memory.max").write_text("max\n")
    assert _groups.limit_of(42) is None


# ---- what a caller hears

def test_sizes():
    assert [_size.text(n) for n in (0, 1023, 1024, 64 * MIB, 1610612736, 3 << 40)] == ["0", "1023", "1K", "64M", "1.5G", "3T"]


def test_its_sentence():
    own = errors.died_of("Eater 0", 9, {"limit": 64 * MIB, "peak": 63 * MIB})
    assert isinstance(own, actors.ActorDied) and str(own) == "Eater 0 was killed: out of memory (limit 64M, peak 63M)"
    again = pickle.loads(pickle.dumps(own))
    assert type(again) is actors.OutOfMemory and (again.limit, again.peak, again.signal, again.status) == (64 * MIB, 63 * MIB, signal.SIGKILL, None)
    above = errors.died_of("Eater 0", 9, {"limit": None, "peak": None})
    assert str(above) == "Eater 0 was killed: out of memory (not at its own limit: its executor had none left, or its host)" and above.limit is None


@pytest.mark.parametrize("memory", ["much", {"limit": 1}, {"limit": [], "peak": [1]}, {"limit": "x", "peak": 1}, 5])
def test_who_lies_about_it(monkeypatch, memory):
    """A host's process that says what none of ours does is none of the pool any more, and nobody waits for its actors."""
    with several(("n1",), slots=1) as pool:
        place = pool._places[0]
        one = pool.create(dict)
        until(lambda: pool.pid(one))
        one.get(1).result(10)
        take = pool._take
        monkeypatch.setattr(pool, "_take", lambda place, said: take(place, {**said, "memory": memory}))
        actors.kill(one)
        until(lambda: isinstance(one.get(2).exception(10), actors.ActorDied))
        until(lambda: place not in pool._places)


def test_a_number_beyond_all():
    assert errors.memory_of({"memory": {"limit": 10 ** 400, "peak": -1}}) == {"limit": 1 << 62, "peak": 0}
    assert "limit 4.194e+06T" in str(errors.died_of("A", 9, errors.memory_of({"memory": {"limit": 10 ** 400, "peak": None}})))
    assert errors.memory_of({}) is None and errors.memory_of({"memory": None}) is None
