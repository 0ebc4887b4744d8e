# SPDX-License-Identifier: Apache-2.0
"""Several tasks in one buffer: primus.records(shuffle=) and primus.torch.TaskDataset(shuffle=)."""
import subprocess
import sys

import pytest

LOADS_TORCH = True  # see conftest.py's --unsanitized
HAS_TORCH = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


@pytest.fixture
def sorted_files(tmp_path):
    """Of 96 files each has one class of 4; the files of a class lie side by side."""
    paths = []
    for i in range(96):
        path = tmp_path / f"part-{i:02d}.txt"
        path.write_text("".join(f"{i // 24} {i:02d} {n:04d} ".ljust(80, "x") + "\n" for n in range(400)))
        paths.append(path)
    return paths


def lines_of(paths):
    return sorted(line for path in paths for line in path.read_text().splitlines())


@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_all_of_them_once_and_mixed(run, sorted_files, mode):
    o = run("""
        import primus
        for record in primus.records(shuffle=3200, tasks=16, seed=1):
            print(record.decode())
        """, sorted_files, mode=mode)
    lines = o.output.splitlines()
    assert sorted(lines) == lines_of(sorted_files)
    tasks = {tuple(line.split()[1] for line in lines[at:at + 64]) for at in range(0, 20000, 64)}
    assert sum(len(set(t)) for t in tasks) / len(tasks) > 12  # of 16 open ones


def test_where_of_records_that_are_alike(run, tmp_path):
    """CPython has one object for all records of one byte, and for all that are empty."""
    paths = [tmp_path / f"{i}.txt" for i in range(2)]
    for path in paths:
        path.write_text("a\n\n" * 100)
    o = run("""
        from primus._shuffle import Shuffled
        records = Shuffled(100, tasks=2, seed=1)
        for record in records:
            p = records.where()
            print(p.path, p.line, record.decode())
        """, paths, mode="descriptor")
    assert sorted(line.rstrip() for line in o.output.splitlines()) == sorted(f"{path} {n} {'a' if n % 2 else ''}".rstrip() for path in paths for n in range(1, 201))


QUALITY = """
    import sys
    import primus.torch
    from torch.utils.data import DataLoader
    def decode(record):
        return record.decode()
    data = primus.torch.TaskDataset(decode, shuffle=int(sys.argv[2]), tasks=int(sys.argv[3]))
    for batch in DataLoader(data, batch_size=64, num_workers=int(sys.argv[1])):
        print("\\n".join(batch) + "\\n")
    """


def per_batch(output, column, of=None):
    """Mean of the different texts that a whole batch has in a column, over what 64 drawn from all of them (@of so many) would have."""
    batches = [[line.split()[column] for line in batch.splitlines()] for batch in output.strip("\n").split("\n\n")]
    whole = [len(set(batch)) for batch in batches if len(batch) == 64]
    of = of or len({text for batch in batches for text in batch})
    return sum(whole) / len(whole) / (of * (1 - (1 - 1 / of) ** 64))


@pytest.mark.skipif(not HAS_TORCH, reason="python3-torch is not installed")
@pytest.mark.parametrize("workers,mode", ((0, "descriptor"), (2, "descriptor"), (3, "descriptor")))
def test_classes_per_batch(run, sorted_files, workers, mode):
    """Sorted by class in files that are tasks, in a shuffled order, as input.order shuffle has them: 0.95 of uniform, over all of the epoch, its end too.
    A task at a time it is a quarter. (In ring mode the rings of this executor's stand-in take a dozen such small tasks each; tests/cluster/test_shuffle.py has it.)
    Which tasks a process gets is chance: of 16 out of these 96 one in 40 times none is of some class. So with several it is measured
    by tasks: nearly as many in a batch as 64 drawn from all open ones would have, of which fewer are left in an epoch's last batches."""
    import random
    random.Random(3).shuffle(sorted_files)
    tasks = 48 // max(1, workers)
    o = run(QUALITY, sorted_files, mode=mode, arguments=[str(workers), "6400", str(tasks)])
    assert sorted(line for line in o.output.splitlines() if line) == lines_of(sorted_files)
    classes, open_ones = per_batch(o.output, 0), per_batch(o.output, 1, tasks)
    assert open_ones >= 0.9 if workers else classes >= 0.95, (classes, open_ones)
    print(f"{workers} workers, {tasks} tasks each, {mode}: {classes:.3f} of uniform by class, {open_ones:.3f} by task")


@pytest.mark.skipif(not HAS_TORCH, reason="python3-torch is not installed")
def test_skips_and_names(run, sorted_files):
    o = run("""
        import logging
        import primus.torch
        logging.basicConfig(format="%(message)s")
        def decode(record):
            if b" 17 0123 " in record:
                raise ValueError("oops")
            return record
        data = primus.torch.TaskDataset(decode, on_error="skip", shuffle=1000, tasks=8)
        print(sum(1 for _ in data), data.skipped)
        """, sorted_files)
    assert o.output.split() == [str(96 * 400 - 1), "1"]
    assert f"left out, 1 by now: line 124, byte {123 * 81} of {sorted_files[17]} (task 18, source 0): ValueError: oops" in o.error, o.error


REFUSED = (("stdin", "release", "shuffle=100", "shuffle= wants input.mode ring or descriptor"),
           ("ring", "checkpoint", "shuffle=100", "shuffle= wants input.ack release or exit, and not checkpoint"),
           ("ring", "explicit", "shuffle=100", "and not explicit"),
           ("ring", "release", "shuffle=1", "2 at least"),
           ("ring", "release", "shuffle=10, tasks=61", "1 to 60 are possible"),
           ("ring", "release", "shuffle=10, on_error='fail_task'", "on_error='raise' or 'skip'"),
           ("ring", "release", "seed=1", "go with shuffle="))


@pytest.mark.skipif(not HAS_TORCH, reason="python3-torch is not installed")
@pytest.mark.parametrize("mode,ack,arguments,text", REFUSED)
def test_refused(run, text_files, mode, ack, arguments, text):
    o = run(f"""
        import primus.torch
        try:
            next(iter(primus.torch.TaskDataset({arguments})))
        except ValueError as error:
            print(error)
        """, text_files, mode=mode, ack="exit" if mode == "stdin" else ack)
    assert text in o.output


def test_what_is_in_the_buffer_does_not_count(run, sorted_files):
    """Of what the executor has been told, everything has come out: the trainer ends in the midst, without a word. (Rings are told without packets.)"""
    o = run("""
        import os
        import primus
        for n, record in enumerate(primus.records(shuffle=1600, tasks=8), 1):
            print(record.decode().rstrip("x"))
            if n == 20000:
                os.sys.stdout.flush()
                os._exit(0)
        """, sorted_files, mode="descriptor")
    came = {tuple(map(int, line.split()[1:])) for line in o.output.splitlines()}
    counted = {}
    for line in o.lines("ACK") + o.lines("DONE"):
        task, position = line.split()[1:3]
        counted[int(task) - 1] = max(counted.get(int(task) - 1, 0), 400 if position == "end" else int(position) // 81)
    told = {(file, n) for file, upto in counted.items() for n in range(upto)}
    assert told <= came, sorted(told - came)[:10]
    assert 20000 - len(told) < 2 * 1600, len(told)  # what comes again: of the blocks that were mixed
