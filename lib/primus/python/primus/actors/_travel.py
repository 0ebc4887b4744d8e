# SPDX-License-Identifier: Apache-2.0
"""A handle that goes along in an argument or a result: to an actor of its pool, and from there to others of it or back to the pool's own
process. What is pickled is which actor of which pool that is; whoever sends it says so beside the pickle, so that the actor lives for as
long as somebody has it."""
import contextlib
import functools
import pickle
import threading
import weakref

from . import _wire


class _Sending(threading.local):
    """handles: a list of those that the pickle which this thread makes now has in it; None: it goes to no actor."""
    handles = None


_sending = _Sending()
pools = weakref.WeakValueDictionary()  # in the process that has them, by name
here = None  # in the process of an actor, or of a program that is attached to a pool: what makes handles of others there


class GoesNowhere(pickle.PicklingError):
    """What is pickled goes to no actor."""


class Handle:
    """An actor. What its class has as a method this has, too, and calling it gives a Future at once. When nobody has a handle of it any
    more, the actor ends behind the calls that are under way. It can go along in calls to other actors of the pool, and in what they return."""

    __slots__ = ("_actor", "_finalize", "__weakref__")  # _actor: its pool's name, its number there, its name for people, what of it is idempotent

    def __getattr__(self, name):
        if name.startswith("_") and name != "__call__":
            raise AttributeError(f"{self._actor[2]}: what begins with _ is not for others: {name}")
        return functools.partial(self._call, name)

    def __repr__(self):
        return f"<{self._actor[2]}>"

    def __reduce__(self):
        handles = _sending.handles
        if handles is None:
            raise GoesNowhere(f"{self._actor[2]}: a handle goes to another actor of its pool, and nowhere else")
        handles.append(self)
        return arrived, self._actor


def arrived(pool, number, what, idempotent):
    """In place of what was pickled."""
    if pool in pools:
        return pools[pool].handle_of(number)
    if here is None:
        raise pickle.UnpicklingError(f"{what} is of a pool that this process has not")
    return here(pool, number, what, idempotent)


@contextlib.contextmanager
def sending():
    """[the handles that are pickled meanwhile by this thread]"""
    before, _sending.handles = _sending.handles, []
    try:
        yield _sending.handles
    finally:
        _sending.handles = before


def pickled(value):
    """(pickle, the buffers beside it, the handles in it). What pickle raises. That there are any is found out by doing without: to make ready
    for them would cost each call some microseconds."""
    try:
        return (*_wire.pickled(value), ())
    except GoesNowhere:
        with sending() as handles:
            return (*_wire.pickled(value), handles)
