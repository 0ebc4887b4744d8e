# SPDX-License-Identifier: Apache-2.0
"""Daemons that are killed: no executor restarts, no result is lost, none runs twice, the job ends as it would have."""
import random
import statistics
import threading
import time

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD

ROUNDS = 20


def victims(rng, cluster):
    """masterd, agentds, or both."""
    agents = [(node, AGENTD) for node in rng.sample(cluster.nodes, rng.randint(1, 3))]
    return rng.choice([[("n1", MASTERD)], agents, [("n1", MASTERD), *agents]])


class Killer(threading.Thread):
    """Kills when it is time, beside what the test does: at random moments, and right after executors have ended."""

    def __init__(self, cluster, rng, ledger, span):
        super().__init__(daemon=True)
        self.cluster, self.ledger = cluster, ledger
        self.plan = sorted((rng.uniform(0, span), victims(rng, cluster)) for _ in range(2))
        self.at_end = rng.choice([None, 1, 2, 4])
        self.delay = rng.uniform(0, 0.03)
        self.last = victims(rng, cluster)
        self.over = threading.Event()
        self.killed = []

    def kill(self, targets):
        self.killed += [f"{node}:{unit}" for node, unit in targets if self.cluster.kill9_now(node, unit)]

    def run(self):
        begin = time.monotonic()
        for moment, targets in self.plan:
            self.over.wait(max(0.0, begin + moment - time.monotonic()))
            self.kill(targets)
        while self.at_end and not self.over.is_set():
            if len(self.ledger.entries("end")) >= self.at_end:
                self.over.wait(self.delay)
                self.kill(self.last)
                return
            time.sleep(0.002)  # a file on a bind mount makes no event that comes sooner


# What the job does, its status, and its attempts: {index: number}.
KINDS = {
    "succeeds": ("sleep $(echo 0.3 0.5 0.8 1.2 | cut -d' ' -f$((PRIMUS_INDEX + 1))); say end", 0, {0: 1, 1: 1, 2: 1, 3: 1}),
    "one fails once": ("sleep 0.$((3 + PRIMUS_INDEX)); say end; [ $PRIMUS_INDEX != 2 ] || [ $PRIMUS_ATTEMPT -ge 2 ]", 0,
                       {0: 1, 1: 1, 2: 2, 3: 1}),
    "fails": ("[ $PRIMUS_INDEX = 1 ] || { trap 'say end; exit 1' TERM; say ready; sleep 60 & wait; }; "
              "until [ $(grep -c ^ready $LEDGER) = 3 ]; do sleep 0.05; done; sleep 0.3; say end; exit 7", 1,
              {0: 1, 1: 2, 2: 1, 3: 1}),
}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_daemons_killed(quick, ledger, seed):
    rng = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    command, status, attempts = KINDS[kind]
    job = quick.submit(ledger.config(command, num=4, name=kind.replace(" ", "-"), failover=failover(2), job={
        "backoff": {"initial": "0.2s"}}, scheduleStrategy={"maxReplicasPerNode": 2}))
    killer = Killer(quick, rng, ledger, 1.2)
    killer.start()
    try:
        ended = quick.wait_job(job, timeout=40)
    finally:
        killer.over.set()
        killer.join()
    print("killed", killer.killed)
    starts, ends = ledger.attempts()
    expected = {("worker", index, attempt): 1 for index, last in attempts.items() for attempt in range(1, last + 1)}
    assert ended == status
    assert starts == expected, "each attempt is started once"
    assert ends == expected, "each attempt comes to its own end"
    job = quick.status(job)
    assert {e["index"]: e["attempt"] for e in job["executors"]} == attempts
    assert sum(role["restarts"] for role in job["roles"]) == sum(attempts.values()) - len(attempts)


def test_nothing_is_left_behind(quick, ledger):
    """Exit records and private directories go once masterd has the results, kills or no kills."""
    job = quick.submit(ledger.config("sleep 0.3; say end", num=4, scheduleStrategy={"maxReplicasPerNode": 2}))
    quick.wait_for(lambda: ledger.entries("end"), what="an end")
    for node in quick.nodes:
        quick.kill9_now(node, AGENTD)
    quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 0
    for node in quick.nodes:
        quick.wait_for(lambda node=node: not quick.exec(node, "ls", "/run/primus/exits", "/run/primus/x").replace(
            "/run/primus/exits:", "").replace("/run/primus/x:", "").strip(), what=f"{node} without records")
        assert quick.exec(node, "systemctl", "list-units", "--all", "--plain", "--no-legend", "primus-[0-9]*").strip() == ""


ASK = "busctl --timeout=5 get-property org.primus.Master1 /org/primus/Master1 org.primus.Master1.Manager Term"


@pytest.mark.parametrize("how", ["systemctl restart primus-masterd", "systemctl kill -s KILL --kill-whom=main primus-masterd; sleep 0.01"])
def test_masterd_serves_again_within_a_second(quick, how):
    took = []
    for _ in range(5):
        out = quick.exec("n1", "sh", "-c", f"before=$(date +%s%N); {how}; until {ASK} >/dev/null 2>&1; do :; done; "
                         "echo $(($(date +%s%N) - before))")
        took.append(int(out) / 1e9)
        quick.wait_nodes()
    print("seconds until it serves:", [f"{t:.3f}" for t in took])
    assert statistics.median(took) < 1


def test_agents_come_back_after_masterd(quick, ledger):
    """Within the spread that masterd asks for, and executors do not notice."""
    job = quick.submit(ledger.config("sleep 3; say end", num=3, scheduleStrategy={"maxReplicasPerNode": 1}))
    quick.wait_state(job, "RUNNING")
    quick.kill9_now("n1", MASTERD)
    begin = time.monotonic()
    quick.wait_nodes(timeout=5)
    print(f"all nodes READY {time.monotonic() - begin:.2f} s after the kill")
    assert quick.wait_job(job) == 0
    assert set(ledger.attempts()[0].values()) == {1} and len(ledger.entries("start")) == 3


def work(cluster, node):
    return set(cluster.exec(node, "ls", "/var/lib/primus-agent/work").split())


def test_files_of_a_job_go_with_it(quick, ledger):
    """On every host that ever ran a part of it, also where a daemon was not there to hear of the end."""
    filler = quick.submit(ledger.config("sleep 600", name="filler", vcores=1.5, job={"nodes": ["n2"]}))
    quick.wait_state(filler, "RUNNING")
    job = quick.submit(ledger.config("say start; while [ ! -e $LEDGER.go ]; do sleep 0.05; done", vcores=1,
                                     job={"nodes": ["n2", "n3"]}))
    quick.wait_for(lambda: ledger.entries("start", index=0, node="n3"), what="its start on n3")
    quick.kill(filler)
    # Its host is rebooted, and full when the executor is placed again.
    other = quick.submit(ledger.config("while [ ! -e $LEDGER.go ]; do sleep 0.05; done", name="other", vcores=1, job={"nodes": ["n3"]}))
    quick.wait_state(other, "RUNNING")
    name = next(iter(w for w in work(quick, "n3") if w.startswith(f"{job}-")))
    quick.crash("n3")
    quick.wait_for(lambda: ledger.entries("start", attempt=2, node="n2"), 15, "its start on n2")
    quick.boot("n3")
    quick.wait_nodes()
    assert name in work(quick, "n3"), "the job may come back"
    quick.exec("n2", "systemctl", "stop", AGENTD)
    open(f"{ledger.path}.go", "w").close()
    quick.wait_for(lambda: "primus-" + str(job) + "-" not in quick.exec("n2", "systemctl", "list-units", "--plain", "--no-legend"),
                   what="its end")
    quick.kill9_now("n1", MASTERD)
    quick.exec("n2", "systemctl", "start", AGENTD)
    assert quick.wait_job(job) == quick.wait_job(other) == 0
    for node in quick.nodes:
        quick.wait_for(lambda node=node: not work(quick, node), what=f"{node} without files of jobs")


def test_master_is_reached_over_both_families(quick):
    """An agent tries the addresses of its master's name in turn."""
    hosts = [line.split() for line in quick.exec("n2", "cat", "/etc/hosts").splitlines()]
    addresses = [fields[0] for fields in hosts if "n1" in fields[1:]]
    assert {":" in address for address in addresses} == {True, False}
    for address in addresses:
        quick.exec("n2", "python3", "-c", "import socket, sys; socket.create_connection((sys.argv[1], 7747), 2)", address)
