# SPDX-License-Identifier: Apache-2.0
"""What limits_inside.py checks of the probes in the kernel: on this kernel every one of them is taken, and fires."""
import json
import re
import urllib.request

BLOCKS = 500
TRAINER = f"""
import json, os, time
zero = os.open("/dev/zero", os.O_RDONLY)
if os.fork() == 0:
    for _ in range({BLOCKS}):
        os.read(zero, 4096)
    os._exit(0)
os.wait()
text = os.read(os.open("/proc/self/io", os.O_RDONLY), 4096)
counts = dict(line.split(b": ") for line in text.splitlines())
told = "told %015d\\n" % (int(counts[b"rchar"]) + len(text))
os.write(1, told.encode())
os._exit(0)
"""
DISK = """
import os, time
f = os.open("/var/tmp/probe.data", os.O_RDONLY)
os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
while os.read(f, 1 << 20):
    pass
print("read", flush=True)
time.sleep(600)
"""
DISK_BYTES = 8 << 20
ALLOCATE = """
x = []
while True:
    x.append(bytearray(1 << 20))
"""
PROGRAMS = {"exits", "tasks", "ingress", "egress", "retransmits", "block", "victims"}


def metrics():
    return urllib.request.urlopen("http://127.0.0.1:7748/metrics").read().decode()


def value(family, *labels):
    found = [line.rsplit(" ", 1)[1] for line in metrics().splitlines() if re.match(family + r"\{", line) and all(label in line for label in labels)]
    return float(found[0]) if found else None


def check(t):
    up = {name: value("primus_bpf_program_up", f'program="{name}"') for name in sorted(PROGRAMS)}
    journal = t.run("journalctl", "-b", "-q", "--no-pager", "-o", "cat", "-u", "primus-agentd").stdout
    t.need("every program is in the kernel", set(up.values()) == {1.0}, f"{up} {re.findall('.*not in the kernel.*', journal)}")

    executor = t.end(job := t.submit(t.python(TRAINER)))["executors"][0]
    told = int(re.search(r"told (\d+)", t.logs(job))[1])
    t.figure(f"probes: the trainer has read {told} bytes, its exit record says {executor['readBytes']}")
    t.need("bytes read", executor["readBytes"] == told, (executor["readBytes"], told))

    with open("/var/tmp/probe.data", "wb") as f:
        f.write(b"x" * DISK_BYTES)
    t.run("sync", must=True)
    job = t.submit(t.python(DISK))
    t.wait_log(job, "read")
    seen = t.wait_for("what the disk has read", lambda: (v := value("primus_role_io_bytes_total", f'job="{job}"', 'layer="block"', 'dir="read"'))
                      and v >= DISK_BYTES and v)
    t.figure(f"probes: {DISK_BYTES} bytes from the disk, the probe has seen {seen:.0f}")
    t.need("no more than that and what the interpreter is made of", seen < DISK_BYTES + (32 << 20), seen)
    t.kill(job)

    job = t.submit(t.python(ALLOCATE), memoryMb=48)
    t.end(job)
    events = t.primusctl("events", job).stdout + json.dumps(t.status(job))
    # Other checks' jobs were killed, too.
    said = t.wait_for("who was killed, the same as in its end", lambda: next((found for found in re.finditer(
        r"the kernel ends process (\d+) \((\w+)\), which has (\d+) MiB", t.run("journalctl", "-b", "-q", "--no-pager", "-o", "cat", "-u", "primus-agentd").stdout)
        if f"(pid {found[1]})" in events), None))
    t.figure(f"probes: \"{said[0]}\"")
    t.need("the process and its size", said[2].startswith("python3") and 20 <= int(said[3]) <= 64, said[0])
