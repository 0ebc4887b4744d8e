# SPDX-License-Identifier: Apache-2.0
"""What a host's process says to journald of an actor's output."""
import os
import pathlib
import socket
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "lib/primus/python")]

from primus.actors import _journal  # noqa: E402


@pytest.fixture
def journald(tmp_path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "stdout"))
        s.listen(1)
        s.settimeout(5)
        yield s, str(tmp_path / "stdout")


def test_header_and_lines(journald):
    """Name, no unit, level, four times no; the empty line, and what is printed."""
    server, path = journald
    fd = _journal.stream("Counter 3", path)
    os.write(fd, b"hello\n")
    os.close(fd)
    heard, _ = server.accept()
    with heard:
        heard.settimeout(5)
        said = b"".join(iter(lambda: heard.recv(4096), b""))
    assert said == b"Counter 3\n\n6\n0\n0\n0\n0\n\nhello\n"


@pytest.mark.parametrize("name, identifier", [
    ("Counter 3", "Counter 3"), ("a\nprimus-1-worker-0.1.service\n7", "a?primus-1-worker-0.1.service?7"), ("\x1b[31m\x00\u2028x", "?[31m??x"),
    ("ü" * 200, "ü" * 128), ("x" * 255 + "ü", "x" * 255), ("\ud800", "?"), ("", "")])
def test_names(name, identifier):
    """One line, whatever a class is called; no character is cut."""
    assert _journal.identifier(name) == identifier


def test_nobody_is_waited_for(journald, tmp_path):
    """One that is behind, and none at all."""
    _, path = journald
    opened = [_journal.stream("x", path) for _ in range(4)]
    assert opened[0] is not None and opened[-1] is None
    for fd in opened:
        if fd is not None:
            os.close(fd)
    assert _journal.stream("x", str(tmp_path / "none")) is None


def test_where_output_goes(tmp_path):
    with open(tmp_path / "file", "w", encoding="ascii") as f:
        of = os.fstat(f.fileno())
        where = {"JOURNAL_STREAM": f"{of.st_dev}:{of.st_ino}"}
        read, write = os.pipe()
        os.close(write)
        assert _journal.outputs(where, (f.fileno(), read, write)) == [f.fileno()], "one that was moved, and one that is closed, are none"
        assert _journal.outputs({"JOURNAL_STREAM": f"{of.st_dev}:{of.st_ino + 1}"}, (f.fileno(),)) == _journal.outputs({}, (f.fileno(),)) == []
        os.close(read)
