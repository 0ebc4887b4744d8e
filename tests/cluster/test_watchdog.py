# SPDX-License-Identifier: Apache-2.0
"""Trainers that say that they live, and what happens when they do not: sd_notify's WATCHDOG=1, and primus_progress()."""
import json

import pytest
from ledger import failover

BACKOFF = {"backoff": {"initial": "0.1s", "max": "0.2s"}}
FEED = "systemd-notify WATCHDOG=1"
PROGRESS = """
import primus, time, sys
for step in range(int(sys.argv[1])):
    primus.progress(step)
    time.sleep(0.05)
"""


def failed(cluster, job):
    return [e["text"] for e in cluster.events(job, "executor-failed")]


def test_fed_and_then_not(quick, ledger):
    """As long as it says so it runs, longer than the time; then it is killed, which is a failure, and comes again."""
    command = f"[ $PRIMUS_ATTEMPT = 1 ] || {{ say end; exit 0; }}; for i in 1 2 3 4 5 6; do {FEED}; sleep 0.5; done; say silent; sleep 60"
    job = quick.submit(ledger.config(command, watchdog="1500ms", failover=failover(2), job=BACKOFF))
    assert quick.wait_job(job) == 0
    assert failed(quick, job) == [t for t in failed(quick, job) if "its watchdog was not fed for 1.5s" in t or "its watchdog was not fed for 1s 500ms" in t]
    assert len(failed(quick, job)) == 1
    silent, again = ledger.entries("silent")[0], ledger.entries("start", attempt=2)[0]
    print(f"measured: started again {again.time - silent.time:.2f} s after it fell silent")
    assert 0.5 < again.time - silent.time < 6


def test_never_fed(quick, ledger):
    job = quick.submit(ledger.config("sleep 60", watchdog="1s"))
    assert quick.wait_job(job) == 1
    assert "its watchdog was not fed for 1s" in failed(quick, job)[0]
    assert "watchdog" in quick.primusctl("why", job)


@pytest.mark.parametrize("codes, state", [("watchdog", "KILLED"), ("SIGABRT,134", "FAILED")])
def test_exit_codes(quick, ledger, codes, state):
    """The rule's name is watchdog; the signal by which systemd enforces it is not what counts."""
    rule = [{"codes": codes, "action": "ignore"}]
    job = quick.submit(ledger.config("sleep 60", watchdog="1s", exitCodes=rule))
    quick.wait_job(job)
    assert quick.status(job)["executors"][0]["state"] == state


def test_with_ready(quick, ledger):
    """With ready: notify it begins when the executor has said READY=1: a start may take longer than the time."""
    command = f"sleep 2.5; systemd-notify --ready; say ready; for i in 1 2 3; do {FEED}; sleep 0.5; done; [ $PRIMUS_ATTEMPT = 2 ] || sleep 60; say end"
    job = quick.submit(ledger.config(command, watchdog="1s", ready={"notify": True}, failover=failover(2), job=BACKOFF))
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("ready")) == 2 and len(failed(quick, job)) == 1


def test_progress_feeds_it(quick, ledger, shared_dir):
    """primus.progress() does, from a child of a shell; and what it said is seen."""
    script = shared_dir / "progress.py"
    script.write_text(PROGRESS)
    job = quick.submit(ledger.config("python3 /shared/progress.py 120; say end; true", watchdog="1s"))
    quick.wait_for(lambda: (top := json.loads(quick.primusctl("top", job, "--json", user="ml")))["executors"]
                   and top["executors"][0].get("values", {}).get("progressStep", 0) > 0, timeout=20, what="its progress")
    assert quick.wait_job(job) == 0
    assert len(ledger.entries("end")) == 1 and not failed(quick, job)


def test_sessions_and_freezing(quick, ledger):
    """A session is no executor. What has a watchdog is not frozen, since that would kill it."""
    job = quick.submit(ledger.config(f"while :; do {FEED}; sleep 0.3; done", watchdog="1s"))
    quick.wait_state(job, "RUNNING")
    assert quick.primusctl("exec", job, "0", "--", "sleep", "2.5", user="ml") == ""
    r = quick.run("n1", "primusctl", "suspend", "--freeze", str(job), user="ml")
    assert r.returncode == 1 and "has a watchdog" in r.stderr, r.stderr
    assert not failed(quick, job)
    quick.primusctl("kill", job)


def test_wrong(quick, ledger):
    r = quick.run("n1", "sh", "-c", "cat > /tmp/w.json && primusctl validate /tmp/w.json", input=json.dumps(ledger.config("x", watchdog="10ms")), user="ml")
    assert r.returncode == 1 and "watchdog: must be 1s to 1d" in r.stderr + r.stdout, r.stderr + r.stdout
