# SPDX-License-Identifier: Apache-2.0
"""The rule by which ASHA stops is Optuna's too (SuccessiveHalvingPruner): both are asked the same."""
import os
import random
import subprocess

import pytest

optuna = pytest.importorskip("optuna")
EVENTS = int(os.environ.get("PRIMUS_SEARCH_EVENTS", "20000"))


def follow(program, divisor, rungs, top, trials, events):
    text = "".join(f"{trial} {step} {value!r}\n" for trial, step, value in events)
    done = subprocess.run([program, str(divisor), str(rungs), str(top), str(trials)], input=text, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def ask_optuna(divisor, rungs, trials, events):
    """0: goes on, 1: stops, 2: is over. Its rungs are divisor**n steps; one at the top never stops anybody there, as here it always does."""
    top = divisor ** (rungs - 1)
    study = optuna.create_study(pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=divisor, min_early_stopping_rate=0))
    running = [study.ask() for _ in range(trials)]
    last, said = [-1] * trials, []
    for trial, step, value in events:
        if running[trial] is None or step <= last[trial]:
            said.append(2)
            continue
        last[trial] = step
        running[trial].report(value, step)
        # At the top rung both compare first; then the trial is over here.
        pruned = running[trial].should_prune()
        said.append(1 if pruned or step >= top else 0)
        if said[-1]:
            study.tell(running[trial], state=optuna.trial.TrialState.PRUNED)
            running[trial] = None
    return said


@pytest.mark.parametrize("divisor,rungs", [(2, 5), (3, 4), (4, 3), (3, 1)])
def test_same_as_optuna(build, divisor, rungs):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    program = os.path.join(build, "tests/unit/masterd/search/search-follow")
    draw = random.Random(divisor * 100 + rungs)
    top, trials, n = divisor ** (rungs - 1), 100, 0
    while n < EVENTS // 4:
        steps = [0] * trials
        events = []
        for _ in range(trials * 6):
            trial = draw.randrange(trials)
            steps[trial] += draw.choice((0, 1, 1, 1, 2))
            # Few different values, so that many are equal. (What is no number Optuna prunes before any rung, and does not count.)
            events.append((trial, max(steps[trial], 1), draw.choice((draw.randrange(20) / 4, draw.random()))))
        ours, theirs = follow(program, divisor, rungs, top, trials, events), ask_optuna(divisor, rungs, trials, events)
        assert len(ours) == len(events)
        differ = [(i, e, a, b) for i, (e, a, b) in enumerate(zip(events, ours, theirs)) if a != b]
        assert not differ, differ[:5]
        assert set(ours) == {0, 1, 2} or rungs == 1
        n += len(events)
