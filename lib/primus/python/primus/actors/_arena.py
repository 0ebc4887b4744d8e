# SPDX-License-Identifier: Apache-2.0
"""Memory that a program and one of its actors share, on one host: what one says of large arrays lies there, and the other has them where they
lie, without another copy. A file in memory, of a fixed size (sealed, so that no access to it can fail), of which each half is given out by
the one who writes there. A message's arrays are one block, which is free again when nobody at the other end has any of them."""
import collections
import ctypes
import fcntl
import mmap
import os
import threading
import weakref

LEAST = 1 << 16  # bytes of a message's arrays from which on they go this way
ALIGNED = 64
BLOCK = 1 << 12
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def file(size):
    """A descriptor of so many bytes."""
    fd = os.memfd_create("primus-actors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


def _up(n, to):
    return -(-n // to) * to


class Arena:
    """fd     of file(); it is closed here
    second    this one writes into the second half
    gone      a deque: which blocks of the other end nobody here has any more, to be told"""

    def __init__(self, fd, second):
        size = os.fstat(fd).st_size
        self._map = mmap.mmap(fd, size)
        os.close(fd)
        half = size // 2 // BLOCK * BLOCK
        self._theirs = (0, half) if second else (half, 2 * half)
        self._free = [(half, 2 * half)] if second else [(0, half)]  # (begin, end), in their order
        self._taken = {}  # end by begin
        self._lock = threading.RLock()  # an array may go in the middle of it
        self._views = {}  # how many of a block's arrays somebody has, by its begin
        self.gone = collections.deque()

    # ---- what is written here

    def put(self, buffers):
        """[(where, bytes)] of copies, or None: they are few bytes, or there is no room."""
        size = sum(_up(b.nbytes, ALIGNED) for b in buffers)
        if size < LEAST:
            return None
        at = self._take(_up(size, BLOCK))
        if at is None:
            return None
        places = []
        for b in buffers:
            self._map[at:at + b.nbytes] = b.cast("B") if b.nbytes else b""
            places.append((at, b.nbytes))
            at += _up(b.nbytes, ALIGNED)
        return places

    def _take(self, size):
        with self._lock:
            for i, (begin, end) in enumerate(self._free):
                if end - begin >= size:
                    if end - begin == size:
                        del self._free[i]
                    else:
                        self._free[i] = begin + size, end
                    self._taken[begin] = begin + size
                    return begin
        return None

    def give_back(self, begin):
        """Nobody at the other end has it any more. ValueError: nobody had."""
        with self._lock:
            end = self._taken.pop(begin, None)
            if end is None:
                raise ValueError("that block was not given")
            self._free.append((begin, end))
            self._free.sort()
            merged = []
            for one in self._free:
                if merged and merged[-1][1] == one[0]:
                    merged[-1] = merged[-1][0], one[1]
                else:
                    merged.append(one)
            self._free = merged

    # ---- what is read here

    def views(self, places):
        """Buffers that can be written to. ValueError: they are not where the other end writes."""
        if not places or any(at < self._theirs[0] or size > self._theirs[1] - at for at, size in places):
            raise ValueError("that is no place of the other end's")
        block = places[0][0]
        with self._lock:
            self._views[block] = self._views.get(block, 0) + len(places)
        return [self._view(block, at, size) for at, size in places]

    def _view(self, block, at, size):
        held = (ctypes.c_char * size).from_buffer(self._map, at)
        weakref.finalize(held, self._let_go, block).atexit = False
        return memoryview(held).cast("B")

    def _let_go(self, block):
        with self._lock:
            self._views[block] -= 1
            last = not self._views[block]
            if last:
                del self._views[block]
        if last:
            self.gone.append(block)
