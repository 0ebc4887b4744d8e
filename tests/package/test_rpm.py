# SPDX-License-Identifier: Apache-2.0
"""The RPMs, installed by dnf on a host: install, first contact, upgrade while a job runs, removal. See rpm_host.py for what stands
for Fedora there. One story, in the order of the tests."""
import glob
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "cluster"))

import rpm_host  # noqa: E402
from sandbox import AGENTD, MASTERD, Cluster, cluster_name, shared_directory  # noqa: E402

OURS = ["primus-master", "primus-agent", "primus-tools", "primus-web", "cockpit-primus", "primus-libs", "primus-devel", "python3-primus", "python3-primus-determined",
        "python3-primus-parl"]
REPO = "[primus]\nname=primus\nbaseurl=file:///repository\ngpgcheck=0\nmetadata_expire=0\n"
EXECUTOR = "systemctl list-units --plain --no-legend 'primus-[0-9]*.service'"


@pytest.fixture(scope="module")
def repository(packages, tmp_path_factory):
    if not glob.glob(f"{packages}/*.rpm"):
        pytest.skip(f"no RPMs in {packages}; 'tools/package rpm' makes them")
    return rpm_host.Repository(shared_directory(tmp_path_factory, "rpms"), packages, tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def host(repository):
    with Cluster(cluster_name(), 1, primus=False, binds=[f"{repository.directory}:/repository"], root=rpm_host.root()) as cluster:
        cluster.exec("n1", "sh", "-c", "mkdir -p /etc/yum.repos.d; cat > /etc/yum.repos.d/primus.repo", input=REPO)
        yield cluster


def dnf(host, *arguments):
    return host.exec("n1", "dnf", "-y", "-q", "--releasever=1", "--disableplugin=*", *arguments, timeout=200)


def rpm(host, *arguments, check=True):
    return (host.exec if check else host.run)("n1", "rpm", "--force-debian", *arguments)


def pid(host, unit):
    return int(host.exec("n1", "systemctl", "show", "--value", "-p", "MainPID", unit))


def start_job(host):
    """A job of one executor that stays until /run/go is there; its unit."""
    host.exec("n1", "rm", "-f", "/tmp/go")
    job = host.submit({"name": "stay", "role": [{"roleName": "worker", "num": 1, "successPercent": 100,
                                                 "command": "until [ -e /tmp/go ]; do sleep 0.2; done"}]})
    host.wait_state(job, "RUNNING")
    return job, f"primus-{job}-worker-0.1.service"


def test_install(host):
    dnf(host, "install", *OURS)
    assert not rpm(host, "-V", *OURS)
    # The user was made, and nothing was enabled or started.
    host.exec("n1", "getent", "passwd", "primus")
    for unit in (MASTERD, AGENTD):
        assert host.run("n1", "systemctl", "is-enabled", unit).stdout.strip() == "disabled"
        assert host.run("n1", "systemctl", "is-active", unit).stdout.strip() == "inactive"
    version = rpm(host, "-q", "--qf", "%{VERSION}", "primus-tools")
    assert host.exec("n1", "primusctl", "--version") == f"primusctl {version}\n"
    host.exec("n1", "python3", "-B", "-c", "import primus; primus.progress(1)")


def test_first_contact(host):
    host.exec("n1", "systemctl", "enable", "--now", MASTERD, AGENTD)
    host.wait_nodes()
    assert host.exec("n1", "primusctl", "run", "-n", "2", "--", "hostname", user="ml").count("n1") == 2


def test_upgrade_while_a_job_runs(host, repository):
    job, unit = start_job(host)
    before = {name: pid(host, name) for name in (unit, MASTERD, AGENTD)}
    repository.publish_next()
    dnf(host, "upgrade", "--refresh")
    assert rpm(host, "-q", "--qf", "%{RELEASE}", "primus-agent") == "2"
    assert pid(host, unit) == before[unit]
    host.wait_nodes()
    assert pid(host, MASTERD) != before[MASTERD] and pid(host, AGENTD) != before[AGENTD]
    host.exec("n1", "touch", "/tmp/go")
    assert host.wait_job(job) == 0


def test_erase_leaves_jobs_where_that_is_asked_for(host):
    _, unit = start_job(host)
    before = pid(host, unit)
    host.exec("n1", "env", "PRIMUS_JOBS_AT_REMOVAL=leave", "rpm", "--force-debian", "-e", "primus-agent")
    assert pid(host, unit) == before
    assert host.run("n1", "systemctl", "is-active", AGENTD).stdout.strip() != "active"
    dnf(host, "install", "primus-agent")
    host.exec("n1", "systemctl", "enable", "--now", AGENTD)
    host.wait_nodes()
    assert pid(host, unit) == before


def test_erase(host):
    assert host.run("n1", "sh", "-c", EXECUTOR).stdout
    host.exec("n1", "sh", "-c", "echo '# mine' >> /etc/primus/masterd.conf")
    rpm(host, "-e", *OURS)
    # Jobs were ended with the agent, and no daemon runs or is enabled.
    assert not host.run("n1", "sh", "-c", EXECUTOR).stdout
    assert host.run("n1", "pgrep", "primus").returncode == 1
    left = host.exec("n1", "sh", "-c", "find /etc/primus /var/lib/primus /var/lib/primus-agent -maxdepth 1 | sort; "
                     "find /etc/systemd/system -name '*rimus*'; find /usr /etc -name '*rimus*' | sort")
    # What a person or the cluster wrote is kept: the host's identity, the state, settings.
    for kept in ("/etc/primus/node", "/var/lib/primus/primus.db", "/etc/primus/masterd.conf.rpmsave"):
        assert kept in left.split(), left
    for path in left.split():
        assert path.startswith(("/etc/primus", "/var/lib/primus", "/etc/yum.repos.d/primus.repo")), left
