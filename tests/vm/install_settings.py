# SPDX-License-Identifier: Apache-2.0
"""Settings as installed, and who may read what."""
from checks import need
from hosts import nodes, ready, wait_for
from install_first import join
from story import check

DROP_IN = "/etc/primus/masterd.conf.d/50-test.conf"
SHOW = "/usr/lib/primus/primus-masterd --show-config"


@check("8.1", join)
def drop_in(pair, log):
    """a drop-in overrides one key; an unknown key and a bad value are named with file and line in the journal, and the daemon runs"""
    pair.a.put(DROP_IN, "[Master]\nSuspectSec=7s\nNonsense=1\nKeepSec=banana\n")
    try:
        pair.a.sh("systemctl restart primus-masterd", seconds=300)
        ready(pair, {"a", "b"})
        shown = pair.a.try_sh(SHOW).out  # status 1: something is wrong
        need("SuspectSec", "\nSuspectSec=7s" in shown, shown)
        need("LostSec", "\n#LostSec=60s" in shown, shown)
        journal = pair.a.sh("journalctl -b --no-pager -u primus-masterd -o cat")
        for text in (f"{DROP_IN}:3: unknown key Nonsense", f"{DROP_IN}:4: KeepSec=banana"):
            need("journal", text in journal, journal[-2000:])
    finally:
        pair.a.sh(f"rm -f {DROP_IN}; systemctl restart primus-masterd", seconds=300)
    ready(pair, {"a", "b"})


@check("8.2", join)
def security_key(pair, log):
    """a bad value of a security key: the daemon refuses, systemctl status has the sentence, and it is not started over and over"""
    for m, unit, path, text in ((pair.a, "primus-masterd", DROP_IN, "[Pool secret]\nLimit=many\n"),
                                (pair.b, "primus-agentd", "/etc/primus/agentd.conf.d/50-test.conf", "[Agent]\nAllowRoot=maybe\n")):
        m.put(path, text)
        try:
            m.try_sh(f"systemctl restart {unit}", seconds=300)
            wait_for(f"{unit} has failed", lambda: m.try_sh(f"systemctl is-failed {unit}").out.strip() == "failed", 60)  # noqa: B023
            seen = m.try_sh(f"systemctl status --no-pager -l {unit}").out
            need("the sentence", f"{path}:2: " in seen and "refusing to start" in seen and "status=78" in seen, seen)
            need("restarts", m.sh(f"systemctl show -P NRestarts {unit}").strip() == "0")
        finally:
            m.sh(f"rm -f {path}; systemctl start {unit}", seconds=300)
    ready(pair, {"a", "b"})


# Files of ours that others than their owner may read and that have something of a secret in them.
SECRETS = r"""grep -rlaE 'PRIVATE KEY|primus1\.' /etc/primus /var/lib/primus /var/lib/primus-agent /run/primus /run/primus-masterd 2> /dev/null |
while read -r f; do stat -c '%a %U:%G %n' "$f"; done"""


@check("9.1", join)
def modes(pair, log):
    """keys and state are readable by their owners alone; the CA's key is 0600 and of primus"""
    for m in pair.machines.values():
        found = m.sh(SECRETS).splitlines()
        need("there are keys", found)
        need("private keys", all(line.startswith(("600 ", "400 ")) for line in found), found)
        for line in found:
            log.note(f"secret on {m.name}: {line}")
        readable = m.sh("find /var/lib/primus /var/lib/primus-agent /run/primus /run/primus-masterd -type f -perm /007 2> /dev/null || true").split()
        # What hosts suffer from is for everybody to see.
        need("readable by others", not [f for f in readable if f != "/run/primus/agent/conditions"], readable)
    # In the master's store, and in the copy of it that an upgrade makes.
    ca = [line for line in pair.a.sh(SECRETS).splitlines() if " /var/lib/primus/" in line]
    need("the key of the CA", ca and all(line.startswith("600 primus:primus ") for line in ca), ca)
    need("its directory", pair.a.sh("stat -c %a /var/lib/primus").strip() == "700")
    need("what ml can read", pair.a.try_sh("runuser -u ml -- sh -c 'ls /var/lib/primus /run/primus-masterd; cat /etc/primus/node/node.key'").out == "")


@check("9.2", join)
def token_nowhere(pair, log):
    """the token of the join is in no journal, no command line, no environment and no file of either host"""
    token = pair.recall("token")
    secret = token.split(".")[-1]
    need("a token", token.startswith("primus1.") and len(secret) > 15, len(token))
    for m in pair.machines.values():
        # The pattern comes by standard input, so that it is on no command line itself.
        done = m.try_sh("grep -rlaF -f - /etc /var /run/primus /run/log /run/systemd /root /tmp /home 2> /dev/null", input=secret, seconds=600)
        need(f"files of {m.name}", not done.out.strip(), done.out)
        done = m.try_sh("journalctl --no-pager -o export > /run/exported < /dev/null; grep -acF -f - /run/exported; rm /run/exported", input=secret, seconds=600)
        need(f"journal of {m.name}", done.out.strip() == "0", done.out)
    done = pair.b.try_sh("grep -cF -f - /root/cmdlines", input=secret)
    need("command lines", done.out.strip() == "0", done.out)
    need("nothing else is READY", set(nodes(pair)) == {"a", "b"})
