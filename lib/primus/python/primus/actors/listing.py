# SPDX-License-Identifier: Apache-2.0
"""What primusctl actors asks in each executor: python3 -m primus.actors.listing prints the actors there, as a list of JSON:

    [{"actor": "Counter 3", "pid": 4711, "state": "S", "cpu": 1250000, "memory": 12345678, "began": 1790000000000000}, ...]

cpu: microseconds of processors; memory: resident bytes; began: microseconds since 1970; state: the kernel's letter."""
import json
import os
import pathlib

from . import _register

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def _booted():
    """Microseconds since 1970."""
    for line in pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) * 1000000
    return 0


def actors(environment):
    booted, found = _booted(), []
    for pid, what in _register.entries(environment):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        found.append({"actor": what, "pid": pid, "state": fields[0], "cpu": (int(fields[11]) + int(fields[12])) * 1000000 // TICK,
                      "memory": int(fields[21]) * PAGE, "began": booted + int(fields[19]) * 1000000 // TICK})
    return found


if __name__ == "__main__":
    print(json.dumps(actors(os.environ)))
