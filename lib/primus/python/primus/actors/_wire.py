# SPDX-License-Identifier: Apache-2.0
"""Frames between a caller and an actor, on a stream socket. Each has a pickle, and buffers that lie beside it (pickle 5, out of band), so
that arrays are not copied into it.

    u32 bytes of the pickle, u8 kind, u8 0, u16 number of buffers, u64 id, u64 bytes of each buffer, the pickle, the buffers

Host's byte order: both ends are on one host."""
import pickle
import socket
import struct

HEADER = struct.Struct("=IBBHQ")
PICKLE_MAX = (1 << 32) - 1
BUFFERS_MAX = 1024
ASIDE = 16384  # bytes from which on a buffer lies beside the pickle
READ = 1 << 18

# To the actor.
CREATE, CALL, CANCEL = range(3)
# From it.
DONE, RAISED, BROKEN = range(16, 19)  # BROKEN: it was not constructed


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


def framed(kind, id, body, buffers=()):
    """A frame's parts, as sendmsg() takes them."""
    if len(body) > PICKLE_MAX:
        raise pickle.PicklingError(f"{len(body)} bytes are too many for one message")
    head = HEADER.pack(len(body), kind, 0, len(buffers), id)
    if not buffers:
        return [head + body if len(body) < READ else head, *([] if len(body) < READ else [body])]
    return [head + struct.pack(f"={len(buffers)}Q", *(b.nbytes for b in buffers)), body, *buffers]


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
            sent = s.sendmsg(parts[:512], (), socket.MSG_NOSIGNAL)
        except (BrokenPipeError, ConnectionResetError):
            raise Ended("the other end is gone") from None
        left -= sent
        if left:
            parts = rest_of(parts, sent)


class Reader:
    """Takes frames from a socket. frames() gives those that have come: (kind, id, pickle, buffers)."""

    def __init__(self, s):
        self._s = s
        self._data = bytearray()  # begins with a frame's header
        self._at = 0
        self._large = None  # (kind, id, body, buffers, which of them, how much of it): what is being read into its buffers

    def read(self, block):
        """Once; what came is in frames(). False: nothing has (and block is False). Ended."""
        flags = 0 if block else socket.MSG_DONTWAIT
        try:
            if self._large is not None:
                return self._read_large(flags)
            part = self._s.recv(READ, flags)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            part = b""
        if not part:
            raise Ended("the other end is gone")
        if self._at:
            del self._data[:self._at]
            self._at = 0
        self._data += part
        return True

    def _read_large(self, flags):
        kind, id, body, buffers, which, at = self._large
        n = self._s.recv_into(memoryview(buffers[which])[at:], 0, flags)
        if not n:
            raise Ended("the other end is gone")
        at += n
        while which < len(buffers) and at == len(buffers[which]):
            which, at = which + 1, 0
        self._large = kind, id, body, buffers, which, at
        return True

    def frames(self):
        while True:
            if self._large is not None:
                kind, id, body, buffers, which, _ = self._large
                if which < len(buffers):
                    return
                self._large = None
                yield kind, id, body, buffers
                continue
            data, at = self._data, self._at
            there = len(data) - at
            if there < HEADER.size:
                return
            size, kind, zero, n, id = HEADER.unpack_from(data, at)
            if zero or n > BUFFERS_MAX:
                raise Malformed("that is no frame")
            start = at + HEADER.size + 8 * n
            if len(data) < start + size:
                return
            body = bytes(memoryview(data)[start:start + size])
            if not n:
                self._at = start + size
                yield kind, id, body, ()
                continue
            self._begin_large(kind, id, body, struct.unpack_from(f"={n}Q", data, at + HEADER.size), start + size)

    def _begin_large(self, kind, id, body, sizes, at):
        """What of its buffers has come lies behind the pickle; the rest is read into them."""
        buffers = [bytearray(size) for size in sizes]
        which = filled = 0
        while which < len(buffers):
            part = memoryview(self._data)[at:at + len(buffers[which]) - filled]
            buffers[which][filled:filled + len(part)] = part
            at += len(part)
            filled += len(part)
            part.release()
            if filled < len(buffers[which]):
                break
            which, filled = which + 1, 0
        self._at = at
        self._large = kind, id, body, buffers, which, filled
