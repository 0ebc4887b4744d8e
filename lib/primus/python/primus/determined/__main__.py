# SPDX-License-Identifier: Apache-2.0
"""Runs what was written for Determined.

    python3 -m primus.determined SCRIPT [ARGUMENT...]        here: the script finds a module determined
    python3 -m primus.determined [OPTIONS] EXPERIMENT.yaml   as a job: what becomes of the experiment's configuration
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from primus._environment import finding

from .convert import NotHere, job_of, load

SITE = pathlib.Path(__file__).parent / "site"


def run(program, arguments):
    os.execvpe(program, [program, *arguments], finding(SITE))


def parse(arguments):
    p = argparse.ArgumentParser(prog="python3 -m primus.determined", description="Submits an experiment of Determined as a job, or runs a script of it.",
                                epilog="A name that does not end in .yaml is a script, which is run here with a module determined.")
    p.add_argument("experiment", help="the experiment's configuration, EXPERIMENT.yaml; or SCRIPT [ARGUMENT...]")
    p.add_argument("context", nargs="?", help="the directory that goes along (that of the configuration)")
    p.add_argument("--checkpoints", metavar="DIR", help="where checkpoints are: a directory that all hosts see, or s3://BUCKET/PREFIX (checkpoint_storage of the configuration)")
    p.add_argument("--cpu", action="store_true", help="a slot is a CPU, and not a GPU")
    p.add_argument("--slots-per-host", metavar="N", type=int, help="at most so many slots of a trial on a host (all)")
    p.add_argument("--cpus", metavar="N", type=float, default=1, help="CPUs of a slot (%(default)s)")
    p.add_argument("--memory", metavar="SIZE", default="2G", help="of an executor (%(default)s)")
    p.add_argument("--print", action="store_true", help="print the job's configuration, and submit nothing")
    p.add_argument("--name", help="instead of the configuration's")
    return p.parse_args(arguments)


def submit(text, context, secret):
    """By primusctl, from the context's directory, so that its files are found."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", dir=context, prefix=".primus-") as f:
        f.write(text)
        f.flush()
        command = ["primusctl", "submit", f.name]
        if not secret:
            return subprocess.run(command, check=False).returncode
        with tempfile.NamedTemporaryFile("wb") as key:
            key.write(os.urandom(32))
            key.flush()
            return subprocess.run([*command, f"--secret=group={key.name}"], check=False).returncode


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--shell":  # a job's entrypoint
        run("/bin/bash", ["-c", arguments[1]])
    if arguments and not arguments[0].startswith("-") and not arguments[0].endswith((".yaml", ".yml")):
        run(sys.executable, arguments)
    o = parse(arguments)
    context = pathlib.Path(o.context or pathlib.Path(o.experiment).parent).resolve()
    try:
        text, several = job_of(load(pathlib.Path(o.experiment).read_text(encoding="utf-8")), context, checkpoints=o.checkpoints, cpu=o.cpu, cpus=o.cpus,
                               slots_per_host=o.slots_per_host, memory=o.memory, name=o.name, warn=lambda w: print(f"{o.experiment}: {w}", file=sys.stderr))
    except (NotHere, OSError) as e:
        sys.exit(f"{o.experiment}: {e}")
    if o.print:
        print(text)
        return 0
    return submit(text, context, several)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
