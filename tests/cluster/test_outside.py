# SPDX-License-Identifier: Apache-2.0
"""Out of an executor's unit by way of a manager: its own user's, or the host's. HideManagers= closes that; who is outside on a GPU of a job
is named."""
import pytest
from sandbox import AGENTD, Cluster, cluster_name

# As the review did it: linger is anybody's own to switch on, and then there is a manager who starts what it is asked to.
ESCAPE = r"""
export XDG_RUNTIME_DIR=/run/user/$(id -u) DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/$(id -u)/bus
loginctl enable-linger $(id -un) 2>&1
for i in $(seq 50); do test -S $XDG_RUNTIME_DIR/systemd/private && break; sleep 0.1; done
systemd-run --user --unit=escaped sh -c 'cat /proc/self/cgroup > $HOME/escaped; sleep 60' 2>&1 | tail -1
for i in $(seq 30); do test -s $HOME/escaped && break; sleep 0.1; done
"""
# Everything else that speaks for a manager.
DOORS = r"""
for s in /run/dbus/system_bus_socket /var/run/dbus/system_bus_socket /run/user/*/bus /run/user/*/systemd/private; do test -S $s && echo open $s; done
systemctl list-units >/dev/null 2>&1 && echo open systemctl
busctl --system list >/dev/null 2>&1 && echo open busctl
loginctl list-sessions >/dev/null 2>&1 && echo open loginctl
unshare -Urm umount /run/dbus 2>/dev/null && echo open umount
mv /run/dbus /run/dbus.old 2>/dev/null && echo open mv
echo looked; id -un; getent passwd ml | cut -d: -f3
"""


@pytest.fixture(scope="module")
def host(build):
    with Cluster(cluster_name(), 1, build=build) as cluster:
        cluster.wait_nodes()
        yield cluster


def job(command, **more):
    return {"name": "outside", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "command": command, **more}]}


def set_conf(cluster, text):
    cluster.exec("n1", "sh", "-c", f"mkdir -p /etc/primus/agentd.conf.d; cat > /etc/primus/agentd.conf.d/50-outside.conf; systemctl restart {AGENTD}",
                 input=f"[Agent]\n{text}\n")
    cluster.wait_for(lambda: "Registered" in cluster.exec("n1", "systemctl", "show", "-P", "StatusText", AGENTD), 20, "a registration")
    cluster.wait_nodes()


def forget(cluster):
    cluster.run("n1", "sh", "-c", "loginctl disable-linger ml; systemctl stop user@1000.service; rm -f /home/ml/escaped; "
                "for i in $(seq 50); do test -e /run/user/1000 || break; sleep 0.1; done")


def escaped(cluster):
    return cluster.run("n1", "cat", "/home/ml/escaped").stdout


def test_the_way_out_is_closed(host):
    number = host.submit(job(ESCAPE))
    assert host.wait_job(number) == 0
    assert escaped(host) == ""
    assert not host.run("n1", "test", "-e", "/var/lib/systemd/linger/ml").returncode == 0
    forget(host)


def test_also_where_a_manager_runs(host):
    """Somebody has made him linger before: his manager is there, and not to be reached."""
    host.exec("n1", "loginctl", "enable-linger", "ml")
    host.wait_for(lambda: host.run("n1", "test", "-S", "/run/user/1000/systemd/private").returncode == 0, 20, "the user's manager")
    try:
        number = host.submit(job(ESCAPE + DOORS))
        assert host.wait_job(number) == 0
        said = host.primusctl("logs", str(number))
        assert "looked" in said and "open" not in said and "ml\n1000" in said, said
        assert escaped(host) == ""
        # The bus comes back while an executor runs: still not for it.
        number = host.submit(job("sleep 3; " + DOORS))
        host.wait_state(number, "RUNNING")
        host.exec("n1", "sh", "-c", "rm -f /run/dbus/probe; touch /run/dbus/probe; rm /run/dbus/probe; loginctl disable-linger ml; loginctl enable-linger ml")
        assert host.wait_job(number) == 0
        assert "open" not in host.primusctl("logs", str(number))
    finally:
        forget(host)


def test_sessions_are_kept_in_as_well(host):
    number = host.submit(job("sleep 600"))
    host.wait_state(number, "RUNNING")
    said = host.primusctl("exec", str(number), "worker/0", "--", "sh", "-c", DOORS)
    assert "looked" in said and "open" not in said, said
    host.kill(number)


def test_a_site_leaves_it_open(host):
    """As it was before, and that it is the setting that closes it."""
    set_conf(host, "HideManagers=no")
    try:
        number = host.submit(job(ESCAPE + DOORS))
        assert host.wait_job(number) == 0
        host.wait_for(lambda: escaped(host), 10, "the escape")
        assert "user@1000.service" in escaped(host)
        assert "open systemctl" in host.primusctl("logs", str(number))
    finally:
        forget(host)
        set_conf(host, "")
