#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job from a notebook: see what would become of it, submit it, watch it, read its loss from what it prints, and draw that.

Run it as it is on the master's host (python3 watch.py), from elsewhere (python3 watch.py n1), or cell by cell in an editor that
knows "# %%". With matplotlib the picture is loss.png; without, it is drawn in the terminal.
"""
# %% The cluster: here, or by ssh
import re
import sys

from primus.client import Client

cluster = Client(sys.argv[1] if len(sys.argv) > 1 else None)

# %% A job, which here is a few lines of Python; any command is fine
TRAIN = """
import math, time
for step in range(1, 41):
    print(f"step {step} loss {2.3 * math.exp(-step / 12) + 0.1 * math.sin(step):.4f}", flush=True)
    time.sleep(0.05)
"""
job = {"name": "notebook", "role": [{"roleName": "worker", "num": 2, "vcores": 0.2, "memoryMb": 64, "command": "python3 -c \"$TRAIN\"", "env": {"TRAIN": TRAIN}}]}

# %% What would become of it now
trial = cluster.try_submit(job)
print("It would start now." if trial["starts"] else f"It would wait: {trial['reason'] or trial['summary']}")

# %% Submit it, and follow what rank 0 prints
number = cluster.submit(job)
loss = []
for line in cluster.logs(number, "worker", 0):
    found = re.search(r"step (\d+) loss ([-+.\de]+)", line)
    if found:
        loss.append((int(found[1]), float(found[2])))
print(f"Job {number} ended with status {cluster.wait(number)} after {len(loss)} steps")

# %% What each executor took
for executor in cluster.status(number)["executors"]:
    print(f"{executor['role']}/{executor['index']} on {executor['node']}: {executor['state']}")

# %% The loss
try:
    import matplotlib.pyplot as plot
    plot.plot(*zip(*loss))
    plot.xlabel("step")
    plot.ylabel("loss")
    plot.savefig("loss.png")
    print("loss.png")
except ImportError:
    low, high = min(y for _, y in loss), max(y for _, y in loss)
    for row in range(9, -1, -1):
        print(f"{low + (high - low) * row / 9:7.3f} |" + "".join("*" if round((y - low) / (high - low) * 9) == row else " " for _, y in loss))
