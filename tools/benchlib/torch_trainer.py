# SPDX-License-Identifier: Apache-2.0
"""One process: torch's own DataLoader over files, then primus.torch, then the first again. Prints a JSON object.

    torch_trainer.py FORMAT WORKERS WAY FILE...

WAY: sample (TaskDataset(decode)), batch (TaskDataset(decode, batch=...), a decode for many records), map (MapDataset; FORMAT npy). The plain readers are what
one writes without Primus: a loop over each file, the files shared out among the workers."""
import functools
import json
import sys
import tarfile
import time
import warnings

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

import primus.torch

BATCH = 64
RECORD = 3073  # bytes of a fixed record and of a row: a label, and an image of 32 x 32 pixels in three colours


def decode_text(line):
    numbers = numpy.fromstring(line, sep=",", dtype=numpy.float32)
    return torch.from_numpy(numbers[1:]), int(numbers[0])


def decode_fixed(record):
    values = numpy.frombuffer(record, numpy.uint8)
    return torch.from_numpy(values[1:].astype(numpy.float32)), int(values[0])


def decode_tar(members):
    image = next(data for name, data in members.items() if name.endswith("img"))
    label = next(data for name, data in members.items() if name.endswith("cls"))
    return torch.from_numpy(numpy.frombuffer(image, numpy.uint8).astype(numpy.float32)), int(label)


def decode_texts(lines):
    numbers = numpy.fromstring(b",".join(lines), sep=",", dtype=numpy.float32).reshape(len(lines), -1)
    return torch.from_numpy(numbers[:, 1:]), torch.from_numpy(numbers[:, 0].astype(numpy.int64))


def split_images(values):
    return torch.from_numpy(values[:, 1:].astype(numpy.float32)), torch.from_numpy(values[:, 0].astype(numpy.int64))


def decode_fixeds(records):
    return split_images(numpy.frombuffer(b"".join(records), numpy.uint8).reshape(len(records), -1))


def decode_tars(records):
    images = b"".join(next(data for name, data in m.items() if name.endswith("img")) for m in records)
    labels = [int(next(data for name, data in m.items() if name.endswith("cls"))) for m in records]
    return torch.from_numpy(numpy.frombuffer(images, numpy.uint8).reshape(len(records), -1).astype(numpy.float32)), torch.tensor(labels)


def decode_row(row):
    return torch.from_numpy(row[1:].astype(numpy.float32)), int(row[0])


def read_text(path):
    return open(path, "rb")


def read_fixed(path):
    with open(path, "rb") as file:
        yield from iter(functools.partial(file.read, RECORD), b"")


def read_tar(path):
    last, members = None, {}
    with tarfile.open(path, "r|") as tar:
        for member in tar:
            key = member.name.split(".")[0]
            if last is not None and key != last:
                yield members
                members = {}
            last = key
            members[member.name] = tar.extractfile(member).read()
    if members:
        yield members


FORMATS = {"text": (read_text, decode_text, decode_texts), "fixed": (read_fixed, decode_fixed, decode_fixeds),
           "tar": (read_tar, decode_tar, decode_tars)}


class Plain(IterableDataset):
    def __init__(self, form, paths):
        self.read, self.decode, _ = FORMATS[form]
        self.paths = paths

    def __iter__(self):
        worker = get_worker_info()
        for path in self.paths[worker.id::worker.num_workers] if worker else self.paths:
            yield from map(self.decode, self.read(path))


class PlainRows(Dataset):
    def __init__(self, path):
        self.rows = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return decode_row(self.rows[i])


def measure(batches):
    """Everything that a trainer waits for counts: workers that start, connections that are opened."""
    begin, n, first, total = time.perf_counter(), 0, None, 0
    for _, labels in batches:
        if first is None:
            first = time.perf_counter() - begin
        n += len(labels)
        total += int(labels.sum())
    return {"rate": n / (time.perf_counter() - begin), "first": first, "samples": n, "sum": total}


def main():
    form, workers, way, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of numpy and torch, about text and arrays that are read-only
    load = functools.partial(DataLoader, batch_size=BATCH, num_workers=workers)
    if form == "npy":
        def plain():
            return load(PlainRows(paths[0]), shuffle=True)

        def ours():
            data = primus.torch.MapDataset(paths, decode_row)
            sampler = primus.torch.ElasticSampler(data)
            return sampler.counted(load(data, sampler=sampler, collate_fn=primus.torch.collate))
    else:
        def plain():
            return load(Plain(form, paths))

        def ours():
            if way == "batch":
                return DataLoader(primus.torch.TaskDataset(FORMATS[form][2], batch=BATCH), batch_size=None, num_workers=workers)
            mixed = {"shuffle": 10000, "tasks": 16 // max(1, workers)} if way == "shuffle" else {}
            return load(primus.torch.TaskDataset(FORMATS[form][1], **mixed), collate_fn=primus.torch.collate)
    # Memory that the first of them asks the kernel for, the others have already: so none of the three is the first.
    for _ in zip(plain(), range(50)):
        pass
    print(json.dumps({name: measure(make()) for name, make in (("before", plain), ("ours", ours), ("after", plain))}))


if __name__ == "__main__":
    main()
