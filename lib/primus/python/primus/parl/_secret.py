# SPDX-License-Identifier: Apache-2.0
"""The secret that all of a cluster of xparl have: masters, workers and clients of one user. PARL has none, so it is found without being named."""
import contextlib
import os
import pathlib
import secrets
import tempfile

from .. import _state

SIZE = 32


def _path():
    """XPARL_SECRET; that of the job this runs in; else one of this user, in the home directory, which is made when it is needed first."""
    if "XPARL_SECRET" in os.environ:
        return pathlib.Path(os.environ["XPARL_SECRET"]), False
    of_job = pathlib.Path(os.environ.get("PRIMUS_SECRETS_DIR", "/nonexistent"), "actors")
    if of_job.exists():
        return of_job, False
    return state() / "secret", True


def state():
    """A directory of this user alone."""
    return _state.directory("primus-xparl")


def _make(path):
    """Whole or not at all, and never over another one."""
    fd, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(fd, "wb") as file:
        file.write(secrets.token_bytes(SIZE))
    with contextlib.suppress(FileExistsError):
        os.link(name, path)
    os.unlink(name)


def secret():
    """Bytes. PermissionError: others could have read it."""
    path, ours = _path()
    if ours and not path.exists():
        _make(path)
    found = path.stat()
    if ours and (found.st_uid != os.geteuid() or found.st_mode & 0o077):
        raise PermissionError(f"{path}: others can read it, or it is another user's: remove it, or chmod 600")
    return path.read_bytes()
