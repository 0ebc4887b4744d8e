# SPDX-License-Identifier: Apache-2.0
"""Ranks that live and die together, what exit statuses mean, budgets, hosts that are blamed, and when a role is ready."""
import time

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD, Cluster, cluster_name, shared_directory

BACKOFF = {"backoff": {"initial": "0.1s", "max": "0.2s"}}
SPREAD = {"maxReplicasPerNode": 1}
# Until somebody lets them go; a stop is answered at once.
UNTIL_GO = "while [ ! -e $LEDGER.go ]; do sleep 0.05; done; say end"


def let_go(ledger):
    ledger.path.with_name(ledger.path.name + ".go").touch()


def order(*roles):
    return {"schedulePolicy": {"orderPolicy": {"rolePolicy": [{"roleName": role} for role in roles]}}}


def texts(cluster, job, kind):
    return [e["text"] for e in cluster.events(job, kind)]


# ---- restartScope

def together(ledger, command, num=3, job=None, **role):
    role.setdefault("failover", failover(5))
    return ledger.config(command, num=num, scheduleStrategy=SPREAD, job={"restartScope": "job", **BACKOFF, **(job or {})}, **role)


def test_ranks_restart_together(quick, ledger):
    """One fails; the others are stopped, and all begin again with the address of the new rank 0. It is one failure."""
    command = ("trap 'say term; exit 1' TERM; say env $MASTER_ADDR:$MASTER_PORT; "
               "if [ $PRIMUS_ATTEMPT = 1 ]; then if [ $PRIMUS_INDEX = 1 ]; then while [ ! -e $LEDGER.fail ]; do sleep 0.05; done; exit 3; fi; sleep 60 & wait; fi; say end")
    job = quick.submit(together(ledger, command, failover=failover(2)))
    quick.wait_for(lambda: len(ledger.entries("env", attempt=1)) == 3, what="three ranks")
    ledger.path.with_name(ledger.path.name + ".fail").touch()
    assert quick.wait_job(job) == 0
    assert {(e.index, e.attempt) for e in ledger.entries("end")} == {(0, 2), (1, 2), (2, 2)}
    assert {e.index for e in ledger.entries("term")} == {0, 2}
    assert len({e.text for e in ledger.entries("env", attempt=2)}) == 1, "all know the same rank 0"
    assert max(e.time for e in ledger.entries("term")) <= min(e.time for e in ledger.entries("start", attempt=2))
    assert len(quick.events(job, "executor-failed")) == 1 and len(quick.events(job, "scope-restarts")) == 1
    assert texts(quick, job, "running") == ["3 executors run", "3 executors of the job (restartScope: job) run again"]


# Each says how many it was told they are, and needs all of them: whoever misses one fails, as ranks in a collective do.
GANG = """say world $WORLD_SIZE
trap 'say told' USR1
trap 'say term; exit 0' TERM
while [ ! -e $LEDGER.end ]; do
    if [ $(ls $LEDGER.up.$WORLD_SIZE.* 2> /dev/null | wc -l) -gt $WORLD_SIZE ]; then say stranger; echo "RuntimeError: a stranger" >&2; exit 1; fi
    touch $LEDGER.up.$WORLD_SIZE.$PRIMUS_INDEX
    sleep 0.05 & wait $!
done
say end $WORLD_SIZE"""


@pytest.mark.parametrize("scope", ("job", "role"))
def test_scaling_restarts_a_scope_together(quick, ledger, scope):
    """Up and down: once, all of them, and nobody has failed: the only failure that there may be is not used up."""
    job = quick.submit(ledger.config(GANG, num=2, failover=failover(0), job={"restartScope": scope, **BACKOFF}))
    quick.wait_for(lambda: len(ledger.entries("world", attempt=1)) == 2, what="two ranks")
    for num in (3, 2):
        before = len(ledger.entries("world"))
        quick.primusctl("scale", str(job), f"worker={num}")
        quick.wait_for(lambda: len(ledger.entries("world")) == before + num, 20, f"{num} ranks")
        again = ledger.entries("world")[before:]
        assert {e.text for e in again} == {str(num)}
        assert sorted(e.index for e in again) == list(range(num))
        assert max(e.time for e in ledger.entries("term")) <= min(e.time for e in again), "all of the old ones have gone before the first new one comes"
    ledger.path.with_name(ledger.path.name + ".end").touch()
    assert quick.wait_job(job) == 0
    assert not quick.events(job, "executor-failed") and not ledger.entries("stranger")
    assert [e["text"].split()[0] for e in quick.events(job, "scope-regroups")] == ["3", "2"]
    assert [text.split()[0] for text in texts(quick, job, "running")] == ["2", "3", "2"]
    assert not quick.events(job, "scope-restarts")


@pytest.mark.parametrize("killed", (False, True))
def test_scaling_waits_for_the_jobs_signal(quick, ledger, killed):
    """The ranks are told, and go on as they are, all of them, until the time that the signal leaves them is over; also where masterd is killed meanwhile."""
    job = quick.submit(ledger.config(GANG, num=3, failover=failover(0), job={"restartScope": "job", "signal": "USR1@4s", **BACKOFF}))
    quick.wait_for(lambda: len(ledger.entries("world", attempt=1)) == 3, what="three ranks")
    quick.primusctl("scale", str(job), "worker=2")
    quick.wait_for(lambda: {e.index for e in ledger.entries("told")} == {0, 1, 2}, what="all are told, whoever goes, too")
    assert not ledger.entries("term")
    if killed:
        quick.kill9("n1", MASTERD)
    quick.wait_for(lambda: len(ledger.entries("world", attempt=2)) == 2, 20, "two ranks")
    assert {e.text for e in ledger.entries("world", attempt=2)} == {"2"}
    first, told = min(e.time for e in ledger.entries("term")), min(e.time for e in ledger.entries("told"))
    assert first - told >= 3.5, "that long they had"
    ledger.path.with_name(ledger.path.name + ".end").touch()
    assert quick.wait_job(job) == 0
    assert not quick.events(job, "executor-failed")


def test_an_error_that_was_got_over_is_not_the_jobs(quick, ledger):
    command = ("if [ $PRIMUS_ATTEMPT = 1 ]; then printf 'Traceback (most recent call last):\\n  File \"a.py\", line 1\\nKeyError: 5\\n' >&2; exit 1; fi; "
               "while [ ! -e $LEDGER.end ]; do sleep 0.05; done")
    job = quick.submit(together(ledger, command, num=1))
    quick.wait_for(lambda: quick.events(job, "first-error"), what="the error is found")
    quick.wait_for(lambda: quick.executor(job)["attempt"] == 2 and quick.executor(job)["state"] == "RUNNING", what="the second attempt")
    quick.wait_for(lambda: not quick.status(job)["firstError"], what="the job is healthy")
    ledger.path.with_name(ledger.path.name + ".end").touch()
    assert quick.wait_job(job) == 0


def test_a_rank_that_was_done_runs_again(quick, ledger):
    command = ("if [ $PRIMUS_ATTEMPT = 1 ]; then [ $PRIMUS_INDEX != 0 ] || { say done; exit 0; }; "
               "while [ ! -e $LEDGER.fail ]; do sleep 0.05; done; [ $PRIMUS_INDEX != 1 ] || exit 1; sleep 60; fi; say end")
    job = quick.submit(together(ledger, command))
    quick.wait_for(lambda: ledger.entries("done") and quick.events(job, "executor-succeeded"), what="rank 0")
    ledger.path.with_name(ledger.path.name + ".fail").touch()
    assert quick.wait_job(job) == 0
    assert {e.index for e in ledger.entries("end")} == {0, 1, 2}


def test_failures_of_a_scope_are_counted_together(quick, ledger):
    """Whoever of it fails: the third one is the last."""
    command = "trap 'exit 1' TERM; if [ $((PRIMUS_ATTEMPT % 3)) = $PRIMUS_INDEX ]; then sleep 0.3; exit 1; fi; sleep 60 & wait"
    job = quick.submit(together(ledger, command, failover=failover(3)))
    assert quick.wait_job(job) == 1
    assert len(quick.events(job, "executor-failed")) == 3 and len(quick.events(job, "scope-restarts")) == 2


def test_scope_of_a_role(quick, ledger):
    """The other role does not notice."""
    config = ledger.config("[ $PRIMUS_ATTEMPT -ge 2 ] || { [ $PRIMUS_INDEX = 0 ] || sleep 60; sleep 0.3; exit 1; }; say end", num=2,
                           failover=failover(3), restartScope="role", job=BACKOFF)
    config["role"].append({**ledger.role(UNTIL_GO), "roleName": "ps"})
    job = quick.submit(config)
    quick.wait_for(lambda: len(ledger.entries("end", role="worker")) == 2, what="the workers")
    let_go(ledger)
    assert quick.wait_job(job) == 0
    assert [e.attempt for e in ledger.entries("start", role="ps")] == [1]
    assert {(e.index, e.attempt) for e in ledger.entries("end", role="worker")} == {(0, 2), (1, 2)}


def test_drain_moves_the_whole_scope(quick, ledger):
    """One has to leave its host: the other goes with it, neither has failed, and meanwhile the job says so."""
    command = ("trap 'say term; rest 4000; exit 0' TERM; say env $MASTER_ADDR; if [ $PRIMUS_ATTEMPT = 1 ]; then sleep 60 & wait; fi; say end")
    job = quick.submit(together(ledger, command, num=2))
    quick.wait_for(lambda: len(ledger.entries("env")) == 2, what="two ranks")
    left = ledger.entries("env", index=0)[0].node
    try:
        quick.primusctl("node", "drain", left, "--reason", "test", user="root")
        quick.wait_for(lambda: "starts again: worker/0 was moved" in (quick.status(job)["reason"] or ""), what="the reason")
        assert quick.wait_job(job) == 0
    finally:
        quick.primusctl("node", "uncordon", left, user="root")
    assert {(e.index, e.attempt) for e in ledger.entries("end")} == {(0, 2), (1, 2)}
    assert {e.index for e in ledger.entries("term")} == {0, 1}
    assert left not in {e.node for e in ledger.entries("end")}
    assert not quick.events(job, "executor-failed") and len(quick.events(job, "scope-restarts")) == 1


def test_masterd_is_killed_while_a_scope_stops(quick, ledger):
    """The grace is longer than the back-off, and masterd is killed within it, twice."""
    command = ("trap 'say term; rest 4000; exit 0' TERM; if [ $PRIMUS_ATTEMPT = 1 ]; then [ $PRIMUS_INDEX != 1 ] || { sleep 0.5; exit 3; }; "
               "sleep 60 & wait; fi; say end")
    job = quick.submit(together(ledger, command, job={"stopGrace": "10s"}))
    quick.wait_for(lambda: len(ledger.entries("term")) == 2, what="the stops")
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 0
    assert sorted((e.index, e.attempt) for e in ledger.entries("start")) == [(i, a) for i in (0, 1, 2) for a in (1, 2)]
    assert {(e.index, e.attempt) for e in ledger.entries("end")} == {(0, 2), (1, 2), (2, 2)}
    assert min(e.time for e in ledger.entries("start", attempt=2)) - max(e.time for e in ledger.entries("term")) > 2


def test_host_is_lost_while_a_scope_stops(quick, ledger):
    command = ("trap 'say term; rest 3000; exit 0' TERM; if [ $PRIMUS_ATTEMPT = 1 ]; then [ $PRIMUS_NODE != n2 ] || "
               "{ while [ ! -e $LEDGER.fail ]; do sleep 0.05; done; exit 3; }; sleep 60 & wait; fi; say end")
    job = quick.submit(together(ledger, command, job={"stopGrace": "30s"}, num=3) | {"name": "lost"})
    quick.wait_for(lambda: len(ledger.entries("start")) == 3, what="three ranks")
    ledger.path.with_name(ledger.path.name + ".fail").touch()
    quick.wait_for(lambda: ledger.entries("term", node="n3"), what="the stop")
    quick.crash("n3")
    quick.wait_for(lambda: quick.node_states()["n3"] == "LOST", timeout=30, what="its loss")
    assert quick.status(job)["state"] in ("RUNNING", "STARTING"), "the gang needs three hosts and holds none"
    quick.boot("n3")
    quick.wait_nodes()
    assert quick.wait_job(job) == 0
    assert {e.index for e in ledger.entries("end")} == {0, 1, 2}
    assert len(quick.events(job, "executor-failed")) == 1


# ---- exit codes

@pytest.mark.parametrize("action, status, starts, state", [
    ("restart", 0, 3, "SUCCEEDED"), ("fail", 1, 1, "FAILED"), ("success", 0, 1, "SUCCEEDED"), ("ignore", 0, 1, "SUCCEEDED")])
def test_exit_codes(quick, ledger, action, status, starts, state):
    """maxFailureTimes is 1: a failure that counts would be the end."""
    command = "[ $PRIMUS_INDEX = 1 ] && [ $PRIMUS_ATTEMPT -lt 3 ] && exit 42; say end"
    job = quick.submit(ledger.config(command, num=2, job={**BACKOFF, "exitCodes": [{"codes": "1,40-45", "action": action}]}))
    assert quick.wait_job(job) == status
    assert quick.status(job)["state"] == state
    assert len(ledger.entries("start", index=1)) == starts
    assert len(ledger.entries("end", index=1)) == (1 if action == "restart" else 0)


def test_signal_by_name(quick, ledger):
    command = "[ $PRIMUS_ATTEMPT -ge 2 ] || kill -USR2 $$; say end"
    job = quick.submit(ledger.config(command, exitCodes=[{"codes": "SIGUSR2", "action": "restart"}]))
    assert quick.wait_job(job) == 0
    assert "signal USR2" in texts(quick, job, "executor-failed")[0]


def test_75_asks_for_another_attempt_of_the_job(quick, ledger):
    """Nothing counts, and data and everything else is as after any other attempt."""
    command = "[ $PRIMUS_INDEX = 0 ] || { trap 'exit 0' TERM; [ $PRIMUS_ATTEMPT -ge 2 ] || { sleep 60 & wait; }; }; [ $PRIMUS_ATTEMPT -ge 2 ] || exit 75; say end"
    job = quick.submit(ledger.config(command, num=2))
    assert quick.wait_job(job) == 0
    assert {(e.index, e.attempt) for e in ledger.entries("end")} == {(0, 2), (1, 2)}
    assert not quick.events(job, "executor-failed")


# ---- budgets and percentages

def test_budget_of_a_role(quick, ledger):
    """Each executor may fail five times, all together four."""
    job = quick.submit(ledger.config("say fails; exit 1", num=3, job={**BACKOFF, "maxGlobalRoleFailureTimes": 4}, failover=failover(5)))
    assert quick.wait_job(job) == 1
    assert 4 <= len(ledger.entries("fails")) <= 6, "some run while the last is counted"
    assert "maxGlobalRoleFailureTimes" in quick.status(job)["reason"]


def test_budget_survives_masterd(quick, ledger):
    job = quick.submit(ledger.config("say fails; sleep 0.3; exit 1", num=2, job={**BACKOFF, "maxGlobalRoleFailureTimes": 8}, failover=failover(50)))
    for n in (3, 6):
        quick.wait_for(lambda n=n: len(ledger.entries("fails")) >= n, what=f"{n} failures")
        quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 1
    assert len(quick.events(job, "executor-failed")) == 8


def test_fail_percent(quick, ledger):
    """Two of four have failed for good: nobody waits for the others."""
    command = ("[ $PRIMUS_INDEX -lt 2 ] || { trap 'say term; exit 0' TERM; say waits; sleep 60 & wait; }; "
               "until [ $(grep -c ^waits $LEDGER) = 2 ]; do sleep 0.05; done; exit 1")
    job = quick.submit(ledger.config(command, num=4, successPercent=25, failPercent=50, failover=failover(1, "NONE")))
    assert quick.wait_job(job) == 1
    assert "failPercent" in quick.status(job)["reason"] and len(ledger.entries("term")) == 2


def test_starts_are_spread_in_time(quick, ledger):
    config = ledger.config("say end", num=4)
    config["role"][0]["scheduleStrategy"] = {"executorDelayStartSeconds": 0.5}
    job = quick.submit(config)
    assert quick.wait_job(job) == 0
    # Against the moment of the placement: what a busy host takes to start one makes its gap to the next shorter.
    placed = next(event["time"] for event in quick.events(job) if event["kind"] == "placed") / 1e6
    after = [e - placed for e in sorted(e.time for e in ledger.entries("start"))]
    print("started, s after the placement:", [f"{one:.3f}" for one in after])
    assert len(after) == 4 and all(0.5 * n - 0.01 <= one < 0.5 * n + 1.5 for n, one in enumerate(after))


# ---- hosts

@pytest.fixture(scope="module")
def blaming(build, tmp_path_factory):
    shared = shared_directory(tmp_path_factory, "blame")
    with Cluster(cluster_name(), 3, build=build, binds=[f"{shared}:/shared"],
                 conf=["masterd.conf:Master.QuarantineScore=5", "masterd.conf:Master.QuarantineSec=4"]) as cluster:
        cluster.shared = shared
        yield cluster


def node_row(cluster, name):
    return next(row for row in cluster.primusctl_json("nodes", user="root") if row["name"] == name)


def blames(cluster, ledger, user, rule):
    """A job of that user, on all hosts, which holds n3 responsible."""
    command = "[ $PRIMUS_NODE != n3 ] || exit 9; sleep 60"
    job = cluster.submit(ledger.config(command, num=3, scheduleStrategy=SPREAD, job={**rule, "stopGrace": "1s"}) | {"name": f"of-{user}"}, user=user)
    cluster.wait_for(lambda: cluster.events(job, "host-excluded"), what="the blame")
    cluster.primusctl("kill", str(job), user=user)
    cluster.wait_for(lambda: cluster.status(job)["state"] == "KILLED", what="its end")
    return job


def test_one_user_puts_no_host_out(blaming):
    """What eve's jobs say keeps n3 from eve's jobs, over a restart too, and from nobody else's; until one of them does well there."""
    from ledger import Ledger
    ledger = Ledger(blaming.shared)
    rule = {"exitCodes": [{"codes": "9", "action": "blame"}], **BACKOFF}

    def settings(text):
        blaming.exec("n1", "sh", "-c", f"{text} /etc/primus/masterd.conf.d/95-longer.conf && systemctl restart {MASTERD}")
        blaming.wait_nodes()

    def avoided(user):
        return [row["uid"] for row in blaming.primusctl_json("node", "show", "n3", user=user)["avoidedFor"]]

    settings("printf '[Master]\\nQuarantineSec=20s\\n' >")
    try:
        jobs = [blames(blaming, ledger, "eve", rule) for _ in range(2)]
        for _ in range(2):  # that can go nowhere else
            alone = {"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "exit 9", "failover": failover(2)}
            jobs.append(blaming.submit({"name": "alone", "nodes": ["n3"], "role": [alone], **rule}, user="eve"))
            blaming.wait_for(lambda: len(blaming.events(jobs[-1], "executor-failed")) >= 2, what="its failures")
            blaming.run("n1", "primusctl", "kill", str(jobs[-1]), user="eve")
        row = node_row(blaming, "n3")
        assert row["state"] == "READY" and "uarantin" not in row["reason"], row
        said = [text for job in jobs for text in texts(blaming, job, "host-avoided")]
        assert len(said) == 1 and said[0].startswith("jobs of uid 1001 are kept off n3 for 20s"), said
        blaming.kill9_now("n1", MASTERD)
        blaming.wait_nodes()
        assert avoided("eve") == avoided("root") == [1001] and avoided("ml") == []
        assert "Kept from:  jobs of eve" in blaming.primusctl("node", "show", "n3", user="eve")
        role = {"roleName": "worker", "vcores": 0.1, "memoryMb": 32, "command": "true"}
        for user, config, where in (("eve", {"num": 4, "scheduleStrategy": {"maxReplicasPerNode": 2}}, {"n1", "n2"}),
                                    ("ml", {"num": 3, "scheduleStrategy": SPREAD}, {"n1", "n2", "n3"})):
            job = blaming.submit({"name": "where", "role": [role | config]}, user=user)
            assert blaming.wait_job(job, user=user) == 0
            assert {e["node"] for e in blaming.status(job)["executors"]} == where
        # One that needs all hosts waits, is told why, and goes on when the time is over; then all is forgotten.
        wide = blaming.submit({"name": "wide", "role": [role | {"num": 3, "scheduleStrategy": SPREAD}]}, user="eve")
        blaming.wait_for(lambda: "kept from your jobs" in blaming.primusctl("why", str(wide), user="eve"), 10, "the reason")
        assert blaming.wait_job(wide, user="eve") == 0
        assert avoided("root") == []
    finally:
        settings("rm -f")


def test_blame_quarantine_probe_release(blaming):
    """A host that jobs of two users blame takes nothing new, what runs there runs on, it survives masterd, and one executor lets it in again."""
    from ledger import Ledger
    ledger = Ledger(blaming.shared)
    resident = blaming.submit(ledger.config(UNTIL_GO, name="resident", job={"nodes": ["n3"]}))
    blaming.wait_state(resident, "RUNNING")
    rule = {"exitCodes": [{"codes": "9", "action": "blame"}], **BACKOFF}
    for user in ("ml", "eve"):
        blames(blaming, ledger, user, rule)
    row = node_row(blaming, "n3")
    assert row["state"] == "QUARANTINED" and "exitCodes" in row["reason"], row
    blaming.kill9_now("n1", MASTERD)
    blaming.wait_for(lambda: node_row(blaming, "n3")["state"] == "QUARANTINED", what="the same after a restart")
    elsewhere = blaming.submit(ledger.config("say elsewhere", num=4, name="elsewhere"))
    assert blaming.wait_job(elsewhere) == 0
    assert not ledger.entries("elsewhere", node="n3")
    assert blaming.status(resident)["state"] == "RUNNING"
    # Probation: of many that want the host, one gets it. One user's failures change nothing, a second user's sends the host back.
    blaming.wait_for(lambda: node_row(blaming, "n3")["state"] == "READY", timeout=20, what="the end of the quarantine")
    bad = blaming.submit(ledger.config("say probe; sleep 0.3; exit 9", name="bad", job={"nodes": ["n3"], **rule}, num=3, minNum=1)
                         | {"scheduler": {"schedulePolicy": {"dynamicPolicy": {}}}})
    blaming.wait_for(lambda: len(ledger.entries("probe")) >= 3, what="a probe, again and again")
    assert node_row(blaming, "n3")["state"] == "READY"
    blaming.kill(bad)
    times = sorted(e.time for e in ledger.entries("probe"))
    assert all(b - a > 0.25 for a, b in zip(times, times[1:])), "one at a time"
    other = blaming.submit({"name": "other", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "exit 9"}], "nodes": ["n3"], **rule}, user="eve")
    blaming.wait_for(lambda: node_row(blaming, "n3")["state"] == "QUARANTINED", what="the second quarantine")
    blaming.primusctl("kill", str(other), user="eve")
    assert "for 8s" in node_row(blaming, "n3")["reason"]
    blaming.wait_for(lambda: node_row(blaming, "n3")["state"] == "READY", timeout=30, what="the end of the second quarantine")
    good = blaming.submit(ledger.config("say good", name="good", job={"nodes": ["n3"]}))
    assert blaming.wait_job(good) == 0
    many = blaming.submit(ledger.config("say many", name="many", num=3, job={"nodes": ["n3"]}))
    assert blaming.wait_job(many) == 0, "released: as many as it takes"
    let_go(ledger)
    assert blaming.wait_job(resident) == 0


def test_blacklist_of_a_job(quick, ledger):
    """More than one executor has failed on n3: the job leaves it alone, until it would have no host left."""
    command = "[ $PRIMUS_NODE != n3 ] || { say fails; exit 1; }; say end"
    config = ledger.config(command, num=4, failover=failover(9), job={**BACKOFF, "nodes": ["n2", "n3"], "blacklistConfig": {
        "enabled": True, "maxFailedContainerPerNode": 1}})
    config["role"][0]["scheduleStrategy"] = {"maxReplicasPerNode": 4}
    filler = quick.submit(ledger.config(UNTIL_GO, name="filler", vcores=2, job={"nodes": ["n2"]}))
    quick.wait_state(filler, "RUNNING")
    job = quick.submit(config)
    quick.wait_for(lambda: quick.events(job, "host-excluded"), what="the exclusion")
    let_go(ledger)
    assert quick.wait_job(job) == 0
    assert {e.index for e in ledger.entries("end", node="n2")} == {0, 1, 2, 3}
    assert len({e.index for e in ledger.entries("fails")}) >= 2
    assert quick.wait_job(filler) == 0


def test_a_host_is_allowed_again(quick, ledger):
    """What replace and blacklistConfig keep a job off is shown, and undone by its owner alone, over kill -9 of masterd too."""
    command = "[ $PRIMUS_NODE != n3 ] || { say fails; exit 1; }; say runs; while [ ! -e $LEDGER.go ]; do sleep 0.05; done"
    config = ledger.config(command, num=2, vcores=0.1, failover=failover(900), job={**BACKOFF, "nodes": ["n2", "n3"], "blacklistConfig": {
        "enabled": True, "maxFailedContainerPerNode": 1}})
    config["role"][0]["scheduleStrategy"] = {"maxReplicasPerNode": 2}
    filler = quick.submit(ledger.config(UNTIL_GO, name="filler", vcores=2, job={"nodes": ["n2"]}))  # leaves n3 alone
    quick.wait_state(filler, "RUNNING")
    job = quick.submit(config)
    quick.wait_for(lambda: quick.status(job)["avoids"], what="the exclusion")
    avoids = quick.status(job)["avoids"]
    assert [x["node"] for x in avoids] == ["n3"] and avoids[0]["until"] / 1e6 > time.time() + 600
    assert "kept off n3 until " in quick.primusctl("status", str(job))
    quick.kill(filler)
    quick.wait_for(lambda: len({e.index for e in ledger.entries("runs", node="n2")}) == 2, what="both on n2")
    refused = quick.run("n1", "primusctl", "replace", "--undo", str(job), "n3", user="eve")
    assert refused.returncode != 0 and quick.status(job)["avoids"]
    quick.primusctl("replace", "--undo", str(job), "n3")
    failures = len(ledger.entries("fails"))

    def restart():
        quick.kill9_now("n1", MASTERD)
        quick.wait_nodes()

    for again in (restart, lambda: None):
        assert quick.status(job)["avoids"] == [], "what failed before is forgotten, also by the next master"
        again()
    undone = quick.run("n1", "primusctl", "replace", "--undo", str(job), "n3", user="ml")
    assert undone.returncode == 1 and "is not kept off n3" in undone.stderr
    assert len(ledger.entries("fails")) == failures
    # By hand; n2 is left alone, so they go where they fail, and come to be kept off it as well.
    assert "leave n2" in quick.primusctl("replace", str(job), "n2")
    quick.wait_for(lambda: len(ledger.entries("fails")) > failures, what="a failure on n3")
    restart()
    assert {x["node"]: x["until"] for x in quick.status(job)["avoids"]}["n2"] is None
    assert "kept off n2\n" in quick.primusctl("status", str(job))
    quick.primusctl("replace", "--undo", str(job), "n2")
    quick.wait_for(lambda: quick.status(job)["state"] == "RUNNING" and {e["node"] for e in quick.status(job)["executors"]} == {"n2"}, 60, "both on n2 again")
    assert [e["text"] for e in quick.events(job, "host-allowed")] == ["n3 may be used again (uid 1000)", "n2 may be used again (uid 1000)"]
    let_go(ledger)
    assert quick.wait_job(job) == 0


# ---- readiness

def ordered(ledger, first, ready, timeout="60s", **job):
    config = ledger.config("say second", job=job)
    config["role"].insert(0, {**ledger.role(first), "roleName": "ps", "ready": {**ready, "timeout": timeout}, "successPercent": 0})
    config["scheduler"] = order("ps", "worker")
    return config


LISTEN = ("exec perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in((split /,/, $ENV{PRIMUS_PORTS})[0], INADDR_ANY)) or die; "
          "listen(S, 5); sleep 60'")


@pytest.mark.parametrize("kind, ready, command", [
    ("tcp", {"tcp": True}, f"sleep 1; say ready; {LISTEN}"),
    ("notify", {"notify": True}, "sleep 1; say ready; systemd-notify --ready; sleep 60"),
    ("file", {"file": "up-%r-%i-%a"}, "sleep 1; say ready; touch up-$PRIMUS_ROLE-$PRIMUS_INDEX-$PRIMUS_ATTEMPT; sleep 60"),
])
def test_order_waits_for_readiness(quick, ledger, kind, ready, command):
    job = quick.submit(ordered(ledger, command, ready))
    assert quick.wait_job(job) == 0
    said, second = ledger.entries("ready")[0], ledger.entries("second")[0]
    print(f"measured: {kind}: the next role starts {second.time - said.time:.3f} s after readiness")
    assert 0 <= second.time - said.time < 3


@pytest.mark.parametrize("kind, ready, sentence", [
    ("tcp", {"tcp": True}, "nobody listens on port"), ("notify", {"notify": True}, "no READY=1"),
    ("file", {"file": "never"}, "never has not been written")])
def test_not_ready_in_time_is_a_failure(quick, ledger, kind, ready, sentence):
    """The attempt fails, with a sentence; the second one is ready, so the job goes on."""
    make = {"tcp": LISTEN, "notify": "systemd-notify --ready", "file": "touch never"}[kind]
    command = f"[ $PRIMUS_ATTEMPT = 1 ] || {{ {make}; }}; sleep 60"
    config = ordered(ledger, command, ready, timeout="1s", **BACKOFF)
    config["role"][0]["failover"] = failover(2)
    job = quick.submit(config)
    assert quick.wait_job(job) == 0
    failed = [e["text"] for e in quick.events(job, "executor-failed")]
    assert len(failed) == 1 and "not ready within 1s" in failed[0] and sentence in failed[0], failed


@pytest.mark.parametrize("kind, ready, make", [("tcp", {"tcp": True}, LISTEN), ("notify", {"notify": True}, "systemd-notify --ready; sleep 60"),
                                               ("file", {"file": "up"}, "touch up; sleep 60")])
def test_readiness_survives_the_daemons(quick, ledger, kind, ready, make):
    """Both are killed while the role is waited for, and the agent once more while it becomes ready."""
    job = quick.submit(ordered(ledger, f"say waits; while [ ! -e $LEDGER.up ]; do sleep 0.05; done; say up; {make}", ready))
    quick.wait_for(lambda: ledger.entries("waits"), what="the first role")
    node = next(e["node"] for e in quick.status(job)["executors"] if e["node"])
    quick.kill9_now("n1", MASTERD)
    quick.kill9_now(node, AGENTD)
    quick.wait_nodes()
    quick.exec(node, "systemctl", "stop", AGENTD)
    ledger.path.with_name(ledger.path.name + ".up").touch()
    quick.wait_for(lambda: ledger.entries("up"), what="its readiness")
    quick.exec(node, "systemctl", "start", AGENTD)
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("start", role="ps")) == 1
