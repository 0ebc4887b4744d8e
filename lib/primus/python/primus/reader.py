# SPDX-License-Identifier: Apache-2.0
"""A reader of your own as the source of a job's data (customizedInput of primus-job(5)).

    python3 -m primus.reader [--format text|raw|fixed|tfrecord|csv] MODULE:CLASS [NAME=VALUE ...]

CLASS(path, NAME=VALUE, ...) is made once for each task, and what it yields when it is gone through are the records:
bytes, what is like bytes (bytearray, memoryview), or str, which is sent as UTF-8. path is the file that the task is of
($PRIMUS_FILE), None where the source has no pathPattern; values are str. A close() that it has is called at the end.

    class Lines:
        def __init__(self, path, encoding="utf-8"):
            self.file = open(path, encoding=encoding)
        def __iter__(self):
            return (line.rstrip("\\n") for line in self.file)

How records are told apart is the format's of the source: text and csv, a line each (a record must not have a newline);
tfrecord, TensorFlow's framing, for records of any bytes; raw and fixed, one behind the other. A task that is read again
passes over the records that were acknowledged: so the same path has to give the same records in the same order.

MODULE is looked for in the work directory first. What the reader prints goes to standard error. An exception is the
task's failure, with its last line as the reason; the exit status is 1 then, and 2 where the arguments are wrong.
"""
import argparse
import importlib
import os
import struct
import sys

from . import _lib

__all__ = ["main"]

FORMATS = ("text", "raw", "fixed", "tfrecord", "csv")
BUFFER = 1 << 20


def _line(record):
    if b"\n" in record:
        raise ValueError("a record has a newline: give the source tfrecordInput in place of lines")
    return (record, b"\n")


def _plain(record):
    return (record,)


def _framed():
    checksum = _lib.load().primus_tfrecord_checksum

    def frame(record):
        length = struct.pack("<Q", len(record))
        return (length, struct.pack("<I", checksum(length, len(length))), record, struct.pack("<I", checksum(record, len(record))))

    return frame


def _frame(form):
    """What makes parts to be written of a record."""
    if form == "tfrecord":
        return _framed()
    return _line if form in ("text", "csv") else _plain


def _parameter(text):
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _class(text):
    """The class that "module:Class" names; sys.exit() with a sentence where there is none."""
    module, colon, name = text.partition(":")
    if not module or not colon or not name:
        sys.exit(f"primus.reader: {text!r} is not MODULE:CLASS")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            sys.exit(f"primus.reader: {module} ({getattr(sys.modules[module], '__file__', 'built in')}) has no {name}")
    return found


def _bytes(record):
    if isinstance(record, str):
        return record.encode()
    if isinstance(record, (bytes, bytearray, memoryview)):
        return bytes(record)
    raise TypeError(f"a record is {type(record).__name__}, not bytes or str")


def _write(reader, frame, out):
    for record in reader:
        for part in frame(_bytes(record)):
            out.write(part)
    out.flush()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m primus.reader", description="A reader of your own as the source of a job's data.")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("reader", metavar="MODULE:CLASS")
    parser.add_argument("parameters", metavar="NAME=VALUE", nargs="*", type=_parameter)
    parsed = parser.parse_args(arguments)
    # Whatever prints, in Python or in C, must not print into the data.
    out = os.fdopen(os.dup(1), "wb", buffering=BUFFER)
    os.dup2(2, 1)
    reader = _class(parsed.reader)(os.environ.get("PRIMUS_FILE"), **dict(parsed.parameters))
    try:
        _write(reader, _frame(parsed.format), out)
    finally:
        close = getattr(reader, "close", None)
        if close:
            close()


if __name__ == "__main__":
    main()
