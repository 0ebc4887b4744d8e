# SPDX-License-Identifier: Apache-2.0
"""Who may talk to whom between hosts. All that a stranger can say is 65 bytes, of fixed places, inside TLS.

The pool says 32 random bytes. Who has connected answers with a kind and twice 32 bytes:

    HOST    32 random bytes of its own, and the proof that it has the job's secret; the pool answers with its proof
    GUEST   the same, of a program that asks a pool which outlives programs
    ACTOR   the token that the pool has given to the host for this actor, and 32 zeros

A proof is HMAC-SHA256, by the secret, of who it is, both random numbers and the fingerprint of the certificate that it sees: who sits
in between shows another certificate, and has no proof that holds for that. An actor's process compares the fingerprint itself, before
it says its token."""
import hashlib
import hmac

SIZE = 32
HELLO = 1 + 2 * SIZE
HOST, GUEST, ACTOR = b"H", b"G", b"A"
WHO = {HOST: b"host", GUEST: b"guest"}
SECRET_MIN = 16


def proof(secret, who, pools, own, fingerprint):
    """own: of who has connected"""
    return hmac.new(secret, who + pools + own + fingerprint, hashlib.sha256).digest()


def hello(kind, secret, pools, own, fingerprint):
    """kind: one of WHO"""
    return kind + own + proof(secret, WHO[kind], pools, own, fingerprint)


def actor_hello(token):
    return ACTOR + token + bytes(SIZE)


def answer(secret, hello, pools, fingerprint):
    """What the pool says to a hello of one of WHO; None: it is none of ours."""
    own, theirs = hello[1:1 + SIZE], hello[1 + SIZE:]
    if not hmac.compare_digest(theirs, proof(secret, WHO[hello[:1]], pools, own, fingerprint)):
        return None
    return proof(secret, b"pool", pools, own, fingerprint)


def is_pool(secret, theirs, pools, own, fingerprint):
    return hmac.compare_digest(theirs, proof(secret, b"pool", pools, own, fingerprint))


def name_of(token):
    """What a token is looked up by: how long that takes says nothing about it."""
    return hashlib.sha256(token).digest()
