# SPDX-License-Identifier: Apache-2.0
"""The metrics that a host serves, as a scraper reads them; see docs/metrics.md."""
import contextlib
import http.client
import re
import socket

from sandbox import Failed

SOCKET = "/run/primus/agent/metrics.sock"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"

SAMPLE = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
SUFFIX = {"counter": "_total", "info": "_info", "gauge": ""}


class Connection(http.client.HTTPConnection):
    """To the host's socket, from the build machine."""

    def __init__(self, cluster, node="n1", timeout=10):
        super().__init__("localhost", timeout=timeout)
        self.path = f"/proc/{cluster.leader(node)}/root{SOCKET}"

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(cluster, path="/metrics", accept=OPENMETRICS, method="GET", **options):
    connection = Connection(cluster, **options)
    with contextlib.closing(connection):
        try:
            connection.request(method, path, headers={"Accept": accept} if accept else {})
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Content-Type"), answer.read().decode()
        except (OSError, http.client.HTTPException) as e:
            raise Failed(f"the metrics of the host: {e!r}") from e


def parse(text):
    """{(name, frozenset of labels): value}; as strict as OpenMetrics 1.0 is."""
    assert text.endswith("# EOF\n")
    samples, seen, family, told = {}, set(), None, {}
    for line in text.split("\n")[:-2]:
        if line.startswith("# "):
            _, what, name, value = line.split(" ", 3)
            assert what in ("TYPE", "UNIT", "HELP"), line
            if name != family:
                assert what == "TYPE" and name not in seen, line
                family, told = name, {}
                seen.add(name)
            assert what not in told and value, line
            told[what] = value
            if what == "UNIT":
                assert name.endswith("_" + value), line
            continue
        match = SAMPLE.fullmatch(line)
        assert match and family, line
        assert match[1] == family + SUFFIX[told["TYPE"]], line
        labels, position = {}, 0
        while position < len(match[2] or ""):
            label = LABEL.match(match[2], position)
            assert label and label[1] not in labels, line
            labels[label[1]] = label[2]
            position = label.end()
        key = match[1], frozenset(labels.items())
        assert key not in samples, line
        samples[key] = float(match[3])
    return samples


def metrics(cluster):
    status, kind, text = get(cluster)
    assert status == 200 and kind.startswith(OPENMETRICS), (status, kind)
    return parse(text)


def value(samples, name, **labels):
    """The one sample of that name with these labels, among others; None."""
    found = [v for (n, have), v in samples.items() if n == name and set(labels.items()) <= have]
    assert len(found) <= 1, (name, labels, found)
    return found[0] if found else None
