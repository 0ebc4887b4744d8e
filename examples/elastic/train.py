#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer that goes on when its job is scaled.

Its learning rate follows the number of workers, as is usual; what it has learned is a sum, so that one can see that every
line was trained with exactly once, by whomever.

    train.py [SECONDS that a line takes]
"""
import signal
import sys
import time

import primus

pause = float(sys.argv[1]) if len(sys.argv) > 1 else 0
state = {"changed": True, "leaving": False, "waits": False}


def changed(*_):
    state["changed"] = True


def leave(*_):
    """Scaled away, or stopped: what has been trained with counts, the rest is for others."""
    state["leaving"] = True
    if state["waits"]:
        sys.exit(0)


signal.signal(signal.SIGUSR1, changed)
signal.signal(signal.SIGTERM, leave)

lines, total, worlds, rate = 0, 0, [], 0
records = primus.records()
try:
    while not state["leaving"]:
        if state["changed"]:
            state["changed"] = False
            now = primus.rendezvous()
            rate = 0.1 * now.world_size
            worlds.append(now.world_size)
            print(f"epoch {now.epoch}: rank {now.rank} of {now.world_size}, learning rate {rate:.1f}", flush=True)
        state["waits"] = True
        line = next(records, None)
        state["waits"] = False
        if line is None:
            break
        time.sleep(pause)
        total += round(1000 * float(line.split()[0]))
        lines += 1
        primus.ack()
finally:
    print(f"trained with {lines} lines, sum {total}, among {' '.join(map(str, worlds))} workers", flush=True)
