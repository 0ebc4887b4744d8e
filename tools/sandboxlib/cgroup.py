# SPDX-License-Identifier: Apache-2.0
"""The cgroup a host lives in. It is made by us where the machine has no systemd, and by systemd as a delegated service
where it has; only there are the controllers, and so the limits, handed on to the host. No other cgroup is touched.
"""
import functools
import os
import signal
import subprocess
import time

from .state import SandboxError, deadline

PREFIX = "primus-sandbox"


@functools.lru_cache(None)
def hierarchies():
    """(unified mount point, every mount point that hosts must be in): cgroup v2, and v1's name=systemd where it is."""
    unified, named = None, None
    with open("/proc/self/mountinfo") as f:
        for line in f:
            fields, _, tail = line.partition(" - ")
            kind, _, options = tail.split()[:3]
            if kind == "cgroup2" and not unified:
                unified = fields.split()[4]
            elif kind == "cgroup" and "name=systemd" in options.split(","):
                named = fields.split()[4]
    if not unified:
        raise SandboxError("the machine has no cgroup v2 hierarchy mounted")
    return unified, [m for m in (unified, named) if m]


def of_process(pid):
    """The directories of the cgroups that a process is in, of those hierarchies."""
    unified, mounts = hierarchies()
    found = []
    with open(f"/proc/{pid}/cgroup") as f:
        for line in f:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers == "":
                found.append(unified + path)
            elif controllers == "name=systemd" and len(mounts) > 1:
                found.append(mounts[1] + path)
    return found


def _processes(directory):
    pids = []
    for path, _, files in os.walk(directory):
        try:
            with open(f"{path}/cgroup.procs") as f:
                pids += [int(line) for line in f]
        except OSError:
            pass
    return pids


def kill_all(directories):
    """SIGKILL for every process at or below, and none is left on return."""
    left = deadline(10)
    while True:
        pids = {pid for directory in directories for pid in _processes(directory)}
        if not pids:
            return
        if not left():
            raise SandboxError(f"processes survive SIGKILL: {sorted(pids)}")
        for directory in directories:
            try:
                with open(f"{directory}/cgroup.kill", "w") as f:
                    f.write("1")
            except OSError:
                pass
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.002)  # the kernel offers no event for an empty v1 hierarchy


def remove(directory):
    left = deadline(5)
    for path, _, _ in os.walk(directory, topdown=False):
        while True:
            try:
                os.rmdir(path)
                break
            except FileNotFoundError:
                break
            except OSError as e:
                if not left():
                    raise SandboxError(f"cannot remove the cgroup {path}: {e.strerror}") from e
                time.sleep(0.002)


class Direct:
    """cgroups of our own making, below PREFIX in each hierarchy."""
    name = "direct"

    def _directories(self, node):
        return [f"{mount}/{PREFIX}/{node.cluster.name}/{node.name}" for mount in hierarchies()[1]]

    def start(self, node, command, log):
        directories = self._directories(node)
        kill_all(directories)
        for directory in directories:
            remove(directory)
            os.makedirs(directory)
        return subprocess.Popen([command[0], ":".join(directories), *command[1:]], stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log, start_new_session=True)

    def kill(self, node):
        kill_all(self._directories(node))
        for directory in self._directories(node):
            remove(directory)

    def cluster_names(self):
        names = set()
        for mount in hierarchies()[1]:
            if os.path.isdir(f"{mount}/{PREFIX}"):
                names |= {entry.name for entry in os.scandir(f"{mount}/{PREFIX}") if entry.is_dir()}
        return names

    def remove_cluster(self, cluster):
        directories = [f"{mount}/{PREFIX}/{cluster.name}" for mount in hierarchies()[1]]
        kill_all(directories)
        for directory in directories:
            remove(directory)
        for mount in hierarchies()[1]:
            try:
                os.rmdir(f"{mount}/{PREFIX}")
            except OSError:
                pass  # another cluster lives there


class Systemd:
    """A transient service per host, to which systemd delegates a cgroup with all its controllers."""
    name = "systemd"

    def _unit(self, node):
        return f"{PREFIX}-{node.cluster.name}-{node.name}.service"

    def _systemctl(self, *arguments):
        return subprocess.run(["systemctl", *arguments], capture_output=True, text=True).stdout

    def _units(self, pattern):
        listed = self._systemctl("list-units", "--all", "--plain", "--no-legend", "--full", pattern)
        return [line.split()[0] for line in listed.splitlines() if line.strip()]

    def start(self, node, command, log):
        self.kill(node)
        return subprocess.Popen(
            ["systemd-run", "--quiet", "--collect", "--wait", f"--unit={self._unit(node)}", "-p", "Delegate=yes",
             "-p", "TasksMax=infinity", "-p", "LimitNOFILE=1048576", "-p", "KillMode=mixed", "-p", "TimeoutStopSec=5s",
             "-p", "OOMPolicy=continue", "-p", f"StandardOutput=append:{log.name}", "-p", f"StandardError=append:{log.name}",
             command[0], "", *command[1:]],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _kill_unit(self, unit):
        group = self._systemctl("show", "-P", "ControlGroup", unit).strip()
        if group not in ("", "/"):
            kill_all([hierarchies()[0] + group])
        self._systemctl("stop", unit)
        self._systemctl("reset-failed", unit)

    def kill(self, node):
        self._kill_unit(self._unit(node))

    def cluster_names(self):
        return {unit[len(PREFIX) + 1:].rpartition("-n")[0] for unit in self._units(f"{PREFIX}-*.service")}

    def remove_cluster(self, cluster):
        for unit in self._units(f"{PREFIX}-{cluster.name}-n*.service"):
            if unit.rpartition("-n")[0] == f"{PREFIX}-{cluster.name}":
                self._kill_unit(unit)


@functools.lru_cache(None)
def backend():
    return Systemd() if os.path.isdir("/run/systemd/system") else Direct()
