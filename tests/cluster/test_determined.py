# SPDX-License-Identifier: Apache-2.0
"""Programs of Determined's Core API as jobs: python3 -m primus.determined. With PRIMUS_DETERMINED_TREE, a checkout of Determined's own
repository, its tutorials and fixtures run as they are."""
import json
import os
import pathlib
import re

import pytest
from searching import consistent, shown

TREE = os.environ.get("PRIMUS_DETERMINED_TREE")

# Counts, reports, saves, and goes on where it was; what it has seen stands in its state.
COUNT = """
import logging, os, pathlib, sys, time
import determined as det

def main(context, info):
    step, x = 0, 0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as path:
            step, x = map(int, (path / "state").read_text().split())
        print("goes on at", step, context.checkpoint.get_metadata(info.latest_checkpoint), flush=True)
    for step in range(step + 1, 31):
        x += info.trial.hparams["by"]
        time.sleep(float(os.environ.get("STEP_SECONDS", "0.01")))
        if step % 5 == 0:
            context.train.report_training_metrics(steps_completed=step, metrics={"x": x, "of": {"two": 1}, "text": "no number"})
            context.train.report_progress(step / 30)
            context.train.report_validation_metrics(steps_completed=step, metrics={"x": x, "batches": step})
            with context.checkpoint.store_path({"steps_completed": step, "why": "fifth"}) as (path, uuid):
                (path / "state").write_text(f"{step} {x}")
            if context.preempt.should_preempt():
                print("preempted at", step, flush=True)
                return
    print("ended with", x, flush=True)

logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
info = det.get_cluster_info()
with det.core.init() as context:
    if info.trial.hparams["by"] in map(int, os.environ.get("INVALID", "").split()):
        raise det.InvalidHP("not that")
    main(context, info)
"""
RANKS = """
import os, subprocess, sys
import determined as det
info = det.get_cluster_info()
n, hosts = len(info.slot_ids), len(info.container_addrs)
if sys.argv[1:] == ["launch"]:
    procs = [subprocess.Popen([sys.executable, "-m", "determined.launch.wrap_rank", str(info.container_rank * n + i), "--", sys.executable, __file__, str(i)]) for i in range(n)]
    sys.exit(max(p.wait() for p in procs))
local = int(sys.argv[1])
d = det.core.DistributedContext(rank=info.container_rank * n + local, size=hosts * n, local_rank=local, local_size=n, cross_rank=info.container_rank, cross_size=hosts, chief_ip=info.container_addrs[0])
with det.core.init(distributed=d) as context:
    print("all", d.allgather(d.rank * 10), d.allgather_local(local), d.broadcast("from 0" if d.rank == 0 else None), d.gather(1), flush=True)
    with context.checkpoint.store_path({"steps_completed": 7, f"rank{d.rank}": d.rank}, shard=True) as (path, uuid):
        (path / f"part-{d.rank}").write_text(str(d.rank))
    with context.checkpoint.restore_path(uuid) as path:
        print("parts", sorted(f.name for f in path.iterdir()), uuid, flush=True)
    assert not context.preempt.should_preempt()
"""


def submit(cluster, directory, yaml, *options, programs, env=None):
    """The number of the job that the experiment becomes."""
    top = f"/tmp/det-{directory}"
    cluster.exec("n1", "mkdir", "-p", top, user="ml")
    for name, text in {**programs, "x.yaml": yaml}.items():
        cluster.exec("n1", "tee", f"{top}/{name}", input=text, user="ml")
    done = cluster.run("n1", "python3", "-m", "primus.determined", "--cpu", "--cpus", "0.1", "--memory", "64M", *options, f"{top}/x.yaml", user="ml")
    assert done.returncode == 0, done.stderr
    return int(re.search(r"\d+", done.stdout)[0])


@pytest.fixture
def kept(shared_dir, request):
    name = re.sub(r"\W", "-", request.node.name)
    (shared_dir / name).mkdir(exist_ok=True)
    os.chmod(shared_dir / name, 0o777)
    return shared_dir / name


def options(kept):
    return ["--checkpoints", f"/shared/{kept.name}"]


def test_single(cluster, kept):
    """Metrics, a checkpoint that the policy keeps, the end."""
    job = submit(cluster, "single", "name: count\nentrypoint: python3 count.py\nhyperparameters: {by: 2}\nsearcher: {name: single, metric: x, smaller_is_better: false}\nmax_restarts: 0\ndescription: any\n", *options(kept), programs={"count.py": COUNT})
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    assert "ended with 60" in cluster.primusctl("logs", str(job))
    assert cluster.primusctl_json("status", str(job))["name"] == "count"
    cluster.wait_for(lambda: "training/of/two" in cluster.primusctl("metrics", str(job)), 10, "its metrics")
    rows = {m["name"]: m for m in cluster.primusctl_json("metrics", str(job))}
    assert set(rows) == {"x", "batches", "training/x", "training/of/two"}
    [left] = (kept / f"trial-{job}").glob("step-*")
    # Another begins from it.
    begun = submit(cluster, "warm", "entrypoint: python3 count.py\nhyperparameters: {by: 2}\nsearcher: {name: single, metric: x, "
                   f"source_checkpoint_uuid: trial-{job}-checkpoint-{int(left.name[5:])}}}\n", *options(kept), programs={"count.py": COUNT})
    cluster.wait_state(begun, "SUCCEEDED", timeout=60)
    assert "goes on at 30 {'steps_completed': 30" in cluster.primusctl("logs", str(begun))


def test_goes_on(cluster, kept):
    """Told to give way it saves; the next attempt goes on from there."""
    job = submit(cluster, "goes-on", "entrypoint: [python3, count.py]\nhyperparameters: {by: {type: const, val: 3}}\nsearcher: {name: single, metric: x}\nenvironment: {environment_variables: [STEP_SECONDS=0.15]}\n", *options(kept), programs={"count.py": COUNT})
    cluster.wait_for(lambda: list(kept.glob("trial-*/step-*")), 30, "a checkpoint")
    cluster.primusctl("requeue", str(job))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    said = cluster.primusctl("logs", str(job))
    assert re.search(r"preempted at (\d+)", said)[1] == re.search(r"goes on at (\d+) \{'steps_completed': \1, 'why': 'fifth'\}", said)[1] and "ended with 90" in said


def test_search(cluster, kept):
    """adaptive_asha: the trials and the rungs are ours; one that is invalid is replaced."""
    yaml = """
name: search
entrypoint: python3 count.py
hyperparameters:
  by: {type: int, minval: 1, maxval: 40}
searcher: {name: adaptive_asha, metric: x, smaller_is_better: false, max_trials: 6, time_metric: batches, max_time: 30, max_rungs: 2, max_concurrent_trials: 3}
reproducibility: {experiment_seed: 5}
max_restarts: 0
"""
    first = json.loads(cluster.exec("n1", "sh", "-c", f"cat > /tmp/first.yaml; cd /tmp; python3 -m primus.determined --cpu --print --checkpoints /x first.yaml", input=yaml))
    assert first["search"]["method"] == "adaptive-asha" and first["search"]["maxTrials"] == 6
    cluster.exec("n1", "tee", "/tmp/first.json", input=json.dumps({**first, "files": []}))
    invalid = cluster.primusctl_json("search", "preview", "/tmp/first.json", "--trials", "2")["first"][1]["by"]
    job = submit(cluster, "search", yaml + f"environment: {{environment_variables: [INVALID={invalid}]}}\n", *options(kept), programs={"count.py": COUNT})
    cluster.wait_state(job, "SUCCEEDED", timeout=90)
    found = shown(cluster, job)
    assert found["invalid"] >= 1 and found["made"] == 6 + found["invalid"]
    done = [r for r in found["list"] if r["state"] == "succeeded"]
    assert max(r["step"] for r in done) == 30 and found["bestMetric"] == max(r["best"] for r in done)


@pytest.mark.parametrize("hosts", [1, 2])
def test_ranks(cluster, kept, hosts):
    """Processes of one executor, and of two hosts, which prove to each other that they are of the job."""
    yaml = "entrypoint: python3 ranks.py launch\nresources: {slots_per_trial: 4}\nsearcher: {name: single, metric: x}\nmax_restarts: 0\n"
    job = submit(cluster, f"ranks{hosts}", yaml, *options(kept), *(["--slots-per-host", "2"] if hosts == 2 else []), programs={"ranks.py": RANKS})
    cluster.wait_state(job, "SUCCEEDED", "FAILED", timeout=60)
    said = cluster.primusctl("logs", str(job))
    assert cluster.primusctl_json("status", str(job))["state"] == "SUCCEEDED", said
    for rank in range(4):
        n = 4 // hosts
        assert f"[rank={rank}] all [0, 10, 20, 30] {list(range(n))} from 0 {[1, 1, 1, 1] if rank == 0 else None}" in said
    assert said.count(f"parts ['part-0', 'part-1', 'part-2', 'part-3'] trial-{job}-checkpoint-1") == 4


def their_own(cluster, kept, name):
    folder = pathlib.Path(TREE) / ("examples" if name.startswith("tutorials") else "e2e_tests/tests") / name
    job = submit(cluster, folder.name, folder.with_suffix(".yaml").read_text(encoding="utf-8"), *options(kept), programs={folder.name + ".py": folder.with_suffix(".py").read_text(encoding="utf-8")})
    cluster.wait_state(job, "SUCCEEDED", "FAILED", timeout=240)
    assert cluster.primusctl_json("status", str(job))["state"] == "SUCCEEDED", cluster.primusctl("logs", str(job))
    said = cluster.primusctl("logs", str(job))
    if name.endswith("3_hpsearch"):
        assert len(consistent(shown(cluster, job))) == 10
    if name.endswith("0_start"):
        assert "x is now 100" in said
    if name.endswith("4_distributed"):
        assert "[rank=0]" in said
    if name.endswith("whoami"):
        assert "(ml)" in said


def their_noop(cluster, kept):
    """Their fixture that does what it is told: pauses between NaN and a checkpoint, goes on behind it, and one that exits badly."""
    program = (pathlib.Path(TREE) / "e2e_tests/tests/fixtures/noop/train.py").read_text(encoding="utf-8")
    actions = [{"action": "report", "group": "training", "metrics": {"x": 1}}, {"action": "report", "group": "validation", "metrics": {"x": "nan"}}, {"action": "checkpoint"},
               *[{"action": "sleep", "time": 0.5}] * 10, {"action": "log", "level": 20, "base64": "b3Zlcg=="}]
    yaml = {"entrypoint": "python3 train.py", "hyperparameters": {"actions": {str(i): a for i, a in enumerate(actions)}}, "searcher": {"name": "single", "metric": "x"}, "max_restarts": 0}
    job = submit(cluster, "noop", json.dumps(yaml), *options(kept), programs={"train.py": program})
    cluster.wait_for(lambda: cluster.primusctl("logs", str(job)).count("'sleep'") > 2, 30, "that it sleeps")
    cluster.primusctl("suspend", "--stop", str(job))
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(job))["state"] in ("QUEUED", "SUSPENDED"), 30, "that it is held")
    cluster.primusctl("resume", str(job))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    said = cluster.primusctl("logs", str(job))
    # What was done is not done again: a sleep is told of once, but for the one in which it was stopped.
    assert 10 <= said.count("'sleep'") <= 11 and said.count("'nan'") == 1 and "over" in said
    yaml["hyperparameters"]["actions"] = {"0": {"action": "exit", "code": 7}}
    job = submit(cluster, "noop-exit", json.dumps(yaml), *options(kept), programs={"train.py": program})
    cluster.wait_state(job, "FAILED", timeout=60)
    assert "exit status 7" in cluster.primusctl("why", str(job))


# A campaign: there is nothing to be installed that has it.
if TREE:
    test_their_own = pytest.mark.parametrize("name", [
        *(f"tutorials/core_api/{name}" for name in ("0_start", "1_metrics", "2_checkpoints", "3_hpsearch", "4_distributed")),
        *(f"fixtures/core_api/{name}" for name in ("11_generic_metrics", "arbitrary_workload_order", "whoami"))])(their_own)
    test_their_noop = their_noop
