# SPDX-License-Identifier: Apache-2.0
"""What a user keeps between programs."""
import os
import pathlib


def directory(name):
    """A directory of this user alone, made when it is needed first."""
    path = pathlib.Path(os.environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local/state", name)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
