# SPDX-License-Identifier: Apache-2.0
"""A thread that reads for connections where somebody is to be told, and nobody waits; and that hears the zygote."""
import collections
import contextlib
import os
import select
import threading
import time
import traceback

from .errors import ActorError


class Watcher:
    def __init__(self, control, hear):
        """hear(): called in the thread when control is readable; False: it is over."""
        self._poll = select.epoll()
        self._connections = {}  # by descriptor
        self._lock = threading.RLock()  # whose handle goes in the middle of it comes here again
        self._control, self._hear = control, hear
        self._poll.register(control, select.EPOLLIN)
        self._room_wanted = False
        self._later = collections.deque()
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._woken, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="primus-actors", daemon=True)
        self._thread.start()

    def want_room(self, wanted):
        """Whether hear() is to be called as well when control takes more."""
        if wanted != self._room_wanted and not self._poll.closed:
            self._room_wanted = wanted
            with contextlib.suppress(OSError):
                self._poll.modify(self._control, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def look_at(self, connection):
        """The next time that there is something to read. As often as it likes."""
        fd = connection.socket.fileno()
        if fd < 0 or self._poll.closed:
            return
        events = select.EPOLLIN | select.EPOLLONESHOT
        with self._lock:
            known = fd in self._connections
            self._connections[fd] = connection
            try:
                if known:
                    self._poll.modify(fd, events)
                else:
                    self._poll.register(fd, events)
            except (FileNotFoundError, FileExistsError):
                self._again(fd, events)

    def _again(self, fd, events):
        """A descriptor of that number was closed meanwhile."""
        try:
            self._poll.register(fd, events)
        except FileExistsError:
            self._poll.modify(fd, events)

    def forget(self, connection):
        fd = connection.socket.fileno()
        with self._lock:
            if self._connections.pop(fd, None) is not None:
                try:
                    self._poll.unregister(fd)
                except (FileNotFoundError, ValueError, OSError):
                    pass

    def _run(self):
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._control.fileno():
                    if not self._hear():
                        return
                    continue
                if fd == self._woken:
                    os.read(self._woken, 4096)
                    while self._later:
                        self._later.popleft()()
                    continue
                with self._lock:
                    connection = self._connections.get(fd)
                if connection is not None:
                    self._look(connection)

    @staticmethod
    def _look(connection):
        """Whatever one of them comes to, the others are read on."""
        try:
            connection.look()
        except Exception as e:
            traceback.print_exc()
            connection.end(ActorError(f"{connection.what}: its answers cannot be heard: {e!r}"))

    def later(self, do):
        """do() in the thread. Waits for no lock."""
        self._later.append(do)
        with contextlib.suppress(OSError):
            os.write(self._wake, b".")

    def join(self):
        """When what it hears is over."""
        if threading.current_thread() is self._thread:
            return
        self._thread.join()
        with self._lock:
            for fd in (self._woken, self._wake):
                if fd >= 0:
                    os.close(fd)
            self._woken = self._wake = -1
            self._poll.close()

    def wait_for(self, told, seconds):
        """Until something that the zygote says has set an event."""
        if threading.current_thread() is not self._thread:
            told.wait(seconds)
            return
        poll, end = select.poll(), time.monotonic() + seconds
        poll.register(self._control, select.POLLIN)
        while not told.is_set() and (left := end - time.monotonic()) > 0:
            if poll.poll(left * 1000) and not self._hear():
                return
