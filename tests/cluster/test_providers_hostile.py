# SPDX-License-Identifier: Apache-2.0
"""Hosts by demand among those who mean harm, and mistakes that look the same: whose hosts a provider may touch, what becomes of
them when a person steps in, and what is not made again and again."""
import json
import time

import pytest
from cloud import DIRECTORY, STATE, Cloud, job, settings
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

SETTINGS = settings(cpus=1)
MASTER = ("org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager")
# Nothing goes by itself while a test looks.
PATIENT = settings(cpus=1, idle="1h")


@pytest.fixture(scope="module")
def cluster(request):
    build = request.config.getoption("--build")
    with Cluster(cluster_name(), 3, build=build, conf=["masterd.conf:Master.LostSec=6s"]) as one:
        yield one


@pytest.fixture(scope="module")
def _cloud(cluster):
    one = Cloud(cluster, ["n2", "n3"], SETTINGS)
    yield one
    one.close()


# Hosts are counted from 1 in each test.
FORGET = ("systemctl stop primus-masterd; python3 -c \"import sqlite3; c = sqlite3.connect('/var/lib/primus/primus.db'); c.execute('DELETE FROM provider'); c.commit()\"; "
          "systemctl start primus-masterd")


@pytest.fixture
def cloud(cluster, _cloud):
    _cloud.reset(SETTINGS)
    yield _cloud
    cluster.exec("n1", "rm", "-rf", DIRECTORY)
    _cloud.reset(SETTINGS)
    for one in json.loads(cluster.exec("n1", "primusctl", "list", "--json")):
        cluster.run("n1", "primusctl", "kill", str(one["job"]))
    _cloud.empty()
    cluster.exec("n1", "sh", "-c", FORGET)
    cluster.wait_nodes(nodes=["n1"])


def providers(cluster):
    return {one["name"]: one for one in json.loads(cluster.exec("n1", "primusctl", "provider", "list", "--json"))}


def nodes(cluster):
    return {one["name"]: one["state"] for one in json.loads(cluster.exec("n1", "primusctl", "nodes", "--json"))}


def ready(cluster, cloud, *names, timeout=40):
    cluster.wait_for(lambda: all(cloud.states().get(name) == "READY" for name in names), timeout, f"{names} are READY")


def ask(cluster, cloud, shape="small"):
    cluster.exec("n1", "primusctl", "provider", "up", "cloud", shape)


def slow_up(cluster, cloud, seconds):
    """One that is asked for, whose `up` has begun and takes so long: its token, and the unit."""
    cluster.exec("n1", "sh", "-c", f"sed -i '2i import time; os = __import__(\"os\"); os.path.exists(\"{STATE}/slow\") and time.sleep({seconds})' {DIRECTORY}/up")
    cloud.knob("slow", "1")
    ask(cluster, cloud)
    token = cluster.wait_for(lambda: [one["token"] for one in cloud.instances()], 10, "it is recorded")[0]
    unit = f"primus-provider@cloud.up.{token}.service"
    cluster.wait_for(lambda: cluster.run("n1", "systemctl", "is-active", unit).stdout.strip() == "activating", 10, "`up` runs")
    return token, unit


def lists_again(cluster, cloud, n=1, timeout=90):
    """So many more lists have been asked for."""
    before = sum(line.startswith("list") for line in cloud.log())
    cluster.wait_for(lambda: sum(line.startswith("list") for line in cloud.log()) >= before + n, timeout, f"{n} more lists")


def test_what_is_no_text_is_no_list(cluster, cloud):
    """Status 0, and bytes that are not UTF-8, or a zero within: nothing follows from it."""
    cloud.configure(PATIENT)
    cloud.booting = False
    ask(cluster, cloud)
    cluster.wait_for(lambda: cloud.states() == {"cloud-1": "STARTING"}, 20, "it starts")
    for bad in (r"\\377\\n", r"\\000"):
        cluster.exec("n1", "sh", "-c", f"printf '#!/bin/sh\nprintf \"{bad}\"\n' > {DIRECTORY}/list")
        cluster.exec("n1", "systemctl", "reload", "primus-masterd")  # asks for a list at once
        cluster.wait_for(lambda: providers(cluster)["cloud"]["error"], 10, "it is said that this is no list")
        assert cloud.instances()[0]["listed"] in ("not asked", "pending"), cloud.instances()


def test_settings_that_go_while_a_verb_runs(cluster, cloud):
    """Its program comes for its request when the provider has no settings any more: nobody asks for that, and masterd lives."""
    token, _ = slow_up(cluster, cloud, 20)
    pid = cluster.main_pid("n1", MASTERD)
    cluster.exec("n1", "sh", "-c", f"mv {DIRECTORY}/provider.conf {DIRECTORY}/kept; systemctl reload primus-masterd")
    done = cluster.run("n1", "busctl", "call", *MASTER, "TakeProviderRequest", "s", f"cloud.up.{token}")
    assert cluster.main_pid("n1", MASTERD) == pid, "masterd has not ended"
    assert done.returncode != 0 and "Nobody asks" in done.stderr, done.stderr
    cluster.exec("n1", "sh", "-c", f"mv {DIRECTORY}/kept {DIRECTORY}/provider.conf; rm {STATE}/slow; systemctl reload primus-masterd")
    ready(cluster, cloud, "cloud-1", timeout=60)


def test_an_end_that_a_user_claims(cluster, cloud):
    """Whoever sends the signal that systemd sends when a unit is done is not systemd."""
    _, unit = slow_up(cluster, cloud, 8)
    sent = cluster.run("n1", "busctl", "emit", "--destination=org.primus.Master1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
                       "JobRemoved", "uoss", "1", "/org/freedesktop/systemd1/job/1", unit, "failed", user="eve")
    assert sent.returncode == 0, sent.stderr
    time.sleep(1)
    assert "gave no answer" not in cluster.journal("n1", MASTERD, lines=30)
    ready(cluster, cloud, "cloud-1", timeout=40)


def test_two_providers_of_one_account(cluster, cloud):
    """Each lists all that carries a token of this cluster: neither touches what the other has made."""
    cloud.configure(PATIENT)
    twin = "/etc/primus/providers/twin"
    try:
        cluster.exec("n1", "sh", "-c", f"mkdir {twin} && cp {DIRECTORY}/* {twin}/ && sed -i 's,os.environ\\[\"PRIMUS_DIRECTORY\"\\],\"{STATE}\",' {twin}/list {twin}/up {twin}/down; "
                     f"grep -c {STATE} {twin}/down")
        ask(cluster, cloud)
        ready(cluster, cloud, "cloud-1")
        cluster.exec("n1", "systemctl", "reload", "primus-masterd")  # lists, both
        cluster.wait_for(lambda: providers(cluster)["twin"]["instances"] or providers(cluster)["twin"]["foreign"], 20, "the other has listed")
        assert cloud.states() == {"cloud-1": "READY"} and providers(cluster)["twin"]["foreign"] == 1
        assert not any(line.startswith("down") for line in cloud.log())
    finally:
        cluster.exec("n1", "sh", "-c", f"rm -rf {twin}; systemctl reload primus-masterd")


def test_hosts_of_others(cluster, cloud):
    """A provider that claims a host that it has not made, by a list or as the answer of `up`."""
    cloud.configure(SETTINGS)
    cloud.knob("list-says", '{"id": "i-1", "state": "running", "node": "n1"}\n')
    cluster.exec("n1", "systemctl", "reload", "primus-masterd")
    cluster.wait_for(lambda: cloud.instances() or providers(cluster)["cloud"]["foreign"] == 1, 20, "it has listed")
    assert cloud.instances() == []
    cluster.exec("n1", "sh", "-c", f"rm {STATE}/list-says; sed -i 's/print(json.dumps({{\"id\": \"i-\" + given\\[\"token\"\\]\\[-8:\\]}}))/print(json.dumps({{\"id\": \"i-1\", \"node\": \"n1\"}}))/' {DIRECTORY}/up; "
                 f"grep -c '\"node\": \"n1\"' {DIRECTORY}/up")
    cloud.booting = False
    ask(cluster, cloud)
    cluster.wait_for(lambda: "STARTING" in cloud.states().values(), 20, "`up` has said yes")
    assert cloud.states() == {"cloud-1": "STARTING"}, "it is not n1"


def test_a_person_gives_back_what_is_busy(cluster, cloud):
    """Its job moves, waits for a host again, and does not bring this one back."""
    cloud.configure(PATIENT)
    number = cluster.submit(job(command="sleep 600"))
    cluster.wait_state(number, "RUNNING", timeout=60)
    assert cloud.states() == {"cloud-1": "READY"}, "whatever runs somewhere, that is in use"
    cluster.exec("n1", "primusctl", "provider", "down", "cloud-1")
    cluster.wait_for(lambda: "cloud-1" not in cloud.states(), 60, "it is given back")
    assert len(cloud.made()) <= 1


def test_a_node_that_a_person_removes(cluster, cloud):
    """`primusctl node remove` of one that was made: there is no host of it any more, so it is given back."""
    cloud.configure(PATIENT)
    ask(cluster, cloud)
    ready(cluster, cloud, "cloud-1")
    cluster.exec("n1", "primusctl", "node", "remove", "cloud-1")
    cluster.wait_for(lambda: cloud.states() == {} and cloud.made() == {}, 60, "it is given back")


def test_a_job_that_no_real_host_would_do_for(cluster, cloud):
    """Its hosts do not serve its user, which nobody could know: one comes for it, and not another after the other."""
    for host in ("n2", "n3"):
        cluster.exec(host, "sh", "-c", "printf '[Agent]\\nAllowUsers=eve\\n' > /etc/primus/agentd.conf.d/60-eve.conf")
    try:
        number = cluster.submit(job())
        ready(cluster, cloud, "cloud-1")
        cluster.wait_for(lambda: "did not do" in cluster.exec("n1", "primusctl", "why", str(number)), 20, "why says so")
        cluster.wait_for(lambda: cloud.states() == {}, 60, "it is given back")
        time.sleep(5)
        assert [line for line in cloud.log() if line.startswith("up ")].__len__() == 1, cloud.log()
        assert cloud.states() == {}
        # Others get theirs.
        other = cluster.submit(job(), user="eve")
        cluster.wait_state(other, "SUCCEEDED", timeout=60)
    finally:
        for host in ("n2", "n3"):
            cluster.exec(host, "rm", "-f", "/etc/primus/agentd.conf.d/60-eve.conf")


def test_up_keeps_to_the_limits_of_a_shape(cluster, cloud):
    cloud.configure(PATIENT + "Max=1\n")
    ask(cluster, cloud)
    done = cluster.run("n1", "primusctl", "provider", "up", "cloud", "small")
    assert done.returncode != 0 and "Max=" in done.stderr, done.stdout + done.stderr
    assert len(cloud.instances()) == 1


@pytest.mark.parametrize("what", ["sticky", "link"])
def test_programs_that_others_may_change(cluster, cloud, what):
    if what == "sticky":
        cluster.exec("n1", "chmod", "1777", f"{DIRECTORY}/list")
    else:
        cluster.exec("n1", "sh", "-c", f"mkdir -p /var/tmp/eve && chown eve /var/tmp/eve && mv {DIRECTORY}/list {DIRECTORY}/real && "
                     f"ln -s {DIRECTORY}/real /var/tmp/eve/list && ln -s /var/tmp/eve/list {DIRECTORY}/list")
    cluster.exec("n1", "sh", "-c", f"mkdir -p {STATE}; : > {STATE}/log; systemctl reload primus-masterd")
    cluster.wait_for(lambda: providers(cluster)["cloud"]["error"], 20, "it is said that it was not run")
    assert not any(line.startswith("list") for line in cloud.log())


def test_masterd_is_killed_at_any_moment(cluster, cloud):
    """However often: no two hosts of one token, none that is forgotten, and all are gone in the end."""
    cloud.configure(settings(cpus=1, idle="2s"))
    jobs = [cluster.submit(job(command="sleep 1")) for _ in range(3)]
    for k in range(8):
        time.sleep(0.3 + 0.35 * k)
        cluster.kill9_now("n1", MASTERD)
    for number in jobs:
        cluster.wait_state(number, "SUCCEEDED", timeout=90)
    cluster.wait_for(lambda: cloud.states() == {} and cloud.made() == {}, 90, "the hosts are given back")
    assert list(nodes(cluster)) == ["n1"]
    assert len({line.split()[1] for line in cloud.log() if line.startswith("up ")}) <= 4, cloud.log()


def test_a_host_that_is_woken(cluster, cloud):
    """It was a node before, under a name like those that are made, and stays one when it is switched off."""
    host, name = "n2", "cloud-77"
    cloud.booting = False
    token = cluster.exec("n1", "primusctl", "token", "create", "--name", name).strip()
    cluster.exec(host, "primusctl", "join", "--no-start", f"--name={name}", "n1", input=token + "\n")
    cluster.exec(host, "systemctl", "restart", AGENTD)
    cluster.wait_nodes(nodes=[name])
    cluster.exec(host, "systemctl", "stop", AGENTD)
    cluster.wait_for(lambda: nodes(cluster)[name] != "READY", 30, "it is off")
    try:
        cloud.configure(SETTINGS + "[Provider]\nPowerOff=yes\n")
        cluster.exec("n1", "sh", "-c", f"sed -i 's/print(json.dumps({{\"id\": \"i-\" + given\\[\"token\"\\]\\[-8:\\]}}))/print(json.dumps({{\"id\": \"{name}\", \"node\": \"{name}\"}}))/' {DIRECTORY}/up; "
                     f"grep -c '{name}' {DIRECTORY}/up")
        number = cluster.submit(job(command="hostname"))
        cluster.wait_for(lambda: cloud.states() == {name: "STARTING"}, 30, "it is the one that was woken")
        cluster.exec(host, "systemctl", "start", AGENTD)
        cluster.wait_state(number, "SUCCEEDED", timeout=60)
        cluster.wait_for(lambda: cloud.states() == {}, 90, "it is given back")
        assert name in nodes(cluster), "it can be woken again"
    finally:
        cluster.boot(host)
        cluster.run("n1", "primusctl", "node", "remove", name)


def test_what_is_not_for_everybody(cluster, cloud):
    """Who is not root looks, and changes nothing."""
    for method, *arguments in (("HoldProvider", "sb", "cloud", "true"), ("HoldInstance", "sb", "cloud-1", "true"), ("StartInstance", "ss", "cloud", "small"),
                               ("StopInstance", "s", "cloud-1"), ("PlanInstances",), ("TakeProviderRequest", "s", "cloud.list.0"),
                               ("AnswerProviderRequest", "sis", "cloud.list.0", "0", "")):
        done = cluster.run("n1", "busctl", "call", *MASTER, method, *arguments, user="eve")
        assert done.returncode != 0 and "may do this" in done.stderr, (method, done.stderr)
    for method in ("ListProviders", "ListInstances"):
        assert cluster.run("n1", "busctl", "call", *MASTER, method, user="eve").returncode == 0, method
    done = cluster.run("n1", "systemctl", "start", "primus-provider@cloud.list.0.service", user="eve")
    assert done.returncode != 0
