# SPDX-License-Identifier: Apache-2.0
"""Names and places of a cluster.

Everything that a cluster owns on the machine is found again from the cluster's name alone, so that `down` needs no
record to be intact: a directory, network namespaces and cgroups that carry the name.
"""
import contextlib
import fcntl
import json
import os
import re
import sys
import time

STATE = os.environ.get("PRIMUS_SANDBOX_STATE", "/var/lib/primus-sandbox")
CACHE = os.environ.get("PRIMUS_SANDBOX_CACHE", "/var/cache/primus-sandbox")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PATIENCE = float(os.environ.get("PRIMUS_SANDBOX_PATIENCE", "1"))

NODES_MAX = 200
CLUSTER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


class SandboxError(Exception):
    """Something a person can act on; printed as one line."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def write_file(path, text, mode=0o644):
    """Replaces path by text, whole or not at all."""
    temporary = f"{path}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(fd, "w") as f:
        f.write(text)
    os.rename(temporary, path)


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (FileNotFoundError, ValueError):
        return None


def start_time(pid):
    """The process's start time in clock ticks, which together with the number names it for good; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if fields and fields[0] != "Z" else None


class Node:
    """Names and places of one host."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.index = int(name[1:])
        self.dir = os.path.join(cluster.dir, "nodes", name)
        self.netns = f"primus.{cluster.name}.{name}"
        self.link = f"vb-{name}"

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def address(self):
        return f"10.99.{self.cluster.subnet}.{self.index + 10}"

    @property
    def address6(self):
        return f"fd00:99:{self.cluster.subnet:x}::{self.index + 10:x}"

    def leader(self):
        """{pid, start, payload} of the PID 1 inside, or None when the host is not up."""
        record = read_json(self.path("leader.json"))
        if record and start_time(record["pid"]) == record["start"]:
            return record
        return None

    def require_leader(self):
        leader = self.leader()
        if not leader:
            if not os.path.isdir(self.dir):
                raise SandboxError(f"cluster '{self.cluster.name}' has no host '{self.name}'"
                                   f"; it has: {' '.join(self.cluster.names()) or 'none, or is not up'}")
            raise SandboxError(f"host {self.name} is down; start it with"
                               f" 'tools/sandbox boot {self.name} --name {self.cluster.name}'")
        return leader


class Cluster:
    def __init__(self, name):
        if not CLUSTER_NAME.fullmatch(name):
            raise SandboxError(f"'{name}' is not a cluster name: at most 20 of a-z, 0-9 and -, not at an end")
        self.name = name
        self.dir = os.path.join(STATE, name)
        self.netns = f"primus.{name}"
        self._record = None

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    @property
    def record(self):
        """What `up` was asked for, None while there is no such cluster."""
        if self._record is None:
            self._record = read_json(self.path("cluster.json"))
        return self._record

    def save(self, record):
        self._record = record
        write_file(self.path("cluster.json"), json.dumps(record, indent=2) + "\n")

    def require(self):
        if not self.record:
            raise SandboxError(f"there is no cluster '{self.name}'; start it with 'tools/sandbox up --name {self.name}'")
        return self

    @property
    def subnet(self):
        return self.record["subnet"]

    def names(self):
        return [f"n{i}" for i in range(1, self.record["nodes"] + 1)] if self.record else []

    def node(self, name):
        if not re.fullmatch(r"n[1-9][0-9]{0,2}", name):
            raise SandboxError(f"'{name}' is not a host's name; hosts are called n1, n2, …")
        return Node(self, name)

    def nodes(self):
        return [Node(self, name) for name in self.names()]


def cluster_names():
    """Every cluster that has a directory."""
    try:
        return sorted(entry.name for entry in os.scandir(STATE) if entry.is_dir() and CLUSTER_NAME.fullmatch(entry.name))
    except FileNotFoundError:
        return []


def _is_at(fd, path):
    """Whether the open file still has that name."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def locked(path, what):
    """Holds an exclusive lock; says what is waited for when it takes time. The descriptor, handed on to a child, keeps the
    lock for as long as that lives. Who holds it may remove the file."""
    while True:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the directory has just gone
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {what} …")
            fcntl.flock(fd, fcntl.LOCK_EX)
        if _is_at(fd, path):
            break
        os.close(fd)
    try:
        yield fd
    finally:
        os.close(fd)


def deadline(seconds):
    """A function that returns the seconds left, never below 0. On a slow machine all times are longer."""
    end = time.monotonic() + seconds * PATIENCE
    return lambda: max(0.0, end - time.monotonic())
