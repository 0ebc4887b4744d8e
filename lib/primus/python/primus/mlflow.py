# SPDX-License-Identifier: Apache-2.0
"""What trainers reported, to an MLflow server, from what `primusctl metrics --csv` prints:

    primusctl metrics --csv 418 | python3 -m primus.mlflow http://mlflow:5000

Each process of a job becomes a run ("418 worker/0") of the experiment --experiment (primus), with a tag for job, role and index, and all
points that are kept, each with its step and time: the last value, and where a point stands for several reports, NAME.min, NAME.max and NAME.mean
besides (--last-only: not these). Run again, it makes other runs; --replace deletes those of the same jobs first. A token or a password is
read as MLflow's own client reads them: MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD."""
import argparse
import base64
import calendar
import csv
import itertools
import json
import math
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

COLUMNS = ["job", "role", "index", "local", "name", "step", "time", "reports", "last", "min", "max", "mean"]
BATCH = 1000  # metrics of one call, which is what MLflow takes
TIMEOUT = 60


class Refused(Exception):
    """MLflow does not take it; the text says what it answered."""


class Server:
    def __init__(self, url):
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise Refused(f"{url} is no address of an MLflow server: http://HOST:PORT")
        self.url = url.rstrip("/") + "/api/2.0/mlflow/"
        self.headers = {"Content-Type": "application/json", **_authorization(os.environ)}

    def call(self, path, body=None, query=None):
        """The answer's object; None where what was asked for is not there."""
        request = urllib.request.Request(self.url + path + (f"?{urllib.parse.urlencode(query)}" if query else ""), headers=self.headers,
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as e:
            text = e.read(4096).decode(errors="replace")
            if e.code == 404 and "RESOURCE_DOES_NOT_EXIST" in text:
                return None
            raise Refused(f"{path}: {e.code} {' '.join(text.split())[:400]}") from None
        except (OSError, ValueError) as e:
            raise Refused(f"{self.url}{path}: {getattr(e, 'reason', e)}") from None

    def experiment(self, name):
        found = self.call("experiments/get-by-name", query={"experiment_name": name})
        return found["experiment"]["experiment_id"] if found else self.call("experiments/create", {"name": name})["experiment_id"]

    def runs_of(self, experiment, job):
        query = {"experiment_ids": [experiment], "filter": f"tags.`primus.job` = '{job}'", "max_results": 1000}
        while True:
            answer = self.call("runs/search", query)
            yield from (run["info"]["run_id"] for run in answer.get("runs", []))
            if not answer.get("next_page_token"):
                return
            query["page_token"] = answer["next_page_token"]


def _authorization(environment):
    if token := environment.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := environment.get("MLFLOW_TRACKING_USERNAME"):
        secret = f"{user}:{environment.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}
    return {}


def _msec(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) * 1000


def points(row, last_only=False):
    """Metrics of MLflow's of a row; none where it is no number."""
    step, msec = int(row["step"]), _msec(row["time"])
    names = {row["name"]: row["last"]}
    if not last_only and int(row["reports"]) > 1:
        names |= {f"{row['name']}.{kind}": row[kind] for kind in ("min", "max", "mean")}
    return [{"key": name, "value": float(value), "timestamp": msec, "step": step} for name, value in names.items() if value and math.isfinite(float(value))]


def export(rows, server, experiment, last_only=False, say=print):
    """Rows of `primusctl metrics --csv`, as dicts, in its order."""
    of_process = lambda row: (row["job"], row["role"], row["index"], row["local"])
    for (job, role, index, local), mine in itertools.groupby(sorted(rows, key=of_process), of_process):
        metrics = [p for row in mine for p in points(row, last_only)]
        name = f"{job} {role}/{index}" + (f".{local}" if local != "0" else "")
        began, ended = (f(p["timestamp"] for p in metrics) if metrics else 0 for f in (min, max))
        run = server.call("runs/create", {"experiment_id": experiment, "run_name": name, "start_time": began, "tags": [
            {"key": key, "value": value} for key, value in (("primus.job", job), ("primus.role", role), ("primus.index", index), ("primus.local", local))]})
        run = run["run"]["info"]["run_id"]
        for at in range(0, len(metrics), BATCH):
            server.call("runs/log-batch", {"run_id": run, "metrics": metrics[at:at + BATCH]})
        server.call("runs/update", {"run_id": run, "status": "FINISHED", "end_time": ended})
        say(f"{name}: {len(metrics)} values, run {run}")


def main(arguments=None, source=sys.stdin):
    parser = argparse.ArgumentParser(prog="python3 -m primus.mlflow", description="What `primusctl metrics --csv` prints, on standard input, to an MLflow server.")
    parser.add_argument("url", help="http://HOST:PORT")
    parser.add_argument("--experiment", default="primus", help="by name; made where it is not there (primus)")
    parser.add_argument("--last-only", action="store_true", help="not the lowest, highest and mean of points that stand for several reports")
    parser.add_argument("--replace", action="store_true", help="delete the runs that were made of the same jobs before")
    args = parser.parse_args(arguments)
    rows = csv.DictReader(source)
    if rows.fieldnames != COLUMNS:
        parser.error("standard input is not what primusctl metrics --csv prints")
    try:
        rows, server = list(rows), Server(args.url)
        experiment = server.experiment(args.experiment)
        for job in sorted({row["job"] for row in rows}) if args.replace else ():
            for run in list(server.runs_of(experiment, job)):
                server.call("runs/delete", {"run_id": run})
        export(rows, server, experiment, args.last_only)
    except Refused as e:
        print(f"primus.mlflow: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
