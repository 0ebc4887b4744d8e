# SPDX-License-Identifier: Apache-2.0
"""What was written for PARL, on hosts: as a job, and on a cluster of xparl that two of them make."""

PROGRAM = """
import os
import socket
import sys
import parl

@parl.remote_class
class Actor:
    def __init__(self, n):
        self.n = n
    def where(self):
        return socket.gethostname(), os.getuid()
    def text(self):
        return open("data/of.txt").read()

parl.connect(sys.argv[1], ["data"])
four = [Actor(n) for n in range(4)]
print(*(a.n for a in four), *sorted({a.where() for a in four}), *{a.text() for a in four})
"""


def put(cluster):
    """The program, at a place that no other host sees; its files go along."""
    cluster.exec("n1", "sh", "-c", "mkdir -p ~/parl/data && cat > ~/parl/program.py && printf told > ~/parl/data/of.txt", user="ml", input=PROGRAM)


def run(cluster, *arguments, node="n1", user="ml"):
    return cluster.run(node, "sh", "-c", 'cd ~/parl && exec python3 -m primus.parl "$@"', "-", *arguments, user=user)


def test_as_a_job(quick):
    """Its objects are on two hosts, whatever address it names; the job ends with the program."""
    put(quick)
    done = run(quick, "--hosts", "2", "--slots", "2", "--cpus", "0.1", "--memory", "64M", "program.py", "nowhere:8010")
    assert done.returncode == 0, done.stderr
    words = done.stdout.split(maxsplit=4)
    assert words[:4] == ["0", "1", "2", "3"] and words[4].count("1000") == 2 and words[4].endswith("told\n"), done.stdout
    quick.wait_for(lambda: not quick.primusctl_json("list"), 30, "the end of the job")


def test_a_cluster_of_two_hosts(quick):
    """The other host needs the secret; a user who has another one is told so, and so is who has none of its programs there."""
    put(quick)
    said = quick.exec("n1", "xparl", "start", "--port", "8010", "--cpu_num", "2", user="ml")
    assert "The cluster is started at localhost:8010." in said
    try:
        join = "xparl", "connect", "--address", "n1:8010", "--cpu_num", "2"
        for user in ("ml", "eve"):
            done = quick.run("n2", *join, user=user)
            assert done.returncode == 1 and "there is no master of xparl at n1:8010 that has this user's secret" in done.stderr
        secret = quick.exec("n1", "sh", "-c", "base64 ~/.local/state/primus-xparl/secret", user="ml")
        quick.exec("n2", "sh", "-c", "base64 -d > ~/.local/state/primus-xparl/secret", user="ml", input=secret)
        quick.exec("n2", *join, user="ml")
        done = run(quick, "program.py", "n1:8010")
        assert done.returncode == 0 and done.stdout == "0 1 2 3 ('n1', 1000) ('n2', 1000) told\n", (done.stdout, done.stderr)
        assert "has 0 used cpus, 4 vacant cpus" in quick.exec("n2", "xparl", "status", user="ml")
        quick.exec("n1", "sh", "-c", "mkdir -p ~/parl/data && cp /home/ml/parl/program.py ~/parl/", user="root")
        assert "there is no master of xparl" in run(quick, "program.py", "n1:8010", user="root").stderr
        assert quick.exec("n1", "xparl", "stop", user="ml") == "2 processes of xparl have ended.\n"
        quick.wait_for(lambda: quick.exec("n2", "xparl", "status", user="ml") == "No active cluster is found.\n", 20, "the worker to leave")
    finally:
        for node in ("n1", "n2"):
            quick.run(node, "xparl", "stop", user="ml")
