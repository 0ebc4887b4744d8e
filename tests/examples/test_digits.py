# SPDX-License-Identifier: Apache-2.0
"""examples/digits without Primus: the accuracy it promises, and workers and parameter server that go and come again."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
SHARDS = [path.read_bytes().splitlines(keepends=True) for path in sorted(EXAMPLE.glob("data/train-*.txt"))]
WORKERS = 3
STEPS = "20"


class Trial:
    def __init__(self, directory):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.directory, self.processes = directory, []

    def start(self, role, index, *command, **pipes):
        config = {"cluster": {"ps": [f"127.0.0.1:{self.port}"], "worker": ["-:1"] * WORKERS},
                  "task": {"type": role, "index": index}}
        process = subprocess.Popen([sys.executable, *map(str, command)], cwd=self.directory, stdin=subprocess.PIPE,
                                   env=dict(os.environ, TF_CONFIG=json.dumps(config)), **pipes)
        self.processes.append(process)
        return process

    def ps(self):
        return self.start("ps", 0, EXAMPLE / "ps.py", EXAMPLE / "heldout.txt", stdout=subprocess.PIPE, text=True)

    def worker(self, index):
        return self.start("worker", index, EXAMPLE / "worker.py", STEPS)

    def feed(self, worker, lines):
        """All of it and end-of-file: what a third of the data is does not fit the pipe, so this waits for the trainer."""
        worker.stdin.write(b"".join(lines))
        worker.stdin.close()

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass


@pytest.fixture
def trial(tmp_path):
    trial = Trial(tmp_path)
    yield trial
    trial.stop()


def share(index):
    return [line for shard in SHARDS[index::WORKERS] for line in shard]


def ended_well(trial, ps, workers, heard=""):
    output = heard + ps.communicate(timeout=150)[0]
    assert ps.returncode == 0, output
    assert all(worker.wait(timeout=60) == 0 for worker in workers)
    assert float(re.search(r"held-out accuracy (\d\.\d+)", output)[1]) >= 0.95, output
    assert re.search(r"step \d+  loss \d\.\d+  images \d+", output), output
    assert not list(trial.directory.iterdir())


def wait_for(ps, text):
    """What the parameter server printed up to the line with text."""
    heard = ""
    for line in ps.stdout:
        heard += line
        if text in line:
            return heard
    raise AssertionError(f"it ended without {text!r}:\n{heard}")


def test_data_is_split_without_overlap():
    train = [line for shard in SHARDS for line in shard]
    heldout = (EXAMPLE / "heldout.txt").read_bytes().splitlines(keepends=True)
    assert len(SHARDS) == 24 and len(train) + len(heldout) == 1797
    assert 0.15 < len(heldout) / 1797 < 0.25
    assert {line[:1] for line in heldout} == {b"%d" % label for label in range(10)}


def test_accuracy_when_workers_come_before_the_parameter_server(trial):
    workers = [trial.worker(index) for index in range(WORKERS)]
    ps = trial.ps()
    for index, worker in enumerate(workers):
        trial.feed(worker, share(index))
    ended_well(trial, ps, workers)


def test_a_killed_worker_comes_again(trial):
    ps = trial.ps()
    victim = trial.worker(0)
    victim.stdin.write(b"".join(share(0)[:200]))
    victim.stdin.flush()
    heard = wait_for(ps, "loss")
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    workers = [trial.worker(index) for index in range(WORKERS)]
    trial.feed(workers[0], share(0)[60:])  # as after a kill: from what had been acknowledged
    for index in range(1, WORKERS):
        trial.feed(workers[index], share(index))
    ended_well(trial, ps, workers, heard)


def test_a_killed_parameter_server_goes_on(trial):
    ps = trial.ps()
    workers = [trial.worker(index) for index in range(WORKERS)]
    trial.feed(workers[0], share(0))
    wait_for(ps, "worker 0 is done")
    ps.send_signal(signal.SIGKILL)
    ps.wait()
    ps = trial.ps()
    heard = wait_for(ps, "going on at step")
    for index in range(1, WORKERS):
        trial.feed(workers[index], share(index))
    ended_well(trial, ps, workers, heard)


def test_a_stranger_is_sent_away(trial):
    ps = trial.ps()
    heard = wait_for(ps, "listening")
    with socket.create_connection(("127.0.0.1", trial.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(1) == b""
    heard += wait_for(ps, "sent away")
    workers = [trial.worker(index) for index in range(WORKERS)]
    for index, worker in enumerate(workers):
        trial.feed(worker, share(index))
    ended_well(trial, ps, workers, heard)
