# SPDX-License-Identifier: Apache-2.0
"""Data for trainings whose ranks go in step: primus.torch.LockstepDataset and LockstepLoader. Nobody hands anything out. The
order of an epoch's samples follows from the files, the seed and the epoch (_order.py), each rank takes its share of each
batch, and how far the training is, is one number."""
from __future__ import annotations

import os

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from . import _listing, _order, _samples

AHEAD = 4096  # positions that are looked up at once
MODES = ("drop", "pad")


def _ranks(rank, world_size):
    """(rank, world_size, whether the ranks can speak to each other now)"""
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size are given both, or neither")
    together = rank is None and dist.is_available() and dist.is_initialized()
    if together:
        rank, world_size = dist.get_rank(), dist.get_world_size()
    elif rank is None:
        rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} of {world_size}: 0 to {world_size - 1} are expected")
    return rank, world_size, together and world_size > 1


def _together(make, world_size):
    """What make() gives, where that is the same for all ranks; all of them fail where it is not, or where one fails."""
    index = failure = None
    try:
        index = make()
        mine = (index.digest, None)
    except Exception as error:  # raised below, when the others know
        failure, mine = error, (None, f"{type(error).__name__}: {error}")
    group = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
    said = [None] * world_size
    dist.all_gather_object(said, mine, group=group)
    if group is not None:
        dist.destroy_process_group(group)
    if failure is not None:
        raise failure
    for other, (digest, why) in enumerate(said):
        if why is not None:
            raise RuntimeError(f"rank {other} cannot read the data: {why}")
        if digest != index.digest:
            raise RuntimeError(f"rank {other} has other data (index {digest}, here {index.digest}): the files have to be the same on all hosts; "
                               "index= keeps one listing for all of them")
    return index


class LockstepDataset(IterableDataset):
    """All ranks get the same number of batches in each epoch, and one iteration is one epoch. See primus(3).

    decode       what makes a sample of a record (text: the line without its newline; fixed: the record; tar: {name: bytes})
    batch_size   samples of a batch of this rank; the same on all ranks
    files        paths or patterns, as pathPattern has them; None: what the job's input says (input.lockstep)
    format       "text", "fixed" (with record_size) or "tar"; of a job its input says it
    lockstep     "drop": only whole batches; "pad": the rest too, with samples from the beginning of the epoch once more so that
                 the ranks have equally many. Default: the job's, else "drop"
    shuffle, seed  default: the job's input.order and input.seed, else True and 0
    window       blocks of each of 48 lanes that samples are mixed in
    index        a file on storage that all ranks share: the listing and where samples are, kept for all ranks and starts.
                 None: each rank lists and reads through the files itself
    rank, world_size  default: torch.distributed's, where it is initialized, else RANK and WORLD_SIZE, else one rank

    Where torch.distributed is initialized (and rank is not given), making it is a collective call: the ranks compare what they have listed."""

    def __init__(self, decode=None, batch_size=1, *, files=None, format=None, record_size=None, lockstep=None, shuffle=None, seed=None,
                 window=_order.WINDOW, index=None, rank=None, world_size=None):
        super().__init__()
        said = self._settings(files, format, record_size)
        self.decode = decode
        self.batch_size = batch_size
        self.lockstep = said["lockstep"] if lockstep is None else lockstep
        self.shuffle = said["shuffle"] if shuffle is None else bool(shuffle)
        self.seed = said["seed"] if seed is None else seed
        self.window = window
        if self.lockstep not in MODES:
            raise ValueError(f"lockstep={self.lockstep!r}: there are 'drop' and 'pad'")
        for name, value, most in (("batch_size", batch_size, 1 << 30), ("window", window, 1 << 20)):
            if not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{name}={value!r}: a number from 1 to {most} is expected")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise ValueError(f"seed={self.seed!r}: a number from 0 to 2**63 - 1 is expected")
        self.rank, self.world_size, together = _ranks(rank, world_size)
        what = {name: said[name] for name in ("format", "record_size", "max_record")}

        def make():
            return _samples.get(said["patterns"], what, index and os.path.abspath(index))

        self._index = _together(make, self.world_size) if together else make()
        self.n_samples = self._index.n
        if len(self) == 0:
            raise ValueError(f"{self.n_samples} samples make no batch of {self.batch_size} for each of {self.world_size} ranks, and an epoch would "
                             "be empty: take a smaller batch_size, or lockstep='pad'")
        self._reader = None
        # What workers that outlive an epoch have to see: epoch, where it begins, whether a LockstepLoader counts their batches.
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._samples = 0  # of the epoch, that have been delivered to all ranks together
        self._begun = False

    @staticmethod
    def _settings(files, format, record_size):
        if files is None:
            said = _listing.of_job()
            if said is None:
                raise ValueError("files= is missing: only in a job whose configuration has input.lockstep it need not be given")
            if format is not None or record_size is not None:
                raise ValueError("format and record_size are the job's (inputManager), where files are")
            return said
        format = format or "text"
        if format not in _listing.FORMATS:
            raise ValueError(f"format={format!r}: there are {', '.join(_listing.FORMATS)}")
        if (format == "fixed") != (record_size is not None):
            raise ValueError("record_size is given with format='fixed', and with no other")
        if record_size is not None and (not isinstance(record_size, int) or not 1 <= record_size <= 1 << 30):
            raise ValueError(f"record_size={record_size!r}: a number from 1 to {1 << 30} is expected")
        files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        if not files:
            raise ValueError("files= is empty")
        return {"patterns": [(os.fspath(pattern), "*") for pattern in files], "format": format, "record_size": record_size,
                "lockstep": "drop", "shuffle": True, "seed": 0, "max_record": 1 << 30}

    # ---- epochs ----

    @property
    def epoch(self):
        """The epoch that an iteration is in, or that the next one is."""
        return int(self._shared[0])

    @property
    def samples(self):
        """How many samples of the epoch all ranks together have had."""
        return self._samples

    def set_epoch(self, epoch):
        """The next iteration is that epoch, from its beginning; or from where load_state_dict() has set it, where that was in this
        epoch."""
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch {epoch!r}: a number from 0 on is expected")
        if epoch != self.epoch or self._begun:
            self._go(epoch, 0)

    def _go(self, epoch, samples):
        self._shared[0], self._shared[1] = epoch, samples
        self._samples, self._begun = samples, False

    def begin(self, by_loader=False):
        """An iteration begins: LockstepLoader calls this. The Share of this rank."""
        if self._begun:  # the one before was left on the way
            self._go(self.epoch + 1, 0)
        self._begun = True
        self._shared[2] = by_loader
        return self._share(int(self._shared[1]))

    def left_by_loader(self):
        self._shared[2] = False

    def delivered(self, share, batch):
        """The trainer has that batch."""
        self._samples = share.end(batch)

    def end(self):
        """The iteration has come to its end; the next one is the next epoch."""
        self._go(self.epoch + 1, 0)

    def _share(self, start=0):
        return _order.Share(self.n_samples, start, self.batch_size, self.rank, self.world_size, self.lockstep == "pad")

    def __len__(self):
        """Samples of this rank in a whole epoch."""
        return self._share().samples()

    # ---- samples ----

    def __iter__(self):
        worker = get_worker_info()
        if worker is None:
            by_loader = bool(self._shared[2])
            share = self._share(int(self._shared[1])) if by_loader else self.begin()
            return self._deliver(share, not by_loader)
        if not self._shared[2]:
            raise ValueError("LockstepDataset with num_workers > 0 needs primus.torch.LockstepLoader in DataLoader's place: which batches have "
                             "come out of the workers is known there alone")
        return self._make(self._share(int(self._shared[1])), self.epoch, worker.id, worker.num_workers)

    def _deliver(self, share, count):
        made = self._make(share, self.epoch, 0, 1)
        for batch in range(share.batches):
            for left in range(share.size(batch), 0, -1):
                sample = next(made)
                if count and left == 1:
                    self.delivered(share, batch)
                yield sample
        if count:
            self.end()

    def _make(self, share, epoch, first, step):
        """Batches first, first + step, ...: DataLoader takes them from its workers in turn, which gives them their order again."""
        if self._reader is None:
            self._reader = _samples.Reader(self._index)
        order = _order.Epoch(self._index.blocks[:, 3], self.seed if self.shuffle else None, epoch, self.window)
        at_once = max(1, AHEAD // self.batch_size)
        for begin in range(first, share.batches, step * at_once):
            batches = range(begin, min(share.batches, begin + step * at_once), step)
            blocks, samples = order.locate(np.concatenate([share.positions(batch) for batch in batches]))
            for block, sample, record in self._reader.samples(blocks, samples):
                yield record if self.decode is None else self._decoded(record, block, sample)

    def _decoded(self, record, block, sample):
        try:
            return self.decode(record)
        except Exception as error:
            from .torch import _add_note
            _add_note(error, f"primus: the record is {self._reader.place(block, sample)}")
            raise

    # ---- checkpoints ----

    def state_dict(self):
        """What a checkpoint has to hold of the data: the same on all ranks, good for any number of them, and of workers. In a loop,
        the batch of this turn is in it."""
        return {"epoch": self.epoch, "samples": self._samples, "order": self._order()}

    def _order(self):
        return {"data": self._index.digest, "shuffle": self.shuffle, "seed": self.seed, "window": self.window}

    def load_state_dict(self, state):
        """The next iteration goes on behind what the checkpoint holds."""
        mine, other = self._order(), state["order"]
        names = {"data": "the files", "shuffle": "shuffle", "seed": "seed", "window": "window"}
        wrong = [f"{names[name]} ({other.get(name)}, here {mine[name]})" for name in mine if mine[name] != other.get(name)]
        if wrong:
            raise ValueError(f"the checkpoint is of another order of the data: {', '.join(wrong)}; without them there is no going on from "
                             "where it stands (set_epoch() begins an epoch)")
        if not 0 <= state["samples"] <= self.n_samples or state["epoch"] < 0:
            raise ValueError(f"epoch {state['epoch']}, samples {state['samples']}: there are {self.n_samples} samples in an epoch")
        self._go(state["epoch"], state["samples"])

    def __getstate__(self):
        """A worker that is spawned opens the files itself."""
        return {**self.__dict__, "_reader": None}


class LockstepLoader(DataLoader):
    """DataLoader of a LockstepDataset, with any number of workers: it counts the batches that have come out. Takes DataLoader's
    other arguments; batches are the data set's (batch_size), and so is their order."""

    def __init__(self, dataset, **options):
        if not isinstance(dataset, LockstepDataset):
            raise TypeError(f"a LockstepDataset is expected, not {type(dataset).__name__}")
        taken = sorted({"batch_size", "shuffle", "sampler", "batch_sampler", "drop_last"} & options.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: are LockstepDataset's to say (batch_size, shuffle, lockstep)")
        super().__init__(dataset, batch_size=dataset.batch_size, **options)

    def __iter__(self):
        share = self.dataset.begin(by_loader=True)
        try:
            for number, batch in enumerate(super().__iter__()):
                self.dataset.delivered(share, number)
                yield batch
        finally:
            self.dataset.left_by_loader()
        self.dataset.end()

    def __len__(self):
        """Batches of a whole epoch, the same on all ranks."""
        return self.dataset._share().batches

    @property
    def epoch(self):
        return self.dataset.epoch

    def set_epoch(self, epoch):
        self.dataset.set_epoch(epoch)

    def state_dict(self):
        return self.dataset.state_dict()

    def load_state_dict(self, state):
        self.dataset.load_state_dict(state)
