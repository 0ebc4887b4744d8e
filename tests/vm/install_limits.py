# SPDX-License-Identifier: Apache-2.0
"""Limits as installed, by the real controllers of cgroup v2. Each of them in every case: limits-vm."""
import re
import shlex

from checks import need
from hosts import end, executors, kill, logs, running, submit, wait_for
from install_first import join
from story import check

NEVER = {"failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}}
FORK = "perl -e '$| = 1; for (1 .. 60) { $p = fork; if (!defined $p) { print \"stopped at $_: $!\\n\"; last } if (!$p) { sleep 600; exit } } sleep 600'"
OPEN = ("perl -e '$| = 1; for (\"/dev/null\", \"/dev/fake-kmsg\", \"/dev/vda\") { print \"$_ \", (open(F, \"<\", $_) ? \"open\" : $!), \"\\n\" } sleep 600'")


@check("4.1", join)
def out_of_memory(pair, log):
    """memoryMb: beyond it the executor is killed, and primusctl says so"""
    job = submit(pair, {"roleName": "worker", "command": "exec tail /dev/zero", "memoryMb": 64, "nodes": ["b"], **NEVER})
    seen = end(pair, job)
    executor = seen["executors"][0]
    need("result", seen["state"] == "FAILED" and "out of memory (limit 64M)" in executor["result"], executor)
    log.figure(f"out of memory: {executor['result']}")


@check("4.2", join)
def controllers(pair, log):
    """vcores is cpu.max and throttles; tasksMax stops forks; devices are closed; primus.slice, primus-N.slice and the unit nest"""
    pair.b.sh("test -e /dev/fake-kmsg || mknod -m 666 /dev/fake-kmsg c 1 11; chmod o+r /dev/vda")
    job = submit(pair, {"roleName": "cpu", "command": "while :; do :; done", "vcores": 0.2}, {"roleName": "forks", "command": FORK, "tasksMax": 20},
                 {"roleName": "devices", "command": OPEN}, nodes=["b"], **{})
    try:
        found = running(pair, job, 3)

        def group(role, name):
            e = found[f"{role}/0"]
            return pair.b.sh(f"cat {shlex.quote(f'/sys/fs/cgroup/primus.slice/primus-{job}.slice/' + e['unit'] + '/' + name)}").strip()

        quota, period = map(int, group("cpu", "cpu.max").split())
        need("cpu.max", abs(quota / period - 0.2) < 0.001, (quota, period))
        throttled = wait_for("throttled", lambda: int(re.search(r"nr_throttled (\d+)", group("cpu", "cpu.stat"))[1]), 120)
        need("memory.max", group("cpu", "memory.max") == str(32 << 20), group("cpu", "memory.max"))
        need("pids.max", group("forks", "pids.max") == "20", group("forks", "pids.max"))
        out = wait_for("output", lambda: (text := logs(pair, job)) and "stopped at" in text and "/dev/vda" in text and text, 300)
        stopped = int(re.search(r"stopped at (\d+)", out)[1])
        need("forks", stopped <= 20, out)
        need("devices", "/dev/null open" in out and len(re.findall(r"/dev/(?:fake-kmsg|vda) Operation not permitted", out)) == 2, out)
        of = pair.b.sh(f"systemctl show -P ControlGroup {found['cpu/0']['unit']}").strip()
        need("slices", of == f"/primus.slice/primus-{job}.slice/{found['cpu/0']['unit']}", of)
        log.figure(f"vcores 0.2: throttled in {throttled} periods; tasksMax 20: the {stopped}th fork refused; devices: EPERM; {of}")
    finally:
        kill(pair, job)
    need("nothing is left", not pair.b.try_sh(f"ls -d /sys/fs/cgroup/primus.slice/primus-{job}.slice/*/").out)
    need("ended", all(e["state"] != "RUNNING" for e in executors(pair, job).values()))
