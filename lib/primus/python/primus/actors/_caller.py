# SPDX-License-Identifier: Apache-2.0
"""The caller's end of an actor: calls that are under way, and who reads their answers.

Whoever waits for an answer reads, and hands others theirs (leader and followers): no thread has to wake another one for a call whose
caller waits. Where nobody waits, but somebody is to be told (a callback, await, wait()), the pool's thread reads (_watch.py).

What is said is said in whole frames, under one lock; no answer is handed out while that is held, since who gets one may call again.
What was read is handed out in its order, by the thread that reads, before another one may: so nobody waits for what has come already.
That thread may come here again from a callback: it is the one that reads then, too."""
import collections
import concurrent.futures
import contextlib
import functools
import os
import pickle
import select
import socket
import struct
import threading
import time
import weakref

from . import _travel, _wire
from .errors import ActorDied, ActorError, NotConstructed, NotSent, RemoteTraceback

LOOK_SECONDS = 0.05  # so often who waits in the watcher's thread looks whether another thread has brought what it waits for
DEATH_SECONDS = 5  # so long the end of a connection waits for why
SENT, READING, ENDED = 0, 1, 2  # of what was sent: bits
HELD_MAX = 1 << 24  # bytes of calls to an actor that is not there yet
PENDING = concurrent.futures._base.PENDING
SEND_FLAGS = int(socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)


class Future(concurrent.futures.Future):
    """A call's result: a concurrent.futures.Future, which can be awaited, too.

    cancel()   True: nobody gets the result. A call that has not begun does not; of an async method the task is cancelled; another
               one that has begun goes on."""

    lent = ()  # lives of the actors whose handles go along

    def __init__(self, connection):
        super().__init__()
        self._connection, self.id = connection, None
        self._waiters = _Waiters(connection)
        self.repeat = None  # of an idempotent method: (its actor's Life, the frame's body, its buffers)

    def result(self, timeout=None):
        if self._state == PENDING:
            self._wait(timeout)
        return super().result(0 if timeout is not None else None)

    def exception(self, timeout=None):
        if self._state == PENDING:
            self._wait(timeout)
        return super().exception(0 if timeout is not None else None)

    def _wait(self, timeout):
        end = None if timeout is None else time.monotonic() + timeout
        while self._state == PENDING:
            connection = self._connection
            connection.wait_for(self, None if end is None else max(end - time.monotonic(), 0))
            if self.is_of(connection):
                return

    def is_of(self, connection):
        """Whether the answer comes from there; not so when that is over, and another one is asked again."""
        return self._connection is connection

    def goes_to(self, connection, id):
        self.id = id  # first: who cancels looks for it there
        self._connection = connection

    def done(self):
        if self._state == PENDING:
            self._connection.look()
        return super().done()

    def add_done_callback(self, fn):
        if self._state == PENDING:
            self._connection.watch()
        super().add_done_callback(fn)

    def cancel(self):
        if self.cancelled():
            return True
        cancelled = super().cancel()
        if cancelled:
            self._connection.cancel(self)
        return cancelled

    def __await__(self):
        import asyncio
        return asyncio.wrap_future(self).__await__()


    @staticmethod
    def stream_of(connection, id):
        """It is a generator: what its items go to, which is the result."""
        return Stream(connection, id)

    def forward(self, kind, body, buffers):
        """What has come of it."""
        raised, value = decoded(self._connection.what, kind, body, buffers)
        try:
            (self.set_exception if raised else self.set_result)(value)
        except concurrent.futures.InvalidStateError:  # it has just been cancelled
            self.set_running_or_notify_cancel()


class _Over(Exception):
    """Behind the last item of a stream; args: what the generator returned."""


class Stream:
    """What a generator of an actor's yields: an iterator, of async for as well. At most so many items are ahead of who takes them
    (WINDOW); the generator is closed when nobody has the stream any more. value: what it returned, behind the last one."""

    def __init__(self, connection, id):
        """connection: a Connection, or an Asker"""
        self._connection, self._id = connection, id
        self.futures = collections.deque([connection.future()])  # one for each item that has come, and one that has not
        self._taken = 0
        self.value = None
        self._close = weakref.finalize(self, connection.abandon, id)
        self._close.atexit = False

    def __iter__(self):
        return self

    def __next__(self):
        try:
            item = self.futures[0].result()
        except _Over as e:
            self.value, = e.args
            raise StopIteration from None
        self._take()
        return item

    def __aiter__(self):
        return self

    async def __anext__(self):
        import asyncio
        try:
            item = await asyncio.shield(asyncio.wrap_future(self.futures[0]))  # who is cancelled here has not taken it
        except _Over as e:
            self.value, = e.args
            raise StopAsyncIteration from None
        self._take()
        return item

    def _take(self):
        self.futures.popleft()
        self._taken += 1
        if self._taken % (_wire.WINDOW // 2) == 0:
            self._connection.tell(_wire.MORE, self._id, b"%d" % (_wire.WINDOW // 2))

    def close(self):
        """Nothing more is wanted."""
        self._close()


class _Waiters(list):
    """concurrent.futures.wait() and as_completed() put theirs in here: somebody has to read then."""

    def __init__(self, connection):
        super().__init__()
        self._connection = connection  # and not the future, which would then refer to itself

    def append(self, waiter):
        super().append(waiter)
        self._connection.watch()


class Connection:
    """To one actor, for any number of threads. id: the pool's for its process; what: its name for people; watcher: who reads when nobody
    waits; relay: what the actor asks of others (_relay.py).

    An actor of another host connects itself, when it has a slot: until then what is said is held back."""

    def __init__(self, id, what, watcher, relay):
        self.id, self.what, self._watcher, self._relay = id, what, watcher, relay
        self._pushed = collections.deque()  # parts of frames that nobody here waits for
        self.socket = self._reader = self._arena = None
        self._attached = threading.Event()
        self._held, self._held_size = [], 0  # parts of frames
        self._pending = {}  # by id: those that are under way
        self._streams = {}  # by id: the futures of its items
        self._abandoned = collections.deque()  # ids of streams that nobody has any more
        self._next = 0
        self._sending = threading.Lock()  # and what the next id is
        self._changed = threading.Condition()
        self._reading = None  # which thread does
        self._heard = collections.deque()  # frames that it has read, and not handed out yet
        self._followers = 0  # who wait for what that one hands out
        self._watched = False
        self._released = self._left = False  # nobody has a handle; and the actor has been told so
        self.over = None  # the exception that every call gets
        self._died, self._why = threading.Event(), None
        self._pid = os.getpid()

    def attach(self, s, reader, arena=None):
        """Once: this is its socket, or what is like one (_tls.py); and the memory that both share."""
        self.socket, self._reader, self._arena = s, reader, arena
        reader.arena = arena
        self._attached.set()
        with self._changed:
            self._changed.notify_all()
        if self._held or self._watched or self._released or self._pushed:
            self._watcher.later(self.go_on)

    def is_attached(self):
        return self._attached.is_set()

    def has_no_process(self):
        """Of the pool's: who is at the other end only asks, and its end is known by the connection."""
        self._why = ActorError(f"{self.what} has gone")
        self._died.set()

    def go_on(self):
        """In the watcher's thread, which waits for nobody: says what was held back, as far as the socket takes it, and reads what is there."""
        self._say_what_fits()
        self._leave_when_idle()
        self.look()
        if self._held:  # also where somebody else reads
            self._watcher.look_at(self)

    def _say_what_fits(self):
        """Of what was held back, and of what is to be said beside."""
        while (self._held or self._pushed) and self._sending.acquire(blocking=False):  # else who is saying something looks afterwards
            try:
                while self._pushed:
                    self._held.extend(self._pushed.popleft())
                ended = self._send_what_fits()
            finally:
                self._sending.release()
            if ended:
                self._lost()
            if ended or not self._pushed:
                break

    def has_held(self):
        return bool(self._held)

    def _send_what_fits(self):
        """The lock is held. True: there is nobody to hear it."""
        while self._held:
            try:
                self._held = _wire.rest_of(self._held, self.socket.sendmsg(self._held[:512], (), SEND_FLAGS))
            except BlockingIOError:
                return False
            except OSError:
                self._held = []
                return True
        return False

    def _say_held(self):
        """By who waits for an answer. The rest is the watcher's, if that is not who waits here, in a callback."""
        self._say_what_fits()
        if self._held and self._watcher.is_this_thread():
            with self._sending:
                outcome = self._send_held()
            self._after_sending(outcome)

    def _send_held(self):
        held, self._held = self._held, []
        return self._send(held) if held else SENT

    def _hold(self, parts):
        """The lock is held. True: it is kept for the actor, which has not connected yet. Much of it is not: who calls waits then."""
        if self._held_size > HELD_MAX:
            while not self._attached.wait(1) and self.over is None:
                pass
        if self._attached.is_set():
            return False
        # Arrays are the caller's, who may change them behind the call.
        self._held.extend(bytes(part) for part in parts)
        self._held_size += _wire.size_of(parts)
        return True

    # ---- calling

    def call(self, name, args, kwargs, repeats=None):
        """A Future. What cannot be pickled is its exception, NotSent. repeats: the actor's Life, when whoever comes after this one is to be
        asked again."""
        if self._pid != os.getpid():
            raise ActorError(f"{self.what} was made by another process, which this one was forked from")
        future = Future(self)
        try:
            body, buffers, handles = _travel.pickled((name, args, kwargs))
            if handles:
                self._lend(future, handles)
        except Exception as e:
            self._fail(future, NotSent(f"{self.what}: cannot be sent: {e}"), e)
            return future
        if repeats is not None:
            buffers = [memoryview(bytes(b)) for b in buffers]  # which the caller may write to behind the call
            future.repeat = repeats, body, buffers
        return self._start(future, _wire.CALL, body, buffers)

    def construct(self, body, buffers, lent=()):
        """The first call of all; nobody needs its Future. lent: lives of the actors whose handles go along."""
        self._relay.lend(self.id, lent)
        return self._start(Future(self), _wire.CREATE, body, buffers)

    def restore(self, body, buffers):
        """Before construct(), of an actor that has no process yet: what it was."""
        with self._sending:
            self._held.extend(_wire.framed(_wire.RESTORE, 0, body, buffers))

    def _lend(self, future, handles):
        future.lent = self._relay.lives_of(handles)
        self._relay.lend(self.id, future.lent)
        self.watch()  # it may ask something of them at any time

    def relay(self, future, id, body, buffers):
        """A call by another actor. Waits for nobody. id: none that a call of the program has."""
        future.id = id
        self._pending[id] = future
        self.push(_wire.CALL, id, body, buffers)
        if self.over is not None and self._pending.pop(id, None) is not None:
            self._give_up([future])

    def push(self, kind, id, body, buffers=()):
        """Said when there is room for it. Waits for nobody."""
        if self.over is None:
            self._pushed.append(_wire.framed(kind, id, body, [memoryview(b) for b in buffers]))
            self._watched = True
            if self._attached.is_set():
                self._watcher.later(self.go_on)

    def under_way(self):
        """How many calls have not been answered; streams that go on are such. The first one of all is the constructor's."""
        return len(self._pending) + len(self._streams) - (0 in self._pending)

    def pending(self, id):
        """What is to be told of that call, or of its items."""
        return self._pending.get(id) or self._streams.get(id)

    def future(self):
        """Of one that is to come."""
        return Future(self)

    def _start(self, future, kind, body, buffers):
        with self._sending:
            future.id = id = self._next
            self._next = id + 1
            self._pending[id] = future
            outcome = self._send(self._framed(kind, id, body, buffers)) if self.over is None else SENT
        self._after_sending(outcome)
        if self.over is not None and self._pending.pop(id, None) is not None:
            self._give_up([future])
        return future

    def _framed(self, kind, id, body, buffers):
        """A frame's parts, and before it which memory of the actor's is free."""
        parts = _wire.framed(kind, id, body, buffers, self._arena)
        while self._arena is not None and self._arena.gone:
            parts = _wire.framed(_wire.FREED, self._arena.gone.popleft(), b"") + parts
        return parts

    def repeat(self, futures):
        """Calls that another process has not answered, in their order. Waits for nobody."""
        with self._sending:
            for future in futures:
                self._relay.lend(self.id, future.lent)
                future.goes_to(self, self._next)
                self._pending[future.id] = future
                self._next += 1
                self._held.extend(_wire.framed(_wire.CALL, future.id, *future.repeat[1:]))
        self.watch()
        if self._attached.is_set():
            self._watcher.later(self.go_on)
        for future in futures:
            if future.cancelled():
                self.cancel(future)
        if self.over is not None:
            self._give_up([f for f in futures if self._pending.pop(f.id, None) is not None])

    @staticmethod
    def _fail(future, error, cause):
        error.__cause__ = cause
        future.set_exception(error)

    def _send(self, parts):
        """The lock is held. SENT; READING: so it is, and this thread has begun to read; ENDED. Who cannot send, since the actor waits
        for its answers to be read, reads them."""
        if not self._attached.is_set() and self._hold(parts):
            return self._send_held() if self._attached.is_set() else SENT
        left, outcome = _wire.size_of(parts), SENT
        if self._held:
            outcome = self._send_held()
        while left:
            try:
                sent = self.socket.sendmsg(parts[:512], (), SEND_FLAGS)
            except BlockingIOError:
                if self._until_writable():
                    outcome = READING
                continue
            except OSError:
                return outcome | ENDED
            left -= sent
            if left:
                parts = _wire.rest_of(parts, sent)
        return outcome

    def _until_writable(self):
        """Whether this thread has begun to read."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLOUT)
        events = poll.poll(1000)
        if not events or not events[0][1] & ~select.POLLOUT:
            return False
        begun = self._begin_reading()
        if self._reading == threading.get_ident():
            with contextlib.suppress(OSError):  # sending says so, too
                if self._reader.read(False):
                    self._heard.extend(self._reader.frames())
        return begun

    def _after_sending(self, outcome):
        """The lock is not held any more."""
        if outcome & READING:
            try:
                self._hand_out()
            finally:
                self._stop_reading()
        if outcome & ENDED:
            self._lost()
        if self._pushed:  # meanwhile
            self._watcher.later(self.go_on)

    def cancel(self, future):
        """One that has been cancelled here."""
        if self._pending.pop(future.id, None) is None:
            return  # its answer has just come
        future.set_running_or_notify_cancel()
        self.tell(_wire.CANCEL, future.id, b"")
        self._leave_when_idle()

    def tell(self, kind, id, body):
        """Of a call that is under way."""
        with self._sending:
            outcome = self._send(_wire.framed(kind, id, body)) if self.over is None and not self._left else SENT
        self._after_sending(outcome)

    def abandon(self, id):
        """Nobody has the stream any more. Waits for no lock, as release()."""
        if self._streams.pop(id, None) is not None and self._pid == os.getpid():
            self._abandoned.append(id)
            self._watcher.later(self.close_abandoned)

    def close_abandoned(self):
        while self._abandoned:
            self.tell(_wire.CANCEL, self._abandoned.popleft(), b"")
        self._leave_when_idle()

    def release(self):
        """Nobody has a handle any more: behind all that is under way, the actor ends. Waits for no lock: a handle may go anywhere."""
        if self.over is None and self._pid == os.getpid():
            self._released = True
            self._leave_when_idle()
            self.watch()  # that it is idle, and its end, are to be seen

    def _leave_when_idle(self):
        if self._released and not self._left and not self._pending and not self._streams and self._attached.is_set():
            self._left = True
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    # ---- hearing

    def wait_for(self, future, timeout):
        """Until it is done, or the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        if not self._attached.is_set() and not self._wait_attached(future, end):
            return
        if self._held:
            self._say_held()
        if self._reading == threading.get_ident():  # in a callback
            self._lead(future, end)
        elif self._follow(future, end):
            try:
                self._lead(future, end)
            finally:
                self._stop_reading()

    def _wait_attached(self, future, end):
        """False: the time is over, or the actor came to nothing."""
        def known():
            return self._attached.is_set() or not self._owes(future)

        if self._watcher.is_this_thread():  # in a callback: that a slot is free is to be heard meanwhile
            while not known() and (end is None or time.monotonic() < end):
                self._watcher.wait_for(self._attached, LOOK_SECONDS)
        else:
            with self._changed:
                self._changed.wait_for(known, None if end is None else end - time.monotonic())
        return self._attached.is_set() and self._owes(future)

    def _owes(self, future):
        return future._state == PENDING and future.is_of(self)

    def _lead(self, future, end):
        while self._owes(future):
            if self._heard:
                self._hear(*self._heard.popleft())
            elif end is None or self._readable(end - time.monotonic()):
                self._read(True)
            else:
                return

    def _follow(self, future, end):
        """Until this thread is the one that reads (True), the future is done, or the time is over."""
        with self._changed:
            self._followers += 1
            try:
                while self._reading is not None:
                    if not self._owes(future) or not self._changed.wait(None if end is None else max(end - time.monotonic(), 0)):
                        return False
            finally:
                self._followers -= 1
            self._reading = threading.get_ident()
            return True

    def _begin_reading(self):
        with self._changed:
            if self._reading is not None:
                return False
            self._reading = threading.get_ident()
            return True

    def _stop_reading(self):
        with self._changed:
            self._reading = None
            if self._followers:
                self._changed.notify_all()
        if self._watched or self._held:
            self._watcher.look_at(self)

    def _readable(self, seconds):
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return seconds > 0 and bool(poll.poll(seconds * 1000))

    def look(self):
        """Reads what is there, without waiting."""
        if self._attached.is_set() and self._begin_reading():
            try:
                while self.over is None and self._read(False):
                    pass
            finally:
                self._stop_reading()

    def _read(self, block):
        """Of who reads alone. False: nothing has come."""
        try:
            if not self._reader.read(block):
                return False
            self._heard.extend(self._reader.frames())
        except OSError:
            self._lost()
            return False
        self._hand_out()
        return True

    def _hand_out(self):
        while self._heard:
            self._hear(*self._heard.popleft())
        if self._followers:
            with self._changed:
                self._changed.notify_all()

    def _hear(self, kind, id, body, buffers):
        if kind == _wire.STREAM:
            self._begin_stream(id)
            return
        if kind >= _wire.ASK:
            try:
                if kind == _wire.FREE:
                    self._arena.give_back(id)
                else:
                    self._relay.hear(self, kind, id, body, buffers)
            except (struct.error, ValueError, AttributeError):
                self.end(ActorError(f"{self.what} has said what no actor of ours does"))
            return
        stream = self._streams.get(id) if kind == _wire.ITEM else self._streams.pop(id, None)
        future = stream[-1] if stream else self._pending.pop(id, None)
        if future is None:
            return
        if kind == _wire.ITEM:
            stream.append(self.future())
        future.repeat = None  # arguments may be large
        future.forward(_wire.OVER if stream and kind == _wire.DONE else kind, body, buffers)
        self._leave_when_idle()

    def _begin_stream(self, id):
        called = self._pending.pop(id, None)
        if called is None:
            return
        stream = called.stream_of(self, id)
        self._streams[id] = stream.futures
        try:
            called.set_result(stream)
        except concurrent.futures.InvalidStateError:  # it has just been cancelled
            called.set_running_or_notify_cancel()

    def _give_up(self, futures):
        """This one is over, and has not answered them."""
        repeated = []
        for future in futures:
            if future.repeat is not None and future.repeat[0].connection is not self:
                repeated.append(future)
            elif future.set_running_or_notify_cancel():
                future.set_exception(self.over)
        if repeated:
            repeated[0].repeat[0].connection.repeat(repeated)

    def watch(self):
        """From now on somebody reads, also when nobody waits."""
        if self.over is None:
            self._watched = True
            if self._attached.is_set():
                self._watcher.look_at(self)

    # ---- its end

    def died(self, error):
        """Told by the pool: this is why. What it has said before may still be on its way, from another host."""
        self._why = error
        self._died.set()
        if not self._attached.is_set():
            self.end(error)
            return
        self._watched = True
        self.look()
        if self.over is None:
            self._watcher.look_at(self)
            self._watcher.in_a_while(functools.partial(_end, weakref.ref(self), error))

    def _lost(self):
        """The connection is over; the pool says why."""
        self._watcher.wait_for(self._died, DEATH_SECONDS)
        self.end(self._why or ActorDied(f"{self.what} has ended, and nobody says why"))

    def end(self, error):
        """Every call gets that, but those that the actor's next process is asked again."""
        self.over = self.over or error
        self._watched = False
        unanswered = []
        while self._pending:  # who adds one meanwhile takes it away again
            with contextlib.suppress(KeyError):
                unanswered.append(self._pending.popitem()[1])
        self._give_up(sorted(unanswered, key=lambda future: future.id))
        while self._streams:
            with contextlib.suppress(KeyError, concurrent.futures.InvalidStateError):
                _, futures = self._streams.popitem()
                futures[-1].set_exception(self.over)
        with self._changed:
            self._changed.notify_all()
        self._pushed.clear()
        self._relay.forget(self.id)
        if self._attached.is_set():
            self._watcher.forget(self)
            with contextlib.suppress(OSError):  # who waits for more from a host that is gone, or from one that lies, waits no longer
                self.socket.shutdown(socket.SHUT_RDWR)


def _end(connection, error):
    """Of a weak reference: what is over is not kept for that."""
    if connection() is not None:
        connection().end(error)


def decoded(what, kind, body, buffers):
    """(whether that is an exception, the value or that), of an answer."""
    try:
        value = pickle.loads(body, buffers=buffers)
        if kind in (_wire.DONE, _wire.ITEM):
            return False, value
        if kind == _wire.OVER:
            return True, _Over(value)
        value = _raised(*value)
    except Exception as e:
        value = NotSent(f"{what}: its answer cannot be read here: {e}")
        value.__cause__ = e
        return True, value
    if kind == _wire.BROKEN:
        cause, value = value, NotConstructed(f"{what} could not be constructed: {value!r}")
        value.__cause__ = cause
    return True, value


def _raised(body, text):
    """What the method raised, as it was; where that cannot be had here, in words."""
    try:
        error = pickle.loads(body)
        if not isinstance(error, BaseException):
            raise TypeError
    except Exception:
        error = RuntimeError(text.strip().rsplit("\n", 1)[-1])
    error.__cause__ = RemoteTraceback(text)
    return error
