#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Digits by PyTorch's DistributedDataParallel, the whole of it: epochs, shuffled anew in each, validation and a learning rate that
falls behind each, workers that decode, and a checkpoint every ten steps. Killed anywhere, it goes on behind the last checkpoint, in
the middle of an epoch too, and ends as it would have ended: no sample of an epoch comes twice to the same model, and none is left out.

    train.py CHECKPOINT [EPOCHS]

CHECKPOINT is a file on storage that all hosts see. Beside it lies CHECKPOINT.index, which files the data are and where samples are in
them: read through once, for all ranks and all starts."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import primus
from primus.torch import LockstepDataset, LockstepLoader

HELD_OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits", "heldout.txt")
SEED, BATCH, RATE, SAVE_EVERY, WORKERS = 1, 16, 0.1, 10, 2


def decode(line):
    label, *pixels = map(float, line.split(b","))
    return torch.tensor(pixels) / 16, int(label)


def save(path, state):
    with open(path + ".new", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def validate(model, loader):
    """Rank 0 alone, and every sample once: its data set is of one rank."""
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    model.train()
    return right / loader.dataset.n_samples


def main():
    path, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    dist.init_process_group("gloo", init_method="env://")
    rank = dist.get_rank()

    # Which files, drop or pad, shuffle and seed are in the job's configuration; without a job, files= and the others say it.
    loader = LockstepLoader(LockstepDataset(decode, BATCH, index=path + ".index"), num_workers=WORKERS, persistent_workers=True)
    held_out = LockstepLoader(LockstepDataset(decode, 64, files=HELD_OUT, lockstep="pad", shuffle=False, rank=0, world_size=1))
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    step = 0

    found = [torch.load(path) if rank == 0 and os.path.exists(path) else None]
    dist.broadcast_object_list(found)
    if found[0] is not None:
        step = found[0]["step"]
        for part, state in ((model, "model"), (optimizer, "optimizer"), (schedule, "schedule"), (loader, "data")):
            part.load_state_dict(found[0][state])
    print(f"rank {rank} of {dist.get_world_size()} begins with step {step} in epoch {loader.epoch}, {len(loader)} steps each", flush=True)

    def checkpoint():
        if rank == 0:
            save(path, {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(), "data": loader.state_dict()})

    replica = DistributedDataParallel(model)
    for epoch in range(loader.epoch, epochs):
        loader.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(replica(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            primus.progress(step)
            if step % SAVE_EVERY == 0:
                checkpoint()
        schedule.step()
        if rank == 0:
            print(f"epoch {epoch} is over with step {step}: held-out accuracy {validate(model, held_out):.4f}, "
                  f"next rate {schedule.get_last_lr()[0]:.4f}", flush=True)
        checkpoint()
    if rank == 0:
        print(f"weights {sum(p.abs().sum().item() for p in model.parameters()):.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
