# SPDX-License-Identifier: Apache-2.0
"""A newer version and back while a job trains; what restarts services by itself."""
import repository
from checks import need
from hosts import PATIENCE, executors, kill, nodes, pids, ready, running, status, submit, wait_for
from install_first import join
from install_power import TRAIN
from story import check

APT = "DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -q -y"
EX_CONFIG = "78"


def version(m, package="primus-agent"):
    return m.sh(f"dpkg-query -W -f '${{Version}}' {package}").strip()


def daemon(m, unit):
    return m.sh(f"systemctl show -P MainPID {unit}").strip()


def unnoticed(pair, job, before, attempts):
    """Nothing of the job has been restarted."""
    running(pair, job, len(before))
    after = pids(pair, job)
    need("processes of the executors", after == before, (before, after))
    need("attempts", {n: e["attempt"] for n, e in executors(pair, job).items()} == attempts, executors(pair, job))


def told_or_ready(pair, name, log):
    """The host is READY, or its agent says why it cannot be."""
    m = pair.machines[name]

    def known():
        if nodes(pair).get(name) == "READY":
            return "READY"
        text = m.sh("systemctl show -P StatusText primus-agentd; journalctl -b --no-pager -u primus-agentd -n 20")
        return "refused: " + next(line for line in text.splitlines() if "version" in line) if "version" in text and "refus" in text else None

    seen = wait_for(f"{name} is READY, or why not", known, PATIENCE)
    log.figure(f"{name} with {version(m)} under a master of {version(pair.a, 'primus-master')}: {seen}")
    return seen == "READY"


@check("7.1", join)
def newer_agent(pair, log):
    """apt upgrade of b while a job trains: its agent restarts, no executor does; it works with the older master, or says why not"""
    job = submit(pair, {"roleName": "a", "command": TRAIN, "nodes": ["a"]}, {"roleName": "b", "command": TRAIN, "nodes": ["b"]})
    running(pair, job, 2)
    pair.remember("upgraded", job)
    before, attempts = pids(pair, job), {n: e["attempt"] for n, e in executors(pair, job).items()}
    pair.remember("upgraded-pids", [before, attempts])
    old, agent = version(pair.b), daemon(pair.b, "primus-agentd")
    pair.remember("old-version", old)
    for m in pair.machines.values():
        m.put("/etc/apt/sources.list.d/next.list", repository.LINE.format("next"))
        m.sh("apt-get -q update", seconds=300)
    pair.b.sh(f"{APT} upgrade", seconds=900)
    need("version", version(pair.b) != old, version(pair.b))
    need("the agent is a new process", daemon(pair.b, "primus-agentd") not in (agent, "0"))
    pair.remember("newer-agent-works", told_or_ready(pair, "b", log))
    unnoticed(pair, job, {n: tuple(v) for n, v in before.items()}, attempts)


@check("7.2", newer_agent)
def newer_master(pair, log):
    """apt upgrade of a, master and agent: state is there, both hosts are READY, no executor was restarted"""
    job = pair.recall("upgraded")
    before, attempts = pair.recall("upgraded-pids")
    master = daemon(pair.a, "primus-masterd")
    jobs = pair.a.sh("primusctl list -a --json --limit 100000 | grep -o '\"job\": *[0-9]*'")
    pair.a.sh(f"{APT} upgrade", seconds=900)
    need("masterd is a new process", daemon(pair.a, "primus-masterd") not in (master, "0"))
    ready(pair, {"a", "b"})
    need("jobs", pair.a.sh("primusctl list -a --json --limit 100000 | grep -o '\"job\": *[0-9]*'") == jobs)
    unnoticed(pair, job, {n: tuple(v) for n, v in before.items()}, attempts)
    log.figure(f"upgrade from {pair.recall('old-version')} to {version(pair.a)} with executors {sorted(v[1] for v in before.values())} untouched")


@check("7.3", newer_master)
def needrestart(pair, log):
    """needrestart restarts daemons that use a replaced library, and no executor"""
    m = pair.b
    m.sh(f"{APT} install --no-install-recommends needrestart", seconds=900)
    # A library that both an executor and another service use, replaced as an upgrade does.
    m.sh("cp /lib/x86_64-linux-gnu/libz.so.1 /usr/local/lib/libreplaced.so && systemd-run -q --unit=other -E LD_PRELOAD=/usr/local/lib/libreplaced.so "
         "-p Restart=always sleep 10000")
    job = submit(pair, {"roleName": "w", "command": "LD_PRELOAD=/usr/local/lib/libreplaced.so exec sleep 10000", "nodes": ["b"]})
    running(pair, job)
    before, other = pids(pair, job), daemon(m, "other")
    m.sh("cp /usr/local/lib/libreplaced.so /usr/local/lib/new && mv /usr/local/lib/new /usr/local/lib/libreplaced.so && "
         f"grep -q 'libreplaced.so (deleted)' /proc/{before['w/0'][1]}/maps")
    out = m.try_sh("needrestart -v -r a -l 2>&1", seconds=600).out
    need("it saw the executor", before["w/0"][1] in out, out[-1500:])
    need("the executor", pids(pair, job) == before, (before, pids(pair, job)))
    log.figure(f"needrestart: the other service {'was restarted' if daemon(m, 'other') != other else 'was left'}, executor {before['w/0'][1]} was not")
    m.sh("systemctl stop other; rm -f /usr/local/lib/libreplaced.so")
    kill(pair, job)


@check("7.4", newer_master)
def older_agent(pair, log):
    """downgrade of b's agent while the job trains: it works with the newer master, or says why not; no executor was restarted"""
    job, old = pair.recall("upgraded"), pair.recall("old-version")
    before, attempts = pair.recall("upgraded-pids")
    pair.b.sh(f"{APT} --allow-downgrades install primus-agent={old} primus-tools={old}", seconds=900)
    told_or_ready(pair, "b", log)
    unnoticed(pair, job, {n: tuple(v) for n, v in before.items()}, attempts)


@check("7.5", older_agent)
def older_master(pair, log):
    """downgrade of the master: it works, or refuses with a sentence in systemctl status and is not started over and over; upgraded again, all is there"""
    job, old = pair.recall("upgraded"), pair.recall("old-version")
    before, attempts = pair.recall("upgraded-pids")
    new = version(pair.a)
    pair.a.try_sh(f"{APT} --allow-downgrades install primus-master={old} primus-agent={old} primus-tools={old}", seconds=900)
    need("version", version(pair.a, "primus-master") == old, version(pair.a, "primus-master"))

    def settled():
        state = pair.a.try_sh("systemctl is-active primus-masterd").out.strip()
        return state if state == "failed" or (state == "active" and nodes(pair)) else None

    state = wait_for("masterd is active or failed", settled, PATIENCE)
    if state == "failed":
        text = pair.a.try_sh("systemctl status --no-pager primus-masterd").out
        need("exit status", f"status={EX_CONFIG}" in text, text)
        sentence = next((line for line in text.splitlines() if "newer" in line), None)
        need("a sentence", sentence, text)
        log.figure(f"downgrade of the master is refused: {sentence.strip()}")
        pair.a.sh(f"{APT} install primus-master={new} primus-agent={new} primus-tools={new}; systemctl start primus-masterd", seconds=900)
    else:
        log.figure(f"downgrade of the master to {old} works")
    ready(pair, {"a", "b"})
    unnoticed(pair, job, {n: tuple(v) for n, v in before.items()}, attempts)
    need("the job", status(pair, job)["state"] == "RUNNING")
    kill(pair, job)
