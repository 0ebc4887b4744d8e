# SPDX-License-Identifier: Apache-2.0
"""The master's state as a file: made while it runs, put back after it was lost, and on another host."""
import json
import time

import pytest
from conftest import PATIENT
from sandbox import AGENTD, MASTERD, Cluster, cluster_name, shared_directory

FILE = "/var/tmp/state.tar.zst"


def sleeper(node, name="sleeper"):
    return {"name": name, "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "echo begun; sleep 900",
                                    "constraints": [f"host={node}"]}]}


@pytest.fixture(scope="module")
def two(build, tmp_path_factory):
    shared = shared_directory(tmp_path_factory, "backup")
    with Cluster(cluster_name(), 2, build=build, binds=[f"{shared}:/shared"], conf=[PATIENT]) as cluster:
        cluster.wait_nodes()
        yield cluster


def run_on(cluster, node, name="sleeper"):
    text = json.dumps(sleeper(node, name))
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp); cat > $f; echo $f", user="ml", input=text).strip()
    number = cluster.primusctl_json("submit", path)["job"]
    cluster.wait_state(number, "RUNNING")
    return number


def main_pids(cluster, node, job):
    return cluster.exec(node, "systemctl", "show", "-P", "MainPID", f"primus-{job}-worker-0.1.service").strip()


def destroy(cluster, node="n1"):
    """As a broken disk does; the directory itself is where the disk is mounted."""
    cluster.exec(node, "systemctl", "stop", MASTERD)
    cluster.exec(node, "sh", "-c", "rm -rf /var/lib/primus/* /var/lib/primus/.[!.]* /etc/primus/masterd.conf.d/*; ls -A /var/lib/primus")


def restore(cluster, *options, node="n1", file=FILE):
    return cluster.run(node, "primusctl", "restore", *options, file)


def test_refusals(two):
    assert "only root" in two.run("n1", "primusctl", "backup", "/tmp/x", user="ml").stderr
    assert two.run("n1", "ls", "/tmp/x").returncode != 0
    done = two.run("n1", "sh", "-c", "umask 022; primusctl backup - > /root/open; stat -c %s /root/open")
    assert "others may read" in done.stderr and done.stdout == "0\n"
    assert "terminal" in two.run("n1", "script", "-qec", "primusctl backup -", "/dev/null").stdout
    two.exec("n1", "primusctl", "backup", FILE)
    assert two.exec("n1", "stat", "-c", "%a %U", FILE).strip() == "600 root"
    assert "systemctl stop primus-masterd" in restore(two).stderr
    assert two.run("n2", "primusctl", "restore", "/etc/passwd").returncode == 1
    assert two.run("n2", "ls", "/var/lib/primus/primus.db").returncode != 0, "nothing is left of what was refused"
    assert "is this the master's host" in two.run("n2", "primusctl", "backup", "/root/x").stderr
    assert two.run("n1", "primusctl", "restore", FILE, user="ml").returncode == 1
    done = two.run("n1", "primusctl", "-H", "n2", "backup", "-")
    assert done.returncode == 2 and "ssh n2 primusctl backup" in done.stderr
    assert two.exec("n1", "sh", "-c", "umask 077; primusctl backup --plain - | tar tvf -").splitlines()[0].startswith("-rw-------")


def test_kept(two):
    two.exec("n1", "mkdir", "-p", "/root/kept")
    # What was cut off once goes, what may be under way stays.
    two.exec("n1", "sh", "-c", "cd /root/kept; touch primus-20260131T120000Z.tar.zst.young1; touch -d '2 days ago' primus-20260131T120000Z.tar.zst.old111 mine")
    for _ in range(3):
        two.exec("n1", "primusctl", "backup", "--keep", "2", "/root/kept")
        time.sleep(1)
    names = two.exec("n1", "ls", "/root/kept").split()
    assert len(names) == 4 and "mine" in names and "primus-20260131T120000Z.tar.zst.young1" in names


def test_restore(two):
    """A running job goes on as if nothing had been; what came after the backup is ended; no number is given out twice."""
    known = run_on(two, "n2")
    pid = main_pids(two, "n2", known)
    two.exec("n1", "sh", "-c", "echo '[Master]\nKeepJobs=77' > /etc/primus/masterd.conf.d/50-here.conf; chmod 644 /etc/primus/masterd.conf.d/50-here.conf")
    term = int(two.exec("n1", "busctl", "get-property", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager", "Term").split()[1])
    token = two.primusctl("token", "create", user="root")
    two.exec("n1", "primusctl", "backup", FILE)
    check = two.exec("n1", "primusctl", "restore", "--check", FILE)
    assert "It is whole" in check and "2 hosts" in check
    after = run_on(two, "n2", "after")
    for _ in range(3):
        two.exec("n1", "systemctl", "restart", MASTERD)
    two.wait_nodes()
    destroy(two)
    done = restore(two)
    assert done.returncode == 0, done.stderr
    assert "systemctl start primus-masterd" in done.stdout
    assert two.exec("n1", "sh", "-c", "stat -c '%n %a %U' /var/lib/primus/* | sort") == "/var/lib/primus/primus.db 600 primus\n"
    assert two.exec("n1", "cat", "/etc/primus/masterd.conf.d/50-here.conf") == "[Master]\nKeepJobs=77\n"
    assert two.exec("n1", "stat", "-c", "%a %U", "/etc/primus/masterd.conf.d/50-here.conf") == "644 root\n"
    two.exec("n1", "systemctl", "start", MASTERD)
    two.wait_nodes()
    again = int(two.exec("n1", "busctl", "get-property", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager", "Term").split()[1])
    assert again > term + 3
    two.wait_state(known, "RUNNING")
    assert main_pids(two, "n2", known) == pid
    assert two.executor(known)["attempt"] == 1
    two.wait_for(lambda: main_pids(two, "n2", after) in ("0", ""), 20, "the job that the state does not know is stopped")
    new = run_on(two, "n2", "new")
    assert new > after + 1000
    assert "not known here" in two.run("n2", "primusctl", "join", "n1", input=token).stderr
    two.kill(new)
    assert two.exec("n1", "sh", "-c", "ls -A /var/lib/primus | grep -c restore || true").strip() == "0"
    two.kill(known)


def test_the_state_before_is_kept(two):
    two.exec("n1", "primusctl", "backup", FILE)
    job = run_on(two, "n1", "kept")
    two.exec("n1", "systemctl", "stop", MASTERD)
    done = restore(two)
    assert done.returncode == 0, done.stderr
    before = next(w for w in done.stdout.split() if "before-restore" in w)
    assert two.exec("n1", "stat", "-c", "%a %U", before, before + "/primus.db") == "700 primus\n600 primus\n"
    # And back: it is a state like any other.
    two.exec("n1", "mv", before + "/primus.db", "/var/lib/primus/primus.db")
    two.exec("n1", "systemctl", "start", MASTERD)
    two.wait_nodes()
    assert two.status(job)["state"] == "RUNNING"
    two.kill(job)
    two.exec("n1", "rm", "-r", before)


def test_settings_before_are_kept_for_root(two):
    """What is replaced may be a program that root runs: it is kept where masterd's user cannot change it."""
    two.exec("n1", "sh", "-c", "printf '#!/bin/sh\\nexit 1\\n' > /etc/primus/hooks/fence; chmod 755 /etc/primus/hooks/fence")
    try:
        two.exec("n1", "primusctl", "backup", FILE)
        assert "settings/hooks/fence" not in two.exec("n1", "primusctl", "restore", "--check", FILE), "it is the one that is here"
        two.exec("n1", "sh", "-c", "echo '# changed' >> /etc/primus/hooks/fence; echo '[Master]\nKeepJobs=5' > /etc/primus/masterd.conf.d/60-later.conf")
        two.exec("n1", "systemctl", "stop", MASTERD)
        done = restore(two, "--with-hooks")
        assert done.returncode == 0, done.stderr
        kept = next(w for w in done.stdout.split() if w.startswith("/etc/primus/before-restore-"))
        assert two.exec("n1", "tail", "-1", kept) == "# changed\n"
        assert two.exec("n1", "stat", "-c", "%a %U", kept, kept.rsplit("/", 2)[0]) == "755 root\n700 root\n"
        assert two.exec("n1", "cat", "/etc/primus/hooks/fence") == "#!/bin/sh\nexit 1\n"
    finally:
        two.exec("n1", "sh", "-c", "rm -rf /etc/primus/hooks/fence /etc/primus/before-restore-* /var/lib/primus/before-restore-* /etc/primus/masterd.conf.d/60-later.conf")
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()


def test_links_of_masterd_lead_nowhere(two):
    """Who has taken over masterd does not get from root, by links in its directory, what its user may not have."""
    name = "0" * 64
    two.exec("n1", "sh", "-c", f"mkdir -p /var/lib/primus/bundles/7 /var/lib/primus/bundles/8; echo root-only > /root/secret; chmod 600 /root/secret;"
                               f"ln -s /root/secret /var/lib/primus/bundles/7/{name}; echo its-own > /var/lib/primus/bundles/8/{name};"
                               "mkdir -p /root/9; cp /root/secret /root/9/%s; ln -s /root/9 /var/lib/primus/bundles/9; chown -Rh primus: /var/lib/primus/bundles" % name)
    try:
        said = two.run("n1", "primusctl", "backup", "--plain", "--bundles", "/root/links")
        assert said.returncode == 0 and f"left out of the backup: /var/lib/primus/bundles/7/{name}: Permission denied" in said.stderr
        held = two.exec("n1", "tar", "tf", "/root/links").split()
        assert f"bundles/8/{name}" in held and not [h for h in held if h.startswith(("bundles/7", "bundles/9"))]
        assert two.run("n1", "grep", "-q", "root-only", "/root/links").returncode == 1
        # A database that is a link is neither opened nor given away.
        two.exec("n1", "systemctl", "stop", MASTERD)
        two.exec("n1", "sh", "-c", "cd /var/lib/primus; mv primus.db kept.db; touch /root/other; ln -s /root/other primus.db; chown -h primus: primus.db")
        done = restore(two)
        assert done.returncode == 1, done.stdout
        assert two.exec("n1", "stat", "-c", "%U %s", "/root/other") == "root 0\n"
    finally:
        two.exec("n1", "sh", "-c", "cd /var/lib/primus; [ ! -f kept.db ] || mv kept.db primus.db; rm -rf bundles/7 bundles/8 bundles/9 /root/links /root/9 /root/other")
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()


FORGER = """cd /var/lib/primus; mkdir -p forged/settings/hooks; printf '#!/bin/sh\\ntouch /root/forged\\n' > forged/settings/hooks/fence
while :; do printf '#!/bin/sh\\ntouch /root/forged\\n' > .restore/settings/hooks/fence; [ -d .restore ] && mv .restore taken$((i+=1)) && cp -r forged .restore; done 2>/dev/null"""


def test_settings_are_what_the_archive_says(two):
    """Whoever else has masterd's user and changes what was unpacked has nothing installed that root runs."""
    two.exec("n1", "sh", "-c", "printf '#!/bin/sh\\nexit 1\\n' > /etc/primus/hooks/fence; chmod 755 /etc/primus/hooks/fence")
    try:
        two.exec("n1", "primusctl", "backup", FILE)
        two.exec("n1", "systemctl", "stop", MASTERD)
        two.exec("n1", "systemd-run", "-q", "--unit=forger", "-p", "User=primus", "sh", "-c", FORGER)
        refused = 0
        for _ in range(20):
            two.exec("n1", "rm", "-f", "/etc/primus/hooks/fence")
            done = restore(two, "--with-hooks")
            refused += done.returncode != 0 or "cannot restore" in done.stderr
            assert two.run("n1", "cat", "/etc/primus/hooks/fence").stdout in ("", "#!/bin/sh\nexit 1\n")
            if refused:
                break
        assert refused > 0, "it came in between"
    finally:
        two.run("n1", "systemctl", "stop", "forger")
        two.exec("n1", "sh", "-c", "cd /var/lib/primus; rm -rf forged taken* .restore before-restore-* primus.db /etc/primus/hooks/fence /etc/primus/before-restore-*")
        done = restore(two)
        two.exec("n1", "sh", "-c", "rm -rf /etc/primus/hooks/fence")
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()
    assert done.returncode == 0, done.stderr


# What somebody with masterd's user can do to a backup that he may write: another member, with a manifest that has it.
FORGE = """import hashlib, io, json, sys, tarfile
old, new, strip = tarfile.open(sys.argv[1]), tarfile.open(sys.argv[2], "w"), len(sys.argv) > 3
evil = b"#!/bin/sh\\ntouch /root/forged\\n"
for m in old:
    data = old.extractfile(m).read()
    if m.name == "manifest.json":
        e = tarfile.TarInfo("settings/hooks/prolog"); e.size = len(evil); e.mode = 0o755
        new.addfile(e, io.BytesIO(evil))
        text = json.loads(data)
        text["files"].append({"name": e.name, "size": len(evil), "mode": 0o755, "sha256": hashlib.sha256(evil).hexdigest()})
        data = json.dumps(text).encode(); m.size = len(data)
    if m.name != "manifest.mac" or not strip:
        new.addfile(m, io.BytesIO(data))
new.close()
"""


def test_a_forged_hook(two):
    """The same archive with a program in it that root would run, and a manifest that names it: refused; without the MAC too."""
    two.exec("n1", "sh", "-c", "primusctl backup --plain /root/plain; cat > /root/forge.py; python3 /root/forge.py /root/plain /root/evil; "
                               "python3 /root/forge.py /root/plain /root/stripped strip", input=FORGE)
    for file, why in (("/root/evil", "MAC is wrong"), ("/root/stripped", "it has no MAC")):
        check = two.run("n1", "primusctl", "restore", "--check", file)
        assert check.returncode == 1 and "runs as root, confined by nothing, on this host before every job" in check.stdout, check.stdout + check.stderr
        assert why in check.stderr
    two.exec("n1", "systemctl", "stop", MASTERD)
    try:
        before = two.exec("n1", "sha256sum", "/var/lib/primus/primus.db")
        for file, options, why in (("/root/evil", (), "MAC is wrong"), ("/root/evil", ("--with-hooks",), "MAC is wrong"), ("/root/evil", ("--without-mac",), "MAC is wrong"),
                                   ("/root/stripped", (), "it has no MAC"), ("/root/stripped", ("--with-hooks",), "it has no MAC")):
            done = restore(two, *options, file=file)
            assert done.returncode == 1 and why in done.stderr and "nothing was changed" in done.stderr, (file, options, done.stderr)
        assert "taken from a backup with a good MAC alone" in restore(two, "--with-hooks", "--without-mac", file="/root/stripped").stderr
        assert two.exec("n1", "sha256sum", "/var/lib/primus/primus.db") == before
        two.exec("n1", "sh", "-c", "echo '[Master]\nKeepJobs=9' > /etc/primus/masterd.conf.d/70-here.conf")
        done = restore(two, "--without-mac", file="/root/stripped")
        assert done.returncode == 0 and "Settings and hooks are not taken" in done.stdout, done.stdout + done.stderr
        assert two.exec("n1", "cat", "/etc/primus/masterd.conf.d/70-here.conf") == "[Master]\nKeepJobs=9\n"
        assert two.run("n1", "ls", "/etc/primus/hooks/prolog", "/root/forged").stdout == ""
    finally:
        two.exec("n1", "sh", "-c", "rm -rf /root/plain /root/evil /root/stripped /root/forge.py /etc/primus/masterd.conf.d/70-here.conf /var/lib/primus/before-restore-*")
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()


def test_hooks_when_asked_for(two):
    """A restore says what differs, and leaves it as it is; hooks come with --with-hooks alone."""
    two.exec("n1", "sh", "-c", "printf '#!/bin/sh\\nexit 0\\n' > /etc/primus/hooks/notify; chmod 755 /etc/primus/hooks/notify")
    try:
        two.exec("n1", "primusctl", "backup", FILE)
        two.exec("n1", "sh", "-c", "rm /etc/primus/hooks/notify; systemctl stop " + MASTERD)
        for options, there in (((), False), (("--with-hooks",), True)):
            two.exec("n1", "sh", "-c", "rm -rf /var/lib/primus/before-restore-*")  # it is named by the second
            done = restore(two, *options)
            assert done.returncode == 0, done.stderr
            assert "Hook settings/hooks/notify: is not here" in done.stdout and "runs as a user of its own in primus-hook-notify@.service" in done.stdout, done.stdout
            assert ("--with-hooks takes those of the backup" in done.stdout) is not there
            assert (two.run("n1", "ls", "/etc/primus/hooks/notify").returncode == 0) is there
        assert restore(two, "--with-hooks", "--no-settings").returncode == 2
    finally:
        two.exec("n1", "sh", "-c", "rm -rf /etc/primus/hooks/notify /var/lib/primus/before-restore-* /etc/primus/before-restore-*; systemctl start " + MASTERD)
        two.wait_nodes()


def test_the_daily_one(two):
    """Made as a user who is neither root nor masterd's; who is masterd can neither write it nor learn the key."""
    two.exec("n1", "rm", "-f", "/etc/primus/backup.key")
    two.exec("n1", "sh", "-c", "mkdir -p /var/lib/primus-backup; touch /var/lib/primus-backup/old; chown -R primus: /var/lib/primus-backup")
    two.exec("n1", "systemctl", "start", "primus-backup.service", timeout=90)
    assert two.exec("n1", "stat", "-c", "%a %U %G", "/etc/primus/backup.key") == "600 root root\n"
    key = two.exec("n1", "cat", "/etc/primus/backup.key").strip()
    assert two.exec("n1", "stat", "-c", "%a %U", "/var/lib/primus-backup") == "700 primus-backup\n"
    file = two.exec("n1", "sh", "-c", "ls /var/lib/primus-backup/primus-*.tar.zst").strip()
    assert two.exec("n1", "stat", "-c", "%a %U", file) == "600 primus-backup\n"
    assert "its MAC is good" in two.exec("n1", "primusctl", "restore", "--check", file)
    for argv in (("cat", "/etc/primus/backup.key"), ("ls", "/var/lib/primus-backup"), ("touch", "/var/lib/primus-backup/x")):
        assert two.run("n1", "setpriv", "--reuid=primus", "--regid=primus", "--clear-groups", *argv).returncode != 0, argv
    assert key not in two.exec("n1", "journalctl", "-q", "--no-pager", "-o", "export")
    assert two.run("n1", "sh", "-c", "zstdcat %s 2>/dev/null | grep -qaF %s" % (file, key)).returncode != 0
    # The second time with the same key; and without the master, what is to be done.
    two.exec("n1", "systemctl", "start", "primus-backup.service", timeout=90)
    assert two.exec("n1", "cat", "/etc/primus/backup.key").strip() == key
    two.exec("n1", "systemctl", "stop", MASTERD)
    try:
        assert two.run("n1", "systemctl", "start", "primus-backup.service", timeout=90).returncode != 0
        assert "run this as root" in two.journal("n1", "primus-backup.service")
    finally:
        two.exec("n1", "sh", "-c", "rm -rf /var/lib/primus-backup/*; systemctl reset-failed primus-backup.service; systemctl start " + MASTERD)
        two.wait_nodes()


def test_bad_archives(two):
    """Whatever is wrong with it, the state is what it was."""
    two.exec("n1", "primusctl", "backup", FILE)
    two.exec("n1", "systemctl", "stop", MASTERD)
    try:
        before = two.exec("n1", "sha256sum", "/var/lib/primus/primus.db")
        bad = {"cut": f"head -c 3000 {FILE}", "changed": f"zstdcat {FILE} 2>/dev/null | python3 -c 'import sys; b=bytearray(sys.stdin.buffer.read()); b[9000]^=1; sys.stdout.buffer.write(b)'",
               "other": "tar cf - -C /etc passwd", "empty": "true"}
        for name, command in bad.items():
            if name == "changed":
                command = command.replace(f"zstdcat {FILE} 2>/dev/null", "cat /root/plain")
                two.exec("n1", "sh", "-c", "umask 077; primusctl backup --plain /root/plain")
            two.exec("n1", "sh", "-c", f"{command} > /root/bad")
            done = restore(two, file="/root/bad")
            assert done.returncode == 1 and "nothing was changed" in done.stderr, (name, done.stderr)
        assert two.exec("n1", "sha256sum", "/var/lib/primus/primus.db") == before
        assert two.exec("n1", "sh", "-c", "ls -A /var/lib/primus | grep restore || true") == ""
    finally:
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()


def test_killed_at_any_moment(two):
    """The old state or the new one; a restore after it works."""
    two.exec("n1", "primusctl", "backup", FILE)
    two.exec("n1", "systemctl", "stop", MASTERD)
    script = f"a=$(date +%s%N); primusctl restore {FILE} >/dev/null 2>&1; echo $(($(date +%s%N) - a)); rm -r /var/lib/primus/before-restore-*"
    whole = int(two.exec("n1", "sh", "-c", script)) / 1e9
    seen = set()
    for i in range(48):  # further on where the machine has become slower since: some are to be behind the exchange
        if i >= 12 and seen != {"0"}:
            break
        moment = whole * (i + 0.5) / 8
        two.exec("n1", "sh", "-c", f"primusctl restore {FILE} >/dev/null 2>&1 & sleep {moment:.3f}; kill -9 $! 2>/dev/null; wait; true")
        two.exec("n1", "systemctl", "start", MASTERD)
        two.wait_nodes()
        two.exec("n1", "systemctl", "stop", MASTERD)
        seen.add(two.exec("n1", "sh", "-c", "ls -A /var/lib/primus | grep -c before-restore || true").strip())
        time.sleep(0.5)
    done = restore(two)
    assert done.returncode == 0, done.stderr
    assert two.exec("n1", "sh", "-c", "ls -A /var/lib/primus | grep '^.restore' || true") == ""
    two.exec("n1", "sh", "-c", "rm -r /var/lib/primus/before-restore-*")
    two.exec("n1", "systemctl", "start", MASTERD)
    two.wait_nodes()
    assert len(seen) > 1, "some were killed behind the exchange, some before"


def test_disk_full(two):
    two.exec("n1", "primusctl", "backup", FILE)
    two.exec("n1", "sh", "-c", "mkdir -p /run/small && mount -t tmpfs -o size=16k none /run/small")
    done = two.run("n1", "primusctl", "backup", "--plain", "/run/small/x")
    assert done.returncode == 1 and "No space left" in done.stderr and two.exec("n1", "ls", "/run/small") == ""
    two.exec("n1", "umount", "/run/small")


def test_another_host(two):
    """n1 has burnt down: n2 becomes the master, and its executor never hears of it."""
    job = run_on(two, "n2")
    pid = main_pids(two, "n2", job)
    two.exec("n1", "sh", "-c", "primusctl backup - | cat > /shared/state; chmod 600 /shared/state; cp -p /etc/primus/backup.key /shared/key")
    two.crash("n1")
    done = restore(two, "--no-settings", node="n2", file="/shared/state")
    assert done.returncode == 1 and "there is no /etc/primus/backup.key" in done.stderr and "--key FILE" in done.stderr, done.stderr
    assert two.run("n2", "ls", "/var/lib/primus/primus.db").returncode != 0
    done = restore(two, "--no-settings", "--key", "/shared/key", node="n2", file="/shared/state")
    assert done.returncode == 0, done.stderr
    assert "before-restore" not in done.stdout
    two.exec("n2", "systemctl", "enable", "--now", "-q", MASTERD)
    two.exec("n2", "sh", "-c", "printf '[Agent]\\nMaster=n2\\n' > /etc/primus/agentd.conf.d/99-moved.conf; systemctl restart " + AGENTD)

    def ready():
        rows = json.loads(two.exec("n2", "primusctl", "nodes", "--json"))
        return any(r.get("name", r.get("node")) == "n2" and r["state"].upper() == "READY" for r in rows)

    two.wait_for(ready, 30, "n2 is READY")
    assert json.loads(two.exec("n2", "primusctl", "status", "--json", str(job)))["state"] == "RUNNING"
    assert main_pids(two, "n2", job) == pid
    assert two.run("n2", "primusctl", "run", "--hosts", "n2", "--", "hostname", user="ml", cwd="/tmp").stdout.strip().endswith("n2")


def test_what_happened_since(new_cluster):
    """A job that has ended since the backup runs once more; a certificate that was issued since is taken over, and its predecessor is void."""
    cluster = new_cluster(1, conf=["masterd.conf:Master.CertificateSec=45s", PATIENT])
    cluster.wait_nodes()
    text = json.dumps({"name": "once", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "date >> /tmp/ran; sleep 5", "successPercent": 100}]})
    job = cluster.submit(text)
    cluster.wait_state(job, "RUNNING")
    first = cluster.exec("n1", "cat", "/etc/primus/node/node.crt")
    cluster.exec("n1", "cp", "-a", "/etc/primus/node", "/root/first")
    cluster.exec("n1", "primusctl", "backup", FILE)
    assert cluster.wait_job(job) == 0
    cluster.wait_for(lambda: cluster.exec("n1", "cat", "/etc/primus/node/node.crt") != first, 40, "the renewal")
    cluster.exec("n1", "systemctl", "restart", AGENTD)
    cluster.wait_nodes()
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    done = restore(cluster)
    assert done.returncode == 0 and "run once more" in done.stdout, done.stderr
    cluster.exec("n1", "systemctl", "start", MASTERD)
    cluster.wait_nodes()
    assert "was issued after this state was backed up" in cluster.journal("n1", MASTERD)
    assert cluster.wait_job(job) == 0
    assert len(cluster.exec("n1", "cat", "/tmp/ran").splitlines()) == 2
    cluster.exec("n1", "sh", "-c", f"systemctl stop {AGENTD}; cp /root/first/* /etc/primus/node/; systemctl start --no-block {AGENTD}")
    cluster.wait_for(lambda: "certificate was revoked" in cluster.journal("n1", AGENTD), 20, "the first certificate is refused")
