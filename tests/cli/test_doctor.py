# SPDX-License-Identifier: Apache-2.0
"""doctor on made-up hosts: what the files below a root say, and what would help."""
import json
import subprocess

import pytest

GOOD = {
    "run/systemd/system/": None,
    "usr/lib/systemd/libsystemd-shared-252.so": "",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma misc\n",
    "proc/pressure/memory": "some avg10=0.00\n",
    "sys/kernel/btf/vmlinux": "",
    "proc/1/limits": "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              8388608              bytes\n",
    "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    "proc/sys/net/ipv4/ip_local_reserved_ports": "\n",
    "var/log/journal/": None,
    "var/lib/primus-agent/": None,
    "usr/lib/primus/primus-agentd": "",
    "usr/bin/dbus-daemon": "",
    "etc/primus/node/node.key": "",
    "usr/lib/polkit-1/polkitd": "",
}


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    """A certificate that is good for a year, as PEM."""
    return made_certificate(tmp_path_factory.mktemp("identity"), 365)


def made_certificate(directory, days):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", directory / "key", "-out", directory / "made.crt",
                    "-subj", "/CN=n1", "-days", str(days)], check=True, capture_output=True)
    return (directory / "made.crt").read_text()


@pytest.fixture
def host(tmp_path, programs, identity):
    class Host:
        def __init__(self):
            self.root = tmp_path / "root"
            self.root.mkdir()
            for path, text in GOOD.items():
                self.put(path, text)
            self.put("etc/primus/node/node.crt", identity)

        def put(self, path, text=""):
            target = self.root / path
            if path.endswith("/"):
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)

        def drop(self, path):
            target = self.root / path
            if target.is_dir():
                target.rmdir()
            else:
                target.unlink()

        def run(self, *arguments):
            return subprocess.run([f"{programs}/primusctl", "doctor", "--root", str(self.root), *arguments], capture_output=True, text=True, timeout=60)

        def finds(self, check):
            """The worst of a check: (result, text, help)."""
            order = ["ok", "unknown", "warn", "fail"]
            rows = [row for row in json.loads(self.run("--json").stdout) if row["check"] == check]
            worst = max(rows, key=lambda row: order.index(row["result"]))
            return worst["result"], worst["text"], worst["help"]

    return Host()


def certificate(host, days):
    host.put("etc/primus/node/node.crt", made_certificate(host.root, days))


def test_good_host(host):
    done = host.run()
    assert done.returncode == 0, done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["ok", "systemd", "version", "252"] in lines and ["ok", "cgroup", "version", "2"] in lines
    assert "fail" not in [line[0] for line in lines if line]
    assert "Fit for jobs" in done.stdout
    # Not yet in a cluster: what is to be done, once and not in several ways.
    host.drop("etc/primus/node/node.key")
    host.drop("etc/primus/node/node.crt")
    assert host.finds("joined")[0] == "fail" and "primusctl join MASTER" in host.finds("joined")[2]
    assert host.run().returncode == 1 and host.run().stdout.count("primusctl join") == 1


@pytest.mark.parametrize("change, check, result, says, helps", [
    (lambda h: h.drop("run/systemd/system"), "systemd", "fail", "systemd does not run this host", "systemd-sysv"),
    (lambda h: (h.drop("usr/lib/systemd/libsystemd-shared-252.so"), h.put("usr/lib/systemd/libsystemd-shared-247.so")), "systemd", "fail", "version 247; 252 is needed", "upgrade"),
    (lambda h: (h.drop("sys/fs/cgroup/cgroup.controllers"), h.put("sys/fs/cgroup/unified/cgroup.controllers")), "cgroup", "fail", "hybrid", "systemd.unified_cgroup_hierarchy=1"),
    (lambda h: h.drop("sys/fs/cgroup/cgroup.controllers"), "cgroup", "fail", "no cgroup version 2", "systemd.unified_cgroup_hierarchy=1"),
    (lambda h: h.put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n"), "controllers", "fail", "no memory controller", "cgroup_enable=memory"),
    (lambda h: h.put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory pids\n"), "controllers", "warn", "no io controller", "kernel"),
    (lambda h: h.drop("proc/pressure/memory"), "pressure", "warn", "PSI", "psi=1"),
    (lambda h: h.drop("sys/kernel/btf/vmlinux"), "btf", "warn", "BPF programs cannot be loaded", "CONFIG_DEBUG_INFO_BTF"),
    (lambda h: h.put("proc/sys/net/ipv4/ip_local_port_range", "1024 65000\n"), "ports", "warn", "23000-27999", "ip_local_reserved_ports"),
    (lambda h: h.put("etc/primus/agentd.conf", "[Agent]\nPorts=40000-50000\n"), "ports", "warn", "40000-50000", "ip_local_reserved_ports"),
    (lambda h: h.put("etc/primus/agentd.conf.d/1.conf", "[Agent]\nPorts = nonsense\n"), "ports", "fail", "Ports=nonsense", "FIRST-LAST"),
    (lambda h: (h.drop("var/log/journal"), h.put("run/log/journal/")), "journal", "warn", "lost when the host is rebooted", "mkdir -p /var/log/journal"),
    (lambda h: h.drop("var/log/journal"), "journal", "fail", "no journal", "systemd-journald"),
    (lambda h: (h.put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"), h.put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")), "nvidia", "fail", "1 GPU, and no driver", "nvidia-driver"),
    (lambda h: h.put("dev/nvidia0"), "nvidia", "warn", "libnvidia-ml.so.1", "libnvidia-ml1"),
    (lambda h: (h.put("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"), h.put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x1002\n")), "amd", "warn", "/dev/kfd", "amdgpu"),
    (lambda h: h.put("sys/class/infiniband/mlx5_0/"), "rdma", "warn", "uverbs", "rdma-core"),
    (lambda h: (h.put("sys/class/infiniband/mlx5_0/"), h.put("dev/infiniband/uverbs0")), "memlock", "warn", "8388608", "DefaultLimitMEMLOCK"),
    (lambda h: h.drop("usr/lib/primus/primus-agentd"), "packages", "fail", "neither primus-agent nor primus-master", "dnf install"),
    (lambda h: h.drop("usr/bin/dbus-daemon"), "packages", "fail", "dbus is missing", "apt install dbus"),
    (lambda h: h.drop("usr/lib/polkit-1/polkitd"), "packages", "warn", "polkitd is missing", "dnf install polkit)"),
    (lambda h: (h.drop("usr/lib/primus/primus-agentd"), h.put("usr/lib/primus/primus-masterd")), "packages", "warn", "primus-agent is not", "apt install ./primus-agent"),
    (lambda h: (h.drop("etc/primus/node/node.key"), h.put("etc/systemd/system/dbus-org.primus.Master1.service")), "joined", "fail", "has a master", "systemctl enable --now primus-agentd"),
    (lambda h: h.drop("etc/primus/node/node.crt"), "certificate", "fail", "cannot be read", "primusctl join"),
    (lambda h: h.put("run/firewalld/"), "firewall", "warn", "firewalld", "firewall-cmd --permanent --add-port=23000-27999/tcp"),
    (lambda h: (h.put("etc/ufw/ufw.conf", "# x\nENABLED=yes\n"), h.put("etc/ufw/user.rules", "*filter\n")), "firewall", "warn", "ufw", "ufw allow 23000:27999/tcp"),
    (lambda h: h.put("etc/primus/node/node.crt", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), "certificate", "fail", "cannot be read", "primusctl join"),
])
def test_broken(host, change, check, result, says, helps):
    change(host)
    found = host.finds(check)
    assert found[0] == result and says in found[1] and helps in found[2], found
    done = host.run()
    assert done.returncode == (1 if result == "fail" else 0)
    assert "-> " + found[2] in done.stdout


def test_reserved_ports(host):
    host.put("proc/sys/net/ipv4/ip_local_port_range", "1024 65000\n")
    host.put("proc/sys/net/ipv4/ip_local_reserved_ports", "22,80-90,23000-27999\n")
    assert host.finds("ports")[0] == "ok"
    host.put("proc/sys/net/ipv4/ip_local_reserved_ports", "23000-27998\n")
    assert host.finds("ports")[0] == "warn"


def test_certificate(host):
    certificate(host, 365)
    result, text, _ = host.finds("certificate")
    assert result == "ok" and text.startswith("valid until 20")
    certificate(host, 3)
    assert host.finds("certificate")[0] == "warn"


def test_command_line(host, programs):
    done = subprocess.run([f"{programs}/primusctl", "doctor", "--", "-oProxyCommand=x"], capture_output=True, text=True)
    assert done.returncode == 2 and "not a host" in done.stderr
    assert host.run("n2").returncode == 2
