# SPDX-License-Identifier: Apache-2.0
"""Runs inside the virtual machine of limits-vm. A check is a function with @check: its docstring is what it says; it
raises or uses need() where that does not hold, and prints "figure: ..." for what is worth writing down.

usage: limits_inside.py [CHECK...]
"""
import json
import os
import re
import shlex
import subprocess
import sys
import time

import actors_inside
import checks
import gpu_inside
import probe_inside
from checks import need, wait_for

CGROUPS = "/sys/fs/cgroup/primus.slice"
CHECKS = []
MIB = 1 << 20
SLACK = 16  # MiB that a slice has beyond its executors' sum


def check(function):
    CHECKS.append(function)
    return function


def figure(text):
    print(f"figure: {text}", flush=True)


def run(*argv, input=None, seconds=300, must=False):
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=seconds,
                          **({"input": input} if input else {"stdin": subprocess.DEVNULL}))
    need(" ".join(argv), not must or done.returncode == 0, done.stdout + done.stderr)
    return done


def primusctl(*arguments, input=None):
    return run("runuser", "-u", "ml", "--", "primusctl", *map(str, arguments), input=input)


def python(text):
    """A command that runs this text."""
    return f"exec python3 -u -c {shlex.quote(text)}"


def submit(command, job=None, **role):
    """A job of one role; without restarts."""
    config = {"name": "limits", **(job or {}),
              "role": [{"roleName": "worker", "num": 1, "command": command, "memoryMb": 128, "vcores": 0.5,
                        "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}, **role}]}
    done = primusctl("submit", "-", "--json", input=json.dumps(config))
    need("submit", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)["job"]


def status(job):
    return json.loads(primusctl("status", job, "--json").stdout)


def running(job, index=0):
    """The executor, once it runs."""
    return wait_for("running", lambda: next((e for e in status(job)["executors"] if e["state"] == "RUNNING" and e["index"] == index), None))


def end(job):
    """How it ended."""
    primusctl("wait", job)
    return status(job)


def kill(job):
    primusctl("kill", job)
    primusctl("wait", job)


def logs(job):
    return primusctl("logs", job).stdout


def wait_log(job, text, seconds=120):
    return wait_for(f"{text!r} in the output", lambda: (out := logs(job)) and text in out and out, seconds)


def slice_of(job):
    return f"{CGROUPS}/primus-{job}.slice"


def group(job, executor, name):
    with open(f"{slice_of(job)}/{executor['unit']}/{name}") as f:
        return f.read().strip()


def of_slice(job, name):
    with open(f"{slice_of(job)}/{name}") as f:
        return f.read().strip()


def value(text, key):
    return int(re.search(rf"^{key} (\d+)", text, re.M)[1])


def cpu_share(read, seconds):
    """CPUs used, by cpu.stat, over that time."""
    begin, usage = time.monotonic(), value(read(), "usage_usec")
    time.sleep(seconds)
    now, later = value(read(), "usage_usec"), time.monotonic()
    return (now - usage) / 1e6 / (later - begin)


def within(what, seen, expected, share):
    figure(f"{what}: {seen:.4g}, asked for {expected:.4g} ({100 * (seen / expected - 1):+.1f} %)")
    need(what, abs(seen / expected - 1) <= share, f"{seen} instead of {expected}")


SPIN = "while :; do :; done"


# ---- the machine

@check
def machine():
    """systemd is PID 1, cgroup v2 has the controllers cpu, cpuset, io, memory and pids, the daemons are up"""
    need("PID 1", os.readlink("/proc/1/exe").endswith("/systemd"), os.readlink("/proc/1/exe"))
    with open("/sys/fs/cgroup/cgroup.controllers") as f:
        controllers = set(f.read().split())
    need("controllers", {"cpu", "cpuset", "io", "memory", "pids"} <= controllers, controllers)
    run("hostname", "n1", must=True)
    with open("/etc/hosts", "w") as f:
        f.write("127.0.0.1 localhost\n127.0.0.1 n1\n")
    os.makedirs("/etc/sysusers.d", exist_ok=True)
    with open("/etc/sysusers.d/ml.conf", "w") as f:
        f.write("u ml 1000 \"a user\" /home/ml /bin/bash\n")
    os.makedirs("/etc/primus/agentd.conf.d", exist_ok=True)
    with open("/etc/primus/agentd.conf.d/vm.conf", "w") as f:
        f.write("[Agent]\nMaster=n1\nAddress=127.0.0.1\nPorts=23000-23099\nMetricsJobs=yes\n")
    run("systemd-sysusers", must=True)
    os.makedirs("/home/ml", exist_ok=True)
    os.chown("/home/ml", 1000, 1000)
    run("systemd-tmpfiles", "--create", must=True)
    run("systemctl", "daemon-reload", must=True)
    run("systemctl", "reload", "dbus.service")
    run("systemctl", "start", "primus-masterd.service", must=True)
    token = run("primusctl", "token", "create", must=True).stdout
    run("primusctl", "join", "n1", input=token, must=True)
    run("systemctl", "start", "primus-agentd.service", must=True)
    wait_for("the host is READY", lambda: "READY" in run("primusctl", "nodes").stdout)
    print(run("uname", "-r").stdout, run("systemctl", "--version").stdout.splitlines()[0])
    print(run("primusctl", "nodes").stdout)


# ---- memory

ALLOCATE = """
import time
print('one')
x = []
for _ in range(200):
    x.append(bytearray(1 << 20))
print('two')
time.sleep(100)
"""


def swap():
    with open("/proc/swaps") as f:
        return sum(int(line.split()[3]) for line in f.read().splitlines()[1:])


@check
def oom():
    """an executor beyond memoryMb ends as out of memory, says which process and how much, and has not swapped"""
    run("sh", "-c", "dd if=/dev/zero of=/swap bs=1M count=64 status=none && chmod 600 /swap && mkswap -q /swap && swapon /swap", must=True)
    used = swap()
    job = submit(f"python3 -c {shlex.quote(ALLOCATE)}; echo went on", memoryMb=64, tasksMax=32)
    executor = running(job)
    need("memory.max", group(job, executor, "memory.max") == str(64 * MIB), group(job, executor, "memory.max"))
    need("memory.swap.max", group(job, executor, "memory.swap.max") == "0", group(job, executor, "memory.swap.max"))
    seen = end(job)
    executor = seen["executors"][0]
    text = primusctl("status", job).stdout + primusctl("events", job).stdout
    print(text)
    need("state", seen["state"] == "FAILED", seen["state"])
    need("result", "out of memory (limit 64M)" in executor["result"], executor["result"])
    need("which process, how much", re.search(r"killed python3 \(pid \d+\) on host n1, which held \d+M, at its memory limit", text), text)
    need("swap", swap() <= used + 256, f"{used} before, {swap()} after")
    figure(f"out of memory: peak {executor['memoryPeak'] / MIB:.1f} MiB of 64; swap used {swap() - used} KiB; \"{executor['result']}\"")
    run("swapoff", "/swap")


@check
def oom_pinned():
    """an executor whose memory stays when it is dead, since it is files in memory: there is none left for primus-exit, and its end is known"""
    job = submit("exec dd if=/dev/zero of=/dev/shm/pinned bs=4k status=none", memoryMb=64) # little goes with the process
    seen = end(job)
    text = primusctl("status", job).stdout + primusctl("events", job).stdout
    journal = run("journalctl", "-u", "primus-agentd", "-u", f"primus-{job}-*", "-o", "cat", "-g", f"primus-{job}-").stdout
    os.unlink("/dev/shm/pinned")
    print(text, journal)
    need("state", seen["state"] == "FAILED", seen["state"])
    need("result", "out of memory (limit 64M)" in seen["executors"][0]["result"], seen["executors"][0]["result"])
    need("no word of a record", "record" not in text, text)
    figure(f"out of memory that stays: primus-exit {'was killed as well' if 'left no exit record' in journal else 'had enough'}")


@check
def memory_high():
    """beyond memoryHighMb an executor is slowed, and not killed"""
    text = """
import time
def fill(n):
    begin = time.monotonic()
    x = [bytearray(1 << 20) for _ in range(n)]
    return x, time.monotonic() - begin
a, below = fill(20)
b, above = fill(40)
print(f'below {below:.3f} above {above:.3f}')
time.sleep(300)
"""
    job = submit(python(text), memoryMb=256, memoryHighMb=40)
    executor = running(job)
    need("memory.high", group(job, executor, "memory.high") == str(40 * MIB), group(job, executor, "memory.high"))
    events = wait_for("slowed", lambda: (e := group(job, executor, "memory.events")) and value(e, "high") > 20 and e, 200)
    pressure = group(job, executor, "memory.pressure").splitlines()[0]
    figure(f"memoryHighMb 40: {value(events, 'high')} times slowed, {value(events, 'oom_kill')} killed; memory.pressure {pressure}")
    need("not killed", value(events, "oom_kill") == 0, events)
    need("runs on", status(job)["executors"][0]["state"] == "RUNNING")
    kill(job)


@check
def elastic():
    """elasticResource: after out of memory the next attempt has more, in the unit as in the books"""
    text = "import time\nx = bytearray(90 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('fits')"
    job = submit(python(text), memoryMb=64, scheduleStrategy={"elasticResource": {"extendMemSize": 96, "maxMemSize": 200}},
                 failover={"commonFailoverPolicy": {"restartType": "ON_FAILURE", "maxFailureTimes": 3}})
    seen = end(job)
    print(primusctl("events", job).stdout)
    need("state", seen["state"] == "SUCCEEDED", seen)
    need("second attempt", seen["executors"][0]["attempt"] == 2, seen["executors"][0])
    figure(f"elasticResource: attempt 2 with 160M, peak {seen['executors'][0]['memoryPeak'] / MIB:.0f} MiB")


# ---- CPU

@check
def cpu_quota():
    """vcores 0.3 is 0.3 CPUs within 5 %, however many processes want more"""
    job = submit(f"({SPIN}) & ({SPIN}) & wait", vcores=0.3)
    executor = running(job)
    time.sleep(2)
    seen = cpu_share(lambda: group(job, executor, "cpu.stat"), 20)
    stat = group(job, executor, "cpu.stat")
    kill(job)
    within("CPUs used with vcores 0.3", seen, 0.3, 0.05)
    figure(f"vcores 0.3: throttled in {value(stat, 'nr_throttled')} of {value(stat, 'nr_periods')} periods")
    need("throttled", value(stat, "nr_throttled") > 0, stat)


@check
def slice_sum():
    """the slice of a job bounds its executors on a host together: CPU, memory and processes"""
    job = submit(SPIN, num=2, vcores=0.2, memoryMb=64, tasksMax=100)
    first, second = running(job, 0), running(job, 1)
    need("memory.max", of_slice(job, "memory.max") == str((128 + SLACK) * MIB), of_slice(job, "memory.max"))
    need("pids.max", of_slice(job, "pids.max") == "200", of_slice(job, "pids.max"))
    quota, period = map(int, of_slice(job, "cpu.max").split())
    need("cpu.max", abs(quota / period - 0.4) < 0.001, of_slice(job, "cpu.max"))
    need("pids.max of each", group(job, first, "pids.max") == "100", group(job, first, "pids.max"))
    # A process that is in the slice and has no limit of its own.
    run("systemd-run", "--quiet", "--unit=intruder", f"--slice=primus-{job}.slice", "sh", "-c", SPIN, must=True)
    time.sleep(2)
    seen = cpu_share(lambda: of_slice(job, "cpu.stat"), 15)
    run("systemctl", "stop", "intruder")
    each = [value(group(job, e, "cpu.stat"), "nr_throttled") for e in (first, second)]
    kill(job)
    within("CPUs used by a slice of two executors (0.2 each) and an intruder", seen, 0.4, 0.05)
    print(each)


@check
def cpu_weight():
    """cpuWeight divides a CPU that two jobs want, also where their weights change while they run"""
    heavy = submit(SPIN, vcores=0, cpuWeight=300)
    light = submit(SPIN, vcores=0, cpuWeight=100)
    a, b = running(heavy), running(light)
    need("cpu.weight", group(heavy, a, "cpu.weight") == of_slice(heavy, "cpu.weight") == "300", of_slice(heavy, "cpu.weight"))
    for executor in (a, b):  # one CPU for both
        run("systemctl", "set-property", "--runtime", executor["unit"], "AllowedCPUs=1", must=True)

    def ratio():
        before = [value(of_slice(j, "cpu.stat"), "usage_usec") for j in (heavy, light)]
        time.sleep(10)
        after = [value(of_slice(j, "cpu.stat"), "usage_usec") for j in (heavy, light)]
        return (after[0] - before[0]) / (after[1] - before[1])

    within("CPU time of a job with cpuWeight 300 to one with 100", ratio(), 3, 0.1)
    need("update", primusctl("update", light, "worker.cpuWeight=300").returncode == 0)
    wait_for("cpu.weight", lambda: group(light, b, "cpu.weight") == of_slice(light, "cpu.weight") == "300", 60)
    within("the same when both have 300", ratio(), 1, 0.1)
    kill(heavy)
    kill(light)


@check
def exclusive_cpus():
    """cpuPolicy exclusive: CPUs of its own that the others are kept off, memory of their NUMA node"""
    own = submit(python("import os, time\nprint('cpus', sorted(os.sched_getaffinity(0)), open('/proc/self/numa_maps').read().count('bind:'))\ntime.sleep(300)"),
                 vcores=1, cpuPolicy="exclusive", numa="require")
    executor = running(own)
    out = wait_log(own, "cpus")
    cpus = group(own, executor, "cpuset.cpus.effective")
    show = run("systemctl", "show", executor["unit"], "-pNUMAPolicy", "-pNUMAMask", "-pAllowedCPUs").stdout
    print(out, show)
    other = submit("sleep 300", vcores=0.5)
    theirs = group(other, running(other), "cpuset.cpus.effective")
    figure(f"exclusive: CPU {cpus} of its own, the others have {theirs}; {show.split()}")
    need("one CPU", cpus in ("0", "1"), cpus)
    need("the others have the other", theirs == {"0": "1", "1": "0"}[cpus], theirs)
    need("NUMAPolicy", "NUMAPolicy=bind" in show and f"NUMAMask={cpus}" in show, show)
    need("mappings are bound", int(out.split("]")[1]) > 0, out)
    done = primusctl("update", own, "worker.vcores=2")
    need("vcores of a running exclusive role", done.returncode != 0 and "for itself" in done.stderr, done.stderr + done.stdout)
    print(done.stderr)
    kill(own)
    wait_for("the others have all again", lambda: group(other, running(other), "cpuset.cpus.effective") == "0-1", 30)
    kill(other)


# ---- processes

FORK_BOMB = """
import os, time
n = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(300)
        n += 1
except OSError as e:
    print(f'forked {n}: {e}')
time.sleep(300)
"""


@check
def fork_bomb():
    """a fork bomb ends at tasksMax, and the host stays usable"""
    job = submit(python(FORK_BOMB), tasksMax=40, memoryMb=512)
    executor = running(job)
    out = wait_log(job, "forked")
    begin = time.monotonic()
    run("true", must=True)
    need("forked", int(out.split()[1].rstrip(":")) == 39, out)
    figure(f"fork bomb at tasksMax 40: {out.strip()}; pids.events {group(job, executor, 'pids.events')}; fork on the host {1000 * (time.monotonic() - begin):.0f} ms")
    kill(job)
    job = submit("bomb() { bomb | bomb & }; bomb; sleep 300", memoryMb=256, tasksMax=200)
    executor = running(job)
    wait_for("the bomb is at its limit", lambda: value(group(job, executor, "pids.events"), "max") > 0, 200)
    begin = time.monotonic()
    run("true", must=True)
    figure(f"shell fork bomb: {group(job, executor, 'pids.current')} of 200 processes; a process of the host starts in {1000 * (time.monotonic() - begin):.0f} ms")
    kill(job)
    job = submit("sleep 300")
    bound = int(group(job, running(job), "pids.max"))
    with open("/proc/sys/kernel/threads-max") as f:
        threads = int(f.read())
    figure(f"tasksMax that is not given: {bound} (the kernel has room for {threads})")
    need("half of the host at most", bound == min(16384, threads // 2), bound)
    kill(job)


# ---- devices

AGENT_DEVICES = """
import errno, os
NODES = {"nvidia0": (195, 0), "nvidiactl": (195, 255), "nvidia31": (195, 31), "null": (1, 3), "mem": (1, 1), "fuse": (10, 229)}
for name, (major, minor) in NODES.items():
    os.mknod(f"/dev/agent-{name}", 0o020600, os.makedev(major, minor))
with open("/sys/fs/cgroup/system.slice/primus-agentd.service/cgroup.procs", "w") as f:
    f.write(str(os.getpid()))
for name in NODES:
    try:
        os.close(os.open(f"/dev/agent-{name}", os.O_RDWR))
        print(name, "opened")
    except OSError as e:
        print(name, "closed" if e.errno == errno.EPERM else "opened")
"""


@check
def agent_devices():
    """agentd opens NVIDIA's devices, also those of a driver that is loaded later, and no others"""
    seen = dict(line.split() for line in run("python3", "-c", AGENT_DEVICES, must=True).stdout.splitlines())
    run("sh", "-c", "rm -f /dev/agent-*")
    need("NVIDIA's", all(seen[name] == "opened" for name in ("nvidia0", "nvidiactl", "nvidia31", "null")), seen)
    need("no others", all(seen[name] == "closed" for name in ("mem", "fuse")), seen)
    figure(f"agentd's devices: {seen}")


@check
def devices():
    """a job without GPUs can open no device but the harmless ones"""
    run("sh", "-c", "mknod -m 666 /dev/fake-gpu c 1 11; mknod -m 666 /dev/fake-loop b 7 0; chmod 666 /dev/vdc", must=True)
    text = """
import os
for path in ('/dev/null', '/dev/zero', '/dev/urandom', '/dev/fake-gpu', '/dev/fake-loop', '/dev/vdc'):
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)); print(path, 'open')
    except OSError as e:
        print(path, e.strerror)
"""
    job = submit(python(text))
    end(job)
    out = logs(job)
    run("chmod", "660", "/dev/vdc")
    print(out)
    for path in ("/dev/null", "/dev/zero", "/dev/urandom"):
        need(path, f"{path} open" in out, out)
    for path in ("/dev/fake-gpu", "/dev/fake-loop", "/dev/vdc"):
        need(path, f"{path} Operation not permitted" in out, out)
    figure("devices: /dev/kmsg by another name, a loop device and a disk, all mode 666: Operation not permitted")


# ---- io

@check
def io_rate():
    """io keeps a disk's rate within 15 %, reading and writing, and names a disk that is not there"""
    os.makedirs("/scratch", exist_ok=True)
    run("mount", "/dev/vdc", "/scratch", must=True)
    os.chmod("/scratch", 0o777)
    run("dd", "if=/dev/zero", "of=/scratch/data", "bs=1M", "count=64", "conv=fsync", must=True)
    os.chmod("/scratch/data", 0o666)
    text = """
import mmap, os, time
def go(flags, call):
    f = os.open('/scratch/data', flags | os.O_DIRECT)
    m = mmap.mmap(-1, 262144)
    n, begin = 0, time.monotonic()
    while n < 24 << 20:
        n += call(f, [m], n)
    return n / (time.monotonic() - begin) / 1e6
print(f'read {go(os.O_RDONLY, os.preadv):.3f}')
print(f'write {go(os.O_WRONLY, os.pwritev):.3f}')
"""
    job = submit(python(text), io=[{"path": "/scratch", "readMBps": 4, "writeMBps": 3}], vcores=1)
    executor = running(job)
    limits = group(job, executor, "io.max")
    figure(f"io.max of path /scratch: {limits}")
    need("state", end(job)["state"] == "SUCCEEDED", status(job))
    out = logs(job).split()
    within("MB/s read with readMBps 4 (O_DIRECT)", float(out[1]), 4, 0.15)
    within("MB/s written with writeMBps 3 (O_DIRECT)", float(out[3]), 3, 0.15)
    job = submit(python(text), vcores=1)
    end(job)
    figure(f"without a limit: {logs(job).split()}")
    job = submit("true", io=[{"path": "/dev/nvme7n1", "readMBps": 4}])
    seen = end(job)
    print(seen["reason"], seen["executors"][0])
    need("sentence", "host n1 has no such device" in json.dumps(seen), seen)
    job = submit("true", io=[{"path": "/proc/x", "readMBps": 4}])
    need("sentence", "file system of type proc" in json.dumps(end(job)), status(job))


# ---- shared memory

@check
def shm():
    """shmMb is a /dev/shm of the job's own that is full at its size, outlives agentd, and goes with the job"""
    fill = """
import os, time
n = 0
f = os.open(f"/dev/shm/{os.environ['PRIMUS_INDEX']}", os.O_CREAT | os.O_WRONLY)
if os.environ['PRIMUS_INDEX'] == '0':
    try:
        while True:
            n += os.write(f, bytes(65536))
    except OSError as e:
        print(f'wrote {n}: {e.strerror}')
time.sleep(5)
print('sees', sorted(os.listdir('/dev/shm')))
time.sleep(300)
"""
    job = submit(python(fill), num=2, shmMb=8, memoryMb=64, vcores=0.3)
    running(job, 0), running(job, 1)
    out = wait_log(job, "wrote")
    need("full at 2 x 8 MiB", f"wrote {16 * MIB}: No space left on device" in out, out)
    figure(f"shmMb 8 of two executors: {re.search('wrote.*', out)[0]}")
    run("systemctl", "restart", "primus-agentd.service", must=True)
    wait_for("both see each other's files", lambda: logs(job).count("sees ['0', '1']") == 2)
    mounts = run("findmnt", "-rno", "TARGET,OPTIONS", "-t", "tmpfs").stdout
    need("mounted", "/run/primus/shm/" in mounts, mounts)
    print(mounts)
    need("not the host's", not os.path.exists("/dev/shm/0"))
    wait_for("READY again", lambda: "READY" in run("primusctl", "nodes").stdout)
    kill(job)
    try:
        wait_for("gone", lambda: not os.listdir("/run/primus/shm"), 30)
    except checks.Failed:
        agent = run("systemctl", "show", "-PMainPID", "primus-agentd.service").stdout.strip()
        print(run("grep", "/shm", f"/proc/{agent}/mountinfo", "/proc/1/mountinfo").stdout, os.listdir("/run/primus/shm"))
        print(run("systemctl", "status", "--no-pager", "run-primus-shm*").stdout)
        raise
    need("unit gone", "run-primus-shm" not in run("systemctl", "list-units", "--all", "--plain").stdout)


# ---- rlimits, time

@check
def rlimits():
    """openFiles and lockedMemoryMb are the process's limits"""
    text = """
import ctypes, mmap, os
files = []
try:
    while True: files.append(os.open('/dev/null', os.O_RDONLY))
except OSError as e:
    print(f'files {len(files)} {e.strerror}')
for f in files: os.close(f)
libc = ctypes.CDLL(None, use_errno=True)
def lock(n):
    m = mmap.mmap(-1, n << 20)
    a = ctypes.addressof(ctypes.c_char.from_buffer(m))
    return 'locked' if libc.mlock(ctypes.c_void_p(a), ctypes.c_size_t(n << 20)) == 0 else os.strerror(ctypes.get_errno())
print('lock 3:', lock(3))
print('lock 5:', lock(5))
"""
    job = submit(python(text), openFiles=50, lockedMemoryMb=4)
    need("state", end(job)["state"] == "SUCCEEDED", logs(job))
    out = logs(job)
    figure("; ".join(out.split("\n")))
    need("files", "files 47 Too many open files" in out, out)
    need("locked", "lock 3: locked" in out and "lock 5: Cannot allocate memory" in out, out)


@check
def time_limit():
    """timeLimit ends an executor, and says so"""
    job = submit("sleep 300", timeLimit="5s", job={"stopGrace": "1s"})
    seen = end(job)
    executor = seen["executors"][0]
    figure(f"timeLimit 5s: ended after {(executor['ended'] - executor['started']) / 1e6:.1f} s, \"{executor['result']}\"")
    need("result", "longer than its time limit (5s)" in executor["result"], executor)


# ---- ports

@check
def ports():
    """a job can listen on its own port, on none of the others that jobs are granted, and on any outside"""
    text = """
import os, socket, time
own = int(os.environ['PRIMUS_PORTS'].split(',')[0])
def attempt(what, family, kind, address, port):
    s = socket.socket(family, kind)
    try:
        s.bind((address, port)); print(what, 'bound')
    except OSError as e:
        print(what, e.strerror)
attempt('own', socket.AF_INET, socket.SOCK_STREAM, '0.0.0.0', own)
attempt('next', socket.AF_INET, socket.SOCK_STREAM, '0.0.0.0', own + 1)
attempt('next6', socket.AF_INET6, socket.SOCK_STREAM, '::', own + 1)
attempt('nextudp', socket.AF_INET, socket.SOCK_DGRAM, '127.0.0.1', own + 1)
attempt('outside', socket.AF_INET, socket.SOCK_STREAM, '127.0.0.1', 22999)
attempt('above', socket.AF_INET, socket.SOCK_STREAM, '127.0.0.1', 23100)
attempt('any', socket.AF_INET, socket.SOCK_STREAM, '127.0.0.1', 0)
while not os.path.exists('/tmp/reloaded'):
    time.sleep(0.2)
attempt('later', socket.AF_INET, socket.SOCK_STREAM, '0.0.0.0', own + 1)
"""
    job = submit(python(text))
    executor = running(job)
    print(run("systemctl", "show", executor["unit"], "-pSocketBindAllow", "-pSocketBindDeny", "-pBPFProgram").stdout)
    wait_log(job, "any")
    run("systemctl", "daemon-reload", must=True)
    run("systemctl", "restart", "primus-agentd.service", must=True)
    wait_for("READY again", lambda: "READY" in run("primusctl", "nodes").stdout)
    need("pinned", len(os.listdir("/sys/fs/bpf/primus")) == 2, os.listdir("/sys/fs/bpf/primus"))
    open("/tmp/reloaded", "w").close()
    end(job)
    out = logs(job)
    print(out)
    wait_for("the pins are gone", lambda: not os.listdir("/sys/fs/bpf/primus"), 20)
    for what in ("own", "outside", "above", "any"):
        need(what, f"{what} bound" in out, out)
    for what in ("next", "next6", "nextudp", "later"):
        need(what, f"{what} Operation not permitted" in out, out)
    figure("ports: another one of the agent's range: Operation not permitted (IPv4, IPv6, UDP)")


# ---- changes while it runs

@check
def live():
    """limits of a running executor change in its cgroup and are felt; memory below what is used is refused"""
    job = submit(f"({SPIN}) & " + python("import time\nx = bytearray(60 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('full')\ntime.sleep(600)"),
                 vcores=0.2, memoryMb=256, tasksMax=100)
    executor = running(job)
    wait_log(job, "full")
    before = cpu_share(lambda: group(job, executor, "cpu.stat"), 10)
    done = primusctl("update", job, "worker.vcores=0.4", "worker.memoryMb=128", "worker.memoryHighMb=100", "worker.cpuWeight=200", "worker.tasksMax=50")
    need("update", done.returncode == 0, done.stderr)
    wait_for("pids.max", lambda: group(job, executor, "pids.max") == "50", 60)  # the last one that systemd writes
    need("memory.max", group(job, executor, "memory.max") == str(128 * MIB), group(job, executor, "memory.max"))
    seen = {name: group(job, executor, name) for name in ("memory.high", "cpu.weight", "pids.max", "cpu.max")}
    need("the others", seen == {"memory.high": str(100 * MIB), "cpu.weight": "200", "pids.max": "50", "cpu.max": seen["cpu.max"]}, seen)
    need("slice", of_slice(job, "memory.max") == str((128 + SLACK) * MIB) and of_slice(job, "pids.max") == "50", of_slice(job, "memory.max"))
    after = cpu_share(lambda: group(job, executor, "cpu.stat"), 10)
    within("CPUs used before the change (0.2)", before, 0.2, 0.05)
    within("CPUs used after it (0.4)", after, 0.4, 0.05)
    done = primusctl("update", job, "worker.memoryMb=32", "worker.memoryHighMb=0")
    figure(f"memoryMb below what is used: {done.stderr.strip()}")
    need("refused", done.returncode != 0 and "uses" in done.stderr, done.stderr)
    need("nothing changed", group(job, executor, "memory.max") == str(128 * MIB), group(job, executor, "memory.max"))
    kill(job)


@check
def freeze():
    """suspend --freeze stops the processes where they are, resume lets them go on"""
    job = submit(SPIN, vcores=0.5)
    executor = running(job)
    need("suspend", primusctl("suspend", "--freeze", job).returncode == 0)
    wait_for("frozen", lambda: value(group(job, executor, "cgroup.events"), "frozen") == 1, 60)
    first = value(group(job, executor, "cpu.stat"), "usage_usec")
    time.sleep(5)
    second = value(group(job, executor, "cpu.stat"), "usage_usec")
    need("stands still", first == second, (first, second))
    need("resume", primusctl("resume", job).returncode == 0)
    wait_for("thawed", lambda: value(group(job, executor, "cgroup.events"), "frozen") == 0, 60)
    time.sleep(2)
    third = value(group(job, executor, "cpu.stat"), "usage_usec")
    figure(f"freeze: {second - first} us of CPU in 5 s frozen, {third - second} us in about 2 s after the thaw")
    need("goes on", third > second, (second, third))
    # Stopping what is frozen works, too.
    primusctl("suspend", "--freeze", job)
    wait_for("frozen", lambda: value(group(job, executor, "cgroup.events"), "frozen") == 1, 60)
    begin = time.monotonic()
    kill(job)
    figure(f"a frozen job is killed in {time.monotonic() - begin:.1f} s")


SLOW_READS = """
import os, time
r, w = os.pipe()
if os.fork() == 0:
    while True:
        time.sleep(0.02)
        os.write(w, b"x" * 100)
while True:
    os.read(r, 1000)
"""


@check
def trace():
    """primusctl trace and stacks count in this kernel, and leave nothing there"""
    job = submit(python(SLOW_READS))
    wait_for("the job runs", lambda: status(job)["state"] == "RUNNING")
    time.sleep(5)
    done = primusctl("trace", job, "--io", "5s", "--runqueue", "5s", "--json")
    need("trace", done.returncode == 0, done.stdout + done.stderr)
    traces = {t["trace"]: {h["name"]: h for h in t["executors"][0]["histograms"]} for t in json.loads(done.stdout)}
    read = traces["io"]["read"]
    most = max(read["buckets"], key=lambda b: b["count"])
    figure(f"trace: {read['count']} reads in 5 s, most from {most['from'] / 1e6:.1f} to {most['to'] / 1e6:.1f} ms")
    figure(f"trace: {traces['runqueue']['wait']['count']} waits for a processor")
    # 20 ms, and what the emulator adds.
    need("most reads take 20 ms or more", 16 << 20 <= most["from"] <= 64 << 20, done.stdout)
    need("waits were counted", traces["runqueue"]["wait"]["count"] > 20, done.stdout)
    done = primusctl("stacks", job, "--json")
    threads = json.loads(done.stdout)[0]["threads"]
    figure(f"stacks: {[(t['waits'], t.get('call'), t.get('kernel', '')) for t in threads]}")
    need("one waits for the pipe, one sleeps", {"pipe", "sleep"} <= {t["waits"] for t in threads}, done.stdout)
    need("the kernel's stack", any("pipe_read" in t.get("kernel", "") and "vfs_read" in t["kernel"] for t in threads), done.stdout)
    primusctl("kill", job)


@check
def gpus():
    """an executor opens the GPU that it was given and no other (EPERM); one without GPUs opens none"""
    gpu_inside.check(sys.modules[__name__], "/payload/libnvidia-ml.so.1")


@check
def actors():
    """an actor beyond its memory ends alone and says so; its processes are a part of the executor's, and end with it"""
    actors_inside.check(sys.modules[__name__])


@check
def probes():
    """every probe is in this kernel, counts bytes to the byte, and names who is killed for memory"""
    probe_inside.check(sys.modules[__name__])


def main():
    wanted = sys.argv[1:]
    checks.run([c for c in CHECKS if not wanted or c is machine or c.__name__ in wanted])
    print(run("journalctl", "-b", "-q", "--no-pager", "-o", "short-monotonic", "-u", "primus-agentd", "-u", "primus-masterd", "-n", "60").stdout)


if __name__ == "__main__":
    main()
