# SPDX-License-Identifier: Apache-2.0
"""What primus.client asks of a gateway, and what becomes of its answers. The real one is asked in tests/cluster/test_client.py."""
import contextlib
import http.server
import json
import os
import pathlib
import signal
import socketserver
import sys
import threading
import time

import pytest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

# The package loads the library, here into the tests' own process: without a sanitizer, as for what loads torch.
LOADS_TORCH = True


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return ""

    def log_message(self, *_):
        pass

    def do(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.asked.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
        status, answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        if status is None:  # it goes without an answer
            self.close_connection = True
            return
        data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        with contextlib.suppress(BrokenPipeError):  # who reads along goes in the middle
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = do


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


@pytest.fixture
def client(environment, monkeypatch):
    monkeypatch.setenv("PRIMUS_LIBRARY", environment["PRIMUS_LIBRARY"])
    import primus.client
    return primus.client


@pytest.fixture
def gateway(tmp_path):
    with Server(str(tmp_path / "s"), Handler) as server:
        server.asked, server.answers = [], [(200, None)]
        server.where = f"unix:{tmp_path}/s"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize("call, out, asked, given, result", [
    (lambda c: c.submit({"command": "x"}, key="k", priority=3, after=["1:ok", "2"], requeue=True), {"job": 7}, "POST jobs?priority=3&after=1%3Aok%2C2&requeue=true", {"command": "x"}, 7),
    (lambda c: c.try_submit({"command": "x"}, queue="a b"), {"starts": True}, "POST jobs/trial?queue=a+b", {"command": "x"}, {"starts": True}),
    (lambda c: c.status(7), {"job": 7, "state": "RUNNING"}, "GET jobs/7", None, {"job": 7, "state": "RUNNING"}),
    (lambda c: c.jobs(ended=True, state="FAILED"), {"jobs": [{"job": 7}]}, "GET jobs?all=true&state=FAILED", None, [{"job": 7}]),
    (lambda c: c.jobs(), {"jobs": []}, "GET jobs", None, []),
    (lambda c: c.why(7), {"summary": "x"}, "GET jobs/7/why", None, {"summary": "x"}),
    (lambda c: c.events(7, after=3), {"events": []}, "GET jobs/7/events?after=3", None, []),
    (lambda c: c.metrics(7, history="4h"), {}, "GET jobs/7/telemetry?history=4h", None, {}),
    (lambda c: c.training(7), {"metrics": [1]}, "GET jobs/7/metrics", None, [1]),
    (lambda c: c.series(7, "a/b c", role="w", points=5), {"series": [1], "total": 1}, "GET jobs/7/metrics/points?name=a%2Fb+c&role=w&points=5&from=0", None, [1]),
    (lambda c: c.checkpoints(7), {"checkpoints": []}, "GET checkpoints?job=7&after=0", None, []),
    (lambda c: c.models("digits"), {"models": [1]}, "GET models?name=digits", None, [1]),
    (lambda c: c.register_model("digits", 7, labels=["a", "b"]), {"version": 2}, "POST models", {"name": "digits", "checkpoint": 7, "note": "", "labels": "a b"}, 2),
    (lambda c: c.trials(7), {"trials": []}, "GET jobs/7/trials?from=0", None, []),
    (lambda c: c.scale(7, worker=4, version=2), {"version": 3}, "POST jobs/7/scale", {"roles": {"worker": 4}}, 3),
    (lambda c: c.update(7, {"priority": 5}), {"version": 3}, "PATCH jobs/7", {"priority": 5}, 3),
    (lambda c: c.sources(7), {"data": {"sources": [{"name": "a"}]}}, "GET jobs/7", None, [{"name": "a"}]),
    (lambda c: c.sources(7), {"data": None}, "GET jobs/7", None, []),
    (lambda c: c.add_source(7, {"name": "b"}), {"version": 2}, "POST jobs/7/sources", {"source": {"name": "b"}}, 2),
    (lambda c: c.replace_sources(7, [{"name": "b"}], version=4), {"version": 5, "added": 1, "removed": 1}, "POST jobs/7/sources/replace", {"sources": [{"name": "b"}]},
     {"version": 5, "added": 1, "removed": 1}),
    (lambda c: c.pause_source(7, "--failed"), None, "POST jobs/7/sources/steer", {"source": "--failed", "state": "paused"}, None),
    (lambda c: c.weigh_source(7, "a", 3), None, "POST jobs/7/sources/steer", {"source": "a", "weight": 3}, None),
    (lambda c: c.kill(7), None, "POST jobs/7/kill", {}, None),
    (lambda c: c.suspend(7, "freeze"), None, "POST jobs/7/suspend", {"mode": "freeze"}, None),
    (lambda c: c.nodes(), {"nodes": [1]}, "GET nodes", None, [1]),
    (lambda c: c.queue(), {"jobs": [1]}, "GET queue", None, [1]),
])
def test_calls(client, gateway, call, out, asked, given, result):
    gateway.answers = [(200, out)]
    with client.Client(gateway.where) as cluster:
        assert call(cluster) == result
    (method, path, headers, body), = gateway.asked
    assert (f"{method} {path.removeprefix('/v1/')}", body) == (asked, given)
    if method != "GET":
        assert (headers["Content-Type"], headers["Primus-Request"]) == ("application/json", "1")


def test_in_parts(client, gateway):
    """What has more rows than an answer."""
    gateway.answers = [(200, {"series": [1, 2], "total": 3}), (200, {"series": [3], "total": 3}), (200, {"trials": [1, 2]}), (200, {"trials": [3]}), (200, {"trials": []})]
    with client.Client(gateway.where) as cluster:
        assert cluster.series(7, "loss") == [1, 2, 3] and cluster.trials(7) == [1, 2, 3]
    assert [path.partition("from=")[2] for _, path, *_ in gateway.asked] == ["0", "2", "0", "2", "3"]


def test_versions(client, gateway):
    gateway.answers = [(200, {"version": 3})]
    cluster = client.Client(gateway.where)
    cluster.add_source(7, {}, version=2)
    cluster.add_source(7, {})
    assert [headers.get("If-Match") for _, _, headers, _ in gateway.asked] == ['"2"', None]


def test_submitted_once(client, gateway):
    """Whoever hears no answer asks again, under the same key; what may not be done twice is not."""
    gateway.answers = [(None, None), (504, {"detail": "masterd does not answer"}), (201, {"job": 7})]
    cluster = client.Client(gateway.where)
    assert cluster.submit({}) == 7
    keys = [headers["Idempotency-Key"] for _, _, headers, _ in gateway.asked]
    assert len(keys) == 3 and len(set(keys)) == 1
    gateway.answers = [(201, {"job": 8})]
    cluster.submit({})
    assert gateway.asked[-1][2]["Idempotency-Key"] != keys[0]
    gateway.asked, gateway.answers = [], [(None, None), (204, None)]
    with pytest.raises(client.Error, match="has gone"):
        cluster.kill(7)
    assert len(gateway.asked) == 1
    gateway.answers = [(503, {"detail": "Too many requests are under way"}), (204, None)]
    cluster.kill(7)  # nothing was done of the first


def test_wait(client, gateway):
    """Between looking and waiting nothing is missed; exit statuses are the job's."""
    gateway.answers = [(200, {"now": "1.5", "reset": True, "jobs": [], "nodes": []}), (200, {"state": "RUNNING", "exitStatus": 255}),
                       (200, {"now": "1.6", "reset": False, "jobs": [8], "nodes": []}), (200, {"now": "1.7", "reset": False, "jobs": [7], "nodes": []}),
                       (200, {"now": "1.7", "reset": True, "jobs": [], "nodes": []}), (200, {"state": "KILLED", "exitStatus": 42})]
    assert client.Client(gateway.where).wait(7) == 42
    paths = [path.removeprefix("/v1/") for _, path, _, _ in gateway.asked]
    assert paths == ["changes?since=&wait=0", "jobs/7", "changes?since=1.5&wait=15000000", "changes?since=1.6&wait=15000000", "changes?since=1.7&wait=0", "jobs/7"]
    gateway.answers = [(200, {"now": "1.5", "reset": True, "jobs": [], "nodes": []}), (200, {"state": "RUNNING"}), (200, {"now": "1.5", "reset": False, "jobs": [], "nodes": []})]
    with pytest.raises(TimeoutError, match="job 7 is RUNNING"):
        client.Client(gateway.where).wait(7, timeout=0.05)


def test_logs(client, gateway):
    gateway.answers = [(200, {"text": "one\ntw", "next": "61", "end": False}), (200, {"text": "o\nlast", "next": "62", "end": True})]
    assert list(client.Client(gateway.where).logs(7, "w", tail=100)) == ["one\n", "two\n", "last"]
    assert [path.split("?")[1] for _, path, _, _ in gateway.asked] == ["role=w&index=0&attempt=0&tail=100&wait=15000000", "role=w&index=0&attempt=0&cursor=61&wait=15000000"]


def test_watch(client, gateway):
    stream = (b": hello\nid: 1.4\n\n", b"event: changes\nid: 1.5\ndata: {\"jobs\": [9]}\n\nevent: changes\nid: 1.6\ndata: {\"jobs\": [7, 9]}\n\n", b"")
    gateway.answers = [(200, {"now": "1.3", "reset": True, "jobs": [], "nodes": []}), (200, {"state": "QUEUED"}), (200, b"".join(stream)), (200, {"state": "RUNNING"}), (200, b"event: reset\ndata: {}\n\n"), (200, {"state": "FAILED"})]
    assert [s["state"] for s in client.Client(gateway.where).watch(7)] == ["QUEUED", "RUNNING", "FAILED"]
    assert [headers.get("Last-Event-ID") for _, path, headers, _ in gateway.asked if path == "/v1/events"] == ["1.3", "1.6"]


def test_refusals(client, gateway):
    def problem(kind, detail, **more):
        return {"type": f"urn:primus:error:{kind}", "title": "x", "detail": detail, **more}
    cluster = client.Client(gateway.where)
    gateway.answers = [(404, problem("NoSuchJob", "there is no job 7"))]
    with pytest.raises(client.Error, match="there is no job 7") as raised:
        cluster.status(7)
    assert (raised.value.name, raised.value.status) == ("org.primus.Error.NoSuchJob", 404)
    gateway.answers = [(412, problem("Conflict", "Job 7 is at version 3"))]
    with pytest.raises(client.Conflict, match="Job 7 is at version 3"):
        cluster.add_source(7, {}, version=2)
    gateway.answers = [(422, problem("BadConfig", "3:14: role[0].num: at least 1", line=3, column=14))]
    with pytest.raises(client.Error) as raised:
        cluster.submit({})
    assert (raised.value.line, raised.value.column) == (3, 14)
    for status, answer in ((403, {"type": "about:blank", "detail": "Only root"}), (500, b"<html>"), (403, ["x"])):
        gateway.answers = [(status, answer)]
        with pytest.raises(client.Error) as raised:
            cluster.kill(7)
        assert (raised.value.name, raised.value.status) == ("", status)
    for wrong in ("ftp://n1", "/run/web.sock", "http://"):
        with pytest.raises(ValueError, match="is expected"):
            client.Client(wrong)


def test_a_gateway_that_is_begun(client, gateway, tmp_path, monkeypatch):
    """primusctl says the address, its token is given for a cookie, and it ends with the client."""
    program = tmp_path / "primusctl"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # where no socket is
    program.write_text(f"#!{sys.executable}\n" + r"""
import http.server, json, os, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "argv").write_text(json.dumps(sys.argv[1:]))
if "nowhere" in sys.argv:
    sys.exit("ssh: no route to nowhere")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        token = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["token"]
        self.send_response(204)
        self.send_header("Set-Cookie", f"primus={token[:4]}; HttpOnly")
        self.end_headers()
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"nodes": [self.headers["Cookie"], os.getpid()]}).encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print("Open this:", f"http://127.0.0.1:{server.server_port}/#token=" + "ab" * 32, flush=True)
server.serve_forever()
""")
    program.chmod(0o755)
    with client.Client("n1", program=str(program)) as cluster:
        cookie, pid = cluster.nodes()
        assert cookie == "primus=abab" and cluster.nodes() == [cookie, pid]
    assert json.loads((tmp_path / "argv").read_text()) == ["-H", "n1", "web"]
    assert not pathlib.Path(f"/proc/{pid}").exists()
    with pytest.raises(client.Error, match="is closed"):
        cluster.nodes()
    with client.Client("n1", program=str(program)) as cluster:  # one that has died is begun anew
        _, pid = cluster.nodes()
        os.kill(pid, signal.SIGKILL)
        while pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            time.sleep(0.01)
        assert cluster.nodes()[1] != pid
    with contextlib.closing(client.Client("ssh://ml@n1", program=str(program))) as cluster:
        cluster.nodes()
    assert json.loads((tmp_path / "argv").read_text()) == ["-H", "ml@n1", "web"]
    with pytest.raises(client.Error, match="ssh: no route to nowhere"):
        client.Client("nowhere", program=str(program)).nodes()
    with client.Client(program=str(program)) as cluster:
        cluster.nodes()
    assert json.loads((tmp_path / "argv").read_text()) == ["web"]
