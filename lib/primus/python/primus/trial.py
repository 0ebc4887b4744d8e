# SPDX-License-Identifier: Apache-2.0
"""A trial of a search: what it is to train with, and how it says how good that is.

    from primus import trial

    lr = trial.params.get("lr", 0.1)
    for epoch in range(1, 28):
        trial.report(epoch, train_loss=train(lr))
        trial.report_validation(epoch, loss=evaluate())

Outside of a search params is empty and reports go nowhere, so that the same program runs alone.

    params   dict: the parameters; objects of the space are dicts in it
    number   int: of the trial, from 0 on; None outside of a search
    seed     int, 0 ... 2**31 - 1: for what the trial draws itself; 0 outside of a search
    metric   str: the name of the search's metric; None: it compares nothing

A trial that is not among the best is stopped as any executor is: SIGTERM, the job's stopGrace, SIGKILL; that counts as a
success. With should_stop() it hears of it and saves before it ends."""
import atexit
import ctypes
import json
import os

from . import _lib, metrics as _metrics
from ._stopping import should_stop  # noqa: F401 -- as any executor is stopped
from .metrics import report  # noqa: F401 -- of the training, as any job's

FLUSH_SECONDS = 30

number = int(os.environ["PRIMUS_TRIAL"]) if "PRIMUS_TRIAL" in os.environ else None
params = json.loads(os.environ.get("PRIMUS_TRIAL_PARAMS", "{}"))
seed = int(os.environ.get("PRIMUS_TRIAL_SEED", "0"))
metric = os.environ.get("PRIMUS_SEARCH_METRIC")

_lib_and_handle = None


def _open():
    global _lib_and_handle
    if _lib_and_handle is None:
        lib, handle = _lib.load(), ctypes.c_void_p()
        r = lib.primus_trial_open(ctypes.byref(handle))
        if r < 0:
            raise OSError(-r, f"cannot report: {os.strerror(-r)}")
        _lib_and_handle = lib, handle
        atexit.register(_close)
    return _lib_and_handle


def _close():
    """At the end of the program: what was reported is to arrive."""
    lib, handle = _lib_and_handle
    lib.primus_trial_flush(handle, FLUSH_SECONDS * 1000000)
    lib.primus_trial_close(handle)


def _check(lib, handle, r):
    if r < 0:
        raise OSError(-r, lib.primus_trial_error(handle).decode(errors="replace") or os.strerror(-r))


def report_validation(step, **metrics):
    """How good the trial is behind so many units of training (an int that rises; the units are those of the search's maxTime):
    report_validation(3, loss=0.2, accuracy=0.9). The search's metric must be among them (ValueError): it decides, and arrives
    however often agentd and masterd are started anew. All of them are metrics of the job as well, as with report(). Returns at
    once. One process of a trial reports: rank 0."""
    if number is None or metric is None:
        return
    if metric not in metrics:
        raise ValueError(f"the search compares {metric!r}, and {', '.join(map(repr, metrics)) or 'nothing'} was reported")
    value = float(metrics[metric])
    step = int(step)
    if step < 0:
        raise ValueError(f"step is {step}, which is below 0")
    _metrics.report(step, **metrics)
    _decide(step, value)


def _decide(step, value):
    """A result of the search's metric, to masterd alone."""
    lib, handle = _open()
    _check(lib, handle, lib.primus_trial_report(handle, step, value))


def invalid():
    """These parameters make no sense together: the trial ends, does not count, and the search tries others instead (but of a
    grid or a list). Does not return."""
    if number is not None:
        _say_invalid()
    raise SystemExit(0)


def _say_invalid():
    lib, handle = _open()
    _check(lib, handle, lib.primus_trial_invalid(handle))
    flush()


def flush(seconds=FLUSH_SECONDS):
    """Waits until masterd has everything on disk that was reported. OSError: it has not within that time (TimeoutError), or one
    was refused. At the end of the program that is done anyway."""
    if _lib_and_handle is not None:
        lib, handle = _lib_and_handle
        _check(lib, handle, lib.primus_trial_flush(handle, int(seconds * 1000000)))
