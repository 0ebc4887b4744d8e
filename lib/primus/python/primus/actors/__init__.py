# SPDX-License-Identifier: Apache-2.0
"""Objects that live in processes of their own, and are called as if they were here.

    from primus import actors

    @actors.remote
    class Counter:
        def __init__(self, start):
            self.n = start
        def add(self, k):
            self.n += k
            return self.n

    with actors.Pool(slots=4, preload=["numpy"]):
        counters = [Counter(i) for i in range(4)]
        futures = [c.add(10) for c in counters]        # all four at once
        print([f.result() for f in futures])

A call gives a Future at once, a concurrent.futures.Future that can be awaited as well; calls of one caller run in their order, as many
as one likes may be under way. What a method raises comes as it is, with the actor's traceback as its cause, and the actor lives on. One
that dies says how: ActorDied. A generator's future is a Stream, which is taken item by item. Arrays are not copied into pickles. With
async methods calls run as tasks of a loop; with @remote(concurrency=8) in eight threads.

A process of an actor is forked from one that has imported what preload= names, so it is there within milliseconds. With Pool(hosts=3) it
runs on one of three hosts, as a job; without, on this one, over sockets that no other process can connect to. Always as this user.
Classes go by name where they are in a module, and by value (cloudpickle) where the script alone knows them.

serve("sims", hosts=3) makes a pool that outlives programs, and attach("sims") is how they come to it: pydoc3 primus.actors._serve.serve,
primus.actors._guest.Attached."""
from . import _asker, errors
from ._caller import Future, Stream
from ._ship import by_name
from ._travel import Handle
from .errors import ActorDied, ActorError, HostLost, HostRefused, NotConstructed, NotSent, NotStarted, OutOfMemory, PoolClosed, PreloadRefused, RemoteTraceback
from .executor import ActorPool, Executor, as_completed, wait
from .pool import Pool, current, described

__all__ = ["ActorDied", "ActorError", "ActorPool", "Executor", "Future", "Handle", "HostLost", "HostRefused", "NotConstructed", "NotSent", "NotStarted", "OutOfMemory", "Pool", "PoolClosed", "PreloadRefused",
           "RemoteTraceback", "Stream", "as_completed", "attach", "current", "errors", "get", "get_or_create", "idempotent", "kill", "remote", "serve", "wait"]


class RemoteClass:
    """What @remote makes of a class. Called, it makes an actor in the pool that was opened last; on(pool) in that one.

    local   the class itself"""

    def __init__(self, made, concurrency=None, restarts=0, saves=None):
        if not isinstance(made, type):
            raise TypeError(f"@remote is for classes, and {made!r} is none")
        if concurrency is not None and concurrency < 1:
            raise ValueError("concurrency is at least 1")
        if restarts < 0:
            raise ValueError("restarts is not below 0")
        keeps = hasattr(made, "__primus_save__") and hasattr(made, "__primus_restore__")
        if saves is not None and (saves < 1 or not restarts or not keeps):
            raise ValueError("saves is at least 1, and for a class with restarts=N that has __primus_save__ and __primus_restore__")
        self._primus_class, self.concurrency, self.restarts = made, concurrency, restarts
        self.saves = (saves or 1) if restarts and keeps else 0
        self.idempotent = frozenset(name for name in dir(made) if getattr(getattr(made, name, None), "_primus_idempotent", False))
        if self.idempotent and not restarts:
            raise ValueError(f"{made.__qualname__}.{min(self.idempotent)} is idempotent, and nobody would call it again: @remote(restarts=N)")
        self.__name__, self.__qualname__, self.__module__, self.__doc__ = made.__name__, made.__qualname__, made.__module__, made.__doc__

    def __reduce__(self):
        """By its name, as a class; by value where the script alone knows it."""
        return self.__qualname__ if by_name(self) else (RemoteClass, (self._primus_class, self.concurrency, self.restarts, self.saves or None))

    @property
    def local(self):
        return self._primus_class

    def __call__(self, *args, **kwargs):
        return current().create(self, *args, **kwargs)

    def on(self, pool):
        return lambda *args, **kwargs: pool.create(self, *args, **kwargs)


def remote(made=None, *, concurrency=None, restarts=0, saves=None):
    """@remote, or with

    concurrency=N   up to so many calls at a time, in threads, or of async methods as tasks (1000)
    restarts=N      so often it is made again when it dies, or its host does, by its constructor; float("inf"): always. Calls that were
                    under way raise ActorDied and are not done again (but see idempotent), those behind that wait for it. One that died
                    within five seconds is made again five seconds later. Not behind kill() and exit status 0.
    saves=N         behind each Nth call (1), before its result is given, the pool is told what __primus_save__() returns; the actor that is
                    made again gets that with __primus_restore__(state) when it has been constructed. Handles are no part of it."""
    if made is None:
        return lambda one: RemoteClass(one, concurrency, restarts, saves)
    return RemoteClass(made, concurrency, restarts, saves)


def idempotent(method):
    """@idempotent, of a method of a class with restarts=N: a call that was under way when the actor died is done again by the one that is
    made next, in the order of such calls; so it may have been done twice, or in part. A generator that has begun is not begun again."""
    method._primus_idempotent = True
    return method


def __getattr__(name):
    """Of pools that outlive programs: they need ssl, which others do without."""
    if name == "serve":
        from ._serve import serve
        return serve
    if name == "attach":
        from ._guest import attach
        return attach
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def kill(handle):
    """At once, whatever it does: its calls get ActorDied."""
    handle._kill()


def get(name):
    """A Handle of the actor by that name, in the pool that was opened last, or in an actor's own. ActorError: there is none."""
    return _asker.pool_says("get", name) if _asker.serves() else current().get(name)


def get_or_create(name, made, /, *args, **kwargs):
    """A Handle of the actor by that name, which is made now if there is none. It lives until it is killed, dies for good, or its pool does.
    Of several who ask at a time, the program or its actors, all get the same one."""
    if _asker.serves():
        return _asker.wish_for("get_or_create_of", (name,), described, made, args, kwargs)
    return current().get_or_create(name, made, *args, **kwargs)
