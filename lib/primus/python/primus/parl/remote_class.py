# SPDX-License-Identifier: Apache-2.0
"""The decorator, and what it makes of a class: objects that live in other processes, by PARL's rules. What is in an object's __dict__ is a
value here, everything else a method; whatever it raises ends it."""
import concurrent.futures
import inspect
import os
import pickle
import sys
import threading
import weakref

import cloudpickle

from primus import actors

from . import _runner
from .client import WAIT_SECONDS, get_global_client
from .exceptions import (FutureFunctionError, FutureGetRepeatedlyError, FutureObjectEmpty, RemoteAttributeError, RemoteDeserializeError, RemoteError, RemoteSerializeError,
                         ResourceError)

OPTIONS = ("max_memory", "wait", "n_gpu")
_ERRORS = {_runner.RAISED: RemoteError, _runner.NO_ATTRIBUTE: RemoteAttributeError, _runner.NOT_SENT: RemoteSerializeError, _runner.NOT_READ: RemoteDeserializeError}


def is_implemented_in_notebook(cls):
    """Whether no file has it."""
    assert inspect.isclass(cls), f"{cls!r} is no class"
    return not getattr(sys.modules.get(cls.__module__), "__file__", None)


def _shipped(cls):
    """By its name where the other host can import it, else by value."""
    if cls.__module__ in ("__main__", "__mp_main__") or "<" in cls.__qualname__ or is_implemented_in_notebook(cls):
        return cloudpickle.dumps(cls, 5)
    return cls.__module__, cls.__qualname__


def _checked(name):
    assert not name.startswith(_runner.RESERVED), f"names that begin with {_runner.RESERVED} are reserved: {name}"


class Remote:
    """One object, and the slot that it has. ResourceError: there is none."""

    def __init__(self, cls, args, kwargs, max_memory, n_gpu):
        self.name = cls.__name__
        self._client = get_global_client()
        self._place = self._client.take(n_gpu)
        self._lock = threading.RLock()  # the object may go in the middle of it
        self._names = None
        self._failed = None
        try:
            arguments = _runner.packed((args, kwargs))
            path = [one for one in sys.path if one]
            self._handle = self._place.pool.create(_runner.Runner, self._place.job, path, self._place.gpus, max_memory, self._client.bundle, _shipped(cls), arguments)
            self._made, self._host = self._handle.attributes(), self._place.host
        except Exception as e:
            self._handle = None
            self.end()
            raise RemoteSerializeError("__init__", str(e)) if isinstance(e, pickle.PicklingError) else RemoteError("__init__", str(e)) from e

    def end(self):
        """The slot is free again; the process ends, behind what is under way. As often as one likes."""
        with self._lock:
            place, self._place, self._handle = self._place, None, None
        if place is not None:
            self._client.give_back(place)

    def kill(self, error):
        """It has failed: nothing more comes of it. The error, as it was the first time."""
        with self._lock:
            self._failed = self._failed or error
            handle = self._handle
        if handle is not None:
            actors.kill(handle)
        self.end()
        return error

    def check(self):
        if self._failed is not None:
            raise RemoteError(self.name, f"it is gone: {self._failed}")

    def _said(self, error):
        """A worker's processes connect to this program, and one that does not is heard of by its end alone."""
        if isinstance(error, actors.PoolClosed) and self._host is not None:
            return f"the worker on {self._host} has ended, or its process there, which may not have reached this program: see xparl.log of that host"
        return str(error)

    # ---- its attributes

    def wait(self):
        """Until it is constructed. AssertionError: it has a reserved attribute; RemoteError."""
        self.check()
        if self._names is None:
            try:
                self._names = self._wait_for_slot().result()
            except actors.ActorError as e:
                cause = e.__cause__ if isinstance(e, actors.NotConstructed) else None
                if isinstance(cause, AssertionError) and _runner.RESERVED in str(cause):
                    raise self.kill(cause) from None
                raise self.kill(RemoteError("__init__", f"{self._said(e)}{cause.__cause__ or '' if cause is not None else ''}")) from None

    def _wait_for_slot(self):
        """Of a pool that gives none by itself when there is none. ResourceError."""
        if self._host is not None:
            return self._made
        try:
            self._made.exception(WAIT_SECONDS)
        except TimeoutError:
            if self._place.pool.host(self._handle) is None:
                raise self.kill(ResourceError(f"no slot of the pool has become free within {WAIT_SECONDS} s")) from None
        return self._made

    def has(self, name):
        self.wait()
        return name in self._names

    # ---- what is asked of it

    def settled(self, name, future):
        """A Future of what settle() gives. Its failure is said at once, whether or not anybody takes the result, and the slot is free."""
        value = concurrent.futures.Future()

        def settle(_):
            try:
                value.set_result(self.settle(name, future))
            except RemoteError as e:
                print(f"{self.name}.{e}", file=sys.stderr)
                value.set_exception(e)

        future.add_done_callback(settle)
        return value

    def start(self, do, name, *what):
        """A Future for settle()."""
        with self._lock:
            handle = self._handle
        if handle is None:
            self.check()
            raise RemoteError(self.name, "it is gone")
        return getattr(handle, do)(name, *what)

    def call(self, name, args, kwargs):
        try:
            what = _runner.packed((args, kwargs))
        except Exception as e:
            raise self.kill(RemoteSerializeError(name, str(e))) from e
        return self.start("call", name, *what)

    def set(self, name, value):
        try:
            what = _runner.packed(value)
        except Exception as e:
            raise self.kill(RemoteSerializeError(name, str(e))) from e
        return self.start("set", name, *what)

    def settle(self, name, future):
        """The value. RemoteError."""
        try:
            kind, *what = future.result()
        except actors.ActorError as e:
            raise self.kill(RemoteError(name, self._said(e))) from None
        if kind == _runner.FAILED:
            raise self.kill(_ERRORS[what[0]](name, what[1]))
        body, buffers, names = what
        if names is not None:
            self._names = names
        try:
            return _runner.unpacked(body, buffers)
        except Exception as e:
            raise self.kill(RemoteDeserializeError(name, str(e))) from e


class Waiting:
    """An object whose calls give values."""

    def __init__(self, *args, **kwargs):
        for name in kwargs:
            _checked(name)
        max_memory, n_gpu = self._xparl_options
        self._xparl_remote = Remote(self._original, args, kwargs, max_memory, n_gpu)
        weakref.finalize(self, self._xparl_remote.end).atexit = False
        self._xparl_remote.wait()

    def __getattr__(self, name):
        if name.startswith("__") or name == "_xparl_remote":
            raise AttributeError(name)
        remote = self._xparl_remote
        if remote.has(name):
            return remote.settle(name, remote.start("get", name))

        def method(*args, **kwargs):
            remote = self._xparl_remote  # who has the method keeps the object
            remote.check()
            return remote.settle(name, remote.call(name, args, kwargs))

        return method

    def __setattr__(self, name, value):
        if name == "_xparl_remote":
            object.__setattr__(self, name, value)
            return
        _checked(name)
        self._xparl_remote.check()
        self._xparl_remote.settle(name, self._xparl_remote.set(name, value))


class FutureObject:
    """What a call of an object with wait=False will give, once.

    get(block, timeout)   FutureObjectEmpty: it is not there yet; FutureGetRepeatedlyError; FutureFunctionError: it has failed"""

    def __init__(self, name, future):
        self._name, self._future = name, future
        self._lock = threading.Lock()
        self._got = False

    def get(self, block=True, timeout=None):
        assert timeout is None or timeout > 0, "timeout is more than 0 seconds"
        with self._lock:
            if self._got:
                raise FutureGetRepeatedlyError
            try:
                value = self._future.result(timeout if block else 0)
            except TimeoutError:
                raise FutureObjectEmpty from None
            except RemoteError as e:
                raise FutureFunctionError(self._name) from e
            self._got = True
            return value

    def get_nowait(self):
        return self.get(block=False)

    def empty(self):
        return not self._future.done()


class NotWaiting:
    """An object whose calls give FutureObjects. They are done in their order."""

    def __init__(self, *args, **kwargs):
        for name in kwargs:
            _checked(name)
        max_memory, n_gpu = self._xparl_options
        self._xparl_remote = Remote(self._original, args, kwargs, max_memory, n_gpu)
        self._xparl_last = None  # of the call that was made last, which may make attributes: a Future
        weakref.finalize(self, self._xparl_remote.end).atexit = False

    def destroy(self):
        self._xparl_remote.end()

    def __getattr__(self, name):
        if name.startswith("__") or name in ("_xparl_remote", "_xparl_last"):
            raise AttributeError(name)
        remote = self._xparl_remote
        if self._xparl_last is not None and not callable(getattr(self._original, name, None)):
            self._xparl_last.exception()
        if _failing(name, lambda: remote.has(name)):
            return _failing(name, lambda: remote.settle(name, remote.start("get", name)))

        def method(*args, **kwargs):
            remote = self._xparl_remote  # who has the method keeps the object
            _failing(name, remote.check)
            future = remote.settled(name, _failing(name, lambda: remote.call(name, args, kwargs)))
            self._xparl_last = future
            return FutureObject(name, future)

        return method

    def __setattr__(self, name, value):
        if name in ("_xparl_remote", "_xparl_last"):
            object.__setattr__(self, name, value)
            return
        _checked(name)
        remote = self._xparl_remote
        _failing(name, remote.wait)
        _failing(name, lambda: remote.settle(name, remote.set(name, value)))


def _failing(name, do):
    try:
        return do()
    except (RemoteError, AssertionError) as e:
        raise FutureFunctionError(name) from e


def remote_class(*args, **kwargs):
    """@remote_class, or with

    wait=False       calls give FutureObjects
    max_memory=MB    so much more than at first may each object have
    n_gpu=N          so many GPUs are its own, in a cluster of GPUs"""
    for name in kwargs:
        assert name in OPTIONS, f"remote_class has no {name}; it has {', '.join(OPTIONS)}"

    def decorated(cls):
        assert inspect.isclass(cls), "remote_class is for classes"
        if os.environ.get("XPARL") == "True":  # within an object's process it is the class itself
            return cls
        base = Waiting if kwargs.get("wait", True) else NotWaiting
        return type(cls.__name__, (base,), {"_original": cls, "_xparl_options": (kwargs.get("max_memory"), kwargs.get("n_gpu", 0)), "__doc__": cls.__doc__,
                                            "__module__": cls.__module__, "__qualname__": cls.__qualname__})

    return decorated(args[0]) if len(args) == 1 and callable(args[0]) else decorated
