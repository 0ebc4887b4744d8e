# SPDX-License-Identifier: Apache-2.0
"""A host of a cluster of xparl: its slots are there for as long as this process is. For each client it starts the process of a pool
(primus.actors.host), which connects to that client."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from primus._environment import finding
from primus.actors import host

from . import _link, logs
from ._secret import secret

JOIN_SECONDS = 30


class Worker:
    """master_address   HOST:PORT
    cpu_num             int or text; as many as this process may use, if not said
    log_server_port     where its objects' output is to be had; any if not said
    gpu                 "0,1": of a cluster of GPUs

    It has joined when it is made; run() waits for exit(), or for the master's end."""

    def __init__(self, master_address, cpu_num=None, log_server_port=None, gpu=""):
        cpus = len(os.sched_getaffinity(0)) if cpu_num in (None, "") else int(cpu_num)
        gpus = [one for one in str(gpu or "").split(",") if one]
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._hosts = {}  # the process for each client, by its id
        self._known = secret()
        self._slots = len(gpus) or cpus
        frames = _link.dial(master_address)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="xparl-"))
        self._files, self._logs = self.directory / "files", self.directory / "logs"
        for path in (self._files, self._logs, self.directory / "secrets"):
            path.mkdir()
        (self.directory / "secrets/actors").write_bytes(self._known)
        self._pages, where = logs.serve(self._logs, frames.channel.own()[0].removeprefix("::ffff:"), int(log_server_port or 0))
        self.log_server_address = where
        self._link = _link.Link(frames, self._hear, self._leave).start()
        said, _ = self._link.ask(worker={"cpus": cpus, "gpus": gpus, "hostname": socket.gethostname(), "logs": where}).result(JOIN_SECONDS)
        self.slots, self._id = said["slots"], said["id"]

    def run(self):
        self._over.wait()

    def exit(self):
        self._link.close()
        self._over.wait()

    @property
    def job_buffer(self):
        """PARL forks ahead of need; here the process of a client does, so nothing is to be filled."""
        return self

    def full(self):
        return not self._over.is_set()

    # ---- in the link's thread

    def _hear(self, said):
        if "open" in said:
            self._open(str(said["open"]), [str(a) for a in said["addresses"]], int(said["port"]))

    def _open(self, client, addresses, port):
        environment = {**finding(), "PRIMUS_ACTORS": host.where(addresses, port), "PRIMUS_SECRETS_DIR": str(self.directory / "secrets"),
                       "TMPDIR": str(self._files), "PRIMUS_PARL_LOGS": str(self._logs), "XPARL": "True"}
        # It does not outlive this thread, which ends with the worker.
        process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "primus.actors.host", str(self._slots)], env=environment,
                                   stdin=subprocess.DEVNULL, cwd=self._files)
        with self._lock:
            self._hosts[client] = process
        threading.Thread(target=self._wait, args=(client, process), name="xparl-host", daemon=True).start()

    def _wait(self, client, process):
        process.wait()
        with self._lock:
            if self._hosts.get(client) is process:
                del self._hosts[client]
        self._link.say(closed=client)

    def _leave(self):
        with self._lock:
            hosts = list(self._hosts.values())
        for process in hosts:
            process.kill()
        self._pages.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        self._over.set()
