# SPDX-License-Identifier: Apache-2.0
"""What an administrator looks at: status, journal, manual pages, completion, the bus, examples."""
import re

from checks import need
from install_first import join
from story import check

EXPOSURE = {"primus-masterd.service": 2.0, "primus-agentd.service": 4.0}
PAGES = ("man1/primusctl.1", "man1/primus-submit.1", "man1/primus-sim.1", "man5/primus-job.5", "man7/primus.7", "man8/primus-agentd.8",
         "man8/primus-executor.8", "man5/primus-agentd.conf.5")
PAGES_MASTER = ("man8/primus-masterd.8", "man5/primus-masterd.conf.5")


@check("3.1", join)
def status_and_journal(pair, log):
    """systemctl status and journalctl -u tell of both daemons; no unit has failed; systemd-analyze verify finds nothing"""
    for m, units in ((pair.a, ("primus-masterd", "primus-agentd")), (pair.b, ("primus-agentd",))):
        for unit in units:
            out = m.sh(f"systemctl status --no-pager {unit}")
            need(f"status of {unit}", "active (running)" in out and "man:" in out, out)
            need(f"journal of {unit}", len(m.sh(f"journalctl -b --no-pager -u {unit}").splitlines()) > 2)
        need("failed units", not m.sh("systemctl --failed --no-legend --plain"))
        done = m.try_sh("systemd-analyze verify --man=no $(dpkg -L primus-agent primus-master 2> /dev/null | grep -E '/systemd/system/[^/]*[a-z]\\.(service|slice|mount)$' | grep -v @)",
                        seconds=300)
        need("systemd-analyze verify", done.status == 0 and "primus" not in done.err, done.err)


@check("3.2", join)
def exposure(pair, log):
    """systemd-analyze security: masterd is exposed by 2.0 at most"""
    for unit, most in EXPOSURE.items():
        out = pair.a.sh(f"systemd-analyze security --no-pager {unit} | tail -n 1", seconds=300)
        seen = float(re.search(r"(\d+\.\d+)", out)[1])
        log.figure(f"systemd-analyze security {unit}: {seen}")
        need(unit, seen <= most, out)


@check("3.3", join)
def manual(pair, log):
    """every manual page is there and says the version; README, docs and examples are in /usr/share/doc, the examples valid"""
    version = pair.a.sh("primusctl --version").split()[-1]
    for m, pages in ((pair.a, PAGES + PAGES_MASTER), (pair.b, PAGES)):
        text = m.sh("cd /usr/share/man && " + " && ".join(f"zcat {page}.gz | grep -m 1 '^\\.TH'" for page in pages))
        need("version of the pages", text.count(f"Primus {version}") == len(pages), text)
    pair.b.sh("cd /usr/share/doc/primus && ls README.md* && ls docs/failures.md* failures.md* 2> /dev/null | grep . && test -d examples")
    files = pair.b.sh("find /usr/share/doc/primus/examples -name '*.json' -not -path '*/sim/*'").split()
    need("examples", len(files) > 3, files)
    pair.b.sh(f"primusctl validate {' '.join(files)}", seconds=300)


@check("3.4", join)
def completion(pair, log):
    """completion for bash is there and completes; that for zsh is there"""
    out = pair.b.sh(r"""
        for f in /usr/share/bash-completion/bash_completion; do [ ! -e $f ] || . $f; done
        . /usr/share/bash-completion/completions/primusctl && complete -p primusctl
        COMP_WORDS=(primusctl sub) COMP_CWORD=1 COMP_LINE='primusctl sub' COMP_POINT=13
        $(complete -p primusctl | sed 's/.*-F \([^ ]*\).*/\1/') primusctl sub primusctl && echo "reply ${COMPREPLY[*]}" """)
    need("bash", "reply submit" in out, out)
    need("zsh", "#compdef primusctl" in pair.b.sh("head -n 1 /usr/share/zsh/vendor-completions/_primusctl"))


@check("3.5", join)
def bus(pair, log):
    """busctl shows the tree of the master's objects and introspects master, node and agent"""
    tree = pair.a.sh("busctl --no-pager tree org.primus.Master1")
    need("tree", "/org/primus/Master1/node/b" in tree, tree)
    out = pair.a.sh("busctl --no-pager introspect org.primus.Master1 /org/primus/Master1/node/b")
    need("a node", "org.primus.Master1.Node" in out, out)
    need("an agent", "org.primus.Agent1" in pair.b.sh("busctl --no-pager introspect org.primus.Agent1 /org/primus/Agent1"))
    need("interfaces", pair.a.sh("ls /usr/share/dbus-1/interfaces/ | grep org.primus").split())
