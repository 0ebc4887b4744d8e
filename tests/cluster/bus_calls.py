# SPDX-License-Identifier: Apache-2.0
"""Calls to masterd on the bus of a host: with busctl, and from a program that runs there."""
import json
import os
import re
import xml.etree.ElementTree as ElementTree

from sandbox import SOURCE

MASTER = "org.primus.Master1"
# What everybody may ask: answers leave out what is not the caller's. The rest of Job is for its owner and manage-jobs, its sessions for
# manage-sessions, that of Manager and Node is for manage-nodes.
OPEN = {"Manager": {"Submit", "TrySubmit", "ListJobs", "GetJob", "GetElement", "Usage", "ListTelemetry", "ListQueue", "ListPools", "GetJobDefaults", "ListNodes", "Changes", "PutBundle",
                    "ListSavepoints", "ListCheckpoints", "CollectCheckpoints", "ListModels", "RegisterModel", "EditModel", "ListProviders", "ListInstances"},
        "Job": set(), "Node": {"Describe", "ListEvents"}}
CLOSED = {"Manager": {"Backup", "CreateToken", "ListTokens", "RevokeToken", "SetBanner", "RemoveNode", "GetSavepoint", "DeleteSavepoint", "PinCheckpoint", "ForgetCheckpoint",
                      "PlanInstances", "HoldProvider", "HoldInstance", "StartInstance", "StopInstance", "TakeProviderRequest", "AnswerProviderRequest"},
          "Job": {"GetStatus", "GetConfig", "ListExecutors", "Telemetry", "ListEvents", "ReadLog", "Kill", "KillWith", "Delete", "Succeed", "Why", "Requeue", "Suspend", "Resume",
                  "SuspendAs", "OpenArtifacts", "ListTasks", "ListTrials", "ReplaySearch", "ListMetrics", "ReadMetrics", "RetryTask", "SkipTask", "SteerSource", "CreateSavepoint", "Capture", "Trace", "OpenSession", "ReadSession",
                  "WriteSession", "ResizeSession", "CloseSession", "Rerun", "Replace", "AllowNode", "Update", "Scale", "AddRole", "RemoveRole", "AddSource", "ReplaceSources", "RestartRole"},
          "Node": {"DeclareDead", "Cordon", "Uncordon", "DisableGPU", "EnableGPU", "Drain", "SetLabels", "SetMaintenance", "CancelMaintenance"}}
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


def call(cluster, path, interface, method, user):
    signature = methods(interface)[method]
    arguments = ARGUMENTS.get(method) or [PLAIN.get(one, "0") for one in re.findall(r"a\{..\}|a.|.", signature)]
    return cluster.run("n1", "busctl", "call", MASTER, path, f"{MASTER}.{interface}", method, *([signature, *arguments] if signature else []), user=user)


# What such a program begins with.
BUSABLE = r"""
import hashlib, json, sys
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
for attempt in range(60):     # it gives the bus a second to answer
    try: bus = open_dbus_connection(bus="SYSTEM"); break
    except TimeoutError: pass
manager = DBusAddress("/org/primus/Master1", bus_name="org.primus.Master1", interface="org.primus.Master1.Manager")

def call(method, signature, *body, address=manager, timeout=20):
    reply = bus.send_and_get_reply(new_method_call(address, method, signature, body), timeout=timeout)
    if reply.header.message_type.name == "error":
        from jeepney import HeaderFields
        return [reply.header.fields[HeaderFields.error_name], *(reply.body or [""])]
    return reply.body

def put(data):
    sha, at = hashlib.sha256(data).hexdigest(), 0
    while at < len(data) or not data:
        r = call("PutBundle", "sttay", sha, len(data), at, data[at:at + (256 << 10)])
        if isinstance(r[0], str): return r
        at = r[0]
    return sha

def config(command, **more):
    return json.dumps({"name": "attack", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": command}],
                       **more}).encode()
"""


def on_bus(cluster, user, script, *arguments, timeout=120):
    """Runs a script that begins with BUSABLE in the host n1 and returns what it printed, as JSON."""
    return json.loads(cluster.exec("n1", "python3", "-c", BUSABLE + script, *arguments, user=user, timeout=timeout))
