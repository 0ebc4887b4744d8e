# SPDX-License-Identifier: Apache-2.0
"""Where secrets are after a cluster has lived a little: tokens, keys, environments, secrets of jobs, answers of sessions. And where not:
in what others may read, in arguments and environments of processes, in the journal, in units, on the bus of others."""
import json

import pytest
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

SECRET = "hunter2-5c19"
PLACES = "/etc /run /var/lib /var/log /var/tmp /tmp /usr/lib/primus /root /home"

# Looks at all processes again and again for what is on standard input; says where it was.
SAMPLER = r"""
import glob, sys, time
needle, end, seen = sys.stdin.readline().strip().encode(), time.monotonic() + 8, set()
print("looking", flush=True)
while time.monotonic() < end:
    for path in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            if needle in open(path, "rb").read():
                seen.add(path + ": " + open(path.rsplit("/", 1)[0] + "/comm").read().strip())
        except OSError:
            pass
print(sorted(seen))
"""

EAVESDROP = r"""
import sys, time
from jeepney import DBusAddress, new_method_call
from jeepney.io.blocking import open_dbus_connection
bus = open_dbus_connection(bus="SYSTEM")
dbus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
for rule in ("eavesdrop='true'", "eavesdrop='true',type='method_return'", "eavesdrop='true',type='method_call',destination='org.primus.Master1'"):
    bus.send_and_get_reply(new_method_call(dbus, "AddMatch", "s", (rule,)))
print("listening", flush=True)
end, heard = time.monotonic() + 5, 0
while time.monotonic() < end:
    try:
        text = str(bus.receive(timeout=0.5).body)
    except TimeoutError:
        continue
    heard += "primus1." in text or "hunter2" in text
print(heard)
"""


@pytest.fixture(scope="module")
def lived(build):
    """A cluster in which all that touches secrets has happened; .token is what n2 joined by, .job runs with secrets of ml."""
    with Cluster(cluster_name(), 2, build=build, conf=["masterd.conf:Master.CertificateSec=45s"]) as cluster:
        cluster.wait_nodes()
        cluster.exec("n1", "sh", "-c", "mkdir -p /etc/primus/hooks; printf '#!/bin/sh\\ntrue\\n' > /etc/primus/hooks/notify; chmod 755 /etc/primus/hooks/notify")
        join_again(cluster)
        cluster.exec("n1", "sh", "-c", "umask 077; cat > ~/key", user="ml", input=SECRET + "-file")
        text = {"name": "secrets", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 32, "command": "sleep 900",
                                             "scheduleStrategy": {"maxReplicasPerNode": 1}}]}
        cluster.exec("n1", "sh", "-c", "cat > ~/job.json", user="ml", input=json.dumps(text))
        # --env=NAME takes the value from the environment, so that it is in nobody's arguments.
        cluster.job = json.loads(cluster.exec("n1", "sh", "-c", "read -r API_KEY; export API_KEY; primusctl submit --json --env=API_KEY "
                                              "--secret=key=/home/ml/key ~/job.json", user="ml", input=SECRET + "-env\n"))["job"]
        cluster.wait_state(cluster.job, "RUNNING", timeout=30)
        said = cluster.exec("n1", "primusctl", "exec", str(cluster.job), "worker/0", "--", "sh", "-c",
                            'echo $API_KEY; cat $PRIMUS_SECRETS_DIR/key', user="ml")
        assert SECRET + "-env" in said and SECRET + "-file" in said
        ended = cluster.submit({"name": "ended", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "true"}]})
        assert cluster.wait_job(ended) == 0
        before = cluster.exec("n2", "sha256sum", "/etc/primus/node/node.crt")
        cluster.wait_for(lambda: cluster.exec("n2", "sha256sum", "/etc/primus/node/node.crt") != before, 60, "n2's certificate is renewed")
        yield cluster


def join_again(cluster):
    """n2 leaves and joins by a token, while somebody looks at all processes of both hosts."""
    cluster.exec("n2", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /etc/primus/node/*")
    cluster.run("n1", "primusctl", "node", "remove", "n2")
    cluster.token = cluster.primusctl("token", "create", user="root").strip()
    needle = cluster.token[-24:]
    with cluster.process("n1", "python3", "-c", SAMPLER, stdin=-1) as one, cluster.process("n2", "python3", "-c", SAMPLER, stdin=-1) as two:
        for looking in (one, two):
            looking.stdin.write(needle + "\n")
            looking.stdin.flush()
            assert looking.stdout.readline() == "looking\n"
        done = cluster.run("n2", "primusctl", "join", "n1", input=cluster.token + "\n")
        assert done.returncode == 0, done.stderr
        assert cluster.token[-24:] not in done.stdout + done.stderr
        cluster.seen = [looking.communicate(timeout=30)[0].splitlines()[-1] for looking in (one, two)]
    cluster.exec("n2", "systemctl", "restart", AGENTD)
    cluster.wait_nodes()


def needles(cluster):
    return [cluster.token[-24:], SECRET + "-env", SECRET + "-file"]


def grep(cluster, node, words, where, user="root", options=""):
    """The files that have one of the words; the words themselves go in by standard input."""
    return set(cluster.exec(node, "sh", "-c", f"exec 2>/dev/null; cd /; cat > /dev/shm/words.$$; {{ {where}; }} | xargs -0 -r grep -laF {options} -f /dev/shm/words.$$; "
                            "rm /dev/shm/words.$$; true", user=user, input="\n".join(words) + "\n", timeout=120).split("\n")) - {""}


def test_a_token_is_in_no_process(lived):
    assert lived.seen == ["[]", "[]"]


def test_a_token_is_kept_by_nobody(lived):
    for node in lived.nodes:
        assert grep(lived, node, needles(lived)[:1], f"find {PLACES} -xdev -type f -print0") == set()


def test_the_journal_has_none(lived):
    for node in lived.nodes:
        text = lived.exec(node, "journalctl", "--no-pager", "-o", "export", "--all", timeout=120)
        # The line of what primusctl was asked to do in a session is a user's own.
        assert not [line for line in text.splitlines() if any(word in line for word in needles(lived))]


def test_what_others_may_read(lived):
    """Root looks for it, so that a directory that is closed by luck does not hide a file that is open."""
    for node in lived.nodes:
        found = grep(lived, node, [*needles(lived), "PRIVATE KEY"], f"find {PLACES} -xdev -type f -perm /004 -print0; "
                     "find /run -type f -perm /004 -print0")
        assert found == set(), node
        assert grep(lived, node, [*needles(lived), "PRIVATE KEY"], f"find {PLACES} -type f -print0", user="eve") == set(), node


def test_keys(lived):
    owners = {}
    for node in lived.nodes:
        for path in grep(lived, node, ["PRIVATE KEY"], "find /etc/primus /var/lib/primus /var/lib/primus-agent /run/primus -type f -print0"):
            owners[node, path] = lived.exec(node, "stat", "-c", "%U %a", path).strip()
    assert owners.pop(("n1", "/etc/primus/node/node.key")) == owners.pop(("n2", "/etc/primus/node/node.key")) == "primus-agent 600"
    # The authority's key is in the store (and its log), which is primus's alone.
    assert owners and all(node == "n1" and path.startswith("/var/lib/primus/primus.db") and owner == "primus 600"
                          for (node, path), owner in owners.items()), owners
    assert lived.exec("n1", "stat", "-c", "%U %G %a", "/var/lib/primus") == "primus primus 700\n"
    assert lived.exec("n1", "find", "/var/lib/primus", "-perm", "/077", "-type", "f") == ""


def test_tokens_are_kept_as_hashes(lived):
    fresh = lived.primusctl("token", "create", "--uses=5", user="root").strip()
    assert grep(lived, "n1", [fresh[-24:], fresh[8:40]], "find /var/lib/primus /run/primus-masterd -type f -print0") == set()


def test_units_have_none(lived):
    for node in lived.nodes:
        text = lived.exec(node, "sh", "-c", "systemctl show --all 'primus*'; systemctl cat 'primus*' 2>/dev/null; cat /run/systemd/transient/* "
                          "/run/systemd/transient/*/* 2>/dev/null; true")
        assert f"primus-{lived.job}-worker" in text and not any(word in text for word in needles(lived))


def test_files_of_an_executor(lived):
    for executor in lived.status(lived.job)["executors"]:
        path = f"/run/primus/x/{executor['unit']}"
        for command in (["ls", path], ["ls", "/run/primus/x"], ["cat", f"{path}/env"], ["ls", f"{path}/secrets"], ["cat", f"{path}/secrets/key"],
                        ["cat", f"{path}/rendezvous"], ["cat", f"{path}/progress"], ["ls", "/run/primus/exits"]):
            done = lived.run(executor["node"], *command, user="eve")
            assert done.returncode != 0 and done.stdout == "" and "Permission denied" in done.stderr, command


def test_nobody_listens_in(lived):
    """Answers of the bus go to who asked; a monitor is root's."""
    with lived.process("n1", "python3", "-c", EAVESDROP, user="eve") as eve:
        assert eve.stdout.readline() == "listening\n"
        lived.primusctl("token", "create", user="root")
        lived.primusctl("status", str(lived.job), user="ml")
        assert eve.communicate(timeout=30)[0].split()[-1] == "0"
    assert lived.run("n1", "timeout", "2", "busctl", "monitor", user="eve").returncode != 0


def test_a_core_is_not_for_others(lived):
    """Neither daemon can write one where others read it: what it may write to is closed, and a handler's is root's."""
    for node, unit in (("n1", MASTERD), ("n2", AGENTD)):
        pid = lived.exec(node, "systemctl", "show", "-P", "MainPID", unit).strip()
        assert lived.run(node, "cat", f"/proc/{pid}/environ", user="eve").returncode != 0
        assert lived.run(node, "ls", f"/proc/{pid}/fd", user="eve").returncode != 0
        assert lived.exec(node, "readlink", f"/proc/{pid}/cwd").strip() == "/"  # read-only for both (ProtectSystem=strict)


def test_nobody_fills_the_room_of_all(lived):
    """The directory of secrets is its user's, on a small file system that every executor of the host needs."""
    job = {"name": "filler", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 600, "nodes": ["n1"], "command":
           "chmod 700 $PRIMUS_SECRETS_DIR; head -c 450M /dev/zero > $PRIMUS_SECRETS_DIR/filler; echo filled; sleep 600"}]}
    lived.exec("n1", "sh", "-c", "cat > ~/filler.json", user="ml", input=json.dumps(job))
    filler = json.loads(lived.exec("n1", "primusctl", "submit", "--json", "--secret=key=/home/ml/key", "/home/ml/filler.json", user="ml"))["job"]
    assert lived.wait_job(filler, timeout=60) == 1
    assert "which all jobs of this host share" in json.dumps(lived.status(filler))
    assert "is killed: it has" in lived.journal("n1", AGENTD)
    after = lived.submit({"name": "after", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "nodes": ["n1"], "command": "true"}]})
    assert lived.wait_job(after) == 0
    assert lived.status(lived.job)["state"] == "RUNNING"


@pytest.mark.parametrize("hide, status, said", [
    ("mkdir -p 2/3/4/5/6/7/8/9/10; cd 2/3/4/5/6/7/8/9/10; head -c 450M /dev/zero > filler; sleep 600", 1, "is killed: it has"),
    ("exec 9> filler; rm filler; head -c 450M /dev/zero >&9; sleep 10", 0, "files that are open and have no name")], ids=["deep", "unnamed"])
def test_who_hides_has_nobody_else_ended(lived, hide, status, said):
    """What nobody can be blamed for by its name is not blamed on those whose files have one."""
    lived.exec("n1", "sh", "-c", "umask 077; echo x > ~/key", user="eve")
    job = {"name": "hider", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 600, "nodes": ["n1"],
                                      "command": f"chmod 700 $PRIMUS_SECRETS_DIR; cd $PRIMUS_SECRETS_DIR; {hide}"}]}
    lived.exec("n1", "sh", "-c", "cat > ~/hider.json", user="eve", input=json.dumps(job))
    def others():
        return [(e["unit"], e["state"]) for e in lived.status(lived.job)["executors"]]
    before = others()
    hider = json.loads(lived.exec("n1", "primusctl", "submit", "--json", "--secret=key=/home/eve/key", "/home/eve/hider.json", user="eve"))["job"]
    assert lived.wait_job(hider, timeout=60) == status
    assert said in lived.journal("n1", AGENTD)
    assert others() == before


def test_a_backup_is_closed(lived):
    """It has the authority's key, and so it is for who made it; no token is in it."""
    lived.exec("n1", "sh", "-c", "umask 0; cd /var/tmp && primusctl backup kept.backup")
    try:
        assert lived.exec("n1", "stat", "-c", "%U %a", "/var/tmp/kept.backup") == "root 600\n"
        assert grep(lived, "n1", needles(lived)[:1], "printf '/var/tmp/kept.backup\\0'") == set()
        for user in ("eve", "ml"):
            assert lived.run("n1", "cat", "/var/tmp/kept.backup", user=user).returncode != 0
            refused = lived.run("n1", "primusctl", "backup", "/tmp/mine", user=user)
            assert refused.returncode != 0 and lived.run("n1", "test", "-e", "/tmp/mine").returncode != 0
    finally:
        lived.exec("n1", "rm", "-f", "/var/tmp/kept.backup")
