# SPDX-License-Identifier: Apache-2.0
"""Packages go: with their data left, with jobs ended or left as was answered, and without a trace."""
import re

from checks import need
from hosts import PATIENCE, executors, kill, pids, ready, running, submit, wait_for
from install_first import join, listing
from install_power import TRAIN
from story import check

APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
# What a purge of ours cannot be blamed for: other packages that came along, dpkg's and systemd's own records.
OTHERS = re.compile(r"file /(var/lib/(dpkg|apt|systemd|polkit-1|ucf|dbus|logrotate)|etc/(ld\.so\.cache|mailcap|alternatives|group-|gshadow-|passwd-|shadow-|subgid-|subuid-)"
                    r"|run/(systemd|log|udev|user|dbus|lock|utmp|mount|tmpfiles|credentials|motd)|var/log|root|home/ml|etc/systemd/network"
                    # What ca-certificates xml-core and shared-mime-info (for polkitd) make, and what these tests write.
                    r"|etc/(ssl/certs|ca-certificates\.conf)|usr/local/share/(ca-certificates|sgml|xml)|etc/(sgml|xml)/|var/lib/(sgml-base|xml-core)|usr/share/mime|etc/apt/sources\.list\.d/(debian|now)\.list|run/watch-stop)|(user|group) polkitd|^socket (\*|/run/(systemd|dbus|user))")


def alive(m, pid, start):
    return m.try_sh(f"cut -d' ' -f22 /proc/{pid}/stat 2> /dev/null").out.strip() == start


@check("10.1", join)
def remove_with_end(pair, log):
    """apt remove on b while a job runs there, answer "end" (the default): its executors end, data and identity stay; installed again, b is READY"""
    job = submit(pair, {"roleName": "w", "command": TRAIN, "nodes": ["b"]})
    running(pair, job)
    _, pid, start = pids(pair, job)["w/0"]
    pair.b.sh(f"{APT} remove primus-agent", seconds=900)
    need("the executor ended", not alive(pair.b, pid, start))
    need("no unit", not pair.b.sh("systemctl list-units --plain --no-legend 'primus-[0-9]*.service'"))
    pair.b.sh("test -e /etc/primus/node/node.key && test -d /var/lib/primus-agent")
    kill(pair, job)
    pair.b.sh(f"{APT} install primus-agent && systemctl enable --now primus-agentd", seconds=900)
    ready(pair, {"a", "b"})


@check("10.2", join)
def remove_with_leave(pair, log):
    """the same with the answer "leave": the executor runs on, and is found again when the agent is installed again"""
    job = submit(pair, {"roleName": "w", "command": TRAIN, "nodes": ["b"]}, onPartition="wait")
    running(pair, job)
    before = pids(pair, job)
    _, pid, start = before["w/0"]
    pair.b.sh("echo 'primus-agent primus-agent/jobs-at-removal select leave' | debconf-set-selections")
    pair.b.sh(f"{APT} remove primus-agent", seconds=900)
    need("the executor runs on", alive(pair.b, pid, start))
    pair.b.sh(f"{APT} install primus-agent && systemctl enable --now primus-agentd", seconds=900)
    ready(pair, {"a", "b"})
    wait_for("it runs", lambda: executors(pair, job)["w/0"]["state"] == "RUNNING", PATIENCE)
    need("the same process", pids(pair, job) == before, (before, pids(pair, job)))
    kill(pair, job)


@check("10.3", join)
def remove_master(pair, log):
    """apt remove on a keeps jobs and identity: installed again, they are there and both hosts READY"""
    jobs = pair.a.sh("primusctl list -a --json --limit 100000 | grep -o '\"job\": *[0-9]*'")
    need("jobs", jobs)
    pair.a.sh(f"{APT} remove primus-master primus-agent primus-tools", seconds=900)
    need("nothing runs", not pair.a.try_sh("pgrep -a primus").out)
    pair.a.sh("test -e /var/lib/primus/primus.db && test -e /etc/primus/node/node.key")
    pair.a.sh(f"{APT} install primus-master primus-agent primus-tools && systemctl enable --now primus-masterd primus-agentd", seconds=900)
    ready(pair, {"a", "b"})
    need("jobs", pair.a.sh("primusctl list -a --json --limit 100000 | grep -o '\"job\": *[0-9]*'") == jobs)


@check("10.4", join)
def purge(pair, log):
    """apt purge on both, with a job running: no file, user, group, cgroup, socket, unit or process is left that was not there before"""
    job = submit(pair, {"roleName": "a", "command": TRAIN, "nodes": ["a"]}, {"roleName": "b", "command": TRAIN, "nodes": ["b"]})
    running(pair, job, 2)
    found = pids(pair, job)
    for m in (pair.b, pair.a):
        installed = m.sh("dpkg-query -W -f '${db:Status-Status} ${Package}\\n' '*primus*' | sed -n 's/^[^n][^ ]* //p'").split()
        m.sh(f"{APT} purge {' '.join(installed)}", seconds=900)
        _, pid, start = found[f"{m.name}/0"]
        need(f"the executor on {m.name}", not alive(m, pid, start))
        need("processes", not m.try_sh("pgrep -a primus").out)
        need("units", not m.sh("systemctl list-units --all --plain --no-legend '*primus*'"), m.sh("systemctl list-units --all --plain --no-legend '*primus*'"))
        need("unit files", not m.try_sh("systemctl list-unit-files --plain --no-legend '*primus*'").out)  # status 1 where there are none
        owned = set(m.sh("cat /var/lib/dpkg/info/*.list").splitlines())
        owned |= {f"/usr{path}" for path in owned if path.startswith(("/lib/", "/bin/", "/sbin/"))}
        left = sorted(listing(m) - set(pair.recall(f"before-{m.name}")))
        ours = [line for line in left if "primus" in line.lower() and "/apt/" not in line and "/dpkg/" not in line and "/var/log/" not in line]
        need(f"left of ours on {m.name}", not ours, ours)
        more = [line for line in left if not OTHERS.match(line) and not (line.startswith("file ") and line[5:] in owned)]
        log.note(f"new on {m.name}, and not of ours: {left}")
        need(f"left on {m.name}", not more, more)
    log.figure("after purge, nothing is left that was not there before, but what other packages brought along")
