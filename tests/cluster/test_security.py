# SPDX-License-Identifier: Apache-2.0
"""What users of a host can do to each other's jobs, and must not: ml owns the jobs, eve looks."""
import json

import pytest

MANAGER = ("org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager")
SECRET = "s3cret-9f1b"
PROGRAM = r"""
import json, os, sys
umask = os.umask(0)
print(json.dumps({"uid": os.getresuid(), "gid": os.getresgid(), "groups": sorted(os.getgroups()), "umask": umask,
                  "home": os.environ.get("HOME"), "user": os.environ.get("USER"), "cwd": os.getcwd(),
                  "work": [os.stat(".").st_uid, os.stat(".").st_mode & 0o7777],
                  "status": [l.split() for l in open("/proc/self/status") if l.startswith(("NoNewPrivs", "CapEff", "CapBnd"))]}))
"""


def config(command, num=1, **more):
    """num executors, one on each host."""
    role = {"roleName": "worker", "num": num, "vcores": 0.1, "memoryMb": 32, "scheduleStrategy": {"maxReplicasPerNode": 1},
            ("argv" if isinstance(command, list) else "command"): command}
    return {"name": "security", "role": [role], **more}


def job_path(number):
    return f"/org/primus/Master1/job/{number}"


def call_job(cluster, user, number, method, *arguments):
    return cluster.run("n1", "busctl", "call", "org.primus.Master1", job_path(number), "org.primus.Master1.Job", method,
                       *arguments, user=user)


def output(cluster, number, executor="worker/0", user="ml"):
    return cluster.primusctl("logs", str(number), executor, user=user)


def running(cluster, number, user="ml"):
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(number), user=user)["state"].upper() == "RUNNING", 20,
                     f"job {number} runs")
    return cluster.primusctl_json("status", str(number), user=user)


@pytest.fixture(scope="module")
def long_job(_cluster):
    """A job of ml on every host, with an environment and a secret."""
    cluster = _cluster
    cluster.wait_nodes()
    cluster.exec("n1", "sh", "-c", f"umask 077; printf %s {SECRET}-file > ~/token", user="ml")
    text = json.dumps(config("echo " + SECRET + "-log; sleep 600", 3))
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp); cat > $f; echo $f", user="ml", input=text).strip()
    number = cluster.primusctl_json("submit", f"--env=API_KEY={SECRET}-env", "--secret=token=/home/ml/token", path)["job"]
    running(cluster, number)
    yield number
    cluster.run("n1", "primusctl", "kill", str(number), user="ml")


# ---- who a job is ----------------------------------------------------------------------------------------------------


def test_a_job_is_its_submitter(cluster):
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-c", "getent group gpu >/dev/null || groupadd -g 3000 gpu; usermod -aG gpu ml")
    number = cluster.submit(config(["/usr/bin/python3", "-c", PROGRAM], 3))
    assert cluster.wait_job(number) == 0
    for index in range(3):
        said = json.loads(output(cluster, number, f"worker/{index}"))
        assert said["uid"] == [1000] * 3 and said["gid"] == [1000] * 3
        assert said["groups"] == [1000, 3000]
        assert said["umask"] == 0o022
        assert (said["home"], said["user"]) == ("/home/ml", "ml")
        assert said["work"] == [1000, 0o700]
        status = {key: value for key, value in said["status"]}
        assert status["NoNewPrivs:"] == "1" and int(status["CapEff:"], 16) == 0


def test_no_setuid_program_helps(cluster):
    number = cluster.submit(config("su -c id root </dev/null; grep -c 0000000000000000 /proc/self/status; /bin/passwd -S root; true"))
    assert cluster.wait_job(number) == 0
    assert "uid=0" not in output(cluster, number)


def test_root_is_refused(cluster):
    done = cluster.run("n1", "primusctl", "submit", "-", input=json.dumps(config("id")))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Jobs of root are refused" in done.stderr and "AllowRoot=yes in agentd.conf" in done.stderr


def test_root_where_it_is_allowed(new_cluster):
    cluster = new_cluster(1, conf=["agentd.conf:Agent.AllowRoot=yes"])
    cluster.wait_nodes()
    number = cluster.submit(config("id -u"), user="root")
    assert cluster.wait_job(number, user="root") == 0
    assert output(cluster, number, user="root") == "0\n"


# ---- seeing into another's job ------------------------------------------------------------------------------------------


METHODS = (("GetStatus",), ("GetConfig",), ("ListExecutors", "b", "false"), ("ListExecutors", "b", "true"), ("ListEvents", "t", "0"),
           ("ReadLog", "suuayta{sv}", "worker", "0", "0", "0", "0", "0"), ("Kill", "s", "because"))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m[0])
def test_others_jobs_are_closed(cluster, long_job, method):
    done = call_job(cluster, "eve", long_job, *method)
    assert done.returncode != 0 and SECRET not in done.stdout + done.stderr
    assert "org.primus.manage-jobs" in done.stderr or "authentication" in done.stderr.lower(), done.stderr
    assert running(cluster, long_job)


@pytest.mark.parametrize("command", ["status", "config", "events", "logs", "kill"])
def test_primusctl_says_why(cluster, long_job, command):
    done = cluster.run("n1", "primusctl", command, str(long_job), user="eve")
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "only the owner and root" in done.stderr.lower() or "needs a password" in done.stderr
    assert running(cluster, long_job)


def test_the_list_tells_little(cluster, long_job):
    for arguments in (["list", "--all"], ["list", "--all", "--json"]):
        said = cluster.primusctl(*arguments, user="eve")
        assert str(long_job) in said and SECRET not in said and "sleep 600" not in said
    rows = cluster.primusctl_json("list", "--all", user="eve")
    rows = rows["jobs"] if isinstance(rows, dict) else rows
    assert not any(row.get("reason") for row in rows if row["owner"] not in ("eve", 1001))


POLKIT_RULE = """polkit.addRule(function(action, subject) {
    if (action.id == "org.primus.manage-jobs" && subject.user == "eve") return polkit.Result.YES;
});
"""


def test_an_administrator_by_polkit(cluster):
    number = cluster.submit(config("sleep 600"))
    running(cluster, number)
    rule = "/etc/polkit-1/rules.d/50-primus-test.rules"
    cluster.exec("n1", "sh", "-c", f"mkdir -p /etc/polkit-1/rules.d; cat > {rule}; systemctl restart polkit", input=POLKIT_RULE)
    try:
        cluster.wait_for(lambda: cluster.primusctl("status", str(number), user="eve"), 10, "the rule")
        done = cluster.run("n1", "primusctl", "token", "create", user="eve")
        assert done.returncode == 1 and done.stdout == "", "one action does not give the other"
        cluster.primusctl("kill", str(number), user="eve")
        assert cluster.wait_job(number) == 3
        assert "uid 1001" in cluster.primusctl("events", str(number))
    finally:
        cluster.exec("n1", "sh", "-c", f"rm {rule}; systemctl restart polkit")


def test_the_cluster_is_roots(cluster):
    for arguments in (["token", "create"], ["node", "remove", "n3"], ["node", "declare-dead", "n3"]):
        done = cluster.run("n1", "primusctl", *arguments, user="ml")
        assert done.returncode in (1, 2) and done.stdout == "", arguments
    cluster.wait_nodes()


# ---- environment and secrets --------------------------------------------------------------------------------------------

# Everything that a user of the host can look through, on the host of an executor.
LOOK = r"""
exec 2>/dev/null
for u in $(systemctl list-units --plain --no-legend 'primus-*' | awk '{print $1}'); do
        systemctl show --all "$u"; systemctl cat "$u"
        p=/org/freedesktop/systemd1/unit/$(systemd-escape "$u" | sed 's/\\x2d/_2d/g; s/-/_2d/g; s/\./_2e/g')
        busctl introspect org.freedesktop.systemd1 "$p" --full --no-pager
done
cat /run/systemd/transient/* /run/systemd/transient/*/*
grep -ra . /run/primus /var/lib/primus /var/lib/primus-agent /etc/primus
for d in /proc/[0-9]*; do tr '\0' '\n' < $d/environ; tr '\0' '\n' < $d/cmdline; cat $d/cwd/*; done
journalctl --no-pager -n 10000
ps auxeww
true
"""


def test_nobody_else_reads_it(cluster, long_job):
    for node in cluster.nodes:
        seen = cluster.exec(node, "sh", "-c", LOOK, user="eve", timeout=120)
        # The command line is what /proc shows to everybody; hidepid= is the site's.
        hits = [line for line in seen.splitlines() if SECRET in line and SECRET + "-log" not in line]
        assert hits == []
        assert f"primus-{long_job}-worker" in seen, "eve looked at the right thing"


def test_monitoring_is_roots(cluster):
    for tool in (["busctl", "monitor"], ["dbus-monitor", "--system"]):
        if cluster.run("n1", "sh", "-c", f"command -v {tool[0]}").returncode == 0:
            done = cluster.run("n1", "timeout", "2", *tool, user="eve")
            assert "org.primus" not in done.stdout
    assert cluster.run("n1", "timeout", "2", "busctl", "monitor", user="eve").returncode != 0


def test_the_environment_is_not_public_to_root_s_tools_either(cluster, long_job):
    """Not in the unit's properties nor on disk outside of /run/primus/x: so it is in no bug report."""
    unit = f"primus-{long_job}-worker-0.1.service"
    node = next(e for e in cluster.primusctl_json("status", str(long_job))["executors"] if e["index"] == 0)["node"]
    text = cluster.exec(node, "sh", "-c", f"systemctl show --all {unit}; systemctl cat {unit}")
    assert SECRET + "-env" not in text and SECRET + "-file" not in text
    found = cluster.exec(node, "sh", "-c", f"grep -rla -e {SECRET}-env -e {SECRET}-file /run /tmp /var/tmp /etc 2>/dev/null; true")
    assert set(found.split()) <= {f"/run/primus/x/{unit}/env", f"/run/primus/x/{unit}/secrets/token"}
    for n in cluster.nodes:
        journal = cluster.exec(n, "journalctl", "-o", "export", "--no-pager", "-u", "primus-masterd", "-u", "primus-agentd")
        assert SECRET not in journal


def test_the_owner_reads_it_and_then_it_is_gone(cluster):
    cluster.exec("n1", "sh", "-c", f"umask 077; printf %s {SECRET}-gone > ~/gone", user="ml")
    text = json.dumps(config('stat -c "%u %a" $PRIMUS_SECRETS_DIR $PRIMUS_SECRETS_DIR/k; cat $PRIMUS_SECRETS_DIR/k; echo; echo $K', 3))
    done = cluster.run("n1", "primusctl", "submit", "--wait", f"--env=K={SECRET}-genv", "--secret=k=/home/ml/gone", "-", user="ml",
                       input=text)
    assert done.returncode == 0, done.stderr
    number = cluster.primusctl_json("list", "--all")
    number = (number["jobs"] if isinstance(number, dict) else number)[0]["job"]
    assert output(cluster, number) == f"1000 500\n1000 400\n{SECRET}-gone\n{SECRET}-genv\n"
    where = "/run /var/lib/primus /var/lib/primus-agent /tmp /var/tmp"
    # The words themselves are in this shell's arguments, not in a file. journald has the output that the job chose to print.
    look = f"find {where} -path '*/log/journal' -prune -o -type f -print0 | xargs -0 grep -la -e {SECRET}-gone -e {SECRET}-genv; true"

    def gone():
        found = {node: cluster.exec(node, "sh", "-c", look + " 2>/dev/null").split() for node in cluster.nodes}
        return not any(f for paths in found.values() for f in paths if "/logs/" not in f)

    cluster.wait_for(gone, 30, "the end of the secrets on every host")


ODD = {"Q1": "a\"b'c", "NL": "one\ntwo\n", "D": "$HOME ${HOME} $$ `id` \\$x", "B": "a\\nb\\", "U": "Grüße, 世界", "SP": "  lead and trail  ",
       "P": "%n %% %i", "H": "#no;comment", "E": "", "EQ": "a=b=c", "TAB": "a\tb", "CR": "a\rb", "ESC": "\x1b[31m", "ONE": "\x01"}


def test_values_arrive_as_they_are(cluster):
    show = "import os,sys,json; print(json.dumps({k: os.environb[k.encode()].hex() for k in sys.argv[1:]}))"
    options = [f"--env={key}={value}" for key, value in ODD.items()]
    text = json.dumps(config(["/usr/bin/python3", "-c", show, *ODD]))
    path = cluster.exec("n1", "sh", "-c", "f=$(mktemp); cat > $f; echo $f", user="ml", input=text).strip()
    number = cluster.primusctl_json("submit", *options, path)["job"]
    assert cluster.wait_job(number) == 0
    said = json.loads(output(cluster, number))
    assert said == {key: value.encode().hex() for key, value in ODD.items()}


def test_arguments_arrive_as_they_are(cluster):
    words = list(ODD.values()) + ["$PATH", "%h", "\\", "-", "--", ";"]
    show = "import sys,json; print(json.dumps(sys.argv[1:]))"
    number = cluster.submit(config(["/usr/bin/python3", "-c", show, *words]))
    assert cluster.wait_job(number) == 0
    assert json.loads(output(cluster, number)) == words
