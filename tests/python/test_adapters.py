# SPDX-License-Identifier: Apache-2.0
"""The callbacks of docs/recipes/lightning-accelerate-hf-deepspeed.md, with stand-ins for the classes of frameworks that Debian has not."""
import pathlib
import re
import sys
import types

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lib/primus/python"))
import primus  # noqa: E402
from primus import metrics, trial  # noqa: E402

PAGE = (TOP / "docs/recipes/lightning-accelerate-hf-deepspeed.md").read_text(encoding="utf-8")


@pytest.fixture
def adapter(monkeypatch):
    """adapter(name, **modules): the callback of the page, and what it reports: (kind, step, values)."""
    said, stop = [], []
    monkeypatch.setattr(metrics, "report", lambda step, **values: said.append(("metrics", step, values)))
    monkeypatch.setattr(trial, "report_validation", lambda step, **values: said.append(("validation", step, values)))
    monkeypatch.setattr(primus, "should_stop", lambda: bool(stop))

    def make(name, **modules):
        for module, members in modules.items():
            monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**members))
        text = re.search(rf"<!-- file: report_{name}.py -->\n```python\n(.*?)```", PAGE, re.S)[1]
        space = {}
        exec(compile(text, f"{name} of the page", "exec"), space)  # pylint: disable=exec-used
        return space["Report"](), said, stop

    return make


def test_lightning(adapter):
    report, said, stop = adapter("lightning", lightning={"Callback": object})
    trainer = types.SimpleNamespace(is_global_zero=True, global_step=10, sanity_checking=False, current_epoch=0, should_stop=False, callback_metrics={"train loss": 0.5, "val_loss": 0.25})
    report.on_train_batch_end(trainer, None, None, None, 0)
    report.on_validation_end(trainer, None)
    numbers = {"train_loss": 0.5, "val_loss": 0.25}
    assert said == [("metrics", 10, numbers), ("validation", 1, numbers)] and not trainer.should_stop
    trainer.sanity_checking, trainer.global_step = True, 11
    report.on_validation_end(trainer, None)
    stop.append(1)
    report.on_train_batch_end(trainer, None, None, None, 1)
    assert len(said) == 2 and trainer.should_stop


def test_transformers(adapter):
    report, said, stop = adapter("transformers", transformers={"TrainerCallback": object})
    state, control = types.SimpleNamespace(is_world_process_zero=True, global_step=7), types.SimpleNamespace(should_save=False, should_training_stop=False)
    report.on_log(None, state, control, logs={"loss": 1.5, "epoch": 1, "why": "text"})
    report.on_evaluate(None, state, control, metrics={"eval_loss": 0.5})
    report.on_step_end(None, state, control)
    assert said == [("metrics", 7, {"loss": 1.5, "epoch": 1.0}), ("validation", 7, {"eval_loss": 0.5})] and not control.should_training_stop
    stop.append(1)
    report.on_step_end(None, state, control)
    state.is_world_process_zero = False
    report.on_log(None, state, control, logs={"loss": 1})
    assert control.should_training_stop and control.should_save and len(said) == 2


def test_keras(adapter):
    report, said, stop = adapter("keras", keras={"callbacks": types.SimpleNamespace(Callback=object)})
    report.model = types.SimpleNamespace(stop_training=False)
    report.on_epoch_end(0, {"loss": 0.5})
    report.on_epoch_end(1, {"loss": 0.25, "val_loss": 0.3})
    report.on_train_batch_end(0)
    assert said == [("metrics", 1, {"loss": 0.5}), ("metrics", 2, {"loss": 0.25, "val_loss": 0.3}), ("validation", 2, {"loss": 0.25, "val_loss": 0.3})] and not report.model.stop_training
    stop.append(1)
    report.on_train_batch_end(1)
    assert report.model.stop_training
