# SPDX-License-Identifier: Apache-2.0
"""What one user has on a host does not keep another from it."""
import contextlib
import json
import time

import pytest
from sandbox import AGENTD, MASTERD

SLOW = 540  # more than PID 1 may have match rules on the bus, and than the agent has jobs wait in systemd


@pytest.fixture
def pair(new_cluster):
    return new_cluster(2, conf=["masterd.conf:Master.QuarantineScore=0", "agentd.conf:Agent.ExecutorsPerUserMax=700"])


def role(num, command="exec sleep 1000", **keys):
    return {"name": "share", "nodes": "n2", "stopGrace": "1s",
            "role": [{"roleName": "worker", "num": num, "vcores": 0, "memoryMb": 0, "command": command, **keys}]}


def activating(cluster, node):
    return cluster.exec(node, "systemctl", "list-units", "--plain", "--no-legend", "--state=activating", "primus-*.service").count("\n")


def match_rules(cluster, node):
    """Of PID 1, on the bus."""
    text = cluster.exec(node, "busctl", "--json=short", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus",
                        "org.freedesktop.DBus.Debug.Stats", "GetAllMatchRules")
    owner = json.loads(cluster.exec(node, "busctl", "--json=short", "call", "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                    "org.freedesktop.DBus", "GetNameOwner", "s", "org.freedesktop.systemd1"))["data"][0]
    return len(json.loads(text)["data"][0].get(owner, []))


def test_starts_that_last(pair):
    """A user's executors that say for a day that they are about to be ready: others start, and the job dies at a word."""
    slow = pair.submit(role(SLOW, ready={"notify": True, "timeout": "1d"}))
    pair.wait_for(lambda: activating(pair, "n2") == SLOW, 120, f"{SLOW} that systemd has begun to start")
    assert match_rules(pair, "n2") < 450
    for restart in (False, True):
        if restart:  # all of them are asked for anew
            pair.exec("n1", "systemctl", "restart", MASTERD)
            pair.wait_nodes()
        number = pair.submit(role(1), user="eve")
        pair.wait_for(lambda number=number: pair.status(number)["state"] == "RUNNING", 10, "the other user's job to run")
        pair.primusctl("kill", str(number), user="eve")
    # What is about to start stops by a job of systemd's, which waits for no other.
    begin = time.monotonic()
    pair.primusctl("kill", str(slow))
    assert pair.wait_job(slow, timeout=240) == 3
    print(f"measured: {SLOW} that are about to start stop in {time.monotonic() - begin:.1f} s")
    pair.wait_for(lambda: activating(pair, "n2") == 0, 30, "nothing left of them")
    assert pair.exec("n2", "systemctl", "is-active", AGENTD).strip() == "active"
    # PID 1 still is on the bus and starts units.
    again = pair.submit(role(1, "true"))
    assert pair.wait_job(again) == 0


def test_bound_of_a_user(pair):
    """One executor too many waits, for what it says; the host takes another user's, and is not blamed."""
    pair.exec("n2", "sh", "-c", "printf '[Agent]\\nExecutorsPerUserMax=3\\n' > /etc/primus/agentd.conf.d/99-test.conf; systemctl restart " + AGENTD)
    pair.wait_nodes()
    number = pair.submit(role(4))
    pair.wait_for(lambda: [e["state"] for e in pair.status(number)["executors"]].count("RUNNING") == 3, 30, "three that run")
    pair.wait_for(lambda: "ExecutorsPerUserMax" in pair.primusctl("events", str(number)), 10, "the reason in the job's story")
    other = pair.submit(role(3), user="eve")
    pair.wait_state(other, "RUNNING")
    assert "QUARANTINED" not in pair.primusctl("nodes", user="root")
    # The bound counts what is there: room comes back.
    pair.primusctl("scale", str(number), "worker=2")
    pair.wait_for(lambda: [e["state"] for e in pair.status(number)["executors"]].count("RUNNING") == 2, 30, "two that run")


# Holds connections to the feed's socket and says nothing, dialling again what is hung up, until it is killed.
HOLD = """
import select, socket, time
held, poll = {}, select.epoll()
print("holding", flush=True)
while True:
    while len(held) < 300:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(5)
        try:
            s.connect("/run/primus/agent/feed.sock")
        except OSError:
            break
        held[s.fileno()] = s
        poll.register(s.fileno(), select.EPOLLRDHUP)
    time.sleep(0.1)
    for fd, event in poll.poll(0):
        poll.unregister(fd)
        held.pop(fd).close()
"""


def test_feed_is_held(pair):
    """Two users, outside of jobs and in them, hold all that they can of the feed's socket; a third one's data comes as ever."""
    pair.exec("n2", "sh", "-c", "cat > /tmp/hold.py; seq 2000 > /tmp/lines; chmod 644 /tmp/hold.py /tmp/lines", input=HOLD)
    with contextlib.ExitStack() as stack:
        for user in ("ml", "nobody"):
            assert stack.enter_context(pair.process("n2", "python3", "/tmp/hold.py", user=user)).stdout.readline() == "holding\n"
        inside = pair.submit(role(2, "exec python3 /tmp/hold.py"))
        pair.wait_state(inside, "RUNNING")
        data = {"name": "fed", "nodes": "n2",
                "inputManager": {"fileConfig": {"inputs": [{"name": "lines", "spec": {"pathPattern": "/tmp/lines", "textInput": {}}}]}},
                "role": [{"roleName": "worker", "num": 1, "vcores": 0, "memoryMb": 0, "command": "test $(wc -l) = 2000",
                          "inputPolicy": "STREAMING"}]}
        before = time.monotonic()
        assert pair.wait_job(pair.submit(data, user="eve"), user="eve", timeout=60) == 0
        assert time.monotonic() - before < 30
        pair.primusctl("kill", str(inside))
