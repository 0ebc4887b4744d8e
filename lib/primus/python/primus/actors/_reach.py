# SPDX-License-Identifier: Apache-2.0
"""How an actor's process comes to the pool on another host."""
import contextlib
import os
import ssl
import sys

from . import _door, _proof, _tls
from ._tls import client_context

SECONDS = 10
UNREACHED = 71  # the process's status then

__all__ = ["client_context", "reach", "rehearse"]


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
        channel, _ = _door.dial(s, context)
        if channel.fingerprint() != pin:
            raise PermissionError("who is there is not the pool")
        channel.sendmsg([_proof.actor_hello(token)])
    except OSError as e:
        print(f"an actor does not reach its pool: {e}", file=sys.stderr, flush=True)
        os._exit(UNREACHED)
    s.settimeout(None)
    return channel, _tls.Reader(channel)
