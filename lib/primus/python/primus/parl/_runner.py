# SPDX-License-Identifier: Apache-2.0
"""A remote object's process: the actor that holds it. Values come and go as pickles of their own (cloudpickle), which are read when the
files and the search path are there: they name classes of the user's modules."""
import importlib
import os
import pathlib
import pickle
import signal
import sys
import threading
import time
import traceback

import cloudpickle

from . import _bundle

RESERVED = "_xparl"
MEMORY_SECONDS = 1
VALUE, FAILED = "value", "failed"
RAISED, NO_ATTRIBUTE, NOT_SENT, NOT_READ, IS_RESERVED = range(5)


def packed(value):
    """(pickle, [buffers beside it])"""
    buffers = []
    return cloudpickle.dumps(value, 5, buffer_callback=buffers.append), buffers


def unpacked(body, buffers):
    return pickle.loads(body, buffers=buffers)


def _resident():
    """Bytes."""
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _watch_memory(most):
    """As PARL does: how much it had at first goes on top. What ends it is a signal that the caller hears of."""
    end = _resident() + most
    while True:
        time.sleep(MEMORY_SECONDS)
        if _resident() > end:
            print(f"max_memory: {most >> 20} MiB are used up", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


def _print_to(path):
    """Standard output and standard error, together in their order."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)
    sys.stdout.reconfigure(line_buffering=True)


class Runner:
    """job        what it is called: 16 hexadecimal digits
    path          of modules, at the caller's
    gpus          [numbers] that it may see, or None: as they are
    max_memory    MiB, or None
    bundle        what _bundle.read() gives
    made          (module, qualified name) of the class, or a pickle of it
    arguments     (pickle, buffers) of (args, kwargs)"""

    def __init__(self, job, path, gpus, max_memory, bundle, made, arguments):
        os.environ["XPARL"] = "True"  # before the class is imported: its decorator does nothing then
        if gpus is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        if "PRIMUS_PARL_LOGS" in os.environ:
            _print_to(os.path.join(os.environ["PRIMUS_PARL_LOGS"], job))
        os.chdir(_bundle.unpack(bundle, job))
        sys.path[:] = [os.getcwd(), *(one for one in path if one)]
        sys.path_importer_cache.clear()  # relative ones were looked for elsewhere
        if max_memory is not None:
            threading.Thread(target=_watch_memory, args=(int(max_memory * (1 << 20)),), daemon=True).start()
        args, kwargs = unpacked(*arguments)
        self._object = _class_of(made)(*args, **kwargs)
        for name in self._names():
            assert not name.startswith(RESERVED), f"names that begin with {RESERVED} are reserved: {name}"
        self._told = frozenset()

    def _names(self):
        return frozenset(getattr(self._object, "__dict__", ()))

    def attributes(self):
        """Names of its attributes, which are values to the caller; all others are methods."""
        self._told = self._names()
        return self._told

    def call(self, name, body, buffers):
        """(VALUE, pickle, buffers, its attributes if they have changed, or None), or (FAILED, what kind, text)"""
        try:
            args, kwargs = unpacked(body, buffers)
        except Exception:
            return FAILED, NOT_READ, traceback.format_exc()
        return self._answer(lambda: getattr(self._object, name)(*args, **kwargs))

    def get(self, name):
        return self._answer(lambda: getattr(self._object, name))

    def set(self, name, body, buffers):
        return self._answer(lambda: setattr(self._object, name, unpacked(body, buffers)))

    def _answer(self, do):
        try:
            value = do()
        except AttributeError:
            return FAILED, NO_ATTRIBUTE, traceback.format_exc()
        except Exception:
            return FAILED, RAISED, traceback.format_exc()
        try:
            body, buffers = packed(value)
        except Exception:
            return FAILED, NOT_SENT, traceback.format_exc()
        names, told = self._names(), self._told
        self._told = names
        return VALUE, body, buffers, None if names == told else names


def _class_of(made):
    if isinstance(made, bytes):
        return cloudpickle.loads(made)
    module, name = made
    thing = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    return getattr(thing, "_original", thing)
