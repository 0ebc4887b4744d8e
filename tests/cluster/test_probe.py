# SPDX-License-Identifier: Apache-2.0
"""The probes in the kernel, against trainers that know what they did: bytes to the byte, CPU time, executors that live for
a moment; agentd that goes in between; and what becomes of all that where the kernel lets nothing in."""
import ctypes
import json
import os
import platform
import re
import textwrap
import time

import pytest
from sandbox import AGENTD, STARTER

# Does its work in threads and in children, some of whom have ended when it goes on; then tells, of itself and of everybody
# that it waited for, what the kernel says: the same counts as of no other place. Its own last read and write are counted in.
TRAINER = """
import json, os, resource, socket, sys, threading, time
def read(n):
    f = os.open("/dev/zero", os.O_RDONLY)
    for _ in range(n):
        os.read(f, 4096)
    os.close(f)
def write(n):
    f = os.open("/dev/null", os.O_WRONLY)
    for _ in range(n):
        os.write(f, b"x" * 1000)
    os.close(f)
def child(n):
    pid = os.fork()
    if pid == 0:
        read(n); write(n)
        os._exit(0)
    os.waitpid(pid, 0)
def usage():
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in (own, children))
def tell(path):
    text = os.read(os.open("/proc/self/io", os.O_RDONLY), 4096)
    counts = dict(line.split(b": ") for line in text.splitlines())
    told = {"read": int(counts[b"rchar"]) + len(text), "write": int(counts[b"wchar"]), "cpu": usage()}
    f = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    length = len(json.dumps({**told, "write": 10**12}))
    told["write"] += length
    os.write(f, json.dumps({**told}).ljust(length).encode())
    os.close(f)
def work(n):
    threads = [threading.Thread(target=read, args=(n,)) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    for _ in range(3): child(n)
    write(n)
out = sys.argv[1]
"""


@pytest.fixture
def trainer(shared_dir):
    """Writes a trainer that goes on from TRAINER; (its command, the file that it tells things in)."""
    def make(name, body):
        (shared_dir / f"{name}.py").write_text(TRAINER + textwrap.dedent(body))
        told = shared_dir / f"{name}.told"
        told.unlink(missing_ok=True)
        return f"exec python3 -S /shared/{name}.py /shared/{name}.told", told
    return make


def job(command, num=1, **role):
    return {"name": "probe", "role": [{"roleName": "worker", "num": num, "vcores": 0.01, "memoryMb": 16, "command": command, **role}]}


def metric(cluster, node, family, **labels):
    """The sum of a family's samples with these labels; None: there is no such sample."""
    page = cluster.exec(node, "python3", "-c", "import urllib.request as u; print(u.urlopen('http://127.0.0.1:7748/metrics').read().decode())")
    found = [float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if re.match(family + r"(_total)?\{", line)
             and all(f'{key}="{value}"' in line for key, value in labels.items())]
    return sum(found) if found else None


def io(cluster, node, number, direction):
    return metric(cluster, node, "primus_role_io_bytes", job=number, layer="syscall", dir=direction)


def settled(cluster, node, number):
    """What two samples in a row say that it has read: a thread that is on its way out is in the next one only."""
    before = None
    while (now := io(cluster, node, number, "read")) != before:
        before = now
        time.sleep(1.5)
    return now


def test_bytes_and_cpu_of_all_that_ended(cluster, trainer):
    """Threads, children that were waited for, and the main process: to the byte, and to a few milliseconds of CPU: what one that ends
    has run since the kernel's latest tick is not in its sum yet, and ticks are late where a hypervisor is busy."""
    command, told = trainer("ended", """
        work(50)
        while usage() < 0.3: pass
        tell(out)
        os._exit(0)
    """)
    number = cluster.submit(job(command))
    assert cluster.wait_job(number) == 0
    one, own = cluster.executor(number), json.loads(told.read_text())
    assert own["read"] > 7 * 50 * 4096
    assert one["readBytes"] == own["read"]
    assert one["writeBytes"] == own["write"]
    assert abs(one["cpuUsec"] / 1e6 - own["cpu"]) < 0.012 + 0.01 * own["cpu"]


def test_agentd_goes_in_between(cluster, trainer):
    """A sample of an executor that lives is as exact, and neither a restart nor kill -9 of agentd loses what has ended before."""
    command, told = trainer("between", """
        def wait(name):
            open(out + name, "w").close()
            while not os.path.exists(out + name + ".go"): time.sleep(0.05)
        for name in ("1", "2", "3"):
            work(20)
            wait(name)
        tell(out)
        os._exit(0)
    """)
    for name in "123":
        for end in ("", ".go"):
            told.with_name(told.name + name + end).unlink(missing_ok=True)
    number = cluster.submit(job(command))
    cluster.wait_state(number, "RUNNING")
    node, least, reads = cluster.executor(number)["node"], 0, []
    for name in "123":
        cluster.wait_for(told.with_name(told.name + name).exists, 20, f"part {name}")
        # The trainer asks for a file all the time, which is no read or write; what was counted at least is 7 * 20 blocks.
        least += 7 * 20 * 4096
        cluster.wait_for(lambda: (io(cluster, node, number, "read") or 0) >= least, 10, "a sample of all that")
        reads.append(settled(cluster, node, number))
        if name == "1":
            cluster.exec(node, "systemctl", "restart", AGENTD)
        elif name == "2":
            cluster.kill9(node, AGENTD)
        cluster.wait_nodes()
        cluster.wait_for(lambda: io(cluster, node, number, "read") is not None, 10, "a sample of the agent that runs now")
        assert settled(cluster, node, number) == reads[-1]
        told.with_name(told.name + name + ".go").touch()
    assert cluster.wait_job(number) == 0
    one, own = cluster.executor(number), json.loads(told.read_text())
    assert one["readBytes"] == own["read"]
    assert one["writeBytes"] == own["write"]


def test_a_moment_is_enough(cluster):
    """200 executors that do nothing but end."""
    number = cluster.submit(job("exec true", num=200, memoryMb=1))
    assert cluster.wait_job(number, timeout=120) == 0
    executors = cluster.status(number)["executors"]
    assert len(executors) == 200
    assert not [e["index"] for e in executors if not e["readBytes"]]
    # They all read the same: what the loader reads of the shell, of true, and of libc.
    assert max(e["readBytes"] for e in executors) < 1 << 20


def test_network(cluster, trainer):
    """Datagrams to itself: 28 bytes of headers each and nothing else."""
    command, told = trainer("network", """
        a, b = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
        a.bind(("127.0.0.1", 0))
        for _ in range(40):
            b.sendto(b"x" * 1000, a.getsockname())
            a.recv(2000)
        tell(out)
        time.sleep(1000)
    """)
    number = cluster.submit(job(command))
    cluster.wait_for(told.exists, 20, "the datagrams")
    node = cluster.executor(number)["node"]
    for direction in "receive", "transmit":
        cluster.wait_for(lambda: metric(cluster, node, "primus_role_network_bytes", job=number, dir=direction) == 40 * 1028,  # noqa: B023
                         10, f"40 datagrams, {direction}")
        assert metric(cluster, node, "primus_role_network_packets", job=number, dir=direction) == 40
    cluster.primusctl("kill", str(number))


SYSCALL_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
GET_FD_BY_ID = {"prog_id": 13, "map_id": 14, "link_id": 30}


def bpf_objects(pid):
    """What of BPF a process holds: {(kind, id)}."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                ids = dict(re.findall(r"^(prog_id|map_id|link_id):\s*(\d+)", f.read(), re.M))
            if "link_id" in ids:
                ids.pop("prog_id", None)  # who holds the link does not hold the program
            found |= {(key, int(value)) for key, value in ids.items()}
        except FileNotFoundError:
            pass
    return found


def is_there(kind, number):
    attributes = (ctypes.c_uint32 * 32)(number)
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYSCALL_BPF, GET_FD_BY_ID[kind], attributes, ctypes.sizeof(attributes))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


@pytest.mark.skipif(not SYSCALL_BPF, reason="the number of bpf() is not known on this machine")
def test_nothing_outlives_agentd(cluster):
    """kill -9, and every program, map and link of it is gone from the kernel."""
    cluster.exec("n2", "systemctl", "is-active", AGENTD)
    before = bpf_objects(cluster.main_pid("n2", STARTER))
    # The agent has what is counted, and none of what counts.
    assert {kind for kind, _ in bpf_objects(cluster.main_pid("n2", AGENTD))} == {"map_id", "link_id"}
    assert {kind for kind, _ in before} == {"prog_id", "map_id", "link_id"}
    assert all(is_there(*one) for one in before)
    cluster.kill9("n2", AGENTD)
    cluster.wait_for(lambda: not [one for one in before if is_there(*one)], 10, "nothing left of agentd in the kernel")
    cluster.wait_nodes()


@pytest.fixture(params=[STARTER, AGENTD])
def refused(cluster, request):
    """n3, whose starter may not use BPF; or whose kernel lets only root read what is counted."""
    directory, limits = f"/run/systemd/system/{request.param}.d", {STARTER: "CapabilityBoundingSet=~CAP_BPF\\nSystemCallFilter=~bpf", AGENTD: "SystemCallFilter=~bpf"}
    cluster.exec("n3", "mkdir", "-p", directory)
    cluster.exec("n3", "sh", "-c", f"printf '[Service]\\n{limits[request.param]}\\n' > {directory}/no-bpf.conf")
    cluster.exec("n3", "systemctl", "daemon-reload")
    cluster.exec("n3", "systemctl", "restart", STARTER, AGENTD)
    yield "n3"
    cluster.exec("n3", "rm", f"{directory}/no-bpf.conf")
    cluster.exec("n3", "systemctl", "daemon-reload")
    cluster.exec("n3", "systemctl", "restart", STARTER, AGENTD)
    cluster.wait_nodes()


def test_without_bpf(cluster, trainer, refused):
    """agentd says so, runs everything, and reads /proc: which has whatever was waited for, to the byte."""
    cluster.wait_nodes()
    cluster.wait_for(lambda: "no probes in the kernel" in cluster.journal(refused, AGENTD), 15, "the agent says so")
    command, told = trainer("without", """
        work(20)
        tell(out)
        time.sleep(1000)
    """)
    number = cluster.submit({**job(command), "nodes": [refused]})
    cluster.wait_for(told.exists, 20, "the trainer's word")
    own = json.loads(told.read_text())
    assert cluster.executor(number)["node"] == refused
    cluster.wait_for(lambda: io(cluster, refused, number, "read") == own["read"], 10, "the same count by /proc")
    assert io(cluster, refused, number, "write") == own["write"]
    assert metric(cluster, refused, "primus_role_tasks", job=number) == 1
    cluster.primusctl("kill", str(number))
