#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Digits by PyTorch's DistributedDataParallel: every rank finds the others by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE alone, and knows
nothing of Primus. Without these it trains alone, so that it can be tried where it is written: ./train.py /tmp/digits.pt 3. Rank 0 writes a
checkpoint behind every epoch; whoever begins goes on from the last one.

    train.py CHECKPOINT [EPOCHS]

CHECKPOINT is a file that all hosts see, since rank 0 may be on another host the next time."""
import glob
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits")
SEED, BATCH, RATE = 1, 16, 0.05


def load(*paths):
    rows = np.concatenate([np.loadtxt(path, delimiter=",", dtype="float32") for path in paths])
    return torch.from_numpy(rows[:, 1:] / 16), torch.from_numpy(rows[:, 0].astype("int64"))


def save(path, state):
    with open(path + ".new", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def join():
    """The other ranks, where there are any."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo", init_method="env://")
    else:
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


def resume(path, model, optimizer):
    """Rank 0's word counts: the epoch to begin with. The weights go from it to the others with DistributedDataParallel."""
    found = [None]
    if dist.get_rank() == 0 and os.path.exists(path):
        found = [torch.load(path)]
    dist.broadcast_object_list(found)
    if found[0] is None:
        return 0
    model.load_state_dict(found[0]["model"])
    optimizer.load_state_dict(found[0]["optimizer"])
    return found[0]["epoch"]


def main():
    path, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    join()
    rank = dist.get_rank()
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    first = resume(path, model, optimizer)
    print(f"rank {rank} of {dist.get_world_size()} begins with epoch {first + 1}", flush=True)
    replica = DistributedDataParallel(model)
    data = TensorDataset(*load(*sorted(glob.glob(f"{DIGITS}/data/train-*.txt"))))
    sampler = DistributedSampler(data, seed=SEED)
    for epoch in range(first, epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for images, labels in DataLoader(data, batch_size=BATCH, sampler=sampler):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(replica(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if rank == 0:
            save(path, {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
            print(f"epoch {epoch + 1}: loss {total / len(sampler) * BATCH:.4f}", flush=True)
    if rank == 0:
        images, labels = load(f"{DIGITS}/heldout.txt")
        with torch.no_grad():
            right = (model(images).argmax(1) == labels).float().mean().item()
        print(f"held-out accuracy {right:.4f} after {epochs} epochs", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
