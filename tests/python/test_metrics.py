# SPDX-License-Identifier: Apache-2.0
"""primus.metrics outside of Primus, where the same program runs alone; and names. (Inside: tests/cluster/test_training.py.)"""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

ALONE = """
from primus import metrics, trial
metrics.report(1, loss=1)
metrics.report(2, **{"a b": 1})
metrics.flush()
trial.report(1, loss=1)
trial.report_validation(1, loss=1)
with metrics.SummaryWriter("runs/x", comment="y") as writer:
    writer.add_scalar("Loss/train set", 0.5, 3)
    writer.add_scalars("both", {"a": 1, "b": 2}, 3)
    try:
        writer.add_histogram("weights", [1])
    except NotImplementedError as e:
        print(e)
print("done")
"""


def test_alone(environment):
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["primus.metrics.SummaryWriter has no add_histogram(): metrics are numbers", "done"]


@pytest.mark.parametrize("tag, name", [("Loss/train set", "Loss/train_set"), ("/x", "m/x"), ("ä" * 70, ("m" + "_" * 64)[:64]), ("a" * 70, "a" * 64), ("", "m")])
def test_names_of_tags(tag, name):
    from primus import metrics
    assert metrics.name_of(tag) == name


def test_writer_counts_steps_itself(monkeypatch):
    from primus import metrics
    said = []
    monkeypatch.setattr(metrics, "report", lambda step, **values: said.append((step, values)))
    writer = metrics.SummaryWriter()
    for value in (1, 2):
        writer.add_scalar("loss", value)
    writer.add_scalar("loss", 3, 10)
    writer.add_scalar("loss", 4)
    writer.add_scalars("acc", {"a": 5}, 2)
    assert said == [(0, {"loss": 1.0}), (1, {"loss": 2.0}), (10, {"loss": 3.0}), (11, {"loss": 4.0}), (2, {"acc/a": 5.0})]


STOPS = """
import os, signal, primus
said = []
signal.signal(signal.SIGTERM, lambda *_: said.append("mine"))
assert primus.should_stop() is False
os.kill(os.getpid(), signal.SIGTERM)
assert primus.should_stop() and primus.should_stop() and said == ["mine"]
"""


def test_should_stop(environment):
    done = subprocess.run([sys.executable, "-c", STOPS], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
