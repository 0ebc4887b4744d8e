# SPDX-License-Identifier: Apache-2.0
"""A searcher of one's own: a program that says what the trials of a search are given, and hears how they do.

    from primus.search import Searcher

    class Halves(Searcher):
        def propose(self, trial):                       # the next one; None: not now
            best = self.best()
            return {"lr": 0.1 if best is None else self.trials[best].params["lr"] / 2}

    Halves().run()

It is the role "searcher" of a job whose search has method "external" (or one with rungs, which then stops trials; primus-job(5)).
Whatever it says is on masterd's disk before it hears so. Where it is killed it is started again, as any executor is, and hears
everything from the beginning; so whatever it computes from what it hears is as it was. While it is away trials go on.

primus.optuna is one with Optuna's samplers."""
import ctypes
import errno
import json
import math

from . import _lib


class Refused(Exception):
    """What masterd does not do, in its words."""


class Full(Exception):
    """There will be no further trial: there are as many as maxTrials says, or too many were invalid."""


class Connection:
    """To masterd, through agentd. ask(question) waits for the answer, a dict, however often these are started anew."""

    def __init__(self):
        self._lib, self._handle = _lib.load(), ctypes.c_void_p()
        self._open()

    def _open(self):
        r = self._lib.primus_searcher_open(ctypes.byref(self._handle))
        if r < 0:
            raise OSError(-r, "this is no searcher of a search: there is no PRIMUS_SEARCHER")

    def ask(self, **question):
        text, answer = json.dumps(question).encode(), ctypes.c_char_p()
        r = -errno.EINTR
        while r == -errno.EINTR:  # Python's own handlers run between
            r = self._lib.primus_searcher_ask(self._handle, text, ctypes.byref(answer))
        if r == -errno.EREMOTEIO:
            raise Refused(self._lib.primus_searcher_error(self._handle).decode(errors="replace"))
        if r < 0:
            raise OSError(-r, "cannot ask masterd")
        return json.loads(answer.value)


class Trial:
    """How a trial stands.

    number   int, from 0 on
    params   dict: what it was given
    results  list of (step, metric), steps rising; metric is a float, NaN where it was no number
    state    "runs", "stopped" (it was told to end), "succeeded", "failed" or "invalid"
    stopped  bool: it was told to end, by the searcher or by a rung, also when it has ended since """

    def __init__(self, number, params):
        self.number, self.params, self.results, self.state, self.stopped = number, params, [], "runs", False


class Searcher:
    """Asks for trials and hears of them. What a searcher of one's own says is in these, which do nothing here:

    propose(trial)            the parameters of the trial with that number, a dict; None: not now, ask when something has happened.
                              Raising Full ends the search when all trials have ended
    on_created(trial)         a Trial is there: one of propose(), or, when a searcher begins again, one of before
    on_result(trial)          it has reported; results[-1] is new
    on_exited(trial)          it has ended; state says how
    on_heard()                everything that has happened until now was heard: the place to stop() trials

    They are called in the order in which things happened, the same when it begins again. trials is a list of all, by number;
    settings a dict: metric, smaller, maxTrials, maxConcurrent, maxTime, seed, space."""

    def __init__(self, connection=None):
        self._connection = connection or Connection()
        self.settings = self._connection.ask(op="hello")
        self.trials = []
        self.heard = 0
        self._full = False

    def propose(self, trial):
        raise NotImplementedError

    def on_created(self, trial):
        pass

    def on_result(self, trial):
        pass

    def on_exited(self, trial):
        pass

    def on_heard(self):
        pass

    def running(self):
        """Trials that have not ended: a list."""
        return [t for t in self.trials if t.state in ("runs", "stopped")]

    def best_of(self, trial):
        """The best result of a Trial: (step, metric); None: it has none that is a number."""
        numbers = [r for r in trial.results if not math.isnan(r[1])]
        return (min if self.settings["smaller"] else max)(numbers, key=lambda r: r[1]) if numbers else None

    def best(self):
        """Number of the trial with the best result so far; None: none has one."""
        found = [(best[1], t.number) for t in self.trials if t.state != "invalid" and (best := self.best_of(t))]
        return (min if self.settings["smaller"] else max)(found, key=lambda f: f[0])[1] if found else None

    def stop(self, trial):
        """The trial with that number is to end: as a success, with what it has. Nothing where it does, or has. Refused: it has not
        begun."""
        self._connection.ask(op="stop", trial=trial)

    def _hear(self, event):
        self.heard = event["seq"]
        kind = event["event"]
        if kind == "closed":
            return
        if kind == "created":
            self.trials.append(Trial(event["trial"], event["params"]))
            self.on_created(self.trials[-1])
            return
        trial = self.trials[event["trial"]]
        if kind == "result":
            trial.results.append((event["step"], math.nan if event["metric"] is None else event["metric"]))
            if event["stops"]:
                trial.state, trial.stopped = "stopped", True
            self.on_result(trial)
        elif kind == "stopped":
            trial.state, trial.stopped = "stopped", True
        elif kind == "exited":
            trial.state = event["state"]
            self._full = self._full and trial.state != "invalid"  # there may be another instead
            self.on_exited(trial)

    def hear(self):
        """Waits until something has happened that was not heard yet, and hears it."""
        for event in self._connection.ask(op="events", after=self.heard)["events"]:
            self._hear(event)

    def _ask_for(self, params):
        number = len(self.trials)
        answer = self._connection.ask(op="create", trial=number, params=params)
        if "full" in answer:
            raise Full(answer["full"])
        while len(self.trials) == number:
            self.hear()

    def _fill(self):
        most = self.settings["maxConcurrent"] or self.settings["maxTrials"]
        while not self._full and len(self.running()) < most:
            try:
                params = self.propose(len(self.trials))
                if params is None:
                    return
                self._ask_for(params)
            except Full:
                self._full = True

    def run(self):
        """Until no further trial is wanted and all have ended."""
        known = self.settings["events"]
        while self.heard < known:
            self.hear()
        while True:
            self.on_heard()
            self._fill()
            if not self.running() and self._full:
                return
            if not self.running():
                raise RuntimeError("nothing runs, and propose() proposes nothing: nothing would ever happen")
            self.hear()
