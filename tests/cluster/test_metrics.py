# SPDX-License-Identifier: Apache-2.0
"""Metrics of a host: what they say against what the executors count themselves, against Debian's Prometheus, and against
clients that mean no good."""
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import time

import pytest
from metrics_page import SOCKET, Connection, get, metrics, value
from sandbox import AGENTD, Cluster, Failed, cluster_name, shared_directory

ADDRESS = "127.0.0.1:7748"
PROMETHEUS = "127.0.0.1:9790"  # in the host's network, where nobody else is


@pytest.fixture(scope="module")
def host(build, tmp_path_factory):
    shared = shared_directory(tmp_path_factory, "metrics")
    with Cluster(cluster_name(), 1, build=build, binds=[f"{shared}:/shared"],
                 conf=[f"agentd.conf:Agent.MetricsListen={ADDRESS} {SOCKET}", "agentd.conf:Agent.MetricsJobs=yes"]) as cluster:
        cluster.shared = shared
        cluster.wait_nodes()
        yield cluster


def series(samples, name):
    return [dict(labels) for n, labels in samples if n == name]


def in_network(cluster, *argv, node="n1"):
    return ["nsenter", "-t", str(cluster.leader(node)), "-n", "--", *argv]


def config(command, num=1, **role):
    return {"name": "measured", "role": [{"roleName": "worker", "num": num, "vcores": 0.1, "memoryMb": 64, "command": command, **role}]}


BUSY = r"""python3 -c '
import os, sys, time
while time.process_time() < 1.5: sum(range(1000))
with open("/shared/cpu." + os.environ["PRIMUS_INDEX"], "w") as f: f.write(str(time.process_time()))
time.sleep(600)'"""


@pytest.fixture
def busy(host):
    for path in host.shared.glob("cpu.*"):
        path.unlink()
    job = host.submit(config(BUSY, num=2))
    host.wait_for(lambda: len(list(host.shared.glob("cpu.*"))) == 2, 60, "executors that have used CPU")
    yield job
    host.run("n1", "primusctl", "kill", str(job), user="ml")
    host.wait_job(job)


def test_values_of_executors(host, busy):
    own = {index: float((host.shared / f"cpu.{index}").read_text()) for index in (0, 1)}
    time.sleep(2)  # a round, and what the interpreter does before and after
    samples = metrics(host)
    for index, seconds in own.items():
        labels = {"job": str(busy), "role": "worker", "index": str(index)}
        measured = value(samples, "primus_role_cpu_seconds_total", **labels)
        # What it counted, and what starting it took; what its process did before it was in its control group is not the unit's.
        assert seconds - 0.01 <= measured < seconds + 0.5, (own, measured)
        assert value(samples, "primus_role_state", **labels, state="running") == 1
        started = value(samples, "primus_role_start_time_seconds", **labels)
        assert 0 < time.time() - started < 120
        unit = host.executor(busy, index=index)["unit"]
        cgroup = host.exec("n1", "sh", "-c", f"stat -c %i /sys/fs/cgroup/unified/primus.slice/primus-{busy}.slice/{unit} "
                                             f"|| stat -c %i /sys/fs/cgroup/primus.slice/primus-{busy}.slice/{unit}").strip()
        assert value(samples, "primus_role_info", **labels, unit=unit, attempt="1", node="n1", cgroup_id=cgroup) == 1
    assert value(samples, "primus_node_executors", node="n1") == 2
    assert value(samples, "primus_node_connected", node="n1") == 1
    total = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo", encoding="ascii").read())[1]) << 10
    assert value(samples, "primus_node_memory_total_bytes", node="n1") == total


def test_every_series_of_an_executor_names_it(host, busy):
    for name, labels in metrics(host):
        if name.startswith(("primus_role_", "primus_data_")):
            assert {"job", "role", "index"} <= dict(labels).keys(), (name, labels)
        elif not name.startswith("primus_bpf_"):
            assert dict(labels).get("node") == "n1", (name, labels)


def test_unknown_is_not_written(host, busy):
    """These hosts have no memory controller: there is no limit, and no 0 in its place."""
    samples = metrics(host)
    assert not series(samples, "primus_role_memory_limit_bytes")
    assert not series(samples, "primus_data_bytes_total")  # no data was asked for
    assert not series(samples, "primus_role_progress_step")


def test_counters_over_a_restart(host, busy):
    before = metrics(host)
    host.exec("n1", "systemctl", "kill", "--signal=KILL", "--kill-whom=main", AGENTD)
    pid = lambda: host.exec("n1", "systemctl", "show", "-P", "MainPID", AGENTD)
    old = pid()

    def again():
        samples = metrics(host)
        return samples if pid() != old or series(samples, "primus_role_cpu_seconds_total") else None
    after = host.wait_for(lambda: (s := again()) and len(series(s, "primus_role_cpu_seconds_total")) == 2 and s, 20, "metrics of both")
    for (name, labels), was in before.items():
        if name == "primus_role_cpu_seconds_total":
            assert after[name, labels] >= was
        elif name.endswith("_info") and name.startswith("primus_role"):
            assert (name, labels) in after


def test_an_executor_that_ends_leaves_no_series(host):
    job = host.submit(config("sleep 3"))
    host.wait_for(lambda: any(s["job"] == str(job) for s in series(metrics(host), "primus_role_info")), 20, "a series")
    assert host.wait_job(job) == 0
    host.wait_for(lambda: not any(("job", str(job)) in labels for _, labels in metrics(host)), 5, "no series")


def test_data_counters(host):
    """Delivered bytes and records, exactly; and a trainer that is slower than its data makes the data wait."""
    directory = host.shared / "lines"
    directory.mkdir(exist_ok=True)
    lines = [f"{i} {'x' * (i % 90)}" for i in range(30000)]
    text = "".join(line + "\n" for line in lines)
    (directory / "a").write_text(text)
    command = "n=0; while read -r line; do n=$((n + 1)); [ $((n % 3000)) != 0 ] || sleep 0.05; done; echo $n > /shared/read; sleep 600"
    job = host.submit({**config(command, inputPolicy="STREAMING"), "inputManager": {"gracefulShutdown": True, "fileConfig": {"inputs": [
        {"name": "data", "spec": {"pathPattern": "/shared/lines", "textInput": {}}}]}}})
    labels = {"job": str(job), "role": "worker", "index": "0"}
    host.wait_for(lambda: value(metrics(host), "primus_data_bytes_total", **labels) == len(text), 60, f"{len(text)} bytes")
    samples = metrics(host)
    # A pause of 0.05 s every 3000 lines, but for what is in the pipe still; the trainer itself hardly ever waits.
    waited = value(samples, "primus_data_producer_wait_seconds_total", **labels)
    assert waited > 0.1
    assert 0 <= value(samples, "primus_data_consumer_wait_seconds_total", **labels) < waited
    records = value(samples, "primus_data_records_total", **labels)
    assert records in (len(lines), None), records
    age = value(samples, "primus_role_last_data_age_seconds", **labels)
    time.sleep(2.5)
    assert value(metrics(host), "primus_role_last_data_age_seconds", **labels) > age
    host.exec("n1", "primusctl", "kill", str(job), user="ml")
    host.wait_job(job)


def test_promtool(host, busy):
    status, kind, text = get(host, accept="text/plain")
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0 and not checked.stdout + checked.stderr, checked


@contextlib.contextmanager
def prometheus(host, directory):
    (directory / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: primus
    honor_labels: true
    static_configs: [{{targets: ["{ADDRESS}"]}}]
""")
    with open(directory / "log", "w") as log:
        running = subprocess.Popen(in_network(host, "prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/db",
                                              f"--web.listen-address={PROMETHEUS}"), stdout=log, stderr=log)
        try:
            yield lambda expression: query(host, expression)
        finally:
            running.terminate()
            running.wait(20)
    wrong = [line for line in (directory / "log").read_text().splitlines() if "level=warn" in line or "level=error" in line]
    assert not [line for line in wrong if "SIGTERM" not in line], wrong


def query(host, expression):
    done = subprocess.run(in_network(host, "promtool", "query", "instant", "-o", "json", f"http://{PROMETHEUS}", expression),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr)
    return [(row["metric"], float(row["value"][1])) for row in json.loads(done.stdout)]


def test_prometheus(host, busy, tmp_path):
    with prometheus(host, tmp_path) as ask:
        host.wait_for(lambda: sum(v for _, v in ask("count_over_time(up[1m])")) >= 4, 40, "four scrapes")
        assert [v for _, v in ask("min_over_time(up[1m])")] == [1]
        page = metrics(host)
        assert ask("scrape_samples_scraped")[0][1] >= len(page) * 0.9
        found = {m["index"]: v for m, v in ask(f'primus_role_cpu_seconds_total{{job="{busy}"}}')}
        assert found.keys() == {"0", "1"} and all(1 <= v < 3 for v in found.values())
        assert ask('primus_role_info * on (job, role, index) group_right () primus_role_state')
        [(metadata, _)] = ask("count by (__name__) (primus_role_cpu_seconds_total)")
        assert metadata["__name__"] == "primus_role_cpu_seconds_total"


def raw(host, data=b"", timeout=15):
    """Connects and says that; the socket stays open."""
    connection = Connection(host, timeout=timeout)
    connection.connect()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sock.sendall(data)
    return connection.sock


def healthy(host, pid):
    assert host.exec("n1", "systemctl", "show", "-P", "MainPID", AGENTD).strip() == pid
    assert host.node_states()["n1"] == "READY"
    return get(host)[0] == 200


def test_hostile_clients(host, busy):
    pid = host.exec("n1", "systemctl", "show", "-P", "MainPID", AGENTD).strip()
    for data in (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 100000, b"\0" * 65536, b"\xff" * 65536, b"GET " + b"/" * 70000, os.urandom(65536),
                 b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 20000, b"POST /metrics HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 100000,
                 b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n"):
        with contextlib.closing(raw(host, data)) as s:
            with contextlib.suppress(OSError):
                while s.recv(65536):
                    pass
        assert healthy(host, pid)
    assert get(host, "/")[0] == 404 and get(host, "/metrics/x")[0] == 404
    assert get(host, method="DELETE")[0] == 405


def test_slow_clients(host, busy):
    """All connections are taken by clients that say a byte every few seconds: Prometheus is served again when their time is over, and nothing
    else has noticed."""
    pid = host.exec("n1", "systemctl", "show", "-P", "MainPID", AGENTD).strip()
    slow = [raw(host, b"GET /metrics HTTP/1.1\r\nX: ") for _ in range(16)]
    end = time.monotonic() + 60
    try:
        with pytest.raises(Failed):
            get(host, timeout=2)
        while time.monotonic() < end:
            for s in slow:
                with contextlib.suppress(OSError):
                    s.send(b"x")
            assert host.node_states()["n1"] == "READY"
            with contextlib.suppress(Failed):
                if healthy(host, pid):
                    break
            time.sleep(3)
        else:
            pytest.fail("no metrics after a minute")
    finally:
        for s in slow:
            s.close()


def test_addresses(host):
    """Only on the loopback by default; elsewhere, or nowhere, when that is set."""
    def listening():
        text = host.exec("n1", "ss", "-Hltn")
        return {line.split()[3] for line in text.splitlines() if line.split()[3].endswith((":7748", ":7749"))}

    def restart(setting):
        host.exec("n1", "sh", "-c", "mkdir -p /etc/primus/agentd.conf.d; printf '[Agent]\\nMetricsListen=%s\\n' \"$1\" > /etc/primus/agentd.conf.d/zz.conf; "
                                    f"systemctl restart {AGENTD}", "sh", setting)
    assert listening() == {ADDRESS}
    try:
        restart("[::1]:7749 0.0.0.0:7748")
        host.wait_for(lambda: listening() == {"[::1]:7749", "0.0.0.0:7748"}, 20, "other addresses")
        restart("no")
        host.wait_nodes()
        assert not listening()
        restart("192.0.2.77:7748")  # not the host's: said, and nothing else
        host.wait_nodes()
        assert "MetricsListen" in host.journal("n1", AGENTD)
    finally:
        host.exec("n1", "sh", "-c", f"rm -f /etc/primus/agentd.conf.d/zz.conf; systemctl restart {AGENTD}")
        host.wait_nodes()


def test_who_sees_jobs(host):
    """On a port, which everybody reaches, the host alone, unless MetricsJobs=yes; on the socket everything, for whom it lets in."""
    look = ["python3", "-c", f"import urllib.request as u; print(u.urlopen('http://{ADDRESS}/metrics').read().decode())"]
    connect = ["python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect('{SOCKET}')"]
    job = host.submit(config("sleep 600"))
    host.wait_state(job, "RUNNING")
    try:
        host.wait_for(lambda: f'job="{job}"' in host.exec("n1", *look, user="eve"), 10, "MetricsJobs=yes")
        host.exec("n1", "sh", "-c", f"printf '[Agent]\\nMetricsJobs=no\\n' > /etc/primus/agentd.conf.d/zz.conf; systemctl restart {AGENTD}")
        host.wait_nodes()
        host.wait_for(lambda: f'job="{job}"' in get(host)[2], 10, "the socket has it")
        page = host.exec("n1", *look, user="eve")
        assert "primus_node_executors" in page and "primus_role" not in page and "job=" not in page
        assert "Permission" in host.run("n1", *connect, user="eve").stderr
        assert host.exec("n1", "stat", "-c", "%U %G %a", SOCKET) == "primus-agent primus-metrics 660\n"
    finally:
        host.exec("n1", "sh", "-c", f"rm -f /etc/primus/agentd.conf.d/zz.conf; systemctl restart {AGENTD}")
        host.wait_nodes()
        host.kill(job)


def test_a_loop_of_requests_is_cheap(host):
    """A page is made twice a second at most."""
    assert get(host)[0] == 200
    pages = {re.search(r"primus_scrape_duration_seconds.* (\S+)", get(host)[2])[1] for _ in range(20)}
    assert len(pages) <= 3


def test_lack_of_io_is_told_at_once(host):
    """A program that does nothing but wait for the disk."""
    host.exec("n1", "sh", "-c", "mkdir -p /run/primus/agentd.conf.d; printf '[Agent]\\nIOPressureSec=5ms\\nPressureWindowSec=1s\\n' > "
                                f"/run/primus/agentd.conf.d/io.conf; systemctl restart {AGENTD}")
    host.wait_nodes()
    os.chmod(host.shared, 0o1777)
    job = host.submit(config("dd if=/dev/zero of=/shared/disk bs=1M count=64; while :; do dd if=/shared/disk of=/dev/null bs=64k iflag=direct; done 2> /dev/null"))
    try:
        unit = f"primus-{job}-worker-0.1.service"
        host.wait_for(lambda: f"{unit} stood still for" in host.journal("n1", AGENTD, lines=100), 30, "a line")
        assert "lack of disk bandwidth" in host.journal("n1", AGENTD, lines=100)
    finally:
        host.exec("n1", "primusctl", "kill", str(job), user="ml")
        host.wait_job(job)
        host.exec("n1", "sh", "-c", f"rm /run/primus/agentd.conf.d/io.conf; systemctl restart {AGENTD}")
        host.wait_nodes()
