# SPDX-License-Identifier: Apache-2.0
"""What `primusctl top` shows of a job that runs: measured by agents, told to masterd, seen by people."""
import json

TELEMETRY = 5  # seconds between what an agent tells

BUSY = "say begin; while :; do :; done"
WRITER = ("python3 -c \"import time\n"
          "while True:\n"
          "    open('/tmp/w', 'wb').write(bytes(1 << 20)); time.sleep(0.1)\"")


LIVE = """
import os, pty, select, time
pid, fd = pty.fork()
if pid == 0:
    os.execvpe("primusctl", ["primusctl", "top", "JOB"], {**os.environ, "TERM": "xterm"})
seen, end = b"", time.monotonic() + 30
while time.monotonic() < end and b"worker/1" not in seen:
    if select.select([fd], [], [], 1)[0]:
        seen += os.read(fd, 65536)
os.write(fd, b"q")
_, status = os.waitpid(pid, 0)
assert b"worker/1" in seen and status == 0, (status, seen)
print("good")
"""


def top(cluster, job, user="ml"):
    return json.loads(cluster.primusctl("top", str(job), "--json", user=user))


def test_top(quick, ledger):
    """A role that computes and one that writes, each by its numbers; a history grows, and is kept when it is over."""
    config = ledger.config(BUSY, num=2, vcores=0.5, memoryMb=64, job={"name": "busy"})
    config["role"].append({**ledger.role(WRITER), "roleName": "writer"})
    job = quick.submit(config)
    quick.wait_state(job, "RUNNING")

    def measured():
        o = top(quick, job)
        return o["executors"] and all("cpu" in e["rates"] for e in o["executors"])
    quick.wait_for(measured, timeout=4 * TELEMETRY, what="two samples of each")
    o = top(quick, job)
    worker, writer = o["roles"]
    print("measured:", json.dumps({r["name"]: r["mean"] for r in o["roles"]}))
    assert (worker["running"], worker["measured"], worker["executors"]) == (2, 2, 2)
    assert worker["mean"]["cpu"] > 0.1 and writer["mean"]["cpu"] < worker["mean"]["cpu"]
    assert o["executors"][0]["values"]["cpuUsec"] > 0 and o["executors"][0]["ageUsec"] < 3 * TELEMETRY * 1e6
    if "write" in writer["mean"]:  # where the host can tell
        assert 1e6 < writer["sum"]["write"] < 1e8
    quick.wait_for(lambda: len(top(quick, job)["roles"][0]["history"].get("cpu", [])) >= 2, timeout=30, what="a history")

    # One that leaves its host is measured on the next; a killed master is told anew.
    text = quick.primusctl("top", str(job), "--once", user="ml")
    assert "worker/0" in text and "writer" in text
    rows = json.loads(quick.primusctl("top", "--json", user="ml"))
    assert [row["running"] for row in rows if row["job"] == job] == [3]
    quick.kill9("n1", "primus-masterd")
    quick.wait_nodes()
    quick.wait_for(measured, timeout=6 * TELEMETRY, what="the samples after a restart of masterd")
    quick.wait_for(lambda: len(top(quick, job)["roles"][0]["history"].get("cpu", [])) >= 2, timeout=30, what="a history")
    quick.kill(job)
    ended = top(quick, job)
    assert not ended["executors"] and ended["roles"][0]["running"] == 0
    # How it did is there behind its end, and behind that of the master; and not for who may not look.
    assert len(ended["roles"][0]["history"]["cpu"]) >= 2 and max(x or 0 for x in ended["roles"][0]["history"]["cpu"]) > 0.1
    quick.kill9("n1", "primus-masterd")
    quick.wait_nodes()
    assert top(quick, job)["roles"] == ended["roles"]
    assert quick.run("n1", "primusctl", "top", str(job), "--json", user="eve").returncode == 1
    quick.primusctl("delete", str(job), user="ml")
    assert quick.run("n1", "primusctl", "top", str(job), "--json", user="ml").returncode == 1


def test_live(quick, ledger):
    """On a terminal, from another host than the job's; q ends it."""
    job = quick.submit(ledger.config(BUSY, num=2))
    quick.wait_state(job, "RUNNING")
    script = LIVE.replace("JOB", str(job))
    assert "good" in quick.exec("n1", "python3", "-c", script, user="ml")
    quick.primusctl("kill", str(job))
