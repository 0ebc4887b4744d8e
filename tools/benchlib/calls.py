# SPDX-License-Identifier: Apache-2.0
"""What a call from another host costs, beside the same on the master's own: by the agent there, and by the system bus here."""
import json
import os

ROUNDS = 40

# Runs on a host as the user, a round for each line of its input: milliseconds of a submit by primusctl, and of a call by busctl.
CLIENT = r"""
import json, os, subprocess, sys, time
SOCKET = "/run/primus/agent/master.sock"
JOB = {"name": "kept", "begin": "2099-01-01T00:00:00Z", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "true"}]}
path = "/tmp/calls-%d.json" % os.getpid()
with open(path, "w") as f:
    json.dump(JOB, f)
address = [] if sys.argv[1] == "bus" else ["--address=unix:path=" + SOCKET]
BUS = ["busctl", *address, "call", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager"]
def timed(*command):
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - began)
for _ in sys.stdin:
    print(json.dumps([timed("primusctl", "submit", "--json", path), timed(*BUS, "ListPools")]), flush=True)
"""


def median(values):
    return sorted(values)[len(values) // 2]


def bench(hosts, report, popen):
    with open(os.path.join(hosts.shared, "calls.py"), "w", encoding="utf-8") as f:
        f.write(CLIENT)
    took = {"n1": [], "n2": []}
    with popen("n1", "python3", "/opt/bench/calls.py", "bus") as here, popen("n2", "python3", "/opt/bench/calls.py", "agent") as there:
        for _ in range(ROUNDS):  # in turn, so that both have the same noise
            for node, running in (("n1", here), ("n2", there)):
                running.stdin.write("\n")
                running.stdin.flush()
                took[node].append(json.loads(running.stdout.readline()))
        here.stdin.close()
        there.stdin.close()
    (submit, asked), (far_submit, far_asked) = ([median(column) for column in zip(*took[node])] for node in ("n1", "n2"))
    ok = report("calls", "a submit on another host, beside one on the master's", far_submit, "ms", submit, ("ratio", "<=", 2))
    return report("calls", "a question by busctl, the same", far_asked, "ms", asked, ("ratio", "<=", 2)) and ok
