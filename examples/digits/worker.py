#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker: reads training lines from stdin as they are fed, and for every few of them takes some gradient steps on what it
has seen so far, against the newest parameters of the parameter server.

usage: worker.py [STEPS]      gradient steps for each batch of new lines (default 40)"""
import random
import socket
import sys
import time

import digits as d
import numpy as np

FRESH = 8       # lines read before the next round of steps
BATCH = 32      # images of one step, drawn from everything seen
PATIENCE = 90   # seconds to look for a parameter server that is not there


class Link:
    """The connection to the parameter server, made again when it breaks."""

    def __init__(self, rendezvous):
        self.rendezvous = rendezvous
        self.socket = None

    def connect(self):
        give_up, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            try:
                self.socket = socket.create_connection((self.rendezvous.host, self.rendezvous.port), timeout=10)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.socket.sendall(d.frame(d.HELLO, self.rendezvous.index.to_bytes(4, "little")))
                return
            except OSError as error:
                if time.monotonic() > give_up:
                    sys.exit(f"no parameter server at {self.rendezvous.host} port {self.rendezvous.port}: {error}")
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, 1)

    def receive(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise ConnectionError("the parameter server hung up")
            data += piece
        return bytes(data)

    def ask(self, message):
        """Sends a frame and returns kind and body of the answer. A gradient may be applied twice when the connection breaks
        in between: asynchronous SGD does not mind."""
        while True:
            try:
                if self.socket is None:
                    self.connect()
                self.socket.sendall(message)
                kind, length = d.unpack_header(self.receive(d.HEADER.size))
                return kind, self.receive(length)
            except OSError:
                if self.socket is not None:
                    self.socket.close()
                self.socket = None

    def parameters(self, message):
        kind, body = self.ask(message)
        if kind != d.PARAMS:
            raise ValueError(f"an answer of kind {kind} where parameters were expected")
        return d.floats(body, d.SIZE)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rendezvous = d.Rendezvous()
    rng = np.random.default_rng(1000 + rendezvous.index)
    link = Link(rendezvous)
    params = link.parameters(d.frame(d.PULL))
    images, labels, fresh = [], [], 0

    def train():
        nonlocal params, fresh
        seen, truth = np.stack(images), np.array(labels)
        for _ in range(steps):
            pick = rng.integers(len(truth), size=min(BATCH, len(truth)))
            loss, change = d.gradient(params, seen[pick], truth[pick])
            if not np.isfinite(loss):
                sys.exit(f"the loss is {loss}: the training diverged, or this machine cannot calculate")
            params = link.parameters(d.frame(d.PUSH, np.float32(loss).tobytes(), fresh.to_bytes(4, "little"), change.tobytes()))
            fresh = 0

    for line in sys.stdin.buffer:
        image, label = d.parse(line)
        images.append(image)
        labels.append(label)
        fresh += 1
        if fresh == FRESH:
            train()
    if fresh:
        train()
    kind, _ = link.ask(d.frame(d.DONE))
    if kind != d.BYE:
        raise ValueError(f"an answer of kind {kind} where a farewell was expected")
    print(f"worker {rendezvous.index} has seen {len(labels)} images", flush=True)


if __name__ == "__main__":
    main()
