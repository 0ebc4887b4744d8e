# SPDX-License-Identifier: Apache-2.0
"""primus.search and primus.optuna against a master in memory that keeps events as masterd does (tests/cluster/test_searcher.py has the
real one): killed at each question, with the same outcome; Optuna's samplers better than chance."""
import json
import math
import pathlib
import random
import statistics
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.ERROR)
from primus.optuna import SAMPLERS, OptunaSearcher, Parameter, parameters_of  # noqa: E402
from primus.search import Full, Refused, Searcher  # noqa: E402


class Killed(Exception):
    pass


class Master:
    """Its trials report curve(params, step) for each of so many steps, the one that is furthest behind first."""

    def __init__(self, curve, steps=1, max_trials=10, concurrent=1, space=None, smaller=True, seed=1):
        self.curve, self.steps = curve, steps
        self.settings = {"metric": "loss", "smaller": smaller, "maxTrials": max_trials, "maxConcurrent": concurrent, "maxTime": 0, "seed": seed, "space": space}
        self.events, self.given, self.state, self.step = [], [], [], []
        self.asked, self.kill_at = 0, None

    def _note(self, kind, trial, **more):
        self.events.append({"seq": len(self.events) + 1, "event": kind, "trial": trial, **more})

    def _work(self):
        going = [t for t in range(len(self.given)) if self.state[t] in ("runs", "stopped")]
        trial = min(going, key=lambda t: (self.step[t], t))
        if self.state[trial] == "stopped" or self.step[trial] == self.steps:
            self.state[trial] = "succeeded"
            self._note("exited", trial, state="succeeded")
            return
        self.step[trial] += 1
        metric = self.curve(self.given[trial], self.step[trial])
        if metric == "invalid":
            self.state[trial] = "invalid"
            self._note("exited", trial, state="invalid")
            return
        self._note("result", trial, step=self.step[trial], metric=None if math.isnan(metric) else metric, stops=False)

    def ask(self, **question):
        question = json.loads(json.dumps(question))
        self.asked += 1
        if self.kill_at is not None and self.asked == self.kill_at[0] and not self.kill_at[1]:
            raise Killed
        answer = getattr(self, "_" + question.pop("op"))(**question)
        if self.kill_at is not None and self.asked == self.kill_at[0]:
            raise Killed  # it was done, and not heard
        return json.loads(json.dumps(answer))

    def _hello(self):
        return {**self.settings, "events": len(self.events)}

    def _events(self, after):
        if after == len(self.events):
            self._work()
        return {"events": self.events[after:after + 3]}

    def _create(self, trial, params):
        if trial < len(self.given):
            assert self.given[trial] == params, "another one under the same number"
            return {"trial": trial}
        assert trial == len(self.given)
        if len(self.given) - self.state.count("invalid") == self.settings["maxTrials"]:
            return {"full": "maxTrials"}
        self.given.append(params)
        self.state.append("runs")
        self.step.append(0)
        self._note("created", trial, params=params)
        return {"trial": trial}

    def _stop(self, trial):
        if trial >= len(self.given):
            raise Refused("there is no such trial")
        if self.state[trial] == "runs":
            self.state[trial] = "stopped"
            self._note("stopped", trial)
        return {}


SPACE = {"x": {"type": "double", "minval": -5, "maxval": 10}, "y": {"type": "double", "minval": 0, "maxval": 15}}


def branin(params, step=1):
    x, y = params["x"], params["y"]
    return (y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def best_of_random(seed):
    draw = random.Random(seed)
    return min(branin({"x": draw.uniform(-5, 10), "y": draw.uniform(0, 15)}) for _ in range(100))


def test_better_than_chance():
    found = []
    for seed in range(3):
        master = Master(branin, max_trials=100, concurrent=4, space=SPACE, seed=seed)
        OptunaSearcher(connection=master).run()
        assert len(master.given) == 100
        found.append(min(e["metric"] for e in master.events if e["event"] == "result"))
    assert statistics.median(found) < statistics.median(best_of_random(s) for s in range(50))


RICH = {"net": {"depth": {"type": "int", "minval": 1, "maxval": 9, "step": 2}, "act": {"type": "categorical", "vals": ["relu", [1, 2], {"a": 1}]}},
        "lr": {"type": "log", "minval": -4, "maxval": -1}, "fixed": 7, "also": {"type": "const", "val": {"b": 2}},
        "momentum": {"type": "double", "minval": 0, "maxval": 1, "step": 0.25, "when": {"net.act": ["relu"]}}}


def rich_curve(params, step):
    return params["net"]["depth"] / 10 + abs(math.log10(params["lr"]) + 2) + params.get("momentum", 0.5) + 1 / step


def test_space():
    """What is drawn is of the space, conditions hold, and what stands for it in Optuna leads back to it."""
    master = Master(rich_curve, max_trials=40, space=RICH)
    searcher = OptunaSearcher(connection=master)
    searcher.run()
    for params in master.given:
        assert set(params) - {"momentum"} == {"net", "lr", "fixed", "also"} and params["fixed"] == 7 and params["also"] == {"b": 2}
        assert params["net"]["depth"] in (1, 3, 5, 7, 9) and 1e-4 <= params["lr"] <= 0.1
        assert ("momentum" in params) == (params["net"]["act"] == "relu") and params.get("momentum", 0) in (0, 0.25, 0.5, 0.75, 1)
    assert len({json.dumps(p["net"]["act"]) for p in master.given}) == 3
    again = OptunaSearcher(connection=master)
    again.run()
    assert len(master.given) == 40
    assert [(t.params, t.value, t.state) for t in again.study.trials] == [(t.params, t.value, t.state) for t in searcher.study.trials]
    with pytest.raises(ValueError, match="goes in a circle: a, b"):
        parameters_of({"a": {"type": "const", "val": 1, "when": {"b": 1}}, "b": {"type": "const", "val": 1, "when": {"a": 1}}})
    with pytest.raises(ValueError):
        Parameter("a", {"type": "categorical", "vals": [1, 2]}).drawn(3)


@pytest.mark.parametrize("heard", [True, False])
@pytest.mark.parametrize("pruner", [None, optuna.pruners.MedianPruner])
def test_killed_at_each_question(heard, pruner):
    """The searcher is killed at its nth question, ahead of it or behind: one that begins anew asks for the same trials."""

    def play(kill_at):
        master = Master(rich_curve, steps=4, max_trials=16, concurrent=1, space=RICH)
        master.kill_at = kill_at
        try:
            OptunaSearcher(pruner=pruner and pruner(n_startup_trials=3), connection=master).run()
        except Killed:
            master.kill_at = None
            OptunaSearcher(pruner=pruner and pruner(n_startup_trials=3), connection=master).run()
        return master.asked, [(p, s) for p, s in zip(master.given, master.step)]

    questions, calm = play(None)
    assert len(calm) == 16 and (pruner is None or any(steps < 4 for _, steps in calm))
    for n in range(2, questions + 1, 3):
        assert play((n, heard))[1] == calm, n


@pytest.mark.parametrize("sampler", ["cma", "qmc", "tpe", "random"])
def test_what_a_sampler_keeps(sampler):
    """What a sampler keeps for itself beside the trials, CMA-ES its distribution and QMC its place in the sequence, is there again in
    a searcher that begins anew."""

    def play(kill_at):
        master = Master(branin, max_trials=40, space=SPACE)
        master.kill_at = kill_at
        for _ in range(2):
            try:
                OptunaSearcher(SAMPLERS[sampler], connection=master).run()
                break
            except Killed:
                master.kill_at = None
        return master.asked, master.given

    questions, calm = play(None)
    assert len({json.dumps(params) for params in calm}) == 40
    for n in range(2, questions + 1, 13):
        assert play((n, True))[1] == calm, n


def test_without_numbers():
    """NaN, invalid ones, and a direction."""
    def curve(params, step):
        return "invalid" if params["n"] % 5 == 0 else math.nan if params["n"] % 7 == 0 else float(params["n"])
    master = Master(curve, steps=2, max_trials=12, concurrent=3, space={"n": {"type": "int", "minval": 0, "maxval": 30}}, smaller=False)
    searcher = OptunaSearcher(connection=master, pruner=optuna.pruners.MedianPruner(n_startup_trials=2))
    searcher.run()
    assert len(master.given) == 12 + master.state.count("invalid")
    best = searcher.best()
    assert searcher.trials[best].params["n"] == max(p["n"] for p, s in zip(master.given, master.state) if s == "succeeded" and p["n"] % 7)
    assert searcher.study.best_trial.number == best


def test_of_ones_own():
    class Grid(Searcher):
        heard_of = []

        def propose(self, trial):
            if trial == 5:
                raise Full
            return None if trial and len(self.running()) else {"x": trial}

        def on_exited(self, trial):
            self.heard_of.append((trial.number, trial.state, trial.results))

    master = Master(lambda p, step: p["x"] / step, steps=2, concurrent=9)
    grid = Grid(master)
    grid.run()
    assert grid.heard_of == [(i, "succeeded", [(1, i), (2, i / 2)]) for i in range(5)]
    assert grid.best() == 0 and grid.best_of(grid.trials[4]) == (2, 2)
    grid.stop(0)
    with pytest.raises(Refused):
        grid.stop(77)

    class Idle(Searcher):
        def propose(self, trial):
            return None

    with pytest.raises(RuntimeError, match="nothing would ever happen"):
        Idle(Master(branin)).run()
    with pytest.raises(ValueError, match="has no space"):
        OptunaSearcher(connection=Master(branin))
