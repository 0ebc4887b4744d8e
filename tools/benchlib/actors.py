# SPDX-License-Identifier: Apache-2.0
"""What calls to actors cost, and making them: beside a bare socket between two processes, and what Python and Debian have for the same."""
import os
import statistics
import subprocess
import sys
import tempfile

# A module of its own, since what is called goes by its name.
MODULE = """
import os
class Echo:
    def ping(self):
        return 1
    def take(self, value):
        return None
    def pss(self):
        for line in open("/proc/self/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
"""

RAW = """
import os, socket, sys, time
a, b = socket.socketpair()
if os.fork() == 0:
    a.close()
    while (d := b.recv(65536)):
        b.send(d)
    os._exit(0)
b.close()
def one():
    began = time.perf_counter()
    a.send(b"x" * 60)
    a.recv(65536)
    return time.perf_counter() - began
times = sorted(one() for _ in range(20000))
print(1e6 * times[10000], 1e6 * times[19800])
"""

SYNC = """
import sys, time
def measure(call, n=10000):
    for _ in range(500):
        call()
    def one():
        began = time.perf_counter()
        call()
        return time.perf_counter() - began
    times = sorted(one() for _ in range(n))
    print(1e6 * times[n // 2], 1e6 * times[n * 99 // 100])
"""

OURS = SYNC + """
from primus import actors
import bench_actor
with actors.Pool(slots=1) as pool:
    one = pool.create(bench_actor.Echo)
    measure(lambda: one.ping().result())
"""

# A pool with a "host" that is this one, over TLS on loopback: with over_tls(slots, modules) as pool.
OVER_TLS = """
import contextlib, os, pathlib, subprocess, sys, tempfile
from primus import actors
import bench_actor
@contextlib.contextmanager
def over_tls(slots, preload=()):
    secret = os.urandom(32)
    with tempfile.TemporaryDirectory() as top, actors.Pool.of_job(port=0, secret=secret, preload=preload, warm=0) as pool:
        pathlib.Path(top, "actors").write_bytes(secret)
        env = {**os.environ, "PRIMUS_ACTORS": f"127.0.0.1:{pool.port}", "PRIMUS_SECRETS_DIR": top}
        with subprocess.Popen([sys.executable, "-m", "primus.actors.host", str(slots)], env=env):
            try:
                pool.create(bench_actor.Echo).ping().result()
                yield pool
            finally:  # or its end would be waited for
                pool.close()
"""

TLS = SYNC + OVER_TLS + """
with over_tls(1) as pool:
    one = pool.create(bench_actor.Echo)
    measure(lambda: one.ping().result())
"""

MANAGER = SYNC + """
from multiprocessing.managers import BaseManager
import bench_actor
class Manager(BaseManager):
    pass
Manager.register("Echo", bench_actor.Echo)
with Manager() as m:
    one = m.Echo()
    measure(one.ping)
"""

PROCESS_POOL = SYNC + """
import concurrent.futures
import bench_actor
with concurrent.futures.ProcessPoolExecutor(1) as pool:
    measure(lambda: pool.submit(abs, 1).result(), 3000)
"""

DISTRIBUTED = SYNC + """
from distributed import Client, LocalCluster
import bench_actor
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        one = client.submit(bench_actor.Echo, actor=True).result()
        measure(lambda: one.ping().result(), 1000)
"""

PIPELINED = """
import collections, time
from primus import actors
import bench_actor
with actors.Pool(slots=1) as pool:
    one, under_way, n = pool.create(bench_actor.Echo), collections.deque(), 100000
    one.ping().result()
    began = time.perf_counter()
    for _ in range(n):
        if len(under_way) >= 64:
            under_way.popleft().result()
        under_way.append(one.ping())
    while under_way:
        under_way.popleft().result()
    print(n / (time.perf_counter() - began), 0)
"""

CREATE = """
import sys, time
from primus import actors
import bench_actor
n = int(sys.argv[1])
with actors.Pool(slots=n, preload=["bench_actor", *sys.argv[2:]], warm=0) as pool:
    began = time.perf_counter()
    made = [pool.create(bench_actor.Echo) for _ in range(n)]
    for f in [one.ping() for one in made]:
        f.result()
    print(n / (time.perf_counter() - began), sum(one.pss().result() for one in made) / n)
"""

AGAIN = """
import time
from primus import actors
import bench_actor
with actors.Pool(slots=1) as pool:
    def again():
        one = pool.create(bench_actor.Echo)
        one.ping().result()
        del one
        began = time.perf_counter()
        pool.create(bench_actor.Echo).ping().result()
        return time.perf_counter() - began
    print(1e3 * sorted(again() for _ in range(50))[25], 0)
"""

TAKING = """
    one, array = pool.create(bench_actor.Echo), numpy.zeros(64 << 20, numpy.uint8)
    def take():
        began = time.perf_counter()
        one.take(array).result()
        return time.perf_counter() - began
    take()
    print((64 << 20) / 1e9 / sorted(take() for _ in range(9))[4], 0)
"""

ARRAY = """
import time
import numpy
from primus import actors
import bench_actor
with actors.Pool(slots=1, preload=["numpy"]) as pool:
""" + TAKING

SHARED_ARRAY = ARRAY.replace("Pool(", 'Pool(shared="160M", ')

TLS_ARRAY = OVER_TLS + """
import time
import numpy
with over_tls(1, ["numpy"]) as pool:
""" + TAKING

TLS_CREATE = OVER_TLS + """
import time
n = int(sys.argv[1])
with over_tls(n, ["bench_actor"]) as pool:
    began = time.perf_counter()
    made = [pool.create(bench_actor.Echo) for _ in range(n)]
    for f in [one.ping() for one in made]:
        f.result()
    print(n / (time.perf_counter() - began), sum(one.pss().result() for one in made) / n)
"""

# The same bytes through a bare socket, into fresh memory.
RAW_ARRAY = """
import os, socket, time
n = 64 << 20
a, b = socket.socketpair()
if os.fork() == 0:
    a.close()
    while True:
        into, at = bytearray(n), 0
        while at < n:
            got = b.recv_into(memoryview(into)[at:])
            if not got:
                os._exit(0)
            at += got
        b.send(b"x")
b.close()
data = bytearray(n)
for i in range(0, n, 4096):
    data[i] = 1
def take():
    began = time.perf_counter()
    a.sendall(data)
    a.recv(1)
    return time.perf_counter() - began
take()
print(n / 1e9 / sorted(take() for _ in range(9))[4], 0)
"""


def measured(source, program, *arguments):
    """The two numbers that the program prints; the median of three runs. None: it is not installed."""
    with tempfile.TemporaryDirectory() as top:
        with open(os.path.join(top, "bench_actor.py"), "w", encoding="utf-8") as f:
            f.write(MODULE)
        script = os.path.join(top, "bench.py")
        with open(script, "w", encoding="utf-8") as f:
            f.write(program)
        env = {**os.environ, "PYTHONPATH": f"{source}/lib/primus/python:{top}", "PYTHONDONTWRITEBYTECODE": "1"}
        runs = []
        for _ in range(3):
            done = subprocess.run(["/usr/bin/python3", script, *arguments], env=env, capture_output=True, text=True, check=False, timeout=300)
            if "ModuleNotFoundError" in done.stderr:
                return None
            if done.returncode:
                sys.exit(done.stderr)
            runs.append([float(x) for x in done.stdout.split()])
    return [statistics.median(column) for column in zip(*runs)]


def bench(source, report):
    raw = measured(source, RAW)
    sync = measured(source, OURS)
    ok = report("actors", "a call and its result, p50, beside a bare socket", sync[0], "µs", baseline=raw[0], goal=("value", "<=", 60))
    ok &= report("actors", "the same, p99", sync[1], "µs", baseline=raw[1], goal=("value", "<=", 200))
    for name, program, least in (("multiprocessing.managers", MANAGER, None), ("ProcessPoolExecutor", PROCESS_POOL, None), ("Dask's actors", DISTRIBUTED, ("ratio", ">=", 5))):
        other = measured(source, program)
        if other:
            ok &= report("actors", f"{name}, a call, p50, in those of ours", other[0], "µs", baseline=sync[0], goal=least)
    ok &= report("actors", "calls a second, 64 under way", measured(source, PIPELINED)[0], "1/s", goal=("value", ">=", 60000))
    bare, memory = measured(source, CREATE, "300")
    ok &= report("actors", "actors made a second, their own module preloaded", bare, "1/s", goal=("value", ">=", 750))
    ok &= report("actors", "memory of each", memory, "MiB", goal=("value", "<=", 2))
    numpy, memory = measured(source, CREATE, "300", "numpy")
    ok &= report("actors", "actors made a second, numpy preloaded", numpy, "1/s", goal=("value", ">=", 400))
    ok &= report("actors", "memory of each, with numpy", memory, "MiB", goal=("value", "<=", 2))
    there, memory = measured(source, TLS_CREATE, "300")
    ok &= report("actors", "actors made a second over TLS, beside those of this host", there, "1/s", baseline=bare)
    ok &= report("actors", "memory of each", memory, "MiB", goal=("value", "<=", 2))
    tls = measured(source, TLS)
    ok &= report("actors", "a call over TLS, p50, beside one on this host", tls[0], "µs", baseline=sync[0], goal=("value", "<=", 120))
    ok &= report("actors", "an array of 64 MiB over TLS", measured(source, TLS_ARRAY)[0], "GB/s")
    ok &= report("actors", "from del to the next one's first result", measured(source, AGAIN)[0], "ms", goal=("value", "<=", 100))
    ok &= report("actors", "an array of 64 MiB, by memory that both share", measured(source, SHARED_ARRAY)[0], "GB/s", goal=("value", ">=", 10))
    return report("actors", "an array of 64 MiB, beside a bare socket", measured(source, ARRAY)[0], "GB/s", baseline=measured(source, RAW_ARRAY)[0], goal=("value", ">=", 3)) and ok
