# SPDX-License-Identifier: Apache-2.0
"""Whom a host serves: masterd refuses early and with a sentence, the host refuses whatever masterd says."""
import json
import os
import shutil
import subprocess
import time

import pytest
from sandbox import AGENTD, Cluster, cluster_name

SYSTEM = ("messagebus", "www-data", "nobody", "primus")
JOB = {"name": "who", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 8, "command": "id -u; sleep 2"}]}


@pytest.fixture(scope="module")
def hosts(build, tmp_path_factory):
    shared = tmp_path_factory.mktemp("serving")
    shutil.copy(os.path.join(build, "tests", "fake-master"), shared / "fake-master")
    with subprocess.Popen([shared / "fake-master", shared, "n2", "17747"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
        time.sleep(1)  # it has made identities
        running.kill()
    os.chmod(shared, 0o1777)
    for parent in shared.parents[:2]:
        os.chmod(parent, 0o755)
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared}:/shared"]) as cluster:
        cluster.wait_nodes()
        yield cluster


def set_conf(cluster, node, text):
    """Other settings of the agent there, which has registered with them by the end."""
    cluster.exec(node, "sh", "-c", f"mkdir -p /etc/primus/agentd.conf.d; cat > /etc/primus/agentd.conf.d/50-serve.conf; systemctl restart {AGENTD}",
                 input=f"[Agent]\n{text}\n")
    cluster.wait_for(lambda: "Registered" in cluster.exec(node, "systemctl", "show", "-P", "StatusText", AGENTD), 20, "a registration")
    cluster.wait_nodes()


def submit(cluster, user, job=JOB):
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp /tmp/who.XXXXXX); cat > $f; chmod 644 $f; echo $f", input=json.dumps(job)).strip()
    return cluster.run("n1", "primusctl", "submit", path, user=user)


def uid_of(cluster, node, user):
    return int(cluster.exec(node, "id", "-u", user))


@pytest.mark.parametrize("user", SYSTEM)
def test_system_accounts_do_not_submit(hosts, user):
    done = submit(hosts, user)
    assert done.returncode != 0 and f"uid {uid_of(hosts, 'n1', user)}" in done.stderr, done.stdout + done.stderr
    assert "MinUid=" in done.stderr or "no person" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_users_do(hosts):
    number = hosts.submit(JOB)
    assert hosts.wait_job(number) == 0
    assert hosts.primusctl("logs", str(number)).strip() == "1000"


def test_placement_leaves_a_host_out(hosts):
    """eve is not served by n2: her executors go to n1; what is bound to n2 waits, and why is said."""
    set_conf(hosts, "n2", "DenyUsers=eve")
    try:
        spread = json.loads(json.dumps(JOB))
        spread["role"][0].update(num=2, command="true")
        number = hosts.submit(spread, user="eve")
        assert hosts.wait_job(number, user="eve") == 0
        assert {e["node"] for e in hosts.primusctl_json("status", str(number), user="eve")["executors"]} == {"n1"}
        spread["role"][0].update(num=1, nodes="n2")
        number = hosts.submit(spread, user="eve")
        hosts.wait_for(lambda: "not for this user" in hosts.primusctl("why", str(number), user="eve"), 15, "the reason")
        hosts.primusctl("kill", str(number), user="eve")
        number = hosts.submit(spread)
        assert hosts.wait_job(number) == 0
    finally:
        set_conf(hosts, "n2", "")


def test_nobody_serves_her(hosts):
    for node in hosts.nodes:
        set_conf(hosts, node, "AllowUsers=ml")
    try:
        done = submit(hosts, "eve")
        assert done.returncode != 0 and "No host of the cluster runs anything as uid 1001" in done.stderr
        number = hosts.submit(JOB)
        assert hosts.wait_job(number) == 0
    finally:
        for node in hosts.nodes:
            set_conf(hosts, node, "")


def test_by_group(hosts):
    """What only the host can tell: it is asked, says no, and the job goes elsewhere. A session is of who was let in."""
    for node in hosts.nodes:
        hosts.exec(node, "sh", "-c", "getent group lab >/dev/null || groupadd -g 3456 lab; usermod -aG lab ml")
    set_conf(hosts, "n2", "AllowGroups=lab")
    try:
        job = json.loads(json.dumps(JOB))
        job["role"][0].update(num=2, command="id -Gn; sleep 2", scheduleStrategy={"maxReplicasPerNode": 1})
        number = hosts.submit(job)
        assert hosts.wait_job(number) == 0
        assert "lab" in hosts.primusctl("logs", str(number), "worker/0")
        job["role"][0].update(num=1, command="true", scheduleStrategy={}, nodes="n1,n2")
        for _ in range(2):
            number = hosts.submit(job, user="eve")
            assert hosts.wait_job(number, user="eve") == 0
            assert hosts.primusctl_json("status", str(number), user="eve")["executors"][0]["node"] == "n1"
    finally:
        set_conf(hosts, "n2", "")


def said(fake, what):
    """The next line of the fake master's with that word in it."""
    for line in fake.stdout:
        if what in line:
            return line
    raise AssertionError(f"no {what}")


def test_the_host_itself_refuses(hosts):
    """A master that may say anything: the last test, n2 follows it from here on."""
    with hosts.process("n2", "/shared/fake-master", "/shared", "n2", "17747", "20s", "1", "1h", stdin=subprocess.PIPE) as fake:
        hosts.exec("n2", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /run/primus/agent/link; cp /shared/ca.crt /shared/node.crt /shared/node.key /etc/primus/node/; "
                   "chmod 600 /etc/primus/node/node.key; rm -f /etc/primus/agentd.conf.d/50-serve.conf; "
                   f"printf '[Agent]\\nMaster=127.0.0.1:17747\\nDenyUsers=eve\\n' > /etc/primus/agentd.conf.d/99-test.conf; systemctl start {AGENTD}")
        said(fake, "registered")
        uids = [uid_of(hosts, "n2", user) for user in SYSTEM] + [0, 1, 999, 1001, 61500, 65534, 65535, 4294967294]
        for job, uid in enumerate(uids, 1):
            fake.stdin.write(f"start {job} w 0 1 {uid} -- /bin/sh -c 'id > /tmp/ran-{uid}'\n")
            fake.stdin.flush()
            line = said(fake, f"start {job} w 0 1")
            assert "org.primus.Error.NotServed" in line and "host n2 runs nothing as uid" in line, (uid, line)
        assert hosts.run("n2", "sh", "-c", "ls /tmp/ran-* /var/lib/primus-agent/work/*").stdout == "", "nothing was made for any of them"
        assert hosts.exec("n2", "systemctl", "list-units", "--all", "--plain", "--no-legend", "primus-*.service", "-t", "service").count("w-0") == 0
        fake.stdin.write("start 99 w 0 1 1000 -- /bin/true\n")
        fake.stdin.flush()
        assert "done" in said(fake, "start 99 w 0 1")
