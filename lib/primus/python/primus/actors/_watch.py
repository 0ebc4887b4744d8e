# SPDX-License-Identifier: Apache-2.0
"""A thread that reads for connections where somebody is to be told, and nobody waits; and that hears the zygotes."""
import collections
import contextlib
import os
import select
import threading
import time
import traceback

from .errors import ActorError

WHILE_SECONDS = 5


class Watcher:
    def __init__(self):
        self._poll = select.epoll()
        self._connections = {}  # by descriptor
        self._lock = threading.RLock()  # whose handle goes in the middle of it comes here again
        self._sources = {}  # by descriptor: (what hears it, whether that is to be told of room)
        self._finishing = False
        self._later = collections.deque()
        self._timed = collections.deque()  # (when, what), in their order
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll.register(self._woken, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="primus-actors", daemon=True)
        self._thread.start()

    def hear_from(self, source, hear):
        """hear(): called in the thread when the source is readable; False: it is over."""
        with self._lock:
            self._sources[source.fileno()] = hear, False
        self._poll.register(source, select.EPOLLIN)

    def want_room(self, source, wanted):
        """Whether hear() is to be called as well when the source takes more."""
        fd = source.fileno()
        with self._lock:
            hear, was = self._sources.get(fd, (None, False))
            if hear is not None and wanted != was and not self._poll.closed:
                self._sources[fd] = hear, wanted
                with contextlib.suppress(OSError):
                    self._poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if wanted else 0))

    def _hear(self, fd):
        """Of a source. False: it is over, and nobody hears it any more."""
        hear, _ = self._sources.get(fd, (None, False))
        try:
            if hear is None or hear():
                return hear is not None
        except Exception:  # whatever one of them comes to, the others are heard on
            traceback.print_exc()
        with self._lock:
            self._sources.pop(fd, None)
            with contextlib.suppress(OSError, ValueError):
                self._poll.unregister(fd)
        return False

    def look_at(self, connection):
        """The next time that there is something to read. As often as it likes."""
        fd = connection.socket.fileno()
        if fd < 0 or self._poll.closed:
            return
        events = select.EPOLLIN | select.EPOLLONESHOT | (select.EPOLLOUT if connection.has_held() else 0)
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
        while not self._finishing or self._sources:
            for fd, _ in self._poll.poll(self._until_next()):
                if fd in self._sources:
                    self._hear(fd)
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

    def _until_next(self):
        """Does what is due. Seconds until the next is, None: nothing is."""
        while self._timed:
            left = self._timed[0][0] - time.monotonic()
            if left > 0:
                return left
            self._timed.popleft()[1]()
        return None

    def in_a_while(self, do):
        """do() in the thread, after WHILE_SECONDS."""
        self._timed.append((time.monotonic() + WHILE_SECONDS, do))
        self.later(lambda: None)

    @staticmethod
    def _look(connection):
        """Whatever one of them comes to, the others are read on."""
        try:
            connection.go_on()
        except Exception as e:
            traceback.print_exc()
            connection.end(ActorError(f"{connection.what}: its answers cannot be heard: {e!r}"))

    def later(self, do):
        """do() in the thread. Waits for no lock."""
        self._later.append(do)
        with contextlib.suppress(OSError):
            os.write(self._wake, b".")

    def is_this_thread(self):
        return threading.current_thread() is self._thread

    def finish(self):
        """When all that it hears is over."""
        self._finishing = True
        self.later(lambda: None)
        if self.is_this_thread():
            return
        self._thread.join()
        with self._lock:
            for fd in (self._woken, self._wake):
                if fd >= 0:
                    os.close(fd)
            self._woken = self._wake = -1
            self._poll.close()

    def wait_for(self, told, seconds):
        """Until something that a zygote says has set an event."""
        if not self.is_this_thread():
            told.wait(seconds)
            return
        end = time.monotonic() + seconds
        while not told.is_set() and (left := end - time.monotonic()) > 0 and self._sources:
            poll = select.poll()
            for fd in list(self._sources):
                poll.register(fd, select.POLLIN)
            for fd, _ in poll.poll(left * 1000):
                self._hear(fd)
