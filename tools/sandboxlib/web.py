# SPDX-License-Identifier: Apache-2.0
"""The page of a cluster, in a browser of this machine: primusctl web runs on n1, as a user of it, on a loopback that nobody else
reaches; a port of this machine's loopback is carried there."""
import contextlib
import os
import queue
import re
import socket
import subprocess
import threading

from . import enter
from .state import SOURCE, Cluster, SandboxError


class Loopback:
    """Connects to ports of a host's loopback: a socket belongs to the network of the thread that makes it."""

    def __init__(self, pid):
        self.wanted, self.made = queue.Queue(), queue.Queue()
        self.namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        threading.Thread(target=self._make, daemon=True).start()

    def _make(self):
        failed = enter.libc.setns(self.namespace, enter.CLONE_NEWNET) < 0
        while port := self.wanted.get():
            try:
                if failed:
                    raise OSError("cannot enter the host's network")
                self.made.put(socket.create_connection(("127.0.0.1", port)))
            except OSError as e:
                self.made.put(e)

    def connect(self, port):
        """From one thread at a time."""
        self.wanted.put(port)
        made = self.made.get()
        if isinstance(made, OSError):
            raise made
        return made


def _pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for s in (source, target):
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)


def carry(listener, connect):
    """Each connection to the listener, until that is closed, is carried to one that connect() makes."""
    with contextlib.suppress(OSError):
        while True:
            near, _ = listener.accept()
            try:
                far = connect()
            except OSError:
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=pair, daemon=True).start()


def show(name, user):
    """Prints the address, and serves until Ctrl-C."""
    leader = Cluster(name).node("n1").require_leader()
    running = subprocess.Popen([os.path.join(SOURCE, "tools/sandbox"), "exec", "--name", name, "--user", user, "n1", "--", "primusctl", "web"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    with running, socket.create_server(("127.0.0.1", 0)) as listener:
        try:
            found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(\S+)\n", running.stdout.readline())
            if not found:
                raise SandboxError("primusctl web did not start, see above")
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/{found[2]}", flush=True)
            loopback = Loopback(leader["pid"])
            threading.Thread(target=carry, args=(listener, lambda: loopback.connect(int(found[1]))), daemon=True).start()
            running.wait()
        except KeyboardInterrupt:
            pass
        finally:
            running.terminate()
