# SPDX-License-Identifier: Apache-2.0
"""The way from primus.client to primus-webd: a socket of one's own, an address, or a gateway that is begun for it."""
import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import weakref

# So long masterd and the gateway are asked again when they have gone: being started again takes a second or two.
PATIENCE_SEC = 15
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{64})")


class Error(RuntimeError):
    """It was refused, or could not be asked: why; .name is the error's name on D-Bus ("org.primus.Error.NoSuchJob", primusctl(1)), "" where it has none;
    .status that of HTTP, 0: nobody answered; .line and .column of a configuration that is wrong, or None."""

    def __init__(self, text, name="", status=0, line=None, column=None):
        super().__init__(text)
        self.name, self.status, self.line, self.column = name, status, line, column


class Conflict(Error):
    """Somebody else was quicker: the job is not at the version that was given; or a key was used for something else."""


class _Unix(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("primus", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _listens(path):
    """Somebody does; a socket that nobody has any more may still lie there."""
    with contextlib.suppress(OSError), contextlib.closing(socket.socket(socket.AF_UNIX)) as s:
        s.settimeout(5)
        s.connect(path)
        return True
    return False


def _stop(process):
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Gateway:
    """where: a host to which ssh goes, "unix:/path", "http://…", "https://…", or None: the user's own socket here, else as for a host,
    with masterd here. program: primusctl, where a gateway has to be begun."""

    def __init__(self, where=None, program="primusctl"):
        self._program, self._lock, self._closed = program, threading.Lock(), False
        # Of a gateway that was begun: its process, what opens it, and the last that it said, by a number that rises.
        self._process, self._cookie, self._said = None, None, (0, "")
        own = f"{os.environ.get('XDG_RUNTIME_DIR') or f'/run/user/{os.getuid()}'}/primus/web.sock"
        if where is None and _listens(own):
            where = f"unix:{own}"
        parts = urllib.parse.urlsplit(where or "")
        self._host, self._base = None, ""
        if parts.scheme == "unix":
            self._make = lambda timeout: _Unix(parts.path, timeout)
        elif parts.scheme in ("http", "https") and parts.hostname:
            self._make = self._by_address(parts.scheme, parts.hostname, parts.port)
            self._base = parts.path.rstrip("/")
        elif parts.scheme in ("", "ssh") and not parts.path.startswith("/"):
            self._host, self._make = parts.netloc or parts.path or None, None
        else:
            raise ValueError(f"{where}: a host, unix:/path, http:// or https:// is expected")

    @staticmethod
    def _by_address(scheme, host, port):
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        return lambda timeout: kind(host, port, timeout=timeout)

    def close(self):
        """Ends a gateway that was begun here."""
        with self._lock:
            self._closed = True
            if self._process:
                self._end()

    # ---- a gateway of its own

    def _begin(self):
        words = [self._program, *(["-H", self._host] if self._host else []), "web"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._process, self._end = process, weakref.finalize(self, _stop, process)
        for line in process.stdout:
            found = ADDRESS.search(line)
            if found:
                break
        else:
            why = process.stderr.read().strip()
            self._end()
            raise Error(why or f"{' '.join(words)} ended without an address")
        # What it says later must not hold it up; ssh says there why it has ended.
        for stream in (process.stdout, process.stderr):
            threading.Thread(target=_drain, args=(stream, weakref.ref(self)), daemon=True).start()
        self._make = self._by_address("http", "127.0.0.1", int(found[1]))
        with contextlib.closing(self._make(20)) as connection:
            connection.request("POST", "/v1/session", json.dumps({"token": found[2]}), {"Content-Type": "application/json", "Primus-Request": "1"})
            answer = connection.getresponse()
            answer.read()
            self._cookie = (answer.getheader("Set-Cookie") or "").split(";")[0]

    def connection(self, timeout):
        with self._lock:
            if self._closed:
                raise Error("The client is closed")
            if self._make is None or (self._process and self._process.poll() is not None):
                self._begin()
            return self._make(timeout)

    # ---- requests

    def headers(self, more):
        return {**({"Cookie": self._cookie} if self._cookie else {}), **more}

    def ask(self, method, path, query=None, body=None, headers=None, again=None, timeout=40):
        """What is answered to it, decoded: None where there is nothing. again: it may be asked twice; a GET always may."""
        given = {name: _word(value) for name, value in (query or {}).items() if value is not None}
        path = f"{self._base}/v1/{path}" + (f"?{urllib.parse.urlencode(given)}" if given else "")
        changes = {} if method == "GET" else {"Content-Type": "application/json", "Primus-Request": "1"}
        data = None if method == "GET" else json.dumps({} if body is None else body)
        again = method == "GET" if again is None else again
        end, pause = time.monotonic() + PATIENCE_SEC, 0.05
        while True:
            heard = self._said[0]
            try:
                with contextlib.closing(self.connection(timeout)) as connection:
                    connection.request(method, path, data, self.headers({**changes, **(headers or {})}))
                    return _answer(connection.getresponse())
            except Error as e:
                # 503: it was refused before anything of it was done.
                if e.status in (502, 504) and self._heard_since(heard):  # ssh has ended, and would again
                    raise Error(f"{e}: {self._said[1]}", e.name, e.status) from e
                if not (e.status == 503 or (again and e.status in (502, 504))) or time.monotonic() > end:
                    raise
            except (ConnectionRefusedError, FileNotFoundError) as e:
                if time.monotonic() > end:
                    raise Error(f"primus-webd cannot be reached: {e}") from e
            except (OSError, http.client.HTTPException) as e:
                if not again or time.monotonic() > end:
                    raise Error(f"primus-webd has gone: {e!r}") from e
            time.sleep(pause)
            pause = min(pause * 2, 1)

    def _heard_since(self, heard):
        if self._process and self._said[0] == heard:
            time.sleep(0.1)  # it may be on its way
        return self._said[0] != heard

    def stream(self, path, last):
        """Events of server-sent events, as (name, data, id), until the connection ends. last: the id of the last one that was seen, or None."""
        with contextlib.closing(self.connection(40)) as connection:
            connection.request("GET", f"{self._base}/v1/{path}", headers=self.headers({"Last-Event-ID": last} if last else {}))
            answer = connection.getresponse()
            if answer.status != 200:
                _answer(answer)
            event = {}
            while line := answer.readline():
                name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(": ")
                if name:
                    event[name] = value
                elif event:
                    yield event.get("event", ""), json.loads(event.get("data") or "{}"), event.get("id")
                    event = {}


def _drain(stream, gateway):
    with contextlib.suppress(ValueError):
        for line in filter(None, map(str.strip, stream)):
            it = gateway()
            if it:
                it._said = (it._said[0] + 1, line)


def _word(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _answer(response):
    text = response.read()
    if response.status < 300:
        return json.loads(text) if text else None
    try:
        problem = json.loads(text)
        detail = problem["detail"]
    except (ValueError, KeyError, TypeError):
        raise Error(f"HTTP {response.status} {response.reason}", status=response.status) from None
    _, ours, kind = str(problem.get("type", "")).rpartition("urn:primus:error:")
    name = f"org.primus.Error.{kind}" if ours else ""
    raise (Conflict if name == "org.primus.Error.Conflict" else Error)(detail, name, response.status, problem.get("line"), problem.get("column"))
