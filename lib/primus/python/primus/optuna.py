# SPDX-License-Identifier: Apache-2.0
"""Optuna's samplers and pruners for a search: the role "searcher" of a job.

    "search": {"method": "external", "metric": "loss", "maxTrials": 100, "maxConcurrent": 4, "space": {...}},
    "role": [{"roleName": "searcher", "argv": ["python3", "-m", "primus.optuna"]}, {"roleName": "train", ...}]

or, as a program:

    import optuna
    from primus.optuna import OptunaSearcher
    OptunaSearcher(sampler=lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True)).run()

There is no study to keep: when the searcher is started again, it is made anew, in memory, from what masterd has on disk, and so is
what samplers keep beside their trials. Optuna draws from the search's space: int and double as they are (with step), log as a float
between its two ends on a logarithmic scale, categorical by the index of its value; what "when" leaves out is not drawn. A trial that was stopped counts as pruned, with its
latest metric; one that ended well as complete, with its best; others as failed. Needs optuna (3 or later) where it runs."""
import argparse
import hashlib
import sys

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from .search import Full, Refused, Searcher


class Parameter:
    """One of a space: its dotted name, what Optuna draws from, and how that becomes a value."""

    def __init__(self, name, entry):
        self.name = name
        when = entry.get("when", {}) if isinstance(entry, dict) else {}
        self.when = {other: values if isinstance(values, list) else [values] for other, values in when.items()}
        self.values = None
        kind = entry.get("type") if isinstance(entry, dict) else "const"
        if kind == "const":
            self.values = [entry["val"] if isinstance(entry, dict) else entry]
            self.distribution = None
        elif kind == "categorical":
            self.values = entry["vals"]
            self.distribution = CategoricalDistribution(range(len(self.values)))
        elif kind == "int":
            self.distribution = IntDistribution(entry["minval"], entry["maxval"], step=entry.get("step", 1))
        elif kind == "double":
            self.distribution = FloatDistribution(entry["minval"], entry["maxval"], step=entry.get("step"))
        else:
            base = entry.get("base", 10)
            ends = sorted((base ** entry["minval"], base ** entry["maxval"]))
            self.distribution = FloatDistribution(*ends, log=True)

    def draw(self, trial):
        """From an Optuna trial."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return trial.suggest_categorical(self.name, d.choices)
        if isinstance(d, IntDistribution):
            return trial.suggest_int(self.name, d.low, d.high, step=d.step)
        return trial.suggest_float(self.name, d.low, d.high, step=d.step, log=d.log) if d else 0

    def value(self, drawn):
        return self.values[drawn] if self.values is not None else drawn

    def drawn(self, value):
        """What was drawn for that value. ValueError: nothing could be."""
        return self.values.index(value) if self.values is not None else value


def parameters_of(space, prefix=""):
    """The parameters of a search's space, in an order in which each comes behind those that its "when" names. ValueError: they
    go in a circle."""
    left = list(_flat(space, prefix))
    names, ordered = {p.name for p in left}, []
    while left:
        there = {p.name for p in ordered}
        ready = [p for p in left if all(o not in names or o in there for o in p.when)]
        if not ready:
            raise ValueError(f"what is there when goes in a circle: {', '.join(p.name for p in left)}")
        ordered += ready
        left = [p for p in left if p not in ready]
    return ordered


def _flat(space, prefix):
    for name in sorted(space):
        entry = space[name]
        if isinstance(entry, dict) and "type" not in entry:
            yield from _flat(entry, f"{prefix}{name}.")
        else:
            yield Parameter(prefix + name, entry)


def _get(params, name):
    for part in name.split("."):
        if not isinstance(params, dict) or part not in params:
            raise KeyError(name)
        params = params[part]
    return params


def _put(params, name, value):
    *parts, last = name.split(".")
    for part in parts:
        params = params.setdefault(part, {})
    params[last] = value


class OptunaSearcher(Searcher):
    """sampler: a function that makes an Optuna sampler from a seed (default: TPE). One is made for each trial, with a seed of (the
    search's seed, the trial's number): so what is drawn depends on what was heard, and not on how often the searcher was killed.
    pruner: an Optuna pruner that stops trials by their results; None: the search's own rungs do, or nobody."""

    def __init__(self, sampler=None, pruner=None, connection=None):
        super().__init__(connection)
        if not self.settings.get("space"):
            raise ValueError("the search has no space: Optuna would not know what to draw from")
        self._make_sampler = sampler or (lambda seed: optuna.samplers.TPESampler(seed=seed))
        self._pruner = pruner
        self._parameters = parameters_of(self.settings["space"])
        self._reported = set()
        self._live = {}  # by number: Optuna's own
        self.study = optuna.create_study(direction="minimize" if self.settings["smaller"] else "maximize",
                                         sampler=self._make_sampler(0), pruner=pruner or optuna.pruners.NopPruner())

    def _seed(self, trial):
        digest = hashlib.sha256(f"{self.settings['seed']}/{trial}/optuna".encode()).digest()
        return int.from_bytes(digest[:4], "little") >> 1

    # ---- asking

    def propose(self, trial):
        if trial >= self.settings["maxTrials"] + sum(t.state == "invalid" for t in self.trials):
            raise Full("maxTrials")
        self.study.sampler = self._make_sampler(self._seed(trial))
        drawing, params = self.study.ask(), {}
        for p in self._parameters:
            if all(self._holds(params, other, values) for other, values in p.when.items()):
                _put(params, p.name, p.value(p.draw(drawing)))
        self._live[trial] = drawing
        return params

    @staticmethod
    def _holds(params, name, values):
        try:
            return _get(params, name) in values
        except KeyError:
            return False

    # ---- hearing

    def on_created(self, trial):
        if trial.number in self._live:
            return  # it was asked for just now
        drawn, distributions = {}, {}
        for p in self._parameters:
            try:
                value = _get(trial.params, p.name)
            except KeyError:
                continue
            if p.distribution:
                drawn[p.name], distributions[p.name] = p.drawn(value), p.distribution
        self.study.add_trial(optuna.create_trial(state=TrialState.RUNNING, params=drawn, distributions=distributions))
        # Optuna has no other way to a trial that was added; its dashboards and tests go this one. The sampler is asked again by that,
        # and so keeps for itself what it kept then: CMA-ES its distribution, QMC its place in the sequence.
        self.study.sampler = self._make_sampler(self._seed(trial.number))
        self._live[trial.number] = optuna.trial.Trial(self.study, self.study.get_trials(deepcopy=False)[-1]._trial_id)

    def on_result(self, trial):
        step, metric = trial.results[-1]
        self._live[trial.number].report(metric, step)
        self._reported.add(trial.number)

    def on_exited(self, trial):
        self._reported.discard(trial.number)
        best, most = self.best_of(trial), self.settings["maxTime"]
        if trial.state != "succeeded" or best is None:
            self.study.tell(trial.number, state=TrialState.FAIL)
        elif trial.stopped and not (most and trial.results[-1][0] >= most):
            self.study.tell(trial.number, state=TrialState.PRUNED)
        else:
            self.study.tell(trial.number, best[1], state=TrialState.COMPLETE)

    def on_heard(self):
        for number in sorted(self._reported) if self._pruner else []:
            trial = self.trials[number]
            if trial.state == "runs" and self._live[number].should_prune():
                try:
                    self.stop(number)
                except Refused as e:
                    print(f"trial {number} goes on: {e}", file=sys.stderr)
        self._reported.clear()


SAMPLERS = {"tpe": lambda seed: optuna.samplers.TPESampler(seed=seed), "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
            "cma": lambda seed: optuna.samplers.CmaEsSampler(seed=seed), "qmc": lambda seed: optuna.samplers.QMCSampler(seed=seed)}
PRUNERS = {"none": lambda: None, "median": optuna.pruners.MedianPruner, "hyperband": optuna.pruners.HyperbandPruner,
           "halving": optuna.pruners.SuccessiveHalvingPruner}


def main():
    parser = argparse.ArgumentParser(prog="python3 -m primus.optuna", description="The searcher of a search, with Optuna's samplers.")
    parser.add_argument("--sampler", choices=SAMPLERS, default="tpe", help="how parameters are drawn (%(default)s)")
    parser.add_argument("--pruner", choices=PRUNERS, default="none", help="who is stopped early (%(default)s)")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    searcher = OptunaSearcher(SAMPLERS[arguments.sampler], PRUNERS[arguments.pruner]())
    searcher.run()
    best = searcher.best()
    if best is not None:
        step, metric = searcher.best_of(searcher.trials[best])
        print(f"best of {len(searcher.trials)} trials: trial {best}, {searcher.settings['metric']} {metric:.6g} at {step}: {searcher.trials[best].params}")


if __name__ == "__main__":
    main()
