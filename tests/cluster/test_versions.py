# SPDX-License-Identifier: Apache-2.0
"""Versions that do not fit together: the refusal says which side to upgrade, everywhere one looks, and costs no executor."""
import json
import os
import shutil
import subprocess
import time

import pytest
from ledger import Ledger
from sandbox import AGENTD, Cluster, cluster_name
from upgrading import main_pids

LOST = 4


@pytest.fixture(scope="module")
def hosts(build, tmp_path_factory):
    shared = tmp_path_factory.mktemp("versions")
    for program in ("fake-master", "rogue-agent"):
        shutil.copy(os.path.join(build, "tests", program), shared / program)
    with subprocess.Popen([shared / "fake-master", shared, "n2", "17747"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        time.sleep(1)  # it has made identities
        running.kill()
    os.chmod(shared, 0o1777)
    for parent in shared.parents[:2]:
        os.chmod(parent, 0o755)
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared}:/shared"],
                 conf=[f"masterd.conf:Master.LostSec={LOST}", "masterd.conf:Master.SuspectSec=2", "masterd.conf:Master.QuarantineScore=0"]) as cluster:
        cluster.wait_nodes()
        cluster.shared = shared
        yield cluster


def hello(cluster, seconds, major, minor, build):
    """Beside the test: an agent of another version on n2, in the place of the real one, that says Hello each second."""
    return cluster.process("n2", "/shared/rogue-agent", "n1", "7747", str(seconds), "1", str(major), str(minor), build)


def node(cluster, name="n2"):
    return next(row for row in cluster.primusctl_json("nodes", user="root") if row["name"] == name)


@pytest.mark.parametrize("major,minor,theirs,which", [(1, 2, "0.3", "master"), (0, 9, "0.0.9", "agent"), (2, 0, "7.0", "master")])
def test_agent_is_refused(hosts, major, minor, theirs, which):
    """The host is SUSPECT with the reason, not LOST, as long as its agent says Hello; what runs there runs on."""
    ledger = Ledger(hosts.shared)
    job = hosts.submit(ledger.config("sleep 1000", job={"nodes": ["n2"]}))
    hosts.wait_for(lambda: main_pids(hosts, job), 15, "the job")
    before = main_pids(hosts, job)
    hosts.exec("n2", "systemctl", "stop", AGENTD)
    try:
        with hello(hosts, 30, major, minor, theirs) as other:
            hosts.wait_for(lambda: "upgrade the" in node(hosts)["reason"], 10, "the reason")
            said = f"agent {theirs} speaks link {major}.{minor}, this master ("
            end = time.monotonic() + 2 * LOST
            while time.monotonic() < end:
                row = node(hosts)
                assert row["state"] == "SUSPECT" and row["reason"].startswith(said) and row["reason"].endswith(f"upgrade the {which}") and row["version"] == theirs, row
                time.sleep(0.5)
            assert said in other.stdout.readline()
            assert said in hosts.primusctl("nodes", user="root") and said in hosts.primusctl("node", "show", "n2", user="root")
            assert main_pids(hosts, job) == before and not hosts.events(job, "executor-lost")
            # Nothing new goes there.
            waits = hosts.submit(ledger.config("true", job={"nodes": ["n2"]}))
            time.sleep(1)
            assert not main_pids(hosts, waits) and hosts.status(waits)["state"].upper() != "SUCCEEDED"
        # It has gone, too: now the host is silent like any other.
        hosts.wait_for(lambda: node(hosts)["state"] == "LOST", 3 * LOST, "LOST")
    finally:
        hosts.exec("n2", "systemctl", "start", AGENTD)
    hosts.wait_nodes()
    assert node(hosts)["reason"] == "" and node(hosts)["version"] != theirs
    journal = hosts.exec("n1", "journalctl", "-q", "--no-pager", "-o", "cat", "-u", "primus-masterd", "-g", f"Refused the agent on n2: agent {theirs} ")
    assert len(journal.splitlines()) == 1  # not once a second
    hosts.kill(job, waits)


@pytest.mark.parametrize("minor,theirs", [(0, "0.1"), (1, "0.2")])
def test_agent_is_welcome(hosts, minor, theirs):
    hosts.exec("n2", "systemctl", "stop", AGENTD)
    with hello(hosts, 3, 1, minor, theirs) as other:
        assert other.stdout.readline().strip() == "welcome"
    hosts.exec("n2", "systemctl", "start", AGENTD)
    hosts.wait_nodes()


def refused(cluster):
    return json.loads(cluster.exec("n2", "busctl", "get-property", "--json=short", "org.primus.Agent1", "/org/primus/Agent1",
                                   "org.primus.Agent1.Manager", "Refused"))["data"]


@pytest.mark.parametrize("order,text", [("refuse yes", "this master (y) 9.0: upgrade the agent"), ("version 1 2", "master fake speaks link 1.2, this agent ("),
                                        ("version 9 0", "upgrade the agent")])
def test_agent_says_so(hosts, order, text):
    """On the agent's own host, whoever of the two refuses; and it does not ask all the time. The last tests here: n2 follows another
    master."""
    with hosts.process("n2", "/shared/fake-master", "/shared", "n2", "17747", "20s", "1", "1h", stdin=subprocess.PIPE) as fake:
        fake.stdin.write(order + "\n")
        fake.stdin.flush()
        hosts.exec("n2", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /run/primus/agent/link; cp /shared/ca.crt /shared/node.crt /shared/node.key /etc/primus/node/; "
                   "chmod 600 /etc/primus/node/node.key; mkdir -p /etc/primus/agentd.conf.d; "
                   f"printf '[Agent]\\nMaster=127.0.0.1:17747\\n' > /etc/primus/agentd.conf.d/99-test.conf; systemctl start {AGENTD}")
        hosts.wait_for(lambda: text in refused(hosts), 20, "the refusal")
        status = hosts.exec("n2", "systemctl", "show", "-P", "StatusText", AGENTD)
        assert text in status and "executors go on" in status
        doctor = hosts.run("n2", "primusctl", "doctor")
        assert doctor.returncode == 1 and text in doctor.stdout and "is not with masterd at 127.0.0.1:17747" in doctor.stdout
        time.sleep(5)
        journal = hosts.run("n2", "journalctl", "-q", "--no-pager", "-o", "cat", "-u", AGENTD, "-g", "masterd refused|Not following", "--since=-5s").stdout
        assert len(journal.splitlines()) <= 1, journal
        # A master of the right version, at the same place: followed when it is asked again.
        fake.stdin.write("refuse no\nversion 1 0\n")
        fake.stdin.flush()
        hosts.exec("n2", "systemctl", "restart", AGENTD)
        hosts.wait_for(lambda: refused(hosts) == "", 20, "no refusal any more")
        hosts.wait_for(lambda: "Registered" in hosts.exec("n2", "systemctl", "show", "-P", "StatusText", AGENTD), 20, "a registration")
