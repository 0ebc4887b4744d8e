# SPDX-License-Identifier: Apache-2.0
"""The life of hosts: cordon, drain, uncordon, labels, maintenance windows, replace."""
import json
import time

import pytest
from ledger import failover
from sandbox import MASTERD

# Says that it was asked to go, and goes; else until somebody lets it.
RUNNING = "trap 'say term; exit 0' TERM; say runs; while ! [ -e $LEDGER.go ]; do sleep 0.05; done; say end"
STUBBORN = "trap 'say term' TERM; say runs; while ! [ -e $LEDGER.go ]; do sleep 0.05; done; say end"


def let_go(ledger):
    ledger.path.with_name(ledger.path.name + ".go").touch()


def node(cluster, name):
    return cluster.primusctl_json("node", "show", name, user="root")


def ctl(cluster, *arguments, **options):
    return cluster.primusctl(*arguments, user="root", **options)


def refused(cluster, *arguments, user="root"):
    done = cluster.run("n1", "primusctl", *arguments, user=user)
    assert done.returncode != 0
    return done.stderr


@pytest.fixture
def hosts(quick):
    yield quick
    for name in quick.nodes:
        quick.run("n1", "sh", "-c", f"while primusctl node maintenance {name} --json | grep -q '\"from\"' && "
                                    f"primusctl node maintenance {name} cancel \"$(date -d @$(primusctl node maintenance {name} --json | "
                                    f"grep -o '\"from\": *[0-9]*' | head -1 | grep -o '[0-9]*' | cut -c1-10) '+%Y-%m-%d %H:%M:%S')\"; do :; done")
        quick.run("n1", "primusctl", "node", "uncordon", name)


def gang(ledger, num=2, command=RUNNING, job=None, **role):
    return ledger.config(command, num=num, scheduleStrategy={"maxReplicasPerNode": 1}, failover=failover(1), successPercent=100,
                         job={"stopGrace": "5s", **(job or {})}, **role)


def wait_runs(hosts, ledger, count, **which):
    hosts.wait_for(lambda: len(ledger.entries("runs", **which)) >= count, 20, f"{count} running executors")


def places(hosts, job):
    return {e["index"]: e["node"] for e in hosts.status(job)["executors"]}


def test_cordon(hosts, ledger):
    """What runs there goes on; what comes goes elsewhere."""
    job = hosts.submit(gang(ledger, 3))
    wait_runs(hosts, ledger, 3)
    ctl(hosts, "node", "cordon", "n3", "n2", "--reason", "look at the fan")
    assert hosts.node_states() == {"n1": "READY", "n2": "CORDONED", "n3": "CORDONED"}
    assert "look at the fan" in ctl(hosts, "nodes")
    assert "look at the fan" in ctl(hosts, "node", "show", "n3")
    other = hosts.submit(ledger.config("say here", name="other", num=2))
    assert hosts.wait_job(other) == 0
    assert {e.node for e in ledger.entries("here")} == {"n1"}
    let_go(ledger)
    assert hosts.wait_job(job) == 0 and not ledger.entries("term")
    assert "n3" in ctl(hosts, "node", "uncordon", "n3", "n2")
    assert hosts.node_states() == dict.fromkeys(hosts.nodes, "READY")


def test_cordon_outlives_the_host_and_the_master(hosts):
    ctl(hosts, "node", "cordon", "n3", "--reason", "stays")
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes("CORDONED", ["n3"])
    hosts.cut("n3")
    hosts.wait_nodes("LOST", ["n3"])
    hosts.heal("n3")
    hosts.wait_nodes("CORDONED", ["n3"])
    assert node(hosts, "n3")["holds"][0]["reason"] == "stays"
    ctl(hosts, "node", "uncordon", "n3")
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes()


def test_drain_moves_a_gang(hosts, ledger):
    """Stopped with its grace, placed elsewhere at once, counted as nothing: one failure would end this job."""
    job = hosts.submit(gang(ledger, 2))
    wait_runs(hosts, ledger, 2)
    left = next(n for n in places(hosts, job).values() if n != "n1")
    begin = time.time()
    said = ctl(hosts, "node", "drain", left, "--reason", "new kernel", "--wait")
    assert f"Node {left} is drained" in said and "worker/" in said
    assert hosts.node_states()[left] == "DRAINED"
    wait_runs(hosts, ledger, 3)
    again = ledger.entries("runs")[-1]
    print(f"measured: runs elsewhere {again.time - begin:.2f} s after the drain was asked for")
    assert again.node != left and again.attempt == 2
    executor = hosts.executor(job, index=again.index)
    assert executor["state"] == "RUNNING" and hosts.status(job)["state"] == "RUNNING"
    assert [e["text"] for e in hosts.events(job, "executor-moves")] == [f"leaves {left}: new kernel"]
    let_go(ledger)
    assert hosts.wait_job(job) == 0
    assert not hosts.events(job, "executor-failed") and len(ledger.entries("term")) == 1
    ctl(hosts, "node", "uncordon", left)
    assert hosts.node_states()[left] == "READY"


def test_drain_has_its_own_grace(hosts, ledger):
    job = hosts.submit(gang(ledger, 2, STUBBORN, job={"stopGrace": "1h"}))
    wait_runs(hosts, ledger, 2)
    left = places(hosts, job)[0]
    begin = time.time()
    ctl(hosts, "node", "drain", left, "--grace", "1s", "--wait", timeout=30)
    assert 1 <= time.time() - begin < 10
    wait_runs(hosts, ledger, 3)
    let_go(ledger)
    assert hosts.wait_job(job) == 0


def test_drain_waits_for_what_is_not_started_again(hosts, ledger):
    job = hosts.submit(ledger.config(RUNNING, failover=failover(1, restart="NEVER")))
    wait_runs(hosts, ledger, 1)
    where = places(hosts, job)[0]
    ctl(hosts, "node", "drain", where)
    time.sleep(1)
    assert hosts.node_states()[where] == "DRAINING" and not ledger.entries("term")
    let_go(ledger)
    assert hosts.wait_job(job) == 0
    hosts.wait_nodes("DRAINED", [where])


def test_drain_with_a_deadline(hosts, ledger):
    """Until then everything may end by itself; then it is moved, also what is not started again after a failure."""
    job = hosts.submit(gang(ledger, 1))
    never = hosts.submit(ledger.config(RUNNING, name="never", failover=failover(1, restart="NEVER"), job={"nodes": hosts.nodes}))
    wait_runs(hosts, ledger, 2)
    where = places(hosts, job)[0]
    begin = time.time()
    for name in set(places(hosts, job).values()) | set(places(hosts, never).values()):
        ctl(hosts, "node", "drain", name, "--deadline", "3s")
    time.sleep(1)
    assert not ledger.entries("term") and hosts.node_states()[where] == "DRAINING"
    hosts.wait_for(lambda: len(ledger.entries("term")) == 2, 10, "both asked to go")
    assert ledger.entries("term")[0].time - begin >= 2.9
    wait_runs(hosts, ledger, 4)
    let_go(ledger)
    assert hosts.wait_job(job) == 0 and hosts.wait_job(never) == 0


def test_master_dies_during_a_drain(hosts, ledger):
    job = hosts.submit(gang(ledger, 2, STUBBORN, job={"stopGrace": "4s"}))
    wait_runs(hosts, ledger, 2)
    left = next(n for n in places(hosts, job).values() if n != "n1")
    ctl(hosts, "node", "drain", left, "--reason", "power supply")
    hosts.wait_for(lambda: ledger.entries("term"), what="a stop")
    hosts.kill9("n1", MASTERD)
    wait_runs(hosts, ledger, 3)
    assert ledger.entries("runs")[-1].node != left
    hosts.wait_nodes("DRAINED", [left])
    assert node(hosts, left)["reason"] == "power supply"
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes("DRAINED", [left])
    let_go(ledger)
    assert hosts.wait_job(job) == 0
    assert not hosts.events(job, "executor-failed")
    assert hosts.executor(job, index=ledger.entries("runs")[-1].index)["attempt"] == 2


def test_drain_then_reboot(hosts, ledger):
    """The host goes down when nothing is left, comes back, and is in use again."""
    job = hosts.submit(gang(ledger, 2, job={"nodes": ["n1", "n2", "n3"]}))
    wait_runs(hosts, ledger, 2)
    before = node(hosts, "n3")["boot"]
    ctl(hosts, "node", "drain", "n3", "--then", "reboot", "--reason", "new kernel")
    hosts.wait_for(lambda: not hosts.leader("n3"), 30, "n3 going down")
    hosts.boot("n3")  # a container's reboot ends it; whoever started it starts it again
    hosts.wait_for(lambda: node(hosts, "n3")["boot"] != before, 60, "another boot of n3")
    hosts.wait_nodes("READY", ["n3"], timeout=20)
    assert not node(hosts, "n3")["holds"]
    assert "Reboot" in hosts.exec("n3", "journalctl", "-q", "--no-pager", "-b", "-1", "-n", "60")
    let_go(ledger)
    assert hosts.wait_job(job) == 0


def test_drain_then_poweroff(hosts):
    ctl(hosts, "node", "drain", "n3", "--then", "poweroff", "--reason", "off")
    hosts.wait_for(lambda: not hosts.leader("n3"), 30, "n3 going down")
    hosts.wait_nodes("LOST", ["n3"], timeout=30)
    hosts.boot("n3")
    hosts.wait_nodes("DRAINED", ["n3"])
    time.sleep(2)
    assert hosts.node_states()["n3"] == "DRAINED", "a host that somebody switched on again stays on"


def test_labels(hosts):
    ctl(hosts, "node", "label", "n2", "rack=r7", "ssd=")
    assert node(hosts, "n2")["labels"] == ["rack=r7", "ssd="]
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes()
    ctl(hosts, "node", "label", "n2", "rack=r8", "ssd-")
    assert node(hosts, "n2")["labels"] == ["rack=r8"]
    assert "Not a label" in refused(hosts, "node", "label", "n2", "rack r8")
    ctl(hosts, "node", "label", "n2", "rack-")
    assert node(hosts, "n2")["labels"] == []


def test_maintenance_window(hosts, ledger):
    """Who has no time limit or one that reaches into the window does not start there; at its begin the host is drained, at its end in
    use again."""
    for name in ("n2", "n3"):
        ctl(hosts, "node", "maintenance", name, "--from", "+8s", "--to", "+14s", "--reason", "new switch")
    begin = time.time()
    assert "new switch" in ctl(hosts, "nodes") + ctl(hosts, "node", "show", "n3")
    running = hosts.submit(ledger.config(RUNNING, name="short", job={"nodes": ["n3"], "timeLimit": "5s", "stopGrace": "1s"}))
    late = hosts.submit(ledger.config("say late", name="late", job={"nodes": ["n3"]}))
    too_long = hosts.submit(ledger.config("say long", name="long", job={"nodes": ["n3"], "timeLimit": "1min"}))
    wait_runs(hosts, ledger, 1)
    assert hosts.status(late)["state"] == hosts.status(too_long)["state"] == "QUEUED"
    assert hosts.wait_job(running) == 1, "its time limit"
    hosts.wait_nodes("DRAINED", ["n2", "n3"], timeout=10)
    assert 7.5 < time.time() - begin
    assert "maintenance: until" in ctl(hosts, "nodes")
    hosts.kill9("n1", MASTERD)
    assert hosts.wait_job(late) == 0 and hosts.wait_job(too_long) == 0
    assert min(e.time for e in ledger.entries("late") + ledger.entries("long")) - begin >= 13.5
    hosts.wait_nodes()
    assert not node(hosts, "n3")["windows"]


def test_maintenance_is_cancelled(hosts, ledger):
    ctl(hosts, "node", "maintenance", "n3", "--from", "+1h", "--to", "+2h")
    assert "already" in refused(hosts, "node", "maintenance", "n3", "--from", "+90min", "--to", "+3h")
    job = hosts.submit(ledger.config("say here", job={"nodes": ["n3"], "timeLimit": "2h"}))
    time.sleep(0.5)
    assert hosts.status(job)["state"] == "QUEUED"
    ctl(hosts, "node", "maintenance", "n3", "cancel")
    assert hosts.wait_job(job) == 0


def test_replace(hosts, ledger):
    job = hosts.submit(gang(ledger, 2))
    wait_runs(hosts, ledger, 2)
    left = places(hosts, job)[1]
    said = hosts.primusctl("replace", str(job), left)
    assert f"1 executor leaves {left}" in said
    wait_runs(hosts, ledger, 3)
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes()
    # A second attempt avoids it too.
    moved = ledger.entries("runs")[-1]
    assert moved.node != left
    hosts.exec(moved.node, "systemctl", "kill", "-s", "USR1", hosts.executor(job, index=moved.index)["unit"])
    let_go(ledger)
    hosts.wait_job(job)
    assert left not in {e.node for e in ledger.entries("start") if e.attempt > 1}
    assert "nothing to move" in refused(hosts, "replace", str(job), left)


def test_replace_of_the_only_host(hosts, ledger):
    job = hosts.submit(ledger.config(RUNNING, job={"nodes": ["n2"]}))
    wait_runs(hosts, ledger, 1)
    assert "bound to hosts" in refused(hosts, "replace", str(job), "n2", user="ml")
    assert "no node" in refused(hosts, "replace", str(job), "n9", user="ml")
    let_go(ledger)
    assert hosts.wait_job(job) == 0


def test_who_may(hosts):
    for arguments in (("cordon", "n3"), ("drain", "n3"), ("uncordon", "n3"), ("label", "n3", "a=b"),
                      ("maintenance", "n3", "--from", "+1h", "--to", "+2h")):
        assert refused(hosts, "node", *arguments, user="ml")
    assert json.loads(hosts.primusctl("node", "show", "n3", "--json"))["state"] == "READY"
    for arguments, what in ((("cordon", "n9"), "no node n9"), (("drain", "n3", "--deadline", "soon"), "--deadline"),
                            (("drain", "n3", "--then", "explode"), "reboot"), (("maintenance", "n3", "--from", "+2h"), "go together"),
                            (("maintenance", "n3", "--from", "+2h", "--to", "+1h"), "before")):
        assert what in refused(hosts, "node", *arguments)
    assert hosts.node_states()["n3"] == "READY"
