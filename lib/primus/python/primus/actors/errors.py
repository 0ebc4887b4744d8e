# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with an actor, other than what its own methods raise: that comes as it is, with RemoteTraceback as its cause."""
import signal

from ._size import text


class ActorError(Exception):
    """Of all of these."""


class ActorDied(ActorError):
    """It has ended; what was under way is lost.

    status   int: what it exited with; None: a signal ended it
    signal   int, or None"""

    def __init__(self, text, status=None, signal=None):
        super().__init__(text)
        self.status, self.signal = status, signal

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.signal)


class OutOfMemory(ActorDied):
    """The kernel ended it for want of memory.

    limit   bytes, of this actor; None: its executor had no memory left, or its host, and it held the most
    peak    bytes, the most that it had; None: the kernel does not tell"""

    def __init__(self, text, status=None, signal=None, limit=None, peak=None):
        super().__init__(text, status, signal)
        self.limit, self.peak = limit, peak

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.signal, self.limit, self.peak)


class HostLost(ActorDied):
    """The host that it was on is gone, or the pool's process there."""


class NotConstructed(ActorError):
    """Its constructor raised; the cause is what."""


class NotSent(ActorError, TypeError):
    """What a method was to get or has returned cannot be pickled, or not be read there; the cause is why."""


class PoolClosed(ActorError):
    """Its pool has been closed, or is gone."""


class PreloadRefused(ActorError):
    """A module of preload= cannot be imported, or starts threads, which a fork would not take along."""


class HostRefused(ActorError):
    """A host of the pool has less than it is to have."""


class NotStarted(ActorError):
    """A pool of several hosts could not be submitted as a job, or has no certificate; the text is why."""


class RemoteTraceback(Exception):
    """Where it was raised, in the actor."""

    def __init__(self, text):
        super().__init__(text)

    def __str__(self):
        return f"\n\n{self.args[0]}"


BYTES_MAX = 1 << 62


def memory_of(said):
    """What _groups.Groups.remove() has found, of a packet of a zygote, which may lie; None: nothing. ValueError, TypeError, KeyError: it does."""
    found = said.get("memory")
    return found and {key: found[key] and min(max(int(found[key]), 0), BYTES_MAX) for key in ("limit", "peak")}


def _out_of_memory(what, number, limit, peak):
    at = f"limit {text(limit)}" if limit else "not at its own limit: its executor had none left, or its host"
    most = f", peak {text(peak)}" if peak else ""
    return OutOfMemory(f"{what} was killed: out of memory ({at}{most})", signal=number, limit=limit, peak=peak)


def died_of(what, status, memory=None):
    """ActorDied, of a wait status; None: nobody knows. memory: what memory_of() gives."""
    if memory:
        return _out_of_memory(what, signal.SIGKILL.value, **memory)
    if status is None:
        return ActorDied(f"{what} has ended, and nobody knows why")
    code = status >> 8
    number = status & 0x7F
    if number:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return ActorDied(f"{what} was ended by {name}", signal=number)
    return ActorDied(f"{what} has exited with status {code}", status=code)
