# SPDX-License-Identifier: Apache-2.0
"""An experiment's configuration (Determined 0.38) as a job's. What is not here is refused by name, and what changes nothing is said."""
import json
import re
import shlex


class NotHere(Exception):
    """What there is no place for, in words."""


# Of no meaning here, whatever they say.
UNUSED = {"description", "labels", "workspace", "project", "debug", "integrations", "scheduling_unit", "min_validation_period", "min_checkpoint_period",
          "records_per_epoch", "perform_initial_validation", "checkpoint_policy", "internal", "optimizations", "retention_policy", "profiling", "tensorboard_storage",
          "preemption_timeout", "max_runtime"}
METHODS = {"random": "random", "grid": "grid", "async_halving": "asha", "adaptive_asha": "adaptive-asha"}
UNITS = ("batches", "records", "epochs")


def load(text):
    """The configuration as a dict. NotHere: it is no YAML of one."""
    try:
        import yaml
    except ImportError:
        raise NotHere("reading it needs the package python3-yaml") from None
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as e:
        raise NotHere(f"it is not YAML: {e}") from None
    if not isinstance(config, dict):
        raise NotHere("it is no experiment's configuration")
    return config


def take(config, key, kind, default=None):
    value = config.pop(key, default)
    if value is not None and not isinstance(value, kind):
        raise NotHere(f"{key} is not as it should be: {value!r}")
    return value


def length(value):
    """max_length: a number, or {"batches": N}."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in UNITS:
        value = next(iter(value.values()))
    if not isinstance(value, int) or value < 1:
        raise NotHere(f"searcher.max_length: {value!r} is no length")
    return value


def search_of(searcher, hparams, seed):
    """(the job's search or None, what trials are told)."""
    name = take(searcher, "name", str, "single")
    metric = take(searcher, "metric", str)
    told = {"metric": metric, "smaller": take(searcher, "smaller_is_better", bool, True)}
    time, most = take(searcher, "time_metric", str), searcher.pop("max_time", None)
    longest = searcher.pop("max_length", None)
    most = most if most is not None else length(longest) if longest is not None else None
    warm = searcher.pop("source_checkpoint_uuid", None)
    if searcher.pop("source_trial_id", None) is not None:
        raise NotHere("searcher.source_trial_id: name the checkpoint, source_checkpoint_uuid: trial-418-checkpoint-7")
    if warm:
        if not re.fullmatch(r"trial-\d+-checkpoint-\d+", str(warm)):
            raise NotHere(f"searcher.source_checkpoint_uuid: {warm!r} is no checkpoint of here: these are called trial-418-checkpoint-7")
        told["warmStart"] = warm
    if most:
        told["maxTime"] = int(most)
    if name == "single":
        for key in ("max_trials", "max_concurrent_trials"):
            searcher.pop(key, None)
        if constants(hparams) is not None:
            return None, {**told, "hparams": constants(hparams)}
        name, searcher["max_trials"] = "random", 1  # one that is drawn, as there
    if name not in METHODS:
        raise NotHere(f"searcher.name: {name} is not here; a search of one's own is a role searcher (docs/experiments.md)")
    search = {"method": METHODS[name], "metric": metric, "smaller": told["smaller"], "space": hparams, "maxConcurrent": take(searcher, "max_concurrent_trials", int, 16)}
    if seed is not None:
        search["seed"] = seed
    if name != "grid":
        search["maxTrials"] = take(searcher, "max_trials", int, 1)
    searcher.pop("max_trials", None)
    if name in ("async_halving", "adaptive_asha"):
        if not most:
            raise NotHere("searcher.max_time: missing: how long the best train, in units of time_metric")
        divisor = take(searcher, "divisor", (int, float), 4)
        if divisor != int(divisor):
            raise NotHere(f"searcher.divisor: {divisor} is not here, only whole ones are")
        search.update(maxTime=int(most), divisor=int(divisor),
                      maxRungs=take(searcher, "max_rungs" if name == "adaptive_asha" else "num_rungs", int, 5))
        if time:
            told["timeMetric"] = time
    if name == "adaptive_asha":
        rungs, mode = take(searcher, "bracket_rungs", list, []), take(searcher, "mode", str, "standard")
        search.update({"rungs": sorted(rungs, reverse=True)} if rungs else {"mode": mode})
    return search, told


def constants(hparams):
    """The values themselves; None: there are some to be drawn."""
    found = {}
    for name, h in hparams.items():
        if isinstance(h, dict) and "type" not in h:
            h = constants(h)
            if h is None:
                return None
        elif isinstance(h, dict) and h["type"] == "const":
            h = h.get("val")
        elif isinstance(h, dict):
            return None
        found[name] = h
    return found


def bucket_of(storage, warn):
    """(s3://BUCKET/PREFIX, the environment that finds it)"""
    bucket, prefix = take(storage, "bucket", str), (take(storage, "prefix", str) or "checkpoints").strip("/")
    endpoint = take(storage, "endpoint_url", str)
    if not bucket:
        raise NotHere("checkpoint_storage.bucket: missing")
    for key in ("access_key", "secret_key"):
        if storage.get(key):
            warn(f"checkpoint_storage.{key}: is not taken over, since whoever sees the job would see it; boto3 finds keys in ~/.aws/credentials of the hosts")
    return f"s3://{bucket}/{prefix}", {"AWS_ENDPOINT_URL_S3": endpoint} if endpoint else {}


def storage_of(config, checkpoints, warn):
    """(what trials are told, their environment)"""
    storage, env = dict(take(config, "checkpoint_storage", dict, {})), {}
    kept = {"keep": storage.pop("save_trial_latest", 1), "keepBest": storage.pop("save_trial_best", 1)}
    storage.pop("save_experiment_best", None)
    kind = storage.get("type")
    if checkpoints is None and kind in ("shared_fs", "directory"):
        checkpoints = storage.get("host_path") or storage.get("container_path")
        if storage.get("storage_path"):
            checkpoints = f"{checkpoints}/{storage['storage_path']}"
    elif checkpoints is None and kind == "s3":
        checkpoints, env = bucket_of(storage, warn)
    if checkpoints is None:
        raise NotHere("checkpoint_storage: " + (f"{kind} is not here" if kind else "missing") + "; --checkpoints names a directory that all hosts see, or s3://BUCKET/PREFIX")
    return {**kept, "checkpoints": checkpoints}, env


def environment_of(config):
    environment = take(config, "environment", dict, {})
    given = environment.pop("environment_variables", [])
    if isinstance(given, dict):  # by kind of slot
        given = [line for lines in given.values() for line in lines]
    env = dict(line.split("=", 1) for line in given if "=" in line)
    left = sorted(set(environment) - {"force_pull_image"})
    return env, left


def role_of(config, resources, cpu, cpus, slots_per_host, memory):
    slots = take(resources, "slots_per_trial", int, 1)
    per_host = min(slots, slots_per_host or slots)
    if slots < 0 or slots_per_host is not None and slots_per_host < 1 or per_host and slots % per_host:
        raise NotHere(f"resources.slots_per_trial: {slots} slots are not whole hosts of {slots_per_host}")
    n = slots // per_host if per_host else 1
    role = {"roleName": "trial", "num": n, "memory": memory}
    role["vcores"] = cpus * max(per_host, 1)
    if not cpu and slots > 0:
        role["gpuNum"] = per_host
    entry = config.pop("entrypoint", None)
    if isinstance(entry, list) and entry and all(isinstance(a, str) for a in entry):
        entry = shlex.join(entry)
    if not isinstance(entry, str) or not entry:
        raise NotHere("entrypoint: missing, or a class (module:Trial), which is not here: it is what a shell runs")
    if ":" in entry and " " not in entry:
        raise NotHere(f"entrypoint: {entry} is a class of Determined's Trial API, which is not here; a program of the Core API is")
    role["argv"] = ["python3", "-m", "primus.determined", "--shell", entry]
    restarts = take(config, "max_restarts", int, 5)
    role["failover"] = {"commonFailoverPolicy": {"restartType": "ON_FAILURE", "maxFailureTimes": restarts + 1, "maxFailurePolicy": "FAIL_APP"}}
    return role, per_host


def job_of(config, context, *, checkpoints=None, cpu=False, cpus=1, slots_per_host=None, memory="2G", name=None, warn=lambda w: None):
    """(the job's configuration as text, whether its trials are on several hosts). config is used up. NotHere."""
    config = dict(config)
    hparams = take(config, "hyperparameters", dict, {})
    searcher, resources = dict(take(config, "searcher", dict, {})), dict(take(config, "resources", dict, {}))
    seed = take(take(config, "reproducibility", dict, {}), "experiment_seed", int)
    search, told = search_of(searcher, hparams, seed)
    storage, storage_env = storage_of(config, checkpoints, warn)
    told.update(storage)
    told["data"] = take(config, "data", dict, {})
    if told["metric"] is None:
        del told["metric"]
        told["keepBest"] = 0
    role, told["slots"] = role_of(config, resources, cpu, cpus, slots_per_host, memory)
    env, left = environment_of(config)
    job = {"name": name or take(config, "name", str, "experiment"), "env": {**storage_env, **env, "PRIMUS_DETERMINED": json.dumps(told)},
           "files": sorted(p.name for p in context.iterdir() if not p.name.startswith("."))}
    config.pop("name", None)
    if search:
        job["search"] = {k: v for k, v in search.items() if v is not None}
    pool, priority = resources.pop("resource_pool", None), resources.pop("priority", None)
    if pool:
        job["queue"] = pool
    if priority is not None:
        job["priority"] = 42 - priority  # lower is sooner there, and 42 the default
    job["role"] = [role]
    for key in ("bind_mounts", "log_policies", "slurm", "pbs"):
        if config.pop(key, None):
            warn(f"{key}: is not taken over; see docs/migrating-from-determined.md")
    for what in [*(k for k in config if k in UNUSED), *(f"searcher.{k}" for k in searcher), *(f"resources.{k}" for k in resources), *(f"environment.{k}" for k in left)]:
        warn(f"{what}: has no effect here")
    unknown = [k for k in config if k not in UNUSED]
    if unknown:
        raise NotHere(f"{unknown[0]}: is no key of an experiment that is known here")
    return json.dumps(job, indent=2), role["num"] > 1
