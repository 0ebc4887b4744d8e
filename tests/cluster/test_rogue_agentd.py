# SPDX-License-Identifier: Apache-2.0
"""A captured primus-agentd at the starter's socket (rogue_calls.py): some 1,600 chosen calls and 10,000 random ones later nothing has run but as
a user whom the host serves, no file has changed but those of executors and jobs, no other unit was touched, the starter is the same process, and an
honest agentd works with it. PRIMUS_ROGUE_SEED and PRIMUS_ROGUE_CALLS make a campaign of it."""
import json
import os
import re

from sandbox import AGENTD, SOURCE, STARTER

SEED = os.environ.get("PRIMUS_ROGUE_SEED", "1")
CALLS = os.environ.get("PRIMUS_ROGUE_CALLS", "10000")
SERVED = 1000  # ml; eve is not, by agentd.conf
# systemd's own: of a daemon-reload, and of daemons that were started again.
NOISE = ("/run/systemd/systemd-units-load: ", "/var/tmp/systemd-private-", "/run/systemd/propagate/primus-alone.service: ")
OURS = re.compile(r"primus-[0-9]+-[A-Za-z0-9_.-]+\.service|primus-session-[0-9]+-[A-Za-z0-9_.-]+\.service|primus-hook-[a-z0-9.-]+\.service|primus-[0-9]+\.slice|"
                  r"run-primus-shm-[0-9]+\.[0-9a-f]{8}\.mount")

# Every program that runs on a rogue's word leaves a file of its own owner; the site's hooks say what they were told.
SETUP = """set -e
mkdir -m 1777 /marks
cat > /usr/local/bin/rogue-mark << 'END'
#!/bin/sh
: > /marks/$$-$1
END
chmod 755 /usr/local/bin/rogue-mark
mkdir -p /etc/primus/hooks
cat > /etc/primus/hooks/prolog << 'END'
#!/bin/sh
echo "$PRIMUS_HOOK|$PRIMUS_UID|$PRIMUS_WORK|$(env | grep -c ^PRIMUS_JOB_UID=)" >> /var/log/hooks-said
END
chmod 755 /etc/primus/hooks/prolog
cp /etc/primus/hooks/prolog /etc/primus/hooks/epilog
cp /etc/primus/hooks/prolog /etc/primus/hooks/health
mkdir -p /root/.ssh
echo key > /root/.ssh/authorized_keys
touch /root/secret
"""

# Everything but what is the rogue's to change: files of executors and jobs, agentd's own, and what they leave in logs.
LOOK = r"""
import hashlib, json, os, stat, sys
skip = {"/proc", "/sys", "/dev", "/tmp", "/marks", "/run/primus", "/var/lib/primus-agent", "/var/lib/primus", "/run/systemd/transient", "/run/systemd/units", "/run/log", "/var/log",
        "/run/systemd/journal", "/shared", "/etc/primus/node", *sys.argv[1:]}
read = ("/etc", "/root", "/home", "/run", "/usr/lib/systemd", "/usr/local", "/var/spool")
found = {}
def look(path):
    st = os.lstat(path)
    what = [stat.filemode(st.st_mode), st.st_uid, st.st_gid]
    if stat.S_ISLNK(st.st_mode):
        what.append(os.readlink(path))
    elif not stat.S_ISDIR(st.st_mode):
        what += [st.st_size, st.st_mtime_ns, st.st_ctime_ns, st.st_ino]
    if stat.S_ISREG(st.st_mode) and st.st_size < 1 << 20 and path.startswith(read):
        what.append(hashlib.sha1(open(path, "rb").read()).hexdigest())
    found[path] = what
for top, names, files in os.walk("/"):
    names[:] = [n for n in names if os.path.join(top, n) not in skip and not (top == "/" and n in ("usr", "lib", "bin", "sbin", "lib64") and os.path.islink("/" + n))]
    for n in names + files:
        try:
            look(os.path.join(top, n))
        except FileNotFoundError:
            pass
print(json.dumps(found))
"""

UNITS = r"""
import json, subprocess
listed = json.loads(subprocess.run(["systemctl", "list-units", "--all", "--output=json"], capture_output=True, text=True).stdout)
names = [u["unit"] for u in listed]
shown = subprocess.run(["systemctl", "show", "-p", "Id,LoadState,ActiveState,MainPID,InvocationID,NRestarts,FragmentPath,DropInPaths,FreezerState", "--", *names], capture_output=True, text=True).stdout
print(json.dumps({dict(l.split("=", 1) for l in part.splitlines())["Id"]: part for part in shown.split("\n\n") if part.strip()}))
"""


def files(cluster):
    return json.loads(cluster.exec("n1", "python3", "-c", LOOK, timeout=120))


def units(cluster):
    """Without Primus' own that come and go with executors (primus-alone runs while there are some with onPartition=stop)."""
    return {name: what for name, what in json.loads(cluster.exec("n1", "python3", "-c", UNITS, timeout=60)).items()
            if not OURS.fullmatch(name) and not name.startswith("primus-alone.") and not name.startswith(("session-", "user-", "user@", "user-runtime-dir@")) and "LoadState=not-found" not in what}


def different(before, after):
    """One line for each that was added, has gone or is another."""
    return sorted(f"{k}: {before.get(k)} -> {after.get(k)}" for k in before.keys() | after.keys() if before.get(k) != after.get(k))


def files_of_others(before, after):
    """What jobs of the user's left in his own directory is his."""
    home = re.compile(rf"/home/ml/[^/]+: None -> \['-rw-r--r--', {SERVED}, {SERVED}, ")
    return [line for line in different(before, after) if not home.match(line) and not line.startswith(NOISE)]


def pid(cluster, unit):
    return cluster.exec("n1", "systemctl", "show", "-P", "MainPID", unit).strip()


def test_rogue_agentd(new_cluster):
    cluster = new_cluster(1, conf=["agentd.conf:Agent.DenyUsers=eve"])
    cluster.wait_nodes()
    with open(os.path.join(SOURCE, "tests/cluster/rogue_calls.py"), encoding="utf-8") as f:
        program = f.read()
    cluster.exec("n1", "sh", "-c", SETUP)
    cluster.exec("n1", "sh", "-c", "cat > /tmp/rogue_calls.py", input=program)
    # Nobody else gets as far as to be refused a call.
    for user in ("ml", "primus"):
        assert "Permission denied" in cluster.run("n1", "python3", "-B", "/tmp/rogue_calls.py", "1", "1", user=user).stderr
    before, units_before, starter = files(cluster), units(cluster), pid(cluster, STARTER)

    done = cluster.run("n1", "python3", "-B", "/tmp/rogue_calls.py", SEED, CALLS, user="primus-agent", timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = json.loads(done.stdout)
    print({**said, "wrong": len(said["wrong"])})
    assert said["wrong"] == [], "\n".join(said["wrong"])
    assert said["chosen"] > 500 and said["random"] == int(CALLS)

    # What was written for PID 1 is read now, and everything that was started ends.
    cluster.exec("n1", "systemctl", "daemon-reload")
    written = cluster.exec("n1", "sh", "-c", "cd /run/systemd/transient && grep -rE '^Exec[A-Za-z]*=[-@:+!]|^Exec(Stop|Reload|StartPost|Condition)|^User=(0|root)$|^LoadCredential' . || :")
    assert written == ""
    cluster.exec("n1", "sh", "-c", "systemctl list-units --all --plain --no-legend | awk '{print $1}' | grep -E '^(primus-[0-9]|primus-session-|primus-hook-|run-primus-shm-)' | "
                 "xargs -r systemctl stop", timeout=60)
    assert pid(cluster, STARTER) == starter
    # systemd's notes of SetSlice, where there is no such slice, stay until the starter is started again: limits of jobs' slices, nothing else.
    limits = re.compile(r"/run/systemd/system.control(/primus-[0-9]+\.slice\.d(/50-(CPUQuota|CPUWeight|MemoryMax|MemorySwapMax|TasksMax)\.conf)?)?: None -> ")
    changed = different(units_before, units(cluster)) + [line for line in files_of_others(before, files(cluster)) if not limits.match(line)]
    assert changed == [], "\n".join(changed)
    ran = cluster.exec("n1", "sh", "-c", "stat -c '%u %n' /marks/* | sort | uniq -c").splitlines()
    assert ran and {line.split()[1] for line in ran} == {str(SERVED)}, ran
    told = cluster.exec("n1", "cat", "/var/log/hooks-said").splitlines()
    fine = re.compile(rf"(prolog|epilog)\|{SERVED}\|/var/lib/primus-agent/work/[0-9]+-[0-9a-f]{{8}}\|0|health\|\|\|0")
    assert [line for line in told if line.startswith("prolog")] and [line for line in told if not fine.fullmatch(line)] == [], told

    # Whatever it has left lying about is nothing to who comes next.
    cluster.exec("n1", "systemctl", "restart", AGENTD)
    cluster.wait_nodes(timeout=30)
    changed = [line for line in files_of_others(before, files(cluster)) if not line.startswith("/run/systemd/system.control: ")]
    assert changed == [], "\n".join(changed)
    number = cluster.submit({"name": "honest", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "id -u"}]})
    assert cluster.wait_job(number) == 0
    assert cluster.primusctl("logs", str(number)).strip() == str(SERVED)
    assert cluster.run("n1", "journalctl", "-q", "-u", STARTER, "-g", "status=[0-9]+/(ABRT|SEGV|BUS|ILL|FPE|TRAP|SYS)|Sanitizer|runtime error|watchdog").stdout == ""
