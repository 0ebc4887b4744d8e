# SPDX-License-Identifier: Apache-2.0
"""A line is fitted by DistributedDataParallel over NCCL, a rank for each GPU. Ranks find each other, and their GPU, by torch's variables."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, WIDTH = 200, 1024, 256


def main():
    dist.init_process_group("nccl", init_method="env://")
    rank, device = dist.get_rank(), torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    torch.manual_seed(rank)
    model = DistributedDataParallel(torch.nn.Linear(WIDTH, 1).to(device), device_ids=[device.index])
    truth = torch.linspace(-1, 1, WIDTH, device=device).unsqueeze(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, WIDTH, device=device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ truth)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    total = torch.ones(1, device=device)
    dist.all_reduce(total)
    print(f"rank {rank} of {dist.get_world_size()} by {dist.get_backend()} on {torch.cuda.device_count()} GPUs: "
          f"loss {losses[0].item():.6f} to {losses[-1].item():.6f}, all_reduce {total.item():.0f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
