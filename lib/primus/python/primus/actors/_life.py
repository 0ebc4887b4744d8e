# SPDX-License-Identifier: Apache-2.0
"""An actor over its restarts: which connection is the one of now, and how another is made."""
import time

SOON_SECONDS = 5  # who has lived no longer is made again a while later, and not at once


class Life:
    """what       its name for people
    restarts   int or float("inf"): so often it is made again when it dies, by the same constructor with the same arguments
    body, buffers   the frame that makes it
    idempotent   names of methods that are called again when it dies and is made again
    lent       lives of the actors whose handles go along to the constructor"""

    def __init__(self, number, what, restarts, body, buffers, idempotent, lent=()):
        self.number, self.idempotent, self.lent = number, idempotent, lent
        self.state = None  # (pickle, buffers) of what it said last of itself, if it keeps that
        self._holders = set()  # one object for each handle that somebody has
        self.what, self.connection, self.released = what, None, False
        self._left, self._began = restarts, time.monotonic()
        self.body = body
        self.buffers = [memoryview(bytes(b)) for b in buffers] if restarts else buffers  # which the caller may write to behind the first time

    def hold(self):
        """Somebody has a handle: what to let go of when it is gone."""
        token = object()
        self._holders.add(token)
        return token

    def let_go(self, token):
        """Waits for no lock. When nobody has one any more, the actor ends behind what is under way."""
        self._holders.discard(token)
        if not self._holders:
            self.released = True
            self.connection.release()

    def left(self):
        """So often it may be made again."""
        return self._left

    def end(self):
        """It is not made again."""
        self._left = 0

    def takes_another(self, status):
        """Whether it is made again. status: the wait status that it has died with; None: with its host. Who exits with 0 has meant it."""
        if self.released or self._left < 1 or status == 0:
            return False
        self._left -= 1
        return True

    def begins_soon(self):
        """Whether it has died soon after it was made; the next one's time begins."""
        began, self._began = self._began, time.monotonic()
        return self._began - began < SOON_SECONDS
