# SPDX-License-Identifier: Apache-2.0
"""Trainers that say that they live, and what happens when they do not: sd_notify's WATCHDOG=1, and primus_progress(). Not on the
cluster `quick`, which is looked through for daemons whose watchdog came."""
import json

import pytest
from ledger import failover

BACKOFF = {"backoff": {"initial": "0.1s", "max": "0.2s"}}
FEED = "systemd-notify WATCHDOG=1"
# A library with the sanitizer wants its runtime loaded first.
PRELOAD = ("export ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$(ldd /usr/lib/libprimus.so.1 | awk '/lib(asan|ubsan)/ { print $3 }' | tr '\\n' ':'); ")
PROGRESS = """
import primus, time, sys
for step in range(int(sys.argv[1])):
    primus.progress(step)
    time.sleep(0.05)
"""


def failed(cluster, job):
    return [e["text"] for e in cluster.events(job, "executor-failed")]


def test_fed_and_then_not(cluster, ledger):
    """As long as it says so it runs, longer than the time; then it is killed, which is a failure, and comes again."""
    command = f"[ $PRIMUS_ATTEMPT = 1 ] || {{ say end; exit 0; }}; for i in 1 2 3 4 5 6; do {FEED}; sleep 0.5; done; say silent; sleep 60"
    job = cluster.submit(ledger.config(command, watchdog="1500ms", failover=failover(2), job=BACKOFF))
    assert cluster.wait_job(job) == 0
    assert failed(cluster, job) == [t for t in failed(cluster, job) if "its watchdog was not fed for 1.5s" in t or "its watchdog was not fed for 1s 500ms" in t]
    assert len(failed(cluster, job)) == 1
    silent, again = ledger.entries("silent")[0], ledger.entries("start", attempt=2)[0]
    print(f"measured: started again {again.time - silent.time:.2f} s after it fell silent")
    assert 0.5 < again.time - silent.time < 6


def test_never_fed(cluster, ledger):
    job = cluster.submit(ledger.config("sleep 60", watchdog="1s"))
    assert cluster.wait_job(job) == 1
    assert "its watchdog was not fed for 1s" in failed(cluster, job)[0]
    assert "watchdog" in cluster.primusctl("why", str(job))


@pytest.mark.parametrize("codes, state", [("watchdog", "KILLED"), ("SIGABRT,134", "FAILED")])
def test_exit_codes(cluster, ledger, codes, state):
    """The rule's name is watchdog; the signal by which systemd enforces it is not what counts."""
    rule = [{"codes": codes, "action": "ignore"}]
    job = cluster.submit(ledger.config("sleep 60", watchdog="1s", exitCodes=rule))
    cluster.wait_job(job)
    assert cluster.status(job)["executors"][0]["state"] == state


def test_with_ready(cluster, ledger):
    """With ready: notify it begins when the executor has said READY=1: a start may take longer than the time."""
    command = f"sleep 2.5; systemd-notify --ready; say ready; for i in 1 2 3; do {FEED}; sleep 0.5; done; [ $PRIMUS_ATTEMPT = 2 ] || sleep 60; say end"
    job = cluster.submit(ledger.config(command, watchdog="1s", ready={"notify": True}, failover=failover(2), job=BACKOFF))
    assert cluster.wait_job(job) == 0
    assert len(ledger.entries("ready")) == 2 and len(failed(cluster, job)) == 1


def test_progress_feeds_it(cluster, ledger, shared_dir):
    """primus.progress() does, from a child of a shell; and what it said is seen."""
    script = shared_dir / "progress.py"
    script.write_text(PROGRESS)
    job = cluster.submit(ledger.config(PRELOAD + "python3 /shared/progress.py 200 && say end; true", watchdog="1500ms", memoryMb=200))
    cluster.wait_for(lambda: (top := json.loads(cluster.primusctl("top", str(job), "--json", user="ml")))["executors"]
                   and top["executors"][0].get("values", {}).get("progressStep", 0) > 0, timeout=20, what="its progress")
    assert cluster.wait_job(job) == 0
    assert len(ledger.entries("end")) == 1 and not failed(cluster, job)


def test_sessions_and_freezing(cluster, ledger):
    """A session is no executor. What has a watchdog is not frozen, since that would kill it."""
    job = cluster.submit(ledger.config(f"while :; do {FEED}; sleep 0.3; done", watchdog="1s"))
    cluster.wait_state(job, "RUNNING")
    assert cluster.primusctl("exec", str(job), "0", "--", "sleep", "2.5", user="ml") == ""
    r = cluster.run("n1", "primusctl", "suspend", "--freeze", str(job), user="ml")
    assert r.returncode == 1 and "has a watchdog" in r.stderr, r.stderr
    assert not failed(cluster, job)
    cluster.primusctl("kill", str(job))


def test_wrong(cluster, ledger):
    r = cluster.run("n1", "sh", "-c", "cat > /tmp/w.json && primusctl validate /tmp/w.json", input=json.dumps(ledger.config("x", watchdog="10ms")), user="ml")
    assert r.returncode == 1 and "watchdog: must be 1s to 1d" in r.stderr + r.stdout, r.stderr + r.stdout


# ---- limits that systemd lets a program put off

PUT_OFF = r"""
import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
while True:
    s.sendto(sys.argv[1].encode() + b"WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000", os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))
    time.sleep(0.2)
"""


def put_off(cluster, shared_dir, says="", **more):
    script = shared_dir / "put-off.py"
    script.write_text(PUT_OFF)
    script.chmod(0o755)
    role = {"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "argv": ["/usr/bin/python3", "/shared/put-off.py", says], **more}
    return cluster.submit({"name": "late", "stopGrace": "1s", "role": [role]})


def ended_in_time(cluster, job):
    assert cluster.wait_job(job, timeout=40) == 1
    assert "ran longer than its time limit" in cluster.executor(job)["result"], cluster.events(job)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_limit_that_is_put_off(cluster, shared_dir, restarted):
    """EXTEND_TIMEOUT_USEC= is for systemd's limit, and for its patience in a stop; neither is agentd's. Also not a new agentd's."""
    job = put_off(cluster, shared_dir, watchdog="10s", timeLimit="4s")
    cluster.wait_state(job, "RUNNING")
    if restarted:
        cluster.exec(cluster.executor(job)["node"], "systemctl", "restart", "primus-agentd.service")
    ended_in_time(cluster, job)


def test_a_start_that_is_put_off(cluster, shared_dir):
    job = put_off(cluster, shared_dir, ready={"notify": True, "timeout": "3s"})
    assert cluster.wait_job(job, timeout=40) == 1
    assert "not ready within 3s" in cluster.executor(job)["result"], cluster.events(job)


def test_a_limit_that_is_not_put_off(cluster):
    """SIGTERM comes once, whoever of the two sends it."""
    job = cluster.submit({"name": "late", "stopGrace": "4s", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "timeLimit": "2s",
                                                                     "command": "trap 'echo told' TERM; while sleep 0.1; do :; done"}]})
    ended_in_time(cluster, job)
    assert cluster.primusctl("logs", str(job)).count("told") == 1
