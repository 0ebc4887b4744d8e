# SPDX-License-Identifier: Apache-2.0
"""The data of a Primus job as a PyTorch data set.

    loader = torch.utils.data.DataLoader(primus.torch.TaskDataset(decode), batch_size=64, num_workers=2)
    for batch in loader:
        ...

Every worker process has a connection of its own, and the executor's tasks are shared out among them; so nothing need be
sharded by hand, and no record comes twice. What counts, by the job's input.ack:

    release     what a worker has read, which is up to prefetch_factor batches more than the trainer has seen: after a crash
                those do not come again. Without workers (num_workers=0): the megabyte before the latest record at most comes
                again.
    exit        everything, when the trainer exits 0: with workers, the one to take if nothing may be lost.
    checkpoint  num_workers=0 alone, because only then it is known which records are in which state; see state_dict().
    explicit    num_workers=0 alone; ack() after a step.
"""
from __future__ import annotations

import logging
import os

from torch.utils.data import IterableDataset, get_worker_info

import primus

__all__ = ["TaskDataset"]


log = logging.getLogger("primus")


class TaskDataset(IterableDataset):
    """decode: what makes a sample of a record (see primus.records()); None: the record itself. Runs in the worker, so it has
    to be a function of a module if workers are spawned rather than forked.

    on_error: what becomes of a record that decode raises an exception for.
        raise      the exception goes on, with a note that says which record of which file it was (the default)
        skip       the record is left out: logged (logger "primus"; of many, ever fewer), counted in .skipped of this process
                   and as processed
        fail_task  its task fails, with the exception as the reason, and is tried again as often as the job's
                   maxTaskAttempts says; another task follows here"""

    def __init__(self, decode=None, on_error="raise"):
        super().__init__()
        if on_error not in ("raise", "skip", "fail_task"):
            raise ValueError(f"on_error={on_error!r}: there are 'raise', 'skip' and 'fail_task'")
        self.decode = decode
        self.on_error = on_error
        self.skipped = 0
        self._checkpoint = None
        self._feed = None

    def __iter__(self):
        feed = self._open()
        if get_worker_info() is not None and feed.ack_mode in ("explicit", "checkpoint"):
            raise ValueError(f"input.ack {feed.ack_mode} needs DataLoader(num_workers=0): workers read ahead of the trainer")
        return feed.records() if self.decode is None else self._samples(feed)

    def _samples(self, feed):
        samples = map(self.decode, feed.records())
        while True:
            try:
                yield from samples
                return
            except primus.Error:  # of the feed itself
                raise
            except Exception as error:
                self._on_error(feed, error)

    def _on_error(self, feed, error):
        place = feed.where()
        if self.on_error == "raise" or place is None:
            _add_note(error, f"primus: the record is {place}")
            raise error
        why = f"{type(error).__name__}: {error}"
        if self.on_error == "fail_task":
            feed.fail(f"decode of the record at byte {place.position}: {why}")
            return
        self.skipped += 1
        if self.skipped <= 10 or self.skipped & (self.skipped - 1) == 0:
            log.warning("left out, %d by now: %s: %s", self.skipped, place, why)

    def state_dict(self):
        """What a checkpoint of the trainer has to hold of the data: everything delivered so far (input.ack checkpoint).
        Call committed() with it once the checkpoint is durable."""
        return {"primus": self._open().checkpoint()}

    def load_state_dict(self, state):
        """Goes on behind the checkpoint that state was kept in; before the first record."""
        if self._feed is not None and self._feed.task is not None:
            raise RuntimeError("load_state_dict() comes before the first record")
        self.close()
        self._checkpoint = state["primus"]

    def committed(self, state):
        """The checkpoint that holds state is durable."""
        self._open().commit(state["primus"])

    def ack(self):
        """Everything that was delivered counts (input.ack explicit)."""
        self._open().ack()

    def close(self):
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def _open(self):
        if self._feed is None or self._feed.pid != os.getpid():
            self._feed = primus.Feed(self._checkpoint)
        return self._feed

    def __getstate__(self):
        """A worker that is spawned opens its own."""
        return {**self.__dict__, "_feed": None}


def _add_note(error, note):
    """Shown with the exception, also where a DataLoader raises it anew in the process that trains."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):  # Python 3.10 and before
        error.args = (f"{error.args[0]}\n{note}",)
