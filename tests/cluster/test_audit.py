# SPDX-License-Identifier: Apache-2.0
"""The audit: one line in the journal for each call that changes something and for each refusal, with who and what; none for
what is only read. Calls are made as the owner, as another user and as root."""
import json
import os
import re
import time

import pytest
from bus_calls import BUSABLE, CLOSED, MASTER, call, on_bus
from sandbox import SOURCE

CONFIG = {"name": "audit", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "sleep 600"}]}
UIDS = {"ml": 1000, "eve": 1001, "root": 0}


def table():
    """What masterd's table says of each method."""
    text = open(os.path.join(SOURCE, "masterd/caller/audit-table.c"), encoding="utf-8").read()
    return {(row[0], row[1]): row[2] for row in re.findall(r'\{ "(\w+)", "(\w+)", AUDIT_(\w+),', text)}


class Audit:
    """The lines since it was made."""

    def __init__(self, cluster, node="n1", unit="primus-masterd"):
        self.cluster, self.node, self.unit, self.since = cluster, node, unit, time.time_ns() // 1000

    def lines(self):
        said = self.cluster.exec(self.node, "journalctl", "-q", "--no-pager", "-o", "json", f"--since=@{self.since // 1000000}", "-u", self.unit, "PRIMUS_AUDIT=1")
        return [line for line in map(json.loads, said.splitlines()) if int(line["__REALTIME_TIMESTAMP"]) > self.since]

    def one(self, method, **fields):
        """Waits for lines of that method, and returns the one that there is."""
        mine = []

        def some():
            mine[:] = [line for line in self.lines() if line.get("PRIMUS_AUDIT_METHOD") == method]
            return mine

        self.cluster.wait_for(some, 20, f"a line for {method}")
        assert len(mine) == 1, mine
        wrong = {name: (mine[0].get(name), value) for name, value in fields.items() if mine[0].get(name) != value}
        assert not wrong, mine
        return mine[0]


def changing(interface):
    return [method for (where, method), kind in sorted(table().items()) if where == interface and kind == "CHANGES"]


# Nothing of the name that the call has, so nobody's.
NOT_THERE = ("DeleteSavepoint", "PinCheckpoint", "ForgetCheckpoint")


@pytest.mark.parametrize("interface", ("Job", "Node", "Manager"))
@pytest.mark.parametrize("user", ("eve", "ml", "root"))
def test_each_changing_call_has_one_line(cluster, interface, user):
    """With arguments that do not harm: whether it was done or refused, there is one line that says who, what and how it ended."""
    job = cluster.submit(CONFIG)
    try:
        cluster.wait_state(job, "RUNNING")
        path = {"Manager": "/org/primus/Master1", "Job": f"/org/primus/Master1/job/{job}", "Node": "/org/primus/Master1/node/n3"}[interface]
        last = ("KillWith", "Kill")  # of a job that has ended others would make another one
        for method in [m for m in changing(interface) if m not in last] + list(last) * (interface == "Job"):
            audit = Audit(cluster)
            done = call(cluster, path, interface, method, user)
            line = audit.one(f"{interface}.{method}", PRIMUS_AUDIT_UID=str(UIDS[user]), PRIMUS_AUDIT_OBJECT=path, PRIMUS_AUDIT_WHAT="call")
            assert int(line["PRIMUS_AUDIT_PID"]) > 1 and int(line["PRIMUS_AUDIT_AT"]) > 0
            assert (line["PRIMUS_AUDIT_RESULT"] == "ok") == (done.returncode == 0), (line, done)
            closed = method in CLOSED[interface]
            if user == "root":
                allowed = {"root"} if closed and method not in NOT_THERE else {"everybody", "root"}
            elif user == "ml" and interface == "Job":
                allowed = {"owner"}
            elif not closed or method in (*NOT_THERE, "Backup"):
                allowed = {"everybody"}  # Backup decides by itself
            else:
                allowed = {"polkit:no", "polkit:challenge", "polkit:absent"}
                assert line["PRIMUS_AUDIT_ACTION"].startswith("org.primus.manage-")
                assert line["PRIMUS_AUDIT_RESULT"] != "ok"
            assert line["PRIMUS_AUDIT_PERMISSION"] in allowed, line
            if interface == "Job":
                assert line["PRIMUS_JOB"] == str(job)
            if interface == "Node":
                assert line["PRIMUS_NODE"] == "n3"
    finally:
        cluster.kill(job)
        if interface == "Node":
            cluster.run("n1", "primusctl", "node", "uncordon", "n3")
            cluster.run("n1", "busctl", "call", MASTER, "/org/primus/Master1/node/n3", f"{MASTER}.Node", "CancelMaintenance", "t", "4000000000000000")
        cluster.wait_nodes()


def test_what_is_read_has_none(cluster):
    job = cluster.submit(CONFIG)
    try:
        cluster.wait_state(job, "RUNNING")
        audit = Audit(cluster)
        for interface, path in (("Manager", "/org/primus/Master1"), ("Job", f"/org/primus/Master1/job/{job}"), ("Node", "/org/primus/Master1/node/n3")):
            for (where, method), kind in table().items():
                if where == interface and kind == "READS" and method not in ("ReadLog", "ReadSession"):
                    call(cluster, path, interface, method, "ml")
        assert [line for line in audit.lines() if line.get("PRIMUS_AUDIT_UID") == "1000" and line["PRIMUS_AUDIT_PERMISSION"] in ("owner", "everybody")] == []
        audit = Audit(cluster)
        call(cluster, f"/org/primus/Master1/job/{job}", "Job", "GetConfig", "eve")
        audit.one("Job.GetConfig", PRIMUS_AUDIT_UID="1001")
    finally:
        cluster.kill(job)


def test_a_submit_says_which_job_and_no_secret(cluster):
    audit = Audit(cluster)
    script = r"""
bus.send_and_get_reply  # as from a unit of its own
print(json.dumps(call("Submit", "aya{sv}", config("sleep 600", **{}), {"env": ("aay", [b"KEY=hush-hush"]), "name": ("s", "secretive")})))
"""
    job = on_bus(cluster, "ml", script)[0]
    try:
        line = audit.one("Manager.Submit", PRIMUS_AUDIT_UID="1000", PRIMUS_AUDIT_PERMISSION="everybody", PRIMUS_AUDIT_RESULT="ok", PRIMUS_JOB=str(job))
        assert line["PRIMUS_AUDIT_ARGUMENTS"] == "options=env,name"
        assert "hush" not in json.dumps(line)
    finally:
        cluster.kill(job)


STAYS = r"""
import signal
job = DBusAddress("/org/primus/Master1/job/" + sys.argv[1], bus_name="org.primus.Master1", interface="org.primus.Master1.Job")
call("Kill", "s", "from a unit", address=job)
signal.pause()
"""


def test_the_unit_of_the_caller(cluster):
    """As long as the caller is there when systemd is asked, which it is at once."""
    job = cluster.submit(CONFIG)
    try:
        audit = Audit(cluster)
        cluster.exec("n1", "systemd-run", "--quiet", "--unit=audited-call", "--uid=ml", "python3", "-c", BUSABLE + STAYS, str(job))
        assert audit.one("Job.Kill")["PRIMUS_AUDIT_UNIT"] == "audited-call.service"
    finally:
        cluster.run("n1", "systemctl", "stop", "audited-call.service")
        cluster.kill(job)


ODD = "a\nPRIMUS_AUDIT_UID=0\n\x1b[2J\x7f\u2028é\\"


def test_what_users_write_stays_one_line(cluster):
    job = cluster.submit(CONFIG)
    audit = Audit(cluster)
    assert call_job_kill(cluster, job, ODD + "x" * 5000).returncode == 0
    line = audit.one("Job.Kill", PRIMUS_AUDIT_UID="1000", PRIMUS_AUDIT_RESULT="ok")
    for value in (line["PRIMUS_AUDIT_ARGUMENTS"], line["MESSAGE"]):
        assert re.fullmatch(r"[ -~]{1,1500}", value), value
    assert line["PRIMUS_AUDIT_ARGUMENTS"].startswith("reason=a\\x0aPRIMUS_AUDIT_UID=0\\x0a\\x1b[2J\\x7f\\xe2\\x80\\xa8\\xc3\\xa9\\x5cxxx")
    assert line["PRIMUS_AUDIT_ARGUMENTS"].endswith("...")


def call_job_kill(cluster, job, reason):
    return cluster.run("n1", "busctl", "call", MASTER, f"/org/primus/Master1/job/{job}", f"{MASTER}.Job", "Kill", "s", reason, user="ml")


def test_a_flood_of_refusals_is_counted(cluster):
    job = cluster.submit(CONFIG)
    try:
        audit = Audit(cluster)
        script = r"""
job = DBusAddress("/org/primus/Master1/job/" + sys.argv[1], bus_name="org.primus.Master1", interface="org.primus.Master1.Job")
for i in range(500): r = call("Kill", "s", "x", address=job)
print(json.dumps(r))
"""
        on_bus(cluster, "eve", script, str(job))
        # Another's are written all the while, and what eve may do is too.
        call(cluster, "/org/primus/Master1", "Manager", "CreateToken", "ml")
        audit.one("Manager.CreateToken", PRIMUS_AUDIT_UID="1000")
        begun, found = time.monotonic(), {}

        def all_told():
            lines = [line for line in audit.lines() if line.get("PRIMUS_AUDIT_UID") == "1001"]
            found["lines"] = [line for line in lines if line.get("PRIMUS_AUDIT_METHOD") == "Job.Kill"]
            found["counted"] = [int(line["PRIMUS_AUDIT_SUPPRESSED"]) for line in lines if line["PRIMUS_AUDIT_WHAT"] == "suppressed"]
            return len(found["lines"]) + sum(found["counted"]) >= 500

        cluster.wait_for(all_told, 150, "a line or a count of each")
        minutes = (time.monotonic() - begun) / 60 + 1
        assert len(found["lines"]) <= 120 * minutes and len(found["counted"]) <= minutes + 1
    finally:
        cluster.kill(job)


def test_a_session_has_a_line_on_its_host(cluster):
    job = cluster.submit(CONFIG)
    try:
        cluster.wait_state(job, "RUNNING")
        node = cluster.executor(job)["node"]
        there = Audit(cluster, node, "primus-agentd")
        here = Audit(cluster)
        done = cluster.run("n1", "primusctl", "exec", f"{job}", "worker/0", "--", "echo", "hello", user="ml")
        assert done.returncode == 0, done.stderr
        here.one("Job.OpenSession", PRIMUS_AUDIT_UID="1000", PRIMUS_AUDIT_RESULT="ok", PRIMUS_JOB=str(job))
        line = there.one("session", PRIMUS_AUDIT_UID="1000", PRIMUS_AUDIT_FOR_UID="1000", PRIMUS_JOB=str(job), PRIMUS_ROLE="worker", PRIMUS_INDEX="0",
                         PRIMUS_NODE=node)
        assert line["PRIMUS_AUDIT_ARGUMENTS"] == "echo hello" and f"primus-session-{job}-worker-0" in line["PRIMUS_AUDIT_OBJECT"]
    finally:
        cluster.kill(job)


def test_a_join_has_a_line(cluster):
    audit = Audit(cluster)
    token = cluster.exec("n1", "primusctl", "token", "create").strip().splitlines()[-1].split()[-1]
    made = audit.one("Manager.CreateToken", PRIMUS_AUDIT_UID="0", PRIMUS_AUDIT_PERMISSION="root", PRIMUS_AUDIT_RESULT="ok")
    assert token not in json.dumps(made)
    identity = re.search(r"token=([0-9a-f]{16})", made["PRIMUS_AUDIT_ARGUMENTS"])[1]
    done = cluster.run("n2", "unshare", "-m", "sh", "-c", "mount -t tmpfs none /etc/primus/node && primusctl join n1 --name n3 --no-start", input=token + "\n")
    line = audit.one("join", PRIMUS_NODE="n3", PRIMUS_AUDIT_TOKEN=identity)
    assert done.returncode != 0 and line["PRIMUS_AUDIT_RESULT"] != "ok" and line["PRIMUS_AUDIT_ADDRESS"]
    cluster.exec("n1", "primusctl", "token", "revoke", identity)
    audit.one("Manager.RevokeToken", PRIMUS_AUDIT_ARGUMENTS=f"id={identity}", PRIMUS_AUDIT_RESULT="ok")
    cluster.wait_nodes()
