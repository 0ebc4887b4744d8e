#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one user can do to the master, the bus and the hosts, and what another one notices of it.

    worst.py attack SECONDS [WAY...]     all ways to the master at once, or these; prints what came of them as JSON
    worst.py measure SECONDS             submits a small job again and again; prints the milliseconds from each submit to
                                         its running, as JSON
    worst.py ways                        all there are, as JSON: name, group, what it does

Speaks to the bus itself: primusctl is more polite than an attacker.
"""
import json
import multiprocessing
import os
import shlex
import socket
import ssl
import sys
import time

from jeepney import DBusAddress, DBusErrorResponse, HeaderFields, MatchRule, MessageType, message_bus, new_method_call
from jeepney.io.blocking import open_dbus_connection

MASTER, MANAGER, JOB = "org.primus.Master1", "org.primus.Master1.Manager", "org.primus.Master1.Job"
ROLE = {"num": 1, "vcores": 0.1, "memoryMb": 1}
BUSY = ("org.primus.Error.Busy", "org.freedesktop.DBus.Error.LimitsExceeded")
WAYS = {}  # name: (group, function)


def way(group):
    def add(f):
        WAYS[f.__name__] = group, f
        return f
    return add


def manager(method, signature=None, body=()):
    return new_method_call(DBusAddress("/org/primus/Master1", MASTER, MANAGER), method, signature, body)


def job_call(number, method, signature=None, body=()):
    return new_method_call(DBusAddress(f"/org/primus/Master1/job/{number}", MASTER, JOB), method, signature, body)


def large_config(mib=4, roles=64, **more):
    """As large as a configuration may be, all of it variables."""
    each = min((mib << 20) // roles - 400, 65000)
    return json.dumps({"role": [{"roleName": f"r{i}", **ROLE, "command": "sleep 100", "env": {"V": "x" * each}} for i in range(roles)],
                       **more}).encode()


class Flood:
    """A connection on which calls are sent without waiting, at most a window of them unanswered."""

    def __init__(self, until, said):
        self.bus, self.until, self.said, self.waiting = open_dbus_connection("SYSTEM"), until, said, 0

    def count(self, reply):
        name = reply.header.fields.get(HeaderFields.error_name)
        if reply.header.message_type == MessageType.method_return:
            name = "ok"
        if name:
            self.waiting -= 1
            self.said[name] = self.said.get(name, 0) + 1
        return name

    def run(self, make, window, on_answer=None):
        while time.monotonic() < self.until:
            while self.waiting < window:
                self.bus.send(make(), serial=next(self.bus.outgoing_serial))
                self.waiting += 1
            try:
                reply = self.bus.receive(timeout=max(0.01, self.until - time.monotonic()))
            except TimeoutError:
                break
            name = self.count(reply)
            if name and on_answer:
                on_answer(name, reply)


def ask(bus, call):
    """Until it is answered with something else than busy."""
    pause = 0.01
    while True:
        reply = bus.send_and_get_reply(call, timeout=120)
        if reply.header.fields.get(HeaderFields.error_name) not in BUSY:
            return reply
        time.sleep(pause)
        pause = min(pause * 2, 1)


def own_job():
    """A large job of ours that stays."""
    with open_dbus_connection("SYSTEM") as bus:
        reply = ask(bus, manager("Submit", "aya{sv}", (large_config(begin="2099-01-01T00:00:00Z"), {"name": ("s", "target")})))
        if reply.header.message_type != MessageType.method_return:
            raise SystemExit(f"the attacker has no job: {reply.body}")
        return reply.body[0]


@way("master")
def submit_large(until, said, job):
    """Configurations of 4 MiB that never start."""
    config = large_config(begin="2099-01-01T00:00:00Z")
    Flood(until, said).run(lambda: manager("Submit", "aya{sv}", (config, {})), 8)


@way("master")
def submit_and_kill(until, said, job):
    """Configurations of 4 MiB, killed when they are taken: all of them go to disk."""
    config, flood = large_config(begin="2099-01-01T00:00:00Z"), Flood(until, said)

    def kill(name, reply):
        if name == "ok" and reply.body:
            flood.bus.send(job_call(reply.body[0], "Kill", "s", ("",)), serial=next(flood.bus.outgoing_serial))
            flood.waiting += 1

    flood.run(lambda: manager("Submit", "aya{sv}", (config, {})), 8, kill)


@way("master")
def submit_small(until, said, job):
    """Small jobs that run, as many as are taken."""
    config = json.dumps({"role": [{"roleName": "r", **ROLE, "command": "true"}]}).encode()
    Flood(until, said).run(lambda: manager("Submit", "aya{sv}", (config, {})), 64)


@way("master")
def array(until, said, job):
    """Arrays with large elements."""
    config = large_config(mib=1, roles=16, array="1-100000", begin="2099-01-01T00:00:00Z")
    Flood(until, said).run(lambda: manager("Submit", "aya{sv}", (config, {"env": ("aay", [b"A=" + b"x" * 100000])})), 4)


@way("master")
def get_config(until, said, job):
    """20 connections with 20 calls each for 4 MiB."""
    children = [multiprocessing.Process(target=lambda: Flood(until, {}).run(lambda: job_call(job, "GetConfig"), 20)) for _ in range(19)]
    for child in children:
        child.start()
    Flood(until, said).run(lambda: job_call(job, "GetConfig"), 20)
    for child in children:
        child.join()


@way("master")
def never_read(until, said, job):
    """Asks for 4 MiB on many connections, and never reads an answer."""
    buses = [open_dbus_connection("SYSTEM") for _ in range(20)]
    for bus in buses:
        bus.sock.setblocking(False)
    while time.monotonic() < until:
        for bus in buses:
            try:
                bus.sock.sendall(job_call(job, "GetConfig").serialise(next(bus.outgoing_serial)))
                said["sent"] = said.get("sent", 0) + 1
            except BlockingIOError:
                pass
        time.sleep(0.05)


@way("master")
def query(until, said, job):
    """All that the store has, on 8 connections."""
    children = [multiprocessing.Process(target=lambda: Flood(until, {}).run(
        lambda: manager("ListJobs", "a{sv}", ({"all": ("b", True), "elements": ("b", True), "limit": ("u", 10000)},)), 20)) for _ in range(7)]
    for child in children:
        child.start()
    Flood(until, said).run(lambda: manager("Usage", "asa{sv}", (["job", "day", "role"], {})), 20)
    for child in children:
        child.join()


@way("master")
def old_jobs(until, said, job):
    """Jobs that have left memory, one after the other."""
    numbers = iter(range(1, 1 << 30))
    Flood(until, said).run(lambda: manager("GetJob", "u", (next(numbers) % max(job, 1) + 1,)), 50)


@way("master")
def strangers(until, said, job):
    """A new connection for each call: nobody knows it yet when the call comes."""
    config = large_config(begin="2099-01-01T00:00:00Z")
    while time.monotonic() < until:
        try:
            buses = [open_dbus_connection("SYSTEM") for _ in range(10)]
        except (OSError, EOFError, TimeoutError):
            time.sleep(0.1)
            continue
        for bus in buses:
            bus.send(manager("Submit", "aya{sv}", (config, {})), serial=next(bus.outgoing_serial))
            said["sent"] = said.get("sent", 0) + 1
        for bus in buses:
            bus.close()


# ---- the bus ----

@way("bus")
def connections(until, said, job):
    """As many connections to the bus as it gives one user."""
    kept = []
    while time.monotonic() < until:
        try:
            kept.append(open_dbus_connection("SYSTEM"))
            said["open"] = len(kept)
        except (OSError, EOFError, TimeoutError, DBusErrorResponse):
            said["refused"] = said.get("refused", 0) + 1
            time.sleep(0.05)


@way("bus")
def matches(until, said, job):
    """All the matches that 20 connections may have, of what the master sends most."""
    buses = [open_dbus_connection("SYSTEM") for _ in range(20)]
    for i in range(1 << 20):
        reply = buses[i % 20].send_and_get_reply(message_bus.AddMatch(f"type='signal',interface='{JOB}',arg0='{i}'"))
        name = "matches" if reply.header.message_type == MessageType.method_return else reply.header.fields[HeaderFields.error_name]
        said[name] = said.get(name, 0) + 1
        if name != "matches" or time.monotonic() > until:
            break
    time.sleep(max(0, until - time.monotonic()))


# ---- what stays open at the master ----

def state_of(bus, number):
    address = DBusAddress(f"/org/primus/Master1/job/{number}", MASTER, "org.freedesktop.DBus.Properties")
    return ask(bus, new_method_call(address, "Get", "ss", (JOB, "State"))).body[0][1]


def running_job(command, num=1, job=None, **role):
    """A job of ours that runs."""
    config = json.dumps({"role": [{"roleName": "r", **ROLE, "num": num, "command": command, **role}], **(job or {})}).encode()
    with open_dbus_connection("SYSTEM") as bus:
        reply = ask(bus, manager("Submit", "aya{sv}", (config, {})))
        if reply.header.message_type != MessageType.method_return:
            raise SystemExit(f"the attacker's job is refused: {reply.body}")
        number = reply.body[0]
        while state_of(bus, number) in ("QUEUED", "STARTING"):
            time.sleep(0.05)
    return number


@way("open")
def log_readers(until, said, job):
    """Readers that wait for the next line of a job that prints none."""
    number = running_job("sleep 1000")
    read = ("r", 0, 0, b"", 20_000_000, {})
    Flood(until, said).run(lambda: job_call(number, "ReadLog", "suuayta{sv}", read), 500)


@way("open")
def sessions(until, said, job):
    """Commands beside an executor, as many as there may be."""
    number = running_job("sleep 1000")
    Flood(until, said).run(lambda: job_call(number, "OpenSession", "suaaya{sv}", ("r", 0, [b"sleep", b"1000"], {})), 100)


@way("open")
def traces(until, said, job):
    """Traces of one executor by many."""
    number = running_job("while :; do :; done")
    Flood(until, said).run(lambda: job_call(number, "Trace", "susa{sv}", ("r", 0, "runqueue", {})), 100)


@way("open")
def captures(until, said, job):
    """The stacks of one executor again and again."""
    number = running_job("while :; do :; done")
    Flood(until, said).run(lambda: job_call(number, "Capture", "sua{sv}", ("r", 0, {})), 100)


@way("open")
def savepoints(until, said, job):
    """A savepoint of a data job after the other."""
    number = running_job("sleep 1000", inputPolicy="STREAMING", job={"inputManager": {"fileConfig": {"inputs": [{"name": "d", "spec": {
        "pathPattern": "/usr/share/common-licenses", "namePattern": "GPL-3", "textInput": {}}}]}}})
    numbers = iter(range(1 << 30))
    Flood(until, said).run(lambda: job_call(number, "CreateSavepoint", "sa{sv}", (f"s{next(numbers)}", {})), 32)


@way("open")
def bundles(until, said, job):
    """Uploads that are begun and never finished."""
    chunk, numbers = b"x" * (256 << 10), iter(range(1 << 30))
    Flood(until, said).run(lambda: manager("PutBundle", "sttay", (f"{next(numbers):064x}", 1 << 30, 0, chunk)), 16)


@way("open")
def link_strangers(until, said, job):
    """TLS handshakes at the port that agents and new hosts use, and then nothing that anybody understands: tokens are guessed so, too."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    kept = []
    while time.monotonic() < until:
        try:
            plain = socket.create_connection(("n1", 7747), timeout=5)
            kept.append(context.wrap_socket(plain))
            kept[-1].sendall(b"\xff" * 64)
            name = "handshakes"
        except (OSError, ValueError) as e:
            name = type(e).__name__
        said[name] = said.get(name, 0) + 1
        del kept[:-200]


# ---- the hosts: what the attacker's executors do there ----

def on_hosts(until, said, script, num=4):
    number = running_job(shlex.join(["python3", "-c", script]), num)
    time.sleep(max(0, until - time.monotonic()))
    with open_dbus_connection("SYSTEM") as bus:
        said["executors"] = num
        said["state"] = state_of(bus, number)


@way("host")
def pids(until, said, job):
    """1,200 processes."""
    on_hosts(until, said, "import os, time\nfor i in range(300):\n os.fork() or time.sleep(1000)\ntime.sleep(1000)")


@way("host")
def tmpfs(until, said, job):
    """A GiB of /dev/shm and /tmp."""
    on_hosts(until, said, "import os, time\nfor d in ('/dev/shm', '/tmp'):\n"
             " with open(f'{d}/worst-{os.getpid()}', 'wb') as f:\n"
             "  try:\n   [f.write(bytes(1 << 20)) for _ in range(128)]\n  except OSError as e: print(e)\n"
             "time.sleep(1000)")


@way("host")
def journal(until, said, job):
    """Lines as fast as they are taken."""
    on_hosts(until, said, "while True: print('x' * 1000)", 2)


@way("host")
def inotify(until, said, job):
    """All the inotify instances that a user has, and descriptors."""
    on_hosts(until, said, "import ctypes, time\nc = ctypes.CDLL(None)\nwhile c.inotify_init() >= 0: pass\ntime.sleep(1000)")


@way("host")
def feed_sockets(until, said, job):
    """Connections to the agent's feed, none of which says who it is."""
    on_hosts(until, said, "import socket, time\nkept = []\nwhile True:\n s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
             " try:\n  s.connect('/run/primus/feed.sock'); kept.append(s)\n"
             " except OSError: time.sleep(0.01)\n del kept[:-500]")


@way("host")
def starts(until, said, job):
    """Executors that never say that they are ready."""
    config = json.dumps({"role": [{"roleName": "r", **ROLE, "vcores": 0, "num": 200, "command": "sleep 1000", "ready": {"notify": True}}]}).encode()
    Flood(until, said).run(lambda: manager("Submit", "aya{sv}", (config, {})), 1)


def go(f, until, said, job):
    try:
        f(until, said, job)
    except BaseException as e:
        said[f"died: {e!r}"] = 1
        raise


def attack(seconds, ways):
    os.nice(19)  # where there are no controllers: who shares the processors is not what is asked here
    until, job, running, said = time.monotonic() + seconds, own_job(), [], {}
    manager_ = multiprocessing.Manager()
    for name in ways or [name for name, (group, _) in WAYS.items() if group == "master"]:
        said[name] = manager_.dict()
        running.append(multiprocessing.Process(target=go, args=(WAYS[name][1], until, said[name], job)))
        running[-1].start()
    for process in running:
        process.join(max(1, until + 30 - time.monotonic()))
        if process.is_alive():
            process.kill()
    with open_dbus_connection("SYSTEM") as bus:  # and leaves as it came
        for row in ask(bus, manager("ListJobs", "a{sv}", ({"uid": ("u", os.getuid()), "limit": ("u", 10000)},))).body[0]:
            ask(bus, job_call(row[0], "Kill", "s", ("",)))
    print(json.dumps({name: dict(counts) for name, counts in said.items()}))


def measure(seconds):
    """One job after the other, on one connection, as somebody at a shell; the bus says when each runs."""
    until, took = time.monotonic() + seconds, []
    config = json.dumps({"role": [{"roleName": "r", **ROLE, "command": "sleep 0.05"}]}).encode()
    bus = open_dbus_connection("SYSTEM")
    rule = MatchRule(type="signal", interface="org.freedesktop.DBus.Properties", member="PropertiesChanged")
    bus.send_and_get_reply(message_bus.AddMatch(rule))
    with bus.filter(rule, bufsize=1 << 20) as signals:
        while time.monotonic() < until:
            began = time.monotonic()
            reply = ask(bus, manager("Submit", "aya{sv}", (config, {})))
            if reply.header.message_type != MessageType.method_return:
                raise SystemExit(f"refused: {reply.body}")
            path = reply.body[1]
            while True:
                try:
                    signal = signals.popleft() if signals else bus.recv_until_filtered(signals, timeout=60)
                except TimeoutError:
                    raise SystemExit(f"{path} has said nothing for 60 s; it is {state_of(bus, reply.body[0])}; {ask(bus, job_call(reply.body[0], 'Why')).body}")
                state = signal.body[1].get("State", ("s", ""))[1]
                if signal.header.fields[HeaderFields.path] == path and state in ("RUNNING", "SUCCEEDED", "FAILED"):
                    break
            took.append((time.monotonic() - began) * 1000)
            if state == "FAILED":
                raise SystemExit(f"{path} failed")
            time.sleep(0.02)
    print(json.dumps(took))


if __name__ == "__main__":
    if sys.argv[1] == "attack":
        attack(float(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1] == "ways":
        print(json.dumps([(name, group, f.__doc__) for name, (group, f) in WAYS.items()]))
    else:
        measure(float(sys.argv[2]))
