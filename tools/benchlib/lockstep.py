# SPDX-License-Identifier: Apache-2.0
"""Data in lockstep beside PyTorch's own reading of the same lines, unshuffled: samples through a DataLoader, in turns."""
import json
import os
import statistics
import subprocess
import tempfile

LINES, BYTES, FILES, ROUNDS = 200_000, 150, 8, 5

# torch is in the distribution's packages, which the bench itself runs without.
PROGRAM = """
import json, os, sys, time
import torch
from torch.utils.data import DataLoader, IterableDataset
from primus.torch import LockstepDataset, LockstepLoader
folder, workers, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))

class Plain(IterableDataset):
    def __iter__(self):  # each worker its files
        info = torch.utils.data.get_worker_info()
        for path in paths[info.id::info.num_workers] if info else paths:
            with open(path, "rb") as file:
                for line in file:
                    yield len(line)

begin = time.monotonic()
data = LockstepDataset(len, 64, files=folder, rank=0, world_size=1, lockstep="pad")
size = sum(map(os.path.getsize, paths))
out = {"index": size / (time.monotonic() - begin) / 1e6, "plain": [], "lockstep": []}
for _ in range(rounds):
    for name, loader in (("plain", DataLoader(Plain(), batch_size=64, num_workers=workers)), ("lockstep", LockstepLoader(data, num_workers=workers))):
        begin, n = time.monotonic(), 0
        for batch in loader:
            n += len(batch)
        assert n == data.n_samples
        out[name].append(n / (time.monotonic() - begin))
print(json.dumps(out))
"""


def bench(source, report, say):
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        say("python3-torch is not installed")
        return True
    ok = True
    with tempfile.TemporaryDirectory(prefix="primus-bench-") as folder:
        for i in range(FILES):
            with open(os.path.join(folder, str(i)), "w", encoding="ascii") as file:
                for j in range(LINES // FILES):
                    file.write(f"{i}-{j:08d},".ljust(BYTES - 1, "x") + "\n")
        for workers in (0, 2):
            said = subprocess.run(["/usr/bin/python3", "-c", PROGRAM, folder, str(workers), str(ROUNDS)], check=True, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "PYTHONPATH": os.path.join(source, "lib/primus/python"), "PYTHONDONTWRITEBYTECODE": "1"}).stdout
            said = json.loads(said)
            if workers == 0:
                report("lockstep", "index of text", said["index"], "MB/s")
            ok &= report("lockstep", f"samples shuffled, {workers} workers", statistics.median(said["lockstep"]), "1/s", statistics.median(said["plain"]))
    return ok
