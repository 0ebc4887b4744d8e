# SPDX-License-Identifier: Apache-2.0
"""primus.records(shuffle=) over compressed files on real hosts: how well it mixes, and that trainers killed in its midst lose nothing."""
import gzip
import random
import time

import pytest
from ledger import failover

# Lines of each file, which has one class; the files of a class lie side by side. Sixteen tasks at once begin and end about together, so one
# generation of them may lack a class (of 64 files, three runs of ten fell below 0.95 for that): sixteen generations say how well it mixes.
CLASSES, FILES, LINES = 4, 256, 125
N, TASKS = 1600, 16

# What has come out is in the file before the next record is asked for.
TRAINER = """
import os, time
import primus
seen = os.open(os.environ["LEDGER"] + ".seen." + os.environ["PRIMUS_INDEX"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
for n, record in enumerate(primus.records(shuffle=%d, tasks=%d)):
    os.write(seen, record[:10] + b"\\n")
    if n %% 50 == 0:
        time.sleep(0.02)
""" % (N, TASKS)


def make_data(ledger):
    path = ledger.path.with_name(ledger.path.name + ".data")
    path.mkdir()
    for i in range(FILES):
        with gzip.open(path / f"part-{i:03d}.gz", "wb", compresslevel=1) as file:
            for n in range(LINES):
                file.write(f"{i * CLASSES // FILES} {i:03d} {n:04d} ".encode() + random.Random(n).randbytes(80).hex().encode() + b"\n")
    for one in (path, *path.iterdir()):
        one.chmod(0o755)


def submit(cluster, ledger, num):
    config = ledger.config('exec python3 -c "$TRAINER"', num=num, inputPolicy="STREAMING", successPercent=100, memoryMb=256,
                           failover=failover(times=1000), job={"backoff": {"initial": "100ms", "max": "1s"}})
    config["env"]["TRAINER"] = TRAINER
    config["inputManager"] = {"fileConfig": {"inputs": [{"name": "lines", "spec": {
        "pathPattern": f"{ledger.inside}.data/*.gz", "textInput": {}, "compression": "gzip"}}]}, "gracefulShutdown": True}
    config["input"] = {"mode": "ring", "ack": "release", "order": "shuffle", "seed": 5, "slots": 2}
    return cluster.submit(config)


def seen_of(ledger, index):
    path = ledger.path.with_name(f"{ledger.path.name}.seen.{index}")
    return path.read_text().splitlines() if path.exists() else []


EVERYTHING = {f"{i * CLASSES // FILES} {i:03d} {n:04d}" for i in range(FILES) for n in range(LINES)}


def test_classes_per_batch(quick, ledger):
    make_data(ledger)
    job = submit(quick, ledger, 1)
    assert quick.wait_job(job, timeout=120) == 0
    seen = [line.strip() for line in seen_of(ledger, 0)]
    assert sorted(seen) == sorted(EVERYTHING)
    batches = [seen[at:at + 64] for at in range(0, len(seen) - 63, 64)]
    classes = sum(len({line.split()[0] for line in batch}) for batch in batches) / len(batches)
    uniform = CLASSES * (1 - (1 - 1 / CLASSES) ** 64)
    print(f"{classes / uniform:.3f} of uniform")
    assert classes / uniform >= 0.95


@pytest.mark.parametrize("seed", (1, 2))
def test_killed_in_its_midst(quick, ledger, seed):
    """Nothing is lost, and what comes again is what had come out of the blocks that were being mixed."""
    rng = random.Random(seed)
    make_data(ledger)
    job = submit(quick, ledger, 2)
    kills = 0
    for _ in range(8):
        time.sleep(rng.uniform(0.3, 0.8))
        running = [e for e in quick.status(job)["executors"] if e["state"] == "RUNNING"]
        if running:
            e = rng.choice(running)
            quick.run(e["node"], "sh", "-c", f"pkill -KILL -P $(systemctl show -P MainPID {e['unit']})")
            kills += 1
    assert quick.wait_job(job, timeout=120) == 0
    seen = [line.strip() for index in range(2) for line in seen_of(ledger, index)]
    print(f"{kills} kills, {len(seen) - len(EVERYTHING)} records again")
    assert set(seen) == EVERYTHING
    assert 0 <= len(seen) - len(EVERYTHING) <= kills * 3 * N
    assert max(e["attempt"] for e in quick.status(job)["executors"]) > 1
