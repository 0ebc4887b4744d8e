# SPDX-License-Identifier: Apache-2.0
"""The process of a pool on one of its hosts: an executor of the job. It connects to the pool, which proves that it has the job's secret
"actors" as this one does (_proof.py), starts a zygote here, and carries word between the two. Actors connect to the pool themselves.

    python3 -m primus.actors.host [SLOTS [--again]]

Where the pool is: PRIMUS_ACTORS, HOST:PORT with commas between what may be tried, as actors.Pool(hosts=…) sets it; else MASTER_ADDR and
MASTER_PORT, that is rank 0 of the job, whose process has opened Pool.of_job(). It ends when the pool does, and all its actors with it;
--again: with a status that says that the job goes on, and another pool comes."""
import contextlib
import json
import os
import pathlib
import select
import socket
import sys
import time

from . import _groups, _journal, _place, _proof, _reach
from ._frames import Frames
from ._gpus import Gpus
from ._hello import REFUSED, UNLIKE, hello
from ._register import Register
from .errors import ActorError

MEET_SECONDS = 60  # until the pool listens
LOST = 1  # a status: this is to be tried again


def addresses(environment):
    """[(host, port)] where the pool may be."""
    said = environment.get("PRIMUS_ACTORS")
    if said:
        pairs = [one.rpartition(":") for one in said.split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]
    if "MASTER_ADDR" in environment:
        return [(environment["MASTER_ADDR"], int(environment["MASTER_PORT"]))]
    raise ActorError("where is the pool? PRIMUS_ACTORS is not set, nor is MASTER_ADDR: it is an executor of a job that runs this")


def where(addresses, port):
    """The text of PRIMUS_ACTORS."""
    return ",".join(f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address in addresses)


def secret(environment):
    path = pathlib.Path(environment.get("PRIMUS_SECRETS_DIR", "."), "actors")
    try:
        return path.read_bytes()
    except OSError as e:
        raise ActorError(f"{path}: {e.strerror}: the job needs the secret that the pool has: primusctl submit --secret actors=FILE") from None


def connect(addresses, known, context):
    """(address, fingerprint of the pool, Frames to it). OSError: why the last of them was none."""
    error = OSError("no address")
    for address in addresses:
        try:
            found, fingerprint, channel = _reach.connect(address, context, known, _proof.HOST)
            return found, fingerprint, Frames(channel)
        except OSError as e:
            error = e
    raise error


def meet(addresses, known, context):
    end = time.monotonic() + MEET_SECONDS
    while True:
        try:
            return connect(addresses, known, context)
        except OSError as e:
            if time.monotonic() > end:
                where = ", ".join(f"{host}:{port}" for host, port in addresses)
                raise ActorError(f"there is no pool at {where}: {e}") from None
            time.sleep(0.2)


class Host:
    """Between the pool and the zygote. over: the status when the pool is"""

    def __init__(self, pool, address, fingerprint, over):
        self._pool, self._address, self._fingerprint, self._over = pool, address, fingerprint, over
        self._zygote = self._gpus = None
        self._register = Register(os.environ)
        self._in_journal = bool(_journal.outputs(os.environ))
        self._names, self._pids = {}, {}  # by id, of actors that are to start; and of those that have
        self._poll = select.poll()

    def _want_room(self, control, wanted):
        self._poll.register(control, select.POLLIN | (select.POLLOUT if wanted else 0))

    def run(self, slots):
        """The status to end with."""
        self._say(**hello(slots))
        settings = self._first()
        if settings is None:
            return self._over
        if "refused" in settings:
            print(f"primus.actors.host: the pool does not take this host: {settings['refused']}", file=sys.stderr)
            return UNLIKE
        self._gpus = Gpus(os.environ, settings["gpus"])
        why = self._gpus.missing(slots)
        if why:
            self._say(refused=why)
            return REFUSED
        groups = self._divide(slots, settings.get("memory"))
        packets = _place.Packets()
        try:
            why = packets.meet({**settings, "groups": groups, "warm": min(settings["warm"], slots), "tls": self._fingerprint.hex()}, settings["seconds"])
        except _place.Killed as e:
            print(f"primus.actors.host: {e}", file=sys.stderr)
            return LOST
        if why:
            self._say(refused=why)
            return REFUSED
        self._say(ready=True, limits=groups is not None)
        self._zygote = _place.Place(packets, "here", slots, groups is not None, self._want_room)
        self._poll.register(packets, select.POLLIN)
        self._poll.register(self._pool, select.POLLIN)
        return self._carry()

    def _divide(self, slots, memory):
        """What the zygote is told of control groups, or None: there are none."""
        top = _groups.own()
        if top is not None and top.name == _groups.POOL:  # of a process before this one, in the same executor
            top = top.parent
        if top is None or not os.access(top / "cgroup.subtree_control", os.W_OK):
            return None  # the role does not say "delegate", or this is no executor
        try:
            _groups.divide(top)
        except OSError as e:
            if memory is not None:
                print(f"primus.actors.host: no actor is held to its memory here, all of them are together: {e}", file=sys.stderr)
            return None
        return {"top": str(top), "memory": memory, "slots": slots}

    def _first(self):
        while True:
            try:
                said = self._pool.receive(True)
            except OSError:
                return None
            if said:
                return said[0]

    def _say(self, **what):
        self._pool.send(json.dumps(what).encode(), flags=0)

    def _carry(self):
        while True:
            for fd, events in self._poll.poll():
                if fd == self._pool.fileno():
                    try:
                        said = self._pool.receive()
                    except OSError:
                        return self._over  # the pool is closed, or its host is gone: there is nothing to do here
                    for packet in said:
                        self._tell(packet)
                    continue
                if events & select.POLLOUT:
                    self._zygote.say_on()
                try:
                    said = self._zygote.control.receive()
                except OSError:
                    print("primus.actors.host: the zygote has ended, and all actors with it", file=sys.stderr)
                    return LOST
                with contextlib.suppress(OSError):  # the pool's end is heard of above
                    for packet in said:
                        self._note(packet)
                        self._gpus.give_back(packet.get("died"))
                        self._say(**packet)

    def _note(self, packet):
        """For who asks on this host."""
        if "started" in packet:
            self._pids[packet["started"]] = packet["pid"]
            self._register.add(packet["pid"], self._names.pop(packet["started"], "?"))
        elif "died" in packet and packet["died"] in self._pids:
            self._register.remove(self._pids.pop(packet["died"]))

    def _tell(self, packet):
        if "start" in packet:
            self._names[packet["start"]] = str(packet.get("what"))
            # The actor's process waits until it is connected, not this one.
            s = socket.socket(socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET)
            s.setblocking(False)
            with contextlib.suppress(OSError):
                s.connect(self._address)
            s.setblocking(True)
            output = _journal.stream(self._names[packet["start"]]) if self._in_journal else None
            self._zygote.say(*(fd for fd in (s.detach(), output) if fd is not None), start=packet["start"], token=packet["token"],
                             env=self._gpus.take(packet["start"]))
        elif "kill" in packet:
            self._zygote.say(kill=packet["kill"])


def main(arguments):
    slots = int(arguments[0]) if arguments else len(os.sched_getaffinity(0))
    try:
        address, fingerprint, pool = meet(addresses(os.environ), secret(os.environ), _reach.client_context())
    except ActorError as e:
        sys.exit(f"primus.actors.host: {e}")
    return Host(pool, address, fingerprint, LOST if "--again" in arguments else 0).run(slots)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
