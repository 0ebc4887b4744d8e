# SPDX-License-Identifier: Apache-2.0
"""primus.client on hosts: by the user's own socket, by a gateway that it begins, and by ssh; over kills of what it stands on."""
import json
import threading

import pytest
from sandbox import MASTERD, SOURCE
from web import Web

BEGIN = "import json, sys, time\nfrom primus.client import Client, Conflict, Error\n"
JOB = {"name": "python", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 32, "command": "echo hello $PRIMUS_RANK; echo 'caf\u00e9'; exec sleep 600"}]}


def python(cluster, program, *arguments, node="n1", user="ml", **options):
    return cluster.exec(node, "python3", "-c", BEGIN + program, *map(str, arguments), user=user, timeout=90, **options)


@pytest.fixture
def web(cluster):
    web = Web(cluster)
    yield web
    web.systemctl("stop", "primus-web.socket", "primus-web.service")


ALL_OF_IT = """
config = json.load(sys.stdin)
with Client() as cluster:
    trial = cluster.try_submit(config)
    assert trial["starts"] and trial["executors"] == 2, trial
    job = cluster.submit(config, key="python-1", priority=2)
    assert cluster.submit(config, key="python-1", priority=2) == job
    try:
        cluster.submit(config, key="python-1")
        sys.exit("no conflict")
    except Conflict as e:
        assert str(job) in str(e)
    states = []
    for status in cluster.watch(job):
        states.append(status["state"])
        if status["state"] == "RUNNING":
            lines = []
            for line in cluster.logs(job, "worker", 1):
                lines.append(line)
                if len(lines) == 2:
                    break
            assert lines == ["hello 1\\n", "caf\\u00e9\\n"], lines
            assert [r["job"] for r in cluster.jobs()] == [job]
            assert cluster.config(job)["priority"] == 2
            version = cluster.version(job)
            assert cluster.scale(job, worker=1, version=version) == version + 1
            try:
                cluster.update(job, {"priority": 3}, version=version)
                sys.exit("no conflict")
            except Conflict as e:
                pass
            assert "worker" in json.dumps(cluster.metrics(job))
            cluster.kill(job, "seen")
    assert states[-1] == "KILLED" and "RUNNING" in states, states
    assert cluster.wait(job) == 3
    assert "seen" in cluster.status(job)["reason"] and "submitted" in [e["kind"] for e in cluster.events(job)]
    assert [n["name"] for n in cluster.nodes()] == ["n1", "n2", "n3"] and cluster.queue() == []
    try:
        cluster.submit({"rol": 1})
        sys.exit("taken")
    except Error as e:
        assert (e.name, e.line) == ("org.primus.Error.BadConfig", 1), (e.name, e.line)
    try:
        cluster.wait(job + 1000)
        sys.exit("found")
    except Error as e:
        assert e.status == 404, e
print("all of it")
"""


def test_by_the_own_socket(cluster, web):
    assert python(cluster, ALL_OF_IT, input=json.dumps(JOB)) == "all of it\n"
    # It was that gateway which was asked.
    assert "primus-webd" in web.systemctl("show", "-p", "ExecMainStatus,ExecStart,StatusText", "primus-web.service") and web.pid > 0


def test_by_one_that_is_begun(cluster):
    """Where no socket of the user's is; it ends with the program, however that ends."""
    assert python(cluster, ALL_OF_IT.replace('"python-1"', '"python-2"'), input=json.dumps(JOB)) == "all of it\n"
    python(cluster, "cluster = Client()\ncluster.nodes()\n")
    cluster.wait_for(lambda: cluster.run("n1", "pgrep", "-u", "ml", "-f", "primus-webd --browse").returncode == 1, what="the end of the gateways")


def test_from_elsewhere(cluster):
    cluster.exec("n1", "systemctl", "start", "ssh")
    public = cluster.exec("n2", "sh", "-c", "install -d -m 0700 .ssh && rm -f .ssh/id_ed25519 && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && "
                          "ssh-keyscan n1 > .ssh/known_hosts 2> /dev/null && cat .ssh/id_ed25519.pub", user="ml", cwd="/home/ml")
    cluster.exec("n1", "sh", "-c", "install -d -m 0700 .ssh && cat > .ssh/authorized_keys", user="ml", cwd="/home/ml", input=public)
    try:
        said = python(cluster, "with Client('ssh://ml@n1') as c:\n    job = c.submit(json.load(sys.stdin))\n    print(c.status(job)['owner'], len(c.nodes()))\n    c.kill(job)", node="n2",
                      input=json.dumps(JOB), cwd="/home/ml")
        assert said == "1000 3\n"
        refused = cluster.run("n2", "python3", "-c", BEGIN + "Client('nowhere').nodes()", user="ml", cwd="/home/ml")
        assert refused.returncode == 1 and "nowhere" in refused.stderr
    finally:
        cluster.exec("n1", "systemctl", "stop", "ssh")


def test_of_before(cluster, web):
    """A job that ended before masterd was started has no object until it is asked for: it is there all the same; one that never was is not."""
    job = cluster.submit({**JOB, "role": [{**JOB["role"][0], "command": "exit 3"}]})
    cluster.wait_state(job, "FAILED")
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    said = python(cluster, """
job = int(sys.argv[1])
with Client() as cluster:
    print(cluster.wait(job, timeout=5), cluster.status(job)["state"])
    try:
        cluster.status(10**9)
    except Error as e:
        print(e.status, e.name)
""", job)
    assert said.splitlines() == ["1 FAILED", "404 org.primus.Error.NoSuchJob"]


def test_killed_meanwhile(cluster, web):
    """masterd and the gateway are killed again and again; each submission is made, once, and each end is heard of."""
    program = """
    names = json.load(sys.stdin)
    cluster = Client()
    for name in names:
        job = cluster.submit({"name": name, "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "sleep 0.2"}]})
        assert cluster.wait(job, timeout=60) == 0
        print(name, job, flush=True)
    """.replace("\n    ", "\n")
    names = [f"py-{i}" for i in range(8)]
    done = []
    thread = threading.Thread(target=lambda: done.append(cluster.run("n1", "python3", "-c", BEGIN + program, user="ml", input=json.dumps(names), timeout=120)))
    thread.start()
    kills = 0
    while thread.is_alive() and kills < 12:
        thread.join(0.3)
        if kills % 2:
            cluster.run("n1", "pkill", "-9", "-u", "ml", "primus-webd")
        else:
            cluster.kill9_now("n1", MASTERD)
        kills += 1
    thread.join(120)
    assert done[0].returncode == 0, done[0].stderr
    made = [tuple(line.split()) for line in done[0].stdout.splitlines()]
    assert [name for name, _ in made] == names
    rows = [(row["name"], str(row["job"])) for row in cluster.primusctl_json("list", "-a") if row["name"].startswith("py-")]
    assert sorted(rows) == sorted(made)


def test_the_example(cluster):
    """As its reader would run it."""
    with open(f"{SOURCE}/examples/notebook/watch.py", encoding="utf-8") as f:
        said = cluster.exec("n1", "python3", "-", user="ml", input=f.read(), cwd="/home/ml")
    assert said.startswith("It would start now.\nJob ") and "ended with status 0 after 40 steps" in said and said.count("*") == 40, said
