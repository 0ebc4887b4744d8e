# SPDX-License-Identifier: Apache-2.0
"""The first five minutes: from what a package leaves on two hosts to a cluster of both."""
import json
import re
import time

import pytest
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

CONTACT = "primus-first-contact.service"


@pytest.fixture
def fresh(build):
    """Two hosts as the packages leave them: everything installed, nothing enabled, no setting changed."""
    with Cluster(cluster_name(), 2, primus=False, build=build) as cluster:
        for node in cluster.nodes:
            cluster.exec(node, "rm", "-f", "/etc/primus/agentd.conf.d/50-sandbox.conf")
        yield cluster


def show(cluster, node, unit, *properties):
    return cluster.exec(node, "systemctl", "show", "-P", ",".join(properties), unit).split("\n")[:-1]


def ready(cluster, names, timeout=20):
    def those():
        try:
            return cluster.node_states() == dict.fromkeys(names, "READY")
        except AssertionError:
            return False
    return cluster.wait_for(those, timeout, f"{names} are READY")


def test_one_command(fresh):
    """Both daemons at once, in one command, and after a reboot."""
    start = time.monotonic()
    done = fresh.run("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    assert done.returncode == 0, done.stderr
    ready(fresh, ["n1"])
    print(f"enable --now to READY: {time.monotonic() - start:.1f} s")
    assert "as node n1" in fresh.journal("n1", CONTACT)
    assert fresh.exec("n1", "cat", "/etc/primus/agentd.conf.d/10-join.conf").splitlines()[-1] == "Master=127.0.0.1:7747"
    # The token was nowhere but in memory, and there is none left.
    assert "primus1." not in fresh.exec("n1", "journalctl", "--no-pager", "-o", "export")
    assert fresh.run("n1", "grep", "-rlF", "primus1.", "/etc/primus", "/run", "/tmp").stdout == ""
    # Once.
    key = fresh.exec("n1", "sha256sum", "/etc/primus/node/node.key")
    fresh.exec("n1", "systemctl", "restart", MASTERD, AGENTD, CONTACT)
    ready(fresh, ["n1"])
    assert fresh.exec("n1", "sha256sum", "/etc/primus/node/node.key") == key


@pytest.mark.parametrize("first, second", [(AGENTD, MASTERD), (MASTERD, AGENTD)])
def test_either_order(fresh, first, second):
    fresh.exec("n1", "systemctl", "enable", "--now", first)
    if first == AGENTD:
        status = fresh.run("n1", "systemctl", "status", AGENTD).stdout
        assert "primusctl join MASTER" in status, status
    else:
        time.sleep(1)
        assert fresh.node_states() == {}, "a host with a master alone is no node"
    fresh.exec("n1", "systemctl", "enable", "--now", second)
    ready(fresh, ["n1"])


def test_not_on_other_hosts(fresh):
    """Where masterd is not enabled, nothing starts one."""
    fresh.exec("n2", "systemctl", "enable", "--now", AGENTD)
    assert fresh.run("n2", "systemctl", "is-active", AGENTD).stdout.strip() == "inactive"
    assert fresh.run("n2", "systemctl", "is-failed", CONTACT).stdout.strip() == "inactive"
    assert fresh.run("n2", "systemctl", "is-active", MASTERD).stdout.strip() == "inactive"
    assert fresh.exec("n2", "ls", "/etc/primus/node") == ""


def test_killed_half_way(fresh):
    """What masterd knows of already and this host does not: joined again."""
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD)
    for broken in ("rm /etc/primus/node/*", "rm -r /etc/primus/node/node.key; mkdir -p /etc/primus/.node.new; echo x > /etc/primus/.node.new/node.key"):
        fresh.exec("n1", "/usr/lib/primus/primus-join", "--local")
        fresh.exec("n1", "sh", "-c", broken)
    fresh.exec("n1", "systemctl", "enable", "--now", AGENTD)
    ready(fresh, ["n1"])
    assert re.fullmatch(r"ca.crt\nnode.crt\nnode.key\n", fresh.exec("n1", "ls", "/etc/primus/node"))


def test_another_masters_host(fresh):
    """Somebody wrote down that this host belongs elsewhere: that is not overruled, and said."""
    fresh.exec("n1", "sh", "-c", "printf '[Agent]\\nMaster=n2\\n' > /etc/primus/agentd.conf.d/90-site.conf")
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    fresh.wait_for(lambda: show(fresh, "n1", CONTACT, "ActiveState") == ["failed"], 10, "first contact gives up")
    assert "Master=n2 in agentd.conf is another host" in fresh.journal("n1", CONTACT)
    assert "systemctl status primus-first-contact" in fresh.journal("n1", AGENTD)


def test_a_master_that_listens_elsewhere(fresh):
    address = fresh.exec("n1", "sh", "-c", "ip -4 -o addr show host0 | awk '{print $4}' | cut -d/ -f1").strip()
    fresh.exec("n1", "sh", "-c", f"printf '[Master]\\nListen={address}:8000\\n' > /etc/primus/masterd.conf.d/90-site.conf")
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    ready(fresh, ["n1"])
    assert f"Master={address}:8000" in fresh.exec("n1", "cat", "/etc/primus/agentd.conf.d/10-join.conf")


def token(cluster, *options):
    return cluster.primusctl("token", "create", *options, user="root").strip()


def address_of(cluster, node):
    return cluster.exec(node, "sh", "-c", "ip -4 -o addr show host0 | awk '{print $4}' | cut -d/ -f1").strip()


def addresses(cluster, node):
    """That others reach."""
    return [line.split()[3].split("/")[0] for line in cluster.exec(node, "ip", "-o", "addr", "show", "host0", "scope", "global").splitlines()]


def meets(cluster):
    """Where n1 is, for the others."""
    return {row["name"]: row["address"] for row in cluster.primusctl_json("nodes")}["n1"]


def answers(cluster, *command):
    done = cluster.run("n1", "primusctl", "run", *command, user="ml")
    assert done.returncode == 0, done.stderr
    return sorted(line.split()[-1] for line in done.stdout.splitlines())


def test_two_hosts(fresh):
    """The whole of it: a master, a token, a second host, a job on both that meets at an address that is good for both."""
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    ready(fresh, ["n1"])
    assert answers(fresh, "-n", "2", "--", "hostname") == ["n1", "n1"], "alone"
    assert answers(fresh, "-n", "2", "--", "sh", "-c", "echo $MASTER_ADDR") == ["127.0.0.1"] * 2
    text = token(fresh)
    done = fresh.run("n2", "primusctl", "join", "n1", input=text + "\n")
    assert done.returncode == 0 and "node n2 of the cluster of n1, and ready" in done.stdout, done.stdout + done.stderr
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1
    assert fresh.run("n2", "systemctl", "is-enabled", AGENTD).stdout.strip() == "enabled"
    assert fresh.node_states() == {"n1": "READY", "n2": "READY"}, "at once, not after a while"
    assert answers(fresh, "-n", "2", "--", "hostname") == ["n1", "n2"]
    assert len(set(answers(fresh, "-n", "2", "--pack", "--", "hostname"))) == 1
    # The agent of n1 has told masterd no address but 127.0.0.1.
    assert answers(fresh, "-n", "2", "--", "sh", "-c", "echo $MASTER_ADDR") in [[a] * 2 for node in fresh.nodes for a in addresses(fresh, node)]
    for row in fresh.primusctl_json("nodes"):
        assert row["address"] in addresses(fresh, row["name"]), row
    # Still so when masterd comes back before n2 does, and nothing that runs is told anything else meanwhile.
    fresh.exec("n2", "systemctl", "stop", AGENTD)
    fresh.exec("n1", "systemctl", "restart", MASTERD)
    fresh.wait_nodes(nodes=["n1"])
    assert meets(fresh) in addresses(fresh, "n1")
    # Another address of this host: that at which n2 comes next.
    fresh.exec("n1", "ip", "addr", "add", "10.77.0.1/24", "dev", "host0")
    fresh.exec("n2", "ip", "addr", "add", "10.77.0.2/24", "dev", "host0")
    fresh.exec("n2", "sh", "-c", "sed -i s/Master=n1/Master=10.77.0.1/ /etc/primus/agentd.conf.d/10-join.conf; systemctl start " + AGENTD)
    ready(fresh, ["n1", "n2"])
    assert meets(fresh) == "10.77.0.1"
    # Gone, and nobody else there: what meets here alone meets at an address that there is.
    fresh.exec("n2", "systemctl", "stop", AGENTD)
    fresh.exec("n1", "ip", "addr", "del", "10.77.0.1/24", "dev", "host0")
    fresh.wait_for(lambda: meets(fresh) == "127.0.0.1", 60, "n1 is at loopback again")
    assert answers(fresh, "--hosts=n1", "--per-host=2", "--", "sh", "-c", "echo $MASTER_ADDR") == ["127.0.0.1"] * 2


def test_tokens(fresh):
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD)
    assert "no token that is still good" in fresh.primusctl("token", "list", user="root")
    first, second = token(fresh), token(fresh, "--uses=5", "--expires=1d", "--from=10.0.0.0/8")
    rows = fresh.primusctl_json("token", "list", user="root")
    assert [(row["uses"], row["from"], row["creator"]) for row in rows] == [(1, "", 0), (5, "10.0.0.0/8", 0)]
    listed = fresh.primusctl("token", "list", user="root")
    assert "anywhere" in listed and "root" in listed and first[8:] not in listed and second[8:] not in listed
    denied = fresh.run("n1", "primusctl", "token", "list", user="ml")
    assert denied.returncode == 1 and len(denied.stderr.splitlines()) == 1
    assert "opens nothing any more" in fresh.primusctl("token", "revoke", rows[0]["token"], user="root")
    done = fresh.run("n2", "primusctl", "join", "n1", input=first + "\n")
    assert done.returncode == 1 and "revoked" in done.stderr and "primusctl token create" in done.stderr
    again = fresh.run("n1", "primusctl", "token", "revoke", rows[0]["token"])
    assert again.returncode == 1 and "no token" in again.stderr
    # What was revoked stays revoked.
    fresh.exec("n1", "systemctl", "restart", MASTERD)
    assert [row["token"] for row in fresh.primusctl_json("token", "list", user="root")] == [rows[1]["token"]]


def test_what_goes_wrong(fresh):
    """Each of it in one line that says what to do."""
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    ready(fresh, ["n1"])

    def refused(why, *arguments, text=None):
        done = fresh.run("n2", "primusctl", "join", *arguments, input=(text or token(fresh)) + "\n", timeout=60)
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1 and done.stdout == "", done.stdout + done.stderr
        assert re.search(why, done.stderr), done.stderr
        assert fresh.exec("n2", "ls", "/etc/primus/node") == ""

    refused("cannot find the host n9: .*; give its address, or", "n9")
    refused("cannot connect to n1 port 7999: Connection refused; is primus-masterd running there", "n1:7999")
    fresh.exec("n2", "ip", "route", "add", "unreachable", "10.88.0.0/24")
    refused("cannot connect to 10.88.0.1 port 7747: No route to host; is it up, and does its firewall", "10.88.0.1")
    refused("a node of this name is connected; give this one another", "--name=n1", "n1")
    none = fresh.run("n2", "primusctl", "nodes")
    assert none.returncode == 4 and "no master is set up here" in none.stderr and "systemctl enable --now primus-masterd" in none.stderr
    # An image: joined, and nothing is started.
    done = fresh.run("n2", "primusctl", "join", "--no-start", "n1", input=token(fresh) + "\n")
    assert done.returncode == 0 and "systemctl enable --now primus-agentd" in done.stdout
    assert fresh.run("n2", "systemctl", "is-active", AGENTD).stdout.strip() == "inactive"
    done = fresh.run("n2", "unshare", "-m", "sh", "-c", "mount -t tmpfs none /run/systemd && primusctl join n1", input=token(fresh) + "\n")
    assert done.returncode == 0 and "systemd does not run here" in done.stdout, done.stdout + done.stderr
    none = fresh.run("n2", "primusctl", "nodes")
    assert none.returncode == 4 and "-H n1" in none.stderr and len(none.stderr.splitlines()) == 1


def test_another_cluster(fresh):
    """A node that joins another master follows that one, at once; what it ran for the first one is over."""
    for node in fresh.nodes:
        fresh.exec(node, "systemctl", "enable", "--now", MASTERD)
    fresh.exec("n1", "systemctl", "enable", "--now", AGENTD)
    ready(fresh, ["n1"])
    wrong = fresh.run("n2", "primusctl", "join", "n2", input=token(fresh) + "\n")
    assert wrong.returncode == 1 and "another cluster than the token's; the token has to be of that master" in wrong.stderr
    other = fresh.exec("n2", "primusctl", "token", "create").strip()
    done = fresh.run("n1", "primusctl", "join", "n2", input=other + "\n")
    assert done.returncode == 0 and "node n1 of the cluster of n2, and ready" in done.stdout, done.stdout + done.stderr
    assert fresh.exec("n2", "primusctl", "nodes", "--json").count('"READY"') == 1


def test_doctor_on_the_way(fresh):
    def finds(node, check):
        rows = json.loads(fresh.run(node, "primusctl", "doctor", "--json").stdout)
        return [(row["result"], row["text"], row["help"]) for row in rows if row["check"] == check]

    assert finds("n2", "packages")[0][0] == "ok"
    assert finds("n2", "joined")[0][0] == "fail" and "primusctl join MASTER" in finds("n2", "joined")[0][2]
    assert finds("n2", "agent") == [] and finds("n2", "masterd") == []
    fresh.exec("n1", "systemctl", "enable", "--now", MASTERD)
    assert "has a master, and is no node" in finds("n1", "joined")[0][1]
    fresh.exec("n1", "systemctl", "enable", "--now", AGENTD)
    ready(fresh, ["n1"])
    for check in ("joined", "masterd", "store", "agent", "master", "certificate", "authority"):
        assert finds("n1", check)[0][0] == "ok", finds("n1", check)
    fresh.exec("n1", "systemctl", "stop", MASTERD)
    assert finds("n1", "masterd")[0][0] == "fail"
    assert fresh.run("n1", "systemctl", "is-active", MASTERD).stdout.strip() == "inactive", "asking starts nothing"
