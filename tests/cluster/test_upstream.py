# SPDX-License-Identifier: Apache-2.0
"""Configurations written for ByteDance's Primus run as they are."""
import json
import os
import re
import shutil

import pytest
from sandbox import SOURCE

CONFIGS = os.path.join(SOURCE, "tests/data/upstream")
NAMES = ("hello", "input-file-text", "input-kafka-text", "tensorflow-parameterserver")
# What every warning about a key ends with: what to do instead.
ADVICE = re.compile(r"remove it|write ")

# Stands in for a trainer: checks what TensorFlow would read, then does what its role does.
TRAINER = """
import json, os, re, socket, sys, time

config = json.loads(os.environ["TF_CONFIG"])
assert config["task"] == {"type": ROLE, "index": 0}, config
cluster = config["cluster"]
assert sorted(cluster) == ["chief", "ps", "worker"], cluster
addresses = [address for role in cluster.values() for address in role]
assert [len(cluster[role]) for role in sorted(cluster)] == [1, 1, 1], cluster
assert len(set(addresses)) == 3, addresses

def split(address):
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)

address = split(cluster[ROLE][0])
listener = socket.create_server(address, family=socket.getaddrinfo(*address)[0][0], backlog=8)
if ROLE == "chief":
    # Everybody is where TF_CONFIG says, on every host.
    for role in ("ps", "worker"):
        for _ in range(300):
            try:
                with socket.create_connection(split(cluster[role][0]), 5) as s:
                    assert s.recv(16).decode() == role
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        else:
            sys.exit(f"nobody at {cluster[role][0]}")
    print("all found")
else:
    while True:
        listener.accept()[0].sendall(ROLE.encode())
"""


@pytest.fixture(scope="module")
def upstream(build, new_shared):
    """A cluster with upstream's data at upstream's path."""
    from sandbox import cluster_name
    from sandbox import Cluster
    shutil.copytree(CONFIGS, new_shared, dirs_exist_ok=True)
    trainer = new_shared / "tensorflow-parameterserver"
    trainer.mkdir()
    for role in ("chief", "ps", "worker"):
        (trainer / f"{role}.py").write_text(f"ROLE = {role!r}\n{TRAINER}")
    data = new_shared / "input-file-text-data"
    for directory, _, files in os.walk(new_shared):
        os.chmod(directory, 0o755)
        for file in files:
            os.chmod(os.path.join(directory, file), 0o644)
    with Cluster(cluster_name(), 3, build=build, binds=[f"{new_shared}:/upstream", f"{data}:/primus/examples/input-file-text/data"]) as one:
        yield one


@pytest.fixture(scope="module")
def new_shared(tmp_path_factory):
    path = tmp_path_factory.mktemp("upstream")
    os.chmod(path.parent, 0o755)
    os.chmod(path.parent.parent, 0o755)
    return path


def submit(cluster, name, *options):
    """As upstream's users do. (status, standard output, standard error)"""
    done = cluster.run("n1", "primus-submit", "--primus_conf", f"/upstream/{name}.json", *options, user="ml", timeout=90)
    return done.returncode, done.stdout, done.stderr


def said(cluster, *executor):
    return cluster.primusctl("logs", *executor).splitlines()


def executors(cluster, number):
    return {row["role"]: row for row in cluster.primusctl_json("status", str(number))["executors"]}


def number_of(out):
    return int(re.search(r"Submitted job (\d+)", out)[1])


def test_hello(upstream):
    status, out, _ = submit(upstream, "hello", "--wait_app_completion", "true")
    assert status == 0, out
    number = number_of(out)
    for role, greeting in (("chief", "Chief"), ("ps", "PS"), ("worker", "Worker")):
        lines = said(upstream, str(number), role)
        prefixed = any(line.startswith(f"{role}/0 | ") for line in lines)
        lines = [line.split(" | ", 1)[1] for line in lines] if prefixed else lines
        assert lines[-2:] == [f"Hello from {greeting}", f"Goodbye from {greeting}"]
        environment = dict(line.split("=", 1) for line in lines if "=" in line)
        assert environment["PRIMUS_ROLE"] == environment["EXECUTOR_ROLE"] == role
        assert json.loads(environment["TF_CONFIG"])["task"] == {"type": role, "index": 0}
    job = upstream.primusctl_json("status", str(number))
    assert job["state"] == "SUCCEEDED" and job["name"] == "primus-hello"


def test_file_text(upstream):
    status, out, _ = submit(upstream, "input-file-text", "--wait_app_completion=true")
    assert status == 0, out
    want = sorted(line for i in range(4) for line in open(f"{CONFIGS}/input-file-text-data/data-{i}.txt").read().splitlines())
    assert sorted(said(upstream, str(number_of(out)), "worker/0")) == want
    assert executors(upstream, number_of(out))["worker"]["state"] == "SUCCEEDED"  # `cat` saw its end of file


def test_parameter_server(upstream):
    status, out, err = submit(upstream, "tensorflow-parameterserver", "--wait_app_completion", "true")
    number = number_of(out)
    assert status == 0, out + err + "\n".join(said(upstream, str(number)))
    assert said(upstream, str(number), "chief")[-1].endswith("all found")
    states = {role: row["state"] for role, row in executors(upstream, number).items()}
    assert states == {"chief": "SUCCEEDED", "ps": "KILLED", "worker": "KILLED"}
    for node in upstream.nodes:
        assert "primus-" not in upstream.exec(node, "systemctl", "list-units", "--plain", "--no-legend", f"primus-{number}-*.service")


def test_without_waiting(upstream):
    status, out, _ = submit(upstream, "hello")
    assert status == 0 and out.strip() == f"Submitted job {number_of(out)} (primus-hello)"
    assert upstream.wait_job(number_of(out)) == 0


def test_a_failure_is_seen(upstream, new_shared):
    job = json.loads((new_shared / "hello.json").read_text())
    job["role"][2]["command"] = "echo Error: no such corpus >&2; exit 3"
    (new_shared / "fails.json").write_text(json.dumps(job))
    os.chmod(new_shared / "fails.json", 0o644)
    status, out, _ = submit(upstream, "fails", "--wait_app_completion", "true")
    assert status == 1
    assert "FAILED" in out and re.search(r"worker/0 on n\d: exit status 3", out)
    number = str(number_of(out))
    upstream.wait_for(lambda: "Error: no such corpus" in upstream.primusctl("status", number), 10, "the first error in the status")
    assert submit(upstream, "fails", "--wait_app_completion", "false")[0] == 0


def test_kafka_is_taken_as_it_stands(upstream):
    """With its placeholder for the brokers: that there are none is found out by reading. A real topic is in test_sources.py."""
    status, out, err = submit(upstream, "input-kafka-text")
    assert status == 0, err
    number = str(number_of(out))
    assert 'config["bootstrap.servers"]: is a placeholder' in err
    config = json.loads(upstream.primusctl("config", number))["inputManager"]["kafkaConfig"]
    assert config["topics"] == [{"topic": "primus-example-input-kafka-text", "consumerGroup": "primus-example", "kafkaStartUpMode": "EARLIEST",
                                 "startUpTimestamp": 0, "weight": 0,
                                 "config": {"auto.offset.reset": "earliest", "bootstrap.servers": "<kafka-broker-ip:port>"}}]
    upstream.run("n1", "primusctl", "kill", number, user="ml")
    assert upstream.wait_job(int(number)) != 0


@pytest.mark.parametrize("name", NAMES)
def test_warnings_name_key_place_and_remedy(upstream, name):
    """Every slip of upstream's is told with its place: the key is on that line, at that column."""
    with open(f"{CONFIGS}/{name}.json", encoding="utf-8") as f:
        text = f.read().splitlines()
    status, out, err = submit(upstream, name)
    if status != 0:  # what is refused says why, and no more
        err = upstream.run("n1", "primusctl", "validate", f"/upstream/{name}.json").stderr
    told = set()
    for line in err.splitlines():
        if re.search(r"files\[\]: \d+ files, [\d.]+K, go along$", line):
            continue
        match = re.match(r'.*\.json:(\d+):(\d+): (?:(warning)|error): ([\w.\[\]"]+): (.+)', line)
        assert match, line
        row, column, severity, path, message = int(match[1]), int(match[2]), *match.groups()[2:]
        quoted = re.search(r'\["([^"]+)"\]$', path)  # a property of Kafka's
        key = quoted[1] if quoted else re.sub(r"\[\d+\]$", "", path.rsplit(".", 1)[-1])
        assert f'"{key}"' in text[row - 1] and column >= text[row - 1].index(f'"{key}"') + 1, line
        if severity:
            told.add(key)
            assert ADVICE.search(message), line
    slips = {"hello": {"jvmMemoryMb"}, "input-file-text": {"jvmMemoryMb", "progressManagerType", "dumpIntervalSec", "gracefulShutdown"},
             "input-kafka-text": {"jvmMemoryMb", "progressManagerType", "bootstrap.servers", "enable.auto.commit", "key.deserializer",
                                  "value.deserializer"},
             "tensorflow-parameterserver": {"jvmMemoryMb", "runtimeConf"}}
    assert told == slips[name]
    if name == "input-kafka-text":  # a topic has no end
        upstream.run("n1", "primusctl", "kill", str(number_of(out)), user="ml")
    upstream.run("n1", "primusctl", "wait", "-q", user="ml")


def test_command_line(upstream):
    for arguments, what in ((["--wait_app_completion", "true"], "--primus_conf FILE is missing"),
                            (["--primus_conf", "/upstream/hello.json", "--wait_app_completion", "maybe"], "expected true or false"),
                            (["--primus_conf", "/upstream/hello.json", "--command", "kill"], "only submit")):
        done = upstream.run("n1", "primus-submit", *arguments, user="ml")
        assert done.returncode == 2 and what in done.stderr
    done = upstream.run("n1", "primus-submit", "--primus_conf", "/upstream/none.json", user="ml")
    assert done.returncode == 1 and "/upstream/none.json" in done.stderr
