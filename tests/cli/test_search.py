# SPDX-License-Identifier: Apache-2.0
"""search: what there is of a search, and what one would be."""
import json
import math

import pytest
from fakemaster import Job, Refuse

SPEC = json.dumps({"name": "s", "role": [{"roleName": "worker", "num": 1}]})
SEARCH = {"method": "asha", "metric": "loss", "maxTrials": 9, "maxTime": 9, "divisor": 3, "maxRungs": 3,
          "space": {"lr": {"type": "double", "minval": 0, "maxval": 1}, "net": {"width": 8, "note": "a\x1bb"}}}


def row(n, state, last=math.nan, best=math.nan, **params):
    return (n, 100 + n, state, 0, 1, 3 if last == last else 0, last, best, 2 if best == best else 0, json.dumps(params), {})


@pytest.fixture
def job(master):
    j = master.jobs[1] = Job(master, 1, SPEC, {})
    j.trials = [row(0, "succeeded", 0.5, 0.4, lr=0.1, net={"width": 8}), row(1, "invalid"), row(2, "succeeded", 0.3, 0.2, lr=0.25), row(3, "failed", math.inf),
                row(4, "runs", 0.25, 0.25, text="x\x1by")]
    j.status["search"] = ("a{sv}", {"method": ("s", "asha"), "metric": ("s", "loss"), "smaller": ("b", True), "trials": ("u", 9), "made": ("u", 5), "invalid": ("u", 1),
                                    "best": ("u", 2), "bestMetric": ("d", 0.2), "bestStep": ("t", 2), "rungs": ("a(uutuu)", [(0, 0, 1, 9, 3), (0, 1, 3, 3, 1)])})

    def trials(job, start):
        if not hasattr(job, "trials"):
            raise Refuse("org.primus.Error.Refused", f"Job {job.number} is no search")
        return "a(uusuutddtsa{sv})", (job.trials[start:start + 2],)
    master.do_ListTrials = trials
    return j


def test_show(job, ctl):
    """In parts, the best first; what is no number is nothing, and what was given is shown without control characters."""
    r = ctl("search", "show", 1)
    lines = [line.split() for line in r.stdout.splitlines()]
    assert lines[0] == "Search 1: asha, 5 of 9 trials made, 1 invalid; best: trial 2, loss 0.2 at 2".split(), r.stdout + r.stderr
    assert lines[2] == ["BRACKET", "RUNG", "UNITS", "EXPECTED", "CAME"] and lines[3] == ["0", "0", "1", "9", "3"]
    assert lines[6] == ["TRIAL", "JOB", "STATE", "STEP", "loss", "BEST", "AT", "PARAMETERS"]
    assert [line[0] for line in lines[7:]] == ["2", "4", "0", "1", "3"]
    assert lines[7] == ["2", "102", "succeeded", "3", "0.3", "0.2", "2", "lr=0.25"] and lines[9][-2:] == ["lr=0.1", "net.width=8"] and lines[8][-1] == "text=x?y"
    found = json.loads(ctl("search", "show", 1, "--json").stdout)
    assert [t["trial"] for t in found["list"]] == [0, 1, 2, 3, 4] and found["list"][0]["params"] == {"lr": 0.1, "net": {"width": 8}}
    assert found["list"][1]["metric"] is None and found["list"][3]["metric"] is None and found["best"] == 2 and found["rungs"][1]["expected"] == 3


def test_larger_is_better(job, ctl):
    job.status["search"][1]["smaller"] = ("b", False)
    assert [line.split()[0] for line in ctl("search", "show", 1).stdout.splitlines()[7:]] == ["0", "4", "2", "1", "3"]


def test_no_search(master, job, ctl):
    master.jobs[2] = Job(master, 2, SPEC, {})
    r = ctl("search", "show", 2)
    assert r.returncode == 1 and "Job 2 is no search" in r.stderr and not r.stdout


def test_preview(ctl, tmp_path):
    """Of a file alone; a mistake is said where it stands."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"search": SEARCH, "command": "x"}))
    r = ctl("search", "preview", file, "--trials", 2)
    assert r.returncode == 0 and "21 units of training, where all to the end would take 81 (26 %)" in r.stdout, r.stdout + r.stderr
    assert "\n  1: lr=0." in r.stdout and "net.note=a?b net.width=8" in r.stdout and "\n  2:" not in r.stdout
    found = json.loads(ctl("search", "preview", file, "--trials", 99, "--json").stdout)
    assert len(found["first"]) == 9 and found["trials"] == 9 and [g["expected"] for g in found["rungs"]] == [9, 3, 1] and found["units"] == 21
    again = json.loads(ctl("search", "preview", file, "--json").stdout)
    assert again["first"] == found["first"][:5]
    file.write_text(json.dumps({"search": {**SEARCH, "space": {"lr": {"type": "double", "minval": 1, "maxval": 0}}}, "command": "x"}, indent=1))
    r = ctl("search", "preview", file)
    assert r.returncode == 1 and "search.space: lr: minval must be below maxval" in r.stderr and ":9:" in r.stderr, r.stderr
    file.write_text('{"command": "x"}')
    assert "there is no key search in it" in ctl("search", "preview", file).stderr


@pytest.mark.parametrize("words", [("search",), ("search", "find"), ("search", "preview"), ("search", "show", "1", "2"), ("search", "show", "--trials", "3")])
def test_wrong_lines(ctl, words):
    r = ctl(*words)
    assert r.returncode == 2 and r.stderr


@pytest.mark.parametrize("words, says", [(("fork",), "usage: primusctl rerun"), (("submit", "--nothing"), "primusctl submit"), (("archive", "1"), "'primusctl list -a' alone"),
                                         (("continue",), "usage: primusctl search continue"), (("replay", "1", "--trials", "3"), "--trials goes with preview and continue"),
                                         (("show", "--env", "A=1", "1"), "--env and --secret go with continue")])
def test_what_is_elsewhere(ctl, words, says):
    r = ctl("search", *words)
    assert r.returncode == 2 and says in r.stderr, r.stderr
