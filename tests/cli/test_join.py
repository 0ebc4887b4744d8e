# SPDX-License-Identifier: Apache-2.0
"""primus-join's own arguments, and credentials that it cannot use: said in one line, and nothing is written."""
import os
import subprocess

import pytest

SECRET = "primus1.sesame"


@pytest.fixture
def join(programs):
    def run(*arguments):
        return subprocess.run([os.path.join(programs, "..", "join", "primus-join"), *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, env={"PATH": os.environ["PATH"]})
    return run


@pytest.mark.parametrize("arguments", [
    (), ("n1", "n2"), ("--local", "n1"), ("--check", "n1"), ("--credential", "/dev/null", "n1"), ("--credential", "/dev/null", "--local"),
    ("--credential", "/dev/null", "--check"), ("--credential", "/dev/null", "--name", "x"), ("--credential", "/dev/null", "--token-file", "/dev/null"),
    ("--credential",), ("--nothing",)])
def test_usage(join, arguments):
    done = join(*arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr


def test_help(join):
    done = join("--help")
    assert done.returncode == 0 and "--credential FILE" in done.stdout and done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.mark.parametrize("text, why", [
    (b"", "three words"), (b"n1 x", "three words"), (b"n1 x " + SECRET.encode() + b" y\n", "three words"), (b"n1:x x " + SECRET.encode(), "HOST[:PORT]"),
    (b"n1 X " + SECRET.encode(), "a node's name"), (b"n1 x " + SECRET.encode(), "no token"), (b"n1 x\0y " + SECRET.encode(), "no text"),
    (b"n1 x " + SECRET.encode() + b" " * 2000, "cannot read")])
def test_credentials_that_are_none(join, tmp_path, text, why):
    """Status 78: primus-join.service does not try that again. What is in the file may be a secret."""
    file = tmp_path / "primus.join"
    file.write_bytes(text)
    done = join("--credential", file)
    assert done.returncode == 78 and done.stdout == ""
    assert why in done.stderr and len(done.stderr.splitlines()) == 1 and "sesame" not in done.stderr


def test_no_credential(join, tmp_path):
    done = join("--credential", tmp_path / "none")
    assert done.returncode == 78 and "No such file" in done.stderr
