# SPDX-License-Identifier: Apache-2.0
"""What a host is made of, so that two moments can be compared; and executors, so that nothing happens to them unnoticed."""
import re

# What installing and removing any package leaves, and what the host itself does meanwhile.
NOT_OURS = re.compile("|".join((
    r"/(proc|sys|dev|tmp|run/systemd|run/user|run/udev|run/dbus|run/log|repository)(/|$)", r"/root/\.", r"/var/log/",
    r"/var/cache/(apt|debconf|man|ldconfig|private)", r"/var/lib/(apt|dpkg|systemd|unattended-upgrades|needrestart|debconf|python)(/|$)",
    r"/etc/(ld\.so\.cache|(passwd|group|shadow|gshadow|subuid|subgid)-?|\.pwd\.lock|machine-id)$", r"/run/(lock|apt|unattended|utmp|sudo|needrestart)",
    r".*/__pycache__(/|$)", r"/run/mount(/|$)", r"/var/tmp/systemd-private", r"/run/[a-z-]*\.(pid|lock)$")))

COMMANDS = {
    "files": "find / -xdev -path /proc -prune -o -path /sys -prune -o -printf '%M %u:%g %p\\n'; find /run -xdev -printf '%M %u:%g %p\\n'",
    "accounts": "getent passwd | cut -d: -f1,3,4,6; getent group | cut -d: -f1",
    "units": "systemctl list-units --all --plain --no-legend '*primus*' | cut -d' ' -f1; systemctl list-unit-files --no-legend '*primus*'",
    "mounts": "cut -d' ' -f2 /proc/mounts | grep primus",
    "cgroups": "find /sys/fs/cgroup -name '*primus*' | grep -v primus-sandbox",
    "processes": "ps -eo comm= | grep -E '^primus|sleep'",
    "sockets": "ss -lntuxH | grep -E 'primus|:7747|:7748'",
    # Names of ours even in places that are everybody's.
    "names": "find / -xdev -iname '*primus*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/repository/*' -not -path '/var/log/*'"
             " -not -path '/var/lib/apt/*' -not -path '/var/cache/man/*'; find /run -xdev -iname '*primus*'",
}


def snapshot(cluster, node):
    """A set of lines for each kind of thing."""
    found = {}
    for kind, command in COMMANDS.items():
        lines = set(cluster.run(node, "sh", "-c", command).stdout.splitlines())
        if kind == "files":
            lines = {line for line in lines if not NOT_OURS.match(line.split(" ", 2)[2])}
        found[kind] = lines
    return found


def difference(before, after):
    """What came and what went, kind by kind; empty when nothing did."""
    lines = []
    for kind in before:
        lines += [f"{kind} + {line}" for line in sorted(after[kind] - before[kind])]
        lines += [f"{kind} - {line}" for line in sorted(before[kind] - after[kind])]
    return lines


def executors(cluster, node):
    """Unit -> (main PID, invocation) of what runs there for jobs."""
    listed = cluster.exec(node, "systemctl", "list-units", "--plain", "--no-legend", "--state=active", "primus-[0-9]*.service", "primus-session-*.service")
    units = [line.split()[0] for line in listed.splitlines()]
    return {unit: tuple(cluster.exec(node, "systemctl", "show", "-P", "MainPID", "-P", "InvocationID", unit).split()) for unit in units}


def main_pid(cluster, node, unit):
    return int(cluster.exec(node, "systemctl", "show", "-P", "MainPID", unit))
