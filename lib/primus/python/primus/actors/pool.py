# SPDX-License-Identifier: Apache-2.0
"""A pool: slots for actors, and the zygote that makes their processes."""
import array
import atexit
import collections
import functools
import json
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import weakref

from . import _ship
from ._caller import Connection
from ._watch import Watcher
from .errors import ActorError, PoolClosed, PreloadRefused, died_of

START_SECONDS = 60  # until the zygote has imported what it is to
PACKET_MAX = 1 << 16

_current = []  # pools that are open, the latest last
_all = weakref.WeakSet()


def _forget_all():
    """In a forked child: as long as that had the sockets, too, nothing would end with the pool's own process."""
    _current.clear()
    for pool in list(_all):
        pool._forget()


os.register_at_fork(after_in_child=_forget_all)


def current():
    """The pool that was opened last, and is open still. ActorError: there is none."""
    if not _current:
        raise ActorError("there is no pool: with actors.Pool(slots=4): ...")
    return _current[-1]


class Handle:
    """An actor. What its class has as a method this has, too, and calling it gives a Future at once. When nobody has the handle any
    more, the actor ends behind the calls that are under way."""

    __slots__ = ("_connection", "_id", "_pool", "_finalize", "__weakref__")

    def __init__(self, pool, id, connection):
        self._pool, self._id, self._connection = pool, id, connection
        self._finalize = weakref.finalize(self, connection.release)

    def __getattr__(self, name):
        if name.startswith("_") and name != "__call__":
            raise AttributeError(f"{self._connection.what}: what begins with _ is not for others: {name}")
        return functools.partial(self._call, name)

    def _call(self, name, /, *args, **kwargs):
        return self._connection.call(name, args, kwargs)

    def __repr__(self):
        return f"<{self._connection.what}>"

    def __reduce__(self):
        raise pickle.PicklingError(f"{self._connection.what}: a handle does not travel to another process yet")


class Pool:
    """slots      int: so many actors at a time, as many as there are CPUs for this process if not said; others wait for their turn
    preload    names of modules that are imported once, before all actors are forked
    warm       int: so many processes are forked ahead of need
    private    True: it is not what current() gives

    Actors run as this user, on this host, and end with the pool. PreloadRefused: one of the modules is none, or starts threads."""

    def __init__(self, slots=None, *, preload=(), warm=2, private=False):
        self.slots = len(os.sched_getaffinity(0)) if slots is None else slots
        if self.slots < 1 or warm < 0:
            raise ValueError("slots is at least 1, and warm not below 0")
        self._lock = threading.RLock()
        self._connections = {}  # by id, of actors that have not ended
        self._started = {}  # pid by id; None: not told yet
        self._waiting = collections.deque()  # (id, the actor's end of its socket)
        self._next = 0
        self._unsaid = collections.deque()  # (text, a socket that goes with it or None), for the zygote
        self._over = None
        self._pid = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._zygote = _begin(theirs)
        self._control.send(json.dumps({"path": sys.path, "preload": list(preload), "warm": min(warm, self.slots)}).encode())
        self._meet()
        self._watcher = Watcher(self._control, self._hear)
        _all.add(self)
        if not private:
            _current.append(self)
        atexit.register(self.close)

    def _meet(self):
        self._control.settimeout(START_SECONDS)
        try:
            said = json.loads(self._control.recv(PACKET_MAX) or b"{}")
        except TimeoutError:
            said = {"refused": f"preload: it has not been imported within {START_SECONDS} s"}
        self._control.settimeout(None)
        if not said.get("ready"):
            self._control.close()
            self._zygote.kill()
            self._zygote.wait()
            raise PreloadRefused(said.get("refused", "the actors' zygote has ended; what it said is on standard error"))

    def _say(self, given=None, **what):
        """The lock is held. To the zygote, in its order; nobody waits for that: the zygote may be waiting for us to hear it. given: a
        socket that goes along."""
        self._unsaid.append((json.dumps(what).encode(), given))
        self._say_on()

    def _say_on(self):
        while self._unsaid:
            text, given = self._unsaid[0]
            try:
                # Not send_fds(), which takes flags and forgets them.
                with_it = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [given.fileno()]))] if given else []
                self._control.sendmsg([text], with_it, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:  # the watcher hears of it
                pass
            self._unsaid.popleft()
            if given:
                given.close()
        self._watcher.want_room(bool(self._unsaid))

    # ---- actors

    def create(self, made, /, *args, **kwargs):
        """A Handle at once. made: a class, or what @remote made of one. What its constructor raises is the cause of NotConstructed,
        which every call raises then."""
        concurrency = getattr(made, "concurrency", None)
        made = getattr(made, "_primus_class", made)
        body, buffers = _constructor(made, concurrency, args, kwargs)
        with self._lock:
            if self._over is not None:
                raise self._over
            id = self._next
            self._next += 1
            ours, theirs = socket.socketpair()
            connection = Connection(ours, f"{made.__qualname__} {id}", self._watcher)
            self._connections[id] = connection
            self._waiting.append((id, theirs))
            self._start_waiting()
        connection.construct(body, buffers)
        return Handle(self, id, connection)

    def _start_waiting(self):
        while self._waiting and len(self._started) < self.slots and self._over is None:
            id, theirs = self._waiting.popleft()
            self._started[id] = None
            self._say(theirs, start=id)

    def kill(self, handle):
        """At once, whatever it does (SIGKILL)."""
        with self._lock:
            connection = self._connections.get(handle._id)
            waits = next((w for w in self._waiting if w[0] == handle._id), None)
            if waits:
                self._waiting.remove(waits)
                waits[1].close()
                del self._connections[handle._id]
            elif connection is not None and self._over is None:
                self._say(kill=handle._id)
        if waits:
            connection.end(died_of(connection.what, 9))

    def stats(self):
        """{"slots", "running", "waiting"}: ints."""
        with self._lock:
            return {"slots": self.slots, "running": len(self._started), "waiting": len(self._waiting)}

    def pid(self, handle):
        """Of the actor's process; None: it has none, or it is not known yet."""
        with self._lock:
            return self._started.get(handle._id)

    # ---- the zygote

    def _hear(self):
        """In the watcher's thread, when the zygote may say something, or hear. False: there is nobody any more."""
        if self._unsaid:
            with self._lock:
                self._say_on()
        try:
            data = self._control.recv(PACKET_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:  # heard already by who waited for a death
            return True
        except OSError:
            data = b""
        if not data:
            self._end(PoolClosed("the pool is closed" if self._over else "the actors' zygote has ended, and all actors with it"))
            return False
        said = json.loads(data)
        if "started" in said:
            with self._lock:
                if said["started"] in self._started:
                    self._started[said["started"]] = said["pid"]
        else:
            self._died(said["died"], said["status"])
        return True

    def _died(self, id, status):
        with self._lock:
            connection = self._connections.pop(id, None)
            self._started.pop(id, None)
            self._start_waiting()
        if connection is not None:
            connection.died(died_of(connection.what, status))
            connection.look()  # what it has said before

    def _end(self, error):
        with self._lock:
            self._over = self._over or error
            connections, self._connections = self._connections, {}
            waiting, self._waiting = self._waiting, collections.deque()
            self._started = {}
        for _, s in waiting:
            s.close()
        for connection in connections.values():
            connection.died(self._over)
            connection.look()
            connection.end(self._over)

    def _forget(self):
        self._control.close()
        for connection in list(self._connections.values()):
            connection.socket.close()
        for _, s in list(self._waiting):
            s.close()

    def close(self):
        """All actors end at once."""
        atexit.unregister(self.close)
        if self in _current:
            _current.remove(self)
        if self._pid != os.getpid():
            return
        with self._lock:
            self._over = self._over or PoolClosed("the pool is closed")
        try:
            self._control.shutdown(socket.SHUT_RDWR)  # the watcher hears of it, and so does the zygote
        except OSError:
            pass
        self._watcher.join()
        self._zygote.wait()
        self._control.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _begin(control):
    """The zygote's process. It finds this very package, and its libraries start no threads of their own."""
    top = str(pathlib.Path(__file__).resolve().parents[2])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [top, os.environ.get("PYTHONPATH")]))}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env.setdefault(name, "1")
    return subprocess.Popen([sys.executable, "-m", "primus.actors._zygote"], stdin=control, env=env, start_new_session=True)


def _constructor(made, concurrency, args, kwargs):
    """(pickle, buffers): arguments are read after the class, since they may be of its module."""
    buffers = []
    data = pickle.dumps(args, 5, buffer_callback=lambda b: buffers.append(b.raw()))
    return pickle.dumps((_ship.shipped(made), concurrency, data, pickle.dumps(kwargs, 5)), 5), buffers
