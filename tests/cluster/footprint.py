# SPDX-License-Identifier: Apache-2.0
"""What Primus has piled up on a host: units, slices, matches, files, descriptors, memory."""
from sandbox import AGENTD, MASTERD

# One process in the host, for everything: a host that starts units all the time is busy enough.
LOOK = r"""
count() { ls -A "$1" 2>/dev/null | wc -l; }
echo units $(systemctl list-units --all --plain --no-legend 'primus-[0-9]*.service' | wc -l)
echo slices $(systemctl list-units --all --plain --no-legend 'primus-[0-9]*.slice' | wc -l)
echo transient $(ls /run/systemd/transient 2>/dev/null | grep -c '^primus-[0-9]')
echo jobs $(systemctl list-jobs --plain --no-legend | wc -l)
echo cgroups $(find /sys/fs/cgroup -type d -name 'primus-[0-9]*' 2>/dev/null | wc -l)
echo exits $(count /run/primus/exits)
echo private $(count /run/primus/x)
echo tails $(grep -c '^primus-' /run/primus/agent/tail 2>/dev/null)
echo work $(count /var/lib/primus-agent/work)
echo bundles $(find /var/lib/primus-agent/bundles -type f 2>/dev/null | wc -l)
echo kept $(find /var/lib/primus/logs -type f 2>/dev/null | wc -l)
echo store_kib $(du -sk /var/lib/primus/primus.db* 2>/dev/null | awk '{s += $1} END {print s + 0}')
echo matches $(busctl --json=short call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.Debug.Stats GetAllMatchRules 2>/dev/null | grep -o "type='" | wc -l)
echo probe_dropped $(bash -c 'exec 3<> /dev/tcp/127.0.0.1/7748; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; cat <&3' 2>/dev/null | awk '/^primus_bpf_ringbuf_dropped/ {print $2}')
for unit in "$@"; do
        pid=$(systemctl show -P MainPID $unit.service)
        [ "$pid" -gt 0 ] || continue
        echo $unit.fds $(ls /proc/$pid/fd | wc -l)
        echo $unit.cpu_ms $(awk '{print ($14 + $15) * 10}' /proc/$pid/stat)
        awk -v u=$unit '/^VmRSS/ {print u ".rss_kib", $2} /^RssAnon/ {print u ".anon_kib", $2} /^RssFile/ {print u ".file_kib", $2}' /proc/$pid/status
done
"""


def footprint(cluster, node="n1"):
    """A dict of counts; daemons as "primus-masterd.rss_kib" and so on."""
    daemons = [unit.removesuffix(".service") for unit in ((MASTERD, AGENTD) if node == "n1" else (AGENTD,))]
    out = cluster.exec(node, "sh", "-c", LOOK, "look", *daemons, timeout=120)
    return {key: int(value) for key, value in (line.split() for line in out.splitlines() if len(line.split()) == 2)}


# What belongs to executors, and has to be gone with them.
TRANSIENT = ("units", "slices", "transient", "jobs", "cgroups", "exits", "private", "work")


def left_over(cluster, node):
    """What is still there of executors that have all ended; nothing, a moment after."""
    found = footprint(cluster, node)
    return {key: found[key] for key in TRANSIENT if found.get(key)}
