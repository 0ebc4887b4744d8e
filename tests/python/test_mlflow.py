# SPDX-License-Identifier: Apache-2.0
"""primus.mlflow against a server that answers as MLflow's REST does (recorded of its documentation: names, limits, errors), and keeps what
it was told."""
import http.server
import io
import json
import pathlib
import sys
import threading
import urllib.parse

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

from primus import mlflow  # noqa: E402

HEAD = ",".join(mlflow.COLUMNS)
ROWS = ["418,worker,0,0,loss,1,2026-01-31T00:00:01Z,1,0.5,0.5,0.5,0.5", "418,worker,0,0,loss,9,2026-01-31T00:00:02Z,3,0.25,0.2,0.4,0.3",
        "418,worker,0,0,nothing,1,2026-01-31T00:00:01Z,1,,,,", "418,worker,1,2,loss,1,2026-01-31T00:00:01Z,1,0.75,,,", "418,worker,1,2,loss,2,2026-01-31T00:00:02Z,1,inf,,,"]
AT = 1769817601000


@pytest.fixture
def server():
    calls, experiments, runs = [], {}, {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, code, body):
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self):
            url = urllib.parse.urlsplit(self.path)
            name = urllib.parse.parse_qs(url.query)["experiment_name"][0]
            calls.append((url.path, name, self.headers.get("Authorization")))
            if name in experiments:
                self.answer(200, {"experiment": {"experiment_id": experiments[name]}})
            else:
                self.answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.removeprefix("/api/2.0/mlflow/")
            calls.append((path, body, self.headers.get("Authorization")))
            match path:
                case "experiments/create":
                    experiments[body["name"]] = str(len(experiments) + 1)
                    self.answer(200, {"experiment_id": experiments[body["name"]]})
                case "runs/create":
                    run = f"r{len(runs)}"
                    runs[run] = {**body, "metrics": [], "gone": False}
                    self.answer(200, {"run": {"info": {"run_id": run}}})
                case "runs/log-batch":
                    if len(body["metrics"]) > 1000:
                        return self.answer(400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "at most 1000"})
                    runs[body["run_id"]]["metrics"] += body["metrics"]
                    self.answer(200, {})
                case "runs/update":
                    runs[body["run_id"]].update(body)
                    self.answer(200, {})
                case "runs/search":
                    job = body["filter"].split("'")[1]
                    found = [r for r, run in runs.items() if not run["gone"] and {"key": "primus.job", "value": job} in run["tags"]]
                    at = int(body.get("page_token", 0))
                    self.answer(200, {"runs": [{"info": {"run_id": r}} for r in found[at:at + 1]], **({"next_page_token": str(at + 1)} if at + 1 < len(found) else {})})
                case "runs/delete":
                    runs[body["run_id"]]["gone"] = True
                    self.answer(200, {})
                case _:
                    self.answer(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": "no such\n call"})

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        s.calls, s.runs, s.url = calls, runs, f"http://127.0.0.1:{s.server_port}"
        yield s
        s.shutdown()


def run(server, *arguments, rows=ROWS, head=HEAD):
    return mlflow.main([server.url, *arguments], io.StringIO("\n".join([head, *rows, ""])))


def test_exported(server, capsys, monkeypatch):
    for name in ("TOKEN", "USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    assert run(server) == 0
    first, second = server.runs.values()
    assert (first["run_name"], first["status"], first["start_time"], first["end_time"]) == ("418 worker/0", "FINISHED", AT, AT + 1000)
    assert second["run_name"] == "418 worker/1.2" and {"key": "primus.index", "value": "1"} in second["tags"]
    assert [(m["key"], m["value"], m["step"], m["timestamp"]) for m in first["metrics"]] == [
        ("loss", 0.5, 1, AT), ("loss", 0.25, 9, AT + 1000), ("loss.min", 0.2, 9, AT + 1000), ("loss.max", 0.4, 9, AT + 1000), ("loss.mean", 0.3, 9, AT + 1000)]
    assert capsys.readouterr().out.splitlines()[0] == "418 worker/0: 5 values, run r0" and {authorization for *_, authorization in server.calls} == {None}
    # Again: the experiment is there; the runs are others, or in place of those before.
    assert run(server, "--last-only") == 0 and run(server, "--replace", "--last-only") == 0
    assert [r for r, x in server.runs.items() if not x["gone"]] == ["r4", "r5"] and [m["key"] for m in server.runs["r4"]["metrics"]] == ["loss"] * 2
    assert sum(path == "experiments/create" for path, *_ in server.calls) == 1


def test_many(server):
    rows = [f"7,w,0,0,loss,{n},2026-01-31T00:00:01Z,1,1,1,1,1" for n in range(2500)]
    assert run(server, rows=rows) == 0
    assert [len(body["metrics"]) for path, body, _ in server.calls if path == "runs/log-batch"] == [1000, 1000, 500]


@pytest.mark.parametrize("environment, header", [({"TOKEN": "t"}, "Bearer t"), ({"USERNAME": "u", "PASSWORD": "p"}, "Basic dTpw")])
def test_who_one_is(server, monkeypatch, environment, header):
    for name, value in environment.items():
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
    assert run(server) == 0 and {authorization for *_, authorization in server.calls} == {header}


def test_refused(server, capsys):
    with pytest.raises(SystemExit) as e:
        run(server, head="a,b")
    assert e.value.code == 2 and "primusctl metrics --csv" in capsys.readouterr().err
    assert mlflow.main(["file:///etc/passwd"], io.StringIO(HEAD + "\n")) == 1 and "no address" in capsys.readouterr().err
    assert mlflow.main([server.url + "/elsewhere"], io.StringIO(HEAD + "\n")) in (0, 1)
    server.shutdown()
    server.server_close()
    assert run(server) == 1 and "primus.mlflow: http://127.0.0.1" in capsys.readouterr().err
