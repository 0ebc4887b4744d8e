# SPDX-License-Identifier: Apache-2.0
"""What becomes of an experiment's configuration (primus.determined), and the shim where there is no cluster."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"
sys.path.insert(0, str(SOURCE))
pytest.importorskip("yaml")
from primus.determined.convert import NotHere, job_of, load  # noqa: E402

SINGLE = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\n"


def converted(text, tmp_path, **options):
    said = []
    job, several = job_of(load(text), tmp_path, warn=said.append, **{"checkpoints": "/shared/c", **options})
    return json.loads(job), several, said


def told(job):
    return json.loads(job["env"]["PRIMUS_DETERMINED"])


def test_single(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / ".git").mkdir()
    job, several, said = converted(SINGLE + """
name: a
description: b
hyperparameters: {lr: 0.1, net: {width: {type: const, val: 3}}}
resources: {slots_per_trial: 2, resource_pool: big, priority: 40, shm_size: 1G}
environment: {environment_variables: [A=1, "B=x=y"], image: some}
max_restarts: 2
data: {url: z}
""", tmp_path)
    assert job["name"] == "a" and job["files"] == ["train.py"] and job["queue"] == "big" and job["priority"] == 2 and not several
    assert (job["env"]["A"], job["env"]["B"]) == ("1", "x=y") and "search" not in job
    assert told(job) == {"metric": "loss", "smaller": True, "hparams": {"lr": 0.1, "net": {"width": 3}}, "keep": 1, "keepBest": 1, "checkpoints": "/shared/c", "data": {"url": "z"}, "slots": 2}
    role, = job["role"]
    assert role["argv"] == ["python3", "-m", "primus.determined", "--shell", "python3 train.py"] and role["gpuNum"] == 2 and role["num"] == 1
    assert role["failover"]["commonFailoverPolicy"]["maxFailureTimes"] == 3
    assert said == ["description: has no effect here", "resources.shm_size: has no effect here", "environment.image: has no effect here"]


def test_searches(tmp_path):
    space = "hyperparameters: {lr: {type: log, minval: -4, maxval: -1, base: 10}}\nentrypoint: x\n"
    job, _, _ = converted(space + "searcher: {name: random, metric: m, max_trials: 7, max_concurrent_trials: 2, smaller_is_better: false}", tmp_path)
    assert job["search"] == {"method": "random", "metric": "m", "smaller": False, "maxTrials": 7, "maxConcurrent": 2, "space": {"lr": {"type": "log", "minval": -4, "maxval": -1, "base": 10}}}
    job, _, _ = converted(space + "searcher: {name: single, metric: m}", tmp_path)  # one trial, drawn
    assert job["search"]["method"] == "random" and job["search"]["maxTrials"] == 1
    job, _, _ = converted(space + "searcher: {name: adaptive_asha, metric: m, max_trials: 9, max_length: {batches: 90}, bracket_rungs: [1, 3], divisor: 3}\nreproducibility: {experiment_seed: 4}", tmp_path)
    assert job["search"]["method"] == "adaptive-asha" and job["search"]["maxTime"] == 90 and job["search"]["rungs"] == [3, 1] and job["search"]["seed"] == 4 and "mode" not in job["search"]
    job, _, _ = converted(space + "searcher: {name: async_halving, metric: m, max_trials: 9, time_metric: t, max_time: 90, num_rungs: 2}", tmp_path)
    assert job["search"]["method"] == "asha" and job["search"]["maxRungs"] == 2 and told(job)["timeMetric"] == "t"


def test_storage(tmp_path):
    def stored(storage):
        job, _, said = converted(SINGLE + f"checkpoint_storage: {storage}", tmp_path, checkpoints=None)
        return told(job)["checkpoints"], job["env"].get("AWS_ENDPOINT_URL_S3"), said

    assert stored("{type: shared_fs, host_path: /shared, storage_path: a}") == ("/shared/a", None, [])
    assert stored("{type: s3, bucket: b, prefix: /c/d/, save_trial_best: 3}") == ("s3://b/c/d", None, [])
    where, endpoint, said = stored("{type: s3, bucket: b, endpoint_url: 'http://x:9', access_key: AKID, secret_key: hidden}")
    assert (where, endpoint) == ("s3://b/checkpoints", "http://x:9") and [s.split(":")[0] for s in said] == ["checkpoint_storage.access_key", "checkpoint_storage.secret_key"]
    assert "hidden" not in str(said)


def test_hosts(tmp_path):
    job, several, _ = converted(SINGLE + "resources: {slots_per_trial: 8}", tmp_path, slots_per_host=4, cpu=True, cpus=0.5)
    assert several and job["role"][0]["num"] == 2 and job["role"][0]["vcores"] == 2 and "gpuNum" not in job["role"][0] and told(job)["slots"] == 4


@pytest.mark.parametrize("text, options, says", [
    ("[]", {}, "it is no experiment's configuration"),
    ("a: [", {}, "it is not YAML"),
    (SINGLE + "checkpoint_storage: {type: gcs, bucket: b}", {"checkpoints": None}, "checkpoint_storage: gcs is not here; --checkpoints names a directory"),
    (SINGLE + "checkpoint_storage: {type: s3, prefix: p}", {"checkpoints": None}, "checkpoint_storage.bucket: missing"),
    (SINGLE, {"checkpoints": None}, "checkpoint_storage: missing; --checkpoints names"),
    (SINGLE.replace("python3 train.py", "model_def:MyTrial"), {}, "is a class of Determined's Trial API"),
    ("searcher: {name: single}", {}, "entrypoint: missing"),
    (SINGLE + "resources: {slots_per_trial: 7}", {"slots_per_host": 4}, "7 slots are not whole hosts of 4"),
    (SINGLE + "resources: {slots_per_trial: many}", {}, "slots_per_trial is not as it should be: 'many'"),
    (SINGLE + "no_such_key: 1", {}, "no_such_key: is no key of an experiment"),
    ("entrypoint: x\nsearcher: {name: pbt, metric: m}", {}, "searcher.name: pbt is not here; a search of one's own"),
    ("entrypoint: x\nsearcher: {name: adaptive_asha, metric: m, max_trials: 3}", {}, "searcher.max_time: missing"),
    ("entrypoint: x\nsearcher: {name: async_halving, metric: m, max_trials: 3, max_time: 9, divisor: 2.5}", {}, "searcher.divisor: 2.5 is not here"),
    ("entrypoint: x\nsearcher: {name: random, metric: m, source_trial_id: 3}", {}, "name the checkpoint"),
    ("entrypoint: x\nsearcher: {name: random, metric: m, source_checkpoint_uuid: 8f5f}", {}, "'8f5f' is no checkpoint of here"),
    ("entrypoint: x\nsearcher: {name: adaptive_asha, metric: m, max_length: {miles: 3}}", {}, "is no length"),
])
def test_refused(tmp_path, text, options, says):
    with pytest.raises(NotHere, match=says.replace("(", r"\(")):
        converted(text, tmp_path, **options)


def run(script, tmp_path, environment, *arguments):
    (tmp_path / "script.py").write_text(script)
    return subprocess.run([sys.executable, "-m", "primus.determined", str(tmp_path / "script.py"), *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)


ALONE = """
import logging, sys
import determined as det
from determined import core
logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
assert det.get_cluster_info() is None and sys.argv[1:] == ["a", "--b"]
with core.init() as context:
    context.train.report_validation_metrics(3, {"loss": 1.5, "list": [1, 2]})
    context.train.report_progress(0.5)
    for op in context.searcher.operations():
        op.report_completed(1.0)
    ids = []
    for i in range(3):
        with context.checkpoint.store_path({"steps_completed": 3, "i": i}) as (path, uuid):
            (path / "f").write_text(str(i))
        ids.append(uuid)
    with context.checkpoint.restore_path(ids[1]) as path:
        assert (path / "f").read_text() == "1" and context.checkpoint.get_metadata(ids[1])["i"] == 1
    context.checkpoint.download(ids[0], "copy", selector=lambda n: n == "f")
    context.checkpoint.delete(ids[0])
    for wrong in (lambda: context.train.report_validation_metrics(4, {"loss": None}), lambda: context.train.report_progress(2), lambda: context.train.report_metrics("a.b", 1, {}),
                  lambda: context.checkpoint.get_metadata("0f8a"), lambda: context.checkpoint.get_metadata(ids[0]), lambda: context.checkpoint.upload("copy", {}),
                  lambda: core.init(checkpoint_storage="/x"), lambda: det.pytorch, lambda: __import__("determined.keras")):
        try:
            wrong()
        except Exception as e:
            print(type(e).__name__, e)
    print(context.distributed.allgather({"a": 1}), context.preempt.should_preempt(), context.checkpoint.upload("copy", {"steps_completed": 4}))
"""


def test_alone(tmp_path, environment):
    """Outside of a job the same program runs."""
    done = run(ALONE, tmp_path, environment, "a", "--b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ValueError the validation metric 'loss' is None",
        "ValueError progress is 2, and not 0 to 1",
        "ValueError a group of metrics has no '.' in its name: 'a.b'",
        "ValueError '0f8a' is no checkpoint of here: these are called trial-418-checkpoint-7",
        "FileNotFoundError checkpoint trial-0-checkpoint-1 is not in checkpoints",
        "ValueError a checkpoint's metadata says its steps_completed, an int",
        "ValueError checkpoint_storage is what the job's configuration says: see docs/migrating-from-determined.md",
        "AttributeError determined.pytorch is not in Primus's stand-in for Determined: docs/migrating-from-determined.md",
        "ModuleNotFoundError determined.keras is not in Primus's stand-in for Determined, which has the Core API alone: docs/migrating-from-determined.md says what takes its place",
        "[{'a': 1}] False trial-0-checkpoint-4"]
    assert "validation metrics at 3: {'loss': 1.5" in done.stderr and (tmp_path / "copy/f").read_text() == "0"
    # What the policy keeps at the end: the latest.
    assert [p.name for p in (tmp_path / "checkpoints/trial-0").glob("step-*")] == ["step-000000000004"]


def test_command_line(tmp_path, environment):
    (tmp_path / "x.yaml").write_text(SINGLE)
    command = [sys.executable, "-m", "primus.determined"]
    done = subprocess.run([*command, "--print", "--cpu", "--checkpoints", "/c", "x.yaml"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["files"] == ["x.yaml"]
    done = subprocess.run([*command, "--print", "x.yaml"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("x.yaml: checkpoint_storage: missing")
    done = subprocess.run([*command, "--shell", "echo $PYTHONPATH"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split(os.pathsep)[0].endswith("primus/determined/site")
