# SPDX-License-Identifier: Apache-2.0
"""Tells masterd of checkpoints, through agentd. Nobody waits for it: a thread says one after the other until masterd has it on disk."""
import atexit
import ctypes
import json
import math
import os
import queue
import sys
import threading

from .search import Connection, Refused

NAMES_MAX, METRICS_BYTES = 32, 1000  # of what masterd takes of metrics
WAITING_MAX = 1000
END_SECONDS = 10  # so long the end of the program waits for what is not said yet

_teller = None


class Registry(Connection):
    """Questions about checkpoints, each of which is waited for."""

    def _open(self):
        r = self._lib.primus_questions_open(ctypes.byref(self._handle))
        if r < 0:
            raise OSError(-r, "this is no executor of Primus: there is no PRIMUS_SOCKET")

    def marked(self, after):
        """Some of this user's checkpoints that are to be removed, with ids above after: a list of dicts of id, path, step, time, host."""
        return self.ask(op="checkpointsMarked", after=after)["checkpoints"]


class _Teller:
    def __init__(self):
        self.pid = os.getpid()
        self.said = queue.Queue(WAITING_MAX)
        self.registry = Registry()
        self._warned = False
        threading.Thread(target=self._run, name="primus-registry", daemon=True).start()
        atexit.register(self._end)

    def put(self, question):
        try:
            self.said.put_nowait(question)
        except queue.Full:
            self._warn(f"{WAITING_MAX} wait to be told of")

    def _warn(self, text):
        if not self._warned:
            print(f"primus.checkpoints: masterd does not know of all checkpoints: {text}", file=sys.stderr, flush=True)
        self._warned = True

    def _run(self):
        while True:
            question = self.said.get()
            try:
                self.registry.ask(**question)
            except (Refused, OSError) as e:
                self._warn(e)
            self.said.task_done()

    def _end(self):
        with self.said.all_tasks_done:
            self.said.all_tasks_done.wait_for(lambda: not self.said.unfinished_tasks, END_SECONDS)


def _tell(**question):
    """Outside of Primus nothing."""
    global _teller
    if "PRIMUS_SOCKET" not in os.environ:
        return
    if _teller is None or _teller.pid != os.getpid():
        try:
            _teller = _Teller()
        except OSError:
            return
    _teller.put(question)


def _some(metrics, first):
    """As many as masterd takes, the one that counts before the others; NaN and infinity are no JSON."""
    kept = {}
    for name in sorted(metrics, key=lambda name: name != first):
        value = metrics[name]
        kept[name] = value if isinstance(value, (int, float)) and math.isfinite(value) else None
        if len(kept) > NAMES_MAX or len(json.dumps(kept)) > METRICS_BYTES:
            del kept[name]
            break
    return kept


def _place(path):
    """As masterd knows it: absolute, or in a bucket."""
    return path if str(path).startswith("s3://") else os.path.abspath(path)


def saved(path, manifest, sizes, metric, smaller):
    """It is there: path of its directory, rank 0's manifest, the sizes of all files, the name of the metric that counts, or None."""
    _tell(op="checkpoint", path=_place(path), step=manifest["step"], time=manifest["time"], files=len(sizes), bytes=sum(sizes),
          metrics=_some(manifest["metrics"], metric), metric=metric or "", smaller=bool(smaller))


def gone(path):
    _tell(op="checkpointGone", path=_place(path))
