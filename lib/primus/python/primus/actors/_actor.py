# SPDX-License-Identifier: Apache-2.0
"""An actor's process: hears calls in their order, and answers. Of a class without anything special one call runs at a time, in the main
thread; with concurrency= in so many threads (_threads.py); one that has async methods runs them as tasks of a loop (_tasks.py)."""
import collections
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
import types

from . import _asker, _ship, _travel, _wire

FLUSH = 1 << 16  # bytes of answers that are kept back while there is more to do
CO_ASYNC = 0x80 | 0x200  # inspect.CO_COROUTINE and CO_ASYNC_GENERATOR; that takes long to import
BESIDE_MS = 100
LOOK_SECONDS = 0.001  # behind a call that took so long, what has come meanwhile is looked at before the next one: it may be cancelled


def told(error):
    """(pickle of the exception, its traceback as text)"""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        body = pickle.dumps(error, 5)
        pickle.loads(body)  # many can be written and not read
    except Exception:
        body = pickle.dumps(RuntimeError(f"{type(error).__qualname__}: {error}"), 5)
    return body, text


class Answers:
    """What is said to the caller. Answers are kept back while there is more to do, so that many take one system call."""

    def __init__(self, s, arena):
        self._s, self.arena = s, arena
        self._lock = threading.Lock()
        self._waiting, self._size = [], 0

    def say(self, kind, id, value):
        try:
            body, buffers, handles = _travel.pickled(value)
            if handles:
                _asker.current.check(handles)
        except Exception as e:
            kind, (body, buffers, handles) = _wire.RAISED, _travel.pickled(told(_not_returned(e)))
        if handles:
            self.put(_wire.framed(_wire.LENT, id, _asker.numbers(handles)))
        self.put(_wire.framed(kind, id, body, buffers, self.arena))

    def put(self, parts):
        """A frame."""
        with self._lock:
            if len(parts) > 1:
                self._flush()
                _wire.send(self._s, parts)
                return
            self._waiting.append(parts[0])
            self._size += len(parts[0])
            if self._size >= FLUSH:
                self._flush()

    def flush(self):
        asker = _asker.current
        if asker is not None and asker.dropped:
            asker.say_dropped(self)
        if self.arena is not None:
            while self.arena.gone:
                self.put(_wire.framed(_wire.FREE, self.arena.gone.popleft(), b""))
        if self._waiting:
            with self._lock:
                self._flush()

    def _flush(self):
        if self._waiting:
            waiting, self._waiting, self._size = self._waiting, [], 0
            _wire.send(self._s, [b"".join(waiting)])


def _not_returned(error):
    from .errors import NotSent
    raised = NotSent(f"what the method returned cannot be sent: {error}")
    raised.__cause__ = error
    return raised


class Actor:
    def __init__(self, s, reader):
        self.reader, self.answers = reader, Answers(s, reader.arena)
        self.queue = collections.OrderedDict()  # by id: (body, buffers) of calls that have not begun
        self.object = self.broken = None
        self.saves, self.unsaved = 0, 0  # behind so many calls its state is said; how many there were since
        self.credit = {}  # by id, of generators that run: items that may be said
        self.leaving = False  # nothing more will come
        self.socket = s
        self.thread = threading.get_ident()  # which reads
        self.beside = None  # another one, which reads while that one waits for something else
        self.alone = False  # that one reads, and knew of no other one when it began
        self.reading, self.taking = threading.Lock(), threading.RLock()

    # ---- what has come

    def read(self, block):
        """False: nothing has come (and block is False), or nothing will any more."""
        self.alone = True  # first: who begins to read beside it looks at that
        if self.beside is None:
            came = self._read(block)
            self.alone = False
            return came
        self.alone = False
        with self.reading:
            return self._read(block)

    def _read(self, block):
        try:
            if self.leaving or not self.reader.read(block):
                return False
        except _wire.Ended:
            self.leaving = True
            _asker.current.end()
            return False
        self.take()
        return True

    def wait_for(self, asked, timeout):
        """Until another actor has answered, or the time is over. False: this thread does not read, but another one will."""
        if threading.get_ident() != self.thread:
            self.read_beside()
            return False
        self.answers.flush()
        end = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not asked.done() and not self.leaving and (end is None or time.monotonic() < end):
            if end is None or poll.poll(max(end - time.monotonic(), 0) * 1000):
                self.read(True)
        return True

    def read_beside(self):
        """The thread that reads is about to wait for something else than this, or is busy with a call: another one reads, for as long as
        something is asked."""
        self.answers.flush()
        if self.beside is None or not self.beside.is_alive():
            self.beside = threading.Thread(target=self._read_beside, name="actor-beside", daemon=True)
            self.beside.start()

    def _read_beside(self):
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while _asker.current.waits() and not self.leaving:
            if self.alone:
                time.sleep(LOOK_SECONDS)
            elif poll.poll(BESIDE_MS):
                with self.reading, self.taking:
                    self._read(False)
        self.read_beside_is_over()

    def read_beside_is_over(self):
        """Calls may have come."""

    def take(self):
        for kind, id, body, buffers in self.reader.frames():
            if kind == _wire.CALL:
                self.queue[id] = body, buffers
            elif kind == _wire.CANCEL:
                if self.queue.pop(id, None) is None and self.credit.pop(id, None) is None:
                    self.cancel(id)
            elif kind == _wire.MORE:
                if id in self.credit:
                    self.credit[id] += int(body)
            elif kind == _wire.FREED:
                self.reader.arena.give_back(id)
            elif kind in _wire.ANSWERED:
                _asker.current.hear(kind, id, body, buffers)
            else:
                raise _wire.Malformed("that is no frame for an actor")

    def cancel(self, id):
        """One that has begun."""

    def next(self):
        id, (body, buffers) = self.queue.popitem(last=False)
        return id, body, buffers

    # ---- what is done

    def construct(self):
        """The first frame, or the second one: what the object was, when it is made again, comes before it. Raises Ended."""
        kept = None
        while True:
            self.reader.read(True)
            for kind, id, body, buffers in self.reader.frames():
                if kind == _wire.RESTORE:
                    kept = body, buffers
                    continue
                if kind != _wire.CREATE:
                    raise _wire.Malformed("an actor begins with its class")
                concurrency = None
                try:
                    data, concurrency, self.saves, args, kwargs = pickle.loads(body)
                    made = _ship.taken(data)
                    args, kwargs = pickle.loads(args, buffers=buffers), pickle.loads(kwargs)
                    self.object = made(*args, **kwargs)
                    if kept:
                        self.object.__primus_restore__(pickle.loads(kept[0], buffers=kept[1]))
                except Exception as e:
                    self.broken = told(e)
                    self.answers.say(_wire.BROKEN, id, self.broken)
                else:
                    self.answers.say(_wire.DONE, id, None)
                return concurrency

    def answer(self, id, kind, value):
        """What has come of a call, behind what the object is by now. Where that cannot be had, this is what has come of it."""
        if self.saves:
            try:
                self._save()
            except Exception as e:
                kind, value = _wire.RAISED, told(e)
        self.answers.say(kind, id, value)

    def _save(self):
        with self.taking:
            self.unsaved += 1
            if self.unsaved < self.saves:
                return
            self.unsaved = 0
        self.answers.put(_wire.framed(_wire.STATE, 0, *_wire.pickled(self.object.__primus_save__())))

    def read_call(self, body, buffers):
        """(the bound method, args, kwargs)"""
        name, args, kwargs = pickle.loads(body, buffers=buffers)
        return getattr(self.object, name), args, kwargs

    def run_call(self, id, body, buffers):
        try:
            method, args, kwargs = self.read_call(body, buffers)
            value = method(*args, **kwargs)
            if isinstance(value, types.GeneratorType):
                value = self.stream(id, value)
        except Exception as e:
            self.answer(id, _wire.RAISED, told(e))
        else:
            self.answer(id, _wire.DONE, value)

    def stream(self, id, items):
        """What a generator yields, as it is taken; no other call runs meanwhile. Its return value."""
        self.begin_stream(id)
        try:
            while self.has_credit(id):
                try:
                    self.say_item(id, next(items))
                except StopIteration as e:
                    return e.value
            return None
        finally:
            self.credit.pop(id, None)
            items.close()

    def begin_stream(self, id):
        self.credit[id] = _wire.WINDOW
        self.answers.say(_wire.STREAM, id, None)

    def say_item(self, id, item):
        if self.use_credit(id):
            self.answers.say(_wire.ITEM, id, item)

    def use_credit(self, id):
        """False: nobody wants it any more."""
        with self.taking:
            if id not in self.credit:
                return False
            self.credit[id] -= 1
            return True

    def is_wanted(self, id):
        return id in self.credit and not self.leaving

    def has_credit(self, id):
        """Waits for it. False: nobody wants more."""
        while self.is_wanted(id) and self.credit[id] == 0:
            self.answers.flush()
            self.read(True)
        return self.is_wanted(id)

    def run_all(self):
        while self.queue:
            id, body, buffers = self.next()
            if self.broken:
                self.answers.say(_wire.BROKEN, id, self.broken)
                continue
            began = time.monotonic()
            self.run_call(id, body, buffers)
            if time.monotonic() - began > LOOK_SECONDS:
                self.answers.flush()
                while self.read(False):
                    pass

    def run(self):
        """Until nothing more comes, and all of it is done."""
        self.take()
        while self.queue or not self.leaving:
            self.run_all()
            self.answers.flush()
            self.read(True)
        self.answers.flush()


def _is_async(made):
    return any(f.__code__.co_flags & CO_ASYNC for f in (getattr(type(made), name, None) for name in dir(type(made))) if isinstance(f, types.FunctionType))


def _serve(s, reader):
    """The other kinds are imported by those that are of them: asyncio would make the zygote larger, and each fork slower."""
    actor = Actor(s, reader)
    _asker.begin(actor)
    concurrency = actor.construct()
    if actor.broken is None and _is_async(actor.object):
        from ._tasks import AsyncActor
        actor = AsyncActor(actor, concurrency or 1000)
    elif actor.broken is None and concurrency and concurrency > 1:
        from ._threads import ThreadedActor
        actor = ThreadedActor(actor, concurrency)
    _asker.current.actor = actor
    actor.run()


def run(s, reader):
    """s: a socket, or what is like one (_tls.py); reader: of its frames. Does not return: ends the process. What a method raises of SystemExit is its status."""
    status = 0
    try:
        _serve(s, reader)
    except _wire.Ended:
        pass
    except SystemExit as e:
        status = e
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        status = 1
    end(status)


def end(status):
    """The process's: an int, or a SystemExit. Does not return."""
    if isinstance(status, SystemExit):
        code = status.code
        status = code if isinstance(code, int) else 0 if code is None else 1
        if status and not isinstance(code, int):
            print(code, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(status & 0xFF)
