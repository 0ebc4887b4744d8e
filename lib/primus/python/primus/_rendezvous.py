# SPDX-License-Identifier: Apache-2.0
"""Who is in the job now: primus.rendezvous() and primus.wait_rendezvous()."""
import ctypes
import errno
import os
import time

from . import _lib


class Rendezvous:
    """What holds for one epoch of the job's membership.

    Attributes: epoch (int, 0 outside of Primus), rank, world_size (int), env (dict: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT,
    TF_CONFIG ... as an executor that started now would have them)."""

    def __init__(self, epoch, env):
        self.epoch = epoch
        self.env = env
        self.rank = int(env.get("RANK", 0))
        self.world_size = int(env.get("WORLD_SIZE", 1))

    def __repr__(self):
        return f"<Rendezvous epoch {self.epoch}: rank {self.rank} of {self.world_size}>"


def _take(lib, handle):
    env, line = {}, None
    try:
        while True:
            line = lib.primus_rendezvous_next(handle, line)
            if not line:
                break
            name, _, value = os.fsdecode(ctypes.string_at(line)).partition("=")
            env[name] = value
        return Rendezvous(lib.primus_rendezvous_epoch(handle), env)
    finally:
        lib.primus_rendezvous_free(handle)


def rendezvous():
    """The rendezvous as it is now. Outside of Primus: epoch 0, and what the environment says."""
    if not os.environ.get("PRIMUS_RENDEZVOUS_FILE"):
        return Rendezvous(0, dict(os.environ))
    lib, handle = _lib.load(), ctypes.c_void_p()
    result = lib.primus_rendezvous_read(ctypes.byref(handle))
    if result < 0:
        raise OSError(-result, os.strerror(-result), os.environ["PRIMUS_RENDEZVOUS_FILE"])
    return _take(lib, handle)


def wait_rendezvous(after, timeout=None):
    """Waits until the epoch is higher than after, for timeout seconds (None: for ever). The new Rendezvous, or None when the
    time is over. Signals are handled meanwhile."""
    if not os.environ.get("PRIMUS_RENDEZVOUS_FILE"):
        raise OSError(errno.ENOENT, "not an executor of Primus (PRIMUS_RENDEZVOUS_FILE is not set)")
    lib, handle = _lib.load(), ctypes.c_void_p()
    until = None if timeout is None else time.monotonic() + timeout
    while True:
        left = 2**64 - 1 if until is None else max(0, int((until - time.monotonic()) * 1e6))
        result = lib.primus_rendezvous_wait(after, left, ctypes.byref(handle))
        if result > 0:
            return _take(lib, handle)
        if result == 0:
            return None
        if result != -errno.EINTR:
            raise OSError(-result, os.strerror(-result), os.environ["PRIMUS_RENDEZVOUS_FILE"])
