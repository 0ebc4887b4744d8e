# SPDX-License-Identifier: Apache-2.0
"""Trainers that import primus, run by tests/python/fake-executor: the executor's end alone, without a cluster."""
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    parser.addoption("--build", default="build", help="the build directory")
    parser.addoption("--unsanitized", default=None, help="a build directory without sanitizers, for trainers that load torch: "
                     "AddressSanitizer's allocator may stand still in what torch's threads fork")


@pytest.fixture(scope="session")
def build(request):
    return (TOP / request.config.getoption("--build")).resolve()


@pytest.fixture(scope="module")
def environment(request, build):
    plain = request.config.getoption("--unsanitized")
    trainers = (TOP / plain).resolve() if plain and getattr(request.module, "LOADS_TORCH", False) else build
    library = trainers / "lib/primus/libprimus.so.1"
    assert library.exists(), library
    e = {k: v for k, v in os.environ.items() if not k.startswith("PRIMUS_")}
    e.update(PRIMUS_LIBRARY=str(library), PYTHONPATH=str(TOP / "lib/primus/python"), PYTHONDONTWRITEBYTECODE="1")
    # A library with the sanitizer wants its runtime loaded first; python itself leaks by its rules.
    needed = subprocess.run(["ldd", library], capture_output=True, text=True).stdout
    runtimes = [line.split()[2] for line in needed.splitlines() if "libasan" in line or "libubsan" in line]
    if runtimes:
        e.update(LD_PRELOAD=":".join(runtimes), ASAN_OPTIONS="detect_leaks=0")
    return e


class Outcome:
    def __init__(self, process, log):
        self.status, self.output, self.error = process.returncode, process.stdout, process.stderr
        self.log = log.read_text().splitlines() if log.exists() else []

    def lines(self, word):
        return [line for line in self.log if line.startswith(word + " ")]


@pytest.fixture
def run(build, environment, tmp_path):
    """run(source, files, mode=..., ack=..., format=..., task_size=...): the source of a trainer, to its end."""

    def run(source, files, mode="ring", ack="release", format="text", task_size=0, arguments=(), status=0):
        script, log = tmp_path / "trainer.py", tmp_path / "log"
        script.write_text(textwrap.dedent(source))
        # the trainer alone gets the sanitizer's runtime
        command = [build / "tests/python/fake-executor", mode, ack, format, str(task_size), log, *files, "--",
                   "env", *(f"{k}={v}" for k, v in environment.items() if k in ("LD_PRELOAD", "ASAN_OPTIONS")),
                   sys.executable, script, *arguments]
        process = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=100, cwd=tmp_path,
                                 env={k: v for k, v in environment.items() if k != "LD_PRELOAD"})
        outcome = Outcome(process, log)
        assert outcome.status == status, f"status {outcome.status}\n{outcome.output}\n{outcome.error}"
        return outcome

    return run


@pytest.fixture
def text_files(tmp_path):
    """Three files of lines; the last line lacks its newline."""
    files = []
    for k in range(3):
        lines = [f"file {k} line {i} " + "x" * (i % 90) for i in range(3000)]
        path = tmp_path / f"{k}.txt"
        path.write_text("\n".join(lines) + ("\n" if k < 2 else ""))
        files.append(path)
    return files


@pytest.fixture
def at_once(monkeypatch):
    """An actor that has died soon after it was made is made again as soon as others."""
    monkeypatch.setattr("primus.actors._life.SOON_SECONDS", 0)
