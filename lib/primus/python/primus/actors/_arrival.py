# SPDX-License-Identifier: Apache-2.0
"""A host that has proven that it has the secret, until it is ready for actors: it is told what to import, and does so."""
import json
import warnings

from ._frames import Frames
from ._hello import unlike

SLOTS_MAX = 1 << 16
NAME_MAX, REASON_MAX = 64, 4096


class Arrival:
    """settings   for its zygote
    ready, refused   called with (frames, its name, its slots, whether its kernel has limits for each actor), or with (a sentence why it cannot be one, its name)"""

    def __init__(self, channel, settings, ready, refused):
        self.frames = Frames(channel)
        self._settings, self._ready, self._refused = settings, ready, refused
        self._name, self._slots = "a host", 0

    def hear(self):
        """In the watcher's thread. False: it is one, or it is none."""
        try:
            return all([self._take(packet) for packet in self.frames.receive()])
        except (OSError, ValueError, TypeError, KeyError):  # gone, or it says what no host of ours does
            self.frames.close()
            return False

    def _take(self, packet):
        if "host" in packet:
            self._name, self._slots = str(packet["host"])[:NAME_MAX], min(max(int(packet["slots"]), 1), SLOTS_MAX)
            why = unlike(packet)
            if why:
                warnings.warn(f"a host is left out: {why}", RuntimeWarning, stacklevel=2)
            self.frames.send(json.dumps({"refused": why} if why else self._settings).encode())
            return True
        if "refused" in packet:
            self._refused(str(packet["refused"])[:REASON_MAX], self._name)
            raise ValueError
        if not packet.get("ready") or not self._slots:
            raise ValueError
        self._ready(self.frames, self._name, self._slots, packet.get("limits") is True)
        return False
