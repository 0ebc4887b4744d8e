#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes data/train-*.txt and heldout.txt out of UCI's optical digits as Debian's python3-sklearn carries them:

    apt-get download python3-sklearn && dpkg-deb -x python3-sklearn_*.deb x
    ./prepare.py x/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz

The same input gives the same files: an image belongs to the held-out fifth by a hash of its position, and the training
images are put into the shards in the order of another hash. A line is "label,p0,...,p63", each pixel 0..16."""
import gzip
import hashlib
import pathlib
import sys

SHARDS = 24
HERE = pathlib.Path(__file__).resolve().parent


def digest(purpose, index):
    return hashlib.sha256(f"{purpose} {index}".encode()).digest()


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} digits.csv.gz")
    with gzip.open(sys.argv[1], "rt", encoding="ascii") as source:
        rows = [[int(float(cell)) for cell in line.split(",")] for line in source if line.strip()]
    if len(rows) != 1797 or any(len(row) != 65 for row in rows):
        sys.exit(f"{sys.argv[1]}: expected 1797 lines of 65 numbers")
    lines = [",".join(map(str, [row[64]] + row[:64])) + "\n" for row in rows]

    held_out = [i for i in range(len(lines)) if digest("split", i)[0] < 51]
    train = sorted(set(range(len(lines))) - set(held_out), key=lambda i: digest("order", i))
    (HERE / "heldout.txt").write_text("".join(lines[i] for i in held_out), encoding="ascii")
    (HERE / "data").mkdir(exist_ok=True)
    for shard in range(SHARDS):
        (HERE / f"data/train-{shard:02}.txt").write_text("".join(lines[i] for i in train[shard::SHARDS]), encoding="ascii")
    print(f"{len(train)} images for training in {SHARDS} files, {len(held_out)} held out")


if __name__ == "__main__":
    main()
