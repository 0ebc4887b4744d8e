# SPDX-License-Identifier: Apache-2.0
"""Bringing a cluster's daemons up the way an administrator would: masterd, a token, a join per host, the agents."""
import json
import time
from concurrent.futures import ThreadPoolExecutor

from . import host
from .state import SandboxError, deadline

MASTER_UNIT = "primus-masterd.service"
AGENT_UNIT = "primus-agentd.service"
READY_TIMEOUT = 20


def _start(node, unit):
    status, _, err = host.run(node, ["systemctl", "enable", "--now", "--quiet", unit], check=False)
    if status != 0:
        raise SandboxError(f"{node.name}: {unit} did not start: {err.strip()}\n{_journal(node, unit)}")


def _journal(node, unit):
    _, out, err = host.run(node, ["journalctl", "-q", "--no-pager", "-o", "short-monotonic", "-n", "25", "-u", unit], check=False)
    return f"--- journal of {unit} on {node.name}\n{out or err}"


def states(master):
    """Name -> state of every node that masterd knows."""
    listed = json.loads(host.run(master, ["primusctl", "nodes", "--json"])[1])
    rows = listed["nodes"] if isinstance(listed, dict) else listed
    lowered = [{key.lower(): value for key, value in row.items()} for row in rows]
    return {row.get("name") or row["node"]: row["state"].upper() for row in lowered}


def wait_ready(nodes, timeout=READY_TIMEOUT):
    """Until masterd calls every one of these hosts READY."""
    master, left, seen = nodes[0].cluster.node("n1"), deadline(timeout), {}
    while True:
        try:
            seen = states(master)
        except (SandboxError, ValueError, KeyError) as e:
            if not left():
                raise SandboxError(f"n1 does not list its nodes: {e}\n{_journal(master, MASTER_UNIT)}") from e
        waiting = [node for node in nodes if seen.get(node.name) != "READY"]
        if not waiting:
            return
        if not left():
            node = waiting[0]
            raise SandboxError(f"not READY within {timeout} s: "
                               + ", ".join(f"{n.name} ({seen.get(n.name, 'unknown to masterd')})" for n in waiting)
                               + f"\n{_journal(node, AGENT_UNIT)}\n{_journal(master, MASTER_UNIT)}")
        time.sleep(0.05)


def bring_up(cluster):
    nodes = cluster.nodes()
    master = nodes[0]
    _start(master, MASTER_UNIT)
    token = host.run(master, ["primusctl", "token", "create", "--uses", str(len(nodes))])[1]

    def join(node):
        host.run(node, ["primusctl", "join", "n1"], stdin=token)
        _start(node, AGENT_UNIT)

    with ThreadPoolExecutor(8) as pool:
        for result in [pool.submit(join, node) for node in nodes]:
            result.result()
    wait_ready(nodes)
    for node in nodes:
        host.enable(node, [MASTER_UNIT, AGENT_UNIT] if node is master else [AGENT_UNIT])
