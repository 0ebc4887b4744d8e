# SPDX-License-Identifier: Apache-2.0
"""A pool of "hosts" that are all this one: the processes that a job would start on each, over TLS on loopback."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from primus import actors

HERE = pathlib.Path(__file__).resolve()
SECRET = b"of a job, for all of its hosts.."
PATH = f"{HERE.parents[2] / 'lib/primus/python'}:{HERE.parent}"


def until(true, seconds=10):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Hosts:
    def __init__(self, pool, directory):
        self.pool, self.processes, self._directory = pool, [], directory
        pathlib.Path(directory, "actors").write_bytes(SECRET)

    def start(self, name, slots=2):
        """The process."""
        env = {**os.environ, "PYTHONPATH": PATH, "PYTHONDONTWRITEBYTECODE": "1", "PRIMUS_ACTORS": f"127.0.0.1:{self.pool.port}",
               "PRIMUS_SECRETS_DIR": self._directory, "PRIMUS_NODE": name}
        self.processes.append(subprocess.Popen([sys.executable, "-m", "primus.actors.host", str(slots)], env=env))
        return self.processes[-1]


@contextlib.contextmanager
def several(names=("n1", "n2"), slots=2, **options):
    """A pool of them, and its Hosts."""
    with tempfile.TemporaryDirectory() as directory, actors.Pool.of_job(port=0, secret=SECRET, **options) as pool:
        hosts = pool.hosts_of_test = Hosts(pool, directory)
        for name in names:
            hosts.start(name, slots)
        try:
            until(lambda: pool.stats()["hosts"] == len(names), 30)
            yield pool
        finally:
            pool.close()
            for process in hosts.processes:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise
                finally:
                    process.wait()


@contextlib.contextmanager
def places(hosts):
    """A pool of four slots: here (1), or on two of them."""
    with actors.Pool(slots=4) if hosts == 1 else several() as pool:
        yield pool
