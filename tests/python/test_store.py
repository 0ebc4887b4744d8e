# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of C (primus_store_open() and what follows it) and of Python are the same: either reads the other's, and ranks of both make one."""
import math
import pathlib
import subprocess
import sys
import textwrap

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "lib/primus/python"), str(TOP / "tests/kit")]

from c_store import CALLS  # noqa: E402
from primus import checkpoints  # noqa: E402
from saving import Feed, save  # noqa: E402

@pytest.fixture
def c(environment, tmp_path):
    """c(source, argument...): what a program prints that has the library's functions."""

    def run(source, *arguments):
        done = subprocess.run([sys.executable, "-c", CALLS + textwrap.dedent(source), *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_python_reads_it(c, tmp_path):
    c("""
        opened(sys.argv[1], world=1)
        saved(7, {"model": "m", "ü/a b": "n", "empty": ""}, b'{"epoch": [1, null]}', loss=0.1, bad=float("nan"), worse=float("inf"))
        lib.primus_store_close(store)
    """, tmp_path)
    found = checkpoints.Store(tmp_path).latest(verify=True)
    assert (found.step, found.metadata, found.data, found.world, found.metrics["loss"]) == (7, {"epoch": [1, None]}, None, 1, 0.1)
    assert math.isnan(found.metrics["bad"]) and math.isnan(found.metrics["worse"])
    assert (found.path / "ü" / "a b").read_text() == "n" and (found.path / "empty").read_bytes() == b""


def test_it_reads_pythons(c, tmp_path):
    kept = checkpoints.Store(tmp_path, keep=2)
    with kept.save(10**12 - 2, feed=Feed(7), metadata={"ü": 1.5}, loss=1e-3, bad=float("nan")) as path:
        (path / "ü").mkdir()
        (path / "ü" / "model").write_text("of Python")
    out = c("""
        opened(sys.argv[1], world=1)
        c, size = found(), c_size_t()
        data = lib.primus_saved_data(c, byref(size))
        print(lib.primus_saved_step(c), lib.primus_saved_metadata(c).decode(), ctypes.string_at(data, size.value), lib.primus_saved_metric(c, b"loss"), lib.primus_saved_metric(c, b"bad"))
        print(open(os.path.join(lib.primus_saved_path(c).decode(), "ü/model")).read())
        lib.primus_saved_free(c)
        saved(10**12 - 1, {"model": "of C"})
        lib.primus_store_close(store)
    """, tmp_path)
    assert out == f"{10**12 - 2} {{\"ü\":1.5}} b'at 7' 0.001 nan\nof Python\n"
    assert [found.step for found in kept.all(verify=True)] == [10**12 - 1, 10**12 - 2]


def test_ranks_of_both(c, tmp_path):
    of_python = checkpoints.Store(tmp_path, rank=1, world=2)
    save(of_python, 3, Feed(1))
    assert of_python.latest() is None
    c("""
        opened(sys.argv[1], rank=0, world=2)
        assert found() is None
        saved(3, {"model": "of C"}, loss=0.5)
        assert lib.primus_store_settle(store) == 1
        c = found()
        assert lib.primus_saved_step(c) == 3 and lib.primus_saved_path(c).endswith(b"/rank-0")
        lib.primus_saved_free(c)
        lib.primus_store_close(store)
    """, tmp_path)
    assert of_python.settle() and of_python.latest(verify=True).metrics == {"loss": 0.5}
