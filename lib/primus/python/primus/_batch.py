# SPDX-License-Identifier: Apache-2.0
"""How a batch gets from a DataLoader's worker to the trainer. torch makes a new shared file for every tensor and sends its
descriptor, which takes longer than to make most batches. Here a small batch goes with the message, and a large one lies in memory
that worker and trainer share for good: a few slabs, each of which is used again once the trainer has let go of what lay in it.

Invariant: a slab is the trainer's from when its first byte becomes 1 (the worker's doing) until it becomes 0 (the
trainer's, when no tensor lies in it any more). Where there is none, the batch takes torch's own way."""
from __future__ import annotations

import ctypes
import io
import math
import mmap
import multiprocessing
import multiprocessing.reduction
import os
import pickle
import threading
import weakref

import torch
from torch.utils.data import default_collate, get_worker_info

from ._sampler import numpy

__all__ = ["collate"]

INLINE_MAX = 32 << 10  # bytes that go with the message
SLABS_MAX = 8  # of a worker: twice what a loader asks for ahead, and what the trainer holds
SLAB_MAX = 256 << 20
ALIGNED = 64
PAGE = 4096


def collate(samples):
    """DataLoader(collate_fn=primus.torch.collate): the batch that torch's default_collate makes, for less."""
    batch = _stack(samples)
    return batch if get_worker_info() is None else Packed(batch)


def _stack(samples):
    first = samples[0]
    kind = type(first)
    if any(type(s) is not kind for s in samples):
        return default_collate(samples)
    if kind is torch.Tensor:
        return torch.stack(samples)
    if numpy is not None and kind is numpy.ndarray and first.dtype.kind in "biufc":
        return torch.stack([torch.as_tensor(s) for s in samples])
    if kind in (int, bool, float):
        return torch.tensor(samples, dtype=torch.float64 if kind is float else None)
    if kind in (str, bytes):
        return samples
    if kind in (tuple, list) and len({len(s) for s in samples}) == 1:
        return [_stack(part) for part in zip(*samples)]
    if kind is dict:
        return {key: _stack([s[key] for s in samples]) for key in first}
    return default_collate(samples)


class Packed:
    """A batch that is pickled as this module does it, and comes out as itself."""

    def __init__(self, batch):
        self.batch = batch

    def __reduce__(self):
        packed = _pack(self.batch)
        return packed if packed is not None else (_same, (self.batch,))


def _same(batch):
    return batch


# ---- in the worker ----

class _Pickler(pickle.Pickler):
    """Leaves the contents of tensors out."""

    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.contents, self.size = [], 0

    def reducer_override(self, value):
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        if (type(value) is not torch.Tensor or value.device.type != "cpu" or value.layout != torch.strided or value.requires_grad or
                value.is_quantized or value.is_conj() or value.is_neg() or value.numel() == 0):
            raise pickle.PicklingError("this tensor goes torch's way")
        content = value.contiguous().reshape(-1).view(torch.uint8)
        begin = self.size
        self.contents.append((begin, content))
        self.size = (begin + content.numel() + ALIGNED - 1) // ALIGNED * ALIGNED
        return _tensor, (begin, value.dtype, tuple(value.shape))


def _pack(batch):
    """What pickles instead of the batch; None: it has to go torch's way."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(batch)
    except Exception:  # of any object that is in a batch: torch's pickler may know it
        return None
    if pickler.size <= INLINE_MAX:
        memory = bytearray(pickler.size)
        _fill(memory, pickler.contents)
        return _unpack_inline, (file.getvalue(), memory)
    slab = _pool().take(pickler.size)
    if slab is None:
        return None
    _fill(memoryview(slab.mapping)[PAGE:], pickler.contents)
    return _unpack_slab, (file.getvalue(), os.getpid(), slab.number, pickler.size, slab.introduce())


def _fill(memory, contents):
    for begin, content in contents:
        torch.frombuffer(memory, dtype=torch.uint8, count=content.numel(), offset=begin).copy_(content)


class _Slab:
    def __init__(self, number, size, replaced):
        self.number, self.size, self.replaced = number, size, replaced
        self.fd = os.memfd_create("primus-batch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.fd, PAGE + size)
            self.mapping = mmap.mmap(self.fd, PAGE + size)
        except OSError:
            os.close(self.fd)
            raise

    def introduce(self):
        """Its descriptor, and the number of the slab that it replaces, the first time."""
        if self.fd is None:
            return None
        shared = multiprocessing.reduction.DupFd(self.fd)  # has one of its own
        os.close(self.fd)
        self.fd = None
        return shared, self.replaced


class _Pool:
    def __init__(self):
        self.pid, self.slabs, self.made = os.getpid(), [], 0

    def take(self, size):
        if size > SLAB_MAX:
            return None
        free = [s for s in self.slabs if s.mapping[0] == 0]
        for slab in free:
            if slab.size >= size:
                slab.mapping[0] = 1
                return slab
        replaced = None
        if len(self.slabs) >= SLABS_MAX:
            if not free:
                return None
            replaced = free[0].number  # too small: batches have grown
            self.slabs.remove(free[0])
        try:
            slab = _Slab(self.made, size + size // 8, replaced)
        except OSError:
            return None
        self.made += 1
        self.slabs.append(slab)
        slab.mapping[0] = 1
        return slab


_own_pool = None


def _pool():
    global _own_pool
    if _own_pool is None or _own_pool.pid != os.getpid():
        _own_pool = _Pool()
    return _own_pool


# ---- in the trainer ----

_mappings = {}  # (process, number) -> mapping of a slab
_fence = threading.Lock()


def _unpack_inline(data, memory):
    return _load(data, memory)


def _unpack_slab(data, pid, number, size, introduced):
    if introduced is not None:
        shared, replaced = introduced
        fd = shared.detach()
        try:
            mapping = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        if number == 0:
            _forget()
        _mappings.pop((pid, replaced), None)
        _mappings[pid, number] = mapping
    mapping = _mappings[pid, number]
    owner = (ctypes.c_ubyte * size).from_buffer(mapping, PAGE)
    weakref.finalize(owner, _let_go, mapping, os.getpid()).atexit = False
    return _load(data, owner)


_unpacking = threading.local()  # .memory: what the tensors of the batch that this thread unpickles lie in


def _load(data, memory):
    _unpacking.memory = memory
    try:
        return pickle.loads(data)
    finally:
        _unpacking.memory = None


def _tensor(begin, dtype, shape):
    return torch.frombuffer(_unpacking.memory, dtype=dtype, count=math.prod(shape), offset=begin).reshape(shape)


def _let_go(mapping, pid):
    """No tensor lies in it any more, in the process that got them; one that was forked from it has copies of the objects alone."""
    if pid != os.getpid():
        return
    with _fence:  # what has been read there was read before; released and taken again, a lock is a full barrier
        pass
    with _fence:
        mapping[0] = 0


def _forget():
    """Workers have come: those that are gone need no slabs."""
    alive = {p.pid for p in multiprocessing.active_children()}
    for key in [k for k in _mappings if k[0] not in alive]:
        del _mappings[key]
