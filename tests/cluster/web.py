# SPDX-License-Identifier: Apache-2.0
"""primus-webd of a host's users: requests, streams of events."""
import contextlib
import ctypes
import http.client
import json
import os
import socket
import threading

UIDS = {"ml": 1000, "eve": 1001}
CHANGES = {"Content-Type": "application/json", "Primus-Request": "1"}


BECOMING = threading.Lock()


def dial(path, uid, timeout):
    """Connects as that user, whom the kernel tells the other side: to a path that root alone can go all the way to."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    with BECOMING:
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            os.chdir(os.path.dirname(path))
            os.seteuid(uid)
            s.connect(os.path.basename(path))
        except OSError:
            s.close()
            raise
        finally:
            os.seteuid(0)
            os.fchdir(here)
            os.close(here)
    return s


def dial_in(pid, address, timeout):
    """Connects from the network of a process: that of a thread is its own to change."""
    made = []

    def connect():
        with open(f"/proc/{pid}/ns/net", encoding="ascii") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) < 0:
                raise OSError(ctypes.get_errno(), "setns")
        with contextlib.suppress(OSError):
            made.append(socket.create_connection(address, timeout))

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if not made:
        raise ConnectionRefusedError(address)
    return made[0]


class Connection(http.client.HTTPConnection):
    """connect: makes the socket, of a time-out."""

    def __init__(self, connect, timeout):
        super().__init__("primus", timeout=timeout)
        self.connected = connect

    def connect(self):
        self.sock = self.connected(self.timeout)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Web:
    """The door of one user on n1: the socket that his manager listens at."""

    def __init__(self, cluster, user="ml"):
        self.cluster, self.user, self.uid = cluster, user, UIDS[user]
        cluster.exec("n1", "loginctl", "enable-linger", user)
        cluster.wait_for(lambda: cluster.run("n1", "test", "-S", f"/run/user/{self.uid}/systemd/private").returncode == 0, what=f"{user}'s manager")
        self.systemctl("start", "primus-web.socket")

    def systemctl(self, *arguments):
        return self.cluster.exec("n1", "env", f"XDG_RUNTIME_DIR=/run/user/{self.uid}", "systemctl", "--user", *arguments, user=self.user)

    def connect(self, timeout):
        return dial(self.path, self.uid, timeout)

    @property
    def path(self):
        return f"/proc/{self.cluster.leader('n1')}/root/run/user/{self.uid}/primus/web.sock"

    def shown(self, name):
        return self.systemctl("show", "--value", "-p", name, "primus-web.service").strip()

    @property
    def pid(self):
        return int(self.shown("MainPID"))

    def request(self, method, path, body=None, headers=None, timeout=40):
        connection = Connection(self.connect, timeout)
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers if headers is not None else {} if method == "GET" else CHANGES)
            return Answer(connection.getresponse())

    def get(self, path, **options):
        answer = self.request("GET", f"/v1/{path}", **options)
        assert answer.status == 200, f"{path}: {answer.status} {answer.body[:300]}"
        return answer.json

    def send(self, method, path, body=None, headers=None):
        """Status, and what came."""
        answer = self.request(method, f"/v1/{path}", {} if body is None else body, {**CHANGES, **(headers or {})})
        return answer.status, answer.json if answer.body else None

    @contextlib.contextmanager
    def events(self, last=None, timeout=30):
        """next() of it is (name, data, id) of the next event."""
        connection = Connection(self.connect, timeout)
        with contextlib.closing(connection):
            connection.request("GET", "/v1/events", headers={"Last-Event-ID": last} if last else {})
            response = connection.getresponse()
            assert response.status == 200 and response.getheader("Content-Type") == "text/event-stream"
            yield read_events(response)

    def raw(self, data, timeout=10):
        """What is answered to bytes; b"" where the connection was ended."""
        with self.connect(timeout) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            with contextlib.suppress(ConnectionResetError):
                return s.recv(65536)
        return b""


class Everybody(Web):
    """The door of n1 that is for looking, on the loopback there."""

    PORT = 8479

    def __init__(self, cluster):
        self.cluster = cluster
        cluster.exec("n1", "systemctl", "start", "primus-web.socket")

    def systemctl(self, *arguments):
        return self.cluster.exec("n1", "systemctl", *arguments)

    def connect(self, timeout):
        return dial_in(self.cluster.leader("n1"), ("127.0.0.1", self.PORT), timeout)


def read_events(response):
    event = {}
    while line := response.readline():
        line = line.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")
            continue
        if "event" in event:
            yield event["event"], json.loads(event["data"]), event.get("id")
        event = {}
