# SPDX-License-Identifier: Apache-2.0
"""Runs what was written for PARL: the script finds a module parl.

    python3 -m primus.parl SCRIPT [ARGUMENT...]             parl.connect("HOST:PORT") connects to a cluster of xparl
    python3 -m primus.parl --slots 8 SCRIPT ...             ... is a pool on this host, whatever address it names
    python3 -m primus.parl --hosts 4 --slots 8 SCRIPT ...   ... is a job on four hosts (primusctl submit)
"""
import argparse
import json
import os
import pathlib
import sys

from primus._environment import finding

from .client import POOL

SITE = pathlib.Path(__file__).parent / "site"


def parse(arguments):
    p = argparse.ArgumentParser(prog="python3 -m primus.parl", description="Runs a script that was written for PARL: it finds a module parl, whose remote objects are Primus's actors.",
                                epilog="Without --slots and --hosts, parl.connect() connects to a cluster of xparl by its address; with one of them it opens a pool.")
    p.add_argument("--hosts", type=int, metavar="N", help="so many hosts, as a job")
    p.add_argument("--slots", type=int, metavar="N", help="objects at a time on each host (as many as it has CPUs)")
    p.add_argument("--cpus", type=float, metavar="N", help="of each slot, with --hosts")
    p.add_argument("--memory", metavar="SIZE", help="of each slot, with --hosts")
    p.add_argument("--gpus", type=int, metavar="N", help="of each slot, with --hosts: remote_class(n_gpu=N)")
    p.add_argument("--queue", help="the job's, with --hosts")
    p.add_argument("--time", help="the job's limit, with --hosts")
    p.add_argument("script", metavar="SCRIPT", help="a program of Python")
    p.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="its arguments")
    o = p.parse_args(arguments)
    of_hosts = {name: getattr(o, name) for name in ("cpus", "memory", "gpus", "queue", "time") if getattr(o, name) is not None}
    if of_hosts and o.hosts is None:
        p.error(f"--{min(of_hosts)} is for a job: --hosts N")
    return o, of_hosts


def main(arguments):
    o, of_hosts = parse(arguments)
    environment = finding(SITE)
    if o.hosts is not None or o.slots is not None:
        settings = {**of_hosts, **{name: getattr(o, name) for name in ("hosts", "slots") if getattr(o, name) is not None}}
        environment[POOL] = json.dumps(settings)
    os.execvpe(sys.executable, [sys.executable, o.script, *o.arguments], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
