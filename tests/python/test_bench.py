# SPDX-License-Identifier: Apache-2.0
"""tools/bench torch: that it measures, and that what came is what is in the files; no figure of it."""
import json
import os
import subprocess
import sys
import tempfile

import pytest

from conftest import TOP

LOADS_TORCH = True  # see conftest.py's --unsanitized, of which the programs come, too

pytest.importorskip("torch")


@pytest.mark.parametrize("words", (("text", "stdin"), ("fixed", "ring", "2", "batch"), ("tar", "descriptor", "0"), ("tar", "stdin"), ("npy", "2")))
def test_torch(request, build, environment, words):
    if "LD_PRELOAD" in environment:
        pytest.skip("a library with sanitizers is nothing to measure")
    build = TOP / (request.config.getoption("--unsanitized") or build)
    directory = tempfile.mkdtemp(prefix="pb", dir="/tmp")  # short, for a socket lies below it
    done = subprocess.run([sys.executable, TOP / "tools/bench", "torch", "--build", build, "--no-rebuild", "--directory", directory, "--data-rounds", "1",
                           "--torch-size", "0.01", "--torch-only", *words], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows and len(done.stderr.splitlines()) == len(rows) // 2
    for row in rows:
        assert row["bench"] == "torch" and set(words) & set(row["metric"].replace(",", "").split())
    assert all(row["ratio"] > 0 for row in rows if row["unit"] == "samples/s")
    os.rmdir(directory)  # nothing is left there
