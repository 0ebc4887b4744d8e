# SPDX-License-Identifier: Apache-2.0
"""The queue: pools and their limits, priorities, preemption and what comes after it, long jobs over short slots, requests to be
requeued, explanations. On a cluster of its own, since it changes the master's settings."""
import json
import time

import pytest
from ledger import Ledger
from sandbox import MASTERD

POOLS = """[Scheduler]
MinRunSec=0
[Pool urgent]
Preempts=yes
Priority=100
[Pool small]
Limit=cpus=1
UserLimit=cpus=1
DefaultTime=5min
MaxTime=10min
MaxPriority=5
[Pool closed]
Users=nobody
"""


def set_pools(cluster, text):
    cluster.exec("n1", "sh", "-c", "mkdir -p /etc/primus/masterd.conf.d; cat > /etc/primus/masterd.conf.d/pools.conf", input=text)
    before = cluster.exec("n1", "journalctl", "-u", MASTERD, "-o", "cat", "--no-pager").count("was read again")
    cluster.exec("n1", "systemctl", "reload", MASTERD)
    cluster.wait_for(lambda: cluster.exec("n1", "journalctl", "-u", MASTERD, "-o", "cat", "--no-pager").count("was read again") > before,
                     what="the settings to be read again")


@pytest.fixture(scope="module")
def _queue(build, shared_dir):
    from sandbox import cluster_name
    from sandbox import Cluster
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared_dir}:/shared"]) as cluster:
        set_pools(cluster, POOLS)
        yield cluster


@pytest.fixture
def queue(_queue):
    _queue.heal_all()
    _queue.wait_nodes()
    yield _queue
    _queue.run("n1", "sh", "-c", "primusctl list --json | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*' | xargs -r -n1 primusctl kill")
    _queue.wait_for(lambda: not any(row["executors"] for row in _queue.primusctl_json("nodes", user="root")), what="an empty cluster")


def job(command, num=1, cpus=1, **keys):
    return {"name": keys.pop("name", "q"), "role": [{"roleName": "worker", "num": num, "vcores": cpus, "memoryMb": 32, "command": command,
                                                     **keys.pop("role", {})}], **keys}


def all_cpus(queue):
    return int(sum(row["cpus"] for row in queue.primusctl_json("nodes", user="root")))


def kinds(queue, number):
    return [event["kind"] for event in queue.events(number)]


def running(queue, number):
    queue.wait_for(lambda: queue.status(number)["state"] == "RUNNING", what=f"job {number} to run")


def refused(queue, config, *options):
    done = queue.run("n1", "sh", "-c", f"cat > /tmp/q.json; primusctl submit {' '.join(options)} /tmp/q.json", input=config_text(config), user="ml")
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr


def config_text(config):
    import json
    return json.dumps(config)


def test_refusals_name_what_is_wrong(queue):
    before = len(queue.primusctl_json("list", "--all", user="root"))
    assert "there is no pool nowhere; there are: default" in refused(queue, job("true", queue="nowhere"))
    assert "timeLimit: 20min, but pool small allows 10min" in refused(queue, job("true", queue="small", timeLimit="20min"))
    assert "priority: 6, but pool small allows 5 at most" in refused(queue, job("true"), "--queue", "small", "--priority", "6")
    assert "needs 2 CPUs" in refused(queue, job("true", 2, queue="small"))
    assert "you may not submit to pool closed" in refused(queue, job("true"), "--queue", "closed")
    assert "priority" in refused(queue, job("true", priority=1001))
    assert "signal" in refused(queue, job("true", signal="USR1@1h"), "--time", "10min")
    assert len(queue.primusctl_json("list", "--all", user="root")) == before, "what was refused left nothing"


def test_defaults_of_the_pool_and_its_limit(queue):
    first = queue.submit(job("sleep 600", queue="small"))
    running(queue, first)
    second = queue.submit(job("true", queue="small"))
    queue.wait_for(lambda: "limit" in (queue.status(second)["reason"] or ""), what="the pool's limit as the reason")
    other = queue.submit(job("true"))
    assert queue.wait_job(other) == 0, "other pools go on"
    rows = {row["name"]: row for row in queue.primusctl_json("pools", user="ml")}
    assert rows["small"]["held"]["cpus"] == 1 and rows["small"]["limit"]["cpus"] == 1 and rows["small"]["waiting"] == 1
    # A limit below what is used: said, nothing stopped.
    set_pools(queue, POOLS.replace("Limit=cpus=1\nUser", "Limit=cpus=0.5\nUser"))
    assert "more than its new limit" in queue.exec("n1", "journalctl", "-u", MASTERD, "-o", "cat", "--no-pager")
    assert queue.status(first)["state"] == "RUNNING"
    set_pools(queue, POOLS)
    queue.primusctl("kill", str(first))
    assert queue.wait_job(second) == 0


def test_priority_is_the_order(queue, shared_dir):
    ledger = Ledger(shared_dir)
    n = all_cpus(queue)
    blocker = queue.submit(job("sleep 600", n))
    running(queue, blocker)
    jobs = {priority: queue.submit({**ledger.config(f"say p{priority + 100}", num=n, vcores=1), "priority": priority}) for priority in (-5, 7, 0)}
    queue.wait_for(lambda: len(queue.primusctl_json("queue", user="ml")) == 3, what="three to wait")
    assert [row["priority"] for row in queue.primusctl_json("queue", user="ml")] == [7, 0, -5]
    queue.primusctl("kill", str(blocker))
    assert [queue.wait_job(number) for number in jobs.values()] == [0, 0, 0]
    starts = {row["job"]: row["started"] for row in queue.primusctl_json("list", "--all", user="root")}
    assert starts[jobs[7]] < starts[jobs[0]] < starts[jobs[-5]]


def test_preemption_across_hosts_and_back(queue, shared_dir):
    """The victim is told, stopped, waits, runs again under its number with its log appended, and succeeds; data of it is done once."""
    ledger = Ledger(shared_dir)
    n = all_cpus(queue)
    script = "trap 'echo told' USR1; echo begin $PRIMUS_ATTEMPT; for i in $(seq 600); do [ -e $LEDGER.go ] && exit 0; sleep 0.1; done; exit 1"
    victim = queue.submit({**ledger.config(script, num=n, vcores=1), "preemptible": True, "signal": "USR1@1s"})
    running(queue, victim)
    urgent = queue.submit(job("sleep 1", n, queue="urgent"))
    assert queue.wait_job(urgent) == 0
    running(queue, victim)
    log = queue.primusctl("logs", str(victim), user="ml")
    assert "told" in log and log.count("begin") >= n, log
    events = kinds(queue, victim)
    assert [kind for kind in events if kind in ("preempted", "signalled", "requeued")] == ["preempted", "signalled", "requeued"]
    assert "preempts" in kinds(queue, urgent)
    with open(f"{ledger.path}.go", "w", encoding="utf-8"):
        pass
    assert queue.wait_job(victim) == 0


def test_preemption_is_called_off(queue, shared_dir):
    """The job that it was for is killed while the victim is told: the victim goes on, also when masterd dies in between, and can be asked
    to make room again."""
    ledger = Ledger(shared_dir)
    n = all_cpus(queue)
    script = "trap 'echo told' USR1; for i in $(seq 600); do [ -e $LEDGER.go ] && exit 0; sleep 0.1; done; exit 1"
    victim = queue.submit({**ledger.config(script, num=n, vcores=1), "preemptible": True, "signal": "USR1@8s"})
    running(queue, victim)
    for kill in (False, True):
        urgent = queue.submit(job("sleep 0.5", n, queue="urgent"))
        queue.wait_for(lambda: kinds(queue, victim).count("signalled") == 1 + kill, what="the signal")
        if kill:
            queue.kill9_now("n1", MASTERD)
            queue.wait_nodes()
        queue.primusctl("kill", str(urgent))
        assert queue.wait_job(urgent) == 3
        assert kinds(queue, victim).count("preemption-off") == 1 + kill
    time.sleep(9)
    assert queue.status(victim)["state"] == "RUNNING" and "requeued" not in kinds(queue, victim)
    with open(f"{ledger.path}.go", "w", encoding="utf-8"):
        pass
    assert queue.wait_job(victim) == 0


def test_master_dies_during_a_preemption(queue):
    n = all_cpus(queue)
    for moment in (0.0, 0.4, 1.2):
        victim = queue.submit(job("trap '' USR1; for i in $(seq 600); do sleep 0.1; done", n, preemptible=True, signal="USR1@1s"))
        running(queue, victim)
        urgent = queue.submit(job("sleep 0.5", n, queue="urgent"))
        time.sleep(moment)
        queue.kill9_now("n1", MASTERD)
        queue.wait_nodes()
        assert queue.wait_job(urgent) == 0
        running(queue, victim)
        assert kinds(queue, victim).count("requeued") == 1
        queue.primusctl("kill", str(victim))
        assert queue.wait_job(victim) == 3


def test_long_job_over_short_slots(queue, shared_dir):
    """--requeue: a count to 30 with a checkpoint, in slots that are too short for it; every step is done once."""
    ledger = Ledger(shared_dir)
    script = ("trap 'exit 75' USR1; n=$(cat $LEDGER.n 2>/dev/null || echo 0); "
              "while [ $n -lt 30 ]; do sleep 0.2 & wait $!; n=$((n+1)); echo step $n; echo $n > $LEDGER.n; done")
    number = queue.submit({**ledger.config(script, num=1, vcores=1), "requeue": True, "timeLimit": 3, "signal": "USR1@1s"})
    assert queue.wait_job(number) == 0, queue.primusctl("events", str(number)) + queue.primusctl("logs", str(number))
    assert kinds(queue, number).count("requeued") >= 2
    assert kinds(queue, number).count("attempt-failed") == 0


def test_exit_75_asks_to_be_requeued(queue, shared_dir):
    ledger = Ledger(shared_dir)
    begin = time.monotonic()
    number = queue.submit(ledger.config("say try; [ $(wc -l < $LEDGER) -ge 8 ] || exit 75", num=1, vcores=1))
    assert queue.wait_job(number) == 0, queue.primusctl("events", str(number)) + queue.primusctl("logs", str(number))
    assert kinds(queue, number).count("requeued") == 3
    assert time.monotonic() - begin > 1 + 2 + 4, "each further time it waits longer"


def test_requeue_by_a_person(queue):
    number = queue.submit(job("for i in $(seq 600); do sleep 0.1; done"))
    running(queue, number)
    queue.primusctl("requeue", str(number), "--reason", "for a test")
    queue.wait_for(lambda: "requeued" in kinds(queue, number), what="the event")
    running(queue, number)
    queue.primusctl("kill", str(number))
    assert queue.wait_job(number) == 3
    done = queue.run("n1", "primusctl", "requeue", str(number), user="ml")
    assert done.returncode == 1 and "nothing to requeue" in done.stderr


def test_why_tells_what_would_help(queue):
    n = all_cpus(queue)
    blocker = queue.submit(job("sleep 600", 1, timeLimit="1h"))
    running(queue, blocker)
    whole = queue.submit(job("true", n))
    queue.wait_for(lambda: queue.status(whole)["reason"], what="a reason")
    text = queue.primusctl("why", str(whole), user="ml")
    assert f"{n - 1} of {n} fit now" in text and "hosts:" in text
    assert f"would start now with worker minNum {n - 1}" in text, text
    why = queue.primusctl_json("why", str(whole), user="ml")
    assert why["position"] == 1 and sum(group["hosts"] for group in why["hosts"]) == 2
    assert why["startsBy"] > 0, "the blocker's time limit says when"
    never = queue.submit(job("true", 1, cpus=64, waitForHosts=True))
    queue.wait_for(lambda: queue.status(never)["reason"], what="a reason")
    assert "too small even when empty" in queue.primusctl("why", str(never), user="ml")


def test_start_within(queue):
    """A gang that gets no place in its time fails, over a restart of masterd too; what it asks to wait for, a hold, and what has begun do not count."""
    n = all_cpus(queue)
    blocker = queue.submit(job("sleep 600", n, timeLimit="1h"))
    running(queue, blocker)
    begin = time.time()
    gang = queue.submit(job("true", n, startWithin="6s"))
    eve = int(queue.primusctl("submit", "--start-within", "6s", "--parsable", "-", user="eve", input=json.dumps(job("true"))).strip())
    held = queue.submit(job("true", n, startWithin="6s"))
    queue.primusctl("suspend", "--stop", str(held))
    behind = queue.submit(job("true", n, startWithin="6s", after=[f"{blocker}:any"]))
    longer = queue.submit(job("true", n, startWithin="6s"))
    status = queue.status(gang)
    assert begin + 6 <= status["failsAt"] / 1e6 < time.time() + 6
    assert "fails if it is not started by" in queue.primusctl("status", str(gang))
    assert "(startWithin)" in queue.primusctl("why", str(gang))
    assert "failsAt" not in queue.status(behind) and "(startWithin)" not in queue.primusctl("why", str(behind))
    queue.primusctl("update", str(longer), "startWithin=1h")
    queue.kill9_now("n1", MASTERD)
    queue.wait_nodes()
    assert queue.status(gang)["failsAt"] == status["failsAt"], "since when is kept"
    assert queue.wait_job(gang, timeout=30) == queue.wait_job(eve, timeout=30) == 1
    ended = queue.status(gang)
    assert begin + 6 <= ended["ended"] / 1e6 and ended["started"] is None
    assert ended["reason"].startswith("it was not started within 6s (startWithin); it waited: role worker: "), ended["reason"]
    assert [queue.status(j)["state"] for j in (held, behind, longer)] == ["QUEUED"] * 3
    queue.primusctl("resume", str(held))
    assert queue.status(held)["failsAt"] / 1e6 > time.time(), "the hold does not count"
    assert queue.wait_job(held, timeout=30) == 1
    again = queue.submit(job("exit 75", n, startWithin="6s", requeue=True, priority=-1))  # it has begun: its time is over
    queue.primusctl("kill", str(blocker))
    assert queue.wait_job(behind, timeout=30) == queue.wait_job(longer, timeout=30) == 0
    queue.wait_for(lambda: queue.status(again)["started"], what="its start")
    assert "failsAt" not in queue.status(again)
    queue.primusctl("kill", str(again))
    refused = queue.run("n1", "primusctl", "submit", "--start-within", "soon", "-", user="ml", input=json.dumps(job("true")))
    assert refused.returncode != 0 and "startWithin" in refused.stderr, refused.stderr


def test_elastic_gang_starts_smaller(queue):
    n = all_cpus(queue)
    blocker = queue.submit(job("sleep 600"))
    running(queue, blocker)
    elastic = queue.submit(job("for i in $(seq 600); do sleep 0.1; done", n, role={"minNum": n - 1}))
    running(queue, elastic)
    assert sum(e["state"] == "RUNNING" for e in queue.status(elastic)["executors"]) == n - 1
    queue.primusctl("kill", str(blocker))
    queue.wait_for(lambda: sum(e["state"] == "RUNNING" for e in queue.status(elastic)["executors"]) == n, what="the last one")


def test_usage_outlives_the_master(queue):
    number = queue.submit(job("sleep 3", all_cpus(queue)))
    assert queue.wait_job(number) == 0
    def usage():
        return {row["name"]: row for row in queue.primusctl_json("pools", user="ml")}["default"]["usage"]
    before = usage()
    assert before > 0
    time.sleep(31)
    queue.kill9_now("n1", MASTERD)
    queue.wait_nodes()
    assert 0.9 * before < usage() <= before
