# SPDX-License-Identifier: Apache-2.0
"""A whole cluster: up, down, status.

`up` records its intent before it makes anything, and all it makes carries the cluster's name, so `down` removes a cluster
that was left half made at any point.
"""
import contextlib
import ctypes
import json
import os
import shutil
import time

from . import cgroup, host, network, primus, rootfs, stage
from .state import (NODES_MAX, STATE, Cluster, SandboxError, cluster_names, deadline, locked, say)

# systemd, dbus-daemon, logind, both daemons and a login: a host that gets none hangs while it boots.
INOTIFY_PER_HOST = 7
INOTIFY_WAIT = 60

REQUIRED = {"systemd-nspawn": "systemd-container", "ip": "iproute2", "unshare": "util-linux"}


def _check_machine():
    if os.geteuid() != 0:
        raise SandboxError("hosts are booted by root; run this as root")
    for program, package in REQUIRED.items():
        if not shutil.which(program):
            raise SandboxError(f"{program} is missing (package {package}); run 'tools/install-deps sandbox'")


def _inotify_free(wanted):
    """How many inotify instances root can still have, looking no further than wanted."""
    libc, taken = ctypes.CDLL(None), []
    while len(taken) < wanted and (fd := libc.inotify_init1(os.O_CLOEXEC)) >= 0:
        taken.append(fd)
    for fd in taken:
        os.close(fd)
    return len(taken)


def _await_inotify(nodes):
    """The machine gives each user so many, and root's are shared by the services of all hosts of all clusters."""
    wanted, left, told = nodes * INOTIFY_PER_HOST, deadline(INOTIFY_WAIT), False
    while (free := _inotify_free(wanted)) < wanted:
        if not left():
            raise SandboxError(f"{nodes} hosts need {wanted} inotify instances and the machine has {free} left; take clusters down,"
                               " or raise the limit: 'sysctl fs.inotify.max_user_instances=1024'")
        if not told:
            say(f"waiting for inotify instances, which other clusters hold ({free} of {wanted} are free) …")
            told = True
        time.sleep(0.5)


def _bind(text):
    source, _, target = text.partition(":")
    target = target or source
    if not source.startswith("/"):
        source = os.path.abspath(source)
    if not target.startswith("/") or ":" in target or ":" in source:
        raise SandboxError(f"--bind {text}: expected DIR:PATH, PATH absolute, no other ':'")
    if not os.path.exists(source):
        os.makedirs(source)
    return f"{source}:{target}"


def _free_subnet():
    taken = {record["subnet"] for record in (Cluster(name).record for name in cluster_names()) if record}
    for subnet in range(1, 255):
        if subnet not in taken:
            return subnet
    raise SandboxError("254 clusters are up; take one down")


def _record(cluster, nodes, binds, conf, plain):
    """Claims the name and a subnet."""
    with locked(os.path.join(STATE, ".lock"), "another sandbox"):
        if cluster.record:
            raise SandboxError(f"cluster '{cluster.name}' exists; take it down first with"
                               f" 'tools/sandbox down --name {cluster.name}'")
        os.makedirs(cluster.dir, mode=0o755, exist_ok=True)
        cluster.save({"nodes": nodes, "subnet": _free_subnet(), "binds": binds, "conf": conf,
                      "plain": plain, "backend": cgroup.backend().name, "root": None, "up": False})


def prepare():
    _check_machine()
    rootfs.ensure()


def up(name, nodes, binds=(), conf=(), build=None, rebuild=True, with_primus=True, root=None):
    _check_machine()
    if not 1 <= nodes <= NODES_MAX:
        raise SandboxError(f"--nodes {nodes}: between 1 and {NODES_MAX}")
    settings = [stage.parse_conf(text) for text in conf]
    binds = [_bind(text) for text in binds]
    _await_inotify(nodes)
    cluster = Cluster(name)
    _record(cluster, nodes, binds, list(conf), bool(root))
    try:
        root = os.path.abspath(root) if root else rootfs.ensure()
        cluster.save({**cluster.record, "root": root})
        stage.make(cluster, root, build, rebuild, settings)
        if with_primus and not stage.has_primus(cluster):
            raise SandboxError(f"{build} installs no primus-masterd.service; bare hosts are booted by --no-primus")
        network.add_cluster(cluster)
        _boot(cluster.nodes(), root)
        if with_primus:
            primus.bring_up(cluster)
        cluster.save({**cluster.record, "up": True})
    except BaseException:
        # What is up stays for a look at it only if a person asks so: a later `up` must find nothing in its way.
        if os.environ.get("PRIMUS_SANDBOX_KEEP") != "1":
            down(name)
        raise


def _boot(nodes, root):
    booting = [host.Booting(node, root) for node in nodes]
    for one in booting:
        one.wait()


def boot(node):
    cluster = node.cluster.require()
    if not os.path.isdir(node.dir):
        node.require_leader()
    if node.leader():
        raise SandboxError(f"host {node.name} is up")
    _boot([node], cluster.record["root"])


def down(name):
    """Removes all that carries the cluster's name. True when there was anything."""
    cluster = Cluster(name)
    netns = network.owned(cluster)
    backend = cgroup.backend()
    found = bool(netns) or os.path.isdir(cluster.dir) or name in backend.cluster_names()
    backend.remove_cluster(cluster)
    for one in netns:
        network.remove(one)
    shutil.rmtree(cluster.dir, ignore_errors=True)
    if os.path.isdir(cluster.dir):
        shutil.rmtree(cluster.dir)
    return found


def down_all(prefix=""):
    names = set(cluster_names()) | network.cluster_names() | cgroup.backend().cluster_names()
    for name in sorted(name for name in names if name.startswith(prefix)):
        down(name)
        say(f"{name}: down")


def clean():
    """Removes what is kept between clusters: the root tree and the places of records. False while there is a cluster."""
    lock = os.path.join(STATE, ".lock")
    with locked(lock, "another sandbox"):
        if cluster_names():
            return False
        # In this order: a sandbox that finds a lock file gone starts over.
        rootfs.clean()
        os.unlink(lock)
        with contextlib.suppress(OSError):
            os.rmdir(STATE)
    return True


def status(name=None):
    """A list of clusters with their hosts."""
    names = [name] if name else cluster_names()
    result = []
    for one in names:
        cluster = Cluster(one)
        if not cluster.record:
            continue
        nodes = []
        for node in cluster.nodes():
            leader = node.leader()
            nodes.append({"name": node.name, "up": bool(leader), "cable": network.cable_plugged(node),
                          "leader": leader["pid"] if leader else None,
                          "address": node.address, "address6": node.address6})
        result.append({"name": one, "complete": cluster.record["up"], "binds": cluster.record["binds"], "nodes": nodes})
    return result


def print_status(name, as_json):
    clusters = status(name)
    if as_json:
        print(json.dumps(clusters, indent=2))
        return
    for cluster in clusters:
        print(f"{cluster['name']}:" + ("" if cluster["complete"] else " (not complete)"))
        for node in cluster["nodes"]:
            state = "up" if node["up"] else "down"
            cable = "" if node["cable"] or not node["up"] else "  cable cut"
            print(f"  {node['name']:<5}{state:<6}{node['address']:<14}{node['leader'] or '':>8}{cable}")
    if not clusters:
        print("no cluster" + (f" '{name}'" if name else " is up"))


def environment(cluster):
    """What makes programs on the build machine speak to n1."""
    node = cluster.require().node("n1")
    pid = node.require_leader()["pid"]
    programs = cluster.path("stage/usr/bin")
    return {
        "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path=/proc/{pid}/root/run/dbus/system_bus_socket",
        "PATH": f"{programs}:{os.environ.get('PATH', '/usr/bin:/bin')}",
    }
