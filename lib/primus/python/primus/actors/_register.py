# SPDX-License-Identifier: Apache-2.0
"""Which actors a host's process has, for who asks on that host (listing.py): a directory among its temporary files, in which a link by the
number of each actor's process names it. No link leads anywhere."""
import contextlib
import os
import pathlib
import re
import tempfile

NAME_MAX = 256


def path(environment):
    """Of this executor: others of the job on the host have the same directory for temporary files."""
    which = re.sub("[^A-Za-z0-9_.-]", "_", f"{environment.get('PRIMUS_ROLE', '')}-{environment.get('PRIMUS_INDEX', '')}")
    return pathlib.Path(tempfile.gettempdir(), f"primus-actors-{which}")


STATE, USER_TICKS, SYSTEM_TICKS, BEGAN, RESIDENT_PAGES = 0, 11, 12, 19, 21  # of status()


def status(pid):
    """What the kernel says of a process behind its name: /proc/PID/stat, from its state on; None: there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def began(pid):
    """When a process began, in the kernel's ticks, so that another one of the same number is not taken for it; None: there is none."""
    found = status(pid)
    return found and int(found[BEGAN])


class Register:
    """Of a host's process. That something cannot be written disturbs nobody."""

    def __init__(self, environment):
        self._path = path(environment)
        with contextlib.suppress(OSError):
            self._path.mkdir(mode=0o700, exist_ok=True)
            for left in self._path.iterdir():  # of a process before
                left.unlink()

    def add(self, pid, what):
        with contextlib.suppress(OSError):
            os.symlink(f"{began(pid)} {what[:NAME_MAX]}", self._path / str(pid))

    def remove(self, pid):
        with contextlib.suppress(OSError):
            os.unlink(self._path / str(pid))


def entries(environment):
    """[(pid, what, status())] of those that live."""
    found, top = [], path(environment)
    try:
        names = os.listdir(top)
    except OSError:
        return found
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            then, _, what = os.readlink(top / name).partition(" ")
            now = status(int(name))
            if now and then == now[BEGAN]:
                found.append((int(name), what, now))
    return sorted(found)
