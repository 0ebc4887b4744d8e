# SPDX-License-Identifier: Apache-2.0
"""The process of a pool that outlives programs (actors.serve()): rank 0 of its job, which has the pool for as long as the job lives.

    python3 -m primus.actors.served SETTINGS

SETTINGS: JSON, arguments of Pool.of_job(). Programs come to it by the job's secret (_guest.py). It ends with status 2 when a host refuses
what the pool is to have."""
import json
import signal
import sys

from ._hello import REFUSED
from .errors import HostRefused, PreloadRefused
from .pool import Pool


def main(arguments):
    with Pool.of_job(guests=True, **json.loads(arguments[0])) as pool:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: pool.ended.set())
        pool.ended.wait()
        why = pool.why_over()
    if isinstance(why, (HostRefused, PreloadRefused)):
        print(f"primus.actors.served: {why}", file=sys.stderr)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
