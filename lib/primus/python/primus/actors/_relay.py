# SPDX-License-Identifier: Apache-2.0
"""Between actors: what one asks of another comes through the pool's process, which reads neither the question nor the answer. That one
knows who has a handle of whom: the program, or an actor, to which it was lent.

In the thread that has read the question, which waits for nobody."""
import collections
import itertools
import struct
import threading

from . import _wire
from ._actor import told
from ._caller import Future
from .errors import ActorDied, ActorError

QUESTION = struct.Struct("=QII")  # the actor's number, how many numbers of handles follow, whether it is asked again of the next process
NUMBER = struct.Struct("=Q")
ANSWERS = {said: said_on for said_on, said in _wire.ANSWERED.items()}


class Relayed(Future):
    """A call of one actor by another. answer(kind, body, buffers) says what has come of it."""

    def __init__(self, connection, answer, handles_to):
        super().__init__(connection)
        self._answer, self.handles_to = answer, handles_to

    def forward(self, kind, body, buffers):
        self._answer(kind, body, buffers)
        super().set_result(None)

    def set_exception(self, error):
        self._answer(_wire.RAISED, *_wire.pickled(told(error)))
        super().set_result(None)

    def stream_of(self, connection, id):
        return _Items(connection, id, self._answer, self.handles_to)

    def set_result(self, items):
        """It is a generator."""
        self._answer(_wire.STREAM, items, ())
        super().set_result(None)


class _Items:
    """What a generator yields for another actor, which is handed on unread: in the place of a Stream, of its futures, and of each of them."""

    repeat = None

    def __init__(self, connection, id, answer, handles_to):
        self._connection, self._id, self._answer, self.handles_to = connection, id, answer, handles_to

    @property
    def futures(self):
        return self

    def __getitem__(self, at):
        return self

    def append(self, future):
        """There is one more to come."""

    def forward(self, kind, body, buffers):
        self._answer(kind, body, buffers)

    def set_exception(self, error):
        self._answer(_wire.RAISED, *_wire.pickled(told(error)))

    def take(self, digits):
        """So many were taken."""
        self._connection.push(_wire.MORE, self._id, digits)

    def leave(self):
        """Nobody wants more."""
        self._connection.push(_wire.CANCEL, self._id, b"")


class Relay:
    """name: the pool's. life_of(number): the Life of an actor, or None. wish(borrower, body, buffers): (kind, body, buffers) of what the pool
    answers to an actor. keep(id of a process, body, buffers): its object's state, over restarts."""

    def __init__(self, name, life_of, wish, keep):
        self.name, self._life_of, self._wish, self._keep = name, life_of, wish, keep
        self._ids = itertools.count(1 << 63)  # of questions to actors; the program's begin at 0
        self._lock = threading.RLock()
        self._streams = collections.defaultdict(dict)  # by who takes them (an id of a process), by its question: _Items
        self._lent = collections.defaultdict(lambda: collections.defaultdict(list))  # by who has it (an id of a process), by number: [(its life, what holds that)]

    # ---- who has a handle of whom

    def lend(self, borrower, lives):
        """borrower: the id of a process."""
        with self._lock:
            for life in lives:
                self._lent[borrower][life.number].append((life, life.hold()))

    def lives_of(self, handles):
        """ActorError: one is of another pool."""
        lives = [self._life_of(handle._actor[1]) if handle._actor[0] == self.name else None for handle in handles]
        if None in lives:
            raise ActorError(f"{handles[lives.index(None)]!r} is of another pool, or has ended")
        return lives

    def _lend_numbers(self, borrower, numbers):
        """numbers: as they are in a frame. ValueError, struct.error: those are none."""
        self.lend(borrower, [life for life in (self._life_of(n) for n, in NUMBER.iter_unpack(numbers)) if life is not None])

    def give_back(self, borrower, number):
        with self._lock:
            held = self._lent[borrower].get(number)
            life, token = held.pop() if held else (None, None)
        if life is not None:
            life.let_go(token)

    def forget(self, borrower):
        """That process is gone."""
        for items in self._streams.pop(borrower, {}).values():
            items.leave()
        with self._lock:
            held = [one for some in self._lent.pop(borrower, {}).values() for one in some]
        for life, token in held:
            life.let_go(token)

    # ---- what an actor says

    def hear(self, borrower, kind, id, body, buffers):
        """borrower: its Connection."""
        if kind == _wire.ASK:
            self._ask(borrower, id, body, buffers)
        elif kind == _wire.WISH:
            *_, wish = _question(body)
            self._answer(borrower, id, *self._wish(borrower, wish, buffers))
        elif kind == _wire.LENT:
            future = borrower.pending(id)
            if isinstance(future, (Relayed, _Items)):
                self._lend_numbers(future.handles_to, body)
        elif kind == _wire.TAKEN:
            items = self._streams.get(borrower.id, {}).get(id)
            if items is not None:
                items.take(b"%d" % int(body))
        elif kind == _wire.LEFT:
            items = self._streams.get(borrower.id, {}).pop(id, None)
            if items is not None:
                items.leave()
        elif kind == _wire.DROP:
            self.give_back(borrower.id, id)
        elif kind == _wire.STATE:
            self._keep(borrower.id, body, [memoryview(b) for b in buffers])

    def _answer(self, borrower, id, kind, body, buffers):
        if kind == _wire.STREAM:
            items, body = body, b""
            self._streams[borrower.id][id] = items
            if borrower.over is not None:  # that has forgotten it, or does it now
                self._streams.pop(borrower.id, None)
                items.leave()
        elif kind != _wire.ITEM and borrower.id in self._streams:
            self._streams[borrower.id].pop(id, None)
        borrower.push(ANSWERS[kind], id, body, buffers)

    def _ask(self, borrower, id, body, buffers):
        number, handles, repeats, call = _question(body)
        life = self._life_of(number)
        if life is None:
            self._answer(borrower, id, _wire.RAISED, *_wire.pickled(told(ActorDied("the actor has ended"))))
            return
        connection = life.connection
        self._lend_numbers(connection.id, handles)
        future = Relayed(connection, lambda *answer: self._answer(borrower, id, *answer), borrower.id)
        if repeats:
            future.repeat = life, call, [memoryview(b) for b in buffers]
        connection.relay(future, next(self._ids), call, buffers)


def _question(body):
    """(the actor's number, the numbers of handles as bytes, whether it is asked again, the pickle). ValueError, struct.error: it is none."""
    number, handles, repeats = QUESTION.unpack_from(body)
    at = QUESTION.size + handles * NUMBER.size
    if len(body) < at:
        raise ValueError("that is no question")
    return number, body[QUESTION.size:at], repeats, body[at:]


def refused(error):
    """(kind, body, buffers) of an error of the pool's own."""
    return (_wire.RAISED, *_wire.pickled(told(error if isinstance(error, ActorError) else ActorError(str(error)))))
