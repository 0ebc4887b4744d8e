#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer that keeps checkpoints, and whose result is the same whenever and however often it is killed.

Its "model" is a sum and a running hash over every line in the order in which they come: a line that is missing, comes twice
or comes in another place changes it. The checkpoint holds the model and, beside it, what primus.checkpoint() says; both are
replaced by one rename, so there is never the one without the other.

    train.py CHECKPOINT [EVERY]
"""
import hashlib
import json
import os
import sys

import primus

path = sys.argv[1]
every = int(sys.argv[2]) if len(sys.argv) > 2 else 1000

try:
    with open(path, encoding="ascii") as f:
        model = json.load(f)
except FileNotFoundError:
    model = {"lines": 0, "sum": 0, "hash": "", "primus": ""}
print(f"attempt {os.environ.get('PRIMUS_ATTEMPT', '?')} begins behind {model['lines']} lines", flush=True)


def save(state):
    with open(path + ".new", "w", encoding="ascii") as f:
        json.dump({**model, "primus": state.hex()}, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(path + ".new", path)


feed = primus.open(checkpoint=bytes.fromhex(model["primus"]) or None)
for line in feed.records():
    model["lines"] += 1
    model["sum"] += round(1000 * float(line.split()[0]))
    model["hash"] = hashlib.sha256(model["hash"].encode() + line).hexdigest()
    if model["lines"] % every == 0:
        state = feed.checkpoint()
        save(state)
        # Killed here: the checkpoint is newer than what has been committed. It still goes on behind the checkpoint.
        feed.commit(state)

state = feed.checkpoint()
save(state)
feed.commit(state)
print(f"{model['lines']} lines, sum {model['sum']}, hash {model['hash'][:16]}", flush=True)
