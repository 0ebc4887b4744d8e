# SPDX-License-Identifier: Apache-2.0
"""Hosts by demand: they are made for who waits, work, and are given back; what a provider says wrongly harms nobody, and whoever is
killed meanwhile, there is never a second host for a token nor one that nobody gives back."""
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from cloud import DIRECTORY, STATE, Cloud, job, settings
from sandbox import MASTERD, Cluster, cluster_name

WHOLE = 1.5  # of the two CPUs of a host


@pytest.fixture(scope="module")
def _cloud(build, shared_dir):
    # LostSec apart from the default: what is lost has to be lost within a test.
    with Cluster(cluster_name(), 3, build=build, binds=[f"{shared_dir}:/shared"], conf=["masterd.conf:Master.LostSec=6s"]) as cluster:
        one = Cloud(cluster, ["n2", "n3"], settings())
        yield one
        one.close()


@pytest.fixture
def cloud(_cloud):
    _cloud.reset(settings())
    yield _cloud
    _cloud.reset(settings())
    _cloud.cluster.run("n1", "sh", "-c", "primusctl list --json | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*' | xargs -r -n1 primusctl kill")
    _cloud.empty()


def why(cloud, number):
    return cloud.cluster.exec("n1", "primusctl", "why", str(number))


def says(cloud, number, text, seconds=20):
    said = []

    def look():
        said[:] = [why(cloud, number)]
        return text in said[0]

    try:
        cloud.cluster.wait_for(look, seconds, f"why of job {number} says {text!r}")
    except AssertionError as e:
        raise AssertionError(f"{e}\n{said}") from e
    return said[0]


def ready(cloud, n=1, seconds=40):
    cloud.cluster.wait_for(lambda: list(cloud.states().values()).count("READY") == n, seconds, f"{n} READY")
    return [one for one in cloud.instances() if one["state"] == "READY"]


# ---- hosts come and go

def test_from_nothing_and_back(cloud):
    """Six jobs that none of the hosts would do for: two hosts come, work, and leave."""
    cluster = cloud.cluster
    jobs = [cluster.submit(job()) for _ in range(6)]
    assert "of 1min" in says(cloud, jobs[0], "waits for cloud-")
    for number in jobs:
        cluster.wait_state(number, "SUCCEEDED", timeout=90)
    assert {one["shape"] for one in cloud.instances()} == {"small"}
    assert "idle for" in cluster.exec("n1", "primusctl", "node", "show", cloud.instances()[0]["node"])
    cloud.empty()
    assert len(set(cloud.ups())) == len(cloud.ups()) == 2


def test_a_gang_gets_all_of_its_hosts_or_none(cloud):
    cloud.configure(settings(max=1))
    number = cloud.cluster.submit(job(2, cpus=WHOLE))
    says(cloud, number, "no provider may make as many hosts as it needs")
    assert cloud.instances() == [] and cloud.ups() == []
    cloud.configure(settings(max=2))
    cloud.cluster.wait_state(number, "SUCCEEDED", timeout=60)
    assert len(cloud.ups()) == 2


def test_nothing_is_made_for_what_could_not_start_anyway(cloud):
    """A job that no shape would do for, one that is held, and one that has hosts."""
    cluster = cloud.cluster
    large = cluster.submit(job(cpus=3))
    says(cloud, large, "no host that a provider could make would do")
    later = json.loads(cluster.exec("n1", "sh", "-c", "cat > /tmp/later.json; primusctl submit --json --begin=+1h /tmp/later.json", user="ml", input=json.dumps(job())))["job"]
    here = cluster.submit({"name": "here", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "sleep 1"}]})
    cluster.wait_state(here, "SUCCEEDED", timeout=20)
    time.sleep(3)
    assert cloud.ups() == [] and cluster.status(later)["state"] == "QUEUED"


def test_the_cheapest_that_is_to_be_had(cloud):
    """One shape is out of stock: the dearer one comes, and that is remembered."""
    cloud.configure(settings() + "[Shape cheap]\nCpus=2\nMemory=256M\nLabels=made\nCostPerHour=0.1\n")
    cloud.knob("up-status-cheap", "69")
    number = cloud.cluster.submit(job())
    cloud.cluster.wait_state(number, "SUCCEEDED", timeout=60)
    shapes = {s["shape"]: s for s in json.loads(cloud.cluster.exec("n1", "primusctl", "provider", "list", "--json"))[0]["shapes"]}
    assert shapes["small"]["instances"] == 1 and shapes["cheap"]["instances"] == 0
    assert "none of this shape" in shapes["cheap"]["why"] and 1790e6 < shapes["cheap"]["blockedUntil"] - time.time() * 1e6 <= 1800e6
    assert len(cloud.ups()) == 2, "one of each"


def test_people(cloud):
    """up, hold, release, down; not for ordinary users."""
    cluster = cloud.cluster
    for words in (("up", "cloud", "small"), ("hold", "cloud"), ("down", "cloud-1"), ("plan",)):
        done = cluster.run("n1", "primusctl", "provider", *words, user="eve")
        assert done.returncode != 0 and "org.primus.manage-nodes" in done.stderr + done.stdout or "may" in done.stderr, done
    cluster.exec("n1", "primusctl", "provider", "up", "cloud", "small")
    one = ready(cloud)[0]
    cluster.exec("n1", "primusctl", "provider", "hold", one["node"])
    time.sleep(6)  # longer than IdleSec=
    assert cloud.states() == {one["node"]: "READY"} and "a person holds it" in cluster.exec("n1", "primusctl", "node", "show", one["node"])
    cluster.exec("n1", "primusctl", "provider", "hold", "cloud")
    number = cluster.submit(job(2, cpus=WHOLE))
    says(cloud, number, "provider cloud is held")
    cluster.exec("n1", "primusctl", "provider", "release", "cloud")
    cluster.wait_state(number, "SUCCEEDED", timeout=60)
    cluster.exec("n1", "primusctl", "provider", "release", one["node"])
    running = cluster.submit(job(command="sleep 600"))
    cluster.wait_state(running, "RUNNING", timeout=30)
    node = cluster.executor(running)["node"]
    cluster.exec("n1", "primusctl", "provider", "down", node)
    cluster.wait_for(lambda: cluster.executor(running)["node"] not in ("", node) and cluster.status(running)["state"] == "RUNNING", 60, "it runs elsewhere")
    done = cluster.run("n1", "primusctl", "provider", "up", "cloud", "enormous")
    assert done.returncode == 1 and "has no shape of that name; it has small" in done.stderr


# ---- what a provider says

def test_lists_that_lie(cloud):
    """Hosts that work are not touched by what a list says, nor by one that cannot be read."""
    cluster = cloud.cluster
    number = cluster.submit(job(2, command="sleep 600", cpus=WHOLE))
    cluster.wait_state(number, "RUNNING", timeout=60)
    before = cloud.states()
    token = next(iter(cloud.made()))
    for says_, status in (("", 1), ("\n", 0), ("no JSON\n", 0), (json.dumps({"id": "i-x", "token": token, "state": "failed"}) + "\n", 0),
                          (json.dumps({"id": "i-x", "token": token, "state": "stopped"}) + "\n", 0), (json.dumps({"id": "../x", "state": "running"}) + "\n", 0),
                          ("x" * (11 << 20), 0), (json.dumps({"id": "foreign-1", "state": "running"}) + "\n", 0)):
        cloud.knob("list-says", says_ or "\n")
        cloud.knob("list-status", str(status) if status else "")
        n = len(cloud.log())
        for _ in range(3):
            cloud.reload()
            cluster.wait_for(lambda: len(cloud.log()) > n, 20, "a list")
            n = len(cloud.log())
            time.sleep(0.7)
    assert cloud.states() == before and cluster.status(number)["state"] == "RUNNING"
    assert [e["attempt"] for e in cluster.status(number)["executors"]] == [1, 1]
    text = cluster.exec("n1", "journalctl", "-q", "--no-pager", "-u", MASTERD)
    assert "nothing follows from it" in text and "line 1 of what `list` printed is no JSON object" in text
    assert "without an id as ids are" in text
    assert len(cloud.ups()) == 2


def test_an_up_that_fails_and_made_one(cloud):
    """It is asked again with the same token; there is one host."""
    cloud.knob("up-status", "1")
    cloud.knob("up-makes-one", "yes")
    number = cloud.cluster.submit(job())
    cloud.cluster.wait_for(lambda: len(cloud.ups()) >= 1, 20, "it was asked")
    cloud.cluster.wait_state(number, "SUCCEEDED", timeout=60)  # its host is quicker than an `up` that works
    assert len(set(cloud.ups())) == 1


def test_one_that_does_not_boot(cloud):
    """It is given back after StartSec=; its token opens nothing any more; the third time the shape is left alone for a while."""
    cloud.booting = False
    cloud.configure(settings(start="4s", max=1))
    number = cloud.cluster.submit(job())
    cloud.cluster.wait_for(lambda: len(cloud.made()) == 1, 20, "it is made")
    late = next(iter(cloud.made().values()))
    cloud.cluster.wait_for(lambda: late["token"] not in cloud.made(), 30, "it is given back")
    master, name, token = late["join"].split()
    done = cloud.cluster.run("n2", "primusctl", "join", "--no-start", f"--name={name}", master, input=token + "\n")
    assert done.returncode != 0 and "token" in done.stderr, done
    said = says(cloud, number, "makes no host of shape small", 90)
    assert "did not" in said or "has not" in said or "start" in said, said
    assert len(cloud.ups()) == 3
    assert cloud.cluster.status(number)["state"] == "QUEUED", "the job does not fail for that"


def test_one_that_is_taken_away(cloud):
    """As spot instances are: its host is lost, its job runs on another one."""
    cluster = cloud.cluster
    number = cluster.submit(job(command="sleep 15"))
    cluster.wait_state(number, "RUNNING", timeout=60)
    node = cluster.executor(number)["node"]
    cloud.take_away(next(iter(cloud.made())))
    cluster.wait_state(number, "SUCCEEDED", timeout=120)
    assert cluster.executor(number)["node"] != node and len(cloud.ups()) == 2
    assert node not in cloud.states()


def test_one_that_is_about_to_be_taken_away(cloud):
    """Its provider says so: what runs there is told to stop, as by a drain, and goes on elsewhere, before the host has gone."""
    cluster = cloud.cluster
    number = cluster.submit(job(command="trap 'echo saved; exit 3' TERM; sleep 600 & wait", failover={"commonFailoverPolicy": {"restartType": "ALWAYS"}}))
    cluster.wait_state(number, "RUNNING", timeout=60)
    node, token = cluster.executor(number)["node"], next(iter(cloud.made()))
    cluster.exec("n1", "sh", "-c", f"sed -i 's/\"running\"/\"stopping\"/' {STATE}/hosts/{token}")
    cloud.reload()
    cluster.wait_for(lambda: cluster.executor(number)["node"] not in ("", node) and cluster.executor(number)["state"] == "RUNNING", 60, "it runs elsewhere")
    assert "its provider takes it back" in cluster.exec("n1", "journalctl", "-q", "--no-pager", "-u", MASTERD)
    cluster.wait_for(lambda: token not in cloud.made(), 30, "it is given back")
    assert len(cloud.ups()) == 2


def test_one_that_nobody_knows(cloud):
    """With a token of this cluster, and in no record: it is given back. Without one it is not touched."""
    cluster = cloud.cluster
    cluster_id = cluster.exec("n1", "busctl", "get-property", "org.primus.Master1", "/org/primus/Master1", "org.primus.Master1.Manager", "ClusterId").split('"')[1]
    ours, foreign = f"{cluster_id[:8]}-00000000000000aa", "0badcafe-00000000000000aa"
    for token in (ours, foreign):
        one = {"id": f"i-{token[:8]}", "token": token, "state": "running", "join": "n1 cloud-0 x", "node": "cloud-0", "shape": "small"}
        cluster.exec("n1", "sh", "-c", f"mkdir -p {STATE}/hosts; cat > {STATE}/hosts/{token}", input=json.dumps(one))
    cloud.reload()
    cluster.wait_for(lambda: list(cloud.made()) == [foreign], 30, "ours is given back")
    cluster.exec("n1", "rm", f"{STATE}/hosts/{foreign}")
    assert [line for line in cloud.log() if line.startswith("down")] == [f"down {ours}"]


def test_a_down_that_fails(cloud):
    cloud.knob("down-status", "1")
    number = cloud.cluster.submit(job())
    cloud.cluster.wait_state(number, "SUCCEEDED", timeout=60)
    cloud.cluster.wait_for(lambda: [line.split()[0] for line in cloud.log()].count("down") >= 2, 60, "it is asked again")
    assert list(cloud.states().values()) == ["STOPPING"] and len(cloud.made()) == 1
    cloud.knob("down-status", "")


# ---- whoever is killed

def test_killed_at_every_commit(cloud, build, shared_dir):
    """masterd ends ahead of and behind every commit of an instance, a job or an executor: one host for a token, none left over."""
    cluster = cloud.cluster
    shutil.copy(Path(build, "tests/die-at-commit.so"), shared_dir / "die-at-commit.so")
    drop_in = "/run/systemd/system/primus-masterd.service.d/die.conf"
    cluster.exec("n1", "sh", "-c", f"mkdir -p {os.path.dirname(drop_in)} && printf '[Unit]\\nStartLimitIntervalSec=0\\n[Service]\\n"
                 f"Environment=LD_PRELOAD=/shared/die-at-commit.so DIE_LOG=/var/lib/primus/die-log\\n' > {drop_in} && systemctl daemon-reload && systemctl restart primus-masterd")
    log = cluster.state_path("n1", "primus", "die-log")
    try:
        cluster.wait_nodes(nodes=["n1"])
        jobs = [cluster.submit(job()) for _ in range(3)]
        cluster.exec("n1", "sh", "-c", "touch /var/lib/primus/die-log; chown --reference=/var/lib/primus /var/lib/primus/die-log")
        for number in jobs:
            cluster.wait_state(number, "SUCCEEDED", timeout=200)
        cluster.wait_for(lambda: cloud.made() == {}, 120, "the hosts are given back")
        kills = Path(log).stat().st_size
        print("killed", kills, "times")
    finally:
        cluster.exec("n1", "sh", "-c", f"rm -f /var/lib/primus/die-log {drop_in}; systemctl daemon-reload; systemctl restart primus-masterd")
    for number in jobs:
        cluster.wait_state(number, "SUCCEEDED", timeout=60)
    cloud.empty()
    assert kills >= 12 and len(set(cloud.ups())) <= 3


def test_killed_at_any_time(cloud):
    """kill -9 of masterd every second, through two generations of hosts."""
    cluster = cloud.cluster
    jobs, most = [], 0
    for _ in range(2):
        jobs += [cluster.submit(job(command="sleep 2")) for _ in range(3)]
        for _ in range(12):
            cluster.exec("n1", "systemctl", "kill", "--signal=KILL", "--kill-who=main", MASTERD)
            cluster.exec("n1", "systemctl", "reset-failed", MASTERD)
            time.sleep(1)
            most = max(most, len(cloud.made()))
        for number in jobs:
            cluster.wait_state(number, "SUCCEEDED", timeout=90)
        cloud.empty()
    assert most <= 2


# ---- set up wrongly

@pytest.mark.parametrize("conf, text", [
    ("[Provider]\nMax=many\n[Shape s]\n", "Max"),
    ("[Provider]\nMax=1\n", "has no [Shape NAME]"),
    ("[Provider]\nMin=3\nMax=1\n[Shape s]\nCpus=1\nMemory=1G\n", "Min= and Spare= are at most Max="),
])
def test_settings_that_are_none(cloud, conf, text):
    """The provider is left out, and says so; the master goes on."""
    cloud.cluster.exec("n1", "sh", "-c", f"cat > {DIRECTORY}/provider.conf", input=conf)
    cloud.reload()
    cloud.cluster.wait_for(lambda: "has no settings, or there is a mistake in them" in cloud.cluster.exec("n1", "primusctl", "provider", "list"), 10, "it is said")
    cloud.cluster.wait_for(lambda: text in cloud.cluster.exec("n1", "journalctl", "-q", "--no-pager", "-u", MASTERD), 10, "why")


def test_programs_that_others_may_change(cloud):
    cloud.cluster.exec("n1", "chmod", "o+w", f"{DIRECTORY}/up")
    number = cloud.cluster.submit(job())
    cloud.cluster.wait_for(lambda: "others than root may change it" in cloud.cluster.exec("n1", "journalctl", "-q", "--no-pager", "-u", "primus-provider@*"), 30, "it is refused")
    assert cloud.ups() == [] and cloud.cluster.status(number)["state"] == "QUEUED"
    cloud.cluster.exec("n1", "chmod", "o-w", f"{DIRECTORY}/up")
