# SPDX-License-Identifier: Apache-2.0
"""Samples by number: the index of the files (blocks of whole samples, and how many each has), kept in a file of the trainer's
where it names one, and reading one sample out of its block.

Text and tar files are read through once for that, unless the index is there already; fixed records are counted by their files'
sizes. Invariant: what is read belongs to the listing. A file with another size or time is an error that names it."""
import array
import contextlib
import fcntl
import hashlib
import io
import json
import os

import numpy as np

from . import _listing, _tar

VERSION = 1
BLOCKS_MAX = 4 << 20
EDGES_MAX = 8 << 20  # samples whose places are remembered: more than all open windows have (_order.SAMPLES_MAX)
OPEN_MAX = 128
CHUNK = 4 << 20


class Changed(OSError):
    """A file is not the one that was listed."""


def block_size(total):
    """Bytes that a block has about: small enough for many, large enough to be read in one go."""
    size = 4096
    while size < 1 << 20 and size * 65536 < total or size * BLOCKS_MAX < 2 * total:
        size *= 2
    return size


def _check(path, fd, size, time):
    found = os.fstat(fd)
    if (found.st_size, found.st_mtime_ns) != (size, time):
        raise Changed(f"{path}: has changed since it was listed (then {size} bytes of {time} ns, now {found.st_size} of {found.st_mtime_ns}): "
                      "samples would be others; make new files beside the old ones, and begin with a new index")


# ---- what a file holds: rows of (offset, length, samples) ----

def _cut(starts, end, size):
    """Blocks of about size bytes, given where each sample begins."""
    at, rows = 0, []
    while at < len(starts):
        behind = int(np.searchsorted(starts, starts[at] + size))
        behind = max(behind, at + 1)
        stop = int(starts[behind]) if behind < len(starts) else end
        rows.append((int(starts[at]), stop - int(starts[at]), behind - at))
        at = behind
    return rows


def _lines(path, file, size, end, max_record):
    """Blocks of a text file. What is behind the last whole block of a chunk begins the next one's."""
    rows, begin, data = [], 0, b""
    while begin + len(data) < end or data:
        more = file.read(min(CHUNK, end - begin - len(data)))
        data += more
        last = begin + len(data) >= end
        if not more and not last:
            raise Changed(f"{path}: ends at byte {begin + len(data)} of {end}")
        behind = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10) + 1
        edges = np.concatenate(([0], behind, [len(data)] if last and (not len(behind) or behind[-1] != len(data)) else []))
        lengths = np.diff(edges)
        if (len(lengths) and lengths.max() > max_record) or len(data) - edges[-1] > max_record:
            long = int(np.argmax(lengths > max_record)) if len(lengths) and lengths.max() > max_record else -1
            raise ValueError(f"{path}: the line at byte {begin + int(edges[long])} is longer than {max_record} bytes (maxRecord)")
        cut = _cut(edges[:-1], int(edges[-1]), size)
        if not last:  # the last one may go on
            cut = cut[:-1]
        rows += [(begin + offset, length, n) for offset, length, n in cut]
        used = cut[-1][0] + cut[-1][1] if cut else 0
        begin, data = begin + used, data[used:]
        if last:
            break
    return rows


def _shard(path, file, size, end, max_record):
    starts, stop = [], 0
    for begin, behind in _tar.samples(lambda at, n: os.pread(file.fileno(), n, at), 0, end):
        if behind - begin > max_record:
            raise ValueError(f"{path}: the sample at byte {begin} is longer than {max_record} bytes (maxRecord)")
        starts.append(begin)
        stop = behind
    # Blocks end where the next begins, so the padding between samples is in them.
    return _cut(np.array(starts, dtype=np.int64), stop, size)


def _records(path, record_size, size, end):
    n, rest = divmod(end, record_size)
    if rest:
        raise ValueError(f"{path}: {end} bytes are not a whole number of records of {record_size}")
    each = max(1, size // record_size)
    return [(at * record_size, min(each, n - at) * record_size, min(each, n - at)) for at in range(0, n, each)]


class Index:
    """listing, blocks (int64 rows: file, offset, length, samples), digest (of names, sizes and blocks)."""

    def __init__(self, listing, blocks, what):
        self.listing, self.blocks, self.what = listing, blocks, what
        self.n = int(blocks[:, 3].sum())
        text = json.dumps([what, [(path, size) for path, size, _ in listing]])
        self.digest = hashlib.sha256(text.encode(errors="surrogateescape") + blocks.tobytes()).hexdigest()[:32]


def make(listing, what):
    """Reads what has to be read. what: {format, record_size, max_record}."""
    size, rows = block_size(sum(size for _, size, _ in listing)), []
    for number, (path, end, time) in enumerate(listing):
        with io.open(path, "rb", buffering=0) as file:
            _check(path, file.fileno(), end, time)
            try:
                found = (_lines(path, file, size, end, what["max_record"]) if what["format"] == "text" else
                         _shard(path, file, size, end, what["max_record"]) if what["format"] == "tar" else
                         _records(path, what["record_size"], size, end))
            except _tar.Broken as error:
                raise ValueError(f"{path}: {error}") from None
            _check(path, file.fileno(), end, time)
        rows += [(number, *row) for row in found]
        if len(rows) > 2 * BLOCKS_MAX:
            raise ValueError(f"more than {2 * BLOCKS_MAX} blocks of {size} bytes: too many small files; put samples together in tar files")
    if not rows:
        raise ValueError("the files hold no sample")
    return Index(listing, np.array(rows, dtype=np.int64), what)


# ---- the index as a file ----

def _save(path, index, asked):
    head = json.dumps({"version": VERSION, "asked": asked, "what": index.what, "listing": index.listing}).encode(errors="surrogateescape")
    temporary = f"{path}.{os.uname().nodename}-{os.getpid()}"
    try:
        with io.open(temporary, "xb") as file:
            np.savez(file, head=np.frombuffer(head, dtype=np.uint8), blocks=index.blocks)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _load(path, asked, what):
    try:
        with np.load(path, allow_pickle=False) as file:
            head, blocks = json.loads(file["head"].tobytes().decode(errors="surrogateescape")), file["blocks"]
        listing = [(str(name), int(size), int(time)) for name, size, time in head["listing"]]
        good = head["version"] == VERSION and blocks.dtype == np.int64 and blocks.ndim == 2 and blocks.shape[1] == 4
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged file makes of the reader
        raise ValueError(f"{path}: is no index of Primus ({error}): remove it, or name another") from None
    if not good or len(blocks) == 0 or blocks.min() < 0 or blocks[:, 0].max() >= len(listing):
        raise ValueError(f"{path}: is an index of another version, or damaged: remove it, and it is made anew")
    if head["asked"] != asked or head["what"] != what:
        raise ValueError(f"{path}: is the index of other data ({head['asked']}, {head['what']}; not {asked}, {what}): remove it, or name another")
    return Index(listing, blocks, what)


def get(patterns, what, path=None):
    """The index of what the patterns name. path: the file that keeps it; whoever comes first makes it, others wait for that."""
    asked = [list(pattern) for pattern in patterns]
    if path is None:
        return make(_listing.find(patterns), what)
    with contextlib.suppress(FileNotFoundError):
        return _load(path, asked, what)
    with io.open(f"{path}.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go of with the process that holds it, whatever becomes of that
        with contextlib.suppress(FileNotFoundError):
            return _load(path, asked, what)
        index = make(_listing.find(patterns), what)
        _save(path, index, asked)
        return index


# ---- reading ----

class Reader:
    """Samples of an index, in this process."""

    def __init__(self, index):
        self._index = index
        self._files = {}  # number: descriptor; those that were opened first are closed first
        self._edges = {}  # block: where its samples begin, and the end; forgotten in that order too
        self._remembered = 0

    def __del__(self):
        for fd in self._files.values():
            os.close(fd)

    def _open(self, number):
        path, size, time = self._index.listing[number]
        if len(self._files) >= OPEN_MAX:
            os.close(self._files.pop(next(iter(self._files))))
        fd = self._files[number] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        _check(path, fd, size, time)
        return fd

    def _read(self, number, offset, length):
        fd = self._files.get(number)
        if fd is None:
            fd = self._open(number)
        data = os.pread(fd, length, offset)
        while len(data) < length:  # a signal, or more than 2 GiB
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                raise Changed(f"{self._index.listing[number][0]}: ends at byte {offset + len(data)}: it has changed since it was listed")
            data += more
        return data

    def _edges_of(self, block, number, offset, length, count):
        edges = self._edges.get(block)
        if edges is not None:
            return edges
        if self._index.what["format"] == "text":
            data = np.frombuffer(self._read(number, offset, length), dtype=np.uint8)
            found = np.concatenate(([0], np.flatnonzero(data == 10) + 1))
            if found[-1] != length:
                found = np.append(found, length)
        else:
            found = [begin - offset for begin, _ in
                     _tar.samples(lambda at, n: self._read(number, at, min(n, offset + length - at)), offset, offset + length, whole=False)]
            found.append(length)
        if len(found) != count + 1:
            raise Changed(f"{self._index.listing[number][0]}: {len(found) - 1} samples and not {count} from byte {offset} on: it has changed since it was listed")
        edges = self._edges[block] = array.array("Q" if length >> 32 else "I", found if isinstance(found, list) else found.tolist())
        self._remembered += len(edges)
        while self._remembered > EDGES_MAX and len(self._edges) > 1:
            self._remembered -= len(self._edges.pop(next(iter(self._edges))))
        return edges

    def _where(self, block, sample, row):
        """(number of the file, byte, length)"""
        number, offset, length, count = row
        size = self._index.what["record_size"]
        if size is not None:
            return number, offset + sample * size, size
        edges = self._edges_of(block, number, offset, length, count)
        return number, offset + edges[sample], edges[sample + 1] - edges[sample]

    def place(self, block, sample):
        """For people."""
        number, offset, _ = self._where(block, sample, self._index.blocks[block].tolist())
        return f"byte {offset} of {self._index.listing[number][0]}"

    def samples(self, blocks, samples):
        """Of each pair (arrays) block, number in it, and the record."""
        kind = self._index.what["format"]
        for block, sample, row in zip(blocks.tolist(), samples.tolist(), self._index.blocks[blocks].tolist()):
            data = self._read(*self._where(block, sample, row))
            if kind == "text":
                data = data[:-1] if data.endswith(b"\n") else data
            elif kind == "tar":
                data = _tar.unpack(data)
            yield block, sample, data
