# SPDX-License-Identifier: Apache-2.0
"""Calls from hosts that are not the master's, and from inside jobs."""
import json
import time

from sandbox import AGENTD, MASTERD

SOCKET = "/run/primus/agent/master.sock"
JOB = {"name": "far", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "command": "echo hello; exec sleep 600"}]}


def submit(cluster, node, config, *options, user="ml"):
    done = cluster.run(node, "sh", "-c", "umask 077; f=$(mktemp /tmp/job.XXXXXX); cat > $f; exec primusctl submit --json $* $f", "sh", *options, user=user, input=json.dumps(config))
    return json.loads(done.stdout)["job"] if done.returncode == 0 else done


def test_from_another_host(cluster):
    """Submitted, watched and steered as oneself from a host that has no masterd."""
    job = submit(cluster, "n2", JOB)
    cluster.wait_state(job, "RUNNING", timeout=30)
    assert cluster.status(job)["owner"] == 1000
    assert cluster.exec("n2", "primusctl", "logs", str(job), user="ml").endswith("hello\n")
    with cluster.process("n3", "primusctl", "wait", str(job), user="ml") as waits:
        other = cluster.run("n3", "primusctl", "kill", str(job), user="eve")
        assert other.returncode == 1 and "only" in other.stderr, other
        cluster.exec("n2", "primusctl", "kill", "--reason=seen", str(job), user="ml")
        assert waits.wait(20) == 3
    assert "seen" in cluster.exec("n3", "primusctl", "status", str(job), user="ml")
    assert cluster.exec("n2", "busctl", f"--address=unix:path={SOCKET}", "get-property", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager", "NumNodes", user="ml") == "u 3\n"


# Without the system bus, which is hidden from executors.
INSIDE = """
set -e
! test -r /run/dbus/system_bus_socket
id -u
child=$(primusctl run --detach --parsable --name=child --mem=64M --cpus=0.1 -- sleep 300)
primusctl list --json | grep -c '"name": *"child"'
primusctl kill --reason=enough $child
primusctl wait $child || echo ended $?
"""


def test_from_inside_a_job(cluster):
    """An executor submits, follows and kills as its user, on every host, the master's as well."""
    for node in cluster.nodes:
        said = cluster.exec("n1", "primusctl", "run", "--no-env", f"--hosts={node}", "--mem=128M", "--cpus=0.1", "--", "sh", "-c", INSIDE, user="ml", timeout=60)
        said = said.splitlines()
        assert said[:2] == ["1000", "1"] and said[-2].endswith("KILLED") and said[-1] == "ended 3", said


def test_not_for_others(cluster):
    """Never root, nor what polkit would allow; and the line of each change has the host that it came from."""
    job = submit(cluster, "n2", JOB)
    for arguments in (["list"], ["kill", str(job)], ["node", "drain", "n3"]):
        done = cluster.run("n2", "primusctl", *arguments, user="root")
        assert done.returncode != 0 and "root are taken on the master's own" in done.stderr, done
    done = cluster.run("n2", "primusctl", "node", "drain", "n3", user="ml")
    assert done.returncode == 1 and "from another host it is not asked" in done.stderr, done
    assert set(cluster.node_states().values()) == {"READY"}
    cluster.exec("n2", "primusctl", "kill", str(job), user="ml")

    def kills():
        lines = cluster.exec("n1", "journalctl", "-q", "-o", "json", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_METHOD=Job.Kill", f"PRIMUS_JOB={job}").splitlines()
        return [json.loads(line) for line in lines]

    cluster.wait_for(kills, 10, "the line of the kill")
    (kill,) = kills()
    assert (kill["PRIMUS_AUDIT_FROM"], kill["PRIMUS_AUDIT_UID"], kill["PRIMUS_AUDIT_RESULT"]) == ("n2", "1000", "ok")
    assert "uid 1000 on n2" in kill["MESSAGE"]
    drains = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_METHOD=Node.Drain").splitlines()
    assert drains and "polkit:far" in drains[-1] and "AccessDenied" in drains[-1], drains


def test_over_kills(cluster):
    """Who waits on another host is told, whatever was killed meanwhile."""
    job = submit(cluster, "n2", JOB)
    cluster.wait_state(job, "RUNNING", timeout=30)
    with cluster.process("n3", "primusctl", "wait", str(job), user="ml") as waits:
        cluster.wait_for(lambda: cluster.run("n3", "grep", "-c", SOCKET, "/proc/net/unix").stdout == "2\n", 10, "its connection")
        time.sleep(0.5)  # it has asked about the job
        cluster.kill9("n1", MASTERD)
        cluster.wait_nodes()
        cluster.kill9("n3", AGENTD)
        cluster.wait_nodes()
        cluster.primusctl("kill", str(job))
        said = waits.communicate(timeout=20)
        assert waits.returncode == 3, said
    # What is asked while masterd is away waits for it.
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    with cluster.process("n2", "primusctl", "list", "--json", user="ml") as asks:
        cluster.exec("n1", "systemctl", "start", MASTERD)
        assert asks.communicate(timeout=30)[0].strip() == "[]" and asks.returncode == 0


def test_settings(new_cluster):
    """RelayFrom= of masterd.conf and Relay= of agentd.conf: sentences, and a reload changes them."""
    cluster = new_cluster(3, conf=["masterd.conf:Master.RelayFrom=n2:ml n3"])
    cluster.exec("n3", "sh", "-c", "printf '[Agent]\nDenyUsers=eve\n' > /etc/primus/agentd.conf.d/far.conf && systemctl restart primus-agentd")
    cluster.wait_nodes()

    def asked(node, user):
        done = cluster.run(node, "primusctl", "list", user=user)
        return "" if done.returncode == 0 else done.stderr

    assert asked("n2", "ml") == "" and asked("n3", "ml") == "" and asked("n1", "eve") == ""
    assert "takes no calls of uid 1001 from host n2 (RelayFrom=" in asked("n2", "eve")
    assert "Host n3 does not serve uid 1001" in asked("n3", "eve")
    cluster.exec("n1", "sh", "-c", "sed -i s/RelayFrom=.*/RelayFrom=n3/ /etc/primus/masterd.conf.d/*.conf && systemctl reload primus-masterd")
    cluster.wait_for(lambda: "RelayFrom=" in asked("n2", "ml"), 10, "the new setting")
    assert asked("n3", "ml") == ""
    cluster.exec("n3", "sh", "-c", "printf '[Agent]\nRelay=no\n' > /etc/primus/agentd.conf.d/far.conf && systemctl restart primus-agentd")
    cluster.wait_nodes()
    assert "which is not the master's" in asked("n3", "ml")
    refused = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD, "PRIMUS_AUDIT=1", "PRIMUS_AUDIT_FROM=n2").splitlines()
    assert any("uid 1001 on n2" in line and "AccessDenied" in line for line in refused), refused
