# SPDX-License-Identifier: Apache-2.0
"""Pools that outlive programs, by names of this user's: a job each, whose first executor has the pool (served.py). What a program needs to
come to it is in a file of this user's: which job that is, and its secret."""
import contextlib
import json
import os
import re
import secrets
import sys

from .. import _state
from . import _job
from .errors import ActorError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}")
SECRET_BYTES = 32
ENDED = {"SUCCEEDED", "FAILED", "KILLED"}


def _path(name):
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a pool: up to 48 letters, digits, '_', '.' and '-'")
    return _state.directory("primus-actors") / f"{name}.json"


def known(name):
    """(job, secret) of the pool by that name. ActorError: this user has none here."""
    path = _path(name)
    try:
        found = path.stat()
        said = json.loads(path.read_text(encoding="ascii"))
        job, secret = said["job"], bytes.fromhex(said["secret"])
    except FileNotFoundError:
        raise ActorError(f"there is no pool by the name of {name!r}: actors.serve({name!r}, hosts=…) makes one ({path} is not there)") from None
    except (ValueError, KeyError, TypeError):  # who makes it has yet to write
        job = secret = None
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ActorError(f"{path}: others could have written or read it: remove it, and serve the pool anew")
    if job is None:
        raise ActorError(f"the pool {name!r} is just being made, or who made it has ended meanwhile: remove {path} then")
    return job, secret


def status(job):
    """What primusctl says of it; None: it is forgotten. NotStarted: it says nothing now."""
    try:
        return json.loads(_job.run(["status", "--json", str(job)]))
    except _job.NoSuchJob:
        return None


def place(job):
    """(host, port) of the pool, or None: it does not run yet. ActorError: its job has ended. NotStarted: nobody says so now."""
    said = status(job)
    if said is None or said["state"] in ENDED:
        raise ActorError(f"the pool's job {job} has ended" + (f": {said['reason']}" if said and said.get("reason") else ""))
    for one in said["executors"]:
        if one["role"] == "pool" and one["state"] == "RUNNING" and one.get("ports"):
            hosts = json.loads(_job.run(["nodes", "--json"]))
            return next((host["address"] or host["name"] for host in hosts if host["name"] == one["node"]), one["node"]), one["ports"][0]
    return None


def _claim(path, name):
    """The file, open and empty. ActorError: there is such a pool."""
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            job, _ = known(name)
            said = status(job)
            if said is not None and said["state"] not in ENDED:
                raise ActorError(f"the pool {name!r} is there already: job {job} (actors.attach({name!r}))") from None
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def configuration(name, hosts, slots, cpus, memory, gpus, files, settings):
    """The job's. Where the pool's process ends, hosts wait for the next one, which is another pool: actors end with it."""
    config = _job.configuration(hosts, slots, cpus, memory, gpus, files)
    [role] = config["role"]
    role["argv"].append("--again")
    pool = {"roleName": "pool", "num": 1, "vcores": 0, "argv": [sys.executable, "-m", "primus.actors.served", json.dumps(settings)],
            "failover": role["failover"]}
    return {**config, "name": f"actors-{name}", "role": [pool, role]}


def serve(name, hosts, slots=1, *, preload=(), warm=2, cpus=None, memory=None, gpus=0, queue=None, time=None, files=()):
    """Makes a pool that goes on when this program ends, as a job of this user's: its number, int. attach(name) is how this program, and
    later ones of this user on this host, come to it; primusctl kill ends it, with all of its actors.

    name     of up to 48 letters, digits, '_', '.' and '-'
    slots    int, of each host; all others as Pool() has them

    ActorError: there is one by that name. NotStarted: why primusctl does not take it."""
    path = _path(name)
    settings = {"preload": list(preload), "warm": warm, "gpus": gpus, "memory": memory, "files": bool(files)}
    config = configuration(name, hosts, slots, cpus, memory, gpus, files, settings)
    secret = secrets.token_bytes(SECRET_BYTES)
    with os.fdopen(_claim(path, name), "w", encoding="ascii") as file:
        try:
            # First: of a job whose secret nobody has, nobody could use anything.
            json.dump({"job": None, "secret": secret.hex()}, file)
            file.flush()
            job = _job.submit(config, secret, queue, time)
        except BaseException:
            path.unlink()
            raise
        file.seek(0)
        json.dump({"job": job, "secret": secret.hex()}, file)
        file.truncate()
    return job
