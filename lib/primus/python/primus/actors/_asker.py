# SPDX-License-Identifier: Apache-2.0
"""In an actor's process, or that of a program that is attached to a pool (_guest.py): handles of other actors, and what is asked of those,
and of the pool, through the pool's process (_relay.py)."""
import collections
import concurrent.futures
import itertools
import pickle
import threading
import weakref

from . import _relay, _travel, _wire
from .errors import ActorError, NotSent, PoolClosed

PENDING = concurrent.futures._base.PENDING
current = None  # this process's Asker


class Asked(concurrent.futures.Future):
    """What another actor answers: a concurrent.futures.Future that can be awaited. While the only thread of an actor waits for it, no call
    of its own runs."""

    def __init__(self, asker):
        super().__init__()
        self._asker = asker
        self._waiters = _Waiters(asker)

    def result(self, timeout=None):
        return super().result(self._wait(timeout))

    def exception(self, timeout=None):
        return super().exception(self._wait(timeout))

    def _wait(self, timeout):
        """How long is still to be waited for it."""
        if self._state == PENDING and self._asker.actor.wait_for(self, timeout) and timeout is not None:
            return 0
        return timeout

    def __await__(self):
        import asyncio
        return asyncio.wrap_future(self).__await__()


class _Waiters(list):
    """concurrent.futures.wait() and as_completed() put theirs in here: somebody has to read then."""

    def __init__(self, asker):
        super().__init__()
        self._asker = asker

    def append(self, waiter):
        super().append(waiter)
        self._asker.actor.read_beside()


class Lent(_travel.Handle):
    """Of another actor."""

    __slots__ = ("_asker",)

    def __init__(self, pool, number, what, idempotent):
        self._actor = pool, number, what, idempotent
        self._asker = current
        self._finalize = weakref.finalize(self, current.drop, number)
        self._finalize.atexit = False

    def _call(self, name, /, *args, **kwargs):
        return self._asker.call(self, name, args, kwargs)

    def _kill(self):
        self._asker.wish("kill", self).result()


class Asker:
    """actor: what this process serves. drops: called with True when a handle is gone, and waits for no lock; None: the actor looks itself."""

    def __init__(self, actor, drops):
        self.actor, self.drops = actor, drops
        self.dropped = collections.deque()  # (kind, id) of what nobody has any more: it may go anywhere, so that waits for no lock and is said later
        self._ids = itertools.count()
        self._lock = threading.Lock()
        self._pending = {}  # by id: (Asked, handles that are on their way)
        self._streams = {}  # by id: the futures of items
        self._over = None

    def drop(self, number, kind=_wire.DROP):
        """A handle is gone, of the actor of that number."""
        self.dropped.append((kind, number))
        if self.drops is not None:
            self.drops(True)

    # ---- of streams, as a Connection has it

    def future(self):
        return Asked(self)

    def abandon(self, id):
        if self._streams.pop(id, None) is not None:
            self.drop(id, _wire.LEFT)

    def tell(self, kind, id, body):
        """MORE alone."""
        self.actor.answers.put(_wire.framed(_wire.TAKEN, id, body))
        self.actor.answers.flush()

    # ---- asking

    def call(self, handle, name, args, kwargs):
        """An Asked. What cannot be pickled is its exception, NotSent."""
        _, number, what, idempotent = handle._actor
        return self._ask(what, (name, args, kwargs), _wire.ASK, number, name in idempotent)

    def wish(self, *what):
        """An Asked of what the pool says."""
        return self._ask("the pool", what, _wire.WISH)

    def _ask(self, whom, value, kind, number=0, repeats=False):
        asked = Asked(self)
        try:
            body, buffers, handles = _travel.pickled(value)
            self.check(handles)
        except Exception as e:
            error = NotSent(f"{whom}: cannot be sent: {e}")
            error.__cause__ = e
            asked.set_exception(error)
            return asked
        id = next(self._ids)
        with self._lock:
            over = self._over
            if over is None:
                self._pending[id] = asked, handles
        if over is not None:
            asked.set_exception(over)
            return asked
        self.actor.answers.put(_wire.framed(kind, id, _relay.QUESTION.pack(number, len(handles), repeats) + numbers(handles) + body, buffers))
        self.actor.answers.flush()
        return asked

    def check(self, handles):
        """ActorError: one is of another pool, whose numbers mean other actors here."""
        for handle in handles:
            if getattr(handle, "_asker", None) is not self:
                raise ActorError(f"{handle!r} is of another pool")

    def hear(self, kind, id, body, buffers):
        """kind: one of _wire.ANSWERED"""
        from ._caller import Stream, decoded
        items = self._streams.get(id) if kind == _wire.GIVEN_ITEM else self._streams.pop(id, None)
        asked = items[-1] if items else self._pending.pop(id, (None,))[0]
        if asked is None:
            return
        if kind == _wire.GIVEN_ITEM:
            items.append(self.future())
        if kind == _wire.STREAMED:
            raised, value = False, Stream(self, id)
            self._streams[id] = value.futures
        else:
            raised, value = decoded("the actor", _wire.ANSWERED[kind], body, buffers)
        if asked.set_running_or_notify_cancel():
            (asked.set_exception if raised else asked.set_result)(value)

    def waits(self):
        """Whether something is under way."""
        return bool(self._pending or self._streams)

    def end(self):
        """Nothing more comes."""
        with self._lock:
            self._over = PoolClosed("the pool is closed, or nobody has this actor any more")
            pending, self._pending = self._pending, {}
            streams, self._streams = self._streams, {}
        for asked in [*(asked for asked, _ in pending.values()), *(items[-1] for items in streams.values())]:
            if asked.set_running_or_notify_cancel():
                asked.set_exception(self._over)


    def say_dropped(self, answers):
        while self.dropped:
            answers.put(_wire.framed(*self.dropped.popleft(), b""))


def numbers(handles):
    return b"".join(_relay.NUMBER.pack(handle._actor[1]) for handle in handles)


def begin(actor, drops=None):
    """This process serves that, or is a program that is attached to a pool, with drops (Asker). The Asker."""
    global current
    current = Asker(actor, drops)
    _travel.here = Lent
    return current


def leave():
    """This process is attached to no pool any more, and can be again."""
    global current
    current = _travel.here = None


def wish_for(wish, first, described, made, args, kwargs):
    """What the pool answers to who wants an actor. described: pool.described()"""
    with _travel.sending() as handles:
        *what, buffers = described(made, args, kwargs)
    return pool_says(wish, *first, *what, [pickle.PickleBuffer(b) for b in buffers], handles)


def serves():
    """Whether this process is an actor's, and does not only ask."""
    return current is not None and current.drops is None


def pool_says(*what):
    """What the pool answers to an actor. ActorError: this process is none."""
    if current is None:
        raise ActorError("this process is no actor's")
    return current.wish(*what).result()
