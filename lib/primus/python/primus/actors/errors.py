# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with an actor, other than what its own methods raise: that comes as it is, with RemoteTraceback as its cause."""
import signal


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


def died_of(what, status):
    """ActorDied, of a wait status; None: nobody knows."""
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
