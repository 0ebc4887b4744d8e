# SPDX-License-Identifier: Apache-2.0
"""One user does his worst (worst.py), another submits small jobs: what she notices of it, and what the master takes meanwhile."""
import json
import os
import subprocess
import time

from sandbox import MASTERD

HERE = os.path.dirname(os.path.abspath(__file__))
BINDS = [f"{HERE}:/tests"]
WORST = "/tests/worst.py"


def percentile(sorted_, p):
    return sorted_[min(len(sorted_) - 1, int(len(sorted_) * p))]


def measured(cluster, seconds):
    """Milliseconds from each submit of hers to its running, in order of size."""
    done = cluster.run("n1", "/usr/bin/python3", WORST, "measure", str(seconds), user="eve", timeout=seconds + 150)
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(done.stdout))


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def measured_under_attack(cluster, seconds, ways=()):
    """What she notices, the most that the master had resident (bytes), what came of the attack (way: answer: times)."""
    pid, highest = cluster.main_pid("n1", MASTERD), 0
    eve = cluster.argv("n1", "/usr/bin/python3", WORST, "measure", str(seconds), user="eve")
    with cluster.process("n1", "/usr/bin/python3", WORST, "attack", str(seconds + 2), *ways, user="ml", stderr=subprocess.DEVNULL) as attack:
        time.sleep(1)  # it connects
        with subprocess.Popen(eve, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as victim:
            while victim.poll() is None:
                highest = max(highest, rss(pid))
                time.sleep(0.1)
            took, said = victim.communicate()
            assert victim.returncode == 0, said
        came = json.loads(attack.communicate(timeout=seconds + 122)[0])
    assert cluster.main_pid("n1", MASTERD) == pid, "the master lives through it"
    return sorted(json.loads(took)), highest, came
