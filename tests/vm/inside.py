# SPDX-License-Identifier: Apache-2.0
"""Runs inside the virtual machine of quickstart-vm: "ok - WHAT" or "not ok - WHAT" a line, and "finished" as the last one.

usage: inside.py BUILD [limits]
"""
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import time

from checks import need, run, wait_for

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANDBOX = os.path.join(SOURCE, "tools/sandbox")
QUICKSTART = os.path.join(SOURCE, "tools/quickstart")
HOSTS = ("n1", "n2", "n3")

ALLOCATE = "import time; print('one', flush=True); x = bytearray(200 << 20); print('two', flush=True); time.sleep(60)"
SPIN = "import time; end = time.monotonic() + 10\nwhile time.monotonic() < end: pass"
THREADS = """
import threading, time
done = threading.Event()
started = 0
try:
    for _ in range(300):
        threading.Thread(target=done.wait, daemon=True).start()
        started += 1
except RuntimeError as e:
    print(f"{started} threads: {e}", flush=True)
    time.sleep(1)
    raise SystemExit(7)
"""


def exec_in(node, *argv, user="root", input=None):
    return subprocess.run([SANDBOX, "exec", "--name", "quickstart", "--user", user, node, "--", *argv], capture_output=True, text=True,
                          errors="replace", timeout=300, **({"input": input} if input else {"stdin": subprocess.DEVNULL}))


def primusctl(*arguments, input=None):
    return exec_in("n1", "primusctl", *arguments, user="ml", input=input)


def submit(command, **role):
    config = {"name": "limits", "role": [{"roleName": "worker", "num": 1, "command": command, "successPercent": 100, **role,
                                          "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}}]}
    done = primusctl("submit", "-", "--json", input=json.dumps(config))
    need("submit", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)["job"]


def status(job):
    return json.loads(primusctl("status", str(job), "--json").stdout)


def running(job):
    """The executor, once it runs."""
    return wait_for("running", lambda: next((e for e in status(job)["executors"] if e["state"] == "RUNNING"), None))


def show(executor, *properties):
    out = exec_in(executor["node"], "systemctl", "show", executor["unit"], *(f"-p{p}" for p in properties)).stdout
    return dict(line.split("=", 1) for line in out.splitlines())


def group_file(executor, name):
    """A file of the executor's cgroup as this machine sees it, below the unit that the host lives in."""
    paths = glob.glob(f"/sys/fs/cgroup/**/{executor['unit']}/{name}", recursive=True)
    need(f"{name} of the executor", len(paths) == 1, paths)
    with open(paths[0]) as f:
        return f.read()


def check_machine(build):
    """systemd is PID 1 and the controllers are on cgroup v2"""
    need("PID 1", os.readlink("/proc/1/exe").endswith("/systemd"), os.readlink("/proc/1/exe"))
    with open("/sys/fs/cgroup/cgroup.controllers") as f:
        controllers = f.read().split()
    need("controllers", {"cpu", "memory", "pids"} <= set(controllers), controllers)


def check_quickstart(build):
    """tools/quickstart trains and says the accuracy"""
    started = time.monotonic()
    out = ""
    with subprocess.Popen([QUICKSTART, "--build", build], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            out += line
    need("status", running.returncode == 0, running.returncode)
    accuracy = re.search(r"done: held-out accuracy (0\.\d+)", out)
    need("accuracy", accuracy and float(accuracy[1]) >= 0.95, accuracy and accuracy[1])
    print(f"quickstart took {time.monotonic() - started:.0f} s")


def check_up(build):
    """tools/sandbox boots three hosts"""
    done = subprocess.run([SANDBOX, "up", "--name", "quickstart", "--nodes", "3", "--build", build, "--no-rebuild"], capture_output=True, text=True)
    need("status", done.returncode == 0, done.stderr)


def check_nodes(build):
    """no host says that limits are not enforced"""
    listed = json.loads(primusctl("nodes", "--json").stdout)
    rows = listed["nodes"] if isinstance(listed, dict) else listed
    need("three hosts", len(rows) == 3, rows)
    need("reason", all("limit" not in (row.get("reason") or "") for row in rows), [row.get("reason") for row in rows])


def check_memory_properties(build):
    """memoryMb and vcores are MemoryMax, MemorySwapMax and CPUQuota of the unit and of its cgroup"""
    job = submit("sleep 300", memoryMb=64, vcores=0.2)
    executor = running(job)
    seen = show(executor, "MemoryMax", "MemorySwapMax", "CPUQuotaPerSecUSec", "TasksMax")
    need("MemoryMax", seen["MemoryMax"] == str(64 << 20), seen)
    need("MemorySwapMax", seen["MemorySwapMax"] == "0", seen)
    need("CPUQuotaPerSecUSec", seen["CPUQuotaPerSecUSec"] == "200ms", seen)
    need("TasksMax", seen["TasksMax"].isdigit(), seen)
    need("memory.max", group_file(executor, "memory.max").strip() == str(64 << 20), group_file(executor, "memory.max"))
    need("cpu.max", group_file(executor, "cpu.max").split()[0] != "max", group_file(executor, "cpu.max"))
    need("pids.max", group_file(executor, "pids.max").strip() == seen["TasksMax"], group_file(executor, "pids.max"))
    primusctl("kill", str(job))
    need("wait", primusctl("wait", str(job)).returncode == 3)


def check_out_of_memory(build):
    """an executor beyond its memory is FAILED: out of memory (limit 64M)"""
    job = submit(f"exec python3 -c {shlex.quote(ALLOCATE)}", memoryMb=64, vcores=1)
    done = primusctl("wait", str(job))
    need("status of wait", done.returncode == 1, (done.returncode, done.stdout, done.stderr))
    seen = status(job)
    executor = seen["executors"][0]
    print(json.dumps(executor))
    need("state", seen["state"] == "FAILED" and executor["state"] == "FAILED", seen)
    need("result", executor["result"].startswith("killed: out of memory (limit 64M)"), executor)
    text = primusctl("status", str(job)).stdout
    print(text)
    need("what primusctl says", "out of memory (limit 64M)" in text, text)
    need("memory.peak", 48 << 20 <= executor["memoryPeak"] <= 64 << 20, executor)
    need("its output", primusctl("logs", str(job)).stdout == "one\n", primusctl("logs", str(job)).stdout)
    need("its events", "out of memory" in primusctl("events", str(job)).stdout, primusctl("events", str(job)).stdout)


def check_child_out_of_memory(build):
    """a child's end for want of memory is the executor's, although the command itself would go on"""
    job = submit(f"python3 -c {shlex.quote(ALLOCATE)}; echo went on; exit 0", memoryMb=64, vcores=1)
    need("status of wait", primusctl("wait", str(job)).returncode == 1, status(job))
    need("reason", "out of memory" in primusctl("status", str(job)).stdout, status(job))


def check_cpu(build):
    """vcores 0.2 throttles, and the exit record has the time used"""
    job = submit(f"exec python3 -c {shlex.quote(SPIN)}", memoryMb=64, vcores=0.2)
    executor = running(job)
    throttled = wait_for("throttled", lambda: int(re.search(r"nr_throttled (\d+)", group_file(executor, "cpu.stat"))[1]))
    print(f"throttled in {throttled} periods so far")
    need("status of wait", primusctl("wait", str(job)).returncode == 0, status(job))
    executor = status(job)["executors"][0]
    print(json.dumps(executor))
    wall = executor["ended"] - executor["started"]
    need("cpu of the exit record", 0.12 * wall <= executor["cpuUsec"] <= 0.26 * wall, executor)
    need("memoryPeak of the exit record", 1 << 20 <= executor["memoryPeak"] <= 64 << 20, executor)


def check_tasks(build):
    """TasksMax of primus.slice, the administrator's, bounds the jobs of a host"""
    for host in HOSTS:
        exec_in(host, "systemctl", "set-property", "--runtime", "primus.slice", "TasksMax=64")
    job = submit(f"exec python3 -c {shlex.quote(THREADS)}", memoryMb=512, vcores=1)
    need("status of wait", primusctl("wait", str(job)).returncode == 1, status(job))
    executor = status(job)["executors"][0]
    out = primusctl("logs", str(job)).stdout
    print(out)
    need("exit status", executor["exitStatus"] == 7, executor)
    need("threads", int(out.split()[0]) < 64 and "can't start new thread" in out, out)


def check_exit_record(build):
    """an executor that succeeds leaves its peak of memory and its CPU time"""
    job = submit("exec python3 -c 'x = bytearray(30 << 20); print(len(x))'", memoryMb=128, vcores=1)
    need("status of wait", primusctl("wait", str(job)).returncode == 0, status(job))
    executor = status(job)["executors"][0]
    print(json.dumps(executor))
    need("memory.peak", 30 << 20 <= executor["memoryPeak"] <= 128 << 20, executor)
    need("cpu.stat", executor["cpuUsec"] > 0, executor)


def check_run(build):
    """primusctl run over three hosts"""
    done = primusctl("run", "--hosts", "n[1-3]", "--cpus", "0.5", "--mem", "64M", "--", "hostname")
    need("status", done.returncode == 0, done.stderr)
    need("output", sorted(done.stdout.splitlines()) == ["[0] n1", "[1] n2", "[2] n3"] or
         sorted(line.split()[1] for line in done.stdout.splitlines()) == list(HOSTS), done.stdout)


def check_down(build):
    """tools/sandbox down leaves no unit, cgroup, namespace or mount behind"""
    done = subprocess.run([SANDBOX, "down", "--name", "quickstart"], capture_output=True, text=True)
    need("status", done.returncode == 0, done.stderr)
    units = subprocess.run(["systemctl", "list-units", "--all", "--plain", "--no-legend", "primus*"], capture_output=True, text=True).stdout
    need("units", not units.strip(), units)
    need("cgroups", not glob.glob("/sys/fs/cgroup/**/primus-sandbox*", recursive=True))
    need("namespaces", not os.path.isdir("/run/netns") or not os.listdir("/run/netns"))
    with open("/proc/mounts") as f:
        need("mounts", "primus-sandbox" not in f.read().replace(os.environ.get("PRIMUS_SANDBOX_CACHE", "/var/cache/primus-sandbox"), ""))
    need("state", not glob.glob("/var/lib/primus-sandbox/*"), glob.glob("/var/lib/primus-sandbox/*"))


CHECKS = (check_machine, check_up if "limits" in sys.argv[2:] else check_quickstart, check_nodes, check_run, check_memory_properties, check_out_of_memory,
          check_child_out_of_memory, check_cpu, check_exit_record, check_tasks, check_down)


def main():
    os.environ["PRIMUS_SANDBOX_PATIENCE"] = "10"
    run(CHECKS, sys.argv[1])


if __name__ == "__main__":
    main()
