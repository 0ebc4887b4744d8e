# SPDX-License-Identifier: Apache-2.0
"""What primusctl actors asks in each executor: python3 -m primus.actors.listing prints the actors there, as a list of JSON; with --kill NAME
it ends those of that name, and prints which these were:

    [{"actor": "Counter 3", "pid": 4711, "state": "S", "cpu": 1250000, "memory": 12345678, "began": 1790000000000000, "limit": 67108864}, ...]

cpu: microseconds of processors; memory: resident bytes; limit: of its memory, that the kernel holds it to, or null; began: microseconds since 1970; state: the kernel's letter."""
import json
import os
import pathlib
import signal
import sys

from . import _groups, _register

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def _booted():
    """Microseconds since 1970."""
    for line in pathlib.Path("/proc/stat").read_text(encoding="ascii").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) * 1000000
    return 0


def actors(environment):
    booted = _booted()
    return [{"actor": what, "pid": pid, "state": of[_register.STATE],
             "cpu": (int(of[_register.USER_TICKS]) + int(of[_register.SYSTEM_TICKS])) * 1000000 // TICK,
             "memory": int(of[_register.RESIDENT_PAGES]) * PAGE, "began": booted + int(of[_register.BEGAN]) * 1000000 // TICK, "limit": _groups.limit_of(pid)}
            for pid, what, of in _register.entries(environment)]


def kill(environment, name):
    """Those that were ended."""
    ended = []
    for one in actors(environment):
        if one["actor"] == name and _end(environment, one["pid"], name):
            ended.append(one)
    return ended


def _end(environment, pid, name):
    """Whether that process was still this actor, and is told to end."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Now that its number cannot become another's.
        if (pid, name) not in [entry[:2] for entry in _register.entries(environment)]:
            return False
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def main(arguments):
    if arguments and (len(arguments) != 2 or arguments[0] != "--kill"):
        sys.exit("usage: python3 -m primus.actors.listing [--kill ACTOR]")
    print(json.dumps(kill(os.environ, arguments[1]) if arguments else actors(os.environ)))


if __name__ == "__main__":
    main(sys.argv[1:])
