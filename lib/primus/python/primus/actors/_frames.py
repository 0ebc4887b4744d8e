# SPDX-License-Identifier: Apache-2.0
"""What a pool and its hosts say to each other: packets of JSON, as a zygote's, over TLS."""
import contextlib
import json
import socket

from . import _wire


class Frames:
    """Another host's process, over TLS."""

    def __init__(self, channel):
        self.channel = channel
        self._reader = channel.reader(_wire.PACKET_MAX)
        self._rest = []  # of what was said last
        channel.keep_looking()

    def fileno(self):
        return self.channel.fileno()

    def send(self, text, given=(), flags=_wire.DONTWAIT):
        self._rest = self._rest or _wire.framed(_wire.TOLD, 0, text)
        while self._rest:
            self._rest = _wire.rest_of(self._rest, self.channel.sendmsg(self._rest, (), flags | _wire.SEND_FLAGS))

    def receive(self, block=False):
        """What has been said, as dicts. OSError: it is over."""
        if not self._reader.read(block):
            return []
        said = []
        for kind, _, body, buffers in self._reader.frames():
            if kind != _wire.TOLD or buffers:
                raise _wire.Malformed("that is no frame between a pool and a host")
            try:
                packet = json.loads(body)
            except ValueError:
                packet = None
            if not isinstance(packet, dict):
                raise _wire.Malformed("that is no frame between a pool and a host")
            said.append(packet)
        return said

    def shut(self):
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.channel.close()

    forget = close
