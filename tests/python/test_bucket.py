# SPDX-License-Identifier: Apache-2.0
"""primus.checkpoints in a bucket, by boto3, of a server that checks signatures: whole or not there, whoever is killed at which request."""
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2] / "lib/primus/python"))
pytest.importorskip("boto3")

from primus import _bucket, checkpoints  # noqa: E402
from saving import Feed, crash_at, save  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with subprocess.Popen([sys.executable, HERE.parents[1] / "kit/httpd.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield f"http://127.0.0.1:{running.stdout.readline().strip()}"
        running.stdin.close()


@pytest.fixture
def place(server, monkeypatch, request, tmp_path):
    for name, value in (("AWS_ENDPOINT_URL_S3", server), ("AWS_ACCESS_KEY_ID", "AKIDTEST"), ("AWS_SECRET_ACCESS_KEY", "s3/secret+key"), ("AWS_REGION", "eu-test-1"),
                        ("AWS_DEFAULT_REGION", "eu-test-1"), ("AWS_CONFIG_FILE", str(tmp_path / "none")), ("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none")), ("TMPDIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.delenv("PRIMUS_SOCKET", raising=False)
    monkeypatch.setattr(_bucket, "_scratch", None)
    return f"s3://bucket/of {request.node.name}".replace(" ", "-").replace("[", "-").replace("]", "")


def model(checkpoint):
    return (checkpoint.path / "sub" / "model").read_text()


def test_saved_and_found(place):
    kept, feed = checkpoints.Store(place, keep=2), Feed(7)
    assert kept.latest() is None and kept.all() == []
    with kept.save(10, feed=feed, metadata={"epoch": 1}, loss=0.5) as path:
        (path / "model").write_text("m")
        (path / "a name+ü").write_text("n")
        assert kept.latest() is None and feed.committed is None
    found = checkpoints.Store(place).latest()
    assert (found.step, found.metrics, found.metadata, found.data, found.world) == (10, {"loss": 0.5}, {"epoch": 1}, b"at 7", 1) and feed.committed == b"at 7"
    assert (found.path / "model").read_text() == "m" and (found.path / "a name+ü").read_text() == "n" and [c.path for c in kept.all()] == [None]


def test_which_are_kept(place):
    kept = checkpoints.Store(place, keep=2, keep_best=2, metric="loss")
    for step, loss in ((1, 0.4), (2, 0.1), (3, 0.3), (4, float("nan")), (5, 0.9), (6, 0.8)):
        save(kept, step, loss=loss)
    assert [c.step for c in kept.all(verify=True)] == [6, 5, 3, 2] and model(kept.best()) == "step 2"
    assert sorted({n.split("/")[0] for n in _bucket.Bucket(place).sizes()}) == [*(f"step-{n:012}" for n in (2, 3, 5, 6)), *(f"whole-{n:012}" for n in (2, 3, 5, 6))]
    with pytest.raises(FileExistsError, match="step 6"):
        save(kept, 6)
    kept.forget_after(3)
    save(kept, 4)
    assert [c.step for c in kept.all()] == [4, 3, 2]
    with pytest.raises(RuntimeError):
        with kept.save(9):
            raise RuntimeError
    assert kept.latest().step == 4 and not any(n.startswith("step-000000000009") for n in _bucket.Bucket(place).sizes())


def test_ranks(place):
    feeds = [Feed(rank) for rank in range(3)]
    stores = [checkpoints.Store(place, rank=rank, world=3) for rank in range(3)]
    save(stores[2], 5, feeds[2])
    save(stores[0], 5, feeds[0], loss=0.5)
    assert stores[0].latest() is None and not stores[0].settle() and [f.committed for f in feeds] == [None] * 3
    save(stores[1], 5, feeds[1], text="of rank 1")
    assert stores[0].settle() and stores[2].settle() and [f.committed for f in feeds] == [b"at 0", b"at 1", b"at 2"]
    assert model(stores[1].latest()) == "of rank 1" and stores[2].latest().data == b"at 2"
    assert checkpoints.Store(place, rank=3, world=4).latest().path is None
    # One that is started again in the middle takes its own part away.
    save(stores[1], 6, feeds[1])
    checkpoints.Store(place, rank=1, world=3)
    save(stores[0], 6, feeds[0])
    save(stores[2], 6, feeds[2])
    assert stores[0].latest().step == 5


def test_broken(place, capfd):
    kept, bucket = checkpoints.Store(place, keep=4), _bucket.Bucket(place)
    for step in range(1, 5):
        save(kept, step)
    bucket.remove(["step-000000000004/rank-0/sub/model"])
    bucket.put("step-000000000003/rank-0/sub/model", "STEP 3")
    bucket.put("step-000000000002/manifest-0.json", bucket.get("step-000000000002/manifest-0.json", 1 << 20).replace("sub/model", "../../model"))
    assert kept.latest().step == 1
    said = capfd.readouterr().err
    assert "000004 is passed over" in said and "is not what was written" in said and "000002 is passed over" in said
    assert not list(pathlib.Path(os.environ["TMPDIR"]).glob("**/model"))


CALLS = ("put_file", "put", "remove")


def test_killed_at_every_request(place):
    n, over = 0, False
    while not over:
        n += 1
        top = f"{place}/{n}"
        save(checkpoints.Store(top, keep=1), 1, text="before")
        over = crash_at(n, lambda: save(checkpoints.Store(top, keep=1), 2, text="after"), _bucket.Bucket, CALLS)
        found = checkpoints.Store(top, keep=1).latest()
        assert (found.step, model(found)) in ((1, "before"), (2, "after"))
        again = checkpoints.Store(top, keep=1)
        if found.step == 1:
            save(again, 2, text="after")
        save(again, 3)
        assert again.latest().step == 3 and {name.split("/")[0] for name in _bucket.Bucket(top).sizes()} == {"step-000000000003", "whole-000000000003"}
    assert n > 7


class Master:
    def __init__(self, rows):
        self.rows = rows

    def marked(self, after):
        return [r for r in self.rows if r["id"] > after][:2]

    def ask(self, op, path):
        assert op == "checkpointGone"
        self.rows = [r for r in self.rows if r["path"] != path]


def test_collected(place, capfd):
    """Whenever the collector is killed, what is not marked is there, whole, and the next one ends it; another one is left alone."""
    n, over = 0, False
    while not over:
        n += 1
        kept = checkpoints.Store(f"{place}/{n}", keep=5)
        for step in (1, 2, 3):
            save(kept, step)
        rows = [{"id": c.step, "path": f"{place}/{n}/step-{c.step:012}", "step": c.step, "time": c.time, "host": "n1"} for c in reversed(kept.all()) if c.step < 3]
        over = crash_at(n, lambda: checkpoints.collect(Master(rows), "n2"), _bucket.Bucket, CALLS)
        assert model(kept.latest()) == "step 3"
        master = Master(rows)
        assert checkpoints.collect(master, "n2") == 0 and master.rows == []
        assert {name.split("/")[0] for name in _bucket.Bucket(f"{place}/{n}").sizes()} == {"step-000000000003", "whole-000000000003"}
    assert n > 5
    other = Master([{"id": 1, "path": f"{place}/{n}/step-000000000003", "step": 3, "time": 1.0, "host": "n1"},
                    {"id": 2, "path": f"{place}/{n}", "step": 3, "time": 1.0, "host": "n1"}, {"id": 3, "path": "s3://", "step": 3, "time": 1.0, "host": "n1"}])
    assert checkpoints.collect(other, "n1") == 3 and len(other.rows) == 3 and kept.latest().step == 3
    assert "another one than masterd was told of" in capfd.readouterr().err


def test_source(place, monkeypatch):
    save(checkpoints.Store(f"{place}/other"), 7, feed=Feed(3), loss=0.5)
    monkeypatch.setenv("PRIMUS_FROM", f"{place}/other/step-000000000007")
    found = checkpoints.Store(f"{place}/mine").latest() or checkpoints.source()
    assert (found.step, found.metrics, found.data) == (7, {"loss": 0.5}, None) and model(found) == "step 7"


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3://bucket/", "s3://b/x", "s3://bucket/a/../b", "s3://bucket//a", "s3://BUCKET/a", "s3://bucket/a\nb"])
def test_no_place(place, url):
    with pytest.raises(ValueError, match="no place in a bucket"):
        checkpoints.Store(url)


def test_refused(place, monkeypatch):
    """A wrong key, and nobody who answers: a sentence, and no checkpoint."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(OSError, match="SignatureDoesNotMatch"):
        checkpoints.Store(place)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(OSError, match="127.0.0.1:9"):
        checkpoints.Store(place)


SHIM = """
import json
from determined import core
d = core.DistributedContext.from_torch_distributed()
with core.init(distributed=d) as context:
    for n in (1, 2):
        with context.checkpoint.store_path({"steps_completed": n, f"rank{d.rank}": n}, shard=True) as (path, uuid):
            (path / "sub").mkdir()
            (path / "sub" / f"part-{d.rank}").write_text(f"{n} of {d.rank}")
            (path / "common").write_text("same")
    try:
        with context.checkpoint.store_path({"steps_completed": 3}, shard=True) as (path, _):
            (path / "common").write_text(str(d.rank))
    except RuntimeError as e:
        print(e)
    with context.checkpoint.restore_path(uuid) as path:
        print({str(f.relative_to(path)): f.read_text() for f in sorted(path.rglob("*")) if f.is_file()})
    with context.checkpoint.restore_path(uuid, core.DownloadMode.NoSharedDownload) as path:
        assert (path / "common").read_text() == "same"
    context.checkpoint.download(uuid, "copy", selector=lambda name: name.startswith("sub/"))
    if d.rank == 0:
        with context.checkpoint.store_path({"steps_completed": 3}) as (path, latest):
            (path / "alone").write_text("x")
        context.checkpoint.delete(latest)
    print(uuid, json.dumps(context.checkpoint.get_metadata(uuid)))
"""


def test_of_the_determined_shim(place, tmp_path):
    """Three ranks of one checkpoint: each writes its part, and who goes on finds all of them together."""
    (tmp_path / "script.py").write_text(SHIM)
    ranks = [subprocess.Popen([sys.executable, "-m", "primus.determined", tmp_path / "script.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(HERE.parents[2] / "lib/primus/python"), "PYTHONDONTWRITEBYTECODE": "1", "RANK": str(r), "LOCAL_RANK": str(r),
                                   "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "PRIMUS_DETERMINED_CHECKPOINTS": place}) for r in range(3)]
    said = [rank.communicate(timeout=60)[0].splitlines() for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0]
    files = {"common": "same", **{f"sub/part-{r}": f"2 of {r}" for r in range(3)}}
    for lines in said:
        assert lines == ["refusing to upload with file conflicts: ['common']", str(files),
                         'trial-0-checkpoint-2 {"steps_completed": 2, "rank0": 2, "rank1": 2, "rank2": 2}']
    assert sorted(p.name for p in (tmp_path / "copy").rglob("*")) == ["part-0", "part-1", "part-2", "sub"]
    # At the end the latest is kept, and the file that all had is there once.
    names = sorted(_bucket.Bucket(place).sizes())
    assert [n for n in names if n.endswith("/common")] == ["trial-0/step-000000000002/rank-0/common"]
    assert {n.split("/")[1] for n in names} == {"step-000000000002", "whole-000000000002"}


def test_who_looks(place):
    """Another process that looks leaves alone what is being saved."""
    kept = checkpoints.Store(place)
    save(kept, 1)
    with kept.save(2) as path:
        (path / "model").write_text("m")
        looking = checkpoints.Store(place, looks=True)
        assert model(looking.latest()) == "step 1"
        with pytest.raises(ValueError, match="saves nothing"), looking.save(3):
            pass
    assert looking.latest().step == 2


def test_where_it_is(place, monkeypatch, tmp_path):
    """The profile's endpoint_url, where the environment says none."""
    (tmp_path / "config").write_text(f"[default]\nendpoint_url = {os.environ['AWS_ENDPOINT_URL_S3']}\n[profile other]\nendpoint_url = http://127.0.0.1:1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    kept = checkpoints.Store(place)
    save(kept, 1)
    assert model(kept.latest()) == "step 1"
    monkeypatch.setenv("AWS_PROFILE", "other")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(OSError, match="127.0.0.1:1"):
        checkpoints.Store(place)
