# SPDX-License-Identifier: Apache-2.0
"""The data of a Primus job as a PyTorch data set.

    loader = torch.utils.data.DataLoader(primus.torch.TaskDataset(decode), batch_size=64, num_workers=2)
    for batch in loader:
        ...

Every worker process has a connection of its own, and the executor's tasks are shared out among them; so nothing need be
sharded by hand, and no record comes twice. collate_fn=primus.torch.collate gets batches from workers faster. What counts, by
the job's input.ack:

    release     what a worker has read, which is up to prefetch_factor batches more than the trainer has seen: after a crash
                those do not come again. Without workers (num_workers=0): the megabyte before the latest record at most comes
                again.
    exit        everything, when the trainer exits 0: with workers, the one to take if nothing may be lost.
    checkpoint  num_workers=0 alone, because only then it is known which records are in which state; see state_dict().
    explicit    num_workers=0 alone; ack() after a step.

Ranks that go in step (DistributedDataParallel and its kin) take LockstepDataset and LockstepLoader: epochs, the same number of
batches for every rank, and checkpoints with any number of workers.
"""
from __future__ import annotations

import itertools
import logging
import os

from torch.utils.data import IterableDataset, get_worker_info

import primus

from . import _listing, _shuffle
from ._batch import Packed, collate
from ._map import MapDataset
from ._sampler import ElasticSampler

__all__ = ["ElasticSampler", "LockstepDataset", "LockstepLoader", "MapDataset", "TaskDataset", "collate"]


log = logging.getLogger("primus")


class TaskDataset(IterableDataset):
    """decode: what makes a sample of a record (see primus.records()); None: the record itself. Runs in the worker, so it has
    to be a function of a module if workers are spawned rather than forked.

    on_error: what becomes of a record that decode raises an exception for.
        raise      the exception goes on, with a note that says which record of which file it was (the default)
        skip       the record is left out: logged (logger "primus"; of many, ever fewer), counted in .skipped of this process
                   and as processed
        fail_task  its task fails, with the exception as the reason, and is tried again as often as the job's
                   maxTaskAttempts says; another task follows here

    shuffle: about so many records are mixed, of so many tasks at once (tasks=, 16 unless told; every worker has as many, 60 at most
    for all workers of an executor). For data that LockstepDataset cannot read by number. Each open task is a connection, with a ring of
    its own in input.mode ring. What is mixed does not count as processed before it has come out: under input.ack release, what comes
    again after a crash is what had come out of the blocks that are being mixed. seed: of the picks; which tasks are open follows from
    who asked when, so the order as a whole is another one each time. input.mode ring or descriptor, input.ack release or exit, and
    on_error raise or skip.

    batch: so many records at once. decode gets a list of them, at the end a shorter one, and makes a batch of it; the loader gets
    batch_size=None and no collate_fn. Much faster where decode can do all of them with one call, as numpy can; on_error is raise then."""

    def __init__(self, decode=None, on_error="raise", batch=None, shuffle=None, tasks=None, seed=None):
        super().__init__()
        if batch is not None and (batch < 1 or decode is None or on_error != "raise"):
            raise ValueError("batch= wants at least 1, a decode for lists of records, and on_error='raise'")
        if on_error not in ("raise", "skip", "fail_task"):
            raise ValueError(f"on_error={on_error!r}: there are 'raise', 'skip' and 'fail_task'")
        if shuffle is None and (tasks is not None or seed is not None):
            raise ValueError("tasks= and seed= go with shuffle=; without it, the order is the job's (input.order)")
        if shuffle is not None and on_error == "fail_task":
            raise ValueError("shuffle= goes with on_error='raise' or 'skip': of a task that fails in its midst records have come out already")
        if shuffle is not None:
            _shuffle.check(shuffle, tasks)
        self.shuffle, self.tasks, self.seed = shuffle, tasks, seed
        self._mixed = None
        self.decode = decode
        self.on_error = on_error
        self.batch = batch
        self.skipped = 0
        self._checkpoint = None
        self._feed = None

    def __iter__(self):
        if _listing.of_job() is not None:
            raise ValueError("this job's data are read in lockstep (input.lockstep): take primus.torch.LockstepDataset")
        if self.shuffle is not None:
            return self._shuffled()
        feed = self._open()
        if get_worker_info() is not None and feed.ack_mode in ("explicit", "checkpoint"):
            raise ValueError(f"input.ack {feed.ack_mode} needs DataLoader(num_workers=0): workers read ahead of the trainer; "
                             "with workers, LockstepDataset has checkpoints")
        return feed.records() if self.decode is None else self._samples(feed)

    def _shuffled(self):
        worker = get_worker_info()
        self.close()
        self._mixed = _shuffle.Shuffled(self.shuffle, self.tasks, None if self.seed is None else f"{self.seed} {worker.id if worker else 0}",
                                        worker.num_workers if worker else 1)
        return iter(self._mixed) if self.decode is None else self._samples(self._mixed)

    def _samples(self, feed):
        records = iter(feed) if self._mixed is not None else feed.records()
        if self.batch is not None:
            records = iter(lambda all_of_them=records: list(itertools.islice(all_of_them, self.batch)), [])
        samples = map(self.decode, records)
        if self.batch is not None and get_worker_info() is not None:
            samples = map(Packed, samples)
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
            of = "record" if self.batch is None else f"last of {self.batch} records"
            _add_note(error, f"primus: the {of} is {place}")
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
        if self._mixed is not None:
            self._mixed.close()
            self._mixed = None

    def _open(self):
        if self._feed is None or self._feed.pid != os.getpid():
            self._feed = primus.Feed(self._checkpoint)
        return self._feed

    def __getstate__(self):
        """A worker that is spawned opens its own."""
        return {**self.__dict__, "_feed": None, "_mixed": None}


def _add_note(error, note):
    """Shown with the exception, also where a DataLoader raises it anew in the process that trains."""
    if hasattr(error, "add_note"):
        error.add_note(note)
    elif len(error.args) == 1 and isinstance(error.args[0], str):  # Python 3.10 and before
        error.args = (f"{error.args[0]}\n{note}",)


def __getattr__(name):
    """These need numpy, and TaskDataset does not."""
    if name in ("LockstepDataset", "LockstepLoader"):
        from . import _lockstep
        return getattr(_lockstep, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
