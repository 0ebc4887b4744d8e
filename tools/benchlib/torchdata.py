# SPDX-License-Identifier: Apache-2.0
"""Samples a second of primus.torch against torch's own DataLoader over the same files, in one process: plain, ours, plain."""
import io
import json
import os
import random
import shutil
import statistics
import subprocess
import tarfile
import tempfile

TRAINER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "torch_trainer.py")
FILES = 8
RECORD = 3073
# samples at --torch-size 1, so that a plain reader takes some two seconds; the format's key and keys in a job; the goal of the ratio
FORMATS = {
    "text": (240000, "textInput", "", 1.1),
    "fixed": (96000, "fixedInput", f'"recordSize":{RECORD}', 1.1),
    "tar": (48000, "tarInput", "", 3),
    "npy": (96000, None, None, 0.95),
}
MODES = {"ring": (0, 2, 4), "descriptor": (0, 2, 4), "stdin": (0,)}  # one process reads standard input: no workers
TASK = 1 << 20
SHUFFLED = 0.8  # of the format's goal, where one buffer is mixed across tasks
FIRST_SAMPLE = 1.0  # seconds


def make(directory, form, samples):
    """The files, the same in every run."""
    paths, rng = [], random.Random(1)
    per_file = max(samples // FILES, 1)
    noise = rng.randbytes(1 << 20)
    if form == "npy":
        return [write_npy(directory, per_file * FILES, noise)]
    for f in range(FILES):
        paths.append(os.path.join(directory, f"{form}-{f}"))
        with open(paths[-1], "wb") as file:
            records = (record(noise, rng) for _ in range(per_file))
            if form == "text":
                for _ in range(per_file):
                    file.write(",".join(map(str, rng.choices(range(17), k=65))).encode() + b"\n")
            elif form == "fixed":
                file.writelines(records)
            else:
                write_tar(file, f, records)
    return paths


def record(noise, rng):
    at = rng.randrange(len(noise) - RECORD)
    return bytes([rng.randrange(10)]) + noise[at:at + RECORD - 1]


def write_tar(file, number, records):
    with tarfile.open(fileobj=file, mode="w") as tar:
        for i, r in enumerate(records):
            for kind, data in (("img", r[1:]), ("cls", str(r[0]).encode())):
                info = tarfile.TarInfo(f"{number:02d}{i:05d}.{kind}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def write_npy(directory, rows, noise):
    """By hand, so that this program needs no numpy."""
    path, rng = os.path.join(directory, "rows.npy"), random.Random(2)
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, {RECORD}), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        file.writelines(record(noise, rng) for _ in range(rows))
    return path


def run_one(args, environment, form, mode, workers, way, paths):
    _, key, keys, _ = FORMATS[form]
    trainer = ["/usr/bin/python3", "-W", "ignore", TRAINER, form, str(workers), way, *paths]
    if mode:
        trainer = [os.path.join(args.build, "tests/bench/bench-serve"), mode, key, keys, str(1 << 62 if form == "tar" else TASK), *paths,
                   "--", *trainer]
    done = subprocess.run(trainer, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False, env=environment, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{form}, {mode}, {workers} workers: the trainer failed ({done.returncode})")
    result = json.loads(done.stdout)
    if len({(r["samples"], r["sum"]) for r in result.values()}) != 1:
        raise RuntimeError(f"{form}, {mode}, {workers} workers: what came is not what is in the files: {result}")
    return result


def cells(only):
    for form in FORMATS:
        for mode in ([None] if form == "npy" else MODES):
            for workers in (0, 2, 4) if mode is None else MODES[mode]:
                for way in ("map",) if mode is None else ("sample", "batch") if mode == "stdin" else ("sample", "batch", "shuffle"):
                    if not only or set(only) <= {form, mode, str(workers), way}:
                        yield form, mode, workers, way


def bench(args, source, report, say):
    """only: words that a cell has to have, such as text and ring."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PRIMUS_")}
    environment.update(BENCH_EXECUTOR=os.path.join(args.build, "executor/primus-executor"), PYTHONDONTWRITEBYTECODE="1",
                       PRIMUS_LIBRARY=os.path.join(args.build, "lib/primus/libprimus.so.1"), OMP_NUM_THREADS="1",
                       PYTHONPATH=os.path.join(source, "lib/primus/python"))
    directory, ok, made = tempfile.mkdtemp(prefix="primus-bench-torch.", dir=args.directory), True, {}
    environment["BENCH_DIRECTORY"] = directory
    try:
        for form, mode, workers, way in cells(args.torch_only):
            if form not in made:
                made[form] = make(directory, form, int(FORMATS[form][0] * args.torch_size))
            runs = [run_one(args, environment, form, mode, workers, way, made[form]) for _ in range(args.data_rounds)]
            ok &= judge(form, mode, workers, way, runs, report, say)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return ok


def judge(form, mode, workers, way, runs, report, say):
    plain = [(r["before"]["rate"] + r["after"]["rate"]) / 2 for r in runs]
    ratios = sorted(r["ours"]["rate"] / p for r, p in zip(runs, plain))
    moods = sorted(r["after"]["rate"] / r["before"]["rate"] for r in runs)
    first = statistics.median(r["ours"]["first"] for r in runs)
    base, ratio, goal = statistics.median(plain), statistics.median(ratios), FORMATS[form][3] * (SHUFFLED if way == "shuffle" else 1)
    how = {"batch": ", decoded by batches", "shuffle": ", shuffled over 16 tasks"}.get(way, "")
    what = f"{form}, {mode or 'MapDataset, shuffled'}, {workers} workers{how}"
    say(f"{what}: {ratio:.2f} of torch's {base:,.0f} samples/s (from {ratios[0]:.2f} to {ratios[-1]:.2f}; torch's own second run over its first "
        f"{moods[0]:.2f} to {moods[-1]:.2f}); first batch after {first:.2f} s{'' if ratio >= goal else f' — the goal is {goal:g}'}")
    good = report("torch", what, base * ratio, "samples/s", base, ("ratio", ">=", goal))
    return report("torch", f"{what}, first batch", first, "s", None, ("value", "<=", FIRST_SAMPLE)) and good
