# SPDX-License-Identifier: Apache-2.0
"""The end that connects: how a host's process, and an actor's, come to their pool."""
import contextlib
import os
import secrets
import socket
import ssl
import sys

from . import _proof, _tls, _wire

SECONDS = 10
DIAL_SECONDS = 3  # of one address, where there may be others
UNREACHED = 71  # the process's status then


def client_context():
    """Nobody's name is checked: hosts have none that another could know."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def dial(s, context):
    """(a Channel to the pool, what it has said first), over a connected socket with a time limit. OSError."""
    channel = _tls.Channel(s, context, False)
    while not channel.shake():
        channel.fill(0)
    return channel, receive(channel, _proof.SIZE)


def connect(address, context, secret, kind):
    """(where the pool is, its certificate's fingerprint, a Channel to it), when both ends have proven that they have the secret. kind: one of
    _proof.WHO. OSError."""
    s = socket.create_connection(address, DIAL_SECONDS)
    try:
        channel, pools = dial(s, context)
        ours, fingerprint = secrets.token_bytes(_proof.SIZE), channel.fingerprint()
        channel.sendmsg([_proof.hello(kind, secret, pools, ours, fingerprint)])
        if not _proof.is_pool(secret, receive(channel, _proof.SIZE), pools, ours, fingerprint):
            raise PermissionError("who is there has not the job's secret")
        s.settimeout(None)
        return s.getpeername()[:2], fingerprint, channel
    except BaseException:
        s.close()
        raise


def receive(channel, size):
    """So many bytes. OSError."""
    found = bytearray(size)
    at = 0
    while at < size:
        try:
            n = channel.recv_into(memoryview(found)[at:], 0, 0)
        except BlockingIOError:
            channel.fill(0)
            continue
        if not n:
            raise _wire.Ended("the other end is gone")
        at += n
    return bytes(found)


def rehearse(context):
    """In a child that waits: the beginning of a handshake, which makes its own copies of the memory that this takes."""
    tls = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()


def reach(s, context, pin, token):
    """(a Channel, its Reader) to the pool, which has that fingerprint; ends the process where it cannot be had. s: a TCP socket that is
    being connected."""
    s.settimeout(SECONDS)
    try:
        channel, _ = dial(s, context)
        if channel.fingerprint() != pin:
            raise PermissionError("who is there is not the pool")
        channel.sendmsg([_proof.actor_hello(token)])
    except OSError as e:
        print(f"an actor does not reach its pool: {e}", file=sys.stderr, flush=True)
        os._exit(UNREACHED)
    s.settimeout(None)
    return channel, channel.reader()
