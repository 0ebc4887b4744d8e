# SPDX-License-Identifier: Apache-2.0
"""Who may look at a job of ml's: eve is in his team (group lab), ann may use pool prod with him, zoe has nothing to do with either.
What each sees with each setting, that nobody but he controls it, and what zoe tries to see in spite of it."""
import contextlib
import json
import re

import pytest
from sandbox import MASTERD, Cluster, cluster_name

SECRET = "s3cret-4c1d"
MASTER = "org.primus.Master1"
JOB = MASTER + ".Job"
FORGOTTEN = 45  # s, after which somebody who left a group has lost sight: 30 s that it is kept, and what the machine takes
SETTINGS = ("owner", "group", "pool", "all")
# Pool lab has the group; in prod ml and group prodders are; default has neither.
USERS = {"ml": SETTINGS, "eve": ("group", "all"), "ann": ("pool", "all"), "zoe": ("all",), "root": SETTINGS}
LOOKS = (["status"], ["events"], ["logs"], ["why"], ["config"], ["data"], ["top", "--once"], ["status", "--all"])
CALLS = (("GetStatus",), ("GetConfig",), ("ListExecutors", "b", "true"), ("ListEvents", "t", "0"), ("Why",), ("Telemetry", "a{sv}", "0"),
         ("ListTasks", "ta{sv}", "0", "0"), ("ListTrials", "u", "0"), ("ReplaySearch",), ("ListMetrics",), ("ReadMetrics", "sa{sv}", "loss", "0"), ("ReadLog", "suuayta{sv}", "worker", "0", "0", "0", "0", "0"))
NO_DATA = re.compile("is not fed with data|is no search")  # said to whom may look
CONTROLS = {"Kill": ("s", "x"), "KillWith": ("a{sv}", "0"), "Delete": (), "Succeed": ("s", "x"), "Suspend": (), "SuspendAs": ("s", "stop"), "Resume": (), "Requeue": ("s", "x"),
            "Update": ("ta{sv}", "0", "1", "visible", "s", "all"), "Scale": ("ta{sx}", "0", "1", "worker", "2"), "AddRole": ("ts", "0", "{}"), "AddSource": ("ts", "0", "{}"), "ReplaceSources": ("ts", "0", "[]"),
            "RemoveRole": ("ts", "0", "worker"), "RestartRole": ("siu", "worker", "0", "0"), "RetryTask": ("t", "0"), "SkipTask": ("t", "0"), "SteerSource": ("sa{sv}", "x", "1", "state", "s", "paused"),
            "CreateSavepoint": ("sa{sv}", "mine", "0"), "OpenSession": ("suaaya{sv}", "worker", "0", "1", "2", "105", "100", "0"),
            "Capture": ("sua{sv}", "worker", "0", "0"), "Trace": ("susa{sv}", "worker", "0", "runqueue", "0"), "Rerun": ("a{sv}", "0"),
            "Replace": ("s", "n1"), "AllowNode": ("s", "n1")}
POOLS = """
[Pool lab]
Group=lab
[Pool prod]
Group=lab
Users=ml
Groups=prodders
[Pool tight]
Group=lab
VisibleMax=group
"""


@pytest.fixture(scope="module")
def teams(build):
    with Cluster(cluster_name(), 1, build=build, conf=["masterd.conf:Master.QuarantineScore=0"]) as cluster:
        cluster.exec("n1", "sh", "-ec", "groupadd -g 4000 lab; groupadd -g 4001 prodders; useradd -mu 1002 ann; useradd -mu 1003 zoe;"
                     "usermod -aG lab ml; usermod -aG lab eve; usermod -aG prodders ann; cat > /etc/primus/masterd.conf.d/50-pools.conf;"
                     "systemctl restart " + MASTERD, input=POOLS)
        cluster.wait_nodes()
        yield cluster


def config(queue="prod", command=f"echo out-{SECRET}; sleep 1000", **more):
    return {"name": "digits", "queue": queue, "stopGrace": "1s", "env": {"API_KEY": SECRET + "-env"},
            "role": [{"roleName": "worker", "vcores": 0.05, "memoryMb": 16, "env": {"TOKEN": SECRET + "-role"}, "command": command}], **more}


@contextlib.contextmanager
def job(cluster, user="ml", **keys):
    number = cluster.submit(config(**keys), user=user)
    try:
        cluster.wait_state(number, "RUNNING", "QUEUED")
        yield number
    finally:
        cluster.run("n1", "primusctl", "kill", str(number), user=user)


LISTENER = r"""
import subprocess, sys, time
# one connection that looks and then listens, as busctl cannot
import ctypes
sd = ctypes.CDLL("libsystemd.so.0")
bus = ctypes.c_void_p()
assert sd.sd_bus_open_system(ctypes.byref(bus)) >= 0
path = sys.argv[1].encode()
def look():
    return sd.sd_bus_call_method(bus, b"org.primus.Master1", path, b"org.primus.Master1.Job", b"GetStatus", None, None, b"")
seen = []
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
sd.sd_bus_message_get_member.restype = ctypes.c_char_p
sd.sd_bus_message_get_member.argtypes = [ctypes.c_void_p]
@CALLBACK
def on(m, u, e):
    seen.append(sd.sd_bus_message_get_member(m).decode())
    return 0
sd.sd_bus_match_signal.argtypes = [ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_char_p] * 4 + [CALLBACK, ctypes.c_void_p]
assert sd.sd_bus_match_signal(bus, None, b"org.primus.Master1", path, b"org.primus.Master1.Job", b"ExecutorChanged", on, None) >= 0
sd.sd_bus_wait.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
print("looked", look() >= 0, flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    while sd.sd_bus_process(bus, None) > 0: pass
    sd.sd_bus_wait(bus, 200000)
print("signals", len(seen), "looks now", look() >= 0)
"""


def call(cluster, user, number, method, *arguments):
    return cluster.run("n1", "busctl", "call", MASTER, f"/org/primus/Master1/job/{number}", JOB, method, *arguments, user=user)


def set_visible(cluster, number, visible, user="ml"):
    cluster.primusctl("update", str(number), f"visible={visible}", user=user)
    assert cluster.status(number)["visible"] == visible


@pytest.fixture(scope="module")
def running(teams):
    number = teams.submit(config())
    teams.wait_state(number, "RUNNING")
    yield number
    teams.run("n1", "primusctl", "kill", str(number), user="ml")


@pytest.mark.parametrize("visible", SETTINGS)
def test_each_look_of_each_user(teams, running, visible):
    set_visible(teams, running, visible)
    wrong = []
    for user, may in USERS.items():
        for look in CALLS:
            done = call(teams, user, running, *look)
            if bool(done.returncode == 0 or NO_DATA.search(done.stderr)) != (visible in may):
                wrong.append((user, look[0], done.stdout + done.stderr))
        for row in (r for r in json.loads(teams.primusctl("list", "--json", user=user)) if r["job"] == running):
            assert row["visible"] == visible and row["user"] == "ml" and row["pool"] == "prod" and row["priority"] == 0
    assert not wrong


@pytest.mark.parametrize("user", ["eve", "zoe"])
def test_each_command(teams, running, user):
    set_visible(teams, running, "group")
    for look in LOOKS:
        done = teams.run("n1", "primusctl", look[0], *look[1:], str(running), user=user)
        seen = user == "eve"
        assert bool(done.returncode == 0 or NO_DATA.search(done.stderr)) == seen, (look, done.stdout, done.stderr)
        assert "root" not in done.stderr
        if not seen:
            assert SECRET not in done.stdout and f"Job {running} (digits) is ml's, and visible to members of group lab: ask ml (primusctl update {running} visible=all), " \
                "or an administrator of this cluster (polkit action org.primus.see-jobs)" in done.stderr, (look, done.stderr)
    if user == "eve":
        assert f"out-{SECRET}" in teams.primusctl("logs", str(running), user="eve")


def test_values_of_variables_stay_the_owners(teams, running):
    set_visible(teams, running, "all")
    teams.primusctl("update", str(running), f"env.LATER={SECRET}-later", user="ml")
    for user in ("eve", "zoe"):
        said = teams.primusctl("config", str(running), user=user)
        assert f"{SECRET}-" not in said and '"API_KEY": "***"' in said and '"TOKEN": "***"' in said and '"LATER": "***"' in said
        assert f"{SECRET}-" not in teams.primusctl("events", str(running), user=user)
    assert f"{SECRET}-env" in teams.primusctl("config", str(running)) and f"{SECRET}-role" in teams.primusctl("config", str(running))
    assert "env.LATER: set" in teams.primusctl("events", str(running))
    assert f"{SECRET}-later" not in teams.exec("n1", "journalctl", "-q", "-u", MASTERD)


@pytest.mark.parametrize("method", CONTROLS)
def test_control_stays_the_owners(teams, running, method):
    set_visible(teams, running, "all")
    for user in ("eve", "ann", "zoe"):
        done = call(teams, user, running, method, *CONTROLS[method])
        action = "manage-sessions" if method == "OpenSession" else "manage-jobs"
        assert done.returncode != 0 and f"Job {running} (digits) is ml's: only ml and administrators of this cluster (polkit action org.primus.{action}) may " in done.stderr, done.stderr
        assert "run it as root" not in done.stderr
    assert teams.status(running)["state"] == "RUNNING"


def test_the_kill_of_a_colleague(teams, running):
    done = teams.run("n1", "primusctl", "kill", str(running), user="eve")
    assert done.returncode == 1 and f"is ml's: only ml and administrators of this cluster (polkit action org.primus.manage-jobs) may kill it" in done.stderr


def test_defaults(teams):
    """A pool with a group: the group. Without one: the owner alone. And never more than VisibleMax=."""
    for queue, visible in (("lab", "group"), ("default", "owner"), ("tight", "group")):
        with job(teams, queue=queue) as number:
            assert teams.status(number)["visible"] == visible, queue
    done = teams.run("n1", "primusctl", "run", "--queue=tight", "--visible=all", "--detach", "--", "true", user="ml")
    assert done.returncode != 0 and "visible: all, but pool tight allows group at most" in done.stderr
    done = teams.run("n1", "primusctl", "run", "--visible=me", "--", "true", user="ml")
    assert done.returncode != 0 and "owner, group, pool or all" in done.stderr


def test_options_and_scripts(teams):
    assert teams.primusctl_json("list", "--all")
    number = json.loads(teams.primusctl("run", "--visible=all", "--detach", "--json", "--", "true", cwd="/tmp"))["job"]
    assert teams.status(number)["visible"] == "all"
    teams.exec("n1", "sh", "-c", "printf '#!/bin/sh\\n#PRIMUS --visible=pool --queue=prod\\ntrue\\n' > ~/v.sh; chmod +x ~/v.sh", user="ml")
    number = teams.primusctl_json("submit", "/home/ml/v.sh", cwd="/tmp")["job"]
    assert teams.status(number)["visible"] == "pool"
    teams.exec("n1", "sh", "-c", "printf 'command: \"true\"\\nvisible: group\\n' > ~/v.yaml", user="ml")
    number = teams.primusctl_json("submit", "/home/ml/v.yaml", cwd="/tmp")["job"]
    assert teams.status(number)["visible"] == "group"


def test_the_owners_own_group(teams):
    """In a pool without a group: his primary group, unless everybody's."""
    with job(teams, queue="default", visible="group") as number:
        assert call(teams, "eve", number, "GetStatus").returncode != 0
        teams.exec("n1", "usermod", "-aG", "ml", "zoe")
        teams.wait_for(lambda: call(teams, "zoe", number, "GetStatus").returncode == 0, FORGOTTEN, "zoe, in ml's own group, to see it")
        teams.exec("n1", "gpasswd", "-d", "zoe", "ml")
        # and now it is a group of the system's, in which everybody is
        teams.exec("n1", "sh", "-ec", "usermod -g users ml; usermod -aG users zoe; systemctl restart " + MASTERD)
        teams.wait_nodes()
        done = call(teams, "zoe", number, "GetStatus")
        assert done.returncode != 0 and "visible to its owner only" in done.stderr
        teams.exec("n1", "sh", "-ec", "usermod -g ml ml; gpasswd -d zoe users; systemctl restart " + MASTERD)
        teams.wait_nodes()


def test_who_leaves_the_group_loses_sight(teams, running):
    set_visible(teams, running, "group")
    teams.exec("n1", "usermod", "-aG", "lab", "zoe")
    teams.wait_for(lambda: call(teams, "zoe", running, "GetStatus").returncode == 0, FORGOTTEN, "zoe in the group to see it")
    teams.exec("n1", "gpasswd", "-d", "zoe", "lab")
    teams.wait_for(lambda: call(teams, "zoe", running, "GetStatus").returncode != 0, FORGOTTEN, "zoe to lose sight")


def test_members_of_the_pool_are_those_of_now(teams, running):
    set_visible(teams, running, "pool")
    assert call(teams, "ann", running, "GetStatus").returncode == 0
    teams.exec("n1", "gpasswd", "-d", "ann", "prodders")
    try:
        teams.wait_for(lambda: call(teams, "ann", running, "GetStatus").returncode != 0, FORGOTTEN, "ann to lose sight, without a reload")
    finally:
        teams.exec("n1", "usermod", "-aG", "prodders", "ann")


def test_kept_over_kill_9(teams, running):
    for visible in ("all", "owner"):
        set_visible(teams, running, visible)
        teams.kill9("n1", MASTERD)
        teams.wait_for(lambda: teams.status(running)["state"] == "RUNNING", 20, "the master again")
        assert teams.status(running)["visible"] == visible
        assert (call(teams, "zoe", running, "GetStatus").returncode == 0) == (visible == "all")


def test_an_array_and_what_has_ended(teams):
    number = teams.submit(config(command="true", array="0-2", visible="owner"))
    teams.wait_job(number)
    assert call(teams, "eve", number, "GetStatus").returncode != 0
    element = teams.run("n1", "primusctl", "status", f"{number}[1]", user="eve")
    assert element.returncode != 0 and f"primusctl update {number} visible=group" in element.stderr
    set_visible(teams, number, "group")
    assert teams.primusctl_json("status", f"{number}[1]", user="eve")["visible"] == "group"
    done = teams.run("n1", "primusctl", "update", f"{number}[1]", "visible=all", user="ml")
    assert done.returncode != 0 and f"primusctl update {number} visible=" in done.stderr
    teams.kill9("n1", MASTERD)
    teams.wait_for(lambda: teams.run("n1", "primusctl", "status", f"{number}[2]", user="eve").returncode == 0, 20, "eve to see it after a crash")
    assert call(teams, "zoe", number, "GetStatus").returncode != 0
    again = teams.primusctl_json("rerun", str(number), "--env=API_KEY=x")["job"]
    assert teams.status(again)["visible"] == "group"
    teams.wait_job(again)


def test_lists_tell_reasons_to_those_who_may_look(teams):
    with job(teams, queue="lab", waitForHosts=True, role=[{"roleName": "worker", "vcores": 4000, "memoryMb": 16, "command": "true"}]) as number:
        teams.wait_for(lambda: next(r for r in teams.primusctl_json("list") if r["job"] == number)["reason"], 10, "a reason")
        for user, seen in (("eve", True), ("zoe", False)):
            assert bool(next(r for r in teams.primusctl_json("list", user=user) if r["job"] == number)["reason"]) == seen, user
            rows = teams.primusctl_json("queue", user=user)
            rows = rows["jobs"] if isinstance(rows, dict) else rows
            assert bool(next(r for r in rows if r["job"] == number)["reason"]) == seen, user


# ---- what zoe tries ----------------------------------------------------------------------------------------------------


def test_the_objects_tell_nothing_more(teams, running):
    """Properties and signals are for everybody: number, name, owner, state."""
    set_visible(teams, running, "owner")
    teams.primusctl("update", str(running), f"worker.command=echo {SECRET}-command; sleep 1000", "visible=group", user="ml")
    set_visible(teams, running, "owner")
    done = teams.exec("n1", "busctl", "call", MASTER, f"/org/primus/Master1/job/{running}", "org.freedesktop.DBus.Properties", "GetAll", "s", JOB, user="zoe")
    assert "digits" in done and SECRET not in done and '"LatestChange" s ""' in done and "visible" not in done
    said = teams.exec("n1", "busctl", "introspect", MASTER, f"/org/primus/Master1/job/{running}", user="zoe")
    assert SECRET not in said
    node = teams.exec("n1", "busctl", "call", MASTER, "/org/primus/Master1/node/n1", MASTER + ".Node", "Describe", user="zoe")
    assert SECRET not in node and "digits" not in node


def test_no_signals_for_who_may_not_look(teams, running):
    """A looker of before gets none when the sight is taken from him; the state alone is told to all."""
    set_visible(teams, running, "all")
    path = f"/org/primus/Master1/job/{running}"
    for visible, told in (("all", True), ("owner", False)):
        set_visible(teams, running, "all")
        with teams.process("n1", "/usr/bin/python3", "-c", LISTENER, path, "8", user="zoe") as zoe:
            assert zoe.stdout.readline().strip() == "looked True"
            set_visible(teams, running, visible)
            teams.primusctl("restart", str(running), "worker")
            said = zoe.stdout.read().strip()
            assert said.startswith("signals 0") != told and said.endswith(f"looks now {told}"), said


def test_no_way_round(teams, running):
    """Her own jobs: after it, in the pool that she names, in the queue with it."""
    set_visible(teams, running, "owner")
    teams.primusctl("update", str(running), f"worker.command=echo {SECRET}-way; sleep 1000", user="ml")
    done = teams.run("n1", "primusctl", "run", "--queue=prod", "--detach", "--", "true", user="zoe")
    assert done.returncode != 0 and "may not submit to pool prod" in done.stderr
    mine = teams.submit({**config(queue="default", command="true"), "after": [f"{running}:any"]}, user="zoe")
    try:
        for command in ("why", "status", "events", "config"):
            said = teams.run("n1", "primusctl", command, str(mine), user="zoe")
            assert f"{SECRET}-way" not in said.stdout and "digits" not in said.stdout.replace('"name": "digits"', "").replace("(digits)", ""), said.stdout
        assert call(teams, "zoe", running, "GetStatus").returncode != 0
        for command in (["top", "--once"], ["list", "--all"], ["queue"], ["usage", "--by=job"], ["nodes"], ["top", "--once", str(running)]):
            said = teams.run("n1", "primusctl", *command, user="zoe")
            assert SECRET not in said.stdout, command
        done = teams.run("n1", "primusctl", "usage", "--by=role", "--user=ml", user="zoe")
        assert done.returncode != 0
        rows = json.loads(teams.exec("n1", "busctl", "--json=short", "call", MASTER, "/org/primus/Master1", MASTER + ".Manager", "Usage", "asa{sv}", "1", "job",
                                     "1", "uid", "u", "1000", user="zoe"))["data"][0]
        assert all(row[3] != running for row in rows)
    finally:
        teams.run("n1", "primusctl", "kill", str(mine), user="zoe")


def test_who_only_looks_takes_nobodys_signals(teams, running):
    """The master keeps 32 connections that are told of a job's changes; zoe makes 40 and the owner's is told all the same."""
    set_visible(teams, running, "all")
    flood = "for i in $(seq 40); do busctl call org.primus.Master1 /org/primus/Master1/job/$0 org.primus.Master1.Job GetStatus >/dev/null || exit 1; done"
    with teams.process("n1", "/usr/bin/python3", "-c", LISTENER, f"/org/primus/Master1/job/{running}", "12", user="ml") as ml:
        assert ml.stdout.readline().strip() == "looked True"
        teams.exec("n1", "sh", "-c", flood, str(running), user="zoe")
        teams.primusctl("restart", str(running), "worker")
        said = ml.stdout.read().strip()
        assert not said.startswith("signals 0") and said.endswith("looks now True"), said


def test_an_administrator_sees_and_controls(teams):
    """By polkit, whatever the job says."""
    rule = 'polkit.addRule(function(action, subject) { if (action.id == "org.primus.manage-jobs" && subject.user == "zoe") return polkit.Result.YES; });'
    with job(teams, visible="owner") as number:
        assert call(teams, "zoe", number, "GetConfig").returncode != 0
        teams.exec("n1", "sh", "-c", "cat > /etc/polkit-1/rules.d/10-visible.rules", input=rule)
        try:
            teams.wait_for(lambda: call(teams, "zoe", number, "GetConfig").returncode == 0, 20, "polkit to have read the rule")
            assert f"{SECRET}-env" in teams.primusctl("config", str(number), user="zoe")
            teams.primusctl("kill", str(number), user="zoe")
        finally:
            teams.exec("n1", "rm", "/etc/polkit-1/rules.d/10-visible.rules")
        assert teams.wait_job(number) == 3


@pytest.mark.parametrize("action", ["see-jobs", "see-logs"])
def test_who_may_see_by_polkit_does_not_control(teams, action):
    with job(teams, visible="owner") as number, teams.granted(action, "zoe"):
        for look in LOOKS:
            done = teams.run("n1", "primusctl", look[0], *look[1:], str(number), user="zoe")
            closed = look[0] == "logs" and action == "see-jobs"
            assert bool(done.returncode == 0 or NO_DATA.search(done.stderr)) != closed, (look, done.stdout, done.stderr)
            assert not closed or "ask ml" in done.stderr and "(polkit action org.primus.see-logs)" in done.stderr, done.stderr
        if action == "see-logs":
            assert f"out-{SECRET}" in teams.primusctl("logs", str(number), user="zoe")
        said = teams.primusctl("config", str(number), user="zoe")
        assert f"{SECRET}-" not in said and '"TOKEN": "***"' in said
        for method, arguments in CONTROLS.items():
            assert "administrators of this cluster (polkit action org.primus.manage-" in call(teams, "zoe", number, method, *arguments).stderr, method
        assert call(teams, "eve", number, "GetStatus").returncode != 0
        assert teams.status(number)["state"] == "RUNNING"


def test_savepoints_keep_it(teams):
    teams.exec("n1", "sh", "-c", "mkdir -p /tmp/data; seq 1000 > /tmp/data/lines.txt; chmod -R a+rX /tmp/data")
    text = {"name": "saved", "queue": "lab", "visible": "pool", "stopGrace": "1s", "inputManager": {"fileConfig": {"inputs": [{"spec": {"pathPattern": "/tmp/data/lines.txt", "textInput": {}}}]}},
            "role": [{"roleName": "worker", "vcores": 0.05, "memoryMb": 16, "inputPolicy": "STREAMING", "command": "while read -r line; do sleep 1; done"}]}
    number = teams.submit(text)
    teams.wait_state(number, "RUNNING")
    teams.wait_for(lambda: teams.status(number)["data"]["tasks"] > 0, 10, "tasks")
    name = teams.primusctl_json("savepoint", "create", str(number), "--kill")["savepoint"]
    teams.wait_job(number)
    again = teams.primusctl_json("savepoint", "restore", name)["job"]
    try:
        assert teams.status(again)["visible"] == "pool"
        assert call(teams, "zoe", again, "ListTasks", "ta{sv}", "0", "0").returncode == 0  # pool lab admits everybody
        assert call(teams, "zoe", again, "RetryTask", "t", "0").returncode != 0
        done = teams.run("n1", "primusctl", "savepoint", "restore", name, user="zoe")
        assert done.returncode != 0
    finally:
        teams.kill(again)
