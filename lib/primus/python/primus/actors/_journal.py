# SPDX-License-Identifier: Apache-2.0
"""What an actor prints, in the journal under its own name (SYSLOG_IDENTIFIER): primusctl logs --actor. Where an executor's output goes to
a file, all of it goes there."""
import contextlib
import os
import socket

STDOUT = "/run/systemd/journal/stdout"
INFO = 6
NAME_MAX = 256  # bytes; as much as can be asked for


def outputs(environment, descriptors=(1, 2)):
    """Those of them that systemd has connected with the journal (systemd.exec(5), JOURNAL_STREAM), and nobody has moved since."""
    found = []
    for fd in descriptors:
        with contextlib.suppress(OSError):  # it is closed
            of = os.fstat(fd)
            if environment.get("JOURNAL_STREAM") == f"{of.st_dev}:{of.st_ino}":
                found.append(fd)
    return found


def identifier(name):
    """name as one line of text that journalctl and primusctl take."""
    text = "".join(c if c.isprintable() else "?" for c in name)
    return text.encode("utf-8", "replace")[:NAME_MAX].decode("utf-8", "ignore")


def stream(name, path=STDOUT):
    """A descriptor whose lines are of this name and of this process's unit, for as long as this process lives, whoever writes them; None:
    journald takes none now. The header is journald's: name, unit (which only root can say), level, whether lines begin with one, and
    whether it goes to syslog, the kernel's log and the console as well."""
    with contextlib.ExitStack() as undo:
        s = undo.enter_context(socket.socket(socket.AF_UNIX))
        s.setblocking(False)  # one that is behind is not waited for
        try:
            s.connect(path)
            s.shutdown(socket.SHUT_RD)
            # The empty line is not shown; by it journald learns now whose this is.
            s.sendall(f"{identifier(name)}\n\n{INFO}\n0\n0\n0\n0\n\n".encode())
        except OSError:
            return None
        s.setblocking(True)
        undo.pop_all()
        return s.detach()
