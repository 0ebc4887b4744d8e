# SPDX-License-Identifier: Apache-2.0
"""Counters on two hosts: python3 count.py on a host where primusctl works."""
import socket

from primus import actors


@actors.remote
class Counter:
    def __init__(self, start):
        self.n = start

    def add(self, k):
        self.n += k
        return self.n, socket.gethostname()


if __name__ == "__main__":
    with actors.Pool(hosts=2, slots=2, cpus=0.1, memory="128M"):
        counters = [Counter(i) for i in range(4)]
        for future in [counter.add(10) for counter in counters]:  # all four at once
            n, where = future.result()
            print(f"{n} on {where}")
