# SPDX-License-Identifier: Apache-2.0
"""A pool of several hosts is a job: one executor on each host, which runs primus.actors.host. Submitted and killed by primusctl, as the
user who calls."""
import json
import os
import subprocess
import sys

from . import host
from ._hello import REFUSED, UNLIKE
from ._size import size
from .errors import NotStarted

FAILURES_MAX = 1000  # of one executor: a zygote that was killed is made again
BY_ITSELF_SECONDS, END_SECONDS = 3, 30


class Job:
    """slots: of one host; cpus, memory, gpus: of one slot. door: where hosts find the pool. fileno(): readable when the job has ended."""

    def __init__(self, hosts, slots, cpus, memory, gpus, queue, time, addresses, files, door):
        self._hosts = hosts
        config = configuration(hosts, slots, cpus, memory, gpus, files)
        options = [f"--env=PRIMUS_ACTORS={host.where(addresses or own_addresses(), door.port)}"]
        self.number = submit(config, door.secret, queue, time, *options)
        self._waits = subprocess.Popen(["primusctl", "wait", "-q", str(self.number)], stdin=subprocess.DEVNULL, start_new_session=True)
        self._ended = os.pidfd_open(self._waits.pid)

    def fileno(self):
        return self._ended

    def why_ended(self):
        try:
            reason = json.loads(run(["status", "--json", str(self.number)])).get("reason") or "it has ended"
        except (NotStarted, ValueError):
            reason = "it has ended"
        return f"job {self.number}, which the pool runs in: {reason}"

    def why_waits(self):
        """What primusctl says of it."""
        try:
            said = run(["why", str(self.number)]).strip()
        except NotStarted as e:
            said = str(e)
        return f"job {self.number}: {said}"

    def end(self, hosts):
        """Hosts end by themselves when the pool does; where not all are there, what is on its way or waits for a place does by this."""
        if hosts == self._hosts and self._has_ended(BY_ITSELF_SECONDS):
            return
        try:
            run(["kill", "--reason=the pool is closed", str(self.number)])
        except NotStarted:  # it has ended, or there is no master: then hosts find no pool any more
            pass
        if not self._has_ended(END_SECONDS):
            self._waits.kill()
            self._waits.wait()

    def _has_ended(self, seconds):
        try:
            self._waits.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self):
        """As often as one likes."""
        if self._ended >= 0:
            os.close(self._ended)
        self._ended = -1


def configuration(hosts, slots, cpus, memory, gpus, files=()):
    """A job's (primus-job(5)), as a dict."""
    if not isinstance(hosts, int) or hosts < 1:
        raise ValueError("hosts is a number, at least 1")
    role = {
        "roleName": "actors", "num": hosts, "minNum": 1, "vcores": round(slots * (1 if cpus is None else cpus), 3),
        "argv": [sys.executable, "-m", "primus.actors.host", str(slots)], "scheduleStrategy": {"maxReplicasPerNode": 1}, "delegate": True,
        "failover": {"commonFailoverPolicy": {"maxFailureTimes": FAILURES_MAX}},
    }
    if gpus:
        role["gpuNum"] = slots * gpus
    if memory is not None:
        role["memoryMb"] = max(-(-slots * size(memory) >> 20), 1)
    if isinstance(files, str):
        raise TypeError("files is a list of names")
    along = {"files": [str(name) for name in files]} if files else {}
    return {"name": "actors", **along, "role": [role], "exitCodes": [{"codes": str(REFUSED), "action": "fail"}, {"codes": str(UNLIKE), "action": "blame"}]}


def submit(config, secret, queue, time, *options):
    """The job's number. secret: bytes, which its executors have as "actors". NotStarted: why not."""
    options = [*options, *([f"--queue={queue}"] if queue else []), *([f"--time={time}"] if time else []), *(["--env=PYTHONPATH"] if "PYTHONPATH" in os.environ else [])]
    with os.fdopen(os.memfd_create("primus-actors"), "wb") as file:
        file.write(secret)
        file.flush()
        return int(run(["submit", "--parsable", f"--secret=actors=/proc/self/fd/{file.fileno()}", *options, "-"], json.dumps(config), file.fileno()))


def own_addresses():
    """Of this host, without those that only it knows itself by."""
    found = subprocess.run(["hostname", "-I"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout.split()
    if not found:
        raise NotStarted("this host has no address that others could reach it at; address=[…] says one")
    return found


class NoSuchJob(NotStarted):
    """The master has none of that number (any more)."""


def _refused(said, status):
    """What becomes of what primusctl says on standard error, which with --json is an object."""
    try:
        error = json.loads(said)["error"]
        return (NoSuchJob if error["name"] == "org.primus.Error.NoSuchJob" else NotStarted)(error["message"])
    except (ValueError, KeyError, TypeError):
        return NotStarted(said or f"primusctl has ended with status {status}")


def run(arguments, text="", *descriptors):
    """What primusctl prints. NotStarted, NoSuchJob: why not."""
    try:
        done = subprocess.run(["primusctl", *arguments], input=text, capture_output=True, text=True, pass_fds=descriptors, check=False)
    except FileNotFoundError:
        raise NotStarted("a pool of several hosts is a job of the cluster, and there is no primusctl on this host") from None
    if done.returncode:
        raise _refused(done.stderr.strip(), done.returncode)
    return done.stdout
