# SPDX-License-Identifier: Apache-2.0
"""primus.checkpoints: whole or not there, whoever is killed at which call; several ranks; manifests that are not."""
import json
import os
import pathlib
import shutil
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

from primus import checkpoints  # noqa: E402
from saving import Feed, crash_at, save  # noqa: E402


def test_saved_and_found(tmp_path):
    kept, feed = checkpoints.Store(tmp_path / "a" / "b", keep=2), Feed(7)
    assert kept.latest() is None and kept.all() == []
    with kept.save(10, feed=feed, metadata={"epoch": 1}, loss=0.5) as path:
        (path / "model").write_text("m")
        assert kept.latest() is None and feed.committed is None
    found = checkpoints.Store(tmp_path / "a" / "b").latest(verify=True)
    assert (found.step, found.metrics, found.metadata, found.data, found.world) == (10, {"loss": 0.5}, {"epoch": 1}, b"at 7", 1) and feed.committed == b"at 7"
    assert (found.path / "model").read_text() == "m"
    manifest = json.loads((found.path.parent / "manifest-0.json").read_text())
    assert manifest["files"] == {"model": {"size": 1, "sha256": "62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a"}}


def test_which_are_kept(tmp_path):
    kept = checkpoints.Store(tmp_path, keep=2, keep_best=2, metric="loss")
    for step, loss in ((1, 0.4), (2, 0.1), (3, 0.3), (4, float("nan")), (5, 0.9), (6, 0.8)):
        save(kept, step, loss=loss)
    assert [c.step for c in kept.all(verify=True)] == [6, 5, 3, 2] and kept.best().step == 2
    assert checkpoints.Store(tmp_path, metric="loss", smaller=False).best().step == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock", *(f"step-{n:012}" for n in (2, 3, 5, 6))]
    with pytest.raises(FileExistsError, match="step 6"):
        save(kept, 6)
    kept.forget_after(3)
    save(kept, 4)
    assert [c.step for c in kept.all()] == [4, 3, 2]


def test_who_looks(tmp_path):
    """Another process that looks leaves alone what is being saved, and makes no directory."""
    assert checkpoints.Store(tmp_path / "none", looks=True).latest() is None and not (tmp_path / "none").exists()
    kept = checkpoints.Store(tmp_path)
    save(kept, 1)
    with kept.save(2) as path:
        (path / "model").write_text("m")
        looking = checkpoints.Store(tmp_path, looks=True)
        assert looking.latest().step == 1
        with pytest.raises(ValueError, match="saves nothing"), looking.save(3):
            pass
        with pytest.raises(ValueError, match="removes nothing"):
            looking.forget_after(0)
    assert (looking.latest().path / "model").read_text() == "m"


def test_what_cannot_be_removed(tmp_path, monkeypatch, capfd):
    """Others that do not go are no failure of the one that is saved."""
    kept = checkpoints.Store(tmp_path, keep=1)
    save(kept, 1)
    def refuse(path):
        raise PermissionError("not yours")
    monkeypatch.setattr(checkpoints, "_remove", refuse)
    save(kept, 2)
    assert kept.latest().step == 2 and kept.settle() and "not removed: not yours" in capfd.readouterr().err


def test_an_exception_leaves_nothing(tmp_path):
    kept, feed = checkpoints.Store(tmp_path), Feed()
    save(kept, 1)
    with pytest.raises(ZeroDivisionError):
        with kept.save(2, feed=feed) as path:
            (path / "x").write_text("x")
            1 / 0
    with pytest.raises(ValueError, match="neither a file nor a directory"):
        with kept.save(2, feed=feed) as path:
            os.symlink("/etc/passwd", path / "link")
    with pytest.raises(ValueError, match="neither a file nor a directory"):
        with kept.save(2, feed=feed) as path:
            os.mkfifo(path / "fifo")
    with pytest.raises(ValueError, match="not UTF-8"):
        with kept.save(2, feed=feed) as path:
            (path / "\udcff").touch()
    with pytest.raises(ValueError, match="JSON"), kept.save(2, feed=feed, metadata={"a": float("nan")}):
        pass
    assert feed.committed is None and kept.latest().step == 1 and sorted(p.name for p in tmp_path.iterdir()) == [".lock", "step-000000000001"]
    save(kept, 2)
    assert kept.latest(verify=True).step == 2


@pytest.mark.parametrize("arguments, says", [({"keep": 0}, "at least 1"), ({"keep_best": 1}, "best of what"), ({"rank": 2, "world": 2}, "rank 2 of 2")])
def test_wrong(tmp_path, arguments, says):
    with pytest.raises(ValueError, match=says):
        checkpoints.Store(tmp_path, **arguments)
    with pytest.raises(ValueError, match="step is -1"):
        save(checkpoints.Store(tmp_path), -1)


CALLS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "open")


def test_killed_at_every_call(tmp_path):
    """One is there always, the one before or the new one, every byte of it; and data counts only of one that is there."""
    n = 0
    while True:
        n += 1
        top, log = tmp_path / str(n), tmp_path / f"log{n}"
        kept = checkpoints.Store(top, keep=1)
        save(kept, 1, text="before")

        class Logged(Feed):
            def commit(self, data):
                log.write_bytes(data)
        def work():
            again = checkpoints.Store(top, keep=1)
            save(again, 2, feed=Logged(2), text="after" * 1000)
        over = crash_at(n, work, os, CALLS)
        found = checkpoints.Store(top, keep=1).latest(verify=True)
        assert (found.step, (found.path / "sub" / "model").read_text()) in ((1, "before"), (2, "after" * 1000))
        assert not log.exists() or found.step == 2
        # Who is started again goes on, and nothing of the crash stays.
        again = checkpoints.Store(top, keep=1)
        if found.step == 1:
            save(again, 2, text="after" * 1000)
        save(again, 3)
        assert again.latest(verify=True).step == 3 and sorted(p.name for p in top.iterdir()) == [".lock", "step-000000000003"]
        shutil.rmtree(top)
        if over:
            break
    assert n > 20


def test_ranks(tmp_path):
    """It is there when all have saved; data counts from then on, also of those that came first."""
    feeds = [Feed(rank) for rank in range(3)]
    stores = [checkpoints.Store(tmp_path, rank=rank, world=3) for rank in range(3)]
    save(stores[2], 5, feeds[2])
    save(stores[0], 5, feeds[0], loss=0.5)
    assert stores[0].latest() is None and not stores[0].settle() and [f.committed for f in feeds] == [None] * 3
    save(stores[1], 5, feeds[1])
    assert [f.committed for f in feeds] == [None, b"at 1", None]
    assert stores[0].settle() and stores[2].settle() and [f.committed for f in feeds] == [b"at 0", b"at 1", b"at 2"]
    found = [s.latest(verify=True) for s in stores]
    assert [c.data for c in found] == [b"at 0", b"at 1", b"at 2"] and [c.path.name for c in found] == ["rank-0", "rank-1", "rank-2"]
    assert {c.metrics["loss"] for c in found} == {0.5}
    # Another rank is started again while its part lies there: it is not part of anything.
    save(stores[0], 6, Feed())
    save(stores[1], 6, Feed())
    checkpoints.Store(tmp_path, rank=1, world=3)
    save(stores[2], 6, Feed())
    assert stores[2].latest().step == 5
    save(checkpoints.Store(tmp_path, rank=1, world=3), 6, Feed(), text="again")
    assert stores[2].settle() and (checkpoints.Store(tmp_path, rank=1, world=3).latest(verify=True).path / "sub" / "model").read_text() == "again"
    # More ranks than before.
    assert checkpoints.Store(tmp_path, rank=3, world=4).latest().path is None


@pytest.mark.parametrize("manifest", [
    "", "[]", "{", "null", "7", json.dumps({"version": 1}), "[" * 100000, '{"version": 1, "step": 1e999}', b"\xff\xfe",
    {"step": -1}, {"step": "1"}, {"rank": 5}, {"world": 0}, {"world": 2**40}, {"files": []}, {"files": {"a": 1}}, {"files": {"../../../../etc/passwd": {"size": 1, "sha256": ""}}},
    {"files": {"/etc/passwd": {"size": 1, "sha256": ""}}}, {"files": {"sub/model": {"size": 10**9, "sha256": ""}}}, {"data": "%%%"}, {"data": 5}, {"metrics": None}, {"version": 2}])
def test_manifests_that_are_not(tmp_path, manifest, capfd):
    kept = checkpoints.Store(tmp_path, keep=2)
    save(kept, 1)
    save(kept, 2)
    path = tmp_path / "step-000000000002" / "manifest-0.json"
    if isinstance(manifest, dict):
        manifest = json.dumps({**json.loads(path.read_text()), **manifest})
    path.write_bytes(manifest if isinstance(manifest, bytes) else manifest.encode())
    assert kept.latest().step == 1
    assert "step-000000000002 is passed over" in capfd.readouterr().err


def test_files_that_are_not(tmp_path, capfd):
    kept = checkpoints.Store(tmp_path, keep=4)
    for step in (1, 2, 3, 4):
        save(kept, step)
    model = lambda step: tmp_path / f"step-{step:012}" / "rank-0" / "sub" / "model"
    model(4).unlink()
    model(3).write_text("x")
    model(2).write_text("STEP 2")
    assert kept.latest().step == 2 and kept.latest(verify=True).step == 1
    assert "is not what was written" in capfd.readouterr().err
    # What cannot be taken for a checkpoint is left alone.
    (tmp_path / "step-notes").mkdir()
    (tmp_path / "step-000000000009").mkdir()
    save(kept, 10)
    assert kept.latest().step == 10 and (tmp_path / "step-notes").exists()


def test_a_directory_that_takes_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        checkpoints.Store(tmp_path / "file")
    kept = checkpoints.Store(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(OSError):
        save(kept, 1)
    if os.getuid() != 0:
        os.chmod(tmp_path, stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(OSError):
            checkpoints.Store(tmp_path / "new")


class Master:
    """What masterd keeps of checkpoints, in a file that outlives who asks."""

    def __init__(self, path):
        self.path = path

    def rows(self):
        return json.loads(self.path.read_text())

    def write(self, rows):
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(rows))
        os.replace(new, self.path)

    def marked(self, after):
        return [r for r in self.rows() if r["id"] > after][:2]

    def ask(self, op, path):
        assert op == "checkpointGone"
        self.write([r for r in self.rows() if r["path"] != path])


def laid_out(top):
    """Five checkpoints, of which 1, 2 and 4 are marked."""
    kept = checkpoints.Store(top, keep=5)
    for step in range(1, 6):
        save(kept, step)
    master = Master(top.with_name(top.name + ".json"))
    master.write([{"id": c.step, "path": str(c.path.parent), "step": c.step, "time": c.time, "host": "n1"} for c in reversed(kept.all()) if c.step in (1, 2, 4)])
    return master


def there(top):
    return [c.step for c in checkpoints.Store(top).all(verify=True)]


def test_collected(tmp_path, capfd):
    master = laid_out(tmp_path / "c")
    assert checkpoints.collect(master, "n2") == 0 and there(tmp_path / "c") == [5, 3] and master.rows() == []
    assert capfd.readouterr().out == "3 checkpoints removed\n"


def test_collector_killed_at_every_call(tmp_path):
    """What is not marked is there, whole; and whoever begins again ends it."""
    n = 0
    while True:
        n += 1
        top = tmp_path / str(n)
        master = laid_out(top)
        over = crash_at(n, lambda: checkpoints.collect(master, "n1"), os, CALLS)
        assert set(there(top)) >= {5, 3} and {r["id"] for r in master.rows()} <= {1, 2, 4}
        assert set(there(top)) & {1, 2, 4} <= {r["id"] for r in master.rows()}, "what masterd has forgotten is gone"
        assert checkpoints.collect(master, "n1") == 0
        assert there(top) == [5, 3] and master.rows() == [] and sorted(p.name for p in top.iterdir()) == [".lock", "step-000000000003", "step-000000000005"]
        if over:
            break
    assert n > 15


def test_what_is_none_of_those(tmp_path, capfd):
    """Another one of that name, one without a manifest, a link, and one that is on another host, are left alone."""
    top = tmp_path / "c"
    master = laid_out(top)
    rows = master.rows()
    rows[0]["time"] += 1
    (top / "step-000000000002" / "manifest-0.json").unlink()
    shutil.move(top / "step-000000000004", tmp_path / "elsewhere")
    (top / "step-000000000004").symlink_to(tmp_path / "elsewhere")
    rows += [{"id": 9, "path": str(tmp_path / "step-000000000009"), "step": 9, "time": 1.0, "host": "n2"},
             {"id": 10, "path": str(tmp_path), "step": 9, "time": 1.0, "host": "n1"}]
    master.write(rows)
    assert checkpoints.collect(master, "n1") == 4 and master.rows() == rows
    said = capfd.readouterr()
    assert said.out == "0 checkpoints removed\n" and said.err.count("is left alone") == 5
    assert "another one than masterd was told of" in said.err and "there is none on n1; it was saved on n2" in said.err
    assert (tmp_path / "elsewhere" / "manifest-0.json").exists() and (top / "step-000000000001").exists()


def test_somebody_goes_on_from_it(tmp_path):
    """Between the list and its turn: it stays."""
    top = tmp_path / "c"
    master = laid_out(top)
    ask = master.ask

    def taken(op, path):
        ask(op, path)
        master.write([r for r in master.rows() if r["id"] != 2])
    master.ask = taken
    assert checkpoints.collect(master, "n1") == 0 and there(top) == [5, 3, 2]


def test_source(tmp_path, monkeypatch):
    """What another training saved, until the job has one of its own; where the data stood is not this job's."""
    monkeypatch.delenv("PRIMUS_FROM", raising=False)
    assert checkpoints.source() is None
    other, kept = checkpoints.Store(tmp_path / "other"), checkpoints.Store(tmp_path / "mine")
    save(other, 7, feed=Feed(3), loss=0.5)
    monkeypatch.setenv("PRIMUS_FROM", str(other.directory / "step-000000000007"))
    found = kept.latest() or checkpoints.source()
    assert (found.step, found.metrics, found.data) == (7, {"loss": 0.5}, None) and (found.path / "sub" / "model").read_text() == "step 7"
    save(kept, 1)
    assert (kept.latest() or checkpoints.source()).step == 1
    (other.directory / "step-000000000007" / "rank-0" / "sub" / "model").unlink()
    with pytest.raises(checkpoints.Broken, match="is not there"):
        checkpoints.source()
