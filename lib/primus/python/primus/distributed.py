# SPDX-License-Identifier: Apache-2.0
"""A few words between the processes of a training: who is ready, a number from each, a path to all. Not for tensors.

    from primus import distributed

    group = distributed.group()                     # from RANK, WORLD_SIZE, ... as Primus and torchrun set them
    losses = group.gather(loss)                     # a list in rank 0, None elsewhere
    path = group.broadcast(path)                    # rank 0's
    group.barrier()

Values are of JSON: nothing that is received is ever code. All ranks call the same, in the same order. Processes of one executor
meet on a Unix socket, which no other user can connect to; those of several hosts at MASTER_ADDR and MASTER_PORT, where each proves that it
has the job's secret "group" (primusctl submit --secret group=FILE); what they say behind that is not encrypted."""
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import selectors
import socket
import stat
import struct
import tempfile
import threading
import time

VALUE_MAX = 16 << 20  # bytes of one value, as JSON
MEET_SECONDS = 600
HANDSHAKE_SECONDS = 5
STRANGERS_MAX = 64  # who have not proven yet who they are, at a time
SECRET_MIN = 16

_made = {}


class Broken(ConnectionError):
    """Another rank has gone, or calls something else."""


def _receive(s, n, end=None):
    found = b""
    while len(found) < n:
        if end is not None:
            s.settimeout(max(end - time.monotonic(), 0.001))
        try:
            part = s.recv(min(n - len(found), 1 << 20))
        except ConnectionResetError:
            part = b""
        if not part:
            raise Broken("another rank has ended")
        found += part
    return found


def _say(s, call, value):
    text = json.dumps([call, value]).encode()
    if len(text) > VALUE_MAX:
        raise ValueError(f"{len(text)} bytes are too many: a value may have {VALUE_MAX}")
    try:
        s.sendall(struct.pack("<I", len(text)) + text)
    except (BrokenPipeError, ConnectionResetError):
        raise Broken("another rank has ended") from None


def _hear(s, call, rank):
    size, = struct.unpack("<I", _receive(s, 4))
    if size > VALUE_MAX:
        raise Broken(f"rank {rank} says more than it may")
    theirs, value = json.loads(_receive(s, size))
    if theirs != call:
        raise Broken(f"rank {rank} calls {theirs[0]} (its call {theirs[1]}), and this one {call[0]} (its call {call[1]}): all ranks call the same")
    return value


def _proof(secret, who, theirs, ours, rank):
    return hmac.new(secret, who + theirs + ours + struct.pack("<I", rank), hashlib.sha256).digest()


class Group:
    """rank, size    int
    address          (host, port) that rank 0 listens at, or a path of a Unix socket
    secret           bytes that all of them have; with a host

    Waits until all have met: TimeoutError after ten minutes."""

    def __init__(self, rank, size, address=None, secret=None, seconds=MEET_SECONDS):
        if not 0 <= rank < size:
            raise ValueError(f"rank {rank} of {size}")
        self.rank, self.size = rank, size
        self._calls = 0
        self._peers = {}  # in rank 0: by rank; elsewhere rank 0 alone
        if size == 1:
            return
        self._unix = isinstance(address, (str, os.PathLike))
        if not self._unix and len(secret or b"") < SECRET_MIN:
            raise ValueError(f"processes of several hosts need a secret of at least {SECRET_MIN} bytes that all have: primusctl submit --secret group=FILE")
        end = time.monotonic() + seconds
        (self._listen if rank == 0 else self._connect)(address, secret, end)
        self.barrier()

    # ---- meeting

    def _listen(self, address, secret, end):
        family = socket.AF_UNIX if self._unix else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as server:
            if self._unix:
                pathlib.Path(address).unlink(missing_ok=True)
                server.bind(os.fspath(address))
            else:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(("", address[1]))
            server.listen(self.size)
            self._accept_all(server, secret, end)
        if self._unix:
            pathlib.Path(address).unlink(missing_ok=True)

    def _accept_all(self, server, secret, end):
        """Each who connects has a thread, so that nobody who says nothing holds up the others."""
        woken, wake = socket.socketpair()
        lock, room = threading.Lock(), threading.BoundedSemaphore(STRANGERS_MAX)

        def admit(s):
            try:
                rank = self._admit(s, secret)
                with lock:
                    if self._peers.setdefault(rank, s) is not s:
                        raise ValueError("that rank is there already")
                wake.send(b".")
            except (OSError, ValueError):
                s.close()
            finally:
                room.release()

        with woken, wake, selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                with lock:
                    if len(self._peers) == self.size - 1:
                        return
                for key, _ in selector.select(max(end - time.monotonic(), 0)):
                    if key.fileobj is woken:
                        woken.recv(self.size)
                    else:
                        room.acquire()
                        threading.Thread(target=admit, args=(server.accept()[0],), daemon=True).start()
                if time.monotonic() > end:
                    with lock:
                        raise TimeoutError(f"{len(self._peers) + 1} of {self.size} ranks have come")

    def _admit(self, s, secret):
        """The rank of who has connected. OSError, ValueError: it is none of us."""
        end = time.monotonic() + HANDSHAKE_SECONDS
        if self._unix:
            _, uid, _ = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            rank, = struct.unpack("<I", _receive(s, 4, end))
            proven = uid == os.getuid()
        else:
            ours = secrets.token_bytes(16)
            s.sendall(ours)
            rank, = struct.unpack("<I", _receive(s, 4, end))
            theirs, proof = _receive(s, 16, end), _receive(s, 32, end)
            proven = hmac.compare_digest(proof, _proof(secret, b"member", ours, theirs, rank))
        if not proven or not 0 < rank < self.size:
            raise ValueError("it is none of us")
        if not self._unix:
            s.sendall(_proof(secret, b"first", theirs, ours, rank))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.settimeout(None)
        return rank

    def _connect(self, address, secret, end):
        while True:
            s = None
            try:
                if self._unix:
                    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    s.connect(os.fspath(address))
                else:
                    s = socket.create_connection(address, HANDSHAKE_SECONDS)
                s.settimeout(HANDSHAKE_SECONDS)
                self._introduce(s, secret)
                s.settimeout(None)
                self._peers[0] = s
                return
            except OSError as e:
                if s:
                    s.close()
                if time.monotonic() > end:
                    raise TimeoutError(f"rank 0 at {address} does not take this one: {e}") from None
                time.sleep(0.1)

    def _introduce(self, s, secret):
        if self._unix:
            s.sendall(struct.pack("<I", self.rank))
            return
        theirs, ours = _receive(s, 16), secrets.token_bytes(16)
        s.sendall(struct.pack("<I", self.rank) + ours + _proof(secret, b"member", theirs, ours, self.rank))
        if not hmac.compare_digest(_receive(s, 32), _proof(secret, b"first", ours, theirs, self.rank)):
            raise Broken("who listens there has another secret")
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # ---- talking

    def _collect(self, name, value):
        """What all say, in rank 0; elsewhere it is said."""
        self._calls += 1
        call = [name, self._calls]
        if self.rank:
            _say(self._peers[0], call, value)
            return call, None
        return call, [value, *(_hear(self._peers[rank], call, rank) for rank in range(1, self.size))]

    def _tell(self, call, value):
        """What rank 0 has, in all."""
        if self.rank:
            return _hear(self._peers[0], call, 0)
        for rank in range(1, self.size):
            _say(self._peers[rank], call, value)
        return json.loads(json.dumps(value))  # as the others get it

    def gather(self, value):
        """A list of all values by rank, in rank 0; None elsewhere."""
        return self._collect("gather", value)[1]

    def allgather(self, value):
        """A list of all values by rank."""
        return self._tell(*self._collect("allgather", value))

    def broadcast(self, value=None):
        """Rank 0's value."""
        self._calls += 1
        return self._tell(["broadcast", self._calls], value)

    def barrier(self):
        """Returns when all have called it."""
        self._tell(*self._collect("barrier", None))

    def close(self):
        """The others may hear that this one has ended."""
        for s in self._peers.values():
            s.close()
        self._peers = {}


def local_address(name):
    """A path for the Unix socket of that name, in a directory that is this user's alone: the job's work directory, or one in /tmp.
    PermissionError: somebody else made that."""
    name = hashlib.sha256(name.encode()).hexdigest()[:24]
    work = os.environ.get("PRIMUS_WORK", "")
    if work and len(os.fsencode(work)) < 70 and os.path.isdir(work) and os.stat(work).st_uid == os.getuid():
        return pathlib.Path(work) / f".group-{name}"
    top = pathlib.Path(tempfile.gettempdir()) / f"primus-group-{os.getuid()}"
    top.mkdir(mode=0o700, exist_ok=True)
    is_ = top.lstat()
    if not stat.S_ISDIR(is_.st_mode) or is_.st_uid != os.getuid() or is_.st_mode & 0o077:
        raise PermissionError(f"{top} is not a directory of this user's alone")
    return top / name


def executor_name():
    """What this executor's processes have in common, and no other's."""
    e = os.environ
    return "/".join(e[k] for k in ("PRIMUS_JOB_UID", "PRIMUS_ROLE", "PRIMUS_INDEX", "PRIMUS_ATTEMPT")) if "PRIMUS_JOB_UID" in e else f"alone/{os.getppid()}"


def job_secret():
    """The job's secret "group", or None."""
    path = pathlib.Path(os.environ.get("PRIMUS_SECRETS_DIR", "/nonexistent")) / "group"
    return path.read_bytes() if path.exists() else None


def group(name="group", *, rank=None, size=None, local_size=None, host=None, port=None):
    """The Group of this process, by the environment: RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT. A second group of
    the same processes needs another name, and on several hosts another port."""
    e = os.environ
    rank = int(e.get("RANK", 0)) if rank is None else rank
    size = int(e.get("WORLD_SIZE", 1)) if size is None else size
    local_size = int(e.get("LOCAL_WORLD_SIZE", size)) if local_size is None else local_size
    if local_size == size:
        _made[name] = n = _made.get(name, -1) + 1
        return Group(rank, size, local_address(f"{executor_name()}/{name}/{n}") if size > 1 else None)
    host, port = host or e.get("MASTER_ADDR"), port or int(e.get("MASTER_PORT", 0))
    if not host or not port:
        raise ValueError("where is rank 0? MASTER_ADDR and MASTER_PORT are not set")
    return Group(rank, size, (host, port), job_secret())
