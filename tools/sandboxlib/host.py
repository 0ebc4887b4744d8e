# SPDX-License-Identifier: Apache-2.0
"""One container host: boot, power cut, cable."""
import hashlib
import json
import os
import select
import socket

from . import cgroup, network
from .enter import enter
from .state import SOURCE, SandboxError, deadline, start_time, write_file

BOOT_TIMEOUT = 60

# What of a host survives a power cut: directory of its state -> path inside. All else is in memory.
DISKS = {
    "etc-primus": "/etc/primus",
    "primus": "/var/lib/primus",
    "primus-agent": "/var/lib/primus-agent",
    "journal": "/var/log/journal",
}


def _machine_id(node):
    return hashlib.sha256(f"{node.cluster.name}/{node.name}".encode()).hexdigest()[:32]


def _log_tail(node, lines=15):
    try:
        with open(node.path("console.log"), errors="replace") as f:
            return "\n".join(f.read().splitlines()[-lines:])
    except FileNotFoundError:
        return ""


class Booting:
    """A host on its way up: wait() returns when its systemd says that it is ready."""

    def __init__(self, node, root):
        self.node = node
        os.makedirs(node.path("mnt"), exist_ok=True)
        self.disks = {} if node.cluster.record.get("plain") else DISKS
        for name in self.disks:
            os.makedirs(node.path(name), exist_ok=True)
        for name in ("notify", "leader.json"):
            if os.path.lexists(node.path(name)):
                os.unlink(node.path(name))
        backend = cgroup.backend()
        backend.kill(node)
        network.add_host(node)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind(node.path("notify"))
        with open(node.path("console.log"), "a") as log:
            self.process = backend.start(node, self._command(root), log)
        self.leader = None

    def _command(self, root):
        node, record = self.node, self.node.cluster.record
        binds = [f"--bind={node.path(name)}:{inside}" for name, inside in self.disks.items()]
        binds += [f"--bind={bind}" for bind in record["binds"]]
        return [
            os.path.join(SOURCE, "tools/sandboxlib/boot-host"), node.dir, f"{node.cluster.path('stage')}:{root}",
            " ".join(read_enabled(node)),
            "--quiet", "--boot", "--register=no", "--keep-unit", "--console=read-only", "--settings=no",
            "--notify-ready=yes", "--private-users=no", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
            f"--machine={node.cluster.name}-{node.name}", f"--hostname={node.name}", f"--uuid={_machine_id(node)}",
            f"--network-namespace-path={network.NETNS_DIR}/{node.netns}",
            "--capability=CAP_BPF,CAP_PERFMON,CAP_SYS_ADMIN,CAP_NET_ADMIN",
            "--system-call-filter=bpf perf_event_open", *binds,
        ]

    def wait(self):
        left = deadline(BOOT_TIMEOUT)
        with self.socket:
            while True:
                if not left():
                    raise SandboxError(f"host {self.node.name} did not finish booting in {BOOT_TIMEOUT} s:\n{_log_tail(self.node)}")
                # An end of the process has no file descriptor of its own to wait for beside the socket but its pidfd.
                pidfd = os.pidfd_open(self.process.pid)
                try:
                    readable, _, _ = select.select([self.socket, pidfd], [], [], left())
                finally:
                    os.close(pidfd)
                if self.socket in readable:
                    if self._notified(self.socket.recv(4096).decode(errors="replace")):
                        return
                elif readable:
                    self.process.wait()
                    raise SandboxError(f"host {self.node.name} did not boot:\n{_log_tail(self.node)}")

    def _notified(self, message):
        fields = dict(line.split("=", 1) for line in message.splitlines() if "=" in line)
        if "X_NSPAWN_LEADER_PID" in fields:
            pid = int(fields["X_NSPAWN_LEADER_PID"])
            self.leader = {"pid": pid, "start": start_time(pid)}
        if fields.get("READY") != "1":
            return False
        if not self.leader:
            raise SandboxError(f"systemd-nspawn did not name the leader of {self.node.name}")
        # The leader sits in init.scope of the host's root cgroup.
        self.leader["payload"] = [os.path.dirname(path) for path in cgroup.of_process(self.leader["pid"])]
        write_file(self.node.path("leader.json"), json.dumps(self.leader) + "\n")
        return True


def read_enabled(node):
    """Units that start when the host boots: none before it has joined."""
    try:
        with open(node.path("enabled")) as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def enable(node, units):
    write_file(node.path("enabled"), "\n".join(units) + "\n")


def crash(node):
    """A power cut. The cable goes first: a machine without power says no goodbye to its peers."""
    node.require_leader()
    network.set_cable(node, False)
    kill(node)


def kill(node):
    cgroup.backend().kill(node)
    network.remove_host(node)
    if os.path.lexists(node.path("leader.json")):
        os.unlink(node.path("leader.json"))


def run(node, argv, user="root", stdin=None, check=True):
    """Runs a command in the host and returns (exit status, stdout, stderr)."""
    leader = node.require_leader()
    out, err, source = os.memfd_create("out"), os.memfd_create("err"), os.memfd_create("in")
    os.write(source, (stdin or "").encode())
    os.lseek(source, 0, os.SEEK_SET)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(source, 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
            os._exit(enter(leader, argv, user))
        except SandboxError as e:
            os.write(err, f"{e}\n".encode())
        finally:
            os._exit(125)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    texts = []
    for fd in (out, err):
        os.lseek(fd, 0, os.SEEK_SET)
        with os.fdopen(fd, errors="replace") as f:
            texts.append(f.read())
    os.close(source)
    if check and status != 0:
        raise SandboxError(f"{node.name}: '{' '.join(argv)}' ended with status {status}: {texts[1].strip() or texts[0].strip()}")
    return status, *texts
