# SPDX-License-Identifier: Apache-2.0
"""TLS 1.3 between a pool and its hosts: a stream of bytes that Reader and Connection take as they take a socket.

Not ssl.SSLSocket: one thread reads here while others send, which an SSL of OpenSSL does not bear (each call of it has a lock here, and
none waits for the network with that); and what was decrypted must never lie there unseen by who polls the socket.

Nobody's name is checked, since hosts have none that a caller could know: who connects checks the certificate's fingerprint, or has it
proven with the job's secret (_proof.py)."""
import collections
import hashlib
import os
import socket
import ssl
import struct
import subprocess
import threading

from . import _wire
from .errors import NotStarted

CHUNK = 1 << 18  # bytes that are encrypted, or read, at a time
GONE_MS = 3000  # so long nobody at the other end's host answers, then the connection is over


def certificate():
    """(certificate and key as PEM, the SHA-256 of the certificate): a new one, of this process alone; Python's ssl makes none. NotStarted."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650", "-subj", "/CN=primus-actors"]
    try:
        made = subprocess.run([*command, "-keyout", "/dev/stdout", "-out", "/dev/stdout"], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise NotStarted("a pool of several hosts needs a certificate, which the program openssl makes (Debian: openssl)") from None
    except subprocess.CalledProcessError as e:
        raise NotStarted(f"openssl has made no certificate: {e.stderr.decode(errors='replace').strip()}") from None
    begin, end = made.index(b"-----BEGIN CERTIFICATE-----"), made.index(b"-----END CERTIFICATE-----")
    return made, hashlib.sha256(ssl.PEM_cert_to_DER_cert(made[begin:end + 25].decode())).digest()


def server_context(pem):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    with os.fdopen(os.memfd_create("primus-actors"), "wb") as file:  # ssl reads it from files alone
        file.write(pem)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


class Channel:
    """A TCP socket's TLS. recv_into() gives what fill() has read; sendmsg() is for one thread at a time."""

    def __init__(self, s, context, server):
        self._s = s
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server)
        self._lock = threading.Lock()
        self._unsent, self._taken = b"", 0  # what is encrypted already, and how many bytes of the caller's that are
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def shake(self):
        """One step of the handshake, of what has come; what is to be said is in the socket. False: more has to come. OSError."""
        try:
            self._tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            done = False
        finally:
            said = self._outgoing.read()
            if said:  # a few KiB, into an empty buffer
                self._s.send(said, _wire.SEND_FLAGS | _wire.DONTWAIT)
        return done

    def fingerprint(self):
        """SHA-256 of the other end's certificate."""
        return hashlib.sha256(self._tls.getpeercert(True)).digest()

    def keep_looking(self):
        """The kernel asks the other end's kernel each second whether it is there. Between a pool and a host: an actor may be busy for as
        long as it likes with its buffers full, and the kernel would take that for an end, too."""
        self._s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
        for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, GONE_MS // 1000)):
            self._s.setsockopt(socket.IPPROTO_TCP, option, value)
        self._s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def wait_for_room(self, seconds):
        """So long who sends and may wait does so; BlockingIOError then."""
        self._s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, 0))

    def fill(self, flags):
        """Reads once from the network. BlockingIOError, and what a socket raises."""
        data = self._s.recv(CHUNK, flags)
        with self._lock:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def recv_into(self, view, _, __):
        """BlockingIOError: nothing more has come yet. 0: nothing more will."""
        with self._lock:
            try:
                return self._tls.read(len(view), view)
            except ssl.SSLWantReadError:
                raise BlockingIOError from None
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return 0  # who cuts a connection can end it as well by other means; frames are whole or none

    def sendmsg(self, parts, _=(), flags=0):
        """How many bytes of them are sent. BlockingIOError: call again with the same ones."""
        if not self._unsent:
            data = _beginning(parts)
            with self._lock:
                self._taken = self._tls.write(data)
                self._unsent = memoryview(self._outgoing.read())
        while self._unsent:
            self._unsent = self._unsent[self._s.send(self._unsent, flags):]
        return self._taken

    def reader(self, most=_wire.PICKLE_MAX):
        """Of its frames; there is one."""
        return Reader(self, most)

    def shutdown(self, how):
        self._s.shutdown(how)

    def fileno(self):
        return self._s.fileno()

    def own(self):
        """(host, port) of this end."""
        return self._s.getsockname()[:2]

    def peer(self):
        """(host, port) of the other end."""
        return self._s.getpeername()[:2]

    def close(self):
        self._s.close()


def _beginning(parts):
    """The first CHUNK bytes of them, or all."""
    if len(parts) == 1 or _wire.size_of(parts[:1]) >= CHUNK:
        return memoryview(parts[0])[:CHUNK]
    taken, size = [], 0
    for part in parts:
        taken.append(memoryview(part)[:CHUNK - size])
        size += len(taken[-1])
        if size == CHUNK:
            break
    return b"".join(taken)


class Reader(_wire.Reader):
    """Frames of a Channel. All that has been decrypted is taken out at once, so nothing lies where a poll of the socket does not see it."""

    def __init__(self, channel, most):
        super().__init__(channel, most)
        self._ready, self._over = collections.deque(), None

    def read(self, block):
        if self._over is not None:
            raise self._over
        try:
            self._s.fill(0 if block else _wire.DONTWAIT)
        except BlockingIOError:
            return False
        except (ConnectionResetError, TimeoutError) as e:
            raise _wire.Ended("the other end is gone") from e
        try:
            while super().read(False):
                self._ready.extend(super().frames())
        except _wire.Ended as e:
            if not self._ready:
                raise
            self._over = e
        return True

    def frames(self):
        while self._ready:
            yield self._ready.popleft()
