# SPDX-License-Identifier: Apache-2.0
"""primus.torch.collate: how batches get from a loader's workers to the trainer; and TaskDataset(batch=...)."""
import collections
import gc
import os
import sys

import pytest

from conftest import TOP

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
sys.path.insert(0, str(TOP / "lib/primus/python"))

from torch.utils.data import DataLoader, default_collate  # noqa: E402

from primus import _batch  # noqa: E402
from primus.torch import TaskDataset, collate  # noqa: E402

LOADS_TORCH = True  # see conftest.py's --unsanitized

LARGE = 50000  # of float32: 200 kB
Pair = collections.namedtuple("Pair", "a b")


class Samples:
    """Map-style: sample i is made(i)."""

    def __init__(self, n, made):
        self.n, self.made = n, made

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.made(i)


def large(i):
    return torch.full((LARGE,), float(i)), i


def growing(i):
    return torch.full((10000 * (i // 4 + 1),), float(i))


def many_things(i):
    g = torch.Generator().manual_seed(i)
    return {
        "float": torch.rand(3, 5, generator=g), "half": torch.rand(7, generator=g).half(), "bfloat": torch.rand(2, generator=g).bfloat16(),
        "bool": torch.tensor([i % 2 == 0, True]), "scalar": torch.tensor(i), "none": torch.empty(0), "complex": torch.rand(2, generator=g) * 1j,
        "transposed": torch.rand(3, 2, generator=g).t(), "byte": torch.arange(i, i + 3, dtype=torch.uint8),
        "numbers": (i, i / 3, i % 2 == 0), "text": f"sample {i}", "bytes": b"%d" % i, "pair": Pair(i, torch.rand(2, generator=g)),
        "array": numpy.arange(i, i + 4, dtype=numpy.int16), "number": numpy.float32(i), "list": [torch.rand(2, generator=g), [i, "x"]],
    }


def with_gradient(i):
    return torch.rand(20000, requires_grad=True) * 0 + i


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        assert a == b


@pytest.mark.parametrize("workers, method", ((0, None), (1, "fork"), (2, "fork"), (2, "spawn")))
def test_as_torch_does_it(workers, method):
    data = Samples(50, many_things)
    ours = list(DataLoader(data, batch_size=8, collate_fn=collate, num_workers=workers, multiprocessing_context=method))
    theirs = list(DataLoader(data, batch_size=8, collate_fn=default_collate))
    same(ours, theirs)
    for batch in ours:
        batch["float"][0, 0, 0] = 7  # one may write into it


def test_what_cannot_be_stacked():
    for bad in ([(1, 2), (1,)], [torch.ones(2), torch.ones(3)], [object(), object()]):
        with pytest.raises((RuntimeError, TypeError)):
            default_collate(bad)
        with pytest.raises((RuntimeError, TypeError)):
            collate(bad)


@pytest.fixture
def memory():
    """Whether batches lie in slabs can be seen."""
    _batch._mappings.clear()
    yield _batch._mappings
    _batch._mappings.clear()


def check(batch, k):
    tensor, numbers = batch
    assert numbers.tolist() == [4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3]
    assert torch.equal(tensor, torch.tensor([float(n) for n in numbers])[:, None].expand(4, LARGE))


@pytest.mark.parametrize("workers", (1, 3))
def test_slabs_are_used_again(memory, workers):
    for k, batch in enumerate(DataLoader(Samples(400, large), batch_size=4, collate_fn=collate, num_workers=workers)):
        check(batch, k)
    assert 0 < len(memory) <= workers * 5  # two asked for ahead, one here, one that is let go of, one that is made


def test_a_trainer_may_keep_what_it_got(memory):
    """All of it, parts of it, and for as long as it likes: torch's own way where there are no slabs left."""
    kept = list(DataLoader(Samples(120, large), batch_size=4, collate_fn=collate, num_workers=1))
    assert len(memory) == _batch.SLABS_MAX
    rows = [batch[0][1] for batch in kept]
    for k, batch in enumerate(kept):
        check(batch, k)
    del kept, batch
    gc.collect()
    more = DataLoader(Samples(120, large), batch_size=4, collate_fn=collate, num_workers=1)
    for k, batch in enumerate(more):
        check(batch, k)
    assert all(torch.equal(row, torch.full((LARGE,), 4.0 * k + 1)) for k, row in enumerate(rows))


def test_batches_that_grow(memory):
    for k, batch in enumerate(DataLoader(Samples(160, growing), batch_size=4, collate_fn=collate, num_workers=1)):
        assert torch.equal(batch, torch.tensor([4.0 * k + n for n in range(4)])[:, None].expand(4, 10000 * (k + 1)))
    assert len(memory) <= _batch.SLABS_MAX


def test_workers_that_are_gone_leave_nothing(memory):
    for _ in range(4):
        for k, batch in enumerate(DataLoader(Samples(40, large), batch_size=4, collate_fn=collate, num_workers=2)):
            check(batch, k)
    assert len({pid for pid, _ in memory}) <= 2 + 1  # those of the last loader, of which one may have come before the other had gone


def test_workers_that_stay(memory):
    loader = DataLoader(Samples(40, large), batch_size=4, collate_fn=collate, num_workers=2, persistent_workers=True)
    for _ in range(5):
        for k, batch in enumerate(loader):
            check(batch, k)
    assert len({pid for pid, _ in memory}) == 2


def test_a_forked_child_lets_go_of_nothing(memory):
    """It has objects of the batch, and not the batch."""
    batches = iter(DataLoader(Samples(40, large), batch_size=4, collate_fn=collate, num_workers=1))
    first = next(batches)
    pid = os.fork()
    if pid == 0:
        try:
            del first
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    for k, batch in enumerate(batches, 1):
        check(batch, k)
    check(first, 0)


def test_what_goes_another_way(memory):
    for k, batch in enumerate(DataLoader(Samples(12, with_gradient), batch_size=4, num_workers=0, collate_fn=collate)):
        assert batch.requires_grad and batch.shape == (4, 20000)
    packed = _batch.Packed(torch.rand(3, requires_grad=True))
    assert packed.__reduce__()[0] is _batch._same
    assert not memory


BATCHES = """
    import sys
    import primus.torch
    from torch.utils.data import DataLoader
    import torch
    def decode(records):
        assert type(records) is list
        return torch.tensor([len(r) for r in records]), [r.decode() for r in records]
    workers = int(sys.argv[1])
    for sizes, texts in DataLoader(primus.torch.TaskDataset(decode, batch=50), batch_size=None, num_workers=workers):
        assert 0 < len(texts) <= 50 and sizes.tolist() == [len(t) for t in texts]
        print("\\n".join(texts))
        print(len(texts), file=sys.stderr)
    """


@pytest.mark.parametrize("mode, workers", (("ring", 0), ("ring", 2), ("descriptor", 0), ("descriptor", 2), ("stdin", 0)))
def test_batches_of_records(run, text_files, mode, workers):
    o = run(BATCHES, text_files, mode=mode, task_size=20000, arguments=[workers])
    assert sorted(o.output.splitlines()) == sorted(line for path in text_files for line in path.read_text().splitlines())
    sizes = [int(n) for n in o.error.split()]
    assert sum(n < 50 for n in sizes) <= max(workers, 1)


def test_a_bad_record_of_a_batch_is_named(run, text_files):
    lines = text_files[1].read_bytes().split(b"\n")
    lines[1500] = b"oops"
    text_files[1].write_bytes(b"\n".join(lines))
    o = run("""
        import primus.torch
        def decode(records):
            if b"oops" in records:
                raise ValueError("could not convert")
            return records
        try:
            for batch in primus.torch.TaskDataset(decode, batch=50):
                pass
        except ValueError as e:
            print("".join(getattr(e, "__notes__", ())) or e)
        """, text_files)
    # 3,000 lines before it: batches begin at each fiftieth
    assert "the last of 50 records is line 1550, byte" in o.output and str(text_files[1]) in o.output


def test_what_batches_cannot_do():
    for arguments in ({"batch": 0, "decode": len}, {"batch": 4}, {"batch": 4, "decode": len, "on_error": "skip"}):
        with pytest.raises(ValueError, match="batch="):
            TaskDataset(**arguments)


def test_state_of_batches(run, text_files, tmp_path):
    """What counts is what came out, also where a batch is of two blocks."""
    source = """
        import os, primus.torch, torch
        from torch.utils.data import DataLoader
        data = primus.torch.TaskDataset(lambda records: [r.decode() for r in records], batch=7)
        if os.path.exists("state"):
            data.load_state_dict(torch.load("state"))
        out = open("seen", "a")
        for step, batch in enumerate(DataLoader(data, batch_size=None)):
            out.write("".join(s + "\\n" for s in batch))
            if step == 300:
                out.flush()
                torch.save(data.state_dict(), "state")
                os._exit(3)
        """
    n = sum(len(path.read_text().splitlines()) for path in text_files)
    for _ in range(n // (301 * 7)):
        run(source, text_files, ack="checkpoint", task_size=9000, status=3)
    run(source, text_files, ack="checkpoint", task_size=9000)
    assert (tmp_path / "seen").read_text().splitlines() == [line for path in text_files for line in path.read_text().splitlines()]
