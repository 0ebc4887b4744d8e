# SPDX-License-Identifier: Apache-2.0
"""A program at a pool that another process has (served.py): it asks as an actor does that has handles of others (_asker.py), and nobody asks
it anything."""
import atexit
import contextlib
import os
import queue
import socket
import threading
import time

from . import _asker, _proof, _reach, _serve, _wire, pool
from ._actor import Answers
from ._hello import hello
from .errors import ActorError, NotStarted, PoolClosed

WAIT_SECONDS = 60
AGAIN_SECONDS = 0.2  # its process is there, and listens soon


def attach(name, seconds=WAIT_SECONDS):
    """The pool by that name, which actors.serve() has made, as an Attached. Waits for it for so long. ActorError: there is none, or it has
    another Python. A process is attached to one pool at a time."""
    job, secret = _serve.known(name)
    return Attached(_connect(job, secret, seconds), job)


def _connect(job, secret, seconds):
    end, error = time.monotonic() + seconds, "it does not run yet: primusctl why says what it waits for"
    while True:
        place = None
        try:
            place = _serve.place(job)
            if place is not None:
                return dial(place, secret)
        except NotStarted as e:  # a master that is away comes back
            error = e
        except OSError as e:
            error = f"{place[0]}:{place[1]}: {e}"
        if time.monotonic() > end:
            raise ActorError(f"the pool of job {job} is not to be had: {error}")
        time.sleep(AGAIN_SECONDS)


def dial(place, secret):
    """A Channel to the pool, which has proven that it has the secret. OSError."""
    _, _, channel = _reach.connect(place, _reach.client_context(), secret, _proof.GUEST)
    channel.keep_looking()
    return channel


class _Says(Answers):
    """Whether the pool hears it, who reads finds out."""

    def put(self, parts):
        with contextlib.suppress(OSError):
            super().put(parts)

    def flush(self):
        with contextlib.suppress(OSError):
            super().flush()


class Attached:
    """A pool that another process has. It is what current() gives while it is open. Handles are of this program, and what they are of ends
    when nobody has one any more, this program when it ends included; actors by name stay.

    job   int, its job's number"""

    def __init__(self, channel, job):
        if _asker.current is not None:
            channel.close()
            raise ActorError("this process is an actor, or attached to a pool already")
        self.job, self._pid = job, os.getpid()
        self._channel, self._reader, self.answers = channel, channel.reader(), _Says(channel, None)
        self._work = queue.SimpleQueue()  # what a handle that is gone may be told to in the middle of anything
        self._asker = _asker.begin(self, self._work.put)
        self._threads = [threading.Thread(target=run, name=f"primus-actors-{of}", daemon=True) for of, run in (("guest", self._hear), ("dropped", self._say_dropped))]
        for thread in self._threads:
            thread.start()
        pool.opened(self)
        atexit.register(self.close)
        try:
            _asker.pool_says("attach", hello(0))
        except BaseException:
            self.close()
            raise

    # ---- as _asker.Asker has it

    def wait_for(self, asked, timeout):
        """Not by this thread: another one reads."""
        return False

    def read_beside(self):
        """One does always."""

    def _hear(self):
        with contextlib.suppress(OSError):
            while self._reader.read(True):
                for kind, id, body, buffers in self._reader.frames():
                    if kind not in _wire.ANSWERED:
                        raise _wire.Malformed("that is no frame for a program")
                    self._asker.hear(kind, id, body, buffers)
        self._asker.end()

    def _say_dropped(self):
        while self._work.get():
            self._asker.say_dropped(self.answers)
            self.answers.flush()

    # ---- what it can do

    def create(self, made, /, *args, **kwargs):
        """A Handle, when the pool has taken it: as Pool.create()."""
        return self._make("create_of", (), made, args, kwargs)

    def get(self, name):
        """As Pool.get()."""
        return self._says("get", name)

    def get_or_create(self, name, made, /, *args, **kwargs):
        """As Pool.get_or_create(): it is there for later programs as well."""
        return self._make("get_or_create_of", (name,), made, args, kwargs)

    def _make(self, wish, first, made, args, kwargs):
        self._check()
        return _asker.wish_for(wish, first, pool.described, made, args, kwargs)

    def _says(self, *what):
        self._check()
        return _asker.pool_says(*what)

    def _check(self):
        if _asker.current is not self._asker:
            raise PoolClosed("this program is not attached to the pool any more")

    def actors(self):
        """As Pool.actors()."""
        return self._says("actors")

    def stats(self):
        """As Pool.stats()."""
        return self._says("stats")

    def _forget(self):
        """In a forked child, which cannot say anything on its parent's connection."""
        if _asker.current is self._asker:
            _asker.leave()
            self._channel.close()

    def close(self):
        """The pool goes on. What is under way raises PoolClosed. As often as one likes."""
        atexit.unregister(self.close)
        pool.closed(self)
        if self._pid != os.getpid() or _asker.current is not self._asker:
            return
        _asker.leave()
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._work.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
