# SPDX-License-Identifier: Apache-2.0
"""Jobs that change while they run: scaled, with data; restarted one by one; given other limits, roles and peers."""
import json
import re
import time

import pytest
from ledger import PRELUDE
from sandbox import AGENTD, MASTERD

EXAMPLES = "/usr/share/doc/primus/examples"
LINES = 6000
WAIT = 'while :; do sleep 0.1 & wait $!; done'

# Acknowledges every line when it is written down, and leaves as soon as it is told to.
TRAINER = """
import os, signal, sys, time
import primus
state = {"leaving": False, "waits": False}
def leave(*_):
    state["leaving"] = True
    if state["waits"]:
        sys.exit(0)
signal.signal(signal.SIGTERM, leave)
out = os.open(os.environ["LEDGER"] + ".lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
records = primus.records()
while not state["leaving"]:
    state["waits"] = True
    line = next(records, None)
    state["waits"] = False
    if line is None:
        break
    os.write(out, line[:6] + b" " + os.environ["PRIMUS_INDEX"].encode() + b"\\n")
    primus.ack()
    time.sleep(0.003)
"""


def make_data(ledger):
    path = ledger.path.with_name(ledger.path.name + ".data")
    path.mkdir()
    for f in range(4):
        (path / f"part-{f}.txt").write_text("".join(f"{i:06d} ".ljust(40, "x") + "\n" for i in range(f, LINES, 4)))
    for one in (path, *path.iterdir()):
        one.chmod(0o755)


def version(cluster, job):
    said = cluster.exec("n1", "busctl", "get-property", "org.primus.Master1", f"/org/primus/Master1/job/{job}", "org.primus.Master1.Job", "Version")
    return int(said.split()[1])


def running(cluster, job):
    return [e for e in cluster.status(job)["executors"] if e["state"] == "RUNNING"]


def wait_running(cluster, job, n, timeout=20):
    cluster.wait_for(lambda: len(running(cluster, job)) == n, timeout, f"{n} executors run")


def refused(cluster, *arguments, user="ml"):
    done = cluster.run("n1", "primusctl", *map(str, arguments), user=user)
    assert done.returncode != 0, done.stdout
    return done.stderr


def show(cluster, e, *properties):
    said = cluster.exec(e["node"], "systemctl", "show", e["unit"], *(f"-p{p}" for p in properties))
    return dict(line.split("=", 1) for line in said.splitlines())


@pytest.mark.parametrize("kill", (False, True))
def test_scale_with_data(quick, ledger, kill):
    """2 -> 4 -> 3 workers: each line is read by somebody, once; also when masterd is killed right behind each change."""
    make_data(ledger)
    config = ledger.config('exec python3 -c "$TRAINER"', num=2, inputPolicy="STREAMING", memoryMb=64, successPercent=100)
    config["env"]["TRAINER"] = TRAINER
    config["inputManager"] = {"gracefulShutdown": True, "fileConfig": {"inputs": [
        {"name": "lines", "spec": {"pathPattern": f"{ledger.inside}.data", "textInput": {}, "split": "4K"}}]}}
    config["input"] = {"mode": "ring", "ack": "explicit"}
    job = quick.submit(config)
    wait_running(quick, job, 2)
    written = ledger.path.with_name(ledger.path.name + ".lines")
    for n, reads in ((4, b"1"), (3, b"3")):
        quick.wait_for(lambda: written.exists() and b" %s\n" % reads in written.read_bytes(), 20, f"worker/{reads.decode()} reads")
        time.sleep(0.3)
        quick.primusctl("scale", str(job), f"worker={n}")
        if kill:
            quick.kill9_now("n1", MASTERD)
            quick.wait_for(lambda: quick.run("n1", "primusctl", "status", str(job)).returncode == 0, 20, "masterd is back")
        quick.wait_for(lambda: len(quick.status(job)["executors"]) == n or quick.status(job)["state"] == "SUCCEEDED", 20, f"{n} workers")
    assert quick.wait_job(job, timeout=60) == 0
    lines = [line.split() for line in written.read_text().splitlines()]
    numbers = sorted(int(number) for number, _ in lines)
    assert len(numbers) == len(set(numbers)), f"{len(numbers) - len(set(numbers))} lines twice"
    assert numbers == list(range(LINES))
    assert {index for _, index in lines} == {"0", "1", "2", "3"}  # the fourth had its share while it was there
    assert version(quick, job) == 3
    [three] = quick.status(job)["roles"]
    assert (three["wanted"], three["succeeded"], three["failed"]) == (3, 3, 0)


def test_shrinking_is_no_success(quick, ledger):
    """What was scaled away counts for nothing: the job goes on with those that are left, and may grow again."""
    job = quick.submit(ledger.config(f'trap "exit 0" TERM; echo I am $PRIMUS_INDEX; {WAIT}', num=4, successPercent=100))
    wait_running(quick, job, 4)
    quick.primusctl("scale", str(job), "worker=2")
    quick.wait_for(lambda: len(quick.status(job)["executors"]) == 2, 10, "two have ended")
    time.sleep(0.5)
    assert quick.status(job)["state"] == "RUNNING" and {e["index"] for e in running(quick, job)} == {0, 1}
    assert quick.primusctl("logs", str(job), "worker/3") == "I am 3\n"  # what it wrote is still there
    assert "has no executor worker/7" in refused(quick, "logs", job, "worker/7")
    quick.primusctl("scale", str(job), "worker=3")
    wait_running(quick, job, 3)
    assert quick.executor(job, index=2)["attempt"] == 2  # an attempt's number is not used twice
    env = {(e.index, e.attempt) for e in ledger.entries("start")}
    assert env == {(0, 1), (1, 1), (2, 1), (3, 1), (2, 2)}
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3


def test_refused(quick, ledger):
    job = quick.submit(ledger.config(WAIT, num=2, successPercent=100))
    wait_running(quick, job, 2)
    assert "at least one executor" in refused(quick, "scale", job, "worker=0")
    assert "must be 1 to 100000 executors, not -1" in refused(quick, "scale", job, "worker=-1")
    assert "must be 1 to 100000 executors, not 200000" in refused(quick, "scale", job, "worker=200000")
    assert "there is no role chief" in refused(quick, "scale", job, "chief=2")
    assert "neither a role nor a key speed" in refused(quick, "update", job, "speed=2")
    assert "cannot be changed while the job exists" in refused(quick, "update", job, "input.mode=ring")
    assert "vcores" in refused(quick, "update", job, "worker.vcores=many")
    assert "is the job's only role" in refused(quick, "role", "remove", job, "worker")
    assert re.search(r"no host that role worker may use has 977 GiB of memory for one executor; the most that one has is \d", refused(
        quick, "update", job, "worker.memoryMb=1000000"))
    # What an empty host has, and one that somebody else is on has not.
    everywhere = quick.submit(ledger.config(WAIT, num=3, antiAffinity=["worker"]))
    wait_running(quick, everywhere, 3)
    whole = min(row["memory"] for row in quick.primusctl_json("nodes", user="root")) >> 20
    assert re.search(r"n\d has .* of memory free, and .* more would be needed there", refused(quick, "update", job, f"worker.memoryMb={whole}"))
    quick.primusctl("kill", str(everywhere))
    assert version(quick, job) == 1 and len(running(quick, job)) == 2
    quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3
    for command in (("scale", job, "worker=3"), ("update", job, "timeLimit=1h"), ("restart", job)):
        assert "KILLED" in refused(quick, *command)


def test_two_at_once(quick, ledger):
    """Compare and set: who has not seen a change does not overwrite it, and is told what it was."""
    job = quick.submit(ledger.config(WAIT, num=1, successPercent=100))
    wait_running(quick, job, 1)
    # The first change is protected as well, also where masterd was away since: two have seen version 1, and one comes first.
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: quick.run("n1", "primusctl", "status", str(job)).returncode == 0, 20, "masterd is back")
    assert version(quick, job) == 1
    assert "is at version 1, not yet 2" in refused(quick, "update", job, "timeLimit=1h", "--if-version", "2")
    quick.primusctl("update", str(job), "timeLimit=1h", "--if-version", "1")
    said = refused(quick, "update", job, "timeLimit=9h", "--if-version", "1")
    assert re.search(r"version 2, it was changed since version 1; version 2 by uid \d+: timeLimit: infinity -> 3600", said)
    assert "versions begin at 1" in refused(quick, "update", job, "timeLimit=9h", "--if-version", "0")
    quick.primusctl("update", str(job), "timeLimit=2h", "--if-version", "2")
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: quick.run("n1", "primusctl", "status", str(job)).returncode == 0, 20, "masterd is back")
    said = refused(quick, "update", job, "timeLimit=3h", "--if-version", "2")
    assert re.search(r"version 3, it was changed since version 2; version 3 by uid \d+: timeLimit: 3600 -> 7200", said)
    config = json.loads(quick.primusctl("config", str(job)))
    assert config["timeLimit"] == 7200
    quick.primusctl("kill", str(job))


def test_limits(quick, ledger):
    """CPUs and memory of units that run; a later attempt has them too, and masterd's books."""
    job = quick.submit(ledger.config(WAIT, num=2, successPercent=100))
    wait_running(quick, job, 2)
    for e in running(quick, job):
        assert show(quick, e, "CPUQuotaPerSecUSec", "MemoryMax") == {"CPUQuotaPerSecUSec": "100ms", "MemoryMax": str(16 << 20)}
    quick.primusctl("update", str(job), "worker.vcores=0.25", "worker.memoryMb=48")
    for e in running(quick, job):
        quick.wait_for(lambda e=e: show(quick, e, "CPUQuotaPerSecUSec", "MemoryMax") ==
                       {"CPUQuotaPerSecUSec": "250ms", "MemoryMax": str(48 << 20)}, 10, "the unit's limits")
    quick.primusctl("restart", str(job), "worker/1")
    quick.wait_for(lambda: quick.executor(job, index=1)["attempt"] == 2 and quick.executor(job, index=1)["state"] == "RUNNING", 20, "a second attempt")
    assert show(quick, quick.executor(job, index=1), "CPUQuotaPerSecUSec")["CPUQuotaPerSecUSec"] == "250ms"
    # Told again where the agent was away when it was changed.
    e = quick.executor(job, index=0)
    quick.exec(e["node"], "systemctl", "stop", AGENTD)
    quick.primusctl("update", str(job), "worker.vcores=0.3")
    quick.exec(e["node"], "systemctl", "start", AGENTD)
    quick.wait_for(lambda: show(quick, e, "CPUQuotaPerSecUSec")["CPUQuotaPerSecUSec"] == "300ms", 15, "the limit is told again")
    quick.primusctl("kill", str(job))


def test_restart_one_by_one(quick, ledger):
    """At most a batch is down at any time; the new attempts have the command that was set meanwhile; no failures."""
    stays = f'trap "say end; exit 0" TERM; systemd-notify --ready; {WAIT}'
    job = quick.submit(ledger.config(stays, num=5, successPercent=100, ready={"notify": True}))
    quick.wait_for(lambda: len(ledger.entries("start")) == 5, 20, "five have started")
    wait_running(quick, job, 5)
    quick.primusctl("update", str(job), "worker.env.COLOUR=green", f"worker.command={PRELUDE}say colour $COLOUR; {stays}")
    assert "5 executors start again, 2 at a time" in quick.primusctl("restart", str(job), "worker", "--batch", "2")
    time.sleep(0.2)
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: any(e["kind"] == "restarted" for e in quick.events(job)), 40, "the restart is complete")
    quick.wait_for(lambda: len({e.index for e in ledger.entries("colour", attempt=2) if e.text == "green"}) == 5, 10, "all have started again")
    up, least = 0, 5
    for e in sorted((e for e in ledger.entries() if e.what in ("start", "end")), key=lambda e: e.time):
        up += 1 if e.what == "start" else -1
        if e.attempt == 2 or e.what == "end":
            least = min(least, up)
    assert least >= 3, f"only {least} of 5 were up"
    assert all(e["attempt"] == 2 for e in running(quick, job)) and len(running(quick, job)) == 5
    [role] = quick.status(job)["roles"]
    assert role["failed"] == 0
    quick.primusctl("kill", str(job))


def test_roles_come_and_go(quick, ledger):
    job = quick.submit(ledger.config(WAIT, num=1, successPercent=100))
    wait_running(quick, job, 1)
    role = json.dumps({"roleName": "helper", "num": 2, "vcores": 0.1, "memoryMb": 16, "successPercent": 0, "command": f"echo hi; {WAIT}"})
    quick.exec("n1", "sh", "-c", f"cat > /tmp/role.{job}.json; chmod 644 /tmp/role.{job}.json", input=role)
    assert "role helper added" in quick.primusctl("role", "add", str(job), f"/tmp/role.{job}.json")
    wait_running(quick, job, 3)
    assert "has a role helper already" in refused(quick, "role", "add", job, f"/tmp/role.{job}.json")
    gone = quick.executor(job, role="helper", index=1)
    assert "role helper removed" in quick.primusctl("role", "remove", str(job), "helper")
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: quick.run("n1", "primusctl", "status", str(job)).returncode == 0, 20, "masterd is back")
    quick.wait_for(lambda: quick.run(gone["node"], "systemctl", "is-active", gone["unit"]).stdout.strip() != "active", 15, "its unit is gone")
    assert [r["name"] for r in quick.status(job)["roles"]] == ["worker"]
    assert "helper" not in quick.primusctl("config", str(job))
    quick.primusctl("kill", str(job))


PEERS = ('told() { read -r first < $PRIMUS_RENDEZVOUS_FILE; . $PRIMUS_RENDEZVOUS_FILE.sh 2>/dev/null; '
         'say told "${first#*=} $(grep ^WORLD_SIZE= $PRIMUS_RENDEZVOUS_FILE) $(grep ^RANK= $PRIMUS_RENDEZVOUS_FILE)"; }; '
         'trap told USR1; say epoch "$PRIMUS_EPOCH $WORLD_SIZE $RANK"; ' + WAIT)


def test_rendezvous(quick, ledger):
    """Who stays is told who the peers are: by a file and a signal, also where masterd or the agent was killed meanwhile."""
    job = quick.submit(ledger.config(PEERS, num=2, successPercent=100, job={"rendezvous": {"signal": "USR1"}}))
    wait_running(quick, job, 2)
    quick.wait_for(lambda: len(ledger.entries("epoch")) == 2, 10, "both have begun")
    assert {e.text for e in ledger.entries("epoch")} == {"1 2 0", "1 2 1"}
    # Only its user may read it.
    e = quick.executor(job, index=0)
    file = f"/run/primus/x/{e['unit']}/rendezvous"
    assert quick.run(e["node"], "cat", file, user="eve").returncode != 0
    assert "PRIMUS_EPOCH=1" in quick.exec(e["node"], "cat", file, user="ml")
    quick.primusctl("scale", str(job), "worker=3")
    quick.kill9_now("n1", MASTERD)
    quick.wait_for(lambda: len(running(quick, job)) == 3, 20, "the third runs")
    quick.wait_for(lambda: {e.index for e in ledger.entries("told") if "WORLD_SIZE=3" in e.text} >= {0, 1}, 15, "both are told")
    assert ledger.entries("epoch", index=2)[-1].text.split()[1:] == ["3", "2"]
    # An agent that was away is told when it is back.
    e = quick.executor(job, index=0)
    quick.exec(e["node"], "systemctl", "stop", AGENTD)
    quick.primusctl("scale", str(job), "worker=2")
    time.sleep(1)
    quick.exec(e["node"], "systemctl", "start", AGENTD)
    quick.wait_for(lambda: any("WORLD_SIZE=2" in e.text for e in ledger.entries("told", index=0)), 15, "it is told when the agent is back")
    epochs = [int(e.text.split()[0]) for e in ledger.entries("told", index=0)]
    assert epochs == sorted(set(epochs))  # rising, each told once
    # A restart where it was, with the ports it had, is no change; any other one is.
    before = quick.exec(e["node"], "cat", file, user="ml").splitlines()[0]
    was = quick.executor(job, index=1)
    quick.primusctl("restart", str(job), "worker/1")
    quick.wait_for(lambda: quick.executor(job, index=1)["attempt"] == 2 and quick.executor(job, index=1)["state"] == "RUNNING", 20, "the second attempt")
    time.sleep(1)
    now = quick.executor(job, index=1)
    same = (now["node"], now["ports"]) == (was["node"], was["ports"])
    assert (quick.exec(e["node"], "cat", file, user="ml").splitlines()[0] == before) == same, (was, now)
    quick.primusctl("kill", str(job))


def test_example_elastic(quick):
    """The example: 2 -> 4 -> 3 workers, each of which sees it; the data exactly once."""
    job = quick.primusctl_json("submit", f"{EXAMPLES}/elastic/elastic.json")["job"]
    wait_running(quick, job, 2)
    for n, next_n in ((2, 4), (4, 3)):
        quick.wait_for(lambda n=n: quick.primusctl("logs", str(job)).count(f" of {n}, learning") == n, 30, f"{n} know of each other")
        quick.primusctl("scale", str(job), f"worker={next_n}")
    assert quick.wait_job(job, timeout=90) == 0
    said = quick.primusctl("logs", str(job))
    first = [line for line in said.splitlines() if line.startswith("worker/0 |")]
    assert any("of 4, learning rate 0.4" in line for line in first) and any("of 3, learning rate 0.3" in line for line in first)
    said += quick.primusctl("logs", str(job), "worker/3")  # which has gone; of the job are those that it has
    counted = [tuple(map(int, found)) for found in re.findall(r"trained with (\d+) lines, sum (-?\d+)", said)]
    data = quick.exec("n1", "sh", "-c", f"cat {EXAMPLES}/torch/data/*").splitlines()
    want = (len(data), sum(round(1000 * float(line.split()[0])) for line in data))
    assert len(counted) == 4, said
    gone = quick.primusctl("events", str(job))
    assert "w/3" in gone or "worker/3" in gone
    have = tuple(map(sum, zip(*counted)))
    assert have == want
