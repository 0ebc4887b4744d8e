# SPDX-License-Identifier: Apache-2.0
"""The master's package is purged with its state elsewhere: the authority's key does not go to whoever gets the number of the user primus next."""
import os

from sandbox import MASTERD, SOURCE

SCRIPT = os.path.join(SOURCE, "packaging/debian/primus-master.postrm")


def test_a_state_elsewhere_is_closed(new_cluster):
    cluster = new_cluster(1)
    cluster.wait_nodes()
    with open(SCRIPT, encoding="utf-8") as f:
        script = f.read()
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    cluster.exec("n1", "sh", "-c", "mkdir -p /srv/cluster /etc/primus/masterd.conf.d && cp -a /var/lib/primus/. /srv/cluster && chown primus /srv/cluster && "
                 "chmod 755 /srv/cluster && printf '[Master]\\n  StateDirectory = /srv/cluster \\n' > /etc/primus/masterd.conf.d/50-state.conf && "
                 "cat > /root/postrm", input=script)
    assert cluster.run("n1", "ls", "/srv/cluster", user="eve").returncode == 0
    cluster.exec("n1", "sh", "/root/postrm", "remove")
    done = cluster.run("n1", "sh", "/root/postrm", "purge")
    assert done.returncode == 0, done.stderr
    assert "/srv/cluster (StateDirectory=) stays, for root alone" in done.stderr
    assert cluster.exec("n1", "stat", "-c", "%u %a", "/srv/cluster").split() == ["0", "700"]
    assert cluster.run("n1", "getent", "passwd", "primus").returncode != 0
    assert cluster.run("n1", "ls", "/srv/cluster", user="eve").returncode != 0
    assert cluster.exec("n1", "sh", "-c", "ls /srv/cluster/primus.db") != ""
    assert cluster.run("n1", "test", "-e", "/var/lib/primus/primus.db").returncode != 0
