# SPDX-License-Identifier: Apache-2.0
"""Gangs, and what decides about a job: failover, order, dynamic, success per cent, time limits, stops by hand."""
import json

import pytest
from ledger import failover
from sandbox import AGENTD, MASTERD


def free_cpus(cluster):
    return {row["name"]: row["cpusFree"] for row in cluster.primusctl_json("nodes", user="root")}


def dynamic(config):
    return {**config, "scheduler": {"schedulePolicy": {"dynamicPolicy": {}}}}


def one_cpu(ledger, command, num, **keys):
    return ledger.config(command, num=num, vcores=1, **keys)


@pytest.fixture
def cpus(quick):
    """Of the whole cluster."""
    quick.wait_for(lambda: not any(row["executors"] for row in quick.primusctl_json("nodes", user="root")), what="an empty cluster")
    return int(sum(free_cpus(quick).values()))


# ---- gangs

def test_gang_that_does_not_fit_holds_nothing(quick, ledger, cpus):
    before = free_cpus(quick)
    large = quick.submit(one_cpu(ledger, "say end", cpus + 1, name="large", job={"waitForHosts": True}))
    quick.wait_for(lambda: quick.status(large)["reason"], what="a reason why it waits")
    assert quick.status(large)["state"] == "QUEUED"
    assert free_cpus(quick) == before
    whole = quick.submit(one_cpu(ledger, "say whole", cpus, name="whole"))
    assert quick.wait_job(whole) == 0, "what needs every CPU runs beside it"
    assert len(ledger.entries("whole")) == cpus and not ledger.entries("end")
    assert quick.status(large)["state"] == "QUEUED" and "role worker" in quick.status(large)["reason"]
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    assert quick.status(large)["state"] == "QUEUED" and free_cpus(quick) == before
    quick.primusctl("kill", str(large))
    assert quick.wait_job(large) == 3


def test_two_gangs_do_not_deadlock(quick, ledger, cpus):
    """Each fits alone, both together do not; submitted at once, again and again."""
    script = "for i in 1 2 3 4 5 6; do primusctl submit $1 --name a$i --json & primusctl submit $1 --name b$i --json & done; wait"
    num = cpus * 2 // 3
    text = one_cpu(ledger, "sleep 0.1; say end", num)
    path = f"{ledger.inside}.json"
    with open(f"{ledger.path}.json", "w", encoding="utf-8") as f:
        json.dump(text, f)
    quick.exec("n1", "sh", "-c", script, "sh", path, user="ml")
    jobs = [row["job"] for row in quick.primusctl_json("list", "--all", user="ml") if row["name"][1:] in "123456"]
    assert len(jobs) == 12
    assert [quick.wait_job(job) for job in jobs] == [0] * 12
    assert len(ledger.entries("end")) == 12 * num
    running = peak = 0
    for e in ledger.entries():
        running += {"start": 1, "end": -1}[e.what]
        peak = max(peak, running)
    assert peak <= cpus


def test_gang_starts_together_after_room_was_made(quick, ledger, cpus):
    first = quick.submit(one_cpu(ledger, "while [ ! -e $LEDGER.go ]; do sleep 0.05; done", 1, name="first"))
    gang = quick.submit(one_cpu(ledger, "say gang", cpus, name="gang"))
    quick.wait_for(lambda: quick.status(gang)["reason"], what="a reason why it waits")
    assert not ledger.entries("gang")
    open(f"{ledger.path}.go", "w").close()
    assert quick.wait_job(first) == quick.wait_job(gang) == 0
    assert len(ledger.entries("gang")) == cpus


# ---- failover

@pytest.mark.parametrize("policy, status, job_attempts", [("FAIL_APP", 1, 1), ("FAIL_ATTEMPT", 1, 2), ("NONE", 1, 2)])
def test_failures_are_counted(quick, ledger, policy, status, job_attempts):
    """maxFailureTimes failures of one executor, then the policy; the neighbour tells how the job took it. It is there before the
    first failure, and has time until it is told to stop."""
    command = ("[ $PRIMUS_INDEX = 1 ] || { trap 'say stopped; exit 1' TERM; say ready; sleep %d & wait; say end; exit 0; }; "
               "until (( $(grep -c ^ready $LEDGER) * 3 > $(grep -c ^fails $LEDGER) )); do sleep 0.05; done; say fails; exit 3" % (1 if policy == "NONE" else 60))
    job = quick.submit(ledger.config(command, num=2, failover=failover(3, policy), job={
        "maxAppAttempts": 2, "backoff": {"initial": "0.01s"}}))
    assert quick.wait_job(job) == status
    seen = quick.status(job)
    assert seen["attempt"] == job_attempts
    assert len(ledger.entries("fails")) == 3 * job_attempts
    if policy == "NONE":  # the others go on; successPercent decides
        assert ledger.entries("end", index=0) and not ledger.entries("stopped")
        assert "1 of 2" in seen["reason"]
    else:
        assert ledger.entries("stopped", index=0) and not ledger.entries("end")
        assert "worker/1" in seen["reason"] and "exit status 3" in seen["reason"]
    assert quick.executor(job, index=1)["exitStatus"] == 3


def test_second_attempt_may_succeed(quick, ledger):
    job = quick.submit(ledger.config("[ $PRIMUS_ATTEMPT -ge 2 ] || { say fails; exit 1; }; say end", num=2, job={"maxAppAttempts": 2},
                                     failover=failover(1, "FAIL_ATTEMPT")))
    assert quick.wait_job(job) == 0
    assert quick.status(job)["attempt"] == 2
    assert {(e.index, e.attempt) for e in ledger.entries("end")} == {(0, 2), (1, 2)}


def test_attempts_are_counted_across_a_kill_of_masterd(quick, ledger):
    command = "say fails; sleep 0.2; exit 1"
    job = quick.submit(ledger.config(command, failover=failover(5), job={"backoff": {"initial": "0.1s", "max": "0.1s"}}))
    for n in (2, 4):
        quick.wait_for(lambda n=n: len(ledger.entries("fails")) >= n, what=f"{n} failures")
        quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 1
    assert len(ledger.entries("fails")) == 5


def test_restart_never(quick, ledger):
    job = quick.submit(ledger.config("say fails; exit 1", failover=failover(5, restart="NEVER")))
    assert quick.wait_job(job) == 1
    assert len(ledger.entries("fails")) == 1


def test_restart_always(quick, ledger):
    """Also after a success; the job lasts as long as its other role."""
    config = ledger.config("say again; exit 0", failover=failover(3, restart="ALWAYS"), successPercent=0,
                           job={"backoff": {"initial": "0.05s", "max": "0.05s"}})
    config["role"].append({**ledger.role("while [ ! -e $LEDGER.go ]; do sleep 0.05; done; say end"), "roleName": "chief"})
    job = quick.submit(config)
    quick.wait_for(lambda: len(ledger.entries("again")) >= 4, what="four runs")
    open(f"{ledger.path}.go", "w").close()
    assert quick.wait_job(job) == 0
    assert ledger.entries("end", role="chief")


def test_exit_137_is_a_failure(quick, ledger):
    job = quick.submit(ledger.config("exit 137"))
    assert quick.wait_job(job) == 1


# ---- success per cent

def test_success_percent(quick, ledger):
    job = quick.submit(ledger.config("say end; [ $PRIMUS_INDEX -lt 2 ]", num=3, successPercent=60,
                                     failover=failover(1, "NONE")))
    assert quick.wait_job(job) == 0


def test_role_that_nobody_waits_for(quick, ledger):
    """successPercent 0: stopped when the others are done, and its failure does not matter."""
    config = ledger.config("sleep 0.5; say end")
    config["role"] += [{**ledger.role("trap 'say term; exit 0' TERM; sleep 60 & wait"), "roleName": "ps", "successPercent": 0},
                       {**ledger.role("say fails; exit 1", failover=failover(1, "NONE")), "roleName": "evaluator", "successPercent": 0}]
    job = quick.submit(config)
    assert quick.wait_job(job) == 0
    assert ledger.entries("term", role="ps") and ledger.entries("fails", role="evaluator")
    roles = {role["name"]: role for role in quick.status(job)["roles"]}
    assert roles["ps"]["succeeded"] == roles["ps"]["failed"] == 0 and roles["ps"]["killed"] == 1


# ---- order and dynamic

def test_order(quick, ledger):
    """The next role starts when all of the one before runs."""
    config = ledger.config("say worker; sleep 0.2", num=2)
    config["role"].insert(0, {**ledger.role("sleep 1.5; say end", num=2), "roleName": "ps"})
    config["scheduler"] = {"schedulePolicy": {"orderPolicy": {"rolePolicy": [{"roleName": "ps"}, {"roleName": "worker"}]}}}
    job = quick.submit(config)
    assert quick.wait_job(job) == 0
    order = [e.role for e in ledger.entries("start")]
    assert order == ["ps", "ps", "worker", "worker"]
    assert ledger.entries("worker")[0].time < ledger.entries("end")[0].time, "running is enough, it need not have ended"


def test_order_survives_a_kill_of_masterd(quick, ledger):
    config = ledger.config("say worker", num=2)
    config["role"].insert(0, {**ledger.role("while [ ! -e $LEDGER.go ]; do sleep 0.05; done", num=1, vcores=1), "roleName": "ps"})
    config["scheduler"] = {"schedulePolicy": {"orderPolicy": {"rolePolicy": [{"roleName": "ps"}, {"roleName": "worker"}]}}}
    job = quick.submit(config)
    quick.wait_for(lambda: ledger.entries("start"), what="the first role")
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: len(ledger.entries("worker")) == 2, what="the second role")
    open(f"{ledger.path}.go", "w").close()
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("start")) == 3


def test_dynamic_starts_with_the_least(quick, ledger, cpus):
    """minNum is enough to begin; the rest follows when there is room, and not before."""
    filler = quick.submit(one_cpu(ledger, "while [ ! -e $LEDGER.go ]; do sleep 0.05; done", cpus - 1, name="filler"))
    quick.wait_state(filler, "RUNNING")
    job = quick.submit(dynamic(one_cpu(ledger, "say dynamic; while [ ! -e $LEDGER.end ]; do sleep 0.05; done; say end", 3, minNum=1)))
    quick.wait_for(lambda: ledger.entries("dynamic"), what="the first of it")
    assert len(ledger.entries("dynamic")) == 1
    open(f"{ledger.path}.go", "w").close()
    quick.wait_for(lambda: len(ledger.entries("dynamic")) == 3, what="all of it")
    open(f"{ledger.path}.end", "w").close()
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("end")) == 3


def test_dynamic_below_the_least_holds_nothing(quick, ledger, cpus):
    filler = quick.submit(one_cpu(ledger, "while [ ! -e $LEDGER.go ]; do sleep 0.05; done", cpus - 1, name="filler"))
    quick.wait_state(filler, "RUNNING")
    before = free_cpus(quick)
    job = quick.submit(dynamic(one_cpu(ledger, "say dynamic", 3, minNum=2)))
    quick.wait_for(lambda: quick.status(job)["reason"], what="a reason why it waits")
    assert quick.status(job)["state"] == "QUEUED" and free_cpus(quick) == before
    open(f"{ledger.path}.go", "w").close()
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("dynamic")) == 3


# ---- limits and stops

def test_time_limit_of_a_job(quick, ledger):
    job = quick.submit(ledger.config("trap 'say term; exit 0' TERM; sleep 60 & wait", job={"timeLimit": "1s"}))
    assert quick.wait_job(job) == 1
    assert "time limit" in quick.status(job)["reason"]
    assert 0.5 < ledger.entries("term")[0].time - ledger.entries("start")[0].time < 2  # the trainer's own clock, which begins when its shell does


def test_time_limit_of_an_executor(quick, ledger):
    job = quick.submit(ledger.config("sleep 60", timeLimit="1s", failover=failover(2), job={"backoff": {"initial": "0s"}}))
    assert quick.wait_job(job) == 1
    assert len(ledger.entries("start")) == 2, "it counts as a failure"
    assert "time limit" in quick.status(job)["reason"]


def test_time_limit_goes_on_over_a_kill_of_masterd(quick, ledger):
    job = quick.submit(ledger.config("trap 'say term; exit 0' TERM; sleep 60 & wait", job={"timeLimit": "2s"}))
    quick.wait_for(lambda: ledger.entries("start"), what="its start")
    quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 1
    assert ledger.entries("term")[0].time - ledger.entries("start")[0].time < 4


@pytest.mark.parametrize("command", ["trap 'say term; exit 0' TERM; say ready; sleep 60 & wait",
                                     "trap 'say term; exit 9' TERM; say ready; sleep 60 & wait", "say ready; exec sleep 60"])
def test_stop_by_an_administrator(quick, ledger, command):
    """systemctl stop counts neither as failure nor as success: it runs again, whatever the trainer returned."""
    job = quick.submit(ledger.config(f"[ $PRIMUS_ATTEMPT -lt 3 ] || {{ say end; exit 0; }}; {command}"))  # one failure would end the job
    for attempt in (1, 2):
        quick.wait_for(lambda attempt=attempt: ledger.entries("ready", attempt=attempt), what=f"attempt {attempt}")
        e = quick.executor(job)
        quick.exec(e["node"], "systemctl", "stop", e["unit"])
    assert quick.wait_job(job) == 0
    assert ledger.entries("end", attempt=3)
    assert not quick.events(job, "executor-failed") and len(quick.events(job, "executor-succeeded")) == 1


def test_stop_by_an_administrator_while_agentd_is_away(quick, ledger):
    job = quick.submit(ledger.config("[ $PRIMUS_ATTEMPT -lt 2 ] || { say end; exit 0; }; say ready; exec sleep 60"))
    quick.wait_for(lambda: ledger.entries("ready"), what="its start")
    e = quick.executor(job)
    quick.exec(e["node"], "systemctl", "stop", AGENTD)
    quick.exec(e["node"], "systemctl", "stop", e["unit"])
    quick.exec(e["node"], "systemctl", "start", AGENTD)
    assert quick.wait_job(job) == 0
    assert ledger.entries("end", attempt=2) and not quick.events(job, "executor-failed")


def test_kill_gives_grace(quick, ledger):
    job = quick.submit(ledger.config("trap 'say term; rest 500; say saved; exit 0' TERM; say ready; sleep 60 & wait"))
    stubborn = quick.submit(ledger.config("trap 'say ignored' TERM; say stubborn; while :; do sleep 60 & wait; done", job={"stopGrace": "1s"}))
    quick.wait_for(lambda: ledger.entries("ready") and ledger.entries("stubborn"), what="their start")
    for one in (job, stubborn):
        quick.primusctl("kill", str(one))
        assert quick.wait_job(one) == 3
    assert ledger.entries("saved") and ledger.entries("ignored")


def test_succeed(quick, ledger):
    """A person's word is the verdict: with the executors' grace, over a kill of masterd, and what comes after it begins."""
    def refused(job, user="ml"):
        done = quick.run("n1", "primusctl", "succeed", str(job), user=user)
        assert done.returncode == 1, done
        return done.stderr

    job = quick.submit(ledger.config("trap 'say term; rest 2000; say saved; exit 7' TERM; say ready; sleep 60 & wait", job={"stopGrace": "30s"}))
    behind = quick.submit(ledger.config("say behind", job={"after": [f"{job}:ok"]}))
    later = quick.submit(ledger.config("true", job={"begin": "2099-01-01T00:00:00Z"}))
    quick.wait_for(lambda: ledger.entries("ready"), what="its start")
    refused(job, user="eve")
    assert quick.status(job)["state"] == "RUNNING"
    quick.primusctl("succeed", "--reason", "good enough", str(job))
    quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 0
    assert ledger.entries("saved")
    assert "called a success by uid 1000: good enough" in quick.status(job)["reason"]
    assert quick.wait_job(behind) == 0 and ledger.entries("behind")
    assert "has ended already" in refused(job)
    assert "does not run" in refused(later)
    quick.kill(later)
    array = quick.submit(ledger.config("say ready; sleep 60", job={"array": "0-1"}))
    quick.wait_for(lambda: quick.status(array)["array"]["running"] == 2, what="two elements")
    assert f"{array}[1]" in refused(array)
    quick.primusctl("succeed", f"{array}[0]", f"{array}[1]")
    assert quick.wait_job(array) == 0


def test_kill_with_its_own_grace(quick, ledger):
    """Longer than the job's: kept over a kill of masterd. Shorter, also for what is being stopped already. Never longer than a week."""
    job = quick.submit(ledger.config("trap 'say term; rest 4000; say saved; exit' TERM; say ready; sleep 60 & wait", job={"stopGrace": "1s"}))
    stubborn = quick.submit(ledger.config("trap 'echo > /dev/null' TERM; say stubborn; while :; do sleep 1; done", job={"stopGrace": "1h"}))
    quick.wait_for(lambda: ledger.entries("ready") and ledger.entries("stubborn"), what="their start")
    refused = quick.run("n1", "primusctl", "kill", "--grace=8d", str(job), user="ml")
    assert refused.returncode == 1 and "7 days" in refused.stderr
    quick.primusctl("kill", "--grace=50s", "--reason", "one more checkpoint", str(job))
    quick.kill9_now("n1", MASTERD)
    assert quick.wait_job(job) == 3
    assert ledger.entries("saved")
    assert "killed by uid 1000: one more checkpoint" in quick.status(job)["reason"]
    quick.primusctl("kill", str(stubborn))
    assert quick.status(stubborn)["state"] == "STOPPING"
    quick.primusctl("kill", "--grace=0", str(stubborn))
    assert quick.wait_job(stubborn) == 3


def test_kill_with_its_own_exit_status(quick, ledger):
    """Who waits hears it, also of what is being stopped already, and over a kill of masterd; not of what was not killed."""
    job = quick.submit(ledger.config("trap 'say term; while [ ! -e $LEDGER.go ]; do sleep 0.05; done; exit' TERM; say ready; sleep 60 & wait"))
    quick.wait_for(lambda: ledger.entries("ready"), what="its start")
    with quick.process("n1", "primusctl", "run", "--", "sleep", "600", user="ml") as client:
        run = quick.wait_for(lambda: [row["job"] for row in quick.primusctl_json("list", user="ml") if row["name"] == "sleep"], what="what run submits")[0]
        quick.wait_state(run, "RUNNING")
        quick.primusctl("kill", "--exit-status=42", str(run))
        client.communicate(timeout=60)
        assert client.returncode == 42
    quick.primusctl("kill", str(job))
    quick.primusctl("kill", "--exit-status=17", str(job))
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    ledger.path.with_name(ledger.path.name + ".go").touch()
    assert quick.wait_job(job) == 17 and quick.wait_job(run) == 42
    done = quick.submit(ledger.config("true"))
    assert quick.wait_job(done) == 0
    quick.primusctl("kill", "--exit-status=9", str(done))
    assert quick.wait_job(done) == 0
    wrong = quick.run("n1", "busctl", "call", "org.primus.Master1", f"/org/primus/Master1/job/{job}", "org.primus.Master1.Job", "KillWith", "a{sv}", "1",
                      "exitStatus", "u", "126", user="ml")
    assert wrong.returncode != 0 and "at most 125" in wrong.stderr


def test_delete(quick, ledger):
    """What has ended goes for good, over a kill of masterd, by its owner alone, and what it used counts on; what others wait for stays."""
    def refused(job, user="ml"):
        done = quick.run("n1", "primusctl", "delete", str(job), user=user)
        assert done.returncode == 1, done
        return done.stderr

    def used():
        return sum(row["attempts"] for row in quick.primusctl_json("usage", user="root"))

    job = quick.submit(ledger.config("echo words; say end"))
    runs = quick.submit(ledger.config("say runs; sleep 60"))
    behind = quick.submit(ledger.config("true", job={"after": [f"{job}:any", f"{runs}:any"]}))
    array = quick.submit(ledger.config("true", job={"array": "0-1"}))
    assert quick.wait_job(job) == quick.wait_job(array) == 0
    assert "only what has ended" in refused(runs)
    assert f"Job {behind} is to run after job {job}" in refused(job)
    refused(job, user="eve")
    assert "is element 1" in refused(f"{array}[1]")
    quick.kill(runs)
    assert quick.wait_job(behind) == 0
    before = used()
    quick.primusctl("delete", str(job), str(array))
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    listed = [row["job"] for row in quick.primusctl_json("list", "--all", user="ml")]
    assert runs in listed and job not in listed and array not in listed
    assert "no job" in quick.run("n1", "primusctl", "status", str(job), user="ml").stderr.lower()
    assert quick.run("n1", "primusctl", "status", f"{array}[1]", user="ml").returncode == 1
    assert used() == before
