# SPDX-License-Identifier: Apache-2.0
"""Samples by their number, out of .npy files that every process of a host maps and none of them copies."""
from __future__ import annotations

import bisect
import operator
import os
import resource

import torch
from torch.utils.data import Dataset

from ._sampler import need_numpy, numpy

__all__ = ["MapDataset"]

HEADER_MAX = 10000  # bytes of a header: numpy's own bound, here whatever its version
SPARE_FILES = 64  # descriptors that a trainer has for everything else


class MapDataset(Dataset):
    """paths: a .npy file, or several that follow one another, of one type and one shape but for their lengths.
    decode: what makes a sample of a row, which is a read-only view of the file; runs in the worker. None: a tensor of its own.

        data = primus.torch.MapDataset("/data/images.npy", decode)
        sampler = primus.torch.ElasticSampler(data, seed=1)
        loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, sampler=sampler)
        for epoch in range(sampler.epoch, 10):
            for batch in sampler.counted(loader):
                ...

    Nothing of it goes through Primus: it is for data on a disk that the hosts share, or that each has. The pages are in memory
    once, whoever reads them. ValueError names the file that is none; a file that is cut short while it is mapped kills its
    readers (SIGBUS), as any mapped file does."""

    def __init__(self, paths, decode=None):
        need_numpy("MapDataset")
        self.paths = [os.fspath(paths)] if isinstance(paths, (str, bytes, os.PathLike)) else [os.fspath(p) for p in paths]
        if not self.paths:
            raise ValueError("MapDataset: there is no file in the list")
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
        if len(self.paths) > max(most, 1):
            raise ValueError(f"MapDataset: {len(self.paths)} files, of which each stays open, but a process may open "
                             f"{most + SPARE_FILES} in all; make fewer of them, or raise openFiles of the role")
        self.decode = decode
        self._arrays = [None] * len(self.paths)
        self._begins, self.dtype, self.shape = [], None, None
        n = 0
        for k, path in enumerate(self.paths):
            array = self._open(k)
            if self.dtype is None:
                self.dtype, self.shape = array.dtype, array.shape[1:]
            elif (array.dtype, array.shape[1:]) != (self.dtype, self.shape):
                raise ValueError(f"{_name(path)}: rows of {array.dtype} {array.shape[1:]}, but those of {_name(self.paths[0])} are of "
                                 f"{self.dtype} {self.shape}")
            self._begins.append(n)
            n += len(array)
        self._n = n
        self._sizes = [end - begin for begin, end in zip(self._begins, [*self._begins[1:], n])]
        if decode is None:
            self._check_type()

    def __len__(self):
        return self._n

    def __getitem__(self, index):
        file, row = self._place(index)
        array = self._arrays[file]
        if array is None:
            array = self._reopen(file)
        if self.decode is None:
            return torch.from_numpy(numpy.array(array[row]))
        try:
            return self.decode(array[row])
        except Exception as error:
            from .torch import _add_note  # which imports this
            _add_note(error, f"primus: the sample is row {row} of {_name(self.paths[file])}")
            raise

    def where(self, index):
        """(path, row) of a sample, for messages."""
        file, row = self._place(index)
        return self.paths[file], row

    def __getstate__(self):
        """A worker that is spawned maps the files itself."""
        return {**self.__dict__, "_arrays": [None] * len(self.paths)}

    def _place(self, index):
        i = operator.index(index)
        if i < 0:
            i += self._n
        if not 0 <= i < self._n:
            raise IndexError(f"there is no sample {index}: there are {self._n}")
        file = bisect.bisect_right(self._begins, i) - 1 if len(self._begins) > 1 else 0
        return file, i - self._begins[file]

    def _open(self, k):
        """Maps a file. Nothing is unpickled, and no header is longer than it may be."""
        name = _name(self.paths[k])
        try:
            with open(self.paths[k], "rb") as file:
                _check_header(file)
            mapped = numpy.lib.format.open_memmap(self.paths[k], mode="r")
        except (ValueError, EOFError) as error:
            raise ValueError(f"{name}: not a .npy file that can be mapped: {error}") from error
        if mapped.ndim == 0:
            raise ValueError(f"{name}: one value without rows")
        # An array of the plain class: each row of a memmap would be one of its own, which takes longer than to copy it.
        self._arrays[k] = mapped.view(numpy.ndarray)
        return self._arrays[k]

    def _reopen(self, k):
        array = self._open(k)
        if (array.dtype, array.shape[1:], len(array)) != (self.dtype, self.shape, self._sizes[k]):
            self._arrays[k] = None
            raise ValueError(f"{_name(self.paths[k])}: another array than when the data set was made")
        return array

    def _check_type(self):
        try:
            torch.from_numpy(numpy.empty((), self.dtype))
        except TypeError as error:
            raise ValueError(f"{_name(self.paths[0])}: torch has no type for {self.dtype}; say decode=") from error


def _name(path):
    return os.fsdecode(path)


def _check_header(file):
    """Its length, before numpy reads it: the file says that, and may say 4 GiB."""
    version = numpy.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(file.read(width), "little")
    if length > HEADER_MAX:
        raise ValueError(f"its header is said to have {length} bytes; {HEADER_MAX} are the most")
