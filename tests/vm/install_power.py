# SPDX-License-Identifier: Apache-2.0
"""Reboots of either host during a job, and a power cut of the master's in the middle of submits."""
import random
import re
import time

from checks import need
from hosts import CTL, PATIENCE, executors, kill, pids, ready, running, submit, wait_for
from install_first import join
from story import check

TRAIN = "i=0; while :; do i=$((i + 1)); echo step $i; sleep 5; done"


@check("5.1", join)
def reboot_of_a_host(pair, log):
    """reboot of b during a job: its agent comes back by itself, what ran there runs again, the executor on a never notices"""
    job = submit(pair, {"roleName": "a", "command": TRAIN, "nodes": ["a"]}, {"roleName": "b", "command": TRAIN, "num": 2, "nodes": ["b"]})
    running(pair, job, 3)
    pair.remember("training", job)
    before = pids(pair, job)
    pair.b.reboot()
    ready(pair, {"a", "b"})

    def again():
        found = executors(pair, job)
        return all(e["state"] == "RUNNING" for e in found.values()) and all(found[f"b/{i}"]["attempt"] > 1 for i in range(2)) and found

    wait_for("what ran on b runs again", again, PATIENCE)
    after = pids(pair, job)
    need("the executor on a", after["a/0"] == before["a/0"], (before, after))
    need("one attempt of it", executors(pair, job)["a/0"]["attempt"] == 1)
    log.figure(f"reboot of b: a/0 {before['a/0']} stayed, b/0 {before['b/0']} is {after['b/0']}")


@check("5.2", join)
def placed_elsewhere(pair, log):
    """a host that stays off: what ran there runs on the other one; back again, it is READY"""
    pair.a.sh("primusctl node cordon a")
    job = submit(pair, {"roleName": "anywhere", "command": TRAIN})
    need("on b", running(pair, job)["anywhere/0"]["node"] == "b")
    pair.a.sh("primusctl node uncordon a")
    pair.b.power_cut()
    began = time.monotonic()
    wait_for("it runs on a", lambda: (e := executors(pair, job)["anywhere/0"])["node"] == "a" and e["state"] == "RUNNING", PATIENCE)
    log.figure(f"power cut of b: what ran there runs on a after {time.monotonic() - began:.0f} s (LostSec=60)")
    pair.b.power_on()
    ready(pair, {"a", "b"})
    kill(pair, job)


@check("5.3", reboot_of_a_host)
def reboot_of_the_master(pair, log):
    """reboot of a, the master's host, during the job: masterd and agentd come back by themselves, executors on b never notice"""
    job = pair.recall("training")
    running(pair, job, 3)
    before = pids(pair, job)
    pair.a.reboot()
    ready(pair, {"a", "b"})
    running(pair, job, 3)
    after = pids(pair, job)
    need("executors on b", all(after[name] == before[name] for name in before if name.startswith("b/")), (before, after))
    need("the one on a runs again", after["a/0"] != before["a/0"], (before, after))
    log.figure(f"reboot of a: b/0 {before['b/0']}, b/1 {before['b/1']} stayed; a/0 runs again")
    kill(pair, job)


# Jobs that wait for a time far away: only their being there matters. What is acknowledged is told over the serial line, which
# is out of the machine before the next one is submitted.
SUBMIT = """cd /tmp
echo '{"name": "cut", "begin": "2099-01-01T00:00:00Z", "role": [{"roleName": "w", "command": "true"}]}' > cut.json
while [ ! -e /run/submit-stop ]; do
        if n=$(runuser -u ml -- primusctl submit cut.json); then echo "acknowledged: $n" > /dev/ttyS0; fi
done"""


def listed(pair):
    """The numbers of these jobs."""
    out = pair.a.try_sh(f"{CTL} list -a --json --limit 100000 --name cut | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*$'").out
    return set(map(int, out.split()))


@check("6.1", join)
def power_cut(pair, log):
    """power cut of the master's host while jobs are submitted: every submit that was acknowledged is there afterwards"""
    console = pair.console("a")

    def acknowledged():
        with open(console, errors="replace") as f:
            return {int(n) for n in re.findall(r"acknowledged: .*?job (\d+) .*\n", f.read())}

    old = acknowledged()
    total, rounds, known = 0, 2, listed(pair)
    for _ in range(rounds):
        for _ in range(2):
            pair.a.begin(SUBMIT, seconds=3600)
        wait_for("some are acknowledged", lambda: len(acknowledged() - old) >= total + 5, PATIENCE)
        time.sleep(random.uniform(0, 5))
        pair.a.power_cut()
        said = acknowledged() - old
        pair.a.power_on()
        ready(pair, {"a", "b"})
        there = listed(pair)
        need("every acknowledged job", said and said <= there, f"lost: {sorted(said - there)} of {sorted(said)}")
        log.figure(f"power cut: {len(said) - total} acknowledged in this round, all there; {len(there - said - known)} were stored and not yet acknowledged")
        total = len(said)
    kill(pair, *sorted(there))
    log.figure("file system: " + pair.a.sh("findmnt -n -o SOURCE,FSTYPE,OPTIONS /").strip())
