# SPDX-License-Identifier: Apache-2.0
"""The life of hosts: cordon, drain, uncordon, labels, maintenance windows, replace."""
import contextlib
import json
import os
import time

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD, Cluster, state, cluster_name

# Says that it was asked to go, and goes; else until somebody lets it.
RUNNING = "trap 'say term; exit 0' TERM; say runs; while ! [ -e $LEDGER.go ]; do sleep 0.05; done; say end"
STUBBORN = "trap 'say term' TERM; say runs; while ! [ -e $LEDGER.go ]; do sleep 0.05; done; say end"


def let_go(ledger):
    ledger.path.with_name(ledger.path.name + ".go").touch()


def node(cluster, name):
    return cluster.shown(name)


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


def test_what_has_happened_is_kept(hosts):
    """Who held a host and why, and that it came and went; over kills of the master; for everybody to see."""
    def events(user="eve"):
        return hosts.primusctl_json("node", "events", "n2", user=user)
    before = events()
    assert any(e["kind"] == "registered" for e in before) and [e["sequence"] for e in before] == sorted(e["sequence"] for e in before)
    ctl(hosts, "node", "cordon", "n2", "--reason=a <b>disk</b> is slow")
    ctl(hosts, "node", "uncordon", "n2")
    hosts.kill9("n1", "primus-masterd")
    hosts.wait_nodes()
    hosts.kill9("n2", "primus-agentd")
    hosts.wait_nodes()
    ctl(hosts, "node", "cordon", "n2", "--reason=once more")
    ctl(hosts, "node", "uncordon", "n2")
    new = events()[len(before):]
    numbers = [e["sequence"] for e in new]
    assert numbers == list(range(before[-1]["sequence"] + 1, before[-1]["sequence"] + 1 + len(new)))
    said = [(e["kind"], e["text"]) for e in new]
    held = [text for kind, text in said if kind == "held"]
    assert len(held) == 2 and "a <b>disk</b> is slow" in held[0] and "once more" in held[1], said
    assert [kind for kind, _ in said].count("released") == 2 and ("registered" in [kind for kind, _ in said]), said
    text = hosts.primusctl("node", "events", "n2", user="ml")
    assert "takes nothing new" in text and len(text.splitlines()) == len(before) + len(new)
    assert "n9" in refused(hosts, "node", "events", "n9", user="ml")


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
    found = node(hosts, "n2")["labels"]  # the agent's own, such as arch=x86_64
    assert found
    ctl(hosts, "node", "label", "n2", "rack=r7", "ssd=")
    assert node(hosts, "n2")["labels"] == sorted([*found, "rack=r7", "ssd="])
    assert "rack=r7" in ctl(hosts, "nodes", "--labels") and "rack=r7" not in ctl(hosts, "nodes")
    hosts.kill9("n1", MASTERD)
    hosts.wait_nodes()
    ctl(hosts, "node", "label", "n2", "rack=r8", "ssd-")
    assert node(hosts, "n2")["labels"] == sorted([*found, "rack=r8"])
    assert "Not a label" in refused(hosts, "node", "label", "n2", "rack r8")
    ctl(hosts, "node", "label", "n2", "rack-")
    assert node(hosts, "n2")["labels"] == found


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
    config = gang(ledger, 2)
    config["role"][0]["failover"] = failover(3)
    job = hosts.submit(config)
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
    wait_runs(hosts, ledger, 4)
    let_go(ledger)
    assert hosts.wait_job(job) == 0
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


# ---- the site's hooks

HOOKS = "/etc/primus/hooks"


def hook(hosts, name, hook_name, script, mode="0755"):
    hosts.exec(name, "sh", "-c", f"mkdir -p $(dirname {HOOKS}/{hook_name}); cat > {HOOKS}/{hook_name}.new; chmod {mode} {HOOKS}/{hook_name}.new; "
                                 f"mv {HOOKS}/{hook_name}.new {HOOKS}/{hook_name}", input="#!/bin/bash\n" + script + "\n")


@pytest.fixture(scope="module")
def hooked_cluster(build, shared_dir):
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared_dir}:/shared"],
                 conf=["masterd.conf:Master.LostSec=5", "agentd.conf:Agent.HealthSec=1", "agentd.conf:Agent.HookSec=3",
                       "agentd.conf:Agent.UnkillableSec=2"]) as cluster:
        yield cluster


@pytest.fixture
def hooked(hooked_cluster):
    hooked_cluster.heal_all()
    hooked_cluster.wait_nodes()
    yield hooked_cluster
    hooked_cluster.run("n1", "sh", "-c", "primusctl list --json | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*' | xargs -r -n1 primusctl kill")
    for name in hooked_cluster.nodes:
        hooked_cluster.run(name, "sh", "-c", f"rm -rf {HOOKS}/*")
        hooked_cluster.run("n1", "primusctl", "node", "uncordon", name)


def test_prolog_and_epilog(hooked, ledger):
    """Once for a job and host: before its first executor, after its last; as root, with the job's facts."""
    says = f'echo "$PRIMUS_HOOK $PRIMUS_JOB $PRIMUS_USER $PRIMUS_NODE $(id -u) $(date +%s.%N)" >> {ledger.inside}.hooks; echo hello'
    for name in hooked.nodes:
        hook(hooked, name, "prolog", says)
        hook(hooked, name, "epilog", "true")
        hook(hooked, name, "epilog.d/10-more", says)
    job = hooked.submit(gang(ledger, 2, "[ $PRIMUS_ATTEMPT -ge 2 ] || exit 1; say end"))
    hooked.wait_job(job)
    again = hooked.submit(ledger.config("[ $PRIMUS_ATTEMPT -ge 2 ] || exit 1; say end", num=4, failover=failover(3), successPercent=100))
    assert hooked.wait_job(again) == 0
    log = ledger.path.with_name(ledger.path.name + ".hooks")
    where = {e["node"] for e in hooked.status(again)["executors"]}
    hooked.wait_for(lambda: sum(line.startswith(f"epilog {again} ") for line in log.read_text().splitlines()) == len(where), 10, "the epilogs")
    lines = [line.split() for line in log.read_text().splitlines() if line.split()[1] == str(again)]
    for name in where:
        mine = [line for line in lines if line[3] == name]
        assert [line[0] for line in mine] == ["prolog", "epilog"], lines
        assert mine[0][2] == "ml" and mine[0][4] == "0"
        times = [e.time for e in ledger.entries("end") if e.node == name]
        assert float(mine[0][5]) < min(times) and max(times) < float(mine[1][5])
    assert "hello" in hooked.exec("n1", "journalctl", "-q", "--no-pager", "-u", AGENTD)


@pytest.mark.parametrize("script, why", (("echo the scratch disk is full; exit 3", "the scratch disk is full"),
                                         ("echo mounting; sleep 100", "did not end within 3s: mounting")))
def test_failing_prolog_drains_the_host(hooked, ledger, script, why):
    """It costs the job nothing: one failure would end it. What else runs there goes on."""
    other = hooked.submit(ledger.config(RUNNING, name="other", job={"nodes": ["n2"]}))
    wait_runs(hooked, ledger, 1)
    hook(hooked, "n2", "prolog", script)
    job = hooked.submit(ledger.config("say here", failover=failover(1), vcores=1.5, num=2, successPercent=100))
    hooked.wait_nodes("DRAINING", ["n2"])
    assert hooked.wait_job(job) == 0
    assert {e.node for e in ledger.entries("here")} == {"n1"}
    assert why in node(hooked, "n2")["reason"] and f"job {job}: prolog" in node(hooked, "n2")["reason"]
    assert not hooked.events(job, "executor-failed")
    assert hooked.status(other)["state"] == "RUNNING" and not ledger.entries("term")
    let_go(ledger)
    assert hooked.wait_job(other) == 0
    hooked.wait_nodes("DRAINED", ["n2"])


def test_prolog_that_fails_again_is_held_against_the_host(hooked, ledger):
    """It takes jobs of two users. Whoever uncordons the host forgives that: it is not on probation then."""
    hook(hooked, "n2", "prolog", "exit 1")
    for user in ("ml", "eve"):
        job = hooked.submit(ledger.config("true", vcores=1.5, num=2, successPercent=100), user=user)
        assert hooked.wait_job(job, user=user) == 0
        hooked.wait_nodes("DRAINED", ["n2"])
        if "quarantine" in node(hooked, "n2")["reason"]:
            break
        ctl(hooked, "node", "uncordon", "n2")
    assert user == "eve" and "failed prologs" in node(hooked, "n2")["reason"]
    hooked.exec("n2", "rm", f"{HOOKS}/prolog")
    ctl(hooked, "node", "uncordon", "n2")
    assert hooked.node_states()["n2"] == "READY"
    job = hooked.submit(ledger.config(RUNNING, num=3, successPercent=100, vcores=0.1, job={"nodes": ["n2"]}))
    wait_runs(hooked, ledger, 3)
    let_go(ledger)
    assert hooked.wait_job(job) == 0


def test_hook_that_others_may_write_is_refused(hooked, ledger):
    hook(hooked, "n2", "prolog", "exit 0", mode="0777")
    job = hooked.submit(ledger.config("say here", vcores=1.5, num=2, successPercent=100))
    assert hooked.wait_job(job) == 0
    assert "others than root may write" in node(hooked, "n2")["reason"]


def test_health(hooked, ledger):
    """Its last line is the reason; when it is content again, the host is in use again. A person's hold is not its to lift."""
    hook(hooked, "n2", "health", "[ -e /tmp/sick ] || exit 0; echo looking; echo GPU 3 is gone; exit 1")
    hooked.exec("n2", "touch", "/tmp/sick")
    hooked.wait_nodes("DRAINED", ["n2"], timeout=15)
    assert node(hooked, "n2")["reason"] == "health: GPU 3 is gone"
    hooked.kill9("n1", MASTERD)
    hooked.wait_nodes("DRAINED", ["n2"])
    ctl(hooked, "node", "cordon", "n2", "--reason", "mine")
    hooked.exec("n2", "rm", "/tmp/sick")
    hooked.wait_nodes("CORDONED", ["n2"], timeout=15)
    assert node(hooked, "n2")["reason"] == "mine"
    ctl(hooked, "node", "uncordon", "n2")
    hooked.wait_nodes()


def test_fence_vouches_for_a_dead_host(hooked, ledger):
    """onPartition: wait is placed again only when somebody says that the host is dead; here the hook does."""
    seen = f"{ledger.inside}.fence"
    hook(hooked, "n1", "fence", f'echo "$PRIMUS_NODE $PRIMUS_EXECUTORS" >> {seen}; exit 0')
    job = hooked.submit(gang(ledger, 1, job={"onPartition": "wait", "nodes": ["n1", "n2"]}, vcores=1.5))
    wait_runs(hooked, ledger, 1)
    if places(hooked, job)[0] == "n1":
        ctl(hooked, "node", "drain", "n1", "--wait")
        wait_runs(hooked, ledger, 2)
        ctl(hooked, "node", "uncordon", "n1")
    assert places(hooked, job)[0] == "n2"
    before = len(ledger.entries("runs"))
    hooked.crash("n2")
    wait_runs(hooked, ledger, before + 1)
    assert ledger.entries("runs")[-1].node == "n1"
    assert ledger.path.with_name(ledger.path.name + ".fence").read_text() == "n2 1\n"
    let_go(ledger)
    assert hooked.wait_job(job) == 0
    hooked.boot("n2")
    hooked.wait_nodes()


def test_fence_that_fails_vouches_for_nothing(hooked, ledger):
    hook(hooked, "n1", "fence", "exit 1")
    ctl(hooked, "node", "cordon", "n1")
    job = hooked.submit(gang(ledger, 1, job={"onPartition": "wait"}))
    wait_runs(hooked, ledger, 1)
    ctl(hooked, "node", "uncordon", "n1")
    hooked.cut("n2")
    hooked.wait_nodes("LOST", ["n2"])
    time.sleep(2)
    assert hooked.executor(job)["attempt"] == 1 and hooked.executor(job)["state"] == "RUNNING"
    hooked.heal("n2")
    hooked.wait_nodes()
    let_go(ledger)
    assert hooked.wait_job(job) == 0


def test_notify(hooked, ledger):
    """What happened is told as nobody in particular, with the facts in the environment."""
    hook(hooked, "n1", "notify", 'echo "$PRIMUS_EVENT|$PRIMUS_NODE|$PRIMUS_JOB|$PRIMUS_JOB_STATE|$PRIMUS_JOB_NAME|$PRIMUS_TEXT|$(id -u)"')

    def log():
        return hooked.exec("n1", "journalctl", "-q", "--no-pager", "-o", "cat", "-u", "primus-hook-notify@*")

    job = hooked.submit(ledger.config("exit 3", name="odd '$(reboot)' name"))
    assert hooked.wait_job(job) == 1
    ctl(hooked, "node", "drain", "n2", "--reason", "new fan")
    hooked.wait_for(lambda: "host-drained|n2" in log() and "job-ended" in log(), 15, "the words")
    ended = next(line.split("|") for line in log().splitlines() if line.startswith("job-ended"))
    assert ended[2:5] == [str(job), "FAILED", "odd '$(reboot)' name"] and "exit status 3" in ended[5] and int(ended[6]) > 0
    drained = next(line.split("|") for line in log().splitlines() if line.startswith("host-drained"))
    assert drained[1] == "n2" and drained[5] == "new fan"
    ctl(hooked, "node", "uncordon", "n2")
    hooked.wait_for(lambda: "host-back|n2" in log(), 15, "the last word")


def test_master_may_start_nothing_but_hooks(hooked):
    start = ("busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartUnit", "ss")
    for unit in ("primus-hook-fence@x.service", "systemd-tmpfiles-clean.service", "primus-hook-fence@1-1.service.service"):
        assert hooked.run("n1", *start, unit, "fail", user="primus").returncode != 0


# ---- executors that do not die

@pytest.fixture
def freezer():
    """A process in a frozen group of cgroup v1 takes no signal, SIGKILL included, until it is thawed."""
    directory = f"/sys/fs/cgroup/freezer/primus-{os.getpid()}"
    if not os.path.isdir("/sys/fs/cgroup/freezer"):
        pytest.skip("this machine has no freezer of cgroup v1")
    os.mkdir(directory)

    def write(name, text):
        with open(f"{directory}/{name}", "w") as f:
            f.write(text)

    def freeze(pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # a child that has just ended; the next one is frozen with its parent
                write("cgroup.procs", str(pid))
        write("freezer.state", "FROZEN")

    def thaw():
        write("freezer.state", "THAWED")

    yield freeze, thaw
    thaw()
    with open(f"{directory}/cgroup.procs") as f:
        for pid in f.read().split():
            with contextlib.suppress(ProcessLookupError), open("/sys/fs/cgroup/freezer/cgroup.procs", "w") as root:
                root.write(pid)
    time.sleep(0.2)
    os.rmdir(directory)


def frozen_job(hooked, ledger, freezer, on_partition):
    job = hooked.submit(gang(ledger, 1, job={"onPartition": on_partition, "stopGrace": "1s"}, vcores=1.5))
    wait_runs(hooked, ledger, 1)
    executor = hooked.executor(job)
    payload = state.Cluster(hooked.name).node(executor["node"]).leader()["payload"]
    found = [root for top in payload for root, _, _ in os.walk(top) if os.path.basename(root) == executor["unit"]]
    pids = {pid for root in found for pid in open(f"{root}/cgroup.procs").read().split()}
    assert pids
    freezer[0](pids)
    return job, executor["node"]


def test_executor_that_does_not_die(hooked, ledger, freezer):
    """Its host takes nothing new and what it holds stays held; the job goes on elsewhere. When it is dead at last, all is as before."""
    job, where = frozen_job(hooked, ledger, freezer, "replace")
    free = node(hooked, where)["cpusFree"]
    hooked.primusctl("replace", str(job), where)
    wait_runs(hooked, ledger, 2)
    assert ledger.entries("runs")[-1].node != where and hooked.executor(job)["attempt"] == 2
    shown = node(hooked, where)
    assert f"worker/0 of job {job} does not die: pid " in shown["reason"] and "D state" in shown["reason"], shown["reason"]
    assert shown["state"] == "DRAINING" and shown["cpusFree"] == free
    assert [(e["job"], e["attempt"], e["state"]) for e in shown["executors"]] == [(job, 1, "STOPPING")]
    hooked.kill9("n1", MASTERD)
    hooked.wait_nodes("DRAINING", [where])
    assert node(hooked, where)["cpusFree"] == free
    let_go(ledger)
    assert hooked.wait_job(job) == 0
    assert node(hooked, where)["state"] == "DRAINING"
    freezer[1]()
    hooked.wait_nodes("READY", [where])
    assert node(hooked, where)["cpusFree"] == node(hooked, where)["cpus"] and not node(hooked, where)["executors"]


def test_executor_that_does_not_die_is_waited_for(hooked, ledger, freezer):
    """Where two attempts must not overlap, nobody goes on before it is dead."""
    job, where = frozen_job(hooked, ledger, freezer, "wait")
    hooked.primusctl("replace", str(job), where)
    hooked.wait_nodes("DRAINING", [where])
    assert "does not die" in node(hooked, where)["reason"]
    assert hooked.executor(job)["state"] == "STOPPING" and len(ledger.entries("runs")) == 1
    freezer[1]()
    wait_runs(hooked, ledger, 2)
    hooked.wait_nodes("READY", [where])
    let_go(ledger)
    assert hooked.wait_job(job) == 0


def test_job_ends_without_what_does_not_die(hooked, ledger, freezer):
    job, where = frozen_job(hooked, ledger, freezer, "wait")
    hooked.primusctl("kill", str(job))
    assert hooked.wait_job(job) == 3
    assert node(hooked, where)["executors"][0]["state"] == "STOPPING"
    freezer[1]()
    hooked.wait_nodes("READY", [where])
