# SPDX-License-Identifier: Apache-2.0
"""primus_group_open() and what follows it: ranks in C and in Python meet and talk; strangers, wrong secrets, ranks that differ; primus_should_stop()."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from ports import free_port

# A rank's Group, in C and in Python.
OF_C = """
import ctypes, json, os, sys
from ctypes import POINTER, byref, c_char_p, c_int, c_uint16, c_uint32, c_uint64, c_void_p
lib = ctypes.CDLL(os.environ["PRIMUS_LIBRARY"])
class Options(ctypes.Structure):
    _fields_ = [("size", c_uint32), ("rank", c_uint32), ("world", c_uint32), ("local_world", c_uint32), ("name", c_char_p), ("host", c_char_p), ("port", c_uint16), ("timeout_usec", c_uint64)]
lib.primus_group_error.restype = c_char_p
lib.primus_group_error.argtypes = lib.primus_group_barrier.argtypes = lib.primus_group_close.argtypes = lib.primus_group_size.argtypes = [c_void_p]
for name in ("gather", "allgather"):
    getattr(lib, "primus_group_" + name).argtypes = [c_void_p, c_char_p, POINTER(POINTER(c_char_p))]
lib.primus_group_broadcast.argtypes = [c_void_p, c_char_p, POINTER(c_char_p)]
class Failed(Exception):
    pass
class Group:
    def __init__(self, name="group", timeout=20):
        self.g = None
        g = c_void_p()
        self.check(lib.primus_group_open(byref(Options(size=ctypes.sizeof(Options), name=name.encode(), timeout_usec=int(timeout * 1000000))), byref(g)))
        self.g, self.rank = g, int(os.environ["RANK"])
    def check(self, r):
        if r < 0:
            raise Failed(os.strerror(-r), lib.primus_group_error(self.g).decode())
    def barrier(self):
        self.check(lib.primus_group_barrier(self.g))
    def _all(self, f, value):
        found = POINTER(c_char_p)()
        self.check(f(self.g, json.dumps(value).encode(), byref(found)))
        return [json.loads(found[i]) for i in range(lib.primus_group_size(self.g))] if found else None
    def gather(self, value):
        return self._all(lib.primus_group_gather, value)
    def allgather(self, value):
        return self._all(lib.primus_group_allgather, value)
    def broadcast(self, value=None):
        found = c_char_p()
        self.check(lib.primus_group_broadcast(self.g, None if value is None else json.dumps(value).encode(), byref(found)))
        return json.loads(found.value)
    def close(self):
        lib.primus_group_close(self.g)
"""
OF_PYTHON = """
import json, sys
from primus import distributed
Failed = OSError
Group = lambda name="group": distributed.group(name)
"""
SECRET = b"s" * 32


@pytest.fixture
def rank(environment, tmp_path):
    """rank(n, size, kind, source): a process that is one. The secret is of several hosts', which its environment may say it has."""
    secrets, others = tmp_path / "secrets", tmp_path / "others"
    for directory, secret in ((secrets, SECRET), (others, b"t" * 32)):
        directory.mkdir()
        (directory / "group").write_bytes(secret)
    started = []

    def start(n, size, kind, source, **env):
        e = {**environment, "RANK": str(n), "WORLD_SIZE": str(size), "TMPDIR": str(tmp_path), "PRIMUS_SECRETS_DIR": str(secrets), **{k: str(v) for k, v in env.items()}}
        started.append(subprocess.Popen([sys.executable, "-c", kind + source], env=e, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    start.others = others
    yield start
    for process in started:
        process.kill()
        process.communicate()


def said(process):
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    return out


@pytest.fixture(params=["unix", "tcp"])
def meets(request):
    """What the environment says of where."""
    return {} if request.param == "unix" else {"LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}


TALK = """
g = Group()
for _ in range(30):
    g.barrier()
big = "x" * (3 << 20)
print(json.dumps([g.gather(g.rank), g.allgather({"ü": [g.rank, None, 1.5]}), g.broadcast("a" if g.rank == 0 else None), len(g.broadcast(big if g.rank == 0 else None))]))
h = Group("other") if UNIX else g
print(h.broadcast([h.rank] if h.rank == 0 else None))
g.close()
"""


@pytest.mark.parametrize("kinds", ["ccccc", "cpcpc", "pcccp"])
def test_talk(rank, meets, kinds):
    source = TALK.replace("UNIX", str(not meets))
    ranks = [rank(n, len(kinds), OF_C if kind == "c" else OF_PYTHON, source, **meets) for n, kind in reversed(list(enumerate(kinds)))]
    for n, process in enumerate(reversed(ranks)):
        first, second = said(process).splitlines()
        assert json.loads(first) == [[0, 1, 2, 3, 4] if n == 0 else None, [{"ü": [r, None, 1.5]} for r in range(5)], "a", 3 << 20] and second == "[0]"


DIFFER = """
g = Group()
try:
    print(g.%s(1))
except Failed as e:
    print(e.args[-1])
sys.stdin.read()  # stays until the other one is asked
"""


@pytest.mark.parametrize("first", [OF_C, OF_PYTHON], ids="cp")
def test_differ(rank, meets, first):
    """Ranks that call different things hear of it."""
    ranks = [rank(0, 2, first, DIFFER % "allgather", **meets), rank(1, 2, OF_C, DIFFER % "gather", **meets)]
    assert "rank 1 calls gather (its call 2), and this one allgather (its call 2)" in said(ranks[0])
    assert said(ranks[1]) == "None\n"
    ranks = [rank(0, 2, first, DIFFER % "broadcast", **meets), rank(1, 2, OF_C, DIFFER % "allgather", **meets)]
    assert "rank 0 calls broadcast (its call 2), and this one allgather (its call 2)" in said(ranks[1]) and said(ranks[0]) == "1\n"
    ranks = [rank(0, 2, OF_C, "Group().gather(1)", **meets), rank(1, 2, first, "Group()", **meets)]
    said(ranks[1])
    assert "'Connection reset by peer', 'rank 1 has ended'" in ranks[0].communicate(timeout=60)[1]
    ranks = [rank(n, 2, OF_C, 'g = Group()\ntry:\n    g.broadcast("y" * (17 << 20))\nexcept Failed as e:\n    print(e)', **meets) for n in range(2)]
    assert "are too many: a value may have 16777216" in said(ranks[0]) and "rank 0 has ended" in said(ranks[1])


def test_strangers(rank):
    """Who has no secret, or another one, or says nothing, is passed over; the group meets."""
    meets = {"LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    at = ("127.0.0.1", meets["MASTER_PORT"])
    first = rank(0, 2, OF_C, "print(Group(timeout=40).allgather(0))", **meets)
    silent = []
    for _ in range(100):
        try:
            silent.append(socket.create_connection(at))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    silent += [socket.create_connection(at) for _ in range(79)]  # more than are heard at a time
    for talk in (b"", b"GET / HTTP/1.0\r\n\r\n" * 100, os.urandom(4000)):
        with socket.create_connection(at) as s:
            s.sendall(talk)
    late = "try:\n    Group(timeout=0.3)\nexcept Failed as e:\n    print(e.args[1])"
    assert "rank 0 at 127.0.0.1 does not take this one" in said(rank(1, 2, OF_C, late, **{**meets, "PRIMUS_SECRETS_DIR": rank.others}))
    assert "rank 0 at 127.0.0.1 does not take this one" in said(rank(7, 8, OF_C, late, **meets))  # no such rank there
    assert said(rank(1, 2, OF_C, "print(Group().allgather(1))", **meets)) == said(first) == "[0, 1]\n"
    for s in silent:
        s.close()
    # A listener that is none of us is not believed either.
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = rank(1, 2, OF_C, late, **{**meets, "MASTER_PORT": server.getsockname()[1]})
        server.settimeout(0.2)
        while process.poll() is None:
            try:
                s, _ = server.accept()
                with s:
                    s.sendall(b"\0" * 48)
            except OSError:
                pass
        assert "does not take this one" in said(process)


def test_refused(rank, tmp_path):
    says = "try:\n    Group(timeout=0.2)\nexcept Failed as e:\n    print(e.args[1])"
    meets = {"LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}
    assert "need a secret of at least 16 bytes" in said(rank(0, 2, OF_C, says, **{**meets, "PRIMUS_SECRETS_DIR": tmp_path}))
    assert said(rank(2, 2, OF_C, says)) == "rank 2 of 2\n"
    assert said(rank("1x", 2, OF_C, says)) == "RANK is '1x', and no number from 0 to 1048576\n"
    assert said(rank(0, 2, OF_C, says)) == "1 of 2 ranks have come\n"
    assert "where is rank 0" in said(rank(0, 2, OF_C, says, LOCAL_WORLD_SIZE=1, MASTER_ADDR="", MASTER_PORT=7))
    top = tmp_path / f"primus-group-{os.getuid()}"
    top.chmod(0o755)
    assert "no directory of this user's alone" in said(rank(0, 2, OF_C, says))
    assert said(rank(0, 1, OF_C, "print(Group().allgather(3))")) == "[3]\n"
    done = rank(0, 1, OF_C, "g = Group()\ng.check(lib.primus_group_gather(g.g, b'{', byref(POINTER(c_char_p)())))")
    assert "the value is no JSON: string or" in done.communicate(timeout=60)[1]


def test_should_stop(rank):
    process = rank(0, 1, """
import ctypes, os, time
lib = ctypes.CDLL(os.environ["PRIMUS_LIBRARY"])
assert lib.primus_should_stop() == 0
print("waits", flush=True)
while not lib.primus_should_stop():
    time.sleep(0.01)
print("stops")
""", "")
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGTERM)
    assert said(process) == "stops\n"
