# SPDX-License-Identifier: Apache-2.0
"""Searches whose trials a program of the user's asks for: the role "searcher"."""
import json
import pathlib
import re
import shutil

import pytest
from sandbox import MASTERD
from searching import consistent, kill_rounds, same_to_a_new_master, shown

# The loss falls to what the trial's x is away from 3.
TRAINER = """
import os, time
from primus import trial
if trial.params["x"] > 90:
    trial.invalid()
for step in range(1, 4):
    time.sleep(float(os.environ.get("STEP_SECONDS", "0.02")))
    trial.report_validation(step, loss=abs(trial.params["x"] - 3) + 1 / step)
"""
# Goes to where the best was, in steps that become smaller; what it says depends on what it has heard alone.
SEARCHER = """
import os, sys, time
from primus.search import Searcher, Full
class Walk(Searcher):
    def propose(self, trial):
        if trial == int(os.environ.get("TRIALS", "8")):
            raise Full
        best = self.best()
        x = 0 if best is None else self.trials[best].params["x"] + 4 / 2 ** (trial // 2) * (1 if trial % 2 else -1)
        return {"x": round(x, 6), "of": {"trial": trial}}
    def on_exited(self, t):
        print("heard of", t.number, t.state, t.results[-1:], flush=True)
    def on_heard(self):
        time.sleep(float(os.environ.get("THINK_SECONDS", "0")))
Walk().run()
"""


def external_job(search=None, env=None, searcher=SEARCHER, trainer=TRAINER):
    base = {"vcores": 0.1, "memoryMb": 64}
    return {"name": "x", "env": env or {}, "search": {"method": "external", "metric": "loss", "maxTrials": 20, "maxConcurrent": 1, **(search or {})},
            "role": [{**base, "roleName": "worker", "argv": ["python3", "-c", trainer]},
                     {**base, "roleName": "searcher", "argv": ["python3", "-c", searcher], "failover": {"commonFailoverPolicy": {"maxFailureTimes": 100, "restartType": "ON_FAILURE"}}}]}


def preview(cluster):
    cluster.exec("n1", "tee", "/tmp/x.json", input=json.dumps(external_job()))
    return cluster.primusctl("search", "preview", "/tmp/x.json")


def test_of_a_trial(cluster):
    """A trial that takes itself for the searcher, and another user's job, are told that they are none."""
    ask = "import os\nos.environ['PRIMUS_SEARCHER'] = '1'\nfrom primus.search import Connection\ntry:\n    Connection().ask(op='hello')\nexcept Exception as e:\n    print('told:', e)\n"
    job = cluster.submit(external_job({"maxTrials": 1}, env={"TRIALS": "1"}, trainer=ask + TRAINER))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    assert "is no searcher of a search" in cluster.primusctl("logs", f"{job}[0]")
    other = cluster.submit({"name": "o", "role": [{"roleName": "searcher", "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", ask]}]}, user="eve")
    cluster.wait_state(other, "SUCCEEDED", timeout=60)
    assert f"job {other} is no searcher of a search" in cluster.primusctl("logs", str(other), user="eve")


def test_searcher(cluster):
    """From two programs to the best: each trial is what the searcher said, and it heard of all of them."""
    job = cluster.submit(external_job())
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    rows = consistent(found)
    assert len(rows) == 8 and {r["state"] for r in rows} == {"succeeded"}
    assert [r["params"]["of"]["trial"] for r in rows] == list(range(8))
    said = cluster.primusctl("logs", f"{job}[searcher]")
    assert said.count("heard of") == 8
    assert "20 trials at the most; the searcher says which" in preview(cluster)
    assert cluster.primusctl_json("status", str(job))["reason"].startswith("8 of 8 trials succeeded; best: trial")


@pytest.mark.parametrize("killed", ["masterd", "agentd", "both"])
def test_over_kills(cluster, killed):
    """kill -9 at any time, of the searcher too: no trial is lost or asked for twice, and since one runs at a time and the searcher says
    what it has heard, all of them are what they are undisturbed."""
    job = cluster.submit(external_job())
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    calm = [(r["params"], r["state"], r["best"]) for r in shown(cluster, job)["list"]]
    job = cluster.submit(external_job(env={"STEP_SECONDS": "0.15", "THINK_SECONDS": "0.05"}))

    def kill_searcher():
        for e in cluster.primusctl_json("status", f"{job}[searcher]")["executors"]:
            if e["state"] == "RUNNING":
                cluster.run(e["node"], "pkill", "-9", "-f", "class Walk")

    kill_rounds(cluster, killed, kill_searcher)
    cluster.wait_state(job, "SUCCEEDED", timeout=120)
    rows = consistent(shown(cluster, job))
    assert [(r["params"], r["state"], r["best"]) for r in rows] == calm
    same_to_a_new_master(cluster, job)


STOPPER = """
import math
from primus.search import Searcher, Full, Refused
class Stops(Searcher):
    def propose(self, trial):
        if trial == 4:
            raise Full
        return {"x": trial * 10}
    def on_result(self, t):
        if t.results[-1][1] > 15:
            self.stop(t.number)
            self.stop(t.number)
s = Stops()
s.run()
for question in ({"op": "create", "trial": 9, "params": {"x": 1}}, {"op": "create", "trial": 0, "params": {"x": 1}}, {"op": "create", "trial": 4, "params": {}},
                 {"op": "stop", "trial": 99}, {"op": "events", "after": -1}, {"op": "hello", "more": 1}, {"op": "create", "trial": 4, "params": {"x": "y" * 20000}},
                 {"op": "create", "trial": 4, "params": {"a" + "\u00e9" * 40: 1}}, {"op": "hello", "a" + "\u00e9" * 60: 1}, {"op": "hello", "a\\n\u2028": 1}):
    try:
        print("answered", s._connection.ask(**question), flush=True)
    except Refused as e:
        print("refused:", e, flush=True)
print("the same again:", s._connection.ask(op="create", trial=0, params={"x": 0}), flush=True)
"""


def test_stops(cluster):
    """The searcher stops trials, which count as successes; what makes no sense is refused in a sentence."""
    job = cluster.submit(external_job({"maxConcurrent": 4}, env={"STEP_SECONDS": "0.4"}, searcher=STOPPER))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    rows = shown(cluster, job)["list"]
    assert [r["state"] for r in rows] == ["succeeded"] * 4
    assert rows[0]["step"] == rows[1]["step"] == 3 and rows[2]["step"] < 3 and rows[3]["step"] < 3
    assert "stopped by its searcher" in cluster.primusctl("why", f"{job}[3]")
    said = cluster.primusctl("logs", f"{job}[searcher]")
    for text in ("the next trial is 4, not 9", "trial 0 is there already, with other parameters", "params: must be an object with at least one parameter",
                 "there is no trial 99", "after must be an integer of 0 to", 'hello has no "more"', "the parameters of a trial may have 16384 bytes",
                 "a name must be 1 to 64 letters", "hello has no \"a\u00e9",
                 "the same again: {'trial': 0}"):
        assert text in said, text


def test_searcher_fails(cluster):
    """The trials that run go on; then the search has failed, and says why."""
    broken = "from primus.search import Searcher\nclass Once(Searcher):\n    def propose(self, trial):\n        if trial == 1: raise ValueError('no idea')\n        return {'x': 3}\nOnce().run()"
    description = external_job({"maxConcurrent": 2}, env={"STEP_SECONDS": "0.5"}, searcher=broken)
    description["role"][1].pop("failover")
    job = cluster.submit(description)
    cluster.wait_state(job, "FAILED", timeout=60)
    reason = cluster.primusctl_json("status", str(job))["reason"]
    assert "1 of 1 trials succeeded" in reason and f"{job}[searcher] FAILED" in reason
    assert shown(cluster, job)["list"][0]["step"] == 3


def test_killed(cluster):
    """What kills the search kills its searcher; a searcher that is killed ends the search behind its trials."""
    job = cluster.submit(external_job(env={"STEP_SECONDS": "5"}))
    cluster.wait_for(lambda: shown(cluster, job)["made"] == 1, 30, "a trial")
    listed = cluster.primusctl("status", f"{job}[searcher]")
    assert f"searcher of search {job}: {job}[searcher]" in listed
    cluster.primusctl("kill", str(job))
    cluster.wait_state(job, "KILLED", timeout=60)
    assert cluster.primusctl_json("status", f"{job}[searcher]")["state"] == "KILLED"
    job = cluster.submit(external_job(env={"STEP_SECONDS": "0.5"}))
    cluster.wait_for(lambda: shown(cluster, job)["made"] == 1, 30, "a trial")
    cluster.primusctl("kill", f"{job}[searcher]")
    cluster.wait_state(job, "FAILED", timeout=60)
    assert shown(cluster, job)["list"][0]["state"] == "succeeded"


def test_invalid(cluster):
    """An invalid trial makes room for another; the searcher hears of it."""
    searcher = SEARCHER.replace('return {"x": round(x, 6), "of": {"trial": trial}}', 'return {"x": 100 if trial in (1, 2) else trial}').replace("if trial == int(os.environ.get(\"TRIALS\", \"8\")):\n            raise Full\n        ", "")
    job = cluster.submit(external_job({"maxTrials": 4, "maxConcurrent": 2}, searcher=searcher))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    assert found["invalid"] == 2 and found["made"] == 6
    assert cluster.primusctl("logs", f"{job}[searcher]").count("invalid") == 2


def test_rungs(cluster):
    """A searcher gives the parameters, the rungs of the method stop trials."""
    search = {"method": "asha", "maxTime": 3, "divisor": 3, "maxRungs": 2, "maxTrials": 6, "maxConcurrent": 2, "space": {"x": {"type": "double", "minval": 0, "maxval": 9}}}
    searcher = SEARCHER.replace("round(x, 6)", "float(9 - trial if trial else 1)")
    job = cluster.submit(external_job(search, env={"TRIALS": "6", "STEP_SECONDS": "0.1"}, searcher=searcher))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = shown(cluster, job)
    assert found["made"] == 6 and found["rungs"][0]["trials"] == 6 and 0 < found["rungs"][1]["trials"] < 6


@pytest.mark.parametrize("change, says", [
    ({"role": 0}, "needs a role searcher"),
    ({"search": {"method": "random", "space": {"x": 1}}}, "say method"),
    ({"num": 2}, "a search has one searcher"),
    ({"alone": 1}, "the trials have no role"),
])
def test_refused(cluster, change, says):
    description = external_job()
    if "role" in change:
        description["role"].pop()
    if "alone" in change:
        description["role"].pop(0)
    description["search"].update(change.get("search", {}))
    description["role"][-1]["num"] = change.get("num", 1)
    cluster.exec("n1", "tee", "/tmp/x.json", input=json.dumps(description))
    done = cluster.run("n1", "primusctl", "submit", "/tmp/x.json", user="ml")
    assert done.returncode == 1 and says in done.stderr


def test_why(cluster):
    """Whoever asks why nothing happens is told of the searcher."""
    description = external_job(searcher="raise ValueError('no such module as mine')")
    job = cluster.submit(description)
    cluster.wait_for(lambda: re.search("searcher/0 failed and starts again in .*; first: .*no such module as mine", cluster.primusctl("why", str(job))), 30, "that it fails")
    cluster.primusctl("kill", str(job))
    idle = "import time\nfrom primus.search import Searcher\ns = Searcher()\ntime.sleep(100)"
    job = cluster.submit(external_job(searcher=idle))
    cluster.wait_for(lambda: "its searcher runs, and has asked for no further trial" in cluster.primusctl("why", str(job)), 30, "that it idles")
    cluster.primusctl("kill", str(job))
    full = cluster.submit({"name": "full", "role": [{"roleName": "worker", "num": 3, "vcores": 2, "memoryMb": 64, "command": "sleep 100"}]})
    cluster.wait_state(full, "RUNNING")
    description = external_job()
    description["role"][1]["vcores"] = 1
    job = cluster.submit(description)
    cluster.wait_for(lambda: f"its searcher waits: primusctl why {job}[searcher]" in cluster.primusctl("why", str(job)), 30, "that it waits")
    assert "CPU" in cluster.primusctl("why", f"{job}[searcher]")
    cluster.primusctl("kill", str(job), str(full))


OPTUNA = ("optuna", "cmaes", "colorlog", "sqlalchemy", "greenlet", "tqdm", "packaging", "scipy")
OPTUNA_TRAINER = """
import os, time
from primus import trial
p = trial.params
for step in range(1, 4):
    time.sleep(float(os.environ.get("STEP_SECONDS", "0")))
    trial.report_validation(step, loss=(p["x"] - 0.3) ** 2 + p["net"]["width"] / 100 + p.get("momentum", 0) + 1 / step)
"""


def test_optuna(cluster, shared_dir):
    """`python3 -m primus.optuna` as the searcher, with the Optuna of the build machine: killed in the middle, its study is what it was."""
    packages = pathlib.Path(pytest.importorskip("optuna").__file__).parents[1]
    for name in OPTUNA:
        if not (shared_dir / "optuna" / name).exists():
            shutil.copytree(packages / name, shared_dir / "optuna" / name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    space = {"x": {"type": "double", "minval": 0, "maxval": 1}, "net": {"width": {"type": "int", "minval": 1, "maxval": 9, "step": 2}, "act": {"type": "categorical", "vals": ["relu", "tanh"]}},
             "momentum": {"type": "log", "minval": -3, "maxval": -1, "when": {"net.act": "relu"}}}
    jobs = {}
    for name, env in (("calm", {}), ("killed", {"STEP_SECONDS": "0.1"})):
        description = external_job({"space": space, "maxTrials": 14, "seed": 3}, env={**env, "PYTHONPATH": "/shared/optuna", "OPENBLAS_NUM_THREADS": "1"}, trainer=OPTUNA_TRAINER)
        description["role"][1].update(argv=["python3", "-m", "primus.optuna"], memoryMb=512)
        jobs[name] = cluster.submit(description)
    for _ in range(2):
        before = shown(cluster, jobs["killed"])["made"]
        cluster.wait_for(lambda: shown(cluster, jobs["killed"])["made"] > before + 1, 60, "two trials more")
        for node in ("n1", "n2", "n3"):
            cluster.run(node, "pkill", "-9", "-f", "primus.optuna")
    for job in jobs.values():
        cluster.wait_state(job, "SUCCEEDED", timeout=120)
    calm, killed = (consistent(shown(cluster, job)) for job in jobs.values())
    assert len(calm) == 14 and [r["params"] for r in calm] == [r["params"] for r in killed]
    assert cluster.primusctl_json("status", f"{jobs['killed']}[searcher]")["executors"][0]["attempt"] >= 2
    best = shown(cluster, jobs["calm"])["best"]
    assert f"best of 14 trials: trial {best}, loss" in cluster.primusctl("logs", f"{jobs['calm']}[searcher]")


def test_asks_for_more(cluster):
    """More trials than run together: they wait for their turn, cannot be stopped before, and are there behind a new master."""
    ask = """
from primus.search import Connection, Refused
c = Connection()
for i in range(4):
    c.ask(op="create", trial=i, params={"x": i})
try:
    c.ask(op="stop", trial=3)
except Refused as e:
    print("refused:", e, flush=True)
after = ended = 0
while ended < 4:
    for event in c.ask(op="events", after=after)["events"]:
        after, ended = event["seq"], ended + (event["event"] == "exited")
"""
    job = cluster.submit(external_job({"maxConcurrent": 1, "maxTrials": 4}, env={"STEP_SECONDS": "0.5"}, searcher=ask))
    cluster.wait_for(lambda: [r["state"] for r in shown(cluster, job)["list"]] == ["runs", "waits", "waits", "waits"], 30, "one that runs")
    assert [r["job"] > 0 for r in shown(cluster, job)["list"]] == [True, False, False, False]
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    assert [r["step"] for r in consistent(shown(cluster, job))] == [3, 3, 3, 3]
    assert "trial 3 has not begun: it waits for its turn" in cluster.primusctl("logs", f"{job}[searcher]")
