# SPDX-License-Identifier: Apache-2.0
"""A cluster's network: one namespace that holds a bridge, one namespace per host, a veth pair between.

A host's namespace is ready, addresses and all, before the host boots. Nothing leads out of it: no host can reach the
build machine's network, and clusters cannot reach each other.
"""
import os
import subprocess

from .state import SandboxError

NETNS_DIR = "/run/netns"
BRIDGE = "br0"


def _ip(*arguments, batch=None):
    command = ["ip", *arguments] + (["-batch", "-"] if batch else [])
    done = subprocess.run(command, input="\n".join(batch) + "\n" if batch else None, capture_output=True, text=True)
    if done.returncode != 0:
        raise SandboxError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def _quiet(*arguments):
    """For what may be gone already."""
    subprocess.run(["ip", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def exists(netns):
    return os.path.exists(f"{NETNS_DIR}/{netns}")


def remove(netns):
    if exists(netns):
        _ip("netns", "delete", netns)


def add_cluster(cluster):
    remove(cluster.netns)
    _ip("netns", "add", cluster.netns)
    _ip("-n", cluster.netns, batch=[
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add 10.99.{cluster.subnet}.1/24 dev {BRIDGE}",
        f"address add fd00:99:{cluster.subnet:x}::1/64 dev {BRIDGE} nodad",
        f"link set {BRIDGE} up",
    ])


def add_host(node):
    """The host's namespace with its interface host0, cabled to the bridge. A new one at every boot: what an earlier life
    left in it, such as connections half closed, must not speak up again. The hardware address stays."""
    cluster = node.cluster
    remove_host(node)
    _ip("netns", "add", node.netns)
    mac = f"02:99:{cluster.subnet:02x}:00:{node.index >> 8:02x}:{node.index & 0xff:02x}"
    _ip("-n", cluster.netns, batch=[
        f"link add {node.link} type veth peer name host0 address {mac} netns {node.netns}",
        f"link set {node.link} master {BRIDGE} up",
    ])
    _ip("-n", node.netns, batch=[
        "link set lo up",
        f"address add {node.address}/24 dev host0",
        f"address add {node.address6}/64 dev host0 nodad",
        "link set host0 up",
    ])


def remove_host(node):
    """The kernel takes a namespace apart some time after it was deleted, and the host's end of the cable with it. The end
    on the bridge is deleted first, which takes both away at once, so that the name is free for the next boot."""
    _quiet("-n", node.cluster.netns, "link", "delete", node.link)
    remove(node.netns)


def set_cable(node, plugged):
    _ip("-n", node.cluster.netns, "link", "set", node.link, "up" if plugged else "down")


def cable_plugged(node):
    try:
        return "UP" in _ip("-n", node.cluster.netns, "-o", "link", "show", node.link).partition("<")[2].partition(">")[0].split(",")
    except SandboxError:
        return False


def owned(cluster):
    """Every namespace that carries the cluster's name."""
    try:
        names = os.listdir(NETNS_DIR)
    except FileNotFoundError:
        return []
    return [name for name in names if name == cluster.netns or name.startswith(f"{cluster.netns}.")]


def cluster_names():
    try:
        return {name.split(".")[1] for name in os.listdir(NETNS_DIR) if name.startswith("primus.")}
    except FileNotFoundError:
        return set()
