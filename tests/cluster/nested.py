# SPDX-License-Identifier: Apache-2.0
"""Hosts within a host: what the provider nspawn needs on n1 of a test's cluster.

The hosts' own root tree and the cluster's layer of Primus are bound to n1, where they are put together to a tree to boot: not n1's
root itself, for an overlay may lie on one other overlay and on no third. systemd-nspawn is the build machine's.

    with Cluster(name, 1, binds=nested.binds(name), build=build) as cluster:
        nested.prepare(cluster, "lab")
"""
import json
import os
import shutil

from sandboxlib import rootfs, state

CLUSTER_ID = "3fa81c20" + "0" * 24
MASTER = "192.168.77.1"  # where hosts within it find it
ETC, STATE, TREE = "/etc/primus/providers", "/var/lib/primus-provider", "/var/lib/machines/primus"

# As the template unit will run them, in what matters to them.
SANDBOXED = ("CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=full", "ProtectHome=read-only", "PrivateTmp=yes", "PrivateMounts=yes", "ProtectProc=invisible",
             "ProtectControlGroups=yes", "RestrictNamespaces=yes", "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK", "SystemCallFilter=@system-service",
             "SystemCallFilter=~@privileged @resources", "SystemCallErrorNumber=EPERM")

PREPARE = """
set -e
# With networkd, as docs/providers.md has it; n1's own network is as the sandbox has made it.
mkdir -p /run/nested/upper /run/nested/work "$1" /etc/systemd/network
mountpoint -q "$1" || mount -t overlay -o lowerdir=/srv/nested/stage:/srv/nested/root,upperdir=/run/nested/upper,workdir=/run/nested/work nested "$1"
rm -f "$1"/etc/primus/agentd.conf.d/50-sandbox.conf
mkdir -p "$1"/etc/systemd/system/multi-user.target.wants
for unit in primus-agentd systemd-networkd; do
        ln -sf "/usr/lib/systemd/system/$unit.service" "$1/etc/systemd/system/multi-user.target.wants/"
done
printf '[Match]\\nName=host0\\n[Link]\\nUnmanaged=yes\\n' > /etc/systemd/network/05-host0.network
printf '[NetDev]\nName=primus0\nKind=bridge\n' > /etc/systemd/network/10-primus.netdev
printf '[Match]\nName=primus0\n[Network]\nAddress=192.168.77.1/24\nDHCPServer=yes\nConfigureWithoutCarrier=yes\n' > /etc/systemd/network/10-primus.network
systemctl start systemd-networkd
until ip -4 addr show primus0 2> /dev/null | grep -q 192.168.77.1; do sleep 0.1; done
"""

PROVIDER = """
set -e
umask 022
mkdir -p "$1"
mkdir -p -m 0700 "$2"
for verb in list up down; do ln -sf "/usr/lib/primus/providers/nspawn/$verb" "$1/"; done
cat > "$1/provider.conf"
"""


def binds(name):
    """For a cluster of that name, which is not up yet."""
    return [f"{shutil.which('systemd-nspawn')}:/usr/bin/systemd-nspawn", f"{rootfs.ensure()}:/srv/nested/root",
            f"{os.path.abspath(state.Cluster(name).path('stage'))}:/srv/nested/stage"]


def prepare(cluster, provider, conf="[Provider]\nMax=4\n[Shape small]\nCpus=1\nMemory=512M\n", network="bridge=primus0", node="n1"):
    """A tree, and a provider whose hosts are containers of it."""
    cluster.exec(node, "sh", "-c", PREPARE, "sh", TREE)
    cluster.exec(node, "sh", "-c", PROVIDER, "sh", f"{ETC}/{provider}", f"{STATE}/{provider}", input=conf)
    own = f"[Nspawn]\nTree={TREE}\nNetwork={network}\n"
    cluster.exec(node, "sh", "-c", 'cat > "$1"', "sh", f"{ETC}/{provider}/nspawn.conf", input=own)


def verb(cluster, provider, what, request, node="n1"):
    """Runs it as primus-provider@ does: (exit status, [what it printed], errors)."""
    environment = {"PRIMUS_PROVIDER": provider, "PRIMUS_VERB": what, "PRIMUS_TOKEN": request.get("token", ""), "PRIMUS_CLUSTER": CLUSTER_ID,
                   "PRIMUS_DIRECTORY": f"{STATE}/{provider}"}
    done = cluster.run(node, "systemd-run", "--quiet", "--wait", "--pipe", "--collect", *(f"--property={p}" for p in SANDBOXED),
                       f"--property=WorkingDirectory={STATE}/{provider}", *(f"--setenv={k}={v}" for k, v in environment.items()),
                       f"{ETC}/{provider}/{what}", input=json.dumps(request) + "\n", timeout=120)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr
