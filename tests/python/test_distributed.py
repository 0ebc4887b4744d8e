# SPDX-License-Identifier: Apache-2.0
"""primus.distributed: processes that meet, on a Unix socket and over TCP; strangers, wrong secrets, ranks that differ."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest
from ports import free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))
from primus import distributed  # noqa: E402
from primus.distributed import Broken, Group  # noqa: E402

SECRET = b"s" * 32


def together(n, address, do, secret=None, seconds=10):
    """do(group) in n threads; what each returns or raises."""
    found = [None] * n

    def one(rank):
        group = None
        try:
            group = Group(rank, n, address, secret, seconds)
            found[rank] = do(group)
        except Exception as e:
            found[rank] = e
        finally:
            if group:
                group.close()
    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(n)]
    for t in reversed(threads):
        t.start()
    for t in threads:
        t.join(60)
    return found


@pytest.fixture(params=["unix", "tcp"])
def address(request, tmp_path):
    return (str(tmp_path / "s"), None) if request.param == "unix" else (("127.0.0.1", free_port()), SECRET)


def test_talk(address):
    at, secret = address
    big = "x" * (3 << 20)

    def do(g):
        for _ in range(50):
            g.barrier()
        return g.gather(g.rank), g.allgather({"r": [g.rank, None, 1.5]}), g.broadcast("a" if g.rank == 0 else None), len(g.broadcast(big if g.rank == 0 else None))

    found = together(5, at, do, secret)
    for rank, (gathered, all_of_them, told, size) in enumerate(found):
        assert gathered == ([0, 1, 2, 3, 4] if rank == 0 else None) and all_of_them == [{"r": [r, None, 1.5]} for r in range(5)] and told == "a" and size == 3 << 20


def test_differ(address):
    """Ranks that call different things hear of it, both."""
    at, secret = address
    found = together(2, at, lambda g: g.gather(1) if g.rank else g.allgather(1), secret)
    assert isinstance(found[0], Broken) and "rank 1 calls gather (its call 2), and this one allgather (its call 2)" in str(found[0])
    found = together(2, at, lambda g: g.broadcast("y" * (17 << 20)) if g.rank == 0 else g.broadcast(), secret)
    assert isinstance(found[0], ValueError) and isinstance(found[1], Broken) and "another rank has ended" in str(found[1])


def test_strangers():
    """Who has no secret, or another one, or says nothing, is passed over; the group meets."""
    at = ("127.0.0.1", free_port())
    found = []
    first = threading.Thread(target=lambda: found.append(Group(0, 2, at, SECRET, 30).allgather(0)))
    first.start()
    time.sleep(0.2)
    silent = [socket.create_connection(at) for _ in range(20)]  # hold nobody up
    for talk in (b"", b"GET / HTTP/1.0\r\n\r\n" * 100, os.urandom(4000)):
        with socket.create_connection(at) as s:
            s.sendall(talk)
    with pytest.raises(TimeoutError, match="does not take this one"):
        Group(1, 2, at, b"t" * 32, 0.3)
    with pytest.raises(TimeoutError, match="does not take this one"):
        Group(7, 8, at, SECRET, 0.3)  # no such rank there
    assert Group(1, 2, at, SECRET, 30).allgather(1) == [0, 1]
    first.join(30)
    assert found == [[0, 1]]
    for s in silent:
        s.close()
    # A listener that is none of us is not believed either.
    with socket.create_server(("127.0.0.1", 0)) as server:
        def play():
            with contextlib.suppress(OSError):
                while True:
                    s, _ = server.accept()
                    with s:
                        s.sendall(b"\0" * 48)
        threading.Thread(target=play, daemon=True).start()
        with pytest.raises(TimeoutError):
            Group(1, 2, server.getsockname(), SECRET, 0.5)


def test_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="need a secret of at least 16 bytes"):
        Group(0, 2, ("127.0.0.1", 1), b"short")
    with pytest.raises(ValueError, match="rank 2 of 2"):
        Group(2, 2, "/x")
    with pytest.raises(TimeoutError, match="1 of 2 ranks have come"):
        Group(0, 2, str(tmp_path / "s"), seconds=0.2)
    monkeypatch.delenv("PRIMUS_WORK", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"primus-group-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="is not a directory of this user's alone"):
        distributed.local_address("a")
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="where is rank 0"):
        distributed.group(rank=0, size=2, local_size=1)
    assert distributed.group().allgather(3) == [3]


def test_another_user(tmp_path):
    """The socket's peer has to be the same user."""
    at = str(tmp_path / "s")
    os.chmod(tmp_path, 0o777)
    found = []
    first = threading.Thread(target=lambda: found.append(Group(0, 2, at, seconds=30).allgather(0)))
    first.start()
    while not os.path.exists(at):
        time.sleep(0.01)
    os.chmod(at, 0o777)
    if os.getuid() == 0:
        code = f"import socket,struct; s = socket.socket(socket.AF_UNIX); s.connect({at!r}); s.sendall(struct.pack('<I', 1)); print(s.recv(1))"
        for parent in tmp_path.parents:
            if parent != pathlib.Path("/"):
                os.chmod(parent, os.stat(parent).st_mode | 0o001)
        done = subprocess.run([sys.executable, "-c", code], user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=30)
        assert done.stdout.strip() == "b''", done.stderr
    assert Group(1, 2, at, seconds=30).allgather(1) == [0, 1]
    first.join(30)


def test_processes(tmp_path):
    """As torchrun starts them; the second group of a name is another one."""
    code = "from primus import distributed as d; import json, os; g = d.group(); h = d.group(); print(json.dumps([g.allgather(g.rank), h.broadcast('z' if h.rank == 0 else None)]))"
    env = {**os.environ, "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "PYTHONPATH": str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"), "TMPDIR": str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", code], env={**env, "RANK": str(r)}, stdout=subprocess.PIPE, text=True) for r in range(3)]
    assert [json.loads(p.communicate(timeout=60)[0]) for p in processes] == [[[0, 1, 2], "z"]] * 3
