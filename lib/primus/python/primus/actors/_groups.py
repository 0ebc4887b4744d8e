# SPDX-License-Identifier: Apache-2.0
"""A control group for each actor, below that of the executor: the kernel holds it to the memory that is its own, ends it alone where it
wants more, and tells how much it had. They are there where the role has "delegate" (primus-job(5)) and the host cgroup v2 with the
controller of memory. The executor's limits hold above them whatever is written here."""
import contextlib
import os
import pathlib
import time

ROOT = "/sys/fs/cgroup"
CONTROLLERS = ("memory", "pids", "cpu")  # of which the first is needed
POOL = "pool"  # the group of the host's process and the zygote: where there are groups below, no process may be in the one above
PREFIX = "actor-"
TRIES = 10  # of moving what begins meanwhile as well
PIDS_LEAST = 64
OOM_FIRST = 1000


def _write(path, text):
    # One write(), which the kernel takes or refuses as a whole.
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(text).encode())
    finally:
        os.close(fd)


def _read(path):
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _number(text):
    """None for "max", and what is none."""
    return int(text) if text.isdecimal() else None


def own(pid="self", root=ROOT):
    """The directory of a process's group; None: the host has not cgroup v2."""
    for line in _read(pathlib.Path(f"/proc/{pid}/cgroup")).splitlines():
        if line.startswith("0::/"):
            return pathlib.Path(root + line[3:])
    return None


def limit_of(pid):
    """Bytes that the kernel holds an actor's process to; None: there is no such limit."""
    path = own(pid)
    return _number(_read(path / "memory.max")) if path is not None and path.name == f"{PREFIX}{pid}" else None


def divide(top):
    """Makes room below this executor's group, and moves all of its processes down. OSError: it cannot be."""
    available = _read(top / "cgroup.controllers").split()
    if CONTROLLERS[0] not in available:
        raise OSError(f"{top} has no controller of memory")
    (top / POOL).mkdir(exist_ok=True)
    for left in range(TRIES, 0, -1):
        for pid in _read(top / "cgroup.procs").split():
            with contextlib.suppress(ProcessLookupError):
                _write(top / POOL / "cgroup.procs", pid)
        try:
            _write(top / "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS if name in available))
            return
        except OSError:  # another process has begun in there
            if left == 1:
                raise
        time.sleep(0.01)


class Groups:
    """top   the executor's group, which divide() has divided
    memory   bytes of each actor, or None
    slots    so many at a time: each may have an equal part of the executor's processes"""

    def __init__(self, top, memory, slots):
        self._top, self._memory = pathlib.Path(top), memory
        pids = _number(_read(self._top / "pids.max"))
        self._pids = pids and max(pids // (slots + 1), PIDS_LEAST)
        self._emptied = list(self._top.glob(f"{PREFIX}*"))  # groups whose processes have yet to go; of a zygote before, if there was one

    def _path(self, pid):
        return self._top / f"{PREFIX}{pid}"

    def add(self, pid):
        """A process that does nothing yet. OSError: it cannot be."""
        self._tidy()
        path = self._path(pid)
        path.mkdir()
        _write(path / "memory.oom.group", 1)
        if self._memory is not None:
            _write(path / "memory.max", self._memory)
        if self._pids is not None:
            with contextlib.suppress(OSError):  # of a kernel without
                _write(path / "pids.max", self._pids)
        # Where the executor as a whole has no more, it is one of the actors that ends, and not what has made them.
        _write(f"/proc/{pid}/oom_score_adj", OOM_FIRST)
        _write(path / "cgroup.procs", pid)

    def remove(self, pid):
        """It has ended; what it has started does now. {"limit": bytes or None, "peak": bytes or None} where the kernel ended it for
        want of memory, with limit None where it was not its own limit but the executor's; None otherwise."""
        path = self._path(pid)
        events = dict(line.split() for line in _read(path / "memory.events").splitlines())
        killed = int(events.get("oom_kill", 0)) > 0
        found = {"limit": _number(_read(path / "memory.max")) if events.get("oom", "0") != "0" else None,
                 "peak": _number(_read(path / "memory.peak"))} if killed else None
        with contextlib.suppress(OSError):
            _write(path / "cgroup.kill", 1)
        self._emptied.append(path)
        self._tidy()
        return found

    def _tidy(self):
        left = []
        for path in self._emptied:
            try:
                path.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                left.append(path)
        self._emptied = left
