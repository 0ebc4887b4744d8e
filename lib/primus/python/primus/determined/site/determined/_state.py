# SPDX-License-Identifier: Apache-2.0
"""What Primus tells of a job, in Determined's terms. PRIMUS_DETERMINED is JSON that primus.determined puts into the job's environment:
{"hparams", "data", "checkpoints" (a directory, or s3://BUCKET/PREFIX), "slots" (of an executor), "timeMetric", "smaller", "keep", "keepBest", "metric"}."""
import json
import os
import re

from primus import checkpoints, trial


def inside():
    return "PRIMUS_JOB" in os.environ


def config():
    return json.loads(os.environ.get("PRIMUS_DETERMINED", "{}"))


def hparams():
    return {**config().get("hparams", {}), **trial.params}


def trial_id():
    return int(os.environ.get("PRIMUS_JOB", 0))


def experiment_id():
    return int(os.environ.get("PRIMUS_ARRAY_JOB") or trial_id())


def seed():
    return trial.seed


def slots():
    return int(config().get("slots", 1))


def hosts():
    """Of each executor, by rank, a name or an address."""
    n = int(os.environ.get("PRIMUS_WORLD_SIZE", 1))
    named = [h for h in os.environ.get("PRIMUS_HOSTS", "").split(",") if h]
    first = os.environ.get("MASTER_ADDR", "127.0.0.1")
    return [first, *(named[i] if i < len(named) else first for i in range(1, n))]


def top():
    """Where checkpoints are: of all trials."""
    return config().get("checkpoints") or os.environ.get("PRIMUS_DETERMINED_CHECKPOINTS") or "checkpoints"


def in_bucket():
    return top().startswith("s3://")


def store(of=None, rank=0, world=1, looks=True):
    """The Store of a trial."""
    c = config()
    keep_best = int(c.get("keepBest", 0))
    return checkpoints.Store(f"{top().rstrip('/')}/trial-{trial_id() if of is None else of}", keep=max(int(c.get("keep", 1)), 1), keep_best=keep_best,
                             metric=c.get("metric") if keep_best else None, smaller=c.get("smaller", True), rank=rank, world=world, looks=looks)


def checkpoint_id(of, step):
    return f"trial-{of}-checkpoint-{step}"


def parse_checkpoint(storage_id):
    """(trial, step). ValueError: it is none of ours."""
    found = re.fullmatch(r"trial-(\d+)-checkpoint-(\d+)", storage_id or "")
    if not found:
        raise ValueError(f"{storage_id!r} is no checkpoint of here: these are called trial-418-checkpoint-7")
    return int(found[1]), int(found[2])


def latest_checkpoint():
    kept = store()
    found = next(kept._whole(False), None)  # nothing is fetched for that
    if found is None:
        return config().get("warmStart")
    kept._tell(kept._path(found.step))
    return checkpoint_id(trial_id(), found.step)
