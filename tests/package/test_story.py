# SPDX-License-Identifier: Apache-2.0
"""The life of the packages on two hosts, in order: installed, used, upgraded while a job runs, removed, purged."""
import pytest
from look import difference, executors, main_pid, snapshot
from sandbox import AGENTD, MASTERD

STARTER = "primus-starter.service"
TRAINER = "import time, zlib\nfor i in range(100000): time.sleep(0.1); zlib.crc32(b'x')"
UNITS = ("primus-masterd.service", "primus-agentd.service", "primus-starter.service", "primus-starter.socket", "primus-alone.path", "primus-alone.service",
         "primus-first-contact.service", "primus-join.service", "primus.slice", "run-primus-x.mount", "primus-hook-fence@x.service", "primus-hook-notify@x.service")


def apt(hosts, node, *arguments, timeout=120):
    return hosts.exec(node, "env", "DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "apt-get", "-q", "-y", *arguments, timeout=timeout)


def upgrade(hosts, node):
    hosts.exec(node, "apt-get", "-q", "update")
    return apt(hosts, node, "dist-upgrade")


def restarted(hosts, node, units, do):
    """Each of these daemons is another process afterwards, and no executor is."""
    before, running = {unit: main_pid(hosts, node, unit) for unit in units}, executors(hosts, node)
    assert running
    do()
    for unit in units:
        hosts.wait_for(lambda u=unit: main_pid(hosts, node, u) not in (0, before[u]), 10, f"{unit} restarts")
    assert executors(hosts, node) == running


def ready(hosts, *nodes):
    hosts.wait_nodes(nodes=nodes or None, timeout=30)


def test_installed(hosts, repository, story):
    """Nothing is enabled and nothing runs."""
    story["before"] = {node: snapshot(hosts, node) for node in hosts.nodes}
    apt(hosts, "n1", "install", *repository.packages)
    # As from a download.
    apt(hosts, "n2", "install", *map(repository.path, ("primus-agent", "primus-tools", "libprimus1", "python3-primus")))
    for node in hosts.nodes:
        now = snapshot(hosts, node)
        for kind in ("cgroups", "mounts", "processes", "sockets"):
            assert not now[kind] - story["before"][node][kind]
        links = hosts.exec(node, "find", "/etc/systemd/system", "-name", "*primus*")
        assert links == ""
    assert hosts.run("n1", "systemctl", "is-enabled", MASTERD, AGENTD).stdout.split() == ["disabled", "disabled"]
    assert hosts.exec("n1", "systemctl", "show", "-P", "ActiveState", MASTERD, AGENTD).split() == ["inactive", "inactive"]
    assert hosts.exec("n1", "getent", "passwd", "primus").split(":")[5] == "/var/lib/primus"
    assert hosts.run("n2", "getent", "passwd", "primus").returncode != 0


def test_what_a_person_looks_for(hosts):
    verify = hosts.run("n1", "systemd-analyze", "verify", *UNITS)
    assert (verify.returncode, verify.stdout + verify.stderr) == (0, "")
    for page in ("primus", "primusctl", "primus-submit", "primus-sim", "primus-job", "primus-masterd", "primus-agentd", "primus-executor",
                 "primus-masterd.conf", "primus-agentd.conf", "primus(3)"):
        assert hosts.exec("n1", "man", "-w", page)
    assert "NAME" in hosts.exec("n1", "man", "primusctl")
    complete = "source /usr/share/bash-completion/bash_completion; _completion_loader primusctl; complete -p primusctl"
    assert "primusctl" in hosts.exec("n1", "bash", "-c", complete)
    for path in ("README.md", "docs/architecture.md", "examples/hello/hello.json", "examples/digits/data/README.md"):
        hosts.exec("n1", "test", "-f", f"/usr/share/doc/primus/{path}")
    hosts.exec("n1", "primusctl", "validate", "/usr/share/doc/primus/examples/hello/hello.json")
    hosts.exec("n2", "python3", "-c", "import primus; from primus import _lib; _lib.load()")


def test_first_job(hosts):
    """Enabled on one host, joined from another."""
    hosts.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    ready(hosts, "n1")
    hosts.exec("n2", "primusctl", "join", "n1", input=hosts.exec("n1", "primusctl", "token", "create"))
    hosts.exec("n2", "systemctl", "enable", "--now", AGENTD)  # in case it has no part in that
    ready(hosts)
    said = hosts.primusctl("run", "-n", "2", "--", "hostname").split()
    assert said.count("n1") + said.count("n2") == 2


def test_reinstalled_and_upgraded(hosts, repository, story):
    job = {"name": "trains", "role": [{"roleName": "worker", "num": 4, "command": f'python3 -c "{TRAINER}"', "scheduleStrategy": {"maxReplicasPerNode": 2}}]}
    story["job"] = hosts.submit(job)
    hosts.wait_for(lambda: sum(len(executors(hosts, node)) for node in hosts.nodes) == 4, 30, "four executors")
    assert all(executors(hosts, node) for node in hosts.nodes)
    restarted(hosts, "n1", (MASTERD, AGENTD, STARTER), lambda: apt(hosts, "n1", "install", "--reinstall", "primus-master", "primus-agent", "primus-tools"))
    ready(hosts)
    repository.publish(f"{repository.version}+1")
    restarted(hosts, "n1", (MASTERD, AGENTD, STARTER), lambda: upgrade(hosts, "n1"))
    restarted(hosts, "n2", (AGENTD, STARTER), lambda: upgrade(hosts, "n2"))
    ready(hosts)
    assert "+1" in hosts.exec("n1", "dpkg-query", "-W", "-f", "${Version}", "primus-master")
    assert hosts.status(story["job"])["state"] == "RUNNING"
    assert all(e["restarts"] == 0 for e in hosts.status(story["job"])["executors"])


def test_stopped_stays_stopped(hosts, repository):
    hosts.exec("n2", "systemctl", "stop", AGENTD)
    running = executors(hosts, "n2")
    apt(hosts, "n2", "install", "--reinstall", "primus-agent")
    assert main_pid(hosts, "n2", AGENTD) == 0 and executors(hosts, "n2") == running
    hosts.exec("n2", "systemctl", "start", AGENTD)
    ready(hosts)


def test_needrestart(hosts):
    """Libraries are replaced: one that agentd uses, one that the starter and an executor do."""
    hosts.exec("n1", "sh", "-c", "cd /usr/lib/x86_64-linux-gnu && for f in libmicrohttpd.so.12.*[0-9] libz.so.1.*[0-9]; do cp -a $f new && mv new $f; done")
    listing = ["needrestart", "-b", "-r", "l"]
    listed = {line.split(": ")[1] for line in hosts.exec("n1", *listing).splitlines() if line.startswith("NEEDRESTART-SVC: ")}
    assert {AGENTD, STARTER} <= listed and not any(unit.startswith("primus-") for unit in listed - {AGENTD, STARTER, MASTERD})
    # Without our file it would have restarted executors.
    hosts.exec("n1", "mv", "/etc/needrestart/conf.d/primus.conf", "/root/")
    without = hosts.exec("n1", *listing)
    hosts.exec("n1", "mv", "/root/primus.conf", "/etc/needrestart/conf.d/")
    assert set(executors(hosts, "n1")) <= {line.split(": ")[1] for line in without.splitlines() if line.startswith("NEEDRESTART-SVC: ")}
    restarted(hosts, "n1", (AGENTD, STARTER), lambda: hosts.exec("n1", "needrestart", "-r", "a", "-m", "a", timeout=120))
    ready(hosts)


def test_unattended_upgrade(hosts, repository):
    repository.publish(f"{repository.version}.1")
    settings = 'Unattended-Upgrade::Origins-Pattern { "origin=Primus"; };\n'
    hosts.exec("n1", "sh", "-c", "cat > /etc/apt/apt.conf.d/60unattended", input=settings)
    hosts.exec("n1", "apt-get", "-q", "update")
    restarted(hosts, "n1", (MASTERD, AGENTD, STARTER), lambda: hosts.exec("n1", "unattended-upgrade", "-v", timeout=120))
    assert hosts.exec("n1", "dpkg-query", "-W", "-f", "${Version}", "primus-agent") == repository.version
    hosts.exec("n1", "rm", "/etc/apt/apt.conf.d/60unattended")
    ready(hosts)


def test_removed_and_left(hosts, repository):
    """The answer given beforehand: executors run on."""
    hosts.exec("n2", "debconf-set-selections", input="primus-agent primus-agent/jobs-at-removal select leave\n")
    running = executors(hosts, "n2")
    assert running
    apt(hosts, "n2", "remove", "primus-agent")
    assert executors(hosts, "n2") == running
    hosts.exec("n2", "test", "-f", "/etc/primus/node/node.key", "-a", "-d", "/var/lib/primus-agent/work")
    # It finds all of it again.
    apt(hosts, "n2", "install", "primus-agent")
    hosts.exec("n2", "systemctl", "start", AGENTD)
    ready(hosts)
    assert executors(hosts, "n2") == running


def test_removed_and_ended(hosts):
    """Nobody is there to ask, nothing was answered: executors end."""
    assert executors(hosts, "n1")
    apt(hosts, "n1", "remove", "primus-agent", "primus-master", "primus-tools")
    now = snapshot(hosts, "n1")
    assert not executors(hosts, "n1") and not now["processes"] and not now["sockets"] and not [c for c in now["cgroups"] if ".slice/primus" in c]
    hosts.exec("n1", "test", "-f", "/etc/primus/node/node.key", "-a", "-f", "/var/lib/primus/primus.db")
    apt(hosts, "n1", "install", "primus-agent", "primus-master", "primus-tools")
    hosts.exec("n1", "systemctl", "start", MASTERD, AGENTD)
    ready(hosts)


def test_purged_beside_the_agent(hosts):
    """The master goes, the agent on its host stays as it was."""
    hosts.exec("n1", "touch", "/etc/primus/masterd.conf.d/own.conf", "/etc/primus/agentd.conf.d/own.conf")
    agent = main_pid(hosts, "n1", AGENTD)
    apt(hosts, "n1", "purge", "primus-master")
    assert main_pid(hosts, "n1", AGENTD) == agent
    hosts.exec("n1", "test", "-f", "/etc/primus/agentd.conf.d/own.conf", "-a", "-f", "/etc/primus/node/node.key")
    for gone in ("/etc/primus/masterd.conf.d", "/etc/primus/masterd.conf", "/var/lib/primus", "/etc/systemd/system/dbus-org.primus.Master1.service"):
        assert hosts.run("n1", "test", "-e", gone, "-o", "-L", gone).returncode == 1, gone
    assert hosts.run("n1", "getent", "passwd", "primus").returncode != 0


@pytest.mark.parametrize("node", ["n1", "n2"])
def test_purged(hosts, repository, story, node):
    """Nothing is left. On n2 executors still run, and the package is removed for a while before."""
    if node == "n2":
        assert executors(hosts, node)
        apt(hosts, node, "remove", "primus-agent")
        assert executors(hosts, node)
    apt(hosts, node, "purge", *repository.packages)
    assert "\n".join(difference(story["before"][node], snapshot(hosts, node))) == ""
