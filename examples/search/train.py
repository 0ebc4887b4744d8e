#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small net for handwritten digits, with the parameters that the search gives it; alone it takes the defaults.

usage: train.py DIRECTORY [EPOCHS]      its train-*.txt are lines with a digit and its 64 grey values"""
import glob
import os
import sys

import numpy as np
from primus import trial

lr = trial.params.get("lr", 0.1)
width = trial.params.get("width", 32)
batch = trial.params.get("batch", 32)
momentum = trial.params.get("momentum", 0.0)  # only where the optimizer is "momentum"

directory, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 27
lines = np.vstack([np.loadtxt(path, delimiter=",") for path in sorted(glob.glob(os.path.join(directory, "train-*.txt")))])
images, digits = lines[:, 1:] / 16, lines[:, 0].astype(int)
held = slice(0, len(lines) // 5)  # what it is judged by; it trains on the rest
rest = np.arange(len(lines) // 5, len(lines))

draw = np.random.default_rng(trial.seed)
weights = [draw.normal(0, 1 / np.sqrt(64), (64, width)), np.zeros(width), draw.normal(0, 1 / np.sqrt(width), (width, 10)), np.zeros(10)]
speeds = [np.zeros_like(w) for w in weights]


def forward(x):
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    score = hidden @ weights[2] + weights[3]
    score -= score.max(axis=1, keepdims=True)
    return hidden, np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)


for epoch in range(1, epochs + 1):
    for rows in np.array_split(draw.permutation(rest), len(rest) // batch):
        x, wanted = images[rows], digits[rows]
        hidden, likely = forward(x)
        likely[np.arange(len(rows)), wanted] -= 1
        back = (likely @ weights[2].T) * (hidden > 0)
        slopes = [x.T @ back, back.sum(axis=0), hidden.T @ likely, likely.sum(axis=0)]
        for weight, speed, slope in zip(weights, speeds, slopes):
            speed *= momentum
            speed -= lr * slope / len(rows)
            weight += speed
    likely = forward(images[held])[1]
    with np.errstate(divide="ignore"):
        loss = -np.log(likely[np.arange(len(likely)), digits[held]]).mean()
    right = (likely.argmax(axis=1) == digits[held]).mean()
    print(f"epoch {epoch}: loss {loss:.4f}, {right:.1%} right", flush=True)
    trial.report_validation(epoch, loss=loss, accuracy=right)
