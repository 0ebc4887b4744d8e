# SPDX-License-Identifier: Apache-2.0
"""Readers of one's own: what they yield is what arrives, framed as the source says."""
import struct
import subprocess
import sys

import pytest

READERS = """
import os
class Lines:
    closed = None
    def __init__(self, path, suffix=""):
        self.path, self.suffix = path, suffix
        print("in Python"); os.system("echo in C")
    def __iter__(self):
        for line in open(self.path):
            yield line.rstrip("\\n") + self.suffix
    def close(self):
        print("closed")
class Bytes:
    def __init__(self, path): assert path is None
    def __iter__(self):
        return iter([b"a\\nb", bytearray(b""), memoryview(b"ccc"), "\\u00e4"])
class Inner:
    class Numbers(list):
        def __init__(self, path): super().__init__([b"1", 2])
def broken(path):
    yield b"one"
    raise ValueError("the second record is broken")
"""


@pytest.fixture
def reader(environment, tmp_path):
    (tmp_path / "readers.py").write_text(READERS.replace("\\\\", "\\"))
    (tmp_path / "data").write_text("x\ny\n")

    def run(*arguments, file="data"):
        e = dict(environment, **({"PRIMUS_FILE": str(tmp_path / file)} if file else {}))
        return subprocess.run([sys.executable, "-m", "primus.reader", *arguments], cwd=tmp_path, env=e, capture_output=True, timeout=60)
    return run


def test_lines(reader):
    done = reader("readers:Lines", "suffix= end=1")
    assert (done.returncode, done.stdout) == (0, b"x end=1\ny end=1\n"), done.stderr
    assert b"in Python" in done.stderr and b"in C" in done.stderr and b"closed" in done.stderr


def test_bytes(reader):
    assert reader("--format", "raw", "readers:Bytes", file=None).stdout == b"a\nbccc\xc3\xa4"
    done = reader("readers:Bytes", file=None)
    assert done.returncode == 1 and b"a record has a newline: give the source tfrecordInput" in done.stderr


def test_tfrecords(reader):
    done = reader("--format", "tfrecord", "readers:Bytes", file=None)
    assert done.returncode == 0, done.stderr
    records, data = [], done.stdout
    while data:
        length, = struct.unpack("<Q", data[:8])
        records.append(data[12:12 + length])
        data = data[16 + length:]
    assert records == [b"a\nb", b"", b"ccc", "ä".encode()]
    # The header of an empty record, as TensorFlow writes it.
    assert done.stdout[19:31] == bytes(8) + bytes.fromhex("29039807"), done.stdout.hex()


@pytest.mark.parametrize("arguments, status, text", [
    (("readers:broken",), 1, "the second record is broken"),
    (("readers:Inner.Numbers",), 1, "a record is int, not bytes or str"),
    (("readers:Nothing",), 1, "readers.py) has no Nothing"),
    (("readers",), 1, "'readers' is not MODULE:CLASS"),
    (("nowhere:X",), 1, "No module named 'nowhere'"),
    (("readers:Lines", "suffix"), 2, "'suffix' is not NAME=VALUE"),
    (("--format", "tar", "readers:Lines"), 2, "invalid choice"),
])
def test_trouble(reader, arguments, status, text):
    done = reader(*arguments)
    assert done.returncode == status and text in done.stderr.decode(), done.stderr
