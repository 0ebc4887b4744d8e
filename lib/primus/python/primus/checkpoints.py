# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a training, in a directory that a later attempt sees as well (shared, where it may run elsewhere), or in a bucket.

    import primus
    from primus import checkpoints

    kept = checkpoints.Store("/shared/checkpoints", keep=2, keep_best=1, metric="loss")
    latest = kept.latest()
    if latest:
        model.load(latest.path / "model.pt")
    feed = primus.open(latest.data if latest else None)  # where the job has data and input.ack is checkpoint
    for step, record in enumerate(feed.records(), latest.step + 1 if latest else 0):
        loss = train(record)
        if step % 1000 == 0:
            with kept.save(step, feed=feed, loss=loss) as path:
                model.save(path / "model.pt")

What is written in the with block is a checkpoint when all of it is on disk, and before that it is nothing: files are written beside,
flushed and hashed, and one rename makes it one. Whoever is killed at any moment finds the one before. With feed=, where the data stood is
part of it, and is acknowledged once the checkpoint is whole: who goes on from latest() gets exactly the records behind it.

With data, what is acknowledged is not delivered again: primus.open() refuses a checkpoint that is older than that, so go on from the
latest one. Of several ranks each saves its part, of the same step, into the same directory; the checkpoint is there when all parts are. Rank and their
number are RANK and WORLD_SIZE, which Primus and torchrun set.

    DIRECTORY/step-000000001000/rank-0/...   what was written
                                manifest-0.json   step, time, metrics, metadata, size and SHA-256 of each file, where the data stood

Store("s3://BUCKET/PREFIX") keeps them in a bucket (primus/_bucket.py says how). What is saved there is written to $TMPDIR first, and
latest(), best() and source() fetch to there.

In an executor of Primus, rank 0 tells masterd of each, by a thread that nobody waits for: 'primusctl checkpoints' lists them, pins
them, and has those removed that a policy does not keep, by

    python3 -m primus.checkpoints collect

in an executor of their owner's, who it runs as. A checkpoint that latest() returns is told of again, so that it belongs to the job that
goes on from it."""
import base64
import collections
import contextlib
import fcntl
import hashlib
import json
import math
import os
import pathlib
import shutil
import sys
import tempfile
import time

from . import _bucket, _registry

VERSION = 1
MANIFEST_MAX = 64 << 20  # bytes; a checkpoint's data is at most 4 MiB
STEP_MAX = 10**12 - 1


class Broken(Exception):
    """It is not as it was written; the text says what is wrong."""


Checkpoint = collections.namedtuple("Checkpoint", "path step metrics metadata data time world")
Checkpoint.__doc__ = """A checkpoint that is whole, as one rank sees it.

path      pathlib.Path: the directory of this rank's part; None where it was written by fewer ranks than there are now, and of a
          bucket's that all() found without verify
step      int
metrics   dict of float: as save() was given them
metadata  what save() was given, of JSON
data      bytes for primus.open(), or None
time      float: seconds since 1970
world     int: so many ranks have written it"""


def _flush(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _files(top):
    """{name: {size, sha256}} of what is below, flushed; directories as well. Anything but files and directories is refused."""
    found = {}
    for directory, directories, names in os.walk(top):
        for name in [*names, *(d for d in directories if os.path.islink(os.path.join(directory, d)))]:
            path = os.path.join(directory, name)
            if os.path.islink(path) or not os.path.isfile(path):
                raise ValueError(f"{path} is neither a file nor a directory, and cannot be part of a checkpoint")
            with open(path, "rb") as f:
                digest = _digest(f)
                os.fsync(f.fileno())
            found[_utf8(os.path.relpath(path, top))] = {"size": os.stat(path).st_size, "sha256": digest}
        _flush(directory)
    return found


def _utf8(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not UTF-8, and cannot be the name of a file in a checkpoint") from None
    return name


def _digest(f):
    digest = hashlib.sha256()
    while block := f.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _write(path, text):
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)
    _flush(path.parent)


def _read(path):
    if path.stat().st_size > MANIFEST_MAX:
        raise ValueError("is larger than any")
    return path.read_text(encoding="utf-8")


def _manifest(path, read=_read):
    """What stands in a manifest, which anybody may have written who can write there."""
    try:
        m = json.loads(read(path))
        good = (m["version"] == VERSION and isinstance(m["step"], int) and 0 <= m["step"] <= STEP_MAX and isinstance(m["rank"], int) and isinstance(m["world"], int)
                and 0 <= m["rank"] < m["world"] <= 1 << 20 and isinstance(m["metrics"], dict) and isinstance(m["time"], (int, float)) and isinstance(m["files"], dict)
                and all(isinstance(f["size"], int) and isinstance(f["sha256"], str) for f in m["files"].values()))
        m["data"] = None if m["data"] is None else base64.b64decode(m["data"], validate=True)
        m["metrics"] = {name: math.nan if value is None else value for name, value in m["metrics"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Broken(f"{path}: {e}") from None
    if not good:
        raise Broken(f"{path} is no manifest of this version")
    return m


def _is_below(name):
    """Whether a name of a manifest's is one below its own directory."""
    return not os.path.isabs(name) and ".." not in pathlib.PurePath(name).parts and "\0" not in name


def _remove(path):
    """By a name under which it is none any more, so that what is left of it after a crash is not taken for one."""
    gone = path.with_name(f".gone-{path.name}-{os.getpid()}")
    os.rename(path, gone)
    _flush(path.parent)
    shutil.rmtree(gone, ignore_errors=True)


class Store:
    """The checkpoints below a directory, which is made where it is missing, or below s3://BUCKET/PREFIX.

    keep       so many of the latest stay, at least 1; rank 0 removes the others
    keep_best  and so many of the best by metric= (a name of what save() is given; smaller=False: the highest is the best)
    rank, world  otherwise RANK and WORLD_SIZE
    looks      True: who only looks, while another process may be saving here as this rank. Otherwise this is that rank, started
               again, and what it had begun before is taken away"""

    def __new__(cls, directory, **_):
        return object.__new__(_BucketStore if cls is Store and str(directory).startswith("s3://") else cls)

    def __init__(self, directory, *, keep=2, keep_best=0, metric=None, smaller=True, rank=None, world=None, looks=False):
        if keep < 1 or keep_best < 0:
            raise ValueError("keep is at least 1, and keep_best not below 0")
        if keep_best and metric is None:
            raise ValueError("the best of what? keep_best needs metric=")
        self.keep, self.keep_best, self.metric, self.smaller = keep, keep_best, metric, smaller
        self.rank = int(os.environ.get("RANK", 0)) if rank is None else rank
        self.world = int(os.environ.get("WORLD_SIZE", 1)) if world is None else world
        if not 0 <= self.rank < self.world:
            raise ValueError(f"rank {self.rank} of {self.world}")
        self._looks = looks
        self._waits = None  # (step, feed, data): saved, and the others have not yet
        self._told = None  # the path that masterd was told of last
        self._open(directory)

    def _open(self, directory):
        self.directory = pathlib.Path(directory)
        if self._looks:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._alone():
            for part in self.directory.glob(".step-*"):  # what this rank has begun and not ended, before it was started again
                self._remove_part(part)

    @contextlib.contextmanager
    def _alone(self):
        """No other rank makes a whole of its parts meanwhile, or takes its own away."""
        fd = os.open(self.directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    # ---- looking ----

    def _steps(self):
        """Those that are whole, the latest first."""
        found = []
        for path in self.directory.glob("step-*"):
            if path.name[5:].isdecimal() and len(path.name) == 17:
                found.append((int(path.name[5:]), path))
        return sorted(found, reverse=True)

    def _look(self, path, verify):
        first = self._manifest_of(path, 0)
        for rank in range(1, first["world"]) if verify else ():
            self._manifest_of(path, rank)
        part = first if self.rank == 0 else self._manifest_of(path, self.rank) if self.rank < first["world"] else None
        return Checkpoint(self._checked(path, part, verify) if part else None, first["step"], first["metrics"], (part or first)["metadata"],
                          part["data"] if part else None, first["time"], first["world"])

    @staticmethod
    def _manifest_of(path, rank):
        return _manifest(path / f"manifest-{rank}.json")

    def _checked(self, path, part, verify):
        top = path / f"rank-{self.rank}"
        self._check(top, part, verify)
        return top

    @staticmethod
    def _check(top, manifest, verify):
        for name, is_ in manifest["files"].items():
            path = top / name
            if not _is_below(name) or path.is_symlink() or not path.is_file():
                raise Broken(f"{path} is not there")
            if path.stat().st_size != is_["size"]:
                raise Broken(f"{path} has {path.stat().st_size} bytes, and not {is_['size']}")
            if verify:
                with open(path, "rb") as f:
                    if _digest(f) != is_["sha256"]:
                        raise Broken(f"{path} is not what was written")

    def latest(self, verify=False):
        """The latest Checkpoint that is whole, or None. One of which files are missing or shorter is passed over, with a warning on
        standard error; verify=True: also one whose files are not what was written (all is read for that)."""
        found = self._first(self._whole(verify))
        if found and not self._looks:
            self._tell(self._path(found.step))
        return found

    def best(self, verify=False):
        """The best one by the store's metric, of those that are there and whole; or None."""
        if self.metric is None:
            raise ValueError("the best of what? Store() was given no metric=")
        return self._first(sorted(self._judged(verify), key=self._worth))

    def all(self, verify=False):
        """All that are whole, the latest first."""
        return list(self._whole(verify))

    @staticmethod
    def _first(found):
        return next(iter(found), None)

    def _whole(self, verify):
        return self._seen((path for _, path in self._steps()), verify)

    def _at(self, step):
        """The Checkpoint of that step, if it is whole; or None."""
        return next(self._seen((path for found, path in self._steps() if found == step), False), None)

    def _seen(self, paths, verify):
        for path in paths:
            try:
                yield self._look(path, verify)
            except Broken as e:
                _pass_over(path, e)

    def _judged(self, verify=False):
        return [c for c in self._whole(verify) if self._worth(c) is not None]

    def _worth(self, c):
        """The lower the better; None: not known."""
        value = c.metrics.get(self.metric)
        if not isinstance(value, (int, float)) or value != value:
            return None
        return value if self.smaller else -value

    def _gathered(self, c):
        """A directory with all ranks' files of a Checkpoint that all() found: of a directory's, this rank's own."""
        return c.path

    # ---- saving ----

    def _path(self, step):
        return self.directory / f"step-{step:012}"

    def _part(self, step):
        return self.directory / f".step-{step:012}"

    def _remove_part(self, part):
        for name in (f"manifest-{self.rank}.json", f".manifest-{self.rank}.json", f"rank-{self.rank}", f".rank-{self.rank}"):
            path = part / name
            with contextlib.suppress(FileNotFoundError):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        with contextlib.suppress(OSError):
            part.rmdir()  # where nobody else has anything there

    @contextlib.contextmanager
    def save(self, step, *, feed=None, metadata=None, **metrics):
        """A context whose value is a directory (pathlib.Path) to write into; at its end the checkpoint is on disk, or this rank's
        part of it. An exception in it leaves nothing, and goes on. metrics: numbers, by which the best is found; metadata: anything of
        JSON. FileExistsError: there is one of this step or of a later one (see forget_after())."""
        if self._looks:
            raise ValueError("a Store that looks saves nothing")
        step = int(step)
        if not 0 <= step <= STEP_MAX:
            raise ValueError(f"step is {step}, and not 0 to {STEP_MAX}")
        self.settle()
        if later := [s for s, _ in self._steps() if s >= step]:
            raise FileExistsError(f"{self.directory} has a checkpoint of step {later[0]}; forget_after() goes back to an earlier one")
        data = feed.checkpoint() if feed is not None else None
        metrics = {name: float(value) for name, value in metrics.items()}
        temporary = self._begin(step)
        try:
            yield temporary
            self._finish(step, temporary, {
                "version": VERSION, "step": step, "time": time.time(), "rank": self.rank, "world": self.world, "metadata": metadata,
                "metrics": {name: value if math.isfinite(value) else None for name, value in metrics.items()},  # JSON has no NaN
                "job": os.environ.get("PRIMUS_JOB_UID"), "role": os.environ.get("PRIMUS_ROLE"), "index": os.environ.get("PRIMUS_INDEX"),
                "trial": os.environ.get("PRIMUS_TRIAL"), "data": None if data is None else base64.b64encode(data).decode()})
        except BaseException:
            self._undo(step)
            raise
        self._waits = step, feed, data
        self.settle()

    def _undo(self, step):
        """Nothing of this rank's part of it is there."""
        with self._alone():
            self._remove_part(self._part(step))

    def _begin(self, step):
        self._undo(step)
        temporary = self._part(step) / f".rank-{self.rank}"
        temporary.mkdir(parents=True)
        return temporary

    def _finish(self, step, temporary, manifest):
        part = self._part(step)
        manifest["files"] = _files(temporary)
        text = json.dumps(manifest, allow_nan=False)
        os.rename(temporary, part / f"rank-{self.rank}")
        _flush(part)
        _write(part / f"manifest-{self.rank}.json", text)

    def settle(self):
        """Makes a checkpoint of the parts when all ranks have saved theirs, and acknowledges its data; True when nothing is left to be
        done. save() does that, of its own and of the one before; call it before the trainer ends, until it is True, where ranks do
        not wait for each other anyway."""
        if self._waits is None:
            return True
        step, feed, data = self._waits
        if not self._make_whole(step):
            return False
        if feed is not None:
            feed.commit(data)
        self._waits = None
        self._tell(self._path(step))
        if self.rank == 0:
            try:
                self._collect()
            except OSError as e:  # this one is whole all the same
                print(f"primus.checkpoints: what is not kept any more is not removed: {e}", file=sys.stderr, flush=True)
        return True

    def _make_whole(self, step):
        """False: not all ranks have saved theirs."""
        part, whole = self._part(step), self._path(step)
        with self._alone():
            if not whole.exists():
                if not all((part / f"manifest-{rank}.json").exists() for rank in range(self.world)):
                    return False
                os.rename(part, whole)
        _flush(self.directory)
        return True

    def forget_after(self, step):
        """Removes checkpoints of later steps than that, before a training goes on from an earlier one. Rank 0 does, while no other
        saves."""
        if self._looks:
            raise ValueError("a Store that looks removes nothing")
        for later, path in self._steps():
            if later > step:
                self._remove(path)

    def _tell(self, path):
        if self.rank != 0 or self._told == path:
            return
        self._told = path
        with contextlib.suppress(Broken, OSError):  # it is gone again
            first = self._manifest_of(path, 0)
            manifests = [first, *(self._manifest_of(path, rank) for rank in range(1, first["world"]))]
            _registry.saved(path, first, [f["size"] for m in manifests for f in m["files"].values()], self.metric, self.smaller)

    def _remove(self, path):
        _remove(path)
        _registry.gone(path)

    def _collect_gone(self):
        """What is left of those of which a removal was cut short."""
        for gone in self.directory.glob(".gone-*"):
            shutil.rmtree(gone, ignore_errors=True)

    def _collect(self):
        """What neither keep nor keep_best keeps goes. Where it cannot be said how good one is, it stays only as one of the latest."""
        self._collect_gone()
        if len(self._steps()) <= self.keep:
            return
        whole = list(self._whole(False))
        kept = {c.step for c in whole[:self.keep]}
        judged = sorted((c for c in whole if self._worth(c) is not None), key=self._worth)
        kept |= {c.step for c in judged[:self.keep_best]}
        for c in whole:
            if c.step not in kept:
                self._remove(self._path(c.step))


def _pass_over(path, why):
    print(f"primus.checkpoints: {str(path).rsplit('/', 1)[-1]} is passed over: {why}", file=sys.stderr, flush=True)


class _BucketStore(Store):
    """The same in a bucket. Paths are texts, s3://BUCKET/PREFIX/step-000000001000."""

    def _open(self, directory):
        self._bucket = _bucket.Bucket(str(directory))
        self.directory = self._bucket.url
        for step in () if self._looks else self._begun():
            self._undo(step)  # what this rank has begun and not ended, before it was started again

    def _path(self, step):
        return f"{self.directory}/step-{step:012}"

    def _marks(self):
        return _bucket.steps_of(self._bucket.sizes("whole-"), "whole")

    def _begun(self):
        whole = set(self._marks())
        return [step for step in _bucket.steps_of(self._bucket.steps(), "step") if step not in whole]

    def _steps(self):
        return [(step, self._path(step)) for step in self._marks()]

    # ---- looking ----

    def _manifest_of(self, path, rank):
        return _object_manifest(self._bucket, path[len(self.directory) + 1:], rank)

    def _checked(self, path, part, verify):
        below = f"{path[len(self.directory) + 1:]}/rank-{self.rank}/"
        there = self._bucket.sizes(below)
        for name, is_ in part["files"].items():
            if not _is_below(name) or there.get(below + name) != is_["size"]:
                raise Broken(f"{self.directory}/{below}{name} is not there, or is of another size")
        return _fetched(self._bucket, part) if verify else None

    def _first(self, found):
        """The same, fetched, which shows whether it is what was written."""
        for c in found:
            try:
                if c.path or c.world <= self.rank:
                    return c
                return c._replace(path=_fetched(self._bucket, self._manifest_of(self._path(c.step), self.rank)))
            except Broken as e:
                _pass_over(self._path(c.step), e)
        return None

    def _gathered(self, c):
        """Fetched, as a directory of its own for each caller."""
        top = pathlib.Path(tempfile.mkdtemp(prefix=f"step-{c.step:012}-", dir=_bucket.scratch()))
        for rank in range(c.world):
            part = _fetched(self._bucket, self._manifest_of(self._path(c.step), rank))
            for path in sorted(part.rglob("*")):
                target = top / path.relative_to(part)
                if path.is_dir():
                    target.mkdir(exist_ok=True)
                else:
                    os.replace(path, target)
        return top

    # ---- saving ----

    def _here(self, step):
        return _bucket.scratch() / f"saves-{step:012}-{self.rank}"

    def _undo(self, step):
        shutil.rmtree(self._here(step), ignore_errors=True)
        self._bucket.remove([f"step-{step:012}/manifest-{self.rank}.json"])
        self._bucket.remove(self._bucket.sizes(f"step-{step:012}/rank-{self.rank}/"))

    def _begin(self, step):
        if step in self._begun():
            self._undo(step)
        self._here(step).mkdir()
        return self._here(step)

    def _finish(self, step, temporary, manifest):
        manifest["files"] = _files(temporary)
        for name in manifest["files"]:
            self._bucket.put_file(f"step-{step:012}/rank-{self.rank}/{name}", temporary / name)
        self._bucket.put(f"step-{step:012}/manifest-{self.rank}.json", json.dumps(manifest, allow_nan=False))
        shutil.rmtree(temporary)

    def _make_whole(self, step):
        there = self._bucket.sizes(f"step-{step:012}/manifest-")
        if not all(f"step-{step:012}/manifest-{rank}.json" in there for rank in range(self.world)):
            return step in self._marks()
        self._bucket.put(_bucket.mark_of(step), "")
        return True

    def _remove(self, path):
        self._bucket.remove_step(int(path[-12:]))
        _registry.gone(path)

    def _collect_gone(self):
        whole = self._marks()
        for step in self._begun():
            if whole and step < whole[0]:
                self._bucket.remove_step(step)


def _object_manifest(bucket, name, rank):
    return _manifest(f"{name}/manifest-{rank}.json", lambda n: bucket.get(n, MANIFEST_MAX))


def _fetched(bucket, part):
    """A rank's part here, compared with its manifest."""
    top = _bucket.scratch() / f"step-{part['step']:012}-{part['rank']}"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for name, is_ in part["files"].items():
        if not _is_below(name):
            raise Broken(f"{name} is no name of a file in it")
        try:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            digest = bucket.get_file(f"step-{part['step']:012}/rank-{part['rank']}/{name}", top / name)
        except (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError) as e:  # also of names that are no files'
            raise Broken(str(e)) from None
        if digest != is_["sha256"]:
            raise Broken(f"{bucket.url}: {name} is not what was written")
    return top


def _split(url):
    """The store of a checkpoint in a bucket, and its name there."""
    top, _, name = url.rpartition("/")
    return _bucket.Bucket(top), name


def source(path=None):
    """The Checkpoint that the job is to begin from ('primusctl submit --from', PRIMUS_FROM), as rank 0 saved it, or None; Broken: it
    is not whole. Where the job has saved one of its own since, that is later:

        latest = kept.latest() or checkpoints.source()

    step is the other training's; whether it counts on from there is the program's."""
    path = path or os.environ.get("PRIMUS_FROM")
    if not path:
        return None
    if path.startswith("s3://"):
        bucket, name = _split(path)
        m = _object_manifest(bucket, name, 0)
        top = _fetched(bucket, m)
    else:
        m = _manifest(pathlib.Path(path) / "manifest-0.json")
        top = pathlib.Path(path) / "rank-0"
        Store._check(top, m, False)
    return Checkpoint(top, m["step"], m["metrics"], m["metadata"], None, m["time"], m["world"])


# ---- what a policy does not keep ----

def _is_that(row, manifest):
    return manifest["step"] == row["step"] and abs(manifest["time"] - row["time"]) <= 1e-3


def _collect_object(row):
    """The same, of a bucket's."""
    try:
        bucket, name = _split(row["path"])
        if name != f"step-{row['step']:012}":
            return "it is no checkpoint of primus.checkpoints"
        if not bucket.sizes(f"{name}/manifest-0.json") and not bucket.sizes(_bucket.mark_of(row["step"])):
            return None
        if not _is_that(row, _object_manifest(bucket, name, 0)):
            return "it is another one than masterd was told of"
        bucket.remove_step(row["step"])
    except (OSError, ValueError, ImportError, Broken) as e:
        return str(e)
    return None


def _collect_one(row, host):
    """A sentence why it is not removed, or None: it is gone."""
    if row["path"].startswith("s3://"):
        return _collect_object(row)
    path = pathlib.Path(row["path"])
    if not os.path.lexists(path):
        if row["host"] != host:
            return f"there is none on {host}; it was saved on {row['host']}"
        for left in path.parent.glob(f".gone-{path.name}-*"):  # of a collection that was killed over it
            shutil.rmtree(left, ignore_errors=True)
        return None
    if path.is_symlink() or path.name != f"step-{row['step']:012}":
        return "it is no checkpoint of primus.checkpoints"
    try:
        manifest = _manifest(path / "manifest-0.json")
    except Broken as e:
        return f"it is no checkpoint of primus.checkpoints: {e}"
    if not _is_that(row, manifest):
        return "it is another one than masterd was told of"
    try:
        _remove(path)
    except OSError as e:
        return str(e)
    return None


def collect(registry=None, host=None):
    """Removes the checkpoints of this user's that are marked and are on this host, and tells masterd; the number of those that
    stay marked though they are here. Whatever moment it is killed at, the next one goes on from there: what is marked stays so until
    it is gone. A directory that is not the very checkpoint that masterd was told of is left alone, with a line."""
    registry = registry or _registry.Registry()
    host = host or os.environ.get("PRIMUS_NODE", "")
    removed = left = after = 0
    while rows := registry.marked(after):
        row = rows[0]  # the others are asked for again: somebody may go on from them meanwhile
        after = row["id"]
        why = _collect_one(row, host)
        if why is None:
            registry.ask(op="checkpointGone", path=row["path"])
            removed += 1
        else:
            left += row["host"] == host
            print(f"primus.checkpoints: {row['path']} is left alone: {why}", file=sys.stderr, flush=True)
    print(f"{removed} checkpoints removed", flush=True)
    return left


if __name__ == "__main__":
    if sys.argv[1:] != ["collect"]:
        sys.exit("usage: python3 -m primus.checkpoints collect")
    sys.exit(1 if collect() else 0)
