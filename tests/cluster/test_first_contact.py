# SPDX-License-Identifier: Apache-2.0
"""The first five minutes: from what a package leaves on two hosts to a cluster of both."""
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
    assert "node n1 of the cluster" in fresh.journal("n1", CONTACT)
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
