# SPDX-License-Identifier: Apache-2.0
"""Where data comes from: servers, buckets, topics, commands and hours that are not there yet, through whole jobs. What is wrong
with one thing is a clear state of its task, and the rest goes on."""
import collections
import contextlib
import datetime
import json
import os
import shutil
import subprocess

import pytest
from sandbox import MASTERD, SOURCE

UPSTREAM = os.path.join(SOURCE, "tests/data/upstream/input-kafka-text.json")
PORT = 8123


def lines(n):
    return ["line %08d" % i for i in range(n)]


def job(inputs, command="cat >> $OUT/$PRIMUS_INDEX.$PRIMUS_ATTEMPT", num=2, env=None, lenient=False, **more):
    """Workers that write down what they are fed. lenient: a task is tried once, and failed ones do not end the job."""
    return {"name": "sources", "env": env or {},
            "role": [{"roleName": "worker", "num": num, "vcores": 0, "memoryMb": 64, "command": command, "inputPolicy": "STREAMING",
                      "successPercent": 100}],
            "inputManager": {"fileConfig": {"inputs": inputs, "stopPolicy": {"taskFailedPercent": 100}}, "gracefulShutdown": True,
                             "maxTaskAttempts": 1 if lenient else 2}, **more}


@pytest.fixture
def out(shared_dir):
    path = shared_dir / "sources-out"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    path.chmod(0o777)
    return path


def got(out):
    return sorted(line for path in out.iterdir() for line in path.read_text().splitlines())


@pytest.fixture(scope="module")
def server(_cluster, shared_dir):
    """httpd.py on n1; returns its address as other hosts know it."""
    shutil.copy(os.path.join(SOURCE, "tests/kit/httpd.py"), shared_dir / "httpd.py")
    (shared_dir / "httpd.py").chmod(0o755)
    with _cluster.process("n1", "/usr/bin/python3", "/shared/httpd.py", "--bind", "0.0.0.0", "--port", str(PORT),
                          stdin=subprocess.PIPE) as running:
        assert running.stdout.readline().strip() == str(PORT)
        yield f"n1:{PORT}"


def test_http(cluster, server, out):
    number = cluster.submit(job([{"name": "web", "spec": {"pathPattern": f"http://{server}/plain/lines-{{1000..1003}}", "split": "4K",
                                                           "textInput": {}}},
                                 {"name": "plain", "spec": {"pathPattern": f"http://{server}/noranges/lines-500", "textInput": {}}}],
                                env={"OUT": "/shared/sources-out"}))
    assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
    assert got(out) == sorted(lines(1000) + lines(1001) + lines(1002) + lines(1003) + lines(500))


def test_http_faults(cluster, server, out):
    """A server that hangs, one that breaks off, one that answers wrongly and one that needs patience."""
    modes = ["hang", "cut", "wrong", "reset", "busy", "plain"]
    number = cluster.submit(job([{"name": mode, "spec": {"pathPattern": f"http://{server}/{mode}/lines-2000", "split": "8K", "textInput": {}}}
                                 for mode in modes],
                                env={"OUT": "/shared/sources-out", "PRIMUS_HTTP_TIMEOUT": "2"},
                                lenient=True))
    cluster.wait_job(number, timeout=120)
    told = cluster.primusctl("events", str(number))
    for why in ("nothing came for 2 s", "(tried 5 times)", "another range than the one asked for"):
        assert why in told, told
    counts = collections.Counter(got(out))
    assert all(counts[line] >= 3 for line in lines(2000)), "reset, busy and plain are read to their ends"


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_s3(cluster, server, out, scheme):
    keys = {"AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "s3/secret+key", "OUT": "/shared/sources-out"}
    spec = {"pathPattern": scheme + "://bucket/data/{{YYYY}}{{MM}}{{DD}}{{HH}}", "successMarkerPatterns": ["_SUCCESS"],
            "timeRange": {"from": "2026-11-20T05", "to": "2026-11-20T05"},
            "s3": {"endpoint": f"http://{server}", "region": "eu-test-1"}, "split": "500", "textInput": {}}
    number = cluster.submit(job([{"name": "bucket", "spec": spec}], env=keys))
    assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
    assert got(out) == sorted(lines(100) * 5)
    # Neither the arguments nor the journal know the key.
    for node in cluster.nodes:
        assert "s3/secret" not in cluster.run(node, "journalctl", "-q", "--no-pager", "-b").stdout
    wrong = cluster.submit(job([{"name": "bucket", "spec": spec}], env={**keys, "AWS_SECRET_ACCESS_KEY": "nonsense"}))
    assert cluster.wait_job(wrong) == 1
    assert "403 Forbidden: SignatureDoesNotMatch" in cluster.primusctl("events", str(wrong))


def test_hdfs(cluster, server, out):
    """By WebHDFS, as the job's user, or as who he says he is."""
    spec = {"pathPattern": "hdfs://cluster/data/{{YYYY}}{{MM}}{{DD}}{{HH}}/part-*", "successMarkerPatterns": ["_SUCCESS"],
            "timeRange": {"from": "2026-11-20T05", "to": "2026-11-20T05"},
            "hdfs": {"endpoint": f"http://{server}/standby,http://{server}"}, "split": "500", "textInput": {}}
    private = {"pathPattern": "hdfs://cluster/private", "hdfs": {"endpoint": f"http://{server}", "user": "mlops"}, "textInput": {}}
    env = {"OUT": "/shared/sources-out"}
    number = cluster.submit(job([{"name": "hours", "spec": spec}, {"name": "private", "spec": private}], env=env))
    assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
    assert got(out) == sorted(lines(100) * 5 + lines(1))
    del private["hdfs"]["user"]
    wrong = cluster.submit(job([{"name": "private", "spec": private}], env=env))
    assert cluster.wait_job(wrong) == 1
    assert "403 Forbidden: AccessControlException: Permission denied: user=ml, access=READ" in cluster.primusctl("events", str(wrong))


def test_reader_of_ones_own(cluster, shared_dir, out):
    """A class in a file beside the data; what is in its parameters is no command."""
    (shared_dir / "own_readers.py").write_text(
        "class Rows:\n"
        "    def __init__(self, path, mark):\n        self.path, self.mark = path, mark\n"
        "    def __iter__(self):\n"
        "        for line in open(self.path):\n            yield f'{self.mark} {line.strip()}'\n")
    (shared_dir / "own_readers.py").chmod(0o644)
    top = shared_dir / "own"
    top.mkdir(exist_ok=True)
    for i in range(3):
        (top / f"part-{i}").write_text(f"a{i}\nb{i}\n")
    for path in (top, *top.iterdir()):
        path.chmod(0o755)
    mark = "it's $(id) `id` ; \\"
    spec = {"pathPattern": "/shared/own", "customizedInput": {"className": "own_readers:Rows", "params": {"mark": mark}}, "textInput": {}}
    number = cluster.submit(job([{"name": "own", "spec": spec}], env={"OUT": "/shared/sources-out", "PYTHONPATH": "/shared"}))
    assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
    assert got(out) == sorted(f"{mark} {letter}{i}" for i in range(3) for letter in "ab")


def test_hours(cluster, shared_dir, out):
    """Hours come one after the other, and are waited for; the last two are not there when the job begins."""
    top = shared_dir / "sources-hours"
    shutil.rmtree(top, ignore_errors=True)

    def hour(h, marker=True):
        (top / f"20261120/{h:02d}").mkdir(parents=True, exist_ok=True)
        (top / f"20261120/{h:02d}/part-0").write_text("".join(f"{h:02d}-{i}\n" for i in range(50)))
        if marker:
            (top / f"20261120/{h:02d}/_SUCCESS").touch()
        for path in (top, *top.rglob("*")):
            path.chmod(0o755)

    hour(9)
    hour(10, marker=False)
    spec = {"pathPattern": "/shared/sources-hours/{{YYYY}}{{MM}}{{DD}}/{{HH}}", "successMarkerPatterns": ["_SUCCESS"], "textInput": {},
            "timeRange": {"from": "2026-11-20T09", "to": "2026-11-20T11"}}
    number = cluster.submit(job([{"name": "hours", "spec": spec}], num=1, env={"OUT": "/shared/sources-out"}, input={"poll": "500ms"}))
    cluster.wait_for(lambda: "20261120/10/_SUCCESS" in json.dumps(cluster.status(number)), 20, "that it waits for hour 10")
    (top / "20261120/10/_SUCCESS").touch()
    cluster.wait_for(lambda: "sources-hours/20261120/11" in json.dumps(cluster.status(number)), 20, "that it waits for hour 11")
    hour(11)
    assert cluster.wait_job(number) == 0
    text = "".join(path.read_text() for path in out.iterdir()).splitlines()
    assert text == [f"{h:02d}-{i}" for h in (9, 10, 11) for i in range(50)]


def test_command(cluster, shared_dir, out):
    top = shared_dir / "sources-command"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for i in range(4):
        (top / f"part-{i}").write_text("".join(f"{i}-{n}\n" for n in range(100)))
    for path in (top, *top.iterdir()):
        path.chmod(0o755)
    spec = {"pathPattern": "/shared/sources-command", "textInput": {},
            "commandInput": {"command": 'sed "s|^|$(basename $PRIMUS_FILE) |" $PRIMUS_FILE; [ ${PRIMUS_FILE%2} = $PRIMUS_FILE ] || exit 7'}}
    alone = {"textInput": {}, "commandInput": {"command": "seq -f 'seq %g' 1000"}}
    number = cluster.submit(job([{"name": "files", "spec": spec}, {"name": "numbers", "spec": alone}], env={"OUT": "/shared/sources-out"},
                                lenient=True))
    cluster.wait_job(number)
    told = cluster.primusctl("events", str(number))
    assert "part-2: the command ended with status 7, behind" in told
    found = set(got(out))
    assert found >= {f"part-{i} {i}-{n}" for i in (0, 1, 3) for n in range(100)} | {f"seq {n}" for n in range(1, 1001)}


# ---- Kafka


@contextlib.contextmanager
def broker(cluster, build, shared_dir, topic, partitions, messages):
    program = os.path.join(build, "tests/kafka-broker")
    if not os.path.exists(program):
        pytest.skip("kafka-broker is not built")
    shutil.copy(program, shared_dir / "kafka-broker")
    (shared_dir / "kafka-broker").chmod(0o755)
    with cluster.process("n1", "/shared/kafka-broker", topic, str(partitions), str(messages), stdin=subprocess.PIPE) as running:
        def ask(line):
            running.stdin.write(line + "\n")
            running.stdin.flush()
            return running.stdout.readline().strip()
        # The mock listens on its own host's loopback interface alone.
        yield running.stdout.readline().strip(), ask


def test_kafka_upstream(cluster, build, shared_dir):
    """Upstream's example, with the broker's address filled in."""
    with open(UPSTREAM) as f:
        text = f.read()
    with broker(cluster, build, shared_dir, "primus-example-input-kafka-text", 3, 100) as (address, _):
        config = json.loads(text.replace("<kafka-broker-ip:port>", address))
        config["role"][0]["nodes"] = ["n1"]
        number = cluster.submit(config)
        assert cluster.wait_job(number) == 0, cluster.primusctl("events", str(number))
        received = cluster.primusctl("logs", str(number)).splitlines()
        assert len(received) == 32 and all(line.startswith("primus-example-input-kafka-text/") for line in received), received


def test_kafka_commits(cluster, build, shared_dir, out):
    """Every message once, from every partition, also those that come later; committed is what was acknowledged, and no more."""
    topics = {"config": {}, "consumerGroup": "readers", "kafkaStartUpMode": "EARLIEST", "topic": "events"}
    command = 'while read -r line; do echo "$line" >> $OUT/$PRIMUS_INDEX; done'
    config = job([], command=command, env={"OUT": "/shared/sources-out"})
    config["role"][0]["nodes"] = ["n1"]
    with broker(cluster, build, shared_dir, "events", 4, 500) as (address, ask):
        topics["config"]["bootstrap.servers"] = address
        config["inputManager"] = {"kafkaConfig": {"kafkaMessageType": "JSON", "topics": [topics]}}
        config["input"] = {"ack": "read"}
        number = cluster.submit(config)
        wanted = sorted(f"events/{p} message {i}" for p in range(4) for i in range(500))
        cluster.wait_for(lambda: got(out) == wanted, 40, "2,000 messages")
        assert ask("produce 2 500 10") == "0"
        wanted = sorted(wanted + [f"events/2 message {i}" for i in range(500, 510)])
        cluster.wait_for(lambda: got(out) == wanted, 40, "ten more")
        cluster.wait_for(lambda: ask("committed readers 2") == "510", 20, "that they are committed")
        assert [ask(f"committed readers {p}") for p in range(4)] == ["500", "500", "510", "500"]
        cluster.primusctl("kill", str(number))
        assert cluster.wait_job(number) == 3


def test_topic_ends(cluster, build, shared_dir, out):
    """A topic of which somebody says that it brings no more: the job has read what was there, and succeeds; also over a kill of masterd."""
    config = job([], command='while read -r line; do echo "$line" >> $OUT/$PRIMUS_INDEX; done', env={"OUT": "/shared/sources-out"}, num=2)
    config["role"][0]["nodes"] = ["n1"]
    with broker(cluster, build, shared_dir, "stream", 3, 200) as (address, ask):
        config["inputManager"] = {"kafkaConfig": {"kafkaMessageType": "JSON", "topics": [
            {"config": {"bootstrap.servers": address}, "consumerGroup": "readers", "kafkaStartUpMode": "EARLIEST", "topic": "stream"}]}}
        config["input"] = {"ack": "read"}
        number = cluster.submit(config)
        wanted = sorted(f"stream/{p} message {i}" for p in range(3) for i in range(200))
        cluster.wait_for(lambda: got(out) == wanted, 40, "600 messages")
        assert cluster.status(number)["state"] == "RUNNING"
        cluster.primusctl("data", "end", str(number), "stream")
        cluster.kill9(cluster.nodes[0], MASTERD)
        assert cluster.wait_job(number) == 0
        assert got(out) == wanted and ask("committed readers 1") == "200"
    [source] = cluster.primusctl_json("status", str(number))["data"]["sources"]
    assert source["acked"] == 600 and source["done"] == source["tasks"] == 3
    assert [e["kind"] for e in cluster.events(job=number, kind="source-ended")] == ["source-ended"]


def test_days_that_follow_the_clock_end(cluster, shared_dir, out):
    """The day of today is there; a source that goes on tomorrow brings no more when somebody says so."""
    today = datetime.datetime.now(datetime.timezone.utc)
    path = shared_dir / "clock"
    for day in (today - datetime.timedelta(days=1), today):
        (path / day.strftime("%Y%m%d")).mkdir(parents=True)
        (path / day.strftime("%Y%m%d") / "a.txt").write_text(day.strftime("%Y%m%d\n"))
    for one in (path, *path.rglob("*")):
        one.chmod(0o755)
    config = job([], command='while read -r line; do echo "$line" >> $OUT/$PRIMUS_INDEX; done', env={"OUT": "/shared/sources-out"})
    config["inputManager"]["fileConfig"]["inputs"] = [{"name": "days", "spec": {
        "pathPattern": "/shared/clock/{{YYYY}}{{MM}}{{DD}}", "textInput": {},
        "timeRange": {"from": (today - datetime.timedelta(days=1)).strftime("%Y-%m-%d"), "to": "now"}}}]
    config["input"] = {"ack": "read"}
    number = cluster.submit(config)
    cluster.wait_for(lambda: len(got(out)) == 2, 40, "two days")
    assert cluster.status(number)["state"] == "RUNNING"
    tomorrow = (today + datetime.timedelta(days=1)).strftime("%Y-%m-%d")
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(number))["data"]["sources"][0]["timePoint"] == tomorrow, 20, "the day of tomorrow")
    cluster.primusctl("data", "end", str(number), "days")
    assert cluster.wait_job(number) == 0
    assert cluster.primusctl_json("status", str(number))["data"]["done"] == 2
