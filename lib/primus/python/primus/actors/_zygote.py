# SPDX-License-Identifier: Apache-2.0
"""Makes processes of actors, by fork: what they need is imported once. Started by the pool, with a socket as descriptor 0; it ends, and
all its actors with it, when the other end of that is gone.

Packets of JSON. From the pool: {"path": [...], "preload": [...], "warm": N} first; {"start": ID} with the actor's socket, and the memory that it shares with the pool, if it does, or {"start": ID,
"token": HEX, "env": {...}} with one to the pool on another host, where "tls" of the first packet is that one's fingerprint (_proof.py), and
with where its output goes, if that is not where this one's does (_journal.py);
{"kill": ID}. To it: {"ready": true} or {"refused": WHY}; {"started": ID, "pid": PID}; {"died": ID, "status": WAIT STATUS}, with "memory" where the kernel ended it
for want of that (_groups.py). The first packet has "groups" where each is to have a control group of its own."""
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

from . import _actor, _journal, _wire
from ._arena import Arena
from ._groups import Groups
from ._wire import PACKET_MAX

PR_SET_PDEATHSIG = 1

prctl = ctypes.CDLL(None).prctl


def _threads():
    return len(os.listdir("/proc/self/task"))


def preload(names):
    """Imports them. A sentence why not, or None."""
    for name in names:
        before = _threads()
        try:
            importlib.import_module(name)
        except Exception as e:
            return f"preload: {name} cannot be imported: {e}"
        if _threads() > before:
            return f"preload: {name} starts threads, which a fork would not take along"
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            return f"preload: {name} initialises CUDA, which a fork must not share"
    return None


def _reach():
    """Imported once for all children, and not at all where actors are on the pool's own host."""
    from . import _reach
    return _reach


class Zygote:
    def __init__(self, control):
        self.control = control
        self.context, self.pin = None, None  # for actors that connect to another host
        self.warm = []  # (pid, socket) of children that wait for an actor
        self.wanted = 0  # of these
        self.actors = {}  # pid by id
        self.ids = {}  # id by pid
        self.woken = self.wake = -1  # a pipe that SIGCHLD writes to
        self.groups = None  # Groups, where each child has one of its own

    def fork(self, *others):
        """A child that waits to be told which actor it is. others: descriptors that are none of its business."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                for fd in others:
                    os.close(fd)
                self._become_actor(theirs)
            finally:
                os._exit(70)
        theirs.close()
        self._add_group(pid)
        return pid, ours

    def _add_group(self, pid):
        if self.groups is None:
            return
        try:
            self.groups.add(pid)
        except OSError as e:
            print(f"primus.actors: process {pid} has no control group of its own, and so no limit: {e}", file=sys.stderr)

    def _become_actor(self, told):
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        parent = os.getppid()
        gc.enable()
        self.control.close()
        for _, s in self.warm:
            s.close()
        os.close(self.woken)
        os.close(self.wake)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()  # Python's own begins anew by itself
        if self.context is not None:
            _reach().rehearse(self.context)
        packet, descriptors, _, _ = socket.recv_fds(told, PACKET_MAX, 2)
        if not descriptors or os.getppid() != parent:
            os._exit(0)
        told.close()
        said, s = json.loads(packet), socket.socket(fileno=descriptors[0])
        os.environ.update(said.get("env", {}))
        if self.pin is None:
            reader = _wire.Reader(s)
            reader.arena = Arena(descriptors[1], True) if len(descriptors) > 1 else None
            _actor.run(s, reader)
        else:
            for output in descriptors[1:]:
                for fd in _journal.outputs(os.environ):
                    os.dup2(output, fd)
                os.close(output)
            _actor.run(*_reach().reach(s, self.context, self.pin, bytes.fromhex(said["token"])))

    def start(self, question, descriptors):
        id = question["start"]
        while True:
            pid, s = self.warm.pop(0) if self.warm else self.fork(*descriptors)
            try:
                socket.send_fds(s, [json.dumps(question).encode()], descriptors)
                break
            except OSError:  # it has been killed
                continue
            finally:
                s.close()
        for descriptor in descriptors:
            os.close(descriptor)
        self.actors[id], self.ids[pid] = pid, id
        self.say(started=id, pid=pid)

    def kill(self, id):
        if id in self.actors:
            os.kill(self.actors[id], signal.SIGKILL)

    def say(self, **what):
        try:
            self.control.send(json.dumps(what).encode())
        except OSError:
            self.end()

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            id = self.ids.pop(pid, None)
            memory = self.groups and self.groups.remove(pid)
            if id is not None:
                del self.actors[id]
                self.say(died=id, status=status, **({"memory": memory} if memory else {}))
            else:
                self.warm = [w for w in self.warm if w[0] != pid]

    def end(self):
        for pid in [*self.ids, *(w[0] for w in self.warm)]:
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # who waits for this one's end knows that theirs has come
            while True:
                os.waitpid(-1, 0)
        os._exit(0)

    def hear(self):
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, PACKET_MAX, 2)
        except ConnectionResetError:
            data = b""
        if not data:
            self.end()
        question = json.loads(data)
        if "start" in question:
            self.start(question, list(descriptors))
        elif "kill" in question:
            self.kill(question["kill"])

    def run(self):
        gc.disable()
        data, _, _, _ = socket.recv_fds(self.control, PACKET_MAX, 0)
        if not data:
            return
        settings = json.loads(data)
        sys.path[:] = [*([os.getcwd()] if settings.get("files") else []), *settings["path"]]
        why = preload(settings["preload"])
        if why:
            self.say(refused=why)
            return
        self.wanted = settings["warm"]
        if settings.get("groups"):
            self.groups = Groups(**settings["groups"])
        if "tls" in settings:
            self.context, self.pin = _reach().client_context(), bytes.fromhex(settings["tls"])
        gc.collect()
        gc.freeze()  # what a collection would write to in each child, so that it had a copy of its own
        self.woken, self.wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.woken, select.POLLIN)
        self.say(ready=True)
        while True:
            # Children are made ahead of need when there is nothing else to do.
            events = poll.poll(0 if len(self.warm) < self.wanted else None)
            for fd, _ in events:
                if fd == self.woken:
                    os.read(self.woken, 4096)
                    self.reap()
                else:
                    self.hear()
            if not events:
                self.warm.append(self.fork())


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the pool's process, which ends this one
    pool = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # an actor's standard input is not the pool
    Zygote(pool).run()
