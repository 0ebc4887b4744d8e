# SPDX-License-Identifier: Apache-2.0
"""Where actors run: a zygote on this host, or one behind a host's process on another (_frames.py). Either hears and says the same packets
of JSON (_zygote.py)."""
import array
import collections
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

from .._environment import finding
from . import _wire
from ._wire import PACKET_MAX
from .errors import ActorError


class Place:
    """A control, and what is to be said to it; nobody waits for that: it may be waiting for us to hear it.

    control   Packets, below, or Frames
    slots     int: so many actors at a time
    limits    bool: each actor has a control group of its own (_groups.py)
    want_room called with (control, whether it is to be told when control takes more)"""

    def __init__(self, control, name, slots, limits, want_room):
        self.control, self.name, self.slots, self.limits, self._want_room = control, name, slots, limits, want_room
        self.started = {}  # pid by id; None: not told yet
        self._unsaid = collections.deque()  # (text, descriptors that go with it)

    def has_room(self):
        return len(self.started) < self.slots

    def say(self, *given, **what):
        """In its order; whoever calls holds a lock. given: descriptors that go along, and are closed here then."""
        self._unsaid.append((json.dumps(what).encode(), given))
        self.say_on()

    def say_on(self):
        while self._unsaid:
            text, given = self._unsaid[0]
            try:
                self.control.send(text, given)
            except BlockingIOError:
                break
            except OSError:  # who hears it hears of that
                pass
            self._unsaid.popleft()
            for one in given:
                os.close(one)
        self._want_room(self.control, bool(self._unsaid))

    def has_unsaid(self):
        return bool(self._unsaid)


class Killed(ActorError):
    """A zygote was killed (SIGKILL) before it was ready: that says nothing of what it was to import."""


class Packets:
    """A zygote's process, which this one has started."""

    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _begin(theirs)
        self.pid = self._process.pid

    def fileno(self):
        return self.socket.fileno()

    def send(self, text, given=(), flags=socket.MSG_DONTWAIT):
        # Not send_fds(), which takes flags and forgets them.
        with_it = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else []
        self.socket.sendmsg([text], with_it, flags)

    def receive(self):
        """What has been said, as dicts. OSError: it is over."""
        try:
            data = self.socket.recv(PACKET_MAX, socket.MSG_DONTWAIT)
        except BlockingIOError:  # heard already by who waited for a death
            return []
        if not data:
            raise _wire.Ended("the actors' zygote has ended")
        return [json.loads(data)]

    def meet(self, settings, seconds):
        """None, or a sentence why it does not take them. Killed."""
        self.socket.send(json.dumps(settings).encode())
        self.socket.settimeout(seconds)
        try:
            said = json.loads(self.socket.recv(PACKET_MAX) or b"{}")
        except TimeoutError:
            said = {"refused": f"preload: it has not been imported within {seconds} s"}
        except ConnectionResetError:  # it has not read what it was told
            said = {}
        self.socket.settimeout(None)
        if said.get("ready"):
            return None
        self.socket.close()
        if not said and self._process.wait() == -signal.SIGKILL:
            raise Killed("the actors' zygote was killed before it was ready")
        self._process.kill()
        self._process.wait()
        return said.get("refused", "the actors' zygote has ended; what it said is on standard error")

    def shut(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._process.wait()
        self.socket.close()

    def forget(self):
        self.socket.close()


def _begin(control):
    """The zygote's process. It finds this very package, and its libraries start no threads of their own."""
    env = finding()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        env.setdefault(name, "1")
    return subprocess.Popen([sys.executable, "-m", "primus.actors._zygote"], stdin=control, env=env, start_new_session=True)
