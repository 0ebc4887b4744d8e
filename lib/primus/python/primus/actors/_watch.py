# SPDX-License-Identifier: Apache-2.0
"""A thread that reads for connections where somebody is to be told, and nobody waits; and that hears the zygote."""
import select
import threading
import time


class Watcher:
    def __init__(self, control, hear):
        """hear(): called in the thread when control is readable; False: it is over."""
        self._poll = select.epoll()
        self._connections = {}  # by descriptor
        self._lock = threading.RLock()  # whose handle goes in the middle of it comes here again
        self._control, self._hear = control, hear
        self._poll.register(control, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="primus-actors", daemon=True)
        self._thread.start()

    def look_at(self, connection):
        """The next time that there is something to read. As often as it likes."""
        fd = connection.socket.fileno()
        if fd < 0:
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
                with self._lock:
                    connection = self._connections.get(fd)
                if connection is not None:
                    connection.look()

    def join(self):
        if threading.current_thread() is not self._thread:
            self._thread.join()

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
