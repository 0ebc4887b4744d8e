# SPDX-License-Identifier: Apache-2.0
"""primus-webd: what it serves is what primusctl prints, to each as himself; changes, events over kills; and what attackers send."""
import http.client
import json
import re
import subprocess
import threading
import time

import pytest
from web import CHANGES, Everybody, Web

CONFIG = {"name": "web", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 32, "command": "echo hello from $PRIMUS_RANK; exec sleep 600"}]}


class Pipe:
    """What http.client takes for a socket."""

    def __init__(self, file):
        self.file = file

    def makefile(self, *_):
        return open(self.file.fileno(), "rb", closefd=False)


@pytest.fixture
def web(cluster):
    return Web(cluster)


@pytest.fixture
def job(cluster):
    number = cluster.submit(CONFIG)
    cluster.wait_state(number, "RUNNING")
    yield number
    cluster.kill(number)


def test_it_is_what_primusctl_prints(cluster, web, job):
    ended = cluster.submit({"name": "short", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "exit 3"}]})
    cluster.wait_job(ended)
    for path, member, command in (("jobs?all=true", "jobs", ("list", "-a")), ("pools", "pools", ("pools",)), ("queue", "jobs", ("queue",)),
                                  (f"jobs/{ended}", None, ("status", ended)), (f"jobs/{ended}?attempts=true", None, ("status", "-a", ended)),
                                  (f"jobs/{job}/why", None, ("why", job)), (f"jobs/{ended}/config", None, ("config", ended)),
                                  ("savepoints", "savepoints", ("savepoint", "list"))):
        answer, said = web.get(path), cluster.primusctl_json(*map(str, command))
        if command[0] == "pools":  # it fades
            for pool in [*answer["pools"], *said]:
                for x in [pool, *pool["users"]]:
                    x.pop("usage")
        if command[0] == "config":
            answer, said = answer["name"], said["name"] if isinstance(said, dict) else answer["name"]
        assert (answer[member] if member else answer) == said, path
    nodes = web.get("nodes")["nodes"]
    assert [n["name"] for n in nodes] == cluster.nodes and nodes[0].keys() == cluster.primusctl_json("nodes")[0].keys()
    assert web.get("nodes/n1")["name"] == "n1"
    assert [e["kind"] for e in web.get(f"jobs/{ended}/events")["events"]] == [e["kind"] for e in cluster.events(ended)]
    assert web.get("cluster")["nodes"] == 3
    # A manager that waited for it to say that it is ready would end it.
    assert web.shown("ActiveState") == "active"


def test_a_job_from_its_beginning_to_its_end(cluster, web):
    status, answer = web.send("POST", "jobs?priority=3", CONFIG)
    assert status == 201 and answer["warnings"] == []
    number = answer["job"]
    cluster.wait_state(number, "RUNNING")
    status = web.get(f"jobs/{number}")
    assert (status["owner"], status["state"], len(status["executors"])) == (1000, "RUNNING", 2)
    log = {"text": ""}
    while "hello from 0\n" not in log["text"]:
        log = web.get(f"jobs/{number}/log?role=worker&index=0&wait=10000000")
    after = web.get(f"jobs/{number}/log?role=worker&index=0&cursor={log['next']}")
    assert after["text"] == "" and not after["end"]

    assert web.send("PATCH", f"jobs/{number}", {"priority": 7}, {"If-Match": '"9"'})[0] == 412
    assert web.send("PATCH", f"jobs/{number}", {"priority": 7}, {"If-Match": '"1"'}) == (200, {"version": 2})
    assert web.get(f"jobs/{number}/config")["priority"] == 7
    assert web.send("POST", f"jobs/{number}/scale", {"roles": {"worker": 1}}, {"If-Match": '"2"'}) == (200, {"version": 3})
    assert web.send("POST", f"jobs/{number}/kill", {"reason": "seen"}) == (204, None)
    cluster.wait_state(number, "KILLED")
    assert "seen" in web.get(f"jobs/{number}")["reason"]
    assert web.send("DELETE", f"jobs/{number}")[0] == 204
    assert web.request("GET", f"/v1/jobs/{number}").status == 404


def test_submitted_once(cluster, web):
    """Idempotency-Key, in quotes or without; and a trial, which leaves nothing."""
    config = {**CONFIG, "name": "keyed"}
    status, first = web.send("POST", "jobs", config, {"Idempotency-Key": "web-1"})
    assert status == 201
    assert web.send("POST", "jobs", config, {"Idempotency-Key": '"web-1"'}) == (201, first)
    status, problem = web.send("POST", "jobs?priority=2", config, {"Idempotency-Key": "web-1"})
    assert status == 409 and f"job {first['job']}" in problem["detail"]
    assert web.send("POST", "jobs", config, {"Idempotency-Key": "a b"})[0] == 400
    assert web.send("POST", f"jobs/{first['job']}/kill")[0] == 204

    status, trial = web.send("POST", "jobs?dryRun=1&priority=3", config)
    assert (status, trial["starts"], trial["executors"], trial["priority"]) == (200, True, 2, 3)
    said = json.loads(cluster.exec("n1", "primusctl", "submit", "-n", "--json", "--priority=3", "-", user="ml", input=json.dumps(config)))
    assert trial == said == web.send("POST", "jobs/trial?priority=3", config)[1]
    assert web.send("POST", "jobs?dryRun=perhaps", config)[0] == 400
    status, problem = web.send("POST", "jobs?dryRun=true", '{\n "role": [{"num": 0}]}')
    assert (status, problem["line"]) == (422, 2)
    assert web.send("POST", f"jobs/{first['job']}/kill?dryRun=1")[0] == 400
    cluster.wait_job(first["job"])
    after = web.send("POST", "jobs?dryRun=false", config)[1]["job"]
    assert after == first["job"] + 1
    cluster.kill(after)


def test_what_is_wrong_is_said(cluster, web):
    for method, path, body, status, part in (
            ("POST", "jobs", {"name": "x", "rol": 1}, 422, "role"), ("POST", "jobs", "{", 422, ""), ("POST", "jobs?colour=red", {}, 400, "colour is not known here"),
            ("GET", "jobs?limit=x", None, 400, "limit: expected a number"), ("GET", "jobs/999999", None, 404, ""), ("GET", "bla", None, 404, "no such address"),
            ("POST", "jobs/999999/kill", {}, 404, ""), ("PUT", "jobs", {}, 405, ""), ("POST", "jobs/1/kill", "[1]", 400, "object of JSON"),
            ("POST", "jobs/1/kill", '{"reason": "a", "reason": "b"}', 400, "object of JSON"), ("POST", "jobs/1/kill", {"raeson": "x"}, 400, "raeson is not known here")):
        answer = web.request(method, f"/v1/{path}", body)
        assert answer.status == status, (path, answer.status, answer.body)
        assert answer.headers["Content-Type"] == "application/problem+json"
        problem = answer.json
        assert problem["status"] == status and part in problem["detail"], problem
    problem = web.request("POST", "/v1/jobs", '{\n  "name": "x",\n  "role": [{"num": 0}]\n}').json
    assert problem["type"] == "urn:primus:error:BadConfig" and problem["line"] == 3


def test_each_sees_what_is_his(cluster, web, job):
    eve = Web(cluster, "eve")
    row = next(r for r in eve.get("jobs")["jobs"] if r["job"] == job)
    assert row["user"] == "ml" and row["reason"] == ""
    for path in ("", "/why", "/events", "/config", "/telemetry", "/log?role=worker"):
        assert eve.request("GET", f"/v1/jobs/{job}{path}").status == 403, path
    for method, path, body in (("POST", "/kill", {}), ("POST", "/scale", {"roles": {"worker": 1}}), ("PATCH", "", {"priority": 1}), ("POST", "/suspend", {}), ("DELETE", "", {})):
        assert eve.send(method, f"jobs/{job}{path}", body)[0] == 403, path
    status, problem = web.send("POST", "nodes/n2/cordon", {"reason": "mine"})
    assert status == 403 and "org.primus.manage-nodes" in problem["detail"]
    assert cluster.node_states()["n2"] == "READY"
    # The kernel keeps her from his door, and the gateway would as well.
    knock = "import socket; socket.socket(socket.AF_UNIX).connect('/run/user/1000/primus/web.sock')"
    assert "PermissionError" in cluster.run("n1", "python3", "-c", knock, user="eve").stderr
    assert web.get(f"jobs/{job}")["state"] == "RUNNING"


def test_events_go_on_over_kills(cluster, web):
    def until(events, wanted):
        for name, data, number in events:
            if wanted(name, data):
                return number
        raise AssertionError("the stream ended")

    with web.events() as events:
        next(events)
        began = time.monotonic()
        job = cluster.submit(CONFIG)
        until(events, lambda name, data: job in data.get("jobs", ()))
        cluster.wait_state(job, "RUNNING")
        cluster.kill9("n1", "primus-masterd")
        # A new master counts anew: everything is to be listed again, and then it goes on.
        until(events, lambda name, data: name == "reset")
        cluster.wait_nodes()
        cluster.primusctl("kill", str(job))
        last = until(events, lambda name, data: job in data.get("jobs", ()))
        assert time.monotonic() - began < 60
    # The gateway is killed: systemd starts it for the next one, who has missed a job.
    old = web.pid
    cluster.exec("n1", "kill", "-9", str(old))
    missed = cluster.submit(CONFIG)
    with web.events(last) as events:
        name, data, _ = next(events)
        assert name == "changes" and missed in data["jobs"]
    assert web.pid != old
    cluster.kill(missed)
    # The same as a long poll.
    now = web.get("changes")["now"]
    threading.Timer(1, lambda: cluster.primusctl("kill", str(cluster.submit(CONFIG)))).start()
    answer = web.get(f"changes?since={now}&wait=15000000")
    assert not answer["reset"] and len(answer["jobs"]) == 1 and answer["now"] != now
    assert web.get("changes?since=1.1")["reset"] and web.get("changes?since=x")["reset"]


def test_other_pages_and_names(cluster, web, job):
    kill = f"/v1/jobs/{job}/kill"
    for status, method, path, headers in (
            (421, "GET", "/", {"Host": "evil.example"}), (421, "GET", "/v1/jobs", {"Host": "evil.example:80"}), (421, "POST", kill, {**CHANGES, "Host": "evil.example"}),
            (403, "POST", kill, {**CHANGES, "Origin": "https://evil.example"}), (403, "POST", kill, {**CHANGES, "Sec-Fetch-Site": "cross-site"}),
            (403, "DELETE", f"/v1/jobs/{job}", {**CHANGES, "Sec-Fetch-Site": "same-site"}), (415, "POST", kill, {"Content-Type": "text/plain"}),
            (415, "POST", kill, {"Content-Type": "application/x-www-form-urlencoded", "Primus-Request": "1"}), (403, "POST", kill, {"Content-Type": "application/json"}),
            (403, "GET", "/v1/jobs", {"Sec-Fetch-Site": "cross-site"}), (405, "GET", kill, {}), (405, "OPTIONS", "/v1/events", CHANGES)):
        assert web.request(method, path, "{}" if method != "GET" else None, headers).status == status, (method, path, headers)
    assert web.get(f"jobs/{job}")["state"] == "RUNNING"
    answer = web.request("GET", "/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    for path in ("/", "/v1/jobs", "/v1/bla", "/bla"):
        headers = web.request("GET", path).headers
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer" and headers["Content-Security-Policy"] == policy, path
        assert not [name for name in headers if name.lower().startswith("access-control")], path
    # Below the page's directory is nothing else.
    for path in ("/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/views/..%2f..%2f..%2fetc/passwd", "/.hidden", "/views/", "/vendor"):
        assert web.request("GET", path).status in (400, 404), path


def test_floods(cluster, web, job):
    """One's own gateway: what is too much ends, and the next request is served."""
    assert web.raw(b"GET / HTTP/1.1\r\nHost: primus\r\n" + b"X: " + b"y" * (10 << 20) + b"\r\n\r\n").split(b"\r\n")[0] in (
        b"", b"HTTP/1.1 431 Request Header Fields Too Large", b"HTTP/1.0 431 Request Header Fields Too Large")
    assert web.raw(b"\x16\x03\x01" + bytes(500) + b"\r\n\r\n").split(b" ")[1:2] in ([], [b"400"])
    assert web.request("POST", f"/v1/jobs/{job}/kill", b"x" * ((4 << 20) + 1)).status == 413
    assert web.request("POST", f"/v1/jobs/{job}/kill", b'{"a":' * 100000).status == 400
    with_streams = [web.events() for _ in range(33)]
    opened = []
    try:
        with pytest.raises(AssertionError):  # the 33rd
            for stream in with_streams:
                opened.append(stream)
                stream.__enter__()
    finally:
        for stream in opened:
            stream.__exit__(None, None, None)
    began, answers = time.monotonic(), []
    threads = [threading.Thread(target=lambda: answers.append(web.request("GET", "/v1/jobs").status)) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 200 and set(answers) <= {200, 503} and time.monotonic() - began < 30
    assert web.get(f"jobs/{job}")["state"] == "RUNNING"
    resident = int(re.search(r"Pss:\s+(\d+)", cluster.exec("n1", "cat", f"/proc/{web.pid}/smaps_rollup"))[1])
    assert resident < 16 << 10


def test_the_address_opens_once(cluster, job):
    """primusctl web: whoever has the address that it prints, the first time; nobody else of this machine."""
    ask = """if True:
        import json, sys, urllib.request, urllib.error
        def ask(path, token=None, cookie=None):
            headers = {"Cookie": cookie} if cookie else {}
            data = json.dumps({"token": token}).encode() if token is not None else None
            if data:
                headers |= {"Content-Type": "application/json", "Primus-Request": "1"}
            try:
                with urllib.request.urlopen(urllib.request.Request(sys.argv[1] + path, data, headers)) as r:
                    return r.status, r.headers.get("Set-Cookie", "")
            except urllib.error.HTTPError as e:
                return e.code, ""
        token = sys.argv[2]
        print(ask("")[0], ask("v1/jobs")[0], ask("v1/session", "0" * 64)[0], ask("v1/jobs", cookie=f"primus-{sys.argv[1].split(':')[2].strip('/')}=")[0])
        status, cookie = ask("v1/session", token)
        print(status, ask("v1/jobs", cookie=cookie.split(";")[0])[0], ask("v1/session", token)[0], ask("v1/jobs")[0])
        print(cookie.split(";", 1)[1])
    """
    with cluster.process("n1", "primusctl", "web", user="ml") as running:
        address = next(line for line in running.stdout if line.startswith("http"))
        base, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)#token=([0-9a-f]{64})\n", address).groups()
        said = cluster.exec("n1", "python3", "-c", ask, base, token, user="eve").splitlines()
    assert said == ["200 401 403 401", "204 200 403 401", " HttpOnly; SameSite=Strict; Path=/"]


# ---- everybody's door ----

def test_by_pipes(cluster, job):
    """As ssh hands them over: requests one after the other, as the user, until the asker ends; and what is more than a pipe holds."""
    with cluster.process("n1", "/usr/lib/primus/primus-webd", "--stdio", user="ml", text=False, stdin=subprocess.PIPE) as webd:
        def ask(method, path, body=b"", more=""):
            webd.stdin.write(f"{method} {path} HTTP/1.1\r\nHost: primus\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            webd.stdin.flush()
            response = http.client.HTTPResponse(Pipe(webd.stdout))
            response.begin()
            return response.status, response.read()

        assert json.loads(ask("GET", "/v1/me")[1]) == {"readOnly": False, "uid": 1000, "user": "ml"}
        assert ask("POST", f"/v1/jobs/{job}/kill", b"{}")[0] == 415
        large = json.dumps({**CONFIG, "env": {f"V{i}": "x" * 2000 for i in range(60)}}).encode()
        status, answer = ask("POST", "/v1/jobs", large, "Content-Type: application/json\r\nPrimus-Request: 1\r\n")
        assert status == 201, answer
        made = json.loads(answer)["job"]
        assert cluster.status(made)["owner"] == 1000
        assert len(ask("GET", f"/v1/jobs/{made}/config")[1]) > 100_000
        assert len(ask("GET", "/v1/openapi.json")[1]) > 40_000
        webd.stdin.close()
        assert webd.wait(10) == 0
    cluster.kill(made)
    refused = cluster.run("n1", "sh", "-c", "/usr/lib/primus/primus-webd --stdio < /etc/passwd", user="ml")
    assert refused.returncode == 1 and "pipes or sockets" in refused.stderr, refused


@pytest.fixture
def door(cluster):
    yield Everybody(cluster)
    cluster.exec("n1", "sh", "-c", "rm -rf /run/systemd/system/primus-web.*.d; systemctl daemon-reload; systemctl stop primus-web.socket primus-web.service")


def test_everybody_looks(cluster, web, door, job):
    """What a user sees who owns nothing, without a login; and nothing is changed there, whoever asks."""
    assert cluster.exec("n1", "systemctl", "show", "--value", "-p", "User,NoNewPrivileges,CapabilityBoundingSet", "primus-web.service").split() == ["primus-web", "yes"]
    assert (door.get("me")["readOnly"], door.get("me")["user"], web.get("me")) == (True, "primus-web", {"readOnly": False, "uid": 1000, "user": "ml"})
    (mine,) = [row for row in door.get("jobs")["jobs"] if row["job"] == job]
    assert (mine["state"], mine["user"], mine["reason"]) == ("RUNNING", "ml", "")
    assert [node["name"] for node in door.get("nodes")["nodes"]] == cluster.nodes
    for path in (f"jobs/{job}", f"jobs/{job}/config", f"jobs/{job}/why", f"jobs/{job}/log?role=worker"):
        assert door.request("GET", f"/v1/{path}").status == 403, path
    assert door.request("GET", "/").body == web.request("GET", "/").body
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
        for path in (f"jobs/{job}/kill", "jobs", "jobs?dryRun=1", "nodes/n1/cordon", "events", "session", "../", ""):
            answer = door.request(method, f"/v1/{path}", "{}", CHANGES)
            assert answer.status == 405 and b"for looking" in answer.body, (method, path, answer.status)
    assert cluster.status(job)["state"] == "RUNNING"
    with door.events() as stream:
        after = cluster.submit(CONFIG)
        while True:
            _, data, _ = next(stream)
            if after in data.get("jobs", []):
                break
    cluster.kill(after)
    # A job that its owner shows to all is seen.
    shown = cluster.submit({**CONFIG, "visible": "all"})
    cluster.wait_state(shown, "RUNNING")
    assert len(door.get(f"jobs/{shown}")["executors"]) == 2
    assert door.request("POST", f"/v1/jobs/{shown}/kill", "{}", CHANGES).status == 405
    cluster.kill(shown)


def test_everybodys_names(cluster, door):
    """Others than the host's own have to be given; frames too."""
    assert door.request("GET", "/v1/jobs", headers={"Host": "n1.example"}).status == 421
    assert door.request("GET", "/").headers["X-Frame-Options"] == "DENY"
    cluster.exec("n1", "sh", "-c", "mkdir -p /run/systemd/system/primus-web.service.d && cat > /run/systemd/system/primus-web.service.d/name.conf && "
                 "systemctl daemon-reload && systemctl stop primus-web.service", input="[Service]\nExecStart=\nExecStart=/usr/lib/primus/primus-webd --read-only --name n1.example "
                 "--embed https://grafana.example:3000\n")
    answer = door.request("GET", "/v1/jobs", headers={"Host": "n1.example:8479"})
    assert answer.status == 200 and "X-Frame-Options" not in answer.headers
    assert answer.headers["Content-Security-Policy"].endswith("frame-ancestors https://grafana.example:3000")
    assert door.request("GET", "/v1/jobs", headers={"Host": "evil.example"}).status == 421
    for wrong, said in (("--name n1", "go with --read-only"), ("--read-only --browse", "exclude each other"), ("--read-only --name n1/x", "--name: expected"),
                        ("--read-only --name http://n1", "--name: expected")):
        refused = cluster.run("n1", "/usr/lib/primus/primus-webd", *wrong.split())
        assert refused.returncode == 2 and said in refused.stderr, wrong
    cluster.exec("n1", "sh", "-c", "sed -i s,https://grafana.example:3000,https://x\\;script-src.example, /run/systemd/system/primus-web.service.d/name.conf && systemctl daemon-reload && "
                 "systemctl stop primus-web.service")
    with pytest.raises((OSError, __import__("http").client.HTTPException)):
        door.get("jobs")
    assert "--embed: expected an origin" in cluster.exec("n1", "journalctl", "-u", "primus-web", "-o", "cat")


def test_everybody_at_once(cluster, door):
    """A thousand streams, and who comes behind them is told so; those who never ask hold nobody up for long."""
    streams, told = [], []
    for _ in range(1001):
        s = door.connect(20)
        s.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        streams.append(s)
    try:
        told = [s.recv(4096).split(b"\r\n")[0].split(b" ")[1] for s in streams]
        assert told.count(b"200") == 1000 and told.count(b"503") == 1
        resident = int(re.search(r"Pss:\s+(\d+)", cluster.exec("n1", "cat", f"/proc/{door.pid}/smaps_rollup"))[1])
        assert resident < 24 << 10
        assert door.get("nodes")["nodes"]
    finally:
        for s in streams:
            s.close()
    silent = [door.connect(60) for _ in range(1100)]
    try:
        began = time.monotonic()
        assert door.request("GET", "/v1/nodes", timeout=60).status == 200
        assert time.monotonic() - began < 45
    finally:
        for s in silent:
            s.close()
