#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fits a line through points in four dimensions: the data come as a data set of PyTorch, each line one sample, from however
many files and over however many epochs the job's configuration says. Prints the loss as it falls."""
import sys

import torch
from torch.utils.data import DataLoader

import primus
import primus.torch


def decode(line):
    *x, y = (float(number) for number in line.split())
    return torch.tensor(x), torch.tensor([y])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(primus.torch.TaskDataset(decode), batch_size=20, num_workers=int(sys.argv[1]))
    seen, recent = 0, []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recent.append(loss.item())
        if seen // 1000 != (seen + len(x)) // 1000:
            print(f"{seen + len(x)} samples, loss {sum(recent) / len(recent):.4f}", flush=True)
            recent.clear()
        seen += len(x)
        primus.progress(seen)  # for `primusctl top`, health, and a watchdog
    weights = ", ".join(f"{w:.2f}" for w in model.weight[0].tolist())
    print(f"{seen} samples in all; weights {weights}", flush=True)


if __name__ == "__main__":
    main()
