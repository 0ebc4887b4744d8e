# SPDX-License-Identifier: Apache-2.0
"""What was written for PARL, on a pool of this host and on a cluster of xparl. PARL's own tests: parl_suite.py."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))

from acting_hosts import until  # noqa: E402
from ports import free_port  # noqa: E402
from primus.parl import _bundle, _secret  # noqa: E402
from primus.parl._ledger import Ledger  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"
PROGRAM = """
import os, sys, time
import parl
from parl.remote.exceptions import *

@parl.remote_class
class Actor:
    def __init__(self, n=0, wrong=False):
        self.n = n
        if wrong:
            raise KeyError("so wrong")
    def add(self, k):
        self.n += k
        return self.n
    def grow(self):
        self.new = 5
    def fail(self):
        return 1 / 0
    def leave(self):
        sys.exit(3)
    def pid(self):
        return os.getpid()
    def lock(self):
        import threading
        return threading.Lock()
    def here(self):
        return sorted(os.path.join(path, name) for path, directories, names in os.walk(".") for name in [*names, *directories])
    def text(self, name):
        return open(name).read()
    def say(self, what):
        print(what)

def error(kind, do):
    try:
        do()
    except kind as e:
        return str(e)
    raise AssertionError(f"no {kind}")
"""


@pytest.fixture
def e(tmp_path):
    """An environment with a home of its own; programs are beside nothing else."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PRIMUS_", "XDG_", "XPARL"))}
    return {**kept, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(TOP), "PYTHONDONTWRITEBYTECODE": "1"}


def module(name, *arguments):
    return [sys.executable, "-m", name, *map(str, arguments)]


def xparl(e, *arguments, status=0):
    done = subprocess.run(module("primus.parl.xparl", *arguments), env=e, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


@pytest.fixture
def port(e):
    """Of a cluster with three slots of this host."""
    port = free_port()
    try:
        xparl(e, "start", "--port", port, "--cpu_num", 3, "--monitor_port", free_port())
        yield port
    finally:  # also where the worker has not come
        xparl(e, "stop")
    assert not list(pathlib.Path(e["TMPDIR"]).iterdir())


def begin(e, text, *options, name="program.py"):
    work = pathlib.Path(e["TMPDIR"]).parent / "work"
    (work / name).write_text(PROGRAM + text)
    return subprocess.Popen(module("primus.parl", *options, name), env=e, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(e, text, *options):
    with begin(e, text, *options) as program:
        out, err = program.communicate(timeout=60)
        assert program.returncode == 0, err
        return out, err


def places():
    """A pool of this host, and a cluster."""
    return pytest.mark.parametrize("place", ["pool", "cluster"])


@pytest.fixture
def ran(request, e, place):
    """ran(text): its output, where parl.connect() is done already."""
    if place == "pool":
        return lambda text: run(e, f"ADDRESS = 'nowhere:1'\nparl.connect(ADDRESS)\n{text}", "--slots", "3")
    port = request.getfixturevalue("port")
    return lambda text: run(e, f"ADDRESS = 'localhost:{port}'\nparl.connect(ADDRESS)\n{text}")


@places()
def test_values_and_methods(ran):
    """What is in __dict__ is a value, also where a method has that name; all else is called."""
    ran("""
import numpy
a = Actor(3)
assert a.add(4) == 7 and a.n == 7
a.n = 1
assert a.add(1) == 2
a.pid = 5
assert a.pid == 5
error(TypeError, lambda: a.pid())
assert callable(a.new)
a.grow()
assert a.new == 5
a.array = numpy.arange(100000)
assert (a.array == numpy.arange(100000)).all()
a.array[0] = 1
assert Actor._original(5).add(1) == 6
assert Actor(n=1).pid() != os.getpid()
""")


@places()
def test_what_goes_wrong_ends_it(ran):
    """Also where the handle is kept: its slot is free at once."""
    ran("""
kept = []
def gone(do, kind=RemoteError, made=Actor):
    a = made()
    kept.append(a)
    text = error(kind, lambda: do(a))
    assert "it is gone" in error(RemoteError, lambda: a.add(1))
    return text
for _ in range(2):
    text = gone(lambda a: a.fail())
    assert text.startswith("fail: Traceback") and "return 1 / 0" in text, text
    assert "has exited with status 3" in gone(lambda a: a.leave())
    gone(lambda a: a.missing(), RemoteAttributeError)
    gone(lambda a: a.lock(), RemoteSerializeError)
    gone(lambda a: a.add(iter(sys.stdin)), RemoteSerializeError)
    gone(lambda a: setattr(a, "n", sys.stdin), RemoteSerializeError)
text = error(RemoteError, lambda: Actor(wrong=True))
assert text.startswith("__init__: ") and "so wrong" in text and "raise KeyError" in text, text
assert "unexpected keyword" in error(RemoteError, lambda: Actor(nothing=1))
assert "reserved" in error(AssertionError, lambda: Actor(_xparl_x=1))
@parl.remote_class
class Reserved:
    def __init__(self):
        self._xparl_own = 1
assert "reserved" in error(AssertionError, Reserved)
three = [Actor(i) for i in range(3)]
assert [a.add(1) for a in three] == [1, 2, 3]
assert parl.remote.client.get_global_client().actor_num.value == 3
""")


@places()
def test_futures(ran):
    """Each gives its result once; a failure is said, is the cause of what all later calls raise, and frees the slot."""
    _, said = ran("""
@parl.remote_class(wait=False)
class Later(Actor._original):
    def slow(self, seconds):
        time.sleep(seconds)
        self.made = 1
        return seconds
a = Later(1)
f = a.slow(2)
assert isinstance(f, parl.remote.future_mode.FutureObject)
error(FutureObjectEmpty, f.get_nowait)
error(FutureObjectEmpty, lambda: f.get(timeout=0.01))
error(AssertionError, lambda: f.get(timeout=0))
assert f.empty()
g = a.add(2)
assert a.made == 1 and not f.empty()   # waits for what makes it
assert g.get() == 3 and f.get() == 2
error(FutureGetRepeatedlyError, f.get)
a.n = 9
assert a.n == 9
h = a.fail()
try:
    h.get()
except FutureFunctionError as e:
    assert isinstance(e.__cause__, RemoteError) and "ZeroDivisionError" in str(e.__cause__)
error(FutureFunctionError, lambda: a.add(1).get())
b = Later(wrong=True)
error(FutureFunctionError, lambda: b.add(1))
many = [Later(i) for i in range(3)]
assert [f.get() for f in [a.add(1) for a in many]] == [1, 2, 3]
many[0].destroy()
error(RemoteError, lambda: many[0]._xparl_remote.call("add", (1,), {}))
del many
assert Later(5).add(1).get() == 6
""")
    assert "Later.fail: Traceback" in said


@places()
def test_files_go_along(ran, e):
    """As they were when it connected; scripts beside the main one by themselves. Each object has a directory of its own."""
    work = pathlib.Path(e["TMPDIR"]).parent / "work"
    for name in ("data/empty", "data/deep", "../other"):
        (work / name).mkdir(parents=True)
    for name in ("data/deep/x.txt", "data/y.txt", "helper.py", "../other/z.txt", "left.txt"):
        (work / name).write_text(f"of {name}")
    (work / "helper.py").write_text("import parl\n@parl.remote_class\nclass Helper:\n    def name(self):\n        return __file__\n")
    ran("""
# connected without files: only scripts
assert Actor().here() == ["./helper.py", "./program.py"], Actor().here()
import shutil
import helper
name = helper.Helper().name()
assert name.endswith("/a/b/c/helper.py"), name
parl.remote.client.disconnect()
assert "connect first" in error(AssertionError, Actor)
for wrong, kind in (("nothing*", ValueError), ("/etc/passwd", AssertionError), ("../../../../../../../etc/passwd", ValueError)):
    error(kind, lambda: parl.connect(ADDRESS, [wrong]))
parl.connect(ADDRESS, ["data", "../other/*"])
shutil.rmtree("data")
a = Actor()
assert a.here() == ["./data", "./data/deep", "./data/deep/x.txt", "./data/empty", "./data/y.txt", "./helper.py", "./program.py"], a.here()
assert a.text("data/deep/x.txt") == "of data/deep/x.txt" and a.text("../other/z.txt") == "of ../other/z.txt"
""")


def test_directories_are_swept(e, monkeypatch, tmp_path):
    """Of processes that have ended, however; not those of others, nor what a link leads to."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(_bundle.tempfile, "tempdir", None)
    alive = _bundle.unpack(({"x": b"1"}, []), "0" * 16)
    dead, another = tmp_path / f"tmp/primus-parl-{'1' * 16}", tmp_path / "tmp/primus-parl-data"
    (dead / "a").mkdir(parents=True)
    another.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"tmp/primus-parl-{'2' * 16}").symlink_to(tmp_path / "elsewhere")
    _bundle.sweep()
    assert not dead.exists() and another.exists() and (alive / "x").exists() and (tmp_path / "elsewhere").exists()


@places()
def test_objects_that_go_anywhere(ran):
    """Those in cycles end when they are collected, whatever the program does then; their slots are free."""
    ran("""
import gc, json, threading
gc.set_threshold(5, 2, 2)
class Ring:
    def __init__(self, actor):
        self.actor, self.me = actor, self
for n in range(60):
    assert Ring(Actor(n)).actor.add(json.loads(json.dumps([1, [2], {"a": [3]}]))[0]) == n + 1
gc.collect()
three = [Actor(n) for n in range(3)]
assert [a.add(0) for a in three] == [0, 1, 2] and parl.remote.client.get_global_client().actor_num.value == 3
""")


def test_memory(e):
    """An object that has more than it may, on top of what it began with, is ended, and its caller hears of it."""
    run(e, """
parl.connect("")
@parl.remote_class(max_memory=64)
class Large:
    def take(self, mib, seconds):
        self.held = bytearray(mib << 20)
        time.sleep(seconds)
        return mib
a = Large()
assert a.take(20, 2.5) == 20
assert "SIGKILL" in error(RemoteError, lambda: a.take(200, 30))
""", "--slots", "1")


def test_children_connect_themselves(e, port):
    """A fork of a program that has connected has a client of its own; the parent's objects are not touched."""
    run(e, f"""
import multiprocessing
parl.connect("localhost:{port}")
a = Actor(1)
def child(results):
    results.put((Actor(5).add(1), parl.remote.client.get_global_client().client_id))
results = multiprocessing.Queue()
children = [multiprocessing.Process(target=child, args=(results,)) for _ in range(2)]
for c in children:
    c.start()
got = [results.get(timeout=20) for c in children]
for c in children:
    c.join()
assert [n for n, _ in got] == [6, 6] and len({{id for _, id in got}} | {{parl.remote.client.get_global_client().client_id}}) == 3
assert a.add(1) == 2
""")


def status(e):
    return re.search(r"has (\d+) used cpus, (\d+) vacant cpus", xparl(e, "status")).groups()


def test_who_dies(e, port):
    """A client's slots are free when it is killed, for who waits for one; a worker's objects are gone with it; with the master go its workers."""
    client = begin(e, f"parl.connect('localhost:{port}')\nthree = [Actor(i) for i in range(3)]\nprint('there', flush=True)\nsys.stdin.read()\n")
    with client:
        assert client.stdout.readline() == "there\n" and status(e) == ("3", "0")
        waiting = begin(e, f"parl.connect('localhost:{port}')\na = Actor(1)\nprint(a.add(1), flush=True)\nsys.stdin.readline()\n"
                        "print(error(RemoteError, lambda: a.add(1)), flush=True)\nprint(Actor(7).add(1), flush=True)\nsys.stdin.readline()\nprint(error(ResourceError, Actor))", name="other.py")
        with waiting:
            time.sleep(0.5)
            client.send_signal(signal.SIGKILL)
            assert waiting.stdout.readline() == "2\n"
            until(lambda: status(e) == ("1", "2"), 30)
            running = {json.loads(f.read_text())["kind"]: json.loads(f.read_text())["pid"] for f in pathlib.Path(e["HOME"], ".local/state/primus-xparl/running").iterdir()}
            os.kill(running["worker"], signal.SIGKILL)
            until(lambda: "has 0 used cpus, 0 vacant cpus" in xparl(e, "status"), 30)
            xparl(e, "connect", "--address", f"localhost:{port}", "--cpu_num", "1")
            waiting.stdin.write("\n")
            waiting.stdin.flush()
            assert re.match("add: Runner 0 was on .*, which is gone\n|add: the worker on .* has ended", said := waiting.stdout.readline()), said
            assert waiting.stdout.readline() == "8\n"
            os.kill(running["master"], signal.SIGKILL)
            waiting.stdin.write("\n")
            waiting.stdin.flush()
            assert "the master of xparl is gone" in waiting.stdout.readline()
    until(lambda: xparl(e, "status") == "No active cluster is found.\n", 30)
    for left in pathlib.Path(e["TMPDIR"]).iterdir():  # of the worker that was killed
        subprocess.run(["rm", "-r", left], check=True)


def test_gpus(e):
    """Each object sees its own; a host without any adds nothing; what does not fit is refused by name."""
    port = free_port()
    try:
        xparl(e, "start", "--port", port, "--gpu_cluster", "--gpu", "4,7")
        xparl(e, "connect", "--address", f"localhost:{port}", "--cpu_num", "3")
        run(e, f"""
parl.connect("localhost:{port}")
def of(n):
    @parl.remote_class(n_gpu=n)
    class Gpu:
        def seen(self):
            return os.environ["CUDA_VISIBLE_DEVICES"]
    return Gpu
a, b = of(1)(), of(1)()
assert {{a.seen(), b.seen()}} == {{"4", "7"}}
del a, b
assert of(2)().seen() in ("4,7", "7,4")
assert "n_gpu=1" in error(ResourceError, Actor)
""")
        assert "has 0 used cpus, 0 vacant cpus, 0 used_gpus, 2 vacant_gpus." in xparl(e, "status")
    finally:
        xparl(e, "stop")


def test_logs_and_status(e, port):
    """Over HTTP, below what only who has the secret can know."""
    url = re.search(r"http://\S+", xparl(e, "status"))[0]

    def get(where):
        with urllib.request.urlopen(where, timeout=10) as answer:
            return answer.read().decode()

    def refused(where):
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(where)
        return raised.value.code

    with begin(e, f"parl.connect('localhost:{port}')\na = Actor(1)\na.say('<b>one</b>')\na.say('two')\nprint('there', flush=True)\nsys.stdin.read()\n") as client:
        assert client.stdout.readline() == "there\n"
        data = json.loads(get(f"{url}cluster"))
        assert data["total_cpus"] == 3 and data["total_vacant_cpus"] == 2 and data["clients"][0]["actor_num"] == 1
        [job] = json.loads(get(f"{url}get-jobs?client_id={data['clients'][0]['id']}"))
        assert json.loads(get(job["log_url"]))["log"] == get(job["download_url"]) == "<b>one</b>\ntwo\n"
        assert refused(job["log_url"].partition("?")[0]) == 400
        assert refused(job["log_url"].replace(job["job_id"], "../secrets/actors")) == 404
        assert refused(job["log_url"].replace(job["job_id"], "0" * 16)) == 404
        secret_of = re.match(r"http://[^/]+", job["log_url"])[0]
        assert refused(f"{secret_of}/get-log?job_id={job['job_id']}") == 404
        assert refused(re.match(r"http://[^/]+", url)[0] + "/cluster") == 404
        client.communicate("")


def test_who_has_not_the_secret(e, port, tmp_path):
    """Another user's client and worker are told so; a secret that others can read is not used."""
    other = {**e, "HOME": str(tmp_path / "other")}
    assert f"there is no master of xparl at localhost:{port} that has this user's secret" in xparl(other, "connect", "--address", f"localhost:{port}", status=1)
    with begin(other, f"parl.connect('localhost:{port}')") as program:
        assert "ConnectionError: there is no master of xparl" in program.communicate(timeout=20)[1]
    path = tmp_path / "other/.local/state/primus-xparl/secret"
    path.chmod(0o640)
    assert "others can read it" in xparl(other, "connect", "--address", f"localhost:{port}", status=1)
    assert xparl(other, "status") == xparl(other, "stop") == "No active cluster is found.\n"


def test_the_secret_is_made_once(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("PRIMUS_SECRETS_DIR", raising=False)
    one = _secret.secret()
    _secret._make(tmp_path / "primus-xparl/secret")
    assert len(one) == 32 and _secret.secret() == one and len(list((tmp_path / "primus-xparl").iterdir())) == 1


def test_ports_and_ranges(e, port):
    assert f"port {port}" in xparl(e, "start", "--port", port, "--cpu_num", 1, status=1)
    assert "is no range of ports" in xparl(e, "connect", "--address", "localhost:1", "--log_server_port_range", "9-8", status=2)
    assert "is no address: HOST:PORT" in xparl(e, "connect", "--address", "localhost", status=1)


# ---- who gets which slot

def granted(ledger):
    return [(number, lease.worker, lease.slots) for number, lease in ledger.grants()]


def test_slots_go_in_turn():
    ledger = Ledger(False)
    ledger.add("a", [None] * 2, {})
    ledger.add("b", [None] * 2, {})
    ledger.add("empty", [], {})
    for n in range(5):
        ledger.ask("c", n, 1)
    assert granted(ledger) == [(0, "a", [None]), (1, "b", [None]), (2, "a", [None]), (3, "b", [None])] and ledger.totals() == (4, 0)
    job = next(iter(ledger.leases))
    ledger.give_back("d", job)  # it is another client's
    assert granted(ledger) == []
    ledger.give_back("c", job)
    ledger.give_back("c", job)
    assert granted(ledger) == [(4, "a", [None])]
    ledger.leave("c")
    assert ledger.totals() == (0, 4)


def test_who_asks_first_is_first():
    """Also when it wants more than the next one; who gives up is in nobody's way."""
    ledger = Ledger(True)
    ledger.add("a", ["0", "1"], {})
    ledger.ask("c", 1, 1)
    ledger.ask("c", 2, 2)
    ledger.ask("d", 1, 1)
    assert granted(ledger) == [(1, "a", ["0"])]
    assert ledger.cancel("c", 2) and not ledger.cancel("c", 2)
    assert granted(ledger) == [(1, "a", ["1"])] and ledger.totals() == (2, 0)
    ledger.remove("a")
    assert ledger.totals() == (0, 0) and not ledger.leases
    ledger.ask("c", 3, 1)
    ledger.leave("c")
    ledger.add("b", ["5"], {})
    assert granted(ledger) == []
