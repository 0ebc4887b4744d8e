# SPDX-License-Identifier: Apache-2.0
"""Who may call what on the bus, method by method: one that is new has to be put somewhere here."""
import re

import pytest
from bus_calls import CLOSED, MASTER, OPEN, call, methods


@pytest.mark.parametrize("interface", OPEN)
def test_every_method_is_decided_about(interface):
    assert set(methods(interface)) == OPEN[interface] | CLOSED[interface] and not OPEN[interface] & CLOSED[interface]


@pytest.mark.parametrize("interface", CLOSED)
def test_others_are_refused(cluster, interface):
    cluster.run("n1", "primusctl", "savepoint", "delete", "x", user="ml")
    number = cluster.submit({"name": "bus", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "sleep 600"}]})
    try:
        cluster.wait_state(number, "RUNNING")
        path = {"Manager": "/org/primus/Master1", "Job": f"/org/primus/Master1/job/{number}", "Node": "/org/primus/Master1/node/n3"}[interface]
        got_in = {}
        for method in sorted(CLOSED[interface]):
            done = call(cluster, path, interface, method, "eve")
            refused = re.search(r"org\.primus\.(?:manage|see)-|[Aa]uthentication|Access denied|not permitted|You have no session|There is no (?:savepoint|checkpoint)", done.stderr)
            if done.returncode == 0 or not refused:
                got_in[method] = done.stdout + done.stderr
        assert not got_in
        assert cluster.status(number)["state"] == "RUNNING"
        assert cluster.node_states()["n3"] == "READY"
        assert cluster.events(number, "session") == []
    finally:
        cluster.kill(number)


def test_everybody_may_look_at_the_interfaces(cluster):
    for path, interface in (("/org/primus/Master1", "Manager"), ("/org/primus/Master1/node/n1", "Node")):
        said = cluster.exec("n1", "busctl", "introspect", MASTER, path, user="eve")
        assert f"{MASTER}.{interface}" in said
    assert "org.primus.Agent1.Manager" in cluster.exec("n2", "busctl", "introspect", "org.primus.Agent1", "/org/primus/Agent1", user="eve")


def test_interfaces_that_are_not_offered_are_not_reached(cluster):
    """The bus passes on calls of those that are named in the policy alone."""
    for destination in (MASTER, "org.primus.Agent1"):
        done = cluster.run("n1", "busctl", "call", destination, "/", "org.primus.Link1", "Heartbeat", user="eve")
        assert done.returncode != 0 and ("Access" in done.stderr or "Rejected" in done.stderr), done.stderr


def test_properties_are_read_only(cluster):
    for path, interface, name in (("/org/primus/Master1", "Manager", "Version"), ("/org/primus/Master1/node/n3", "Node", "State")):
        done = cluster.run("n1", "busctl", "set-property", MASTER, path, f"{MASTER}.{interface}", name, "s", "x")
        assert done.returncode != 0, name
