# SPDX-License-Identifier: Apache-2.0
"""The daemons as services: who may own and call what, what their sandboxes leave, what a restart leaves alone."""
import pytest
from sandbox import AGENTD, MASTERD

OWN = """
import sys
from jeepney.bus_messages import DBus
from jeepney.io.blocking import open_dbus_connection
answer = open_dbus_connection("SYSTEM").send_and_get_reply(DBus().RequestName(sys.argv[1]))
print(answer.body[0])
"""


def status(cluster, node, unit):
    """Effective capabilities (bits) and the values of /proc/PID/status of a service's main process."""
    pid = cluster.exec(node, "systemctl", "show", "-P", "MainPID", unit).strip()
    text = cluster.exec(node, "cat", f"/proc/{pid}/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_masterd_has_no_privilege(cluster):
    found = status(cluster, "n1", MASTERD)
    assert int(found["CapEff"], 16) == int(found["CapBnd"], 16) == 0
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    assert found["Uid"].split()[0] != "0"


def test_agentd_has_what_its_unit_names(cluster):
    found = status(cluster, "n2", AGENTD)
    # CHOWN, DAC_OVERRIDE, FOWNER, KILL, NET_ADMIN, SYS_PTRACE, SYS_RESOURCE, PERFMON, BPF; not SYS_ADMIN (21).
    assert int(found["CapBnd"], 16) & ~sum(1 << bit for bit in (0, 1, 3, 5, 12, 19, 24, 38, 39)) == 0
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"


def test_agentd_writes_to_no_control_groups(cluster):
    pid = cluster.exec("n2", "systemctl", "show", "-P", "MainPID", AGENTD).strip()
    mounts = cluster.exec("n2", "cat", f"/proc/{pid}/mounts").splitlines()
    groups = {line.split()[1]: line.split()[3].split(",")[0] for line in mounts if line.split()[2] in ("cgroup", "cgroup2")}
    assert groups and not [path for path, mode in groups.items() if mode == "rw"]
    # What users have in there takes no room from /run.
    assert [line.split()[2] for line in mounts if line.split()[1] == "/run/primus/x"][-1] == "tmpfs"


def test_agentd_may_nothing(cluster):
    pid = cluster.exec("n2", "systemctl", "show", "-P", "MainPID", AGENTD).strip()
    status = dict(line.split(":\t", 1) for line in cluster.exec("n2", "cat", f"/proc/{pid}/status").splitlines() if ":\t" in line)
    assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert "0" not in status["Uid"].split() and status["NoNewPrivs"] == "1"


def test_a_new_slice_is_watched(cluster):
    """Whoever stops primus.slice ends its executors; those after it are watched as ever, in another control group."""
    pid = cluster.exec("n2", "systemctl", "show", "-P", "MainPID", AGENTD).strip()
    cluster.exec("n2", "systemctl", "stop", "primus.slice")

    def submit(command):
        return cluster.submit({"name": "slice", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "nodes": ["n2"], "command": command}]})
    number = submit("sleep 600")
    try:
        cluster.wait_state(number, "RUNNING")
        unit = cluster.executor(number)["unit"]
        cluster.wait_for(lambda: f"{unit}/memory.pressure" in cluster.exec("n2", "sh", "-c", f"ls -l /proc/{pid}/fd"), 15, "its pressure is watched")
        last = submit("head -c 1048576 /dev/zero > /dev/null")
        assert cluster.wait_job(last) == 0
        assert cluster.executor(last)["readBytes"] >= 1 << 20
        assert cluster.exec("n2", "systemctl", "show", "-P", "MainPID", AGENTD).strip() == pid
        executor = cluster.executor(number)
        assert executor["state"] == "RUNNING" and executor["attempt"] == 1
    finally:
        cluster.kill(number)


def test_masterd_writes_its_state_alone(cluster):
    pid = cluster.exec("n1", "systemctl", "show", "-P", "MainPID", MASTERD).strip()
    mounts = cluster.exec("n1", "cat", f"/proc/{pid}/mounts").splitlines()
    mode = {line.split()[1]: line.split()[3].split(",")[0] for line in mounts}
    assert mode["/"] == "ro" and mode["/var/lib/primus"] == "rw"


@pytest.mark.parametrize("name", ["org.primus.Master1", "org.primus.Agent1"])
def test_nobody_else_owns_the_names(cluster, name):
    assert "not allowed to own" in cluster.exec("n1", "python3", "-c", OWN, name, user="ml")


@pytest.mark.parametrize("node, unit", [("n1", MASTERD), ("n1", AGENTD)])
def test_units_have_no_faults(cluster, node, unit):
    done = cluster.run(node, "systemd-analyze", "verify", "--man=no", unit)
    assert not [line for line in done.stderr.splitlines() if "primus" in line]


def test_everybody_sees_the_tree(cluster):
    tree = cluster.exec("n1", "busctl", "tree", "--list", "org.primus.Master1", user="eve").split()
    assert {f"/org/primus/Master1/node/{node}" for node in cluster.nodes} <= set(tree)
    assert cluster.exec("n2", "busctl", "get-property", "org.primus.Agent1", "/org/primus/Agent1",
                        "org.primus.Agent1.Manager", "Node", user="eve").strip() == 's "n2"'


def test_a_restart_of_the_agent_leaves_its_files(cluster):
    cluster.exec("n3", "touch", "/run/primus/x/.stays")
    cluster.exec("n3", "systemctl", "restart", AGENTD)
    cluster.exec("n3", "rm", "/run/primus/x/.stays")
    cluster.wait_nodes()


def test_a_masked_master_is_named(cluster):
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    cluster.exec("n1", "systemctl", "mask", "--runtime", MASTERD)
    try:
        done = cluster.run("n1", "primusctl", "list")
        assert done.returncode == 4 and "it is masked" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    finally:
        cluster.exec("n1", "systemctl", "unmask", "--runtime", MASTERD)
        cluster.exec("n1", "systemctl", "start", MASTERD)
    cluster.wait_nodes()


def test_a_master_that_may_not_have_its_name(cluster):
    """Its status says so, and it is tried again: whoever mends the bus's policy need not know about it."""
    policy = '<busconfig><policy user="primus"><deny own="org.primus.Master1"/></policy></busconfig>'
    reload = "systemctl reload dbus.service"
    cluster.exec("n1", "sh", "-c", f"echo '{policy}' > /etc/dbus-1/system.d/zz-test.conf && {reload}")
    try:
        cluster.kill9("n1", MASTERD)
        cluster.wait_for(lambda: "Cannot own org.primus.Master1" in cluster.exec("n1", "systemctl", "show", "-P", "StatusText", MASTERD) and
                         cluster.exec("n1", "systemctl", "show", "-P", "Result", MASTERD).strip() == "exit-code", 20, "the status says why")
    finally:
        cluster.exec("n1", "sh", "-c", f"rm /etc/dbus-1/system.d/zz-test.conf && {reload}")
    cluster.wait_nodes()


def test_the_bus_starts_the_master(cluster):
    """Where it is enabled, and nowhere else."""
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    assert cluster.primusctl("nodes", user="root")
    assert cluster.exec("n1", "systemctl", "is-active", MASTERD).strip() == "active"
    refused = cluster.run("n2", "busctl", "tree", "--list", "org.primus.Master1")
    assert "/org/primus/Master1/node" not in refused.stdout
    assert cluster.run("n2", "systemctl", "is-active", MASTERD).stdout.strip() == "inactive"
    cluster.wait_nodes()
