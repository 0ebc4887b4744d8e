# SPDX-License-Identifier: Apache-2.0
"""Who may call what on the bus, method by method: one that is new has to be put somewhere here."""
import os
import re
import xml.etree.ElementTree as ElementTree

import pytest
from sandbox import SOURCE

MASTER = "org.primus.Master1"
# What everybody may ask: answers leave out what is not the caller's. The rest of Job is for its owner and manage-jobs, its sessions for
# manage-sessions, that of Manager and Node is for manage-nodes.
OPEN = {"Manager": {"Submit", "ListJobs", "GetJob", "GetElement", "Usage", "ListTelemetry", "ListQueue", "ListPools", "ListNodes", "PutBundle",
                    "ListSavepoints"},
        "Job": set(), "Node": {"Describe"}}
CLOSED = {"Manager": {"Backup", "CreateToken", "ListTokens", "RevokeToken", "RemoveNode", "GetSavepoint", "DeleteSavepoint"},
          "Job": {"GetStatus", "GetConfig", "ListExecutors", "Telemetry", "ListEvents", "ReadLog", "Kill", "Succeed", "Why", "Requeue", "Suspend", "Resume",
                  "SuspendAs", "OpenArtifacts", "ListTasks", "RetryTask", "SkipTask", "CreateSavepoint", "Capture", "Trace", "OpenSession", "ReadSession",
                  "WriteSession", "ResizeSession", "CloseSession", "Rerun", "Replace", "Update", "Scale", "AddRole", "RemoveRole", "RestartRole"},
          "Node": {"DeclareDead", "Cordon", "Uncordon", "Drain", "SetLabels", "SetMaintenance", "CancelMaintenance"}}
# Arguments that are fine as such, so that it is the caller that is refused.
ARGUMENTS = {"ReadLog": ["worker", "0", "0", "0", "0", "0"], "Capture": ["worker", "0", "0"], "Trace": ["worker", "0", "runqueue", "0"],
             "OpenSession": ["worker", "0", "1", "2", "105", "100", "0"], "SuspendAs": ["eve"], "OpenArtifacts": ["n1", "0", "0"], "RestartRole": ["worker", "0", "0"],
             "SetMaintenance": ["4000000000000000", "4000000001000000", "x"], "CreateSavepoint": ["mine", "0"]}
PLAIN = {"s": "x", "u": "0", "t": "0", "q": "0", "i": "0", "b": "false"}


def methods(interface):
    """Name and signature of every method."""
    tree = ElementTree.parse(os.path.join(SOURCE, f"dbus/{MASTER}.xml"))
    element = next(e for e in tree.iter("interface") if e.get("name") == f"{MASTER}.{interface}")
    return {m.get("name"): "".join(a.get("type") for a in m.iter("arg") if a.get("direction", "in") == "in") for m in element.iter("method")}


@pytest.mark.parametrize("interface", OPEN)
def test_every_method_is_decided_about(interface):
    assert set(methods(interface)) == OPEN[interface] | CLOSED[interface] and not OPEN[interface] & CLOSED[interface]


def call(cluster, path, interface, method, user):
    signature = methods(interface)[method]
    arguments = ARGUMENTS.get(method) or [PLAIN.get(one, "0") for one in re.findall(r"a\{..\}|a.|.", signature)]
    return cluster.run("n1", "busctl", "call", MASTER, path, f"{MASTER}.{interface}", method, *([signature, *arguments] if signature else []), user=user)


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
            refused = re.search(r"org\.primus\.manage-|[Aa]uthentication|Access denied|not permitted|You have no session|There is no savepoint", done.stderr)
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
