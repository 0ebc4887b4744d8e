# SPDX-License-Identifier: Apache-2.0
"""What a trainer says of its training: a loss, a rate, for people to look at (primusctl metrics, the page). Of any job.

    from primus import metrics

    for step, batch in enumerate(batches):
        loss = train(batch)
        metrics.report(step, loss=loss, lr=rate)

A report never waits and costs some microseconds: a thread sends about once a second. Of a name that has been reported often, what
came within one of those is one point (count, last, lowest, highest, mean). Names are letters, digits and _ - . / : of ASCII, at most 64 bytes; at most
128 of them. A step that is lower than the one before begins again from there (a trainer that went back to a checkpoint). Of several
processes of an executor, as torchrun and mpirun start them, each has its own series; a forked child may not report. Outside of Primus
reports go nowhere, so that the same program runs alone."""
import ctypes
import errno
import os
import re

from . import _lib

_INSIDE = "PRIMUS_SOCKET" in os.environ
_library = None
_names = {}  # names as they are reported together: their array for C


def _array(names):
    global _library
    if _library is None:
        _library = _lib.load()
    if len(_names) == 1024:  # names that are made up anew each time
        _names.clear()
    n = len(names)
    array = (ctypes.c_char_p * n)(*(name.encode() for name in names))
    found = _names[names] = array, ctypes.c_double * n, n
    return found


def report(step, /, **values):
    """Values of a step (an int): report(7, loss=0.2, **{"train/accuracy": 0.9}). Numbers, also NaN; a tensor of one element is one.
    ValueError: a name that is none; OSError: more than 128 names, or in a forked child."""
    if not _INSIDE or not values:
        return
    if step < 0:
        raise ValueError(f"step is {step}, which is below 0")
    names = tuple(values)
    array, kind, n = _names.get(names) or _array(names)
    r = _library.primus_report(step, array, kind(*values.values()), n)
    if r < 0:
        _raise(r, names)


def _raise(r, names):
    if r == -errno.EINVAL:
        bad = [name for name in names if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}", name)]
        raise ValueError(f"{bad[0] if bad else names!r} is no name of a metric: letters, digits and _ - . / : of ASCII, at most 64")
    raise OSError(-r, {errno.ENOSPC: "a process reports at most 128 names of metrics", errno.ECHILD: "a forked child cannot report metrics"}.get(-r, os.strerror(-r)))


def flush(seconds=5):
    """Waits until this host's agent has everything that was reported; TimeoutError. At the end of the program that is done for two
    seconds anyway."""
    if _INSIDE and _library is not None:
        r = _library.primus_report_flush(int(seconds * 1000000))
        if r < 0:
            raise OSError(-r, os.strerror(-r))


class SummaryWriter:
    """What trainers written for torch.utils.tensorboard call, as metrics of the job: add_scalar() and add_scalars(). Of tags, what
    is no part of a name becomes "_". Anything else of TensorBoard's is refused (NotImplementedError): it has no place here."""

    def __init__(self, log_dir=None, comment="", **_):
        self._step = {}

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, **_):
        if global_step is None:
            global_step = self._step.get(tag, -1) + 1
        self._step[tag] = int(global_step)
        report(int(global_step), **{name_of(tag): float(scalar_value)})

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step)

    def __getattr__(self, name):
        if name.startswith("add_"):
            raise NotImplementedError(f"primus.metrics.SummaryWriter has no {name}(): metrics are numbers")
        raise AttributeError(name)

    def flush(self):
        flush()

    def close(self):
        flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def name_of(tag):
    """A tag as a name of a metric: "Loss/train set" is Loss/train_set."""
    name = re.sub(r"[^A-Za-z0-9_.:/-]", "_", tag)[:64]
    return name if name[:1].isalnum() else ("m" + name)[:64]
