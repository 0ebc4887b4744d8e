# SPDX-License-Identifier: Apache-2.0
"""Work for actors that are all the same: concurrent.futures' Executor, and Ray's ActorPool."""
import collections
import concurrent.futures
import queue
import threading
import time
import weakref

from ._ship import shipped, taken
from .errors import ActorDied, NotConstructed, PoolClosed
from .pool import Pool


def wait(futures, timeout=None, n=None):
    """(done, not done), sets: when n of them are done (all, if not said), or the time is over."""
    futures = set(futures)
    if n is None or n >= len(futures):
        return tuple(concurrent.futures.wait(futures, timeout))
    end = None if timeout is None else time.monotonic() + timeout
    done, left = set(), set(futures)
    while len(done) < n:
        new, left = concurrent.futures.wait(left, None if end is None else max(end - time.monotonic(), 0), concurrent.futures.FIRST_COMPLETED)
        done |= new
        if not new:
            break
    return done, futures - done


as_completed = concurrent.futures.as_completed


class _Worker:
    """Runs functions."""

    def __init__(self, initializer, initargs):
        self._functions = {}
        if initializer is not None:
            taken(initializer)(*initargs)

    def run(self, function, args, kwargs):
        if function not in self._functions:
            self._functions[function] = taken(function)
        return self._functions[function](*args, **kwargs)


class BrokenExecutor(concurrent.futures.BrokenExecutor):
    """One of its workers has died, or could not be initialized."""


class Executor(concurrent.futures.Executor):
    """concurrent.futures.Executor of actors: functions run in max_workers processes that are forked from one, initialized once. One
    that dies breaks it (BrokenExecutor), as ProcessPoolExecutor's do; with a pool of others', in their pool."""

    def __init__(self, max_workers=None, *, initializer=None, initargs=(), preload=(), pool=None):
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._pool = pool or Pool(max_workers, preload=preload, private=True)
        self._own = pool is None
        self._n = max_workers or self._pool.slots
        self._initializer = (shipped(initializer) if initializer else None), initargs
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._work = collections.deque()  # (future, function, args, kwargs) that wait for a worker
        self._idle, self._busy = [], 0
        self._shut = False
        self._broken = None
        _executors.add(self)

    def submit(self, fn, /, *args, **kwargs):
        with self._lock:
            if self._broken:
                raise BrokenExecutor(str(self._broken))
            if self._shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if _ending:
                raise RuntimeError("cannot schedule new futures after interpreter shutdown")
            future = concurrent.futures.Future()
            try:
                function = shipped(fn)
            except Exception as e:
                future.set_exception(e)
                return future
            self._work.append((future, function, args, kwargs))
            self._dispatch()
        return future

    def _dispatch(self):
        """The lock is held."""
        while self._work and not self._broken:
            if self._idle:
                worker = self._idle.pop()
            elif self._busy < self._n:
                worker = self._pool.create(_Worker, *self._initializer)
            else:
                return
            future, *call = self._work.popleft()
            if not future.set_running_or_notify_cancel():
                self._idle.append(worker)
                continue
            self._busy += 1
            worker.run(*call).add_done_callback(lambda done, future=future, worker=worker: self._done(done, future, worker))

    def _done(self, done, future, worker):
        error = done.exception()
        with self._lock:
            self._busy -= 1
            if isinstance(error, (ActorDied, NotConstructed, PoolClosed)):
                self._break(error)
                error = _broken_by(error)
            else:
                self._idle.append(worker)
                self._dispatch()
            self._changed.notify_all()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())

    def _break(self, error):
        self._broken = self._broken or error
        work, self._work = self._work, collections.deque()
        for future, *_ in work:
            if future.set_running_or_notify_cancel():
                future.set_exception(_broken_by(error))

    def shutdown(self, wait=True, *, cancel_futures=False):
        with self._lock:
            self._shut = True
            if cancel_futures:
                work, self._work = self._work, collections.deque()
                for future, *_ in work:
                    future.cancel()
                    future.set_running_or_notify_cancel()
        if wait:
            self._settle()
        elif self._own:
            threading.Thread(target=self._settle, name="primus-executor", daemon=True).start()

    def _settle(self):
        with self._changed:
            while self._work or self._busy:
                self._changed.wait()
            self._idle.clear()
        if self._own:
            self._pool.close()


def _broken_by(error):
    broken = BrokenExecutor(f"a worker of the executor has ended: {error}")
    broken.__cause__ = error
    return broken


_executors = weakref.WeakSet()
_ending = False


def _end():
    """At the end of the interpreter, what was submitted is done, as with concurrent.futures' own."""
    global _ending
    _ending = True
    for executor in list(_executors):
        executor.shutdown(wait=True)


threading._register_atexit(_end)


class ActorPool:
    """Ray's: values are dealt out to actors that are free.

    pool = ActorPool([Doubler(), Doubler()])
    list(pool.map(lambda actor, value: actor.double(value), [1, 2, 3]))     # in their order; map_unordered: as they are done"""

    def __init__(self, actors):
        self._free = list(actors)
        self._under_way = {}  # (index, actor) by future
        self._by_index = {}  # future
        self._waiting = collections.deque()  # (fn, value)
        self._next_task = self._next_return = 0
        self._done = queue.SimpleQueue()

    def submit(self, fn, value):
        """fn(actor, value) gives a future; it is called when an actor is free."""
        if not self._free:
            self._waiting.append((fn, value))
            return
        actor = self._free.pop()
        future = fn(actor, value)
        self._under_way[future] = self._next_task, actor
        self._by_index[self._next_task] = future
        self._next_task += 1
        future.add_done_callback(self._done.put)

    def has_next(self):
        return bool(self._under_way) or bool(self._waiting)

    def get_next(self, timeout=None, ignore_if_timedout=False):
        """The next result, in the order of submit(). StopIteration: there is none; TimeoutError."""
        if not self.has_next():
            raise StopIteration("No more results to get")
        if self._next_return >= self._next_task:
            raise ValueError("It is not allowed to call get_next() after get_next_unordered().")
        future = self._by_index[self._next_return]
        if concurrent.futures.wait([future], timeout).not_done:
            if not ignore_if_timedout:
                raise TimeoutError("Timed out waiting for result")
        self._forget(future)
        return future.result() if future.done() else None

    def get_next_unordered(self, timeout=None, ignore_if_timedout=False):
        """One that is done, whichever."""
        if not self.has_next():
            raise StopIteration("No more results to get")
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                future = self._done.get(timeout=None if end is None else max(end - time.monotonic(), 0))
            except queue.Empty:
                if ignore_if_timedout:
                    return None
                raise TimeoutError("Timed out waiting for result") from None
            if future in self._under_way:
                self._forget(future)
                return future.result()

    def _forget(self, future):
        index, actor = self._under_way.pop(future)
        del self._by_index[index]
        self._next_return = max(self._next_return, index + 1)
        self._free.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())

    def map(self, fn, values):
        """Results in the order of values; earlier ones that nobody took are gone."""
        self._drop()
        for value in values:
            self.submit(fn, value)
        return self._results(self.get_next)

    def map_unordered(self, fn, values):
        self._drop()
        for value in values:
            self.submit(fn, value)
        return self._results(self.get_next_unordered)

    def _results(self, get):
        while self.has_next():
            yield get()

    def _drop(self):
        while self.has_next():
            try:
                self.get_next_unordered()
            except Exception:
                pass

    def has_free(self):
        return bool(self._free) and not self._waiting

    def pop_idle(self):
        """A free actor, which the pool does not have any more; None."""
        return self._free.pop() if self.has_free() else None

    def push(self, actor):
        """ValueError: it is in the pool."""
        if actor in self._free or any(actor is a for _, a in self._under_way.values()):
            raise ValueError("Actor already belongs to current ActorPool")
        self._free.append(actor)
        if self._waiting:
            self.submit(*self._waiting.popleft())
