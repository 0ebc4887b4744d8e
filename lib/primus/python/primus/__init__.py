# SPDX-License-Identifier: Apache-2.0
"""Data for a trainer that Primus runs.

    import primus

    for record in primus.records():
        train(record)

That is the whole of a plain trainer's loop, whatever the job's input.mode is. What a record is depends on the source:

    text                    bytes: the line without its newline
    raw, fixed, tfrecord    bytes: the block, the record, the payload
    csv                     dict: the header's names -> str (a row that is longer or shorter than the header: what both have)
    tar (WebDataset)        dict: name -> bytes of the record's members
    Kafka messages          Message; with input.mode stdin bytes: the line

primus.blocks() gives many records at once without a copy, primus.ranges() ranges of files (input.mode descriptor).

What counts as processed is the job's input.ack: "release" (a record, once those behind it have been asked for; the last
megabyte at most may come again after a crash), "explicit" (what primus.ack() was called for), "checkpoint" (see
primus.checkpoint()), "exit" (everything, when the program exits 0). ack() does nothing where input.ack is another, so
programs need not know.

A task whose data are broken is reported to Primus, logged (logger "primus") and left; the loop goes on with another.

The functions of the module use one connection of this process, opened when it is first needed; open() makes one of your
own. A process that was forked gets its own; a Feed of its parent raises Error in it. One thread uses a Feed at a time.

progress(step) says how far the trainer is; it feeds the role's watchdog, if that has one.

rendezvous() says who is in the job now, wait_rendezvous() waits until that changes (a job can be scaled while it runs).

On the job's stackSignal the program says where it is: primusctl stacks shows it. PRIMUS_STACK_SIGNAL= in the job's environment
turns that off.

Outside of Primus, records() reads lines from standard input, so that a trainer can be tried: ./trainer.py < FILE
"""
import collections
import csv
import ctypes
import errno
import io
import itertools
import logging
import operator
import os
import struct
import sys

from . import _lib, _stacks
from ._progress import progress
from ._rendezvous import Rendezvous, rendezvous, wait_rendezvous
from ._stopping import should_stop

__all__ = ["Error", "Feed", "Message", "Place", "Range", "Rendezvous", "ack", "blocks", "checkpoint", "commit", "fail", "open",
           "progress", "ranges", "records", "rendezvous", "should_stop", "wait_rendezvous"]

TEXT, RAW, FIXED, TFRECORD, TAR, CSV, MESSAGE = range(7)
MODES = ("stdin", "ring", "descriptor")
ACKS = ("lag", "exit", "read", "release", "explicit", "checkpoint")

# Few enough for the processor's cache to hold a block and what it is split into.
SPLIT_BYTES = 128 << 10

log = logging.getLogger("primus")
_stacks.register()


class Error(OSError):
    """Something that primus.h calls a negative errno: .errno, .strerror is a line for people."""


Message = collections.namedtuple("Message", "value key timestamp offset")
Message.__doc__ = """A message of a stream: value (bytes), key (bytes or None), timestamp (seconds), offset in its partition."""

Range = collections.namedtuple("Range", "fd path offset length task source")
Range.__doc__ = """A range of a file: descriptor (the library's, closed with the next range), path, where to begin, how many
bytes, whose task it is, index of the source. It is aligned to records."""

class Place(collections.namedtuple("Place", "path task source position line")):
    """Where a record is: path of the file (or URL, or topic and partition; None: not known), number of the task, index of the
    source, position (the record's first byte in the file, or in what comes out of decompressing it; of records that come in
    another order or from a pipe, of the ones around it), and of a line of a local text file its number, from 1; else None."""
    __slots__ = ()

    def __str__(self):
        where = f"byte {self.position} of {self.path or 'a file that is not known'}"
        return f"{f'line {self.line}, ' if self.line else ''}{where} (task {self.task}, source {self.source})"


MESSAGE_HEADER = struct.Struct("=QqII")
TFRECORD_LENGTH = struct.Struct("<Q")
NO_KEY = 0xFFFFFFFF
LINES_MAX = 1 << 30  # so far into a file lines are counted


class Feed:
    """A connection to the executor's data.

    checkpoint: bytes that checkpoint() returned, which this trainer goes on from (input.ack checkpoint).

    Attributes: mode, ack_mode (str); task, source, position (int) of what was delivered last: of a block, or of the
    records that were made of one; broken: how many tasks were left because their data are broken."""

    def __init__(self, checkpoint=None):
        self._handle = None
        self._lib = _lib.load()
        options = _lib.Options(ctypes.sizeof(_lib.Options), _lib.INTERRUPTIBLE, checkpoint,
                               len(checkpoint) if checkpoint else 0)
        handle = ctypes.c_void_p()
        result = self._lib.primus_open(options, ctypes.byref(handle))
        if result < 0:
            raise Error(-result, self._lib.primus_error(None).decode(errors="replace"))
        self._handle = handle.value
        self.pid = os.getpid()
        self.mode = MODES[self._lib.primus_get_mode(self._handle)]
        self.ack_mode = ACKS[self._lib.primus_get_ack_mode(self._handle)]
        self.task = self.source = self.position = None
        self.broken = 0
        self._block = _lib.Block()
        self._items = None  # iterator over the latest block's records, and how many those are
        self._count = 0
        self._numbers = None  # which record of the block each item is, where some were left out
        self._view = self._buffer = None  # the block that was handed out
        self._range = None
        self._header = None
        self._member_table = (ctypes.c_uint64 * (4 * 512))(), (ctypes.c_char * 32768)()

    # ---- delivery ----

    def records(self):
        """An iterator over the records, until there are no more."""
        return itertools.chain.from_iterable(self._batches())

    def blocks(self, max_bytes=0):
        """An iterator over blocks: read-only memoryviews of whole records one behind another, in their format's own framing
        (text: lines with their newlines), each of at most max_bytes unless a record is longer.

        A block is valid until the next one is asked for, and is released then; BufferError says that something (a numpy
        array, say) still uses it: copy what is to be kept."""
        while self._next_block(max_bytes):
            block = self._block
            buffer = (ctypes.c_char * block.size).from_address(block.data)
            self._view, self._buffer = memoryview(buffer).cast("B").toreadonly(), buffer
            self._items = buffer = None
            yield self._view

    def ranges(self):
        """An iterator over ranges of files (Range), for programs that read themselves; input.mode descriptor alone."""
        r = _lib.Range()
        while True:
            self._leave()
            result = self._lib.primus_next_range(self._check_handle(), ctypes.byref(r))
            if result == 0:
                return
            if result < 0:
                self._trouble(result)
                continue
            self._range = Range(r.fd, os.fsdecode(r.path), r.offset, r.length, r.task, r.source)
            self.task, self.source, self.position = r.task, r.source, r.offset
            yield self._range

    # ---- what counts ----

    def ack(self, position=None):
        """Everything delivered up to and including the latest record (or block) counts. Of a range: the bytes of the file
        below position; without one, all of it."""
        if self._range:
            r = self._range
            self._call("primus_ack_position", r.task, r.offset + r.length if position is None else position)
        elif self._items is not None:
            self._call("primus_ack_records", self._consumed())
        else:
            self._call("primus_ack")

    def fail(self, why):
        """The task of the latest record cannot be used; why: a line for people. What was delivered of it and not
        acknowledged comes again, at most as often as the job's attempts allow; another task follows here."""
        if self._items is not None:
            if self.ack_mode == "checkpoint":  # the records before it were delivered
                self._call("primus_ack_records", max(self._consumed() - 1, 0))
            collections.deque(self._items, maxlen=0)  # those behind it do not come
            self._items = None
        self._call("primus_fail", why.encode())

    def where(self):
        """Where the latest record is (Place), for messages; None before the first one. Asks the executor, and reads the file
        to count its lines: nothing to be called for every record."""
        if self.task is None:
            return None
        path = ctypes.c_char_p()
        known = self._call("primus_task_path", ctypes.byref(path))
        path, position = os.fsdecode(path.value) if known else None, self.position
        if self._items is not None:
            for record in itertools.islice(self._walk(), max(self._consumed() - 1, 0), None):
                position = record.position
                break
        text = self._lib.primus_source_format(self._handle, self.source) == TEXT
        return Place(path, self.task, self.source, position, _line_number(path, position) if text else None)

    def checkpoint(self):
        """bytes that describe everything delivered so far, the record of this turn of the loop included.

        Exactly once (input.ack checkpoint): keep them in your own checkpoint, call commit() with them once that is
        durable, and open(checkpoint=...) with those of the checkpoint that a restarted trainer goes on from. Exactly the
        records behind it follow, also when the trainer ended between writing its checkpoint and commit()."""
        if self._items is not None:
            self._call("primus_ack_records", self._consumed())
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._call("primus_checkpoint", ctypes.byref(data), ctypes.byref(size))
        try:
            return ctypes.string_at(data, size.value)
        finally:
            _lib.free(data)

    def commit(self, checkpoint):
        """The trainer's checkpoint that holds these bytes is durable: they count."""
        self._call("primus_checkpoint_commit", checkpoint, len(checkpoint))

    # ---- the rest ----

    @property
    def waited(self):
        """Seconds that have been waited for data."""
        return self._lib.primus_waited_usec(self._check_handle()) / 1e6

    def fileno(self):
        """Readable (select) when the next record would probably not be waited for."""
        return self._call("primus_get_fd")

    def close(self):
        """Ends the connection: what was delivered and does not count yet is delivered again, here or elsewhere."""
        self._leave()
        if self._handle:
            handle, self._handle = self._handle, None
            self._lib.primus_close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except (AttributeError, TypeError, BufferError):  # half made, at the interpreter's end, or a block in use
            pass

    # ---- inside ----

    def _check_handle(self):
        if not self._handle:
            raise Error(errno.EBADF, "this feed has been closed")
        return self._handle

    def _call(self, name, *arguments):
        result = getattr(self._lib, name)(self._check_handle(), *arguments)
        if result < 0:
            self._raise(result)
        return result

    def _raise(self, result):
        raise Error(-result, self._lib.primus_error(self._handle).decode(errors="replace"))

    def _trouble(self, result):
        """What can be gone on from: returns."""
        if result == -errno.EINTR:  # the handlers of signals run between here and the next call
            return
        if result != -errno.EBADMSG:
            self._raise(result)
        self.broken += 1
        log.warning("%s", self._lib.primus_error(self._handle).decode(errors="replace"))

    def _leave(self):
        """What was handed out is not valid any more."""
        self._range = None
        if self._view is None:
            return
        self._view.release()  # BufferError: exported, to an array for instance
        # Views of the view are not exports of it, but they all refer to what lies below.
        if sys.getrefcount(self._buffer) > 2:
            raise BufferError("a view of the block before is still used; copy what is to be kept")
        self._view = self._buffer = None

    def _next_block(self, max_bytes):
        self._leave()
        block = self._block
        while True:
            result = self._lib.primus_next_block(self._check_handle(), max_bytes, ctypes.byref(block))
            if result > 0:
                self.task, self.source, self.position = block.task, block.source, block.position
                return True
            if result == 0:
                self._items = None
                return False
            self._trouble(result)

    def _consumed(self):
        """How many records of the block have been handed out."""
        n = self._count - operator.length_hint(self._items)
        return self._numbers[n - 1] if self._numbers is not None and n > 0 else n

    def _batches(self):
        """Iterators over the records of a block each. They are iterated in C, and tell how many are left: so nothing need
        be counted for each record."""
        while self._next_block(SPLIT_BYTES):
            self._split_block()
            yield self._items

    def _split_block(self):
        self._numbers = None
        items = SPLITTERS[self._lib.primus_source_format(self._handle, self.source)](self)
        self._count = len(items)
        self._items = iter(items)

    # ---- from a block to its records ----

    def _bytes(self):
        return ctypes.string_at(self._block.data, self._block.size)

    def _walk(self):
        """Its records one by one, as the library finds them."""
        at, record = ctypes.c_size_t(), _lib.Record()
        while self._lib.primus_block_next(self._handle, ctypes.byref(self._block), ctypes.byref(at),
                                          ctypes.byref(record)) > 0:
            yield record

    def _split_lines(self):
        lines = self._bytes().split(b"\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def _split_sized(self):
        """All of one size, but for the last block of a file."""
        block = memoryview((ctypes.c_char * self._block.size).from_address(self._block.data)).cast("B")
        size = next((record.size for record in self._walk()), 1)
        whole = len(block) // size * size
        items = [record for record, in struct.iter_unpack(f"{size}s", block[:whole])]
        return items if whole == len(block) else [*items, bytes(block[whole:])]

    def _split_tfrecords(self):
        data, items, at = self._bytes(), [], 0
        while at < len(data):  # length, its checksum, payload, its checksum: which the library has checked
            size = TFRECORD_LENGTH.unpack_from(data, at)[0]
            items.append(data[at + 12:at + 12 + size])
            at += size + 16
        return items

    def _split_tars(self):
        """With a call for many members, not one for each."""
        data, items, at = self._bytes(), [], ctypes.c_size_t()
        while True:
            table, names = self._member_table
            n = self._lib.primus_block_members(self._handle, self._block, at, table, len(table) // 4, names, len(names))
            if n == -errno.ENOBUFS:
                self._member_table = (ctypes.c_uint64 * (4 * len(table)))(), (ctypes.c_char * (4 * len(names)))()
            elif n <= 0:
                return items
            else:
                self._add_members(items, data, memoryview(table).cast("B").cast("Q")[:4 * n].tolist(), names)

    @staticmethod
    def _add_members(items, data, numbers, names):
        names = ctypes.string_at(names, numbers[-1])
        record, begin, members = None, 0, None
        for number, at, size, end in zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4]):
            if number != record:
                record, members = number, {}
                items.append(members)
            members[names[begin:end].decode(errors="surrogateescape")] = data[at:at + size]
            begin = end

    def _split_messages(self):
        data, items, at = self._bytes(), [], 0
        while at < len(data):
            offset, msec, key_size, size = MESSAGE_HEADER.unpack_from(data, at)
            at += MESSAGE_HEADER.size
            key = None
            if key_size != NO_KEY:
                key = data[at:at + key_size]
                at += key_size
            items.append(Message(data[at:at + size], key, msec / 1000, offset))
            at = (at + size + 7) & ~7
        return items

    def _split_rows(self):
        text = self._bytes().decode(errors="surrogateescape")
        rows = csv.reader(io.StringIO(text, newline=""))
        header = self._csv_header()
        items, self._numbers = [], []
        for number, row in enumerate(rows, 1):
            if header is None:
                header = self._header = row
            elif row and not (self.mode == "stdin" and row == header):  # there every task begins with the header
                items.append(dict(zip(header, row)))
                self._numbers.append(number)
        return items

    def _csv_header(self):
        """Names, or None: the first row has them."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        if self._lib.primus_header(self._handle, ctypes.byref(data), ctypes.byref(size)) <= 0:
            return self._header
        line = ctypes.string_at(data, size.value).decode(errors="surrogateescape")
        return next(csv.reader([line]), [])


SPLITTERS = {
    TEXT: Feed._split_lines,
    RAW: Feed._split_sized,
    FIXED: Feed._split_sized,
    TFRECORD: Feed._split_tfrecords,
    TAR: Feed._split_tars,
    CSV: Feed._split_rows,
    MESSAGE: Feed._split_messages,
}


def _line_number(path, position):
    """Of the line that begins there; None: that is no such file, or no place where one begins."""
    try:
        if path is None or position > LINES_MAX or not os.path.isfile(path):
            return None
        with io.open(path, "rb") as file:
            number, last = 1, b"\n"
            while position > 0:
                data = file.read(min(position, 1 << 20))
                if not data:
                    return None
                number, last, position = number + data.count(b"\n"), data[-1:], position - len(data)
    except OSError:
        return None
    return number if last == b"\n" else None


_default = None


def _feed():
    """This process's own."""
    global _default
    if _default is None or _default.pid != os.getpid() or not _default._handle:
        _default = Feed()
    return _default


def open(checkpoint=None):
    """A Feed. Without a checkpoint, records() and the others of the module need none; with one, they go on from it."""
    global _default
    if _default is not None and _default.pid == os.getpid():
        _default.close()
    _default = Feed(checkpoint)
    return _default


def records(shuffle=None, tasks=None, seed=None):
    """Feed.records() of this process's feed. shuffle: about so many records are mixed, of so many tasks at once (tasks=16), each of
    which is a connection of its own; see primus.torch.TaskDataset."""
    if shuffle is None:
        return _feed().records()
    from ._shuffle import Shuffled
    return iter(Shuffled(shuffle, tasks, seed))


def blocks(max_bytes=0):
    """Feed.blocks() of this process's feed."""
    return _feed().blocks(max_bytes)


def ranges():
    """Feed.ranges() of this process's feed."""
    return _feed().ranges()


def ack(position=None):
    """Feed.ack() of this process's feed."""
    _feed().ack(position)


def fail(why):
    """Feed.fail() of this process's feed."""
    _feed().fail(why)


def checkpoint():
    """Feed.checkpoint() of this process's feed."""
    return _feed().checkpoint()


def commit(checkpoint):
    """Feed.commit() of this process's feed."""
    _feed().commit(checkpoint)
