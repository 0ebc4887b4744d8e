# SPDX-License-Identifier: Apache-2.0
"""What the parameter server and the workers share: where they find each other, the frames between them, the model.

A frame is a header of two little-endian u32, kind and length in bytes, and that many bytes; float arrays travel as
little-endian float32. Nothing that a peer sends is ever unpickled, and every length is checked before it is believed."""
import json
import os
import struct

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small: threads would only get in each other's way
import numpy as np

PIXELS, HIDDEN, CLASSES = 64, 128, 10
SHAPES = [(PIXELS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
SIZE = sum(int(np.prod(shape)) for shape in SHAPES)

# worker to ps:  HELLO u32 index; PULL; PUSH f32 loss, u32 new images, f32[SIZE] gradient; DONE
# ps to worker:  PARAMS f32[SIZE] (answer to PULL and PUSH), BYE (answer to DONE)
HELLO, PULL, PUSH, DONE, PARAMS, BYE = range(1, 7)
HEADER = struct.Struct("<II")
FRAME_MAX = 8 + 4 * SIZE


class Rendezvous:
    """Who I am and where the parameter server listens: from TF_CONFIG or, without it, from torch's and Primus's names."""

    def __init__(self, environ=os.environ):
        if "TF_CONFIG" in environ:
            config = json.loads(environ["TF_CONFIG"])
            address = config["cluster"]["ps"][0]
            self.index = int(config["task"]["index"])
            self.workers = len(config["cluster"]["worker"])
        elif "MASTER_ADDR" in environ:
            # The roles' ranks follow each other in the order of the job file: rank 0 is the parameter server.
            address = f"[{environ['MASTER_ADDR']}]:{environ['MASTER_PORT']}"
            self.index = int(environ["PRIMUS_INDEX"])
            self.workers = int(environ["WORLD_SIZE"]) - 1
        else:
            raise SystemExit("no rendezvous: neither TF_CONFIG nor MASTER_ADDR is set; submit me with digits.json")
        host, _, port = address.rpartition(":")
        self.host, self.port = host.strip("[]"), int(port)


def frame(kind, *parts):
    return b"".join([HEADER.pack(kind, sum(map(len, parts))), *parts])


def unpack_header(data):
    kind, length = HEADER.unpack(data)
    if not HELLO <= kind <= BYE or length > FRAME_MAX:
        raise ValueError(f"a frame of kind {kind} and {length} bytes: this peer is not one of ours")
    return kind, length


def floats(data, count):
    array = np.frombuffer(data, dtype="<f4")
    if array.size != count or not np.isfinite(array).all():
        raise ValueError(f"{array.size} numbers where {count} finite ones were expected")
    return array


def views(flat):
    """The layers as views into one flat array, so that parameters and gradients travel as they lie in memory."""
    layers, at = [], 0
    for shape in SHAPES:
        count = int(np.prod(shape))
        layers.append(flat[at:at + count].reshape(shape))
        at += count
    return layers


def initial(seed):
    rng = np.random.default_rng(seed)
    flat = np.zeros(SIZE, dtype="<f4")
    w1, _, w2, _ = views(flat)
    w1[:] = rng.normal(0, np.sqrt(2 / PIXELS), w1.shape)
    w2[:] = rng.normal(0, np.sqrt(1 / HIDDEN), w2.shape)
    return flat


def parse(line):
    """One line "label,p0,...,p63" to (pixels in 0..1, label)."""
    cells = line.split(b",")
    if len(cells) != PIXELS + 1:
        raise ValueError(f"a line of {len(cells)} numbers where {PIXELS + 1} were expected: {line[:40]!r}")
    row = np.array(cells, dtype="<f4")
    label = int(row[0])
    if not 0 <= label < CLASSES or row[1:].min() < 0 or row[1:].max() > 16:
        raise ValueError(f"a label or pixel out of range: {line[:40]!r}")
    return row[1:] / 16, label


def forward(flat, images):
    w1, b1, w2, b2 = views(flat)
    hidden = np.maximum(images @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    return hidden, odds / odds.sum(axis=1, keepdims=True)


def gradient(flat, images, labels):
    """Mean cross-entropy of the batch and its gradient."""
    _, _, w2, _ = views(flat)
    hidden, odds = forward(flat, images)
    rows = np.arange(len(labels))
    loss = -np.log(np.maximum(odds[rows, labels], 1e-7)).mean()
    odds[rows, labels] -= 1
    odds /= len(labels)
    back = odds @ w2.T
    back[hidden <= 0] = 0
    out = np.empty(SIZE, dtype="<f4")
    g1, gb1, g2, gb2 = views(out)
    g1[:], gb1[:], g2[:], gb2[:] = images.T @ back, back.sum(axis=0), hidden.T @ odds, odds.sum(axis=0)
    return float(loss), out
