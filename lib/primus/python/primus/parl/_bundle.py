# SPDX-License-Identifier: Apache-2.0
"""The files that go along with an object: what connect() was told, and the scripts beside the main one. Read once, when it connects."""
import contextlib
import fcntl
import glob
import os
import pathlib
import re
import shutil
import sys
import tempfile

PREFIX = "primus-parl-"

# Names may begin with ../ (PARL writes outside of its directory then); so deep lies the directory within one of its own.
DEEP = ("a", "b", "c")


def _within(name):
    """ValueError: it would lie outside."""
    path = os.path.normpath(os.path.join(*DEEP, name))
    if os.path.isabs(name) or path.split(os.sep)[0] == os.pardir:
        raise ValueError(f"{name}: a file that goes along lies at most {len(DEEP)} directories above the one it is distributed from")
    return path


def _directory(top):
    """(its files, its directories without any)"""
    files, empty = [], []
    for path, directories, names in os.walk(top):
        files += [os.path.join(path, name) for name in names]
        if not directories and not names:
            empty.append(path)
    return files, empty


def _beside_main():
    script = getattr(sys.modules["__main__"], "__file__", None) and sys.argv[0]
    folder = os.path.dirname(script) if script else "."
    return [(entry.name, entry.path) for entry in os.scandir(folder or ".") if entry.name.endswith(".py") and entry.is_file()]


def read(patterns):
    """({name: bytes}, [directories without files]). ValueError: nothing is by that name; AssertionError: it is an absolute one."""
    assert isinstance(patterns, (list, tuple)), "distributed_files is a list of names"
    found, empty = dict(_beside_main()), []
    for pattern in patterns:
        matches = glob.glob(pattern)
        if not matches:
            raise ValueError(f"distributed_files: there is no file by the name of {pattern!r}")
        for name in matches:
            assert not os.path.isabs(name), f"distributed_files: {name}: absolute names are not for other hosts"
            files, without = _directory(name) if os.path.isdir(name) else ([name], [])
            found.update((file, file) for file in files)
            empty += without
    for name in (*found, *empty):
        _within(name)
    return {name: pathlib.Path(path).read_bytes() for name, path in found.items()}, empty


def _locked(path):
    """A descriptor of that directory, which nobody else has locked, or None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # it is gone, or another user's
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def sweep():
    """Directories of processes that have ended: each of these holds a lock on its own for as long as it lives."""
    for entry in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if not re.fullmatch(f"{PREFIX}[0-9a-f]{{16}}", entry.name):  # somebody else's
            continue
        with contextlib.suppress(OSError):
            if entry.lstat().st_uid == os.geteuid() and (fd := _locked(entry)) is not None:
                shutil.rmtree(entry, ignore_errors=True)
                os.close(fd)


def _own_directory(job):
    """Nobody sees it by its name before it is locked."""
    made = tempfile.mkdtemp(prefix=f"new-{PREFIX}")
    _locked(made)  # for as long as this process lives
    top = pathlib.Path(tempfile.gettempdir(), PREFIX + job)
    os.rename(made, top)
    return top


def unpack(bundle, job):
    """Where the files are now: a directory of this job alone. ValueError: one would lie outside."""
    files, empty = bundle
    sweep()
    top = _own_directory(job)
    here = top.joinpath(*DEEP)
    here.mkdir(parents=True)
    for name in empty:
        (top / _within(name)).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = top / _within(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return here
