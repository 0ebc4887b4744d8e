# SPDX-License-Identifier: Apache-2.0
"""Classes whose objects are actors in test_actors.py, by their names in a module."""
import asyncio
import concurrent.futures
import contextlib
import os
import random
import signal
import sys
import threading
import time

from primus import actors


class Odd(Exception):
    """Can be pickled, and not be read."""

    def __init__(self, one, two):
        super().__init__(one)


class Plain:
    """Not decorated; and what has the decorator's names is its own."""
    concurrency, restarts, idempotent = "many", "some", None

    def __init__(self, n=0, fail=False):
        if fail:
            raise ValueError(f"no {n}")
        self.n, self.seen = n, []

    def add(self, k):
        self.n += k
        return self.n

    def note(self, k):
        self.seen.append(k)

    def noted(self):
        return self.seen

    def fail(self, error=None):
        if error:
            raise error
        return 1 / 0

    def odd(self):
        raise Odd(1, 2)

    def echo(self, value, *more, **named):
        return (value, more, named) if more or named else value

    def change(self, array):
        array[0] += 1
        return array

    def takes(self, array):
        return int(array[0])

    def lock(self):
        return threading.Lock()

    def sleep(self, seconds):
        time.sleep(seconds)
        return seconds

    def exit(self, status):
        sys.exit(status)

    def abort(self):
        os.kill(os.getpid(), signal.SIGABRT)

    def where(self):
        files = []
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # of this very listing
                files.append(os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
        return os.getpid(), os.getppid(), files, sys.stdin.read()

    def draw(self):
        import numpy
        return random.random(), numpy.random.random()

    def speak(self, text):
        print(text)
        print(text, file=sys.stderr)

    def count(self, n, bad=None):
        for i in range(n):
            if i == bad:
                raise KeyError(i)
            self.n = i
            yield i
        return "over"

    def forever(self):
        try:
            while True:
                self.n += 1
                yield self.n
        finally:
            self.seen.append("closed")

    def state(self):
        return self.n, self.seen

    def mark(self, path, word):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{word}\n".encode())
        os.close(fd)
        return word

    def threads(self):
        return len(os.listdir("/proc/self/task"))


Counter = actors.remote(Plain)


@actors.remote(concurrency=4)
class Threaded:
    def __init__(self):
        self.barrier = threading.Barrier(4)

    def meet(self):
        self.barrier.wait(10)
        return threading.current_thread().name

    def wait(self, seconds):
        time.sleep(seconds)

    def count(self, n):
        yield from range(n)

    def leave(self):
        sys.exit(4)


@actors.remote(restarts=3)
class Mindful:
    """Writes down what it is asked, in a file that outlives it."""

    def __init__(self, path):
        self.path = path

    def _note(self, word):
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(f"{word}\n")

    @actors.idempotent
    def again(self, word, deaths=0, array=None):
        """Its process is killed the first times that it is asked that."""
        self._note(word)
        with open(self.path, encoding="utf-8") as f:
            if f.read().splitlines().count(str(word)) <= deaths:
                os.kill(os.getpid(), signal.SIGKILL)
        return word, os.getpid(), None if array is None else float(array.sum())

    def once(self, word):
        self._note(word)
        time.sleep(60)

    @actors.idempotent
    def asleep(self):
        time.sleep(60)

    @actors.idempotent
    def forever(self):
        while True:
            yield 1


@actors.remote
class Async:
    def __init__(self):
        self.event, self.log = None, []

    async def wait(self):
        self.event = self.event or asyncio.Event()
        try:
            await self.event.wait()
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise
        return "told"

    async def tell(self):
        self.event = self.event or asyncio.Event()
        self.event.set()

    def plain(self):
        return self.log

    async def count(self, n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                yield i
        finally:
            self.log.append("closed")

    async def fail(self):
        raise KeyError("k")


@actors.remote(concurrency=2)
class Few:
    def __init__(self):
        self.now = self.most = 0

    async def work(self):
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        return self.most


def double(x):
    return 2 * x


def slowly(text):
    time.sleep(0.5)
    print(text)


def die(x):
    os._exit(3)


@actors.remote(restarts=1)
class Friend:
    """Has a handle of another actor, and asks it."""

    def __init__(self, other=None):
        self.others = [other]

    def know(self, other):
        self.others[0] = other

    def others_are(self, *others):
        self.others[1:] = others

    def known(self):
        return self.others[0]

    def forget(self):
        self.others[0] = None

    def ask(self, name, *args):
        return getattr(self.others[0], name)(*args).result()

    def ask_all(self, n, bad=None):
        """What a generator of the other's yields, and returns."""
        stream = self.others[0].count(n, bad).result()
        return list(stream), stream.value

    def ask_some(self, n):
        """Of one that never ends; what was made of it behind that."""
        stream = self.others[0].forever().result()
        some = [next(stream) for _ in range(n)]
        del stream
        return some

    def ask_by_turns(self, n):
        """A stream, and calls of another actor between its items."""
        stream = self.others[0].count(n).result()
        return [(item, self.others[1].add(1).result()) for item in stream]

    def ask_within(self, seconds, name, *args):
        try:
            return getattr(self.others[0], name)(*args).result(seconds)
        except TimeoutError:
            return "later"

    def ask_many(self, n, way):
        futures = [self.others[0].add(1) for _ in range(n)]
        if way == "wait":
            concurrent.futures.wait(futures)
        elif way == "as_completed":
            list(concurrent.futures.as_completed(futures))
        elif way == "thread":
            one = threading.Thread(target=lambda: [f.result() for f in futures])
            one.start()
            one.join()
        return [f.result() for f in futures]

    def tell(self, other):
        """Gives away what it has."""
        return other.know(self.others[0]).result()

    def find(self, name):
        return actors.get(name)

    def find_or_make(self, name, made, *args):
        return actors.get_or_create(name, made, *args)

    def kill(self):
        actors.kill(self.others[0])

    def pid(self):
        return os.getpid()

    @actors.idempotent
    def sleepily(self, path, seconds):
        with open(path, "a", encoding="ascii") as file:
            file.write(".")
        time.sleep(seconds)
        return os.getpid()


@actors.remote
class AsyncFriend:
    def __init__(self, other):
        self.other = other

    async def ask(self, n):
        return await asyncio.gather(*(self.other.add(1) for _ in range(n)))

    async def ask_all(self, n):
        stream = await self.other.count(n)
        return [item async for item in stream], stream.value

    async def ask_and_wait(self, n):
        return [self.other.add(1).result() for _ in range(n)]

    async def note(self, k):
        self.k = k
        return k


@actors.remote(concurrency=4)
class ThreadedFriend:
    def __init__(self, other):
        self.other = other

    def ask_all(self, n):
        return list(self.other.count(n).result())

    def ask(self, n):
        return [self.other.add(1).result() for _ in range(n)]


@actors.remote(restarts=float("inf"))
class Keeper:
    """Keeps what it is over restarts."""

    def __init__(self, start, wrong=False):
        self.n, self.array, self.wrong = start, bytearray(1 << 20), wrong

    def __primus_save__(self):
        if self.n == 13:
            raise ValueError("thirteen is not kept")
        return self.n, bytes(self.array[:1]) * (1 << 20)

    def __primus_restore__(self, state):
        if self.wrong:
            raise ValueError("not restored")
        self.n, array = state
        self.array[:] = array

    def add(self, k):
        self.n += k
        self.array[0] = self.n % 256
        return self.n

    def seen(self):
        return self.n, self.array[0], self.array[-1]

    def change_and_fail(self):
        self.n += 100
        return 1 / 0

    def die(self):
        os._exit(3)


class Seldom(Keeper.local):
    """Every third call."""


class Tasked(Keeper.local):
    async def add(self, k):
        self.n += k
        return self.n


@actors.remote
class Nesting:
    """Has a pool of its own."""

    def make(self):
        self.pool = actors.Pool(slots=1, private=True)
        self.inner = self.pool.create(Plain, 7)

    def call(self, *args):
        return self.inner.echo(*args).result()

    def give(self, to=None):
        return self.inner if to is None else to.echo(self.inner).result()

    def end(self):
        self.pool.close()


class Maker:
    """Yields actors that it has found by their names."""

    def make(self, n):
        for i in range(n):
            yield actors.get_or_create(f"made {i}", Plain, i)


class Taker:
    def __init__(self, maker):
        self.maker = maker

    def take(self, n):
        return [one.add(1).result() for one in self.maker.make(n).result()]
