# SPDX-License-Identifier: Apache-2.0
"""First contact: from packages to a cluster of two hosts that runs a job on both."""
import time

import repository
from checks import need
from hosts import ready
from install_machines import machines
from story import check

# Everything of a host that a package could leave: files, but no other package's records and logs; users, sockets, units, cgroups.
LISTING = r"""
find / /run -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /srv/packages -o -path /var/log/journal -o -path /var/lib/apt/lists \
        -o -path /var/cache -o -path /tmp -o -path '/run/control.*' -o -path /run/systemd/journal -o -path /run/log/journal \
        -o -path '/run/udev/*' -o -path /var/tmp \) -prune -o -printf 'file %p\n' | sort -u
getent passwd | sed 's/^\([^:]*\):.*/user \1/'; getent group | sed 's/^\([^:]*\):.*/group \1/'
ss -Hlntu | awk '{ print "port", $1, $5 }' | sort -u; ss -Hlx | awk '{ print "socket", $5 }' | sort -u
find /sys/fs/cgroup -type d | grep -i primus | sed 's/^/cgroup /'
"""


def listing(m):
    return set(m.sh(LISTING, seconds=300).splitlines())


@check("1.1", machines)
def before(pair, log):
    """what is on the hosts before is written down; the packages are known to apt"""
    for m in pair.machines.values():
        pair.remember(f"before-{m.name}", sorted(listing(m)))
        for name in ("debian", "now"):
            m.put(f"/etc/apt/sources.list.d/{name}.list", repository.LINE.format(name))
        m.sh("apt-get -q update", seconds=300)


@check("1.2", before)
def install_master(pair, log):
    """apt installs primus-master, primus-agent and primus-tools on a; nothing is enabled or runs after that"""
    pair.typed(pair.a, "DEBIAN_FRONTEND=noninteractive apt-get -q -y install primus-master primus-agent primus-tools", seconds=900)
    for unit in ("primus-masterd", "primus-agentd"):
        state = pair.a.try_sh(f"systemctl is-enabled {unit}; systemctl is-active {unit}").out.split()
        need(unit, state == ["disabled", "inactive"], state)
    need("processes", not pair.a.try_sh("pgrep -a primus").out)
    need("errors of units", not pair.a.sh("systemctl --failed --no-legend --plain"))


@check("1.3", install_master)
def doctor_before(pair, log):
    """doctor on a host where nothing runs yet says what to do next"""
    done = pair.a.try_sh("primusctl doctor")
    need("what to do", "systemctl enable --now" in done.out and done.status == 1, done.out + done.err)


@check("1.4", install_master)
def enable(pair, log):
    """systemctl enable --now primus-masterd primus-agentd is all: host a is READY, no file was edited"""
    pair.typed(pair.a, "systemctl enable --now primus-masterd primus-agentd", seconds=300)
    began = time.monotonic()
    ready(pair, {"a"})
    pair.person += time.monotonic() - began
    need("files as installed", not pair.a.sh("dpkg --verify primus-master primus-agent primus-tools"))
    need("both go on at boot", pair.a.sh("systemctl is-enabled primus-masterd primus-agentd").split() == ["enabled"] * 2)
    pair.a.sh("busctl --no-pager tree org.primus.Master1")


@check("2.1", before)
def install_agent(pair, log):
    """apt installs primus-agent and primus-tools on b; doctor says that the host belongs to no cluster, and how to join one"""
    pair.typed(pair.b, "DEBIAN_FRONTEND=noninteractive apt-get -q -y install primus-agent primus-tools", seconds=900)
    done = pair.b.try_sh("primusctl doctor")
    need("what to do", "primusctl join" in done.out and done.status == 1, done.out + done.err)
    need("no master", not pair.b.try_sh("command -v primus-masterd; ls /usr/lib/primus/primus-masterd; getent passwd primus").out)


# Every command line that there is during a join, as fast as the machine can read them.
WATCH = "while [ ! -e /run/watch-stop ]; do cat /proc/[0-9]*/cmdline 2> /dev/null; done | tr '\\0' '\\n' | sort -u > /root/cmdlines"


@check("2.2", enable, install_agent)
def join(pair, log):
    """primusctl token create on a, into primusctl join a on b: both hosts are READY"""
    token = pair.typed(pair.a, "primusctl token create")
    need("a token alone", len(token.split()) == 1, len(token.split()))
    pair.remember("token", token.strip())
    watching = pair.b.begin(WATCH, seconds=600)
    out = pair.typed(pair.b, "primusctl join a", input=token, seconds=300)
    need("what it says", "node b" in out, out)
    began = time.monotonic()
    ready(pair, {"a", "b"})
    pair.person += time.monotonic() - began
    pair.b.sh("touch /run/watch-stop")
    watching()
    need("command lines were seen", pair.b.sh("grep -c '' /root/cmdlines").strip() != "0")
    need("the join among them", pair.b.try_sh("grep -E 'primus-join|^join$' /root/cmdlines").out, "join was over before it was looked at")


@check("2.3", join)
def first_job(pair, log):
    """primusctl run -n 2 -- hostname answers from both hosts"""
    began = time.monotonic()
    out = pair.typed(pair.a, "cd / && runuser -u ml -- primusctl run -n 2 -- hostname", seconds=300)
    need("both", sorted(line.split()[-1] for line in out.splitlines()) == ["a", "b"], out)
    log.figure(f"fresh VM to running two-host job in one scripted go: {pair.person:.0f} s of commands and waiting (emulated, apt included); "
               f"the job itself {time.monotonic() - began:.0f} s")


@check("2.4", join)
def doctor_after(pair, log):
    """doctor finds nothing that failed on either host"""
    for m in pair.machines.values():
        done = m.try_sh("primusctl doctor")
        need(f"doctor on {m.name}", done.status == 0, done.out + done.err)


@check("2.5", join)
def another_token(pair, log):
    """a used token joins nobody else, and what is said names the reason"""
    done = pair.b.try_sh("cp -a /etc/primus/node /root/node.kept; primusctl join a", input=pair.recall("token") + "\n")
    need("refused", done.status != 0 and "token" in (done.out + done.err), (done.status, done.out, done.err))
    need("the identity stays", not pair.b.sh("diff -r /etc/primus/node /root/node.kept; rm -r /root/node.kept"))
    ready(pair, {"a", "b"})
