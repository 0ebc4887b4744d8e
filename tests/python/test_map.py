# SPDX-License-Identifier: Apache-2.0
"""primus.torch.MapDataset and ElasticSampler: samples by number, and which ones a rank gets."""
import collections
import io
import json
import pickle
import subprocess
import sys
import textwrap

import pytest

from conftest import TOP

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
sys.path.insert(0, str(TOP / "lib/primus/python"))

from torch.utils.data import BatchSampler, DataLoader, TensorDataset  # noqa: E402

from primus._sampler import _mix, permuted  # noqa: E402
from primus.torch import ElasticSampler, MapDataset  # noqa: E402

LOADS_TORCH = True  # see conftest.py's --unsanitized


@pytest.fixture
def rows(tmp_path):
    """1,000 rows of 3 in three files, one of them empty; row i begins with i."""
    all_of_them = numpy.arange(3000, dtype=numpy.float32).reshape(1000, 3) / 3
    all_of_them[:, 0] = numpy.arange(1000)
    paths = []
    for k, (begin, end) in enumerate(((0, 300), (300, 300), (300, 1000))):
        paths.append(tmp_path / f"{k}.npy")
        numpy.save(paths[-1], all_of_them[begin:end])
    return paths, all_of_them


def first_of(row):
    return int(row[0])


def not_the_301st(row):
    if row[0] == 301:
        raise ValueError("oops")
    return int(row[0])


# ---- MapDataset ----

def test_rows(rows):
    paths, want = rows
    data = MapDataset(paths)
    assert len(data) == 1000
    assert all(torch.equal(data[i], torch.from_numpy(want[i])) for i in (0, 299, 300, 999))
    assert torch.equal(data[-1], torch.from_numpy(want[-1]))
    assert data.where(301) == (str(paths[2]), 1)
    for beyond in (1000, -1001):
        with pytest.raises(IndexError):
            data[beyond]
    data[0][0] = 7  # one's own: the file is not written
    assert data[0][0] == 0


@pytest.mark.parametrize("method", ("fork", "spawn"))
@pytest.mark.parametrize("workers", (0, 2, 8))
def test_loader(rows, workers, method):
    if workers == 8 and method == "spawn":
        pytest.skip("eight interpreters are slow, and no other case than two")
    loader = DataLoader(MapDataset(rows[0], first_of), batch_size=64, num_workers=workers, shuffle=True,
                        multiprocessing_context=method if workers else None)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(1000))


@pytest.mark.parametrize("workers", (0, 1))
def test_bad_sample_is_named(rows, workers):
    with pytest.raises(ValueError) as e:
        for _ in DataLoader(MapDataset(rows[0], not_the_301st), num_workers=workers):
            pass
    said = str(e.value) + "".join(getattr(e.value, "__notes__", ()))
    assert "oops" in said and f"primus: the sample is row 1 of {rows[0][2]}" in said


def bytes_of(array, **more):
    f = io.BytesIO()
    numpy.save(f, array, **more)
    return f.getvalue()


GOOD = bytes_of(numpy.zeros((4, 3), numpy.float32))


@pytest.mark.parametrize("content, why", (
    (b"", "not a .npy file"),
    (b"0.5,0.25\n", "not a .npy file"),
    (GOOD[:158], "not a .npy file"),  # a row and a half are missing
    (GOOD[:40], "not a .npy file"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + GOOD[10:], "4294967295 bytes"),
    (GOOD.replace(b"'<f4'", b"'|O' "), "not a .npy file"),
    (GOOD.replace(b"(4, 3)", b"(-4,3)"), "not a .npy file"),
    (GOOD.replace(b"(4, 3)", b"(9**9)"), "not a .npy file"),
    (bytes_of(numpy.array(["a", None], dtype=object), allow_pickle=True), "not a .npy file"),
    (bytes_of(numpy.float32(1)), "one value without rows"),
    (bytes_of(numpy.zeros((4, 2), numpy.float32)), "rows of float32 (2,), but those of "),
    (bytes_of(numpy.zeros((4, 3), numpy.int64)), "rows of int64 (3,), but those of "),
), ids=range(12))
def test_what_is_no_such_file(rows, tmp_path, content, why):
    bad = tmp_path / "bad.npy"
    bad.write_bytes(content)
    with pytest.raises(ValueError) as e:
        MapDataset([*rows[0], bad])
    assert str(e.value).startswith(f"{bad}: ") and why in str(e.value)


def test_no_files(tmp_path):
    with pytest.raises(ValueError, match="no file"):
        MapDataset([])
    with pytest.raises(FileNotFoundError, match="none.npy"):
        MapDataset(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="openFiles"):
        MapDataset(["x"] * (1 << 24))


def test_types(tmp_path):
    path = tmp_path / "strings.npy"
    numpy.save(path, numpy.array(["a", "bc"]))
    with pytest.raises(ValueError, match="decode="):
        MapDataset(path)
    assert MapDataset(path, str)[1] == "bc"


def test_a_file_that_became_another(rows):
    data = pickle.dumps(MapDataset(rows[0]))
    numpy.save(rows[0][0], numpy.zeros((7, 3), numpy.float32))
    with pytest.raises(ValueError, match="another array"):
        pickle.loads(data)[0]


# ---- the order ----

@pytest.mark.parametrize("size", (1, 2, 3, 17, 1000, 4096, 4097, 65536, 100003))
def test_permutation(size):
    places = numpy.arange(size, dtype=numpy.uint64)
    assert numpy.array_equal(numpy.sort(permuted(places, size, _mix(5))), places)


def test_the_order_never_changes():
    """Checkpoints name it. An order that is another needs another name."""
    def first(n, size):
        return permuted(numpy.arange(n, dtype=numpy.uint64), size, 1).tolist()
    assert first(10, 10) == [5, 6, 1, 9, 7, 2, 3, 8, 0, 4]
    assert first(8, 5000) == [225, 1393, 576, 2133, 1076, 1818, 3523, 4718]
    assert first(3, 10**12) == [580082703689, 283511069708, 326949275065]


@pytest.mark.parametrize("size, cells, epochs", ((10, 10, 4000), (5000, 20, 200)))
def test_every_place_is_as_likely(size, cells, epochs):
    """Chi-squared over where samples stand; it is the same every time, for the seed is."""
    counts = numpy.zeros((cells, cells))
    places = numpy.arange(size, dtype=numpy.uint64)
    for epoch in range(epochs):
        at = permuted(places, size, _mix(_mix(3) ^ epoch)).astype(int)
        numpy.add.at(counts, (numpy.arange(size) * cells // size, at * cells // size), 1)
    expected = size * epochs / cells**2
    freedom = (cells - 1)**2
    assert abs(((counts - expected)**2 / expected).sum() - freedom) < 4 * (2 * freedom)**0.5


# ---- ElasticSampler ----

@pytest.mark.parametrize("shuffle", (True, False))
@pytest.mark.parametrize("size, ranks", ((0, 3), (1, 4), (2, 8), (100, 1), (100, 3), (99, 3), (10000, 7)))
def test_ranks_share_the_samples(size, ranks, shuffle):
    for drop_last in (False, True):
        got = [list(ElasticSampler(size, ranks, r, shuffle=shuffle, seed=1, drop_last=drop_last)) for r in range(ranks)]
        assert {len(g) for g in got} == {size // ranks if drop_last else -(-size // ranks)}
        assert [len(ElasticSampler(size, ranks, r, drop_last=drop_last)) for r in range(ranks)] == [len(g) for g in got]
        count = collections.Counter(i for g in got for i in g)
        if drop_last:
            assert max(count.values(), default=1) == 1 and len(count) == size - size % ranks
        else:
            assert set(count) == set(range(size)) and sum(count.values()) - size == -size % ranks


def test_epochs_and_seeds():
    def order(seed, epoch):
        s = ElasticSampler(1000, 1, 0, seed=seed)
        s.set_epoch(epoch)
        return tuple(s)
    assert order(1, 0) == order(1, 0)
    assert len({order(seed, epoch) for seed in range(3) for epoch in range(3)} | {tuple(range(1000))}) == 10


@pytest.mark.parametrize("workers", (0, 2, 8))
@pytest.mark.parametrize("before, after", ((1, 1), (4, 3), (3, 8), (2, 1)))
def test_resume_in_the_middle(rows, before, after, workers):
    """What came out of the loaders, not what their workers had taken, and the rest of the epoch: every sample once."""
    if workers == 8 and before * after > 8:
        pytest.skip("processes enough")
    data = MapDataset(rows[0], first_of)
    seen, states = [], []
    for rank in range(before):
        sampler = ElasticSampler(data, before, rank, seed=9)
        for step, batch in enumerate(sampler.counted(DataLoader(data, batch_size=16, sampler=sampler, num_workers=workers))):
            seen += batch.tolist()
            if step == 6:
                states.append(sampler.state_dict())
                break
    assert all(state == states[0] for state in states) and states[0]["position"] == 7 * 16 * before == len(seen)
    for rank in range(after):
        sampler = ElasticSampler(data, after, rank, drop_last=True)
        sampler.load_state_dict(states[0])
        loader = DataLoader(data, batch_size=16, sampler=sampler, num_workers=workers)
        for batch in sampler.counted(loader):
            seen += batch.tolist()
        assert (sampler.epoch, sampler.state_dict()["position"]) == (1, 0)
    assert len(set(seen)) == len(seen) and len(seen) == 1000 - (1000 - 7 * 16 * before) % after


def test_ranks_change_while_it_runs():
    samplers, seen = [ElasticSampler(1000, 4, r, seed=2) for r in range(4)], []
    for s in samplers:
        taken = list(s)[:100]
        s.advance(50)
        seen += taken[:50]
    for rank, s in enumerate(samplers[:3]):
        s.resize(3, rank)
        seen += list(s)
    assert set(seen) == set(range(1000)) and len(seen) == 200 + 801


def test_a_loop_that_is_left_goes_on():
    data = TensorDataset(torch.arange(100))
    sampler = ElasticSampler(data, 1, 0)
    loader = DataLoader(data, batch_size=7, sampler=sampler)
    want, seen = list(sampler), []
    for batch, in sampler.counted(loader):
        seen += batch.tolist()
        if len(seen) >= 30:
            break
    assert len(sampler) == 100 - len(seen)
    sampler.set_epoch(0)  # the one that it is in
    for batch, in sampler.counted(loader):
        seen += batch.tolist()
    assert seen == want and sampler.epoch == 1 and len(sampler) == 100


def test_the_end_of_an_epoch_as_a_state():
    sampler = ElasticSampler(10, 3, 0)
    sampler.advance(4)
    state = sampler.state_dict()
    assert state["position"] == 10
    other = ElasticSampler(10, 2, 1)
    other.load_state_dict(state)
    assert len(other) == 0 and list(other) == []
    assert list(other.counted(DataLoader(range(10), sampler=other))) == [] and other.epoch == 1 and len(other) == 5


@pytest.mark.parametrize("make, size", (
    (lambda data, s: DataLoader(data, batch_size=8, sampler=s), 8),
    (lambda data, s: DataLoader(data, batch_size=8, sampler=s, drop_last=True), 8),
    (lambda data, s: DataLoader(data, batch_size=None, sampler=s), 1),
    (lambda data, s: DataLoader(data, batch_sampler=BatchSampler(s, 8, False)), 8),
    (lambda data, s: DataLoader(data, batch_size=None, sampler=BatchSampler(s, 8, False), collate_fn=len), 8),
))
def test_ways_to_make_batches(make, size):
    class Data:
        def __len__(self):
            return 50

        def __getitem__(self, i):
            return i
    sampler = ElasticSampler(50, 1, 0)
    for n, _ in enumerate(sampler.counted(make(Data(), sampler)), 1):
        assert sampler.state_dict()["position"] == min(n * size, 50)
    assert sampler.epoch == 1


def test_what_is_refused():
    data = TensorDataset(torch.arange(100))
    sampler = ElasticSampler(data, 1, 0)
    with pytest.raises(ValueError, match="advance"):
        next(sampler.counted(DataLoader(data, batch_size=4)))
    with pytest.raises(ValueError, match="advance"):
        next(sampler.counted(DataLoader(data, batch_size=4, sampler=ElasticSampler(data, 1, 0))))
    next(iter(DataLoader(data, sampler=sampler)))
    with pytest.raises(RuntimeError, match="counted"):
        sampler.state_dict()
    with pytest.raises(ValueError):
        sampler.advance(101)
    state = ElasticSampler(data, 1, 0).state_dict()
    for change in ({"version": 2}, {"order": "feistel-2"}, {"size": 99}, {"position": 101}, {"position": -1}, {"seed": -1}):
        with pytest.raises(ValueError):
            sampler.load_state_dict({**state, **change})
    for arguments in ((100, 2), (100, 2, 2), (100, 0, 0), (-1, 1, 0)):
        with pytest.raises(ValueError):
            ElasticSampler(*arguments)


def test_without_numpy(environment):
    """torch can do without, and so can what does not need it."""
    script = ("import sys, torch; sys.modules['numpy'] = None\n"
              "import primus.torch as t; t.TaskDataset()\ntry: t.ElasticSampler(3)\nexcept ImportError as e: print(e)")
    p = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=100, env=environment)
    assert p.stdout == "primus.torch.ElasticSampler needs numpy: install python3-numpy\n", p.stderr


def test_ranks_of_the_environment(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "3")
    s = ElasticSampler(100)
    assert (s.num_replicas, s.rank) == (4, 3)
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(ValueError, match="RANK"):
        ElasticSampler(100)
    monkeypatch.delenv("RANK")
    s = ElasticSampler(100)
    assert (s.num_replicas, s.rank) == (1, 0)


DDP = """
    import json, os, sys
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader
    import primus.torch
    rank, world, stop = (int(a) for a in sys.argv[1:4])
    dist.init_process_group("gloo", init_method=f"file://{os.path.abspath(sys.argv[4])}", rank=rank, world_size=world)
    data = primus.torch.MapDataset(sys.argv[5:], lambda row: torch.from_numpy(row.copy()))
    sampler = primus.torch.ElasticSampler(data, seed=3)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    if os.path.exists("state"):
        sampler.load_state_dict(torch.load("state"))
    seen = []
    for step, batch in enumerate(sampler.counted(DataLoader(data, batch_size=10, num_workers=1, sampler=sampler))):
        model(batch).sum().backward()
        seen += batch[:, 0].int().tolist()
        if step + 1 == stop:
            if rank == 0:
                torch.save(sampler.state_dict(), "state")
            break
    json.dump(seen, open(f"seen-{world}-{rank}", "w"))
    dist.barrier()
    """


def test_ddp(rows, environment, tmp_path):
    """Two ranks, then three from the checkpoint of the first of them."""
    script = tmp_path / "ddp.py"
    script.write_text(textwrap.dedent(DDP))
    seen = []
    for world, stop in ((2, 20), (3, 0)):
        ranks = [subprocess.Popen([sys.executable, script, str(rank), str(world), str(stop), f"store-{world}", *rows[0]],
                                  cwd=tmp_path, env={**environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"})
                 for rank in range(world)]
        try:
            assert [p.wait(timeout=100) for p in ranks] == [0] * world
        finally:  # the others wait for one that has failed
            for p in ranks:
                p.kill()
                p.wait()
        seen += [i for rank in range(world) for i in json.loads((tmp_path / f"seen-{world}-{rank}").read_text())]
    assert set(seen) == set(range(1000)) and len(seen) == 400 + 600
