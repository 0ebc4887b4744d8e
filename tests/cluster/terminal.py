# SPDX-License-Identifier: Apache-2.0
"""primusctl on a terminal, as a person has it."""
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time


class Terminal:
    """primusctl on a terminal of ours."""

    def __init__(self, cluster, *arguments, node="n1", rows=40, columns=132):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        # A session of its own with that terminal, so that a change of its size is told.
        self.process = subprocess.Popen(cluster.argv(node, "env", "TERM=xterm", "primusctl", *arguments, user="ml"), stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, pattern, timeout=15):
        end = time.monotonic() + timeout
        while not (found := re.search(pattern.encode(), self.seen)):
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], f"no {pattern!r} in {self.seen!r}"
            self.seen += os.read(self.master, 65536)
        self.seen = self.seen[found.end():]
        return found

    def end(self, timeout=15):
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self.seen += os.read(self.master, 65536)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        return self.process.returncode

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
