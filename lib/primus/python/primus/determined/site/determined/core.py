# SPDX-License-Identifier: Apache-2.0
"""determined.core: init() and the contexts that it hands out."""
import contextlib
import enum
import faulthandler
import logging
import math
import os
import pathlib
import shutil
import signal

import determined
from determined import _state
from primus import distributed as _distributed, metrics as _metrics, trial as _trial
from primus._progress import progress as _progress
from primus._stopping import should_stop as _should_stop

logger = logging.getLogger("determined.core")


class EarlyExitReason(enum.Enum):
    INVALID_HP = "EXITED_REASON_INVALID_HP"
    USER_REQUESTED_STOP = "EXITED_REASON_USER_REQUESTED_STOP"


class PreemptMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"
    WorkersAskMaster = "WORKERS_ASK_MASTER"


class SearcherMode(enum.Enum):
    WorkersAskChief = "WORKERS_ASK_CHIEF"
    ChiefOnly = "CHIEF_ONLY"


class DownloadMode(enum.Enum):
    LocalWorkersShareDownload = "LOCAL_WORKERS_SHARE_DOWNLOAD"
    NoSharedDownload = "NO_SHARED_DOWNLOAD"


class TensorboardMode(enum.Enum):
    AUTO = "AUTO"
    MANUAL = "MANUAL"


class Unit(enum.Enum):
    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


# ---- distributed


class DistributedContext:
    """Who else is there. Values of allgather(), gather() and broadcast() are of JSON here; Determined takes whatever can be
    pickled."""

    def __init__(self, *, rank, size, local_rank, local_size, cross_rank, cross_size, chief_ip=None, pub_port=None, pull_port=None, port_offset=0, force_tcp=False):
        given = (rank, size, local_rank, local_size, cross_rank, cross_size)
        if sum(x is not None for x in given) not in (0, 6):
            raise ValueError("rank, size, local_rank, local_size, cross_rank, and cross_size must all be provided if any are provided")
        rank, size, local_rank, local_size, cross_rank, cross_size = given if rank is not None else (0, 1, 0, 1, 0, 1)
        self.rank, self.size, self.local_rank, self.local_size, self.cross_rank, self.cross_size = rank, size, local_rank, local_size, cross_rank, cross_size
        if local_size != size and chief_ip is None:
            raise AssertionError("chief_ip is required when there are workers on several hosts")
        port = pub_port or int(os.environ.get("MASTER_PORT", 0))
        self._all = _distributed.group("determined", rank=rank, size=size, local_size=local_size, host=chief_ip, port=port and port + port_offset)
        self._local = self._all if local_size == size else _distributed.group("determined-local", rank=local_rank, size=local_size)

    @classmethod
    def from_torch_distributed(cls, chief_ip=None, port_offset=0):
        e = os.environ
        size, local_size = int(e["WORLD_SIZE"]), int(e["LOCAL_WORLD_SIZE"])
        return cls(rank=int(e["RANK"]), size=size, local_rank=int(e["LOCAL_RANK"]), local_size=local_size, cross_rank=int(e.get("GROUP_RANK", 0)),
                   cross_size=size // local_size, chief_ip=chief_ip or e.get("MASTER_ADDR"), port_offset=port_offset)

    def get_rank(self):
        return self.rank

    def get_size(self):
        return self.size

    def get_local_rank(self):
        return self.local_rank

    def get_num_agents(self):
        return self.cross_size

    def gather(self, stuff):
        return self._all.gather(stuff)

    def gather_local(self, stuff):
        return self._local.gather(stuff)

    def allgather(self, stuff):
        return self._all.allgather(stuff)

    def allgather_local(self, stuff):
        return self._local.allgather(stuff)

    def broadcast(self, stuff):
        return self._all.broadcast(stuff)

    def broadcast_local(self, stuff=None):
        return self._local.broadcast(stuff)

    def close(self):
        self._all.close()
        self._local.close()


class DummyDistributedContext(DistributedContext):
    def __init__(self):
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)


# ---- training


def _flat(values, prefix=""):
    """Numbers, with names that Primus takes; what is none is left out."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) or hasattr(value, "item"):
            with contextlib.suppress(TypeError, ValueError):
                yield _metrics.name_of(f"{prefix}{name}"), float(value)


class TrainContext:
    def __init__(self, context):
        self._distributed = context.distributed
        self._metadata = {}
        self._validated = (None, {})  # steps_completed, metrics: the latest
        self._reported = -1

    def set_status(self, status):
        logger.info("status: %s", status)

    def set_metadata(self, metadata):
        self._metadata = dict(metadata)
        return self._metadata

    def get_metadata(self):
        return self._metadata

    def report_training_metrics(self, steps_completed, metrics, batch_metrics=None):
        self.report_metrics("training", steps_completed, metrics)

    def report_validation_metrics(self, steps_completed, metrics):
        self.report_metrics("validation", steps_completed, metrics)

    def report_metrics(self, group, steps_completed, metrics):
        """Of a search, the searcher's metric of the group "validation" decides. Names are TRAINING's with training/ before them, validation's as
        they are, others' with their group."""
        if self._distributed.rank != 0:
            raise RuntimeError("metrics are reported by the chief (rank 0)")
        if "." in group:
            raise ValueError(f"a group of metrics has no '.' in its name: {group!r}")
        if not _state.inside():
            logger.info("%s metrics at %d: %s", group, steps_completed, metrics)
        try:
            _metrics.report(int(steps_completed), **dict(_flat(metrics, "" if group == "validation" else f"{group}/")))
        except OSError as e:  # more names than a process may have: nothing that Determined would fail for
            logger.warning("metrics of %s are not kept: %s", group, e)
        if group == "validation":
            self._validate(int(steps_completed), metrics)

    def _validate(self, steps_completed, metrics):
        wrong = [k for k, v in metrics.items() if v is None]
        if wrong:
            raise ValueError(f"the validation metric {wrong[0]!r} is None")
        self._validated = steps_completed, dict(_flat(metrics))
        if _trial.number is None or _trial.metric is None:
            return
        if _trial.metric not in metrics:
            raise ValueError(f"the searcher's metric {_trial.metric!r} is not among those that were reported: {', '.join(metrics)}")
        time = _state.config().get("timeMetric")
        if time and time not in metrics:
            raise ValueError(f"the searcher's time_metric {time!r} is not among those that were reported: {', '.join(metrics)}")
        step = int(metrics[time]) if time else steps_completed
        if step > self._reported:
            self._reported = step
            _trial._decide(step, float(metrics[_trial.metric]))  # as a metric it is there already

    def report_progress(self, progress):
        if not 0 <= progress <= 1:
            raise ValueError(f"progress is {progress}, and not 0 to 1")
        _progress(int(progress * 1000000))

    def report_early_exit(self, reason):
        if EarlyExitReason(reason) is EarlyExitReason.INVALID_HP and _trial.number is not None:
            _trial._say_invalid()

    def get_experiment_best_validation(self):
        """Not known to a trial here: None, as where nothing was reported."""
        return None

    def get_tensorboard_path(self):
        path = pathlib.Path(os.environ.get("PRIMUS_ARTIFACTS", ".")) / "tensorboard"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def upload_tensorboard_files(self, selector=lambda _: True, mangler=lambda f, _: f):
        """They stay in the executor's artifacts: primusctl get."""


DummyTrainContext = TrainContext


# ---- checkpoints


class CheckpointContext:
    def __init__(self, context):
        self._context, self._distributed = context, context.distributed

    @staticmethod
    def _store(rank=0, world=1):
        """All stay as long as the trial runs; end() keeps what the policy says."""
        kept = _state.store(rank=rank, world=world, looks=False)
        kept.keep = 10**9
        return kept

    @staticmethod
    def _check(metadata):
        if not isinstance((metadata or {}).get("steps_completed"), int):
            raise ValueError("a checkpoint's metadata says its steps_completed, an int")

    @staticmethod
    def _next(kept):
        return next(iter(kept._steps()), (0, None))[0] + 1

    @contextlib.contextmanager
    def _saving(self, kept, step, metadata):
        """(path, id) of what one rank saves."""
        steps, validated = self._context.train._validated
        metrics = validated if steps == metadata["steps_completed"] else {}
        with kept.save(step, metadata=metadata, **{k: v for k, v in metrics.items() if not math.isnan(v)}) as path:
            yield path, _state.checkpoint_id(_state.trial_id(), step)

    @contextlib.contextmanager
    def _saving_alone(self, metadata):
        """(path, id) of the next one, in the chief."""
        self._check(metadata)
        kept = self._store()
        with self._saving(kept, self._next(kept), metadata) as found:
            yield found

    @contextlib.contextmanager
    def store_path(self, metadata=None, *, shard=False):
        if not shard:
            if self._distributed.rank != 0:
                raise RuntimeError("store_path() without shard=True is for the chief (rank 0)")
            with self._saving_alone(metadata) as found:
                yield found
            return
        merged = {}
        for of_one in self._distributed.allgather(metadata or {}):
            for key in set(merged) & set(of_one):
                if merged[key] != of_one[key]:
                    raise RuntimeError(f"the metadata of the ranks differ in {key!r}")
            merged.update(of_one)
        self._check(merged)
        with (self._sharding_to_bucket if _state.in_bucket() else self._sharding)(merged) as found:
            yield found

    @contextlib.contextmanager
    def _sharding(self, metadata):
        """All write into the chief's directory: it is on what all hosts see."""
        with self._saving_alone(metadata) if self._distributed.rank == 0 else contextlib.nullcontext((None, None)) as (path, storage_id):
            path, storage_id = self._distributed.broadcast([str(path), storage_id])
            own = pathlib.Path(path) / f".rank-{self._distributed.rank}"
            own.mkdir()
            yield own, storage_id
            self._merge(pathlib.Path(path), own)
        self._distributed.broadcast(None)  # it is whole

    @contextlib.contextmanager
    def _sharding_to_bucket(self, metadata):
        """Each saves its part, and restore_path() has them together."""
        kept = self._store(self._distributed.rank, self._distributed.size)
        step = self._distributed.broadcast(self._next(kept) if self._distributed.rank == 0 else None)
        with self._saving(kept, step, metadata) as (path, storage_id):
            yield path, storage_id
            for name in self._of_others(path):
                (path / name).unlink()
        self._distributed.allgather(None)  # all parts are there
        kept.settle()

    def _agree(self, own):
        """Names of a rank's files, and of each rank what it has. RuntimeError in all of them: two have different files of one name."""
        names = {str(f.relative_to(own)): [f.stat().st_size, _digest_of(f)] for f in own.rglob("*") if f.is_file()}
        taken, conflicts, of_all = {}, set(), self._distributed.allgather(names)
        for of_one in of_all:
            conflicts |= {n for n in set(taken) & set(of_one) if taken[n] != of_one[n]}
            taken.update(of_one)
        if conflicts:
            raise RuntimeError(f"refusing to upload with file conflicts: {sorted(conflicts)}")
        return names, of_all

    def _of_others(self, own):
        """Those of a rank's files that a lower one has as well."""
        names, of_all = self._agree(own)
        return [n for n in names if any(n in of_one for of_one in of_all[:self._distributed.rank])]

    def _merge(self, path, own):
        """Each rank's files into one directory."""
        for name in self._agree(own)[0]:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(own / name, path / name)
        shutil.rmtree(own)
        self._distributed.allgather(None)

    def upload(self, ckpt_dir, metadata=None, *, shard=False, selector=None):
        with self.store_path(metadata, shard=shard) as (path, storage_id):
            if ckpt_dir is not None:
                top = pathlib.Path(ckpt_dir)
                for f in top.rglob("*"):
                    name = str(f.relative_to(top))
                    if f.is_file() and (selector is None or selector(name)):
                        (path / name).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(f, path / name)
        return storage_id

    @staticmethod
    def _find(storage_id):
        """(its store, the Checkpoint)"""
        of, step = _state.parse_checkpoint(storage_id)
        kept = _state.store(of)
        found = kept._at(step)
        if found is None:
            raise FileNotFoundError(f"checkpoint {storage_id} is not in {_state.top()}")
        return kept, found

    def _files_of(self, storage_id):
        kept, found = self._find(storage_id)
        return kept._gathered(found)

    @contextlib.contextmanager
    def restore_path(self, storage_id, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None):
        """A directory's is read where it lies; a bucket's is fetched, by one process of each host for the others."""
        if not _state.in_bucket() or download_mode is DownloadMode.NoSharedDownload:
            yield self._files_of(storage_id)
            return
        path = self._distributed.broadcast_local(str(self._files_of(storage_id)) if self._distributed.local_rank == 0 else None)
        yield pathlib.Path(path)
        self._distributed.allgather_local(None)  # nobody reads it any more

    def download(self, storage_id, ckpt_dir, download_mode=DownloadMode.LocalWorkersShareDownload, *, selector=None):
        if download_mode is DownloadMode.NoSharedDownload or self._distributed.local_rank == 0:
            top = self._files_of(storage_id)
            for f in top.rglob("*"):
                name = str(f.relative_to(top))
                if f.is_file() and (selector is None or selector(name)):
                    target = pathlib.Path(ckpt_dir) / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(f, target)
        if download_mode is not DownloadMode.NoSharedDownload:
            self._distributed.allgather_local(None)

    def get_metadata(self, storage_id):
        return self._find(storage_id)[1].metadata

    def delete(self, storage_id):
        kept, found = self._find(storage_id)
        kept._remove(kept._path(found.step))

    def _end(self):
        if self._distributed.rank == 0:
            _state.store()._collect()


DummyCheckpointContext = CheckpointContext


def _digest_of(path):
    from primus.checkpoints import _digest

    with open(path, "rb") as f:
        return _digest(f)


# ---- stopping, searching, the rest


class PreemptContext:
    def __init__(self, context, mode):
        self._distributed, self._mode = context.distributed, PreemptMode(mode)
        self._acknowledged = False

    def should_preempt(self, chief_only=False, auto_ack=True):
        """Whether the trial is to end: it has not been among the best, another job needs its place, somebody suspended it."""
        asks = _state.inside() and (self._distributed.rank == 0 or self._mode is PreemptMode.WorkersAskMaster)
        if self._mode is PreemptMode.ChiefOnly and self._distributed.rank != 0:
            raise RuntimeError("should_preempt() is for the chief (rank 0), as preempt_mode says")
        answer = bool(asks and _should_stop())
        if self._mode is PreemptMode.WorkersAskChief and not chief_only:
            answer = self._distributed.broadcast(answer)
        return answer

    def acknowledge_preemption_signal(self):
        """Whoever exits was heard."""


DummyPreemptContext = PreemptContext


class SearcherOperation:
    def __init__(self, length, train):
        self.length, self._train, self._completed = length, train, False

    def report_progress(self, length):
        self._train.report_progress(min(max(length / self.length, 0), 1))

    def report_completed(self, searcher_metric):
        if self._completed:
            raise RuntimeError("report_completed() was called already")
        self._completed = True
        if _trial.number is not None and _trial.metric is not None:
            _metrics.report(self.length, **{_trial.metric: float(searcher_metric)})
            self._train._validate(self.length, {_trial.metric: searcher_metric, **({_state.config()["timeMetric"]: self.length} if _state.config().get("timeMetric") else {})})


class SearcherContext:
    def __init__(self, context):
        self._train = context.train

    def operations(self, searcher_mode=SearcherMode.WorkersAskChief, auto_ack=True):
        """One: to the end. Who is behind the others hears of it by should_preempt()."""
        yield SearcherOperation(int(_state.config().get("maxTime", 1)), self._train)

    def acknowledge_out_of_ops(self):
        """There is nothing to say."""


class ProfilerContext:
    """The page and primusctl top have the host's and the trial's rates, of every job and all the time."""

    def on(self, sampling_interval=1, samples_per_report=10):
        logger.info("profiling is on, as always: primusctl top, or the page")

    def off(self):
        """It goes on."""


class Context:
    def __init__(self, distributed, preempt_mode):
        self.distributed = distributed
        self.train = TrainContext(self)
        self.checkpoint = CheckpointContext(self)
        self.preempt = PreemptContext(self, preempt_mode)
        self.searcher = SearcherContext(self)
        self.profiler = ProfilerContext()
        self.info = determined.get_cluster_info()

    def alert(self, title=None, description=None, level="info"):
        logger.log(getattr(logging, str(getattr(level, "value", level)).upper(), logging.INFO), "alert: %s", ": ".join(t for t in (title, description) if t))

    def close(self):
        self.checkpoint._end()
        _metrics.flush()
        _trial.flush()
        self.distributed.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is not None and issubclass(kind, determined.InvalidHP):
            logger.warning("these hyperparameters make no sense: %s", error)
            if self.distributed.rank == 0:
                self.train.report_early_exit(EarlyExitReason.INVALID_HP)
            raise SystemExit(0)
        if kind is None:
            self.close()


def init(*, distributed=None, checkpoint_storage=None, preempt_mode=PreemptMode.WorkersAskChief, tensorboard_mode=TensorboardMode.AUTO):
    """A Context. Several executors, or processes, say who they are with distributed=."""
    if checkpoint_storage is not None:
        raise ValueError("checkpoint_storage is what the job's configuration says: see docs/migrating-from-determined.md")
    if distributed is None:
        if int(os.environ.get("PRIMUS_WORLD_SIZE", 1)) > 1:
            raise ValueError("a trial of several executors says who is who: init(distributed=DistributedContext(...)), or one of its from_...()")
        distributed = DummyDistributedContext()
    with contextlib.suppress(AttributeError, ValueError):
        faulthandler.register(signal.SIGUSR1)
    return Context(distributed, preempt_mode)
