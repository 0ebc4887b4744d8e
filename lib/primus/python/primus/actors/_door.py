# SPDX-License-Identifier: Apache-2.0
"""Where hosts and actors of other hosts connect to a pool. Nobody waits for a stranger: all are heard side by side, in a thread of their
own, for a few seconds, and when there are too many the one that has been there longest goes."""
import collections
import contextlib
import secrets
import selectors
import socket
import threading
import time
import traceback

from . import _proof, _tls, _wire

SECONDS = 5
STRANGERS_MAX = 256  # who have not proven yet who they are, at a time


class _Stranger:
    def __init__(self, s, context):
        self.channel = _tls.Channel(s, context, True)
        self.end = time.monotonic() + SECONDS
        self.ours = None  # what it was told, when the handshake was over
        self.hello = bytearray(_proof.HELLO + 1)  # who says more at once is none of ours, and nobody would see the rest
        self.heard = 0


class Door:
    """secret    the job's
    port         int, 0: any; port is the one that it became
    host_came, guest_came    called with (channel) of who has proven that it has the secret: a host, or a program; None: there are none

    Listens at all addresses of this host."""

    def __init__(self, secret, port, host_came, guest_came=None):
        if len(secret) < _proof.SECRET_MIN:
            raise ValueError(f"a secret has at least {_proof.SECRET_MIN} bytes")
        pem, self.fingerprint = _tls.certificate()
        self._context, self.secret = _tls.server_context(pem), secret
        self._came = {_proof.HOST: host_came, _proof.GUEST: guest_came}
        self._server = _listen(port)
        self.port = self._server.getsockname()[1]
        self._expected = {}  # by _proof.name_of() of its token: what is called with the actor's channel
        self._strangers = collections.OrderedDict()  # by socket, the oldest first
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._woken, self._wake = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="primus-actors-door", daemon=True)
        self._thread.start()

    def expect(self, came):
        """A token, by which an actor's process is known once; came(channel) in the door's thread."""
        token = secrets.token_bytes(_proof.SIZE)
        self._expected[_proof.name_of(token)] = came
        return token

    def expecting(self):
        """How many have a token and have not come."""
        return len(self._expected)

    def forget(self, token):
        self._expected.pop(_proof.name_of(token), None)

    def close(self):
        with contextlib.suppress(OSError):
            self._wake.send(b".")
        self._thread.join()

    def close_sockets(self):
        """In a forked child, where there is no thread."""
        for s in (self._server, self._woken, self._wake, *self._strangers):
            s.close()

    # ---- in the thread

    def _run(self):
        while True:
            oldest = next(iter(self._strangers.values()), None)
            for key, _ in self._selector.select(None if oldest is None else max(oldest.end - time.monotonic(), 0)):
                if key.fileobj is self._woken:
                    self._leave()
                    return
                if key.fileobj is self._server:
                    self._accept()
                elif key.fileobj in self._strangers:
                    self._hear(key.fileobj)
            now = time.monotonic()
            while self._strangers and next(iter(self._strangers.values())).end <= now:
                self._drop(next(iter(self._strangers)))

    def _leave(self):
        self._selector.close()
        self.close_sockets()

    def _accept(self):
        try:
            s, _ = self._server.accept()
        except OSError:  # it has gone again, or there are no descriptors: the ones that are here end within seconds
            time.sleep(0.01)
            return
        if len(self._strangers) == STRANGERS_MAX:
            self._drop(next(iter(self._strangers)))
        self._strangers[s] = _Stranger(s, self._context)
        self._selector.register(s, selectors.EVENT_READ)

    def _take(self, s):
        self._selector.unregister(s)
        return self._strangers.pop(s)

    def _drop(self, s):
        self._take(s)
        s.close()

    def _hear(self, s):
        stranger = self._strangers[s]
        try:
            stranger.channel.fill(_wire.DONTWAIT)
            if stranger.ours is None and stranger.channel.shake():
                stranger.ours = secrets.token_bytes(_proof.SIZE)
                stranger.channel.sendmsg([stranger.ours], (), _wire.DONTWAIT)
            if stranger.ours is None or not self._hear_hello(stranger):
                return
        except BlockingIOError:
            return
        except OSError:
            self._drop(s)
            return
        self._take(s)
        try:
            admitted = self._admit(stranger)
        except Exception:  # whatever one of them comes to, the others are let in
            traceback.print_exc()
            admitted = False
        if not admitted:
            s.close()

    @staticmethod
    def _hear_hello(stranger):
        """Whether it is whole. OSError: it is none."""
        with contextlib.suppress(BlockingIOError):
            while stranger.heard <= _proof.HELLO:
                n = stranger.channel.recv_into(memoryview(stranger.hello)[stranger.heard:], 0, 0)
                if not n:
                    raise _wire.Ended("it has gone")
                stranger.heard += n
            raise _wire.Malformed("that is no hello")
        return stranger.heard == _proof.HELLO

    def _admit(self, stranger):
        hello = bytes(stranger.hello[:_proof.HELLO])
        if hello[:1] == _proof.ACTOR:
            came = self._expected.pop(_proof.name_of(hello[1:1 + _proof.SIZE]), None)
        else:
            came = self._came.get(hello[:1])
            said = came and _proof.answer(self.secret, hello, stranger.ours, self.fingerprint)
            if said is None:
                return False
            with contextlib.suppress(OSError):
                stranger.channel.sendmsg([said], (), _wire.DONTWAIT)
        if came is None:
            return False
        came(stranger.channel)
        return True


def _listen(port):
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    return socket.create_server(("", port), backlog=1024)
