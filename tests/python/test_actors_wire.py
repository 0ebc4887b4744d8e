# SPDX-License-Identifier: Apache-2.0
"""Frames of primus.actors: whatever they are cut into, they come as they were sent; whatever is changed in them, nothing but an end comes
of it. PRIMUS_ACTOR_FUZZ=600 looks for so many seconds."""
import os
import pathlib
import random
import resource
import struct
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

from primus.actors import _wire  # noqa: E402

SECONDS = float(os.environ.get("PRIMUS_ACTOR_FUZZ", "2"))
SIZES = [0, 1, 7, 100, 16384, 65535, 65536, 70000, 300000]


class Bytes:
    """A socket that has them, in pieces."""

    def __init__(self, data, draw):
        self._data, self._at, self._draw = memoryview(data), 0, draw

    def recv_into(self, view, _, flags):
        if flags and self._draw.random() < 0.1:
            raise BlockingIOError
        n = min(self._draw.choice([1, 3, 24, 1000, 65536, 1 << 20]), len(view), len(self._data) - self._at)
        view[:n] = self._data[self._at:self._at + n]
        self._at += n
        return n


def some(draw):
    """(kind, id, body, buffers)"""
    buffers = [memoryview(bytearray(draw.randbytes(draw.choice(SIZES)))) for _ in range(draw.choice([0, 0, 1, 3]))]
    return draw.randrange(256), draw.randrange(1 << 64), draw.randbytes(draw.choice(SIZES)), buffers


def taken(data, draw, most=_wire.PICKLE_MAX):
    """The frames that come, and what ends them."""
    reader, found = _wire.Reader(Bytes(data, draw), most), []
    while True:
        try:
            reader.read(draw.random() < 0.5)
            found.extend(reader.frames())
        except (_wire.Ended, _wire.Malformed) as e:
            return found, e


def plain(frames):
    return [(kind, id, body, [bytes(b) for b in buffers]) for kind, id, body, buffers in frames]


def sent(frames):
    return b"".join(bytes(part) for frame in frames for part in _wire.framed(*frame))


def test_in_pieces():
    draw = random.Random(1)
    for _ in range(60):
        frames = [some(draw) for _ in range(draw.randrange(1, 8))]
        found, why = taken(sent(frames), draw)
        assert plain(found) == plain(frames) and isinstance(why, _wire.Ended)


def changed(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(data) + 1)
        how = draw.randrange(5)
        if how == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif how == 1:
            del data[at:]
        elif how == 2:
            data[at:at] = draw.randbytes(draw.choice([1, 8, 24]))
        elif how == 3:
            del data[at:at + draw.choice([1, 8, 24])]
        else:  # a header's numbers
            data[at:at + 8] = struct.pack("=Q", draw.choice([0, 1, 1 << 31, 1 << 32, 1 << 34, 1 << 62, (1 << 64) - 1]))
    return bytes(data)


def test_changed():
    """Nothing else is raised, and no memory is taken for what only a header says."""
    seed = int(time.time()) if SECONDS > 2 else 7
    print("seed", seed)
    draw, end, n = random.Random(seed), time.monotonic() + SECONDS, 0
    while time.monotonic() < end or n < 50:
        data = changed(sent([some(draw) for _ in range(draw.randrange(1, 4))]), draw)
        taken(data, draw, draw.choice([_wire.PICKLE_MAX, _wire.PACKET_MAX]))
        n += 1
    print(n, "of them")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "KiB"


@pytest.mark.parametrize("header", [
    (0, 0, 1, 0, 0), (0, 0, 0, _wire.BUFFERS_MAX + 1, 0), (_wire.PACKET_MAX + 1, 0, 0, 0, 0),
])
def test_no_frame(header):
    found, why = taken(_wire.HEADER.pack(*header), random.Random(0), _wire.PACKET_MAX)
    assert not found and isinstance(why, _wire.Malformed)


def test_only_said(monkeypatch):
    """A thousand buffers that a header promises are not made before they come."""
    made = []
    monkeypatch.setattr(_wire, "_room", lambda size: made.append(size) or bytearray(min(size, 1)))
    sizes = [1 << 20] * _wire.BUFFERS_MAX
    found, why = taken(_wire.HEADER.pack(0, 0, 0, len(sizes), 0) + struct.pack(f"={len(sizes)}Q", *sizes), random.Random(0))
    assert not found and isinstance(why, _wire.Ended) and len(made) == 1
