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


def began(pid):
    """When a process began, in the kernel's ticks, so that another one of the same number is not taken for it; None: there is none."""
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19])
    except OSError:
        return None


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
    """[(pid, what)] of those that live."""
    found = []
    try:
        names = os.listdir(path(environment))
    except OSError:
        return found
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            then, _, what = os.readlink(path(environment) / name).partition(" ")
            if then == str(began(int(name))):
                found.append((int(name), what))
    return sorted(found)
