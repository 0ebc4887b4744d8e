# SPDX-License-Identifier: Apache-2.0
"""A line is fitted, on the GPU, to what comes on standard input: lines of WIDTH numbers and what they make together. Knows nothing of
Primus, which hands the lines out."""
import itertools
import sys

import torch

WIDTH, BATCH = 8, 500


def main():
    torch.manual_seed(1)
    model = torch.nn.Linear(WIDTH, 1).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    lines, loss = 0, None
    while batch := list(itertools.islice(sys.stdin, BATCH)):
        rows = torch.tensor([[float(word) for word in line.split()] for line in batch]).cuda()
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(rows[:, :WIDTH]), rows[:, WIDTH:])
        loss.backward()
        optimizer.step()
        lines += len(batch)
    print(f"{lines} lines on {torch.cuda.get_device_name()}: loss {loss.item():.6f}", flush=True)


if __name__ == "__main__":
    main()
