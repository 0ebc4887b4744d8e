#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pi by MPI (Debian's python3-mpi4py): every rank sums its part, and all learn the whole."""
import sys

from mpi4py import MPI

STEPS = 1_000_000


def main():
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    part = sum(4 / (1 + ((i + 0.5) / STEPS) ** 2) for i in range(rank, STEPS, size)) / STEPS
    pi = world.allreduce(part)
    hosts = world.gather(MPI.Get_processor_name())
    if rank == 0:
        print(f"pi is {pi:.10f}, says each of {size} ranks on {' '.join(sorted(set(hosts)))}", flush=True)
    return 0 if abs(pi - 3.14159265) < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
