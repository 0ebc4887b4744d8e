# SPDX-License-Identifier: Apache-2.0
"""The two machines themselves: what they are before anything is installed, and that they are machines."""
from checks import need
from story import check


@check("0.1")
def machines(pair, log):
    """two machines of a plain Debian run systemd as PID 1 with cgroup v2, reach each other and nothing else, and have nothing of Primus"""
    for m in pair.machines.values():
        need("PID 1", m.sh("readlink /proc/1/exe").strip().endswith("/systemd"))
        controllers = set(m.sh("cat /sys/fs/cgroup/cgroup.controllers").split())
        need("controllers", {"cpu", "cpuset", "io", "memory", "pids"} <= controllers, controllers)
        need("host name", m.sh("hostname").strip() == m.name)
        need("nothing of Primus", not m.sh("find / -xdev -iname '*primus*' -not -path '/srv/*'; getent passwd primus || true").strip())
        m.sh("test ! -e /usr/bin/python3")
        for peer in pair.machines:
            m.sh(f"ping -c 1 -W 20 {peer}")
        need("routes", not m.sh("ip route show default").strip())
    log.figure(f"kernel {pair.a.sh('uname -r').strip()}, {pair.a.sh('systemctl --version').splitlines()[0]}")


@check("0.2", machines)
def power(pair, log):
    """a reboot and a power cut do what they are to: what was synced is there, what runs is new, the other one stays as it is"""
    boot = pair.a.boot
    pair.b.sh("echo kept > /root/kept && sync /root/kept")
    pair.b.reboot()
    need("after the reboot", pair.b.sh("cat /root/kept").strip() == "kept")
    pair.b.sh("echo again > /root/again && sync /root/again && echo lost > /root/lost")
    pair.b.power_cut()
    pair.b.power_on()
    need("after the power cut", pair.b.sh("cat /root/again").strip() == "again")
    pair.b.sh("rm -f /root/kept /root/again /root/lost")
    pair.a.sh("ping -c 1 -W 20 b")
    need("the other one", pair.a.sh("cat /proc/sys/kernel/random/boot_id").strip() == boot)
