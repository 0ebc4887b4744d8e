# SPDX-License-Identifier: Apache-2.0
"""primus.torch.LockstepDataset: what of an epoch is whose, in which order, and going on. Without Primus, and without ranks that
know of each other: each is made here with its number."""
import collections
import os
import subprocess
import sys

import pytest

if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
    pytest.skip("python3-torch is not installed", allow_module_level=True)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib", "primus", "python"))
import io
import json
import tarfile

import numpy as np

import primus.torch
from primus import _order
from primus.torch import LockstepDataset, LockstepLoader

LOADS_TORCH = True  # see conftest.py's --unsanitized


@pytest.fixture
def lines(tmp_path):
    """5003 lines in 4 files, of various lengths, some of them empty; the last file has no newline at its end."""
    at = 0
    for number in range(4):
        n = (2000, 1, 3001, 1)[number]
        text = "\n".join(f"{i}," + "x" * (i * 7 % 90) for i in range(at, at + n)) + ("\n" if number < 3 else "")
        (tmp_path / f"part-{number}.txt").write_text(text)
        at += n
    return f"{tmp_path}/part-*.txt"


def number(line):
    return int(line.split(b",")[0])


def loaders(files, n, batch, workers=0, **options):
    return [LockstepLoader(LockstepDataset(number, batch, files=files, rank=rank, world_size=n, **options), num_workers=workers)
            for rank in range(n)]


def epoch(loaders):
    """The batches of all ranks, each as they would be trained on together."""
    batches = [[batch.tolist() for batch in loader] for loader in loaders]
    assert len({len(b) for b in batches}) == 1, "as many for every rank"
    for step in zip(*batches):
        assert len({len(b) for b in step}) == 1, "and as large"
    return [list(step) for step in zip(*batches)]


def flat(steps):
    """In the order of the epoch: ranks take positions in turn."""
    return [sample for step in steps for row in zip(*step) for sample in row]


@pytest.mark.parametrize("n", (1, 3, 4))
@pytest.mark.parametrize("shuffle", (True, False))
def test_every_sample_once_an_epoch(lines, n, shuffle):
    ranks = loaders(lines, n, 10, lockstep="pad", shuffle=shuffle)
    seen = []
    for at in range(2):
        assert {rank.epoch for rank in ranks} == {at}
        steps = epoch(ranks)
        assert len(steps) == len(ranks[0]) == -(-5003 // (10 * n))
        seen.append(flat(steps))
        assert sorted(seen[-1][:5003]) == list(range(5003))
        assert seen[-1][5003:] == seen[-1][:-5003 % n], "what is there twice is the beginning"
    assert (seen[0] == seen[1]) == (not shuffle)
    assert (seen[0][:5003] == list(range(5003))) == (not shuffle)


@pytest.mark.parametrize("n", (1, 3, 4))
def test_drop_leaves_out_what_makes_no_batch_of_all(lines, n):
    ranks = loaders(lines, n, 64)
    steps = epoch(ranks)
    assert len(steps) == len(ranks[0]) == 5003 // (64 * n)
    got = flat(steps)
    assert len(got) == len(set(got)) == len(steps) * 64 * n
    assert len(ranks[0].dataset) == 64 * len(steps)


def test_the_order_is_the_same_for_any_ranks_batches_and_workers(lines):
    want = flat(epoch(loaders(lines, 1, 8, lockstep="pad")))
    for n, batch, workers in ((2, 5, 0), (3, 16, 2), (1, 64, 3), (7, 3, 0), (48, 1, 0), (50, 2, 0)):
        assert flat(epoch(loaders(lines, n, batch, workers, lockstep="pad")))[:5003] == want, (n, batch, workers)


def test_going_on_with_other_ranks_and_workers(lines):
    """Killed again and again, each time in the middle and with other ranks: one sequence of samples."""
    want = [flat(epoch(rank)) for rank in [loaders(lines, 1, 1, lockstep="pad")] for _ in range(3)]
    state, got = None, [[], [], []]
    turns = [(2, 16, 0, 40), (3, 16, 2, 7), (1, 64, 1, 30), (4, 5, 0, 200), (2, 100, 2, 10), (5, 8, 0, 77), (1, 32, 8, 500)]
    for n, batch, workers, steps in turns:
        ranks = loaders(lines, n, batch, workers, lockstep="pad")
        for rank in ranks:
            if state:
                rank.load_state_dict(state)
        while steps > 0 and ranks[0].epoch < 3:
            at = ranks[0].epoch
            for step in zip(*ranks):
                if steps == 0:
                    break
                steps -= 1
                got[at] += [sample for row in zip(*(b.tolist() for b in step)) for sample in row]
                states = [rank.state_dict() for rank in ranks]
                assert all(s == states[0] for s in states)
                state = states[0]
                left = 5003 - state["samples"]
                if left == 0 and n > 1:
                    del got[at][5003:]
        if ranks[0].epoch >= 3:
            break
    assert state["epoch"] == 2 and state["samples"] == 5003
    assert got == want


def test_at_the_last_batch_the_epoch_is_not_over(lines):
    """Whoever goes on from there gets no more batches of it, but its end: validation and schedule are not left out."""
    loader, = loaders(lines, 1, 100, lockstep="pad")
    for batch in loader:
        state = loader.state_dict()
    assert (state["epoch"], state["samples"]) == (0, 5003)
    assert (loader.state_dict()["epoch"], loader.state_dict()["samples"]) == (1, 0)
    again, = loaders(lines, 1, 100, lockstep="pad")
    again.load_state_dict(state)
    again.set_epoch(0)  # as tutorials have it: no step back
    assert again.epoch == 0 and list(again) == [] and again.epoch == 1
    assert len(list(again)) == 51


def test_one_iteration_is_one_epoch_also_when_it_is_left(lines):
    loader, = loaders(lines, 1, 100)
    first = next(iter(loader)).tolist()
    assert loader.state_dict()["samples"] == 100
    second = next(iter(loader)).tolist()
    assert loader.epoch == 1 and second != first
    loader.set_epoch(0)
    assert next(iter(loader)).tolist() == first
    loader.set_epoch(1)
    assert next(iter(loader)).tolist() == second


@pytest.mark.parametrize("context", ("fork", "spawn"))
def test_workers_that_outlive_an_epoch(lines, context):
    want = loaders(lines, 1, 50)[0]
    data = LockstepDataset(number, 50, files=lines, rank=0, world_size=1)
    loader = LockstepLoader(data, num_workers=2, persistent_workers=True, multiprocessing_context=context)
    for _ in range(3):
        assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in want]
    state = want.state_dict()
    for other in (want, loader):
        other.load_state_dict({**state, "epoch": 7, "samples": 1234})
    assert [batch.tolist() for batch in loader] == [batch.tolist() for batch in want]


def test_the_data_set_by_itself_and_under_a_plain_loader(lines):
    import torch.utils.data
    want = [batch.tolist() for batch in loaders(lines, 1, 50)[0]]
    data = LockstepDataset(number, 50, files=lines, rank=0, world_size=1)
    got = []
    for i, sample in enumerate(data):
        got.append(sample)
        assert data.state_dict()["samples"] == (i + 1) // 50 * 50
    assert got == [sample for batch in want for sample in batch] and data.epoch == 1
    data.set_epoch(0)
    assert [batch.tolist() for batch in torch.utils.data.DataLoader(data, batch_size=50)] == want and data.epoch == 1
    with pytest.raises(ValueError, match="LockstepLoader"):
        list(torch.utils.data.DataLoader(data, batch_size=50, num_workers=2))


def classes(labels, batch):
    """Different labels in a batch, on average."""
    n = len(labels) // batch
    return np.mean([len(np.unique(part)) for part in labels[:n * batch].reshape(n, batch)])


@pytest.mark.parametrize("n_classes, ranks", ((8, 1), (8, 3), (100, 1), (100, 8), (1000, 4), (8, 48)))
def test_quality_of_the_shuffle_on_sorted_data(n_classes, ranks):
    """Classes in a batch of one rank, against samples drawn uniformly. The data are far larger than what is mixed at once: 2**17
    blocks, of which 48 x 64 are open; sorted by class, so that nearly every block is of one class."""
    counts = np.full(1 << 17, 8)
    n = int(counts.sum())
    labels = np.repeat(np.arange(n_classes), -(-n // n_classes))[:n]
    order = _order.Epoch(counts, 1, 0)
    begins = np.cumsum(counts) - counts
    uniform = classes(np.random.default_rng(0).permutation(labels), 64)
    for rank in {0, ranks - 1}:
        positions = np.arange(rank, n, ranks)
        blocks, samples = order.locate(positions)
        assert classes(labels[begins[blocks] + samples], 64) >= 0.95 * uniform


def test_blocks_of_a_rank_are_its_own():
    """48 lanes: of four ranks each opens a quarter of the data, and what lies at the limits of lanes."""
    counts = np.full(9600, 8)
    order = _order.Epoch(counts, 1, 0)
    opened = [set(order.locate(np.arange(rank, int(counts.sum()), 4))[0].tolist()) for rank in range(4)]
    assert set.union(*opened) == set(range(9600))
    assert sum(map(len, opened)) <= 9600 + 48


def test_the_order_stays_for_ever():
    """Checkpoints of years ago go on: these numbers may not change."""
    assert _order.permutation(8, 1, 2, 3).tolist() == PERMUTATION
    blocks, samples = _order.Epoch(np.arange(1, 400), 5, 6).locate(np.arange(0, 79800, 13301))
    assert list(zip(blocks.tolist(), samples.tolist())) == PLACES


PERMUTATION = [5, 0, 7, 3, 6, 1, 4, 2]
PLACES = [(280, 248), (249, 115), (192, 182), (138, 28), (320, 77), (185, 166)]


@pytest.mark.parametrize("counts", ([1], [1] * 5, [3, 1, 4, 1, 5], [100000], list(range(1, 300))))
@pytest.mark.parametrize("window", (1, 2, 64))
def test_every_place_once(counts, window):
    order = _order.Epoch(np.array(counts), 7, 1, window)
    blocks, samples = order.locate(np.arange(sum(counts)))
    got = collections.Counter(zip(blocks.tolist(), samples.tolist()))
    assert got == collections.Counter((block, sample) for block, n in enumerate(counts) for sample in range(n))
    # Somebody who begins elsewhere finds the same.
    some = np.arange(sum(counts))[::-3]
    found = _order.Epoch(np.array(counts), 7, 1, window).locate(some)
    assert found[0].tolist() == blocks[some].tolist() and found[1].tolist() == samples[some].tolist()


def test_fixed_records(tmp_path):
    for part in range(3):
        (tmp_path / f"{part}.bin").write_bytes(b"".join((part * 700 + i).to_bytes(300, "big") for i in range(700)))
    data = LockstepDataset(lambda record: int.from_bytes(record, "big"), 7, files=f"{tmp_path}/{{0..2}}.bin", format="fixed",
                           record_size=300, lockstep="pad")
    got = list(data)
    assert len(data) == data.n_samples == 2100 and sorted(got) == list(range(2100)) and got != sorted(got)
    with pytest.raises(ValueError, match="whole number of records of 299"):
        LockstepDataset(files=str(tmp_path), format="fixed", record_size=299)


@pytest.mark.parametrize("kind", (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
def test_tar(tmp_path, kind):
    want = {}
    for part in range(3):
        with tarfile.open(tmp_path / f"{part}.tar", "w", format=kind) as tar:
            tar.addfile(tarfile.TarInfo("d"))
            for i in range(40):
                deep = "d/" + "e" * (90 if kind == tarfile.USTAR_FORMAT else 150) if i % 2 else "d"
                name = f"{deep}/{part}-{i}"
                want[name] = {f"{name}.{suffix}": bytes([i]) * size for suffix, size in (("jpg", i * 100), ("seg.png", 3), ("cls", 1))}
                for member, contents in want[name].items():
                    info = tarfile.TarInfo(member)
                    info.size = len(contents)
                    tar.addfile(info, io.BytesIO(contents))
    data = LockstepDataset(files=f"{tmp_path}/*.tar", format="tar", lockstep="pad")
    samples = [sample for sample in data if "d" not in sample]
    assert {min(sample).split(".")[0]: sample for sample in samples} == want and len(samples) == 120
    whole = (tmp_path / "1.tar").read_bytes()
    for broken, why in ((whole[:-20 * 512] + b"?" * 20 * 512, "1.tar: corrupt tar"), (whole[:5 * 512], "1.tar: truncated")):
        (tmp_path / "1.tar").write_bytes(broken)
        with pytest.raises(ValueError, match=why):
            LockstepDataset(files=f"{tmp_path}/*.tar", format="tar")


def test_a_file_that_changes_is_named(lines, tmp_path):
    data = LockstepDataset(number, 10, files=lines)
    with open(tmp_path / "part-2.txt", "a") as file:
        file.write("5003,\n")
    with pytest.raises(OSError, match="part-2.txt: has changed since it was listed"):
        list(data)


def test_the_index_is_kept(lines, tmp_path):
    keep = tmp_path / "index"
    want = list(LockstepDataset(number, 10, files=lines, index=keep))
    made = keep.stat()
    (tmp_path / "part-9.txt").write_text("9999,\n")  # comes later: not in the listing
    assert list(LockstepDataset(number, 10, files=lines, index=keep)) == want
    assert keep.stat().st_ino == made.st_ino and keep.stat().st_mtime_ns == made.st_mtime_ns
    with pytest.raises(ValueError, match="index of other data"):
        LockstepDataset(number, 10, files=f"{tmp_path}/part-1.txt", index=keep)
    (tmp_path / "part-0.txt").write_text("0,\n")
    with pytest.raises(OSError, match="part-0.txt: has changed"):
        list(LockstepDataset(number, 10, files=lines, index=keep))
    keep.write_bytes(keep.read_bytes()[:100])
    with pytest.raises(ValueError, match="is no index of Primus"):
        LockstepDataset(number, 10, files=lines, index=keep)


def test_a_checkpoint_of_other_data_is_refused(lines, tmp_path):
    data = LockstepDataset(number, 10, files=lines)
    next(iter(data))
    state = data.state_dict()
    for options, why in (({"seed": 1}, "seed"), ({"shuffle": False}, "shuffle"), ({"window": 9}, "window")):
        with pytest.raises(ValueError, match=f"another order of the data: {why}"):
            LockstepDataset(number, 10, files=lines, **options).load_state_dict(state)
    (tmp_path / "part-9.txt").write_text("9999,\n")
    with pytest.raises(ValueError, match="another order of the data: the files"):
        LockstepDataset(number, 10, files=lines).load_state_dict(state)


def test_a_sample_that_cannot_be_decoded_names_its_place(lines, tmp_path):
    text = (tmp_path / "part-2.txt").read_text()
    (tmp_path / "part-2.txt").write_text(text.replace("\n4000,", "\noops,"))
    with pytest.raises(ValueError) as error:
        list(LockstepDataset(number, 1, files=lines))
    place = f"primus: the record is byte {text.index('4000,')} of {tmp_path}/part-2.txt"
    assert place in "".join(getattr(error.value, "__notes__", [])) + str(error.value)


@pytest.mark.parametrize("options, why", (
    ({"files": None}, "files= is missing"), ({"files": []}, "files= is empty"), ({"batch_size": 0}, "batch_size=0"),
    ({"lockstep": "wait"}, "there are 'drop' and 'pad'"), ({"format": "csv"}, "there are text, fixed, tar"),
    ({"format": "fixed"}, "record_size"), ({"record_size": 3}, "record_size"), ({"seed": -1}, "seed=-1"),
    ({"rank": 3, "world_size": 3}, "rank 3 of 3"), ({"rank": 0}, "both, or neither"), ({"files": "part-0.txt.gz"}, "is compressed"),
    ({"window": 0}, "window=0")))
def test_refused(lines, tmp_path, monkeypatch, options, why):
    (tmp_path / "part-0.txt.gz").write_bytes(b"?")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=why):
        LockstepDataset(**{"files": lines, **options})


def test_too_few_samples_are_no_empty_epoch(lines):
    with pytest.raises(ValueError, match="5003 samples make no batch of 1251 for each of 4 ranks"):
        LockstepDataset(number, 1251, files=lines, rank=3, world_size=4)
    assert len(LockstepDataset(number, 1250, files=lines, rank=3, world_size=4)) == 1250
    assert len(LockstepDataset(number, 1251, files=lines, rank=3, world_size=4, lockstep="pad")) == 1251


def test_what_a_job_says_of_its_input(lines, tmp_path, monkeypatch):
    """As masterd writes it (spec_input_json())."""
    def job(spec, **settings):
        (tmp_path / "input.json").write_text(json.dumps({"inputManager": {"fileConfig": {"inputs": [
            {"name": "0", "spec": {"pathPattern": pattern, "namePattern": names, **spec}} for pattern, names in said]}},
            "input": {"maxRecord": 64 << 20, "seed": 0, "order": "listed", **settings}}))

    monkeypatch.setenv("PRIMUS_INPUT", str(tmp_path / "input.json"))
    said = [(f"file://{tmp_path}/part-{{2,0}}.txt", "*"), (str(tmp_path), "part-[13].*")]
    job({"textInput": {}}, lockstep="pad")
    # Of a source in the order of names, and the sources in theirs.
    assert list(LockstepDataset(number)) == [*range(2000), *range(2001, 5002), 2000, 5002]
    with pytest.raises(ValueError, match="are the job's"):
        LockstepDataset(format="tar")
    with pytest.raises(ValueError, match="take primus.torch.LockstepDataset"):
        iter(primus.torch.TaskDataset())
    job({"textInput": {}}, lockstep="drop", order="shuffle", seed=3)
    want = LockstepDataset(number, files=[f"{tmp_path}/part-{{0,2}}.txt", f"{tmp_path}/part-[13].txt"], seed=3)
    data = LockstepDataset(number)
    assert (data.lockstep, data.shuffle, data.seed) == ("drop", True, 3) and list(data) == list(want)
    job({"textInput": {}}, lockstep="drop", maxRecord=50)
    with pytest.raises(ValueError, match=r"part-0.txt: the line at byte \d+ is longer than 50 bytes"):
        LockstepDataset(number)
    said = [(f"{tmp_path}/fixed", "*")]
    (tmp_path / "fixed").write_bytes(bytes(range(60)))
    job({"fixedInput": {"recordSize": 6}}, lockstep="pad")
    assert [record[0] for record in LockstepDataset()] == list(range(0, 60, 6))
    job({"textInput": {}})
    with pytest.raises(ValueError, match="files= is missing"):
        LockstepDataset()


def test_what_the_loader_leaves_to_the_data_set(lines):
    data = LockstepDataset(number, 10, files=lines)
    with pytest.raises(ValueError, match="drop_last, shuffle"):
        LockstepLoader(data, shuffle=True, drop_last=True)


def test_nothing_is_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        LockstepDataset(files=f"{tmp_path}/no-*.txt")
    (tmp_path / "empty").write_text("")
    with pytest.raises(ValueError, match="no files, or empty ones"):
        LockstepDataset(files=str(tmp_path))


def test_lines_longer_than_what_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(primus._samples, "CHUNK", 1000)
    lines = [f"{i}," + "y" * (i * 131 % 5000) for i in range(300)]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    assert sorted(LockstepDataset(bytes.decode, files=str(tmp_path), lockstep="pad")) == sorted(lines)


TOGETHER = """
    import sys
    import torch.distributed as dist
    import primus.torch
    rank, folder = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    try:
        data = primus.torch.LockstepDataset(files=f"{folder}/data-{rank if len(sys.argv) > 3 else 0}", batch_size=2)
        print(data.rank, data.world_size, len(data))
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("other, said", ((None, ("0 2 2", "1 2 2")), ("a\nb\n", ("RuntimeError: rank 1 has other data", "RuntimeError: rank 0 has other data")),
                                         ("", ("RuntimeError: rank 1 cannot read the data", "ValueError: .*no files, or empty ones"))))
def test_ranks_compare_what_they_have(environment, tmp_path, other, said):
    import re
    import textwrap
    (tmp_path / "data-0").write_text("a\nb\nc\nd\n")
    (tmp_path / "data-1").write_text(other or "")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(TOGETHER))
    ranks = [subprocess.Popen([sys.executable, script, str(rank), tmp_path, *(["x"] if other is not None else [])], env=environment, text=True,
                              stdout=subprocess.PIPE) for rank in range(2)]
    for rank, want in zip(ranks, said):
        out = rank.communicate(timeout=100)[0]
        assert re.search(want, out), out


KILLED = """
import json, os, sys, time
import primus.torch
files, workers = sys.argv[1], int(sys.argv[2])
def number(line):
    return int(line.split(b",")[0])
model = {"trained": [], "data": None, "starts": 0}
if os.path.exists("model"):
    model = json.load(open("model"))
loader = primus.torch.LockstepLoader(primus.torch.LockstepDataset(number, 16, files=files, index="index", lockstep="pad", seed=3), num_workers=workers)
if model["data"]:
    loader.load_state_dict(model["data"])
model["starts"] += 1
for epoch in range(loader.epoch, 2):
    loader.set_epoch(epoch)
    for step, batch in enumerate(loader):
        model["trained"] += [(epoch, sample) for sample in batch.tolist()]
        if step % 7 == 6:
            model["data"] = loader.state_dict()
            with open("model.new", "w") as file:
                json.dump(model, file)
            os.rename("model.new", "model")
        time.sleep(0.002)
print(json.dumps(model))
"""


def test_killed_with_workers_that_read_ahead(environment, lines, tmp_path):
    """kill -9 at any moment, of the trainer with two workers: what its checkpoint holds, and what comes behind it, is every sample once an epoch."""
    import random
    import time
    rng, done, kills = random.Random(4), None, 0
    while done is None or done.returncode != 0:
        trainer = subprocess.Popen([sys.executable, "-c", KILLED, lines, "2"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE,
                                   text=True, start_new_session=True)
        before = (tmp_path / "model").stat().st_mtime_ns if (tmp_path / "model").exists() else 0
        if kills < 4:  # once it has got somewhere: how long it takes to start is the machine's affair
            while trainer.poll() is None and (not (tmp_path / "model").exists() or (tmp_path / "model").stat().st_mtime_ns == before):
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.2))
            if trainer.poll() is None:
                os.killpg(trainer.pid, 9)
                kills += 1
        output, _ = trainer.communicate(timeout=120)
        done = subprocess.CompletedProcess(trainer.args, trainer.returncode, output)
        assert trainer.returncode in (0, -9)
    model = json.loads(done.stdout)
    assert kills == 4 and model["starts"] == 5
    assert sorted(map(tuple, model["trained"])) == [(epoch, sample) for epoch in range(2) for sample in range(5003)]
