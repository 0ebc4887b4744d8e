#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parameter server: holds the parameters, applies the workers' gradients as they come (asynchronous SGD), and, once
every worker said that it is done, measures the accuracy on the held-out images.

usage: ps.py HELDOUT

A worker may come late, go, and come again. The parameters and who is done are kept in a file of the working directory, so
that a parameter server that was restarted on its host goes on where it was."""
import asyncio
import json
import os
import sys
import time

import digits as d
import numpy as np

RATE = 0.02
IDLE_MAX = 120  # seconds without any worker before it gives up: more than the time in which a lost host is replaced
CHECKPOINT = "digits-ps.checkpoint"


class Server:
    def __init__(self, rendezvous):
        self.rendezvous = rendezvous
        self.params = d.initial(seed=1)
        self.done = set()
        self.step = self.images = self.connected = 0
        self.loss = None
        self.heard = time.monotonic()
        self.finished = asyncio.Event()
        self.identity = os.environ.get("PRIMUS_JOB_UID", "local")
        self.load()

    def load(self):
        try:
            with open(CHECKPOINT, "rb") as file:
                head = json.loads(file.readline(4096))
                if head["job"] != self.identity:
                    return
                self.params = d.floats(file.read(4 * d.SIZE + 1), d.SIZE).copy()
            self.done, self.step, self.images = set(head["done"]), head["step"], head["images"]
            print(f"going on at step {self.step}", flush=True)
        except FileNotFoundError:
            pass
        except (ValueError, KeyError) as error:
            print(f"{CHECKPOINT} is unusable ({error}), starting afresh", flush=True)
        if len(self.done) >= self.rendezvous.workers:
            self.finished.set()

    def save(self):
        head = {"job": self.identity, "done": sorted(self.done), "step": self.step, "images": self.images}
        with open(CHECKPOINT + ".new", "wb") as file:
            file.write(json.dumps(head).encode() + b"\n" + self.params.tobytes())
        os.replace(CHECKPOINT + ".new", CHECKPOINT)

    def take(self, index, kind, body):
        """One frame of a worker to the answer it gets."""
        if kind == d.PUSH:
            numbers = d.floats(body[:4], 1), d.floats(body[8:], d.SIZE)
            self.params -= RATE * numbers[1]
            self.step += 1
            self.images += int.from_bytes(body[4:8], "little")
            loss = float(numbers[0][0])
            self.loss = loss if self.loss is None else 0.98 * self.loss + 0.02 * loss
        elif kind == d.DONE:
            self.done.add(index)
            self.save()  # before the answer: a worker that got it never comes again
            print(f"worker {index} is done, {len(self.done)} of {self.rendezvous.workers}", flush=True)
            return d.frame(d.BYE)
        elif kind != d.PULL:
            raise ValueError(f"a frame of kind {kind} is not for me")
        return d.frame(d.PARAMS, self.params.tobytes())

    async def serve(self, reader, writer):
        name = "somebody"
        self.connected += 1
        try:
            kind, length = d.unpack_header(await asyncio.wait_for(reader.readexactly(d.HEADER.size), 10))
            if kind != d.HELLO or length != 4:
                raise ValueError("it did not say hello")
            index = int.from_bytes(await reader.readexactly(4), "little")
            if index >= self.rendezvous.workers:
                raise ValueError(f"there is no worker {index}")
            name = f"worker {index}"
            print(f"{name} is here", flush=True)
            while True:
                kind, length = d.unpack_header(await reader.readexactly(d.HEADER.size))
                answer = self.take(index, kind, await reader.readexactly(length))
                self.heard = time.monotonic()
                writer.write(answer)
                await writer.drain()
                if len(self.done) >= self.rendezvous.workers:
                    self.finished.set()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, asyncio.TimeoutError):
            pass
        except ValueError as error:
            print(f"{name} is sent away: {error}", flush=True)
        finally:
            self.connected -= 1
            writer.close()

    async def report(self):
        """A line twice a second while something happens, and the checkpoint behind it."""
        shown = -1
        while not self.finished.is_set():
            await asyncio.sleep(0.5)
            if self.step != shown and self.loss is not None:
                print(f"step {self.step}  loss {self.loss:.3f}  images {self.images}", flush=True)
                self.save()
                shown = self.step
            if self.connected == 0 and time.monotonic() - self.heard > IDLE_MAX:
                sys.exit(f"no worker spoke for {IDLE_MAX} s, {len(self.done)} of {self.rendezvous.workers} are done")

    async def run(self):
        server = await asyncio.start_server(self.serve, self.rendezvous.host, self.rendezvous.port)
        print(f"listening on port {self.rendezvous.port} for {self.rendezvous.workers} workers", flush=True)
        report = asyncio.create_task(self.report())
        finished = asyncio.create_task(self.finished.wait())
        if self.finished.is_set():
            await asyncio.sleep(3)  # restarted at the very end: a worker may not have had its farewell
        await asyncio.wait([report, finished], return_when=asyncio.FIRST_COMPLETED)
        if report.done():
            report.result()
        report.cancel()
        server.close()


def accuracy(params, path):
    with open(path, "rb") as file:
        images, labels = zip(*map(d.parse, file))
    _, odds = d.forward(params, np.stack(images))
    return (odds.argmax(axis=1) == np.array(labels)).mean()


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} HELDOUT")

    async def start():
        server = Server(d.Rendezvous())
        await server.run()
        return server

    server = asyncio.run(start())
    if server.loss is not None:
        print(f"step {server.step}  loss {server.loss:.3f}  images {server.images}")
    print(f"held-out accuracy {accuracy(server.params, sys.argv[1]):.3f}", flush=True)
    os.unlink(CHECKPOINT)


if __name__ == "__main__":
    main()
