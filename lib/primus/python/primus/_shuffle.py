# SPDX-License-Identifier: Apache-2.0
"""Records of several tasks in one buffer, in random order: for data that LockstepDataset cannot read by number (compressed, remote,
commands, streams). Each open task is a connection of its own, and the buffer holds one block of each.

Invariant: a block's end is told (input.ack release) only by asking for the next one, and that is asked for when the last of its records has
been delivered and another record is wanted. So nothing that is in the buffer counts as processed."""
import itertools
import os
import queue
import random
import select
import threading
import time

from . import Feed

TASKS = 16  # open at once, unless told
CONNECTIONS_MAX = 60  # of all workers of an executor; it takes 64
BLOCK_FIRST = 32 << 10  # bytes, until it is known how long records are
BLOCK_LEAST, BLOCK_MOST = 1 << 10, 16 << 20
# Seconds that others wait for a connection's next block, so that as many tasks are mixed as were asked for. One that has nothing by then (none is
# left, or its source is slow) is waited for no more until it has come again.
PATIENCE_FIRST, PATIENCE = 2.0, 0.2


def check(n, tasks, ways=1):
    """How many connections it becomes."""
    if not isinstance(n, int) or n < 2:
        raise ValueError(f"shuffle={n!r}: the number of records to be mixed is expected, 2 at least")
    most = CONNECTIONS_MAX // max(1, ways)
    if tasks is None:
        return max(1, min(TASKS, most))
    if not isinstance(tasks, int) or tasks < 1 or tasks > most:
        raise ValueError(f"tasks={tasks!r}: 1 to {most} are possible, {CONNECTIONS_MAX} shared by {max(1, ways)} processes of the executor")
    return tasks


class _Source(threading.Thread):
    """One connection, and the block of it that is in the buffer. Its thread waits for data, so that nobody else does."""

    def __init__(self, feed, ready, stop, block_bytes):
        super().__init__(name="primus-shuffle", daemon=True)
        self.feed, self._ready, self._end, self._block_bytes = feed, ready, stop, block_bytes
        self.go = queue.SimpleQueue()
        self.items = self.block = None  # places in the block of those not delivered yet; all of the block

    def run(self):
        try:
            if self.feed is None:
                self.feed = Feed()
            while self._wait() and self.feed._next_block(self._block_bytes(self)):
                self.feed._split_block()
                self.block = list(self.feed._items)
                self.items = list(range(len(self.block)))
                if self.items:
                    self._ready.put((self, None))
                    if not self.go.get():
                        break
            self._close()
            self._ready.put((self, StopIteration))
        except BaseException as error:  # raised where the records are wanted
            self._close()
            self._ready.put((self, error))

    def _close(self):
        if self.feed is not None:
            self.feed.close()

    def _wait(self):
        """False: nobody wants more. What is read then is not waited for, mostly."""
        poll = select.poll()
        poll.register(self.feed.fileno(), select.POLLIN)
        poll.register(self._end, 0)  # its other end is closed
        return all(fd != self._end for fd, _ in poll.poll())


class Shuffled:
    """An iterator over records. n: about so many are mixed; tasks: of so many tasks at once; seed: of the picks."""

    def __init__(self, n, tasks=None, seed=None, ways=1):
        self._k = check(n, tasks, ways)
        self._n = n
        self._random = random.Random(seed)
        self.last = None  # the source of the latest record, and its place in the block
        first = Feed()
        if first.mode == "stdin":
            first.close()
            raise ValueError("shuffle= wants input.mode ring or descriptor: standard input is one task after another")
        if first.ack_mode not in ("release", "exit"):
            ack = first.ack_mode
            first.close()
            raise ValueError(f"shuffle= wants input.ack release or exit, and not {ack}: records come in another order than they lie in, and a "
                             "checkpoint says how far each task is; LockstepDataset has checkpoints of what is shuffled")
        self._sizes = [0, 0]  # bytes, records: of what has come so far
        self._ready = queue.SimpleQueue()
        self._end, self._stopping = os.pipe()
        self._sources = [_Source(first if i == 0 else None, self._ready, self._end, self._block_bytes) for i in range(self._k)]
        self._records = self._draw()

    def __iter__(self):
        return self._records

    def _block_bytes(self, source):
        """Bytes of a block that has its share of the records, as long as they were up to now."""
        if source.block:
            self._sizes[0] += source.feed._block.size
            self._sizes[1] += len(source.block)
        size, count = self._sizes
        if count == 0:
            return BLOCK_FIRST
        return max(BLOCK_LEAST, min(BLOCK_MOST, size * self._n // (count * self._k)))

    def _draw(self):
        ready, pick, active, left = self._ready, self._random.random, [], self._k
        empty, now, slack = None, time.monotonic, self._k // 8
        for source in self._sources:
            source.start()
        awaited = dict.fromkeys(self._sources, now() + PATIENCE_FIRST)
        try:
            while True:
                if empty is not None:  # another record is wanted, so those before it count
                    active.remove(empty)
                    empty.go.put(True)
                    awaited[empty] = now() + PATIENCE
                    empty = None
                while not active or len(awaited) > slack or not ready.empty():
                    if left == 0 and not active:
                        return
                    try:
                        source, what = ready.get(timeout=max(0, min(awaited.values()) - now()) if active and awaited else None)
                    except queue.Empty:
                        late = now()
                        awaited = {s: until for s, until in awaited.items() if until > late}
                        continue
                    awaited.pop(source, None)
                    if what is None:
                        active.append(source)
                    elif what is StopIteration:
                        left -= 1
                    else:
                        raise what
                source = active[int(pick() * len(active))]
                items = source.items
                at = int(pick() * len(items))
                number, items[at] = items[at], items[-1]
                items.pop()
                if not items:
                    empty = source
                self.last = source, number
                yield source.block[number]
        finally:
            self.close()

    def where(self):
        """Place of the latest record, as Feed.where()."""
        if self.last is None:
            return None
        source, number = self.last
        feed = source.feed
        feed._items = iter(source.block)
        next(itertools.islice(feed._items, number, None))
        return feed.where()

    def close(self):
        """What is in the buffer has not been processed, and comes again elsewhere."""
        if self._stopping is None:
            return
        os.close(self._stopping)  # which makes the other end readable
        self._stopping = None
        for source in self._sources:
            source.go.put(False)
        until = time.monotonic() + 1  # one that waits for data all the same ends with that, or with the program
        for source in self._sources:
            if source.is_alive():
                source.join(max(0, until - time.monotonic()))
        if not any(source.is_alive() for source in self._sources):
            os.close(self._end)

