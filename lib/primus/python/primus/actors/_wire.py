# SPDX-License-Identifier: Apache-2.0
"""Frames between a caller and an actor, on a stream socket. Each has a pickle, and buffers that lie beside it (pickle 5, out of band), so
that arrays are not copied into it.

    u32 bytes of the pickle, u8 kind, u8 0, u16 number of buffers, u64 id, u64 bytes of each buffer, the pickle, the buffers

or, where both ends share memory (_arena.py), with 1 in place of the 0, and where each buffer lies there in place of them:

    u32 bytes of the pickle, u8 kind, u8 1, u16 number of buffers, u64 id, u64 where and u64 bytes of each buffer, the pickle

Host's byte order: both ends are on one host, or on hosts that have compared theirs."""
import contextlib
import mmap
import pickle
import socket
import struct

HEADER = struct.Struct("=IBBHQ")
PICKLE_MAX = (1 << 32) - 1
MESSAGE_MAX = 1 << 34  # bytes of all buffers of a frame
BUFFERS_MAX = 1024
PACKET_MAX = 1 << 16  # bytes of JSON between a pool, a host and a zygote
ASIDE = 16384  # bytes from which on a buffer lies beside the pickle
HUGE = 1 << 22  # bytes from which on huge pages pay
READ = 1 << 16
LEAST = 1 << 12  # bytes of room to read into
DONTWAIT = int(socket.MSG_DONTWAIT)
SEND_FLAGS = int(socket.MSG_NOSIGNAL)

# To the actor.
CREATE, CALL, CANCEL, MORE = range(4)  # MORE: so many items of a stream were taken, as many digits
GIVEN, REFUSED, REFUSED_BROKEN = range(4, 7)  # to what it has asked of another actor, or of the pool: DONE, RAISED, BROKEN
RESTORE = 7  # before CREATE: what the process before has said with STATE
FREED = 8  # a block of shared memory that the actor has written, the id is where
STREAMED, GIVEN_ITEM, GIVEN_OVER = range(9, 12)  # to what it has asked of a generator: STREAM, ITEM, OVER
# From it. BROKEN: it was not constructed. STREAM: it is a generator, of which ITEMs come, and then DONE or RAISED.
DONE, RAISED, BROKEN, STREAM, ITEM = range(16, 21)
# From it, of other actors (_relay.py): a question to one, and to the pool; numbers of the actors whose handles are in the answer that
# comes next; a handle is gone, the id is its actor's number.
ASK, WISH, LENT, DROP = range(21, 25)
FREE = 26  # a block of shared memory that the pool has written, the id is where
TAKEN, LEFT = 27, 28  # of a stream of another actor's, the id is its question's: MORE, CANCEL
STATE = 25  # of an object that keeps it over restarts, before the answer of the call that it is behind
OVER = 31  # said by no actor: DONE of a STREAM
TOLD = 32  # between a pool and another host's process: JSON
ANSWERED = {GIVEN: DONE, REFUSED: RAISED, REFUSED_BROKEN: BROKEN, STREAMED: STREAM, GIVEN_ITEM: ITEM, GIVEN_OVER: OVER}  # what was said of what is said on
WINDOW = 16  # items that nobody has taken yet


class Ended(ConnectionError):
    """There is nobody at the other end any more."""


class Malformed(ConnectionError):
    """That is no frame."""


def pickled(value):
    """(pickle, the buffers beside it). What pickle raises."""
    buffers = []

    def beside(buffer):
        raw = buffer.raw()
        if raw.nbytes < ASIDE or len(buffers) == BUFFERS_MAX:
            return True
        buffers.append(raw)
        return False

    return pickle.dumps(value, 5, buffer_callback=beside), buffers


def framed(kind, id, body, buffers=(), arena=None):
    """A frame's parts, as sendmsg() takes them. arena: where buffers lie then, if there is room."""
    places = arena.put(buffers) if buffers and arena is not None else None
    if places is not None:
        return shared(kind, id, body, places)
    if len(body) > PICKLE_MAX:
        raise pickle.PicklingError(f"{len(body)} bytes are too many for one message")
    if buffers and sum(b.nbytes for b in buffers) > MESSAGE_MAX:
        raise pickle.PicklingError(f"arrays of more than {MESSAGE_MAX} bytes are too much for one message")
    head = HEADER.pack(len(body), kind, 0, len(buffers), id)
    if not buffers:
        return [head + body] if len(body) < READ else [head, body]
    return [head + struct.pack(f"={len(buffers)}Q", *(b.nbytes for b in buffers)), body, *buffers]


def shared(kind, id, body, places):
    """A frame whose buffers lie in shared memory: [(where, bytes)]."""
    return [HEADER.pack(len(body), kind, 1, len(places), id) + struct.pack(f"={2 * len(places)}Q", *(n for place in places for n in place)) + body]


def rest_of(parts, sent):
    """What of the parts is left when so many bytes have gone."""
    left = []
    for part in parts:
        size = part.nbytes if isinstance(part, memoryview) else len(part)
        if sent >= size:
            sent -= size
        elif sent:
            left.append(memoryview(part)[sent:])
            sent = 0
        else:
            left.append(part)
    return left


def size_of(parts):
    return sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)


def send(s, parts):
    """All of it; blocks."""
    left = size_of(parts)
    while left:
        try:
            sent = s.sendmsg(parts[:512], (), SEND_FLAGS)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            raise Ended("the other end is gone") from None
        left -= sent
        if left:
            parts = rest_of(parts, sent)


def _room(size):
    """Writable memory for a buffer. A large one is a mapping of huge pages: bytearray would write zeros into each page first, and to
    make so many small pages takes longer than to fill them."""
    if size < HUGE:
        return bytearray(size)
    try:
        room = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as e:
        raise Malformed(f"there is no memory for a buffer of {size} bytes") from e
    with contextlib.suppress(OSError):  # a kernel without them
        room.madvise(mmap.MADV_HUGEPAGE)
    return room


class Reader:
    """Takes frames from a socket. frames() gives those that have come: (kind, id, pickle, buffers)."""

    def __init__(self, s, most=PICKLE_MAX):
        """most: bytes of a pickle; who says more ends the connection."""
        self._s, self._most, self.arena = s, most, None
        self._room = bytearray(READ)  # kept: to allocate that much for each read costs more than the read
        self._view = memoryview(self._room)
        self._at = self._end = 0  # of it, what has come and was not taken yet; begins with a frame's header
        self._large = None  # (kind, id, body, sizes of its buffers) of a frame that is being read into them
        self._buffers, self._filled = [], 0  # those that have begun, and how much of the last has come

    def read(self, block):
        """Once; what came is in frames(). False: nothing has (and block is False). Ended."""
        flags = 0 if block else DONTWAIT
        try:
            if self._large is not None:
                return self._read_large(flags)
            if self._at == self._end:
                self._at = self._end = 0
            elif len(self._room) - self._end < LEAST:
                self._make_room()
            n = self._s.recv_into(self._view[self._end:], 0, flags)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            n = 0
        if not n:
            raise Ended("the other end is gone")
        self._end += n
        return True

    def _make_room(self):
        """What is there goes to the beginning, of a larger one where it fills more than half."""
        left = self._room[self._at:self._end]
        if len(left) > len(self._room) // 2:
            self._room = bytearray(4 * len(self._room))
            self._view = memoryview(self._room)
        self._room[:len(left)] = left
        self._at, self._end = 0, len(left)

    def _read_large(self, flags):
        n = self._s.recv_into(memoryview(self._buffers[-1])[self._filled:], 0, flags)
        if not n:
            raise Ended("the other end is gone")
        self._fill(n)
        return True

    def frames(self):
        while True:
            if self._large is not None:
                if not self._is_whole():
                    return
                (kind, id, body, _), buffers = self._large, self._buffers
                self._large = self._buffers = None
                yield kind, id, body, buffers
            at = self._at
            if self._end - at < HEADER.size:
                break
            size, kind, in_arena, n, id = HEADER.unpack_from(self._room, at)
            if in_arena > (self.arena is not None) or n > BUFFERS_MAX or size > self._most:
                raise Malformed("that is no frame")
            start = at + HEADER.size + (16 if in_arena else 8) * n
            if self._end < start + size:
                break
            body = bytes(self._view[start:start + size])
            self._at = start + size
            if in_arena:
                yield kind, id, body, self._lie_at(struct.unpack_from(f"={2 * n}Q", self._room, at + HEADER.size))
            elif n:
                self._begin_large(kind, id, body, struct.unpack_from(f"={n}Q", self._room, at + HEADER.size))
            else:
                yield kind, id, body, ()
        if len(self._room) > READ and self._at == self._end:
            self._room = bytearray(READ)
            self._view = memoryview(self._room)
            self._at = self._end = 0

    def _lie_at(self, numbers):
        try:
            return self.arena.views(list(zip(numbers[::2], numbers[1::2])))
        except ValueError as e:
            raise Malformed(str(e)) from None

    def _begin_large(self, kind, id, body, sizes):
        """What of its buffers has come lies behind the pickle; the rest is read into them."""
        if sum(sizes) > MESSAGE_MAX:
            raise Malformed("that is no frame")
        self._large = kind, id, body, sizes
        self._buffers, self._filled = [], 0
        self._fill(0)
        while self._at < self._end and not self._is_whole():
            into = self._buffers[-1]
            part = self._view[self._at:min(self._end, self._at + len(into) - self._filled)]
            into[self._filled:self._filled + len(part)] = part
            self._at += len(part)
            self._fill(len(part))

    def _fill(self, n):
        """So many bytes more have come. There is memory for the next ones, and for no buffer before it begins."""
        sizes = self._large[3]
        self._filled += n
        while len(self._buffers) < len(sizes) and (not self._buffers or self._filled == len(self._buffers[-1])):
            self._buffers.append(_room(sizes[len(self._buffers)]))
            self._filled = 0

    def _is_whole(self):
        return len(self._buffers) == len(self._large[3]) and self._filled == len(self._buffers[-1])
