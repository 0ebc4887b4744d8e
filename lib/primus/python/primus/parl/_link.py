# SPDX-License-Identifier: Apache-2.0
"""What master, workers and clients say to each other: packets of JSON over TLS, as hosts of a pool do (primus.actors._frames), heard in a
thread. A question carries a number ("ask"), and its answer does ("answer"); parts of a long one come before it ("part")."""
import concurrent.futures
import contextlib
import itertools
import json
import threading

from primus.actors import _wire, host
from primus.actors._reach import client_context

from ._secret import secret

ROOM_SECONDS = 5


def address_of(text):
    """(host, port) of HOST:PORT. AssertionError, as PARL has it."""
    name, colon, port = str(text).rpartition(":")
    assert colon and port.isdecimal() and ":" not in name.strip("[]").replace("::", ""), f"{text!r} is no address: HOST:PORT"
    return name.strip("[]"), int(port)


def dial(address):
    """Frames to the master there. ConnectionError: why not."""
    try:
        return host.connect([address_of(address)], secret(), client_context())[2]
    except OSError as e:
        raise ConnectionError(f"there is no master of xparl at {address} that has this user's secret: {e}") from None


class Link:
    """heard    called with each dict that is no answer, in the link's thread
    ended       called once, in that thread, when the other end is gone"""

    def __init__(self, frames, heard, ended=lambda: None):
        self.frames, self._heard, self._ended = frames, heard, ended
        frames.channel.wait_for_room(ROOM_SECONDS)
        self._lock = threading.Lock()
        self._asked, self._parts = {}, {}  # by number
        self._numbers = itertools.count(1)
        self._over = False
        self._thread = threading.Thread(target=self._run, name="xparl-link", daemon=True)

    def start(self):
        self._thread.start()
        return self

    def say(self, waits=False, /, **what):
        """waits: until there is room for it, some seconds. Who does not read is gone."""
        with self._lock:
            try:
                self.frames.send(json.dumps(what).encode(), flags=0 if waits else _wire.DONTWAIT)
            except OSError:  # heard of where it is read
                self.frames.shut()

    def ask(self, **what):
        """A Future of the answer: (a dict, [its parts]). ConnectionError: the other end is gone."""
        future = concurrent.futures.Future()
        with self._lock:
            future.number = next(self._numbers)
            if not self._over:
                self._asked[future.number], self._parts[future.number] = future, []
        if self._over:
            future.set_exception(ConnectionError("the master of xparl is gone"))
        self.say(ask=future.number, **what)
        return future

    def forget(self, future):
        """False: it has been answered."""
        with self._lock:
            self._parts.pop(future.number, None)
            return self._asked.pop(future.number, None) is not None

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                for said in self.frames.receive(True):
                    self._take(said)
        with self._lock:
            self._over = True
            asked, self._asked = self._asked, {}
        for future in asked.values():
            future.set_exception(ConnectionError("the master of xparl is gone"))
        self.frames.close()
        self._ended()

    def _take(self, said):
        if "part" in said:
            self._parts.get(said["part"], []).append(said)
        elif "answer" in said and said["answer"] in self._asked:
            with self._lock:
                future, parts = self._asked.pop(said["answer"]), self._parts.pop(said["answer"])
            future.set_result((said, parts))
        else:
            self._heard(said)

    def close(self):
        self.frames.shut()

    def forget_in_child(self):
        """Of a fork: the socket is the parent's."""
        self.frames.close()
