# SPDX-License-Identifier: Apache-2.0
"""What a cluster of xparl does, as JSON over HTTP on this host: /cluster, /get-jobs?client_id=. Below a path that only who has the secret
knows, since PARL's programs bring no password."""
import argparse
import hashlib
import hmac
import http.server
import json
import socket
import socketserver
import threading
import urllib.parse

from ._link import Link, dial
from ._secret import secret

INTERVAL_SECONDS = 2
AT_A_TIME = 32  # connections


def path(known):
    return "/" + hmac.new(known, b"xparl monitor", hashlib.sha256).hexdigest()[:32]


def data_of(parts):
    """{"workers": [...], "clients": [...], "client_jobs": {client: {job: where its log is}}, "total_vacant_cpus", ...}, of Master.status()."""
    data = {"workers": [], "clients": [], "client_jobs": {}}
    for part in parts:
        if "worker" in part:
            data["workers"].append(part["worker"])
        elif "client" in part:
            data["clients"].append(part["client"])
            data["client_jobs"].setdefault(part["client"]["id"], {})
        else:
            client, job, where = part["job"]
            data["client_jobs"].setdefault(client, {})[job] = where
    for kind in ("cpus", "gpus"):
        vacant = sum(worker[f"vacant_{kind}"] for worker in data["workers"])
        data[f"total_vacant_{kind}"] = vacant
        data[f"total_{kind}"] = vacant + sum(worker[f"used_{kind}"] for worker in data["workers"])
    return data


def ask(link, seconds=30):
    """(data, a sentence of it)"""
    said, parts = link.ask(status=True).result(seconds)
    return data_of(parts), said["info"]


class ClusterMonitor:
    """data: of the cluster, renewed every two seconds for as long as its master is there."""

    def __init__(self, master_address, gpu_cluster=False):
        self._gone = threading.Event()
        self._link = Link(dial(master_address), lambda said: None, self._gone.set).start()
        self.data, _ = ask(self._link)
        threading.Thread(target=self._run, name="xparl-monitor", daemon=True).start()

    def _run(self):
        while not self._gone.wait(INTERVAL_SECONDS):
            try:
                self.data, _ = ask(self._link)
            except (OSError, TimeoutError):
                self._link.close()
                return

    def get_data(self):
        return self.data


def jobs(data, client):
    """[{"id", "job_id", "log_url", "download_url"}]"""
    return [{"id": i, "job_id": job, "log_url": f"http://{where}/get-log?job_id={job}", "download_url": f"http://{where}/download-log?job_id={job}"}
            for i, (job, where) in enumerate(data["client_jobs"].get(client, {}).items())]


class Pages(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """answers: {path: what is called with the query's fields, and gives (status, type, bytes)}. In threads; closed by close()."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address, answers):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Answer)
        self.answers = answers
        self._room = threading.BoundedSemaphore(AT_A_TIME)
        self._thread = threading.Thread(target=self.serve_forever, name="xparl-pages", daemon=True)
        self._thread.start()

    def process_request(self, request, client_address):
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def close(self):
        self.shutdown()
        self.server_close()


class _Answer(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        answer = self.server.answers.get(parts.path)
        fields = {name: values[0] for name, values in urllib.parse.parse_qs(parts.query).items()}
        status, kind, body = answer(fields) if answer else (404, "text/plain; charset=utf-8", b"there is nothing by that name\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def as_json(value, status=200):
    return status, "application/json", json.dumps(value).encode()


def serve(get_data, port, prefix):
    """Pages of the cluster."""
    def text(_):
        data = get_data()
        lines = [f"{w['hostname']}: {w['used_cpus']} used cpus, {w['vacant_cpus']} vacant cpus, {w['used_gpus']} used gpus, {w['vacant_gpus']} vacant gpus" for w in data["workers"]]
        lines += [f"{c['id']}: {c['hostname']}:{c['file_path']}, {c['actor_num']} actors" for c in data["clients"]]
        return 200, "text/plain; charset=utf-8", ("\n".join(lines) + "\n").encode()

    return Pages(("127.0.0.1", port), {
        prefix: text, f"{prefix}/": text, f"{prefix}/workers": text, f"{prefix}/clients": text,
        f"{prefix}/cluster": lambda _: as_json(get_data()),
        f"{prefix}/get-jobs": lambda fields: as_json(jobs(get_data(), fields.get("client_id"))),
    })


def main(arguments=None):
    p = argparse.ArgumentParser(description="Shows a cluster of xparl over HTTP, below a path that is printed.")
    p.add_argument("--gpu_cluster", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--monitor_port", default=1234, type=int)
    p.add_argument("--address", default="localhost:8010", help="HOST:PORT of the master")
    o = p.parse_args(arguments)
    cluster = ClusterMonitor(o.address)
    serve(cluster.get_data, o.monitor_port, path(secret()))
    print(f"http://127.0.0.1:{o.monitor_port}{path(secret())}/", flush=True)
    cluster._gone.wait()


if __name__ == "__main__":
    main()
