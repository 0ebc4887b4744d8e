# SPDX-License-Identifier: Apache-2.0
"""What limits_inside.py checks of GPUs: a host with a library that shows what a file says (tests/fake-nvml), and two nodes of
harmless devices (the console's screen memory) in the place of GPUs. Which of them a unit may open is up to the kernel.
"""
import os
import time

UUIDS = ["GPU-00000000-0000-1111-2222-333333333333", "GPU-11111111-0000-1111-2222-333333333333"]
# Character devices that everybody may open whom the control group lets; each its own, since that is what the kernel goes by.
NUMBERS = {"nvidia0": (7, 0), "nvidia1": (7, 128), "nvidiactl": (1, 3)}
OPEN = """
import errno, os, time
for n in (0, 1):
    try:
        os.close(os.open(f"/dev/nvidia{n}", os.O_RDWR))
        print(f"{n} opens", flush=True)
    except OSError as e:
        print(f"{n} {errno.errorcode[e.errno]}", flush=True)
print("that is all", flush=True)
time.sleep(600)
"""


def prepare(inside, library):
    for name, (major, minor) in NUMBERS.items():
        if not os.path.exists(f"/dev/{name}"):
            os.mknod(f"/dev/{name}", 0o020666, os.makedev(major, minor))
            os.chmod(f"/dev/{name}", 0o666)
    with open("/run/fake-nvml", "w") as f:
        for n, uuid in enumerate(UUIDS):
            f.write(f"gpu {n} uuid={uuid} name=FAKE_GPU pci=0000:{n + 1}b:00 minor={n} memory={8 << 30} mig=0\n")
    if not os.path.exists("/usr/lib/libnvidia-ml.so.1"):
        os.symlink(library, "/usr/lib/libnvidia-ml.so.1")
    inside.run("systemctl", "restart", "primus-agentd.service", must=True)
    inside.wait_for("two GPUs", lambda: inside.primusctl("node", "show", os.uname().nodename).stdout.count("x FAKE GPU"))


def opened(inside, job):
    return [line for line in inside.wait_log(job, "that is all").splitlines() if line[:2] in ("0 ", "1 ")]


def check(inside, library):
    prepare(inside, library)
    first = inside.submit(inside.python(OPEN), gpuNum=1)
    inside.running(first)
    second = inside.submit(inside.python(OPEN), gpuNum=1)
    none = inside.submit(inside.python(OPEN))
    results = [opened(inside, job) for job in (first, second, none)]
    for result in results:
        inside.figure(f"nodes of two GPUs: {', '.join(result)}")
    inside.need("each its own", sorted(results[:2]) == [["0 EPERM", "1 opens"], ["0 opens", "1 EPERM"]], results)
    inside.need("none", results[2] == ["0 EPERM", "1 EPERM"], results)
    for job in (first, second, none):
        inside.kill(job)
    time.sleep(1)
