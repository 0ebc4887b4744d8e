# SPDX-License-Identifier: Apache-2.0
"""A captured agentd: speaks D-Bus to primus-starter's socket with nothing but Python, on a host, as primus-agent.

    python3 rogue_calls.py SEED RANDOM        chosen calls, each answered before the next; then RANDOM ones, many at a time

Prints one JSON object: what was sent, which answers came, and those chosen calls that were not refused though they had to be."""
import array
import collections
import json
import os
import pwd
import random
import select
import socket
import struct
import sys
import time

SOCKET = "/run/primus/starter.sock"
PATH = "/org/primus/Starter1"
ID = "(ayusuu)"
ORDER = f"({ID}yuaayayaayasa(say)tttuasasaqttsssuayb)"
INVENTORY = "(sssuta(ssts)qqbb(yayq))"
MARK = b"/usr/local/bin/rogue-mark"
EVIL = "ExecStopPost=+/usr/local/bin/rogue-mark root"


# ---- D-Bus

def one(signature):
    """The length of the first complete type."""
    n = depth = 0
    while True:
        while signature[n] == "a":
            n += 1
        depth += (signature[n] in "({") - (signature[n] in ")}")
        n += 1
        if depth == 0:
            return n


FIXED = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
ALIGN = {"y": 1, "b": 4, "n": 2, "q": 2, "i": 4, "u": 4, "x": 8, "t": 8, "d": 8, "h": 4, "s": 4, "o": 4, "g": 1, "a": 4, "(": 8, "{": 8, "v": 1}


class Writer:
    def __init__(self):
        self.out = bytearray()
        self.fds = []

    def pad(self, n):
        self.out += bytes(-len(self.out) % n)

    def write(self, signature, values):
        values = list(values)
        while signature:
            n = one(signature)
            self.value(signature[:n], values.pop(0))
            signature = signature[n:]
        assert not values

    def value(self, kind, v):
        first = kind[0]
        self.pad(ALIGN[first])
        if first == "h":
            self.fds.append(v)
            v = len(self.fds) - 1
        if first in FIXED:
            self.out += struct.pack("<" + FIXED[first], v)
        elif first in "sog":
            text = v.encode() if isinstance(v, str) else v
            self.out += struct.pack("<B" if first == "g" else "<I", len(text)) + text + b"\0"
        elif first == "v":
            self.value("g", v[0])
            self.value(*v)
        elif first in "({":
            self.write(kind[1:-1], v)
        elif kind == "ay":
            self.out += struct.pack("<I", len(v)) + bytes(v)
        else:
            at = len(self.out)
            self.out += bytes(4)
            self.pad(ALIGN[kind[1]])
            start = len(self.out)
            for each in v:
                self.value(kind[1:], each)
            self.out[at:at + 4] = struct.pack("<I", len(self.out) - start)


def message(serial, path, interface, member, signature, values):
    body = Writer()
    body.write(signature, values)
    fields = [(1, ("o", path)), (3, ("s", member))] + ([(2, ("s", interface))] if interface else [])
    if signature:
        fields.append((8, ("g", signature)))
    if body.fds:
        fields.append((9, ("u", len(body.fds))))
    head = Writer()
    head.write("yyyyuua(yv)", [ord("l"), 1, 0, 1, len(body.out), serial, fields])
    head.pad(8)
    return bytes(head.out + body.out), body.fds


def answer(data):
    """(serial of the call, name of the error or "") of one message."""
    size, = struct.unpack_from("<I", data, 12)
    at, end, serial, name = 16, 16 + size, 0, ""
    while at < end:
        at += -at % 8
        code, length = data[at], data[at + 1]
        kind = data[at + 2:at + 2 + length]
        at += 3 + length
        if kind == b"g":
            at += data[at] + 2
        else:
            at += -at % 4
            value, = struct.unpack_from("<I", data, at)
            at += 4
            if kind != b"u":
                text = data[at:at + value].decode()
                at += value + 1
                name = text if code == 4 else name
            elif code == 5:
                serial = value
    return serial, name


class Starter:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(SOCKET)
        self.socket.settimeout(20)
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n")
        said = b""
        while said.count(b"\r\n") < 2:
            said += self.socket.recv(1)
        assert said.startswith(b"OK ") and b"AGREE_UNIX_FD" in said, said
        self.serial = 0
        self.waiting = {}
        self.data = b""

    def send(self, call):
        self.serial += 1
        data, fds = message(self.serial, *call)
        self.waiting[self.serial] = call
        more = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = 0
        while sent < len(data):
            ready = select.select([self.socket], [self.socket], [], 20)
            assert ready[0] or ready[1], "the starter takes nothing"
            if ready[0]:
                yield from self.receive()
            if ready[1]:
                sent += self.socket.sendmsg([data[sent:sent + 65536]], more if sent == 0 else [], socket.MSG_DONTWAIT)

    def receive(self):
        """Answers, as (call, error), after having waited for some bytes."""
        data, more, _, _ = self.socket.recvmsg(1 << 18, socket.CMSG_SPACE(4 * 253))
        assert data, "the starter has hung up"
        for _, _, fds in more:
            for fd in array.array("i", fds[:len(fds) // 4 * 4]):
                os.close(fd)
        self.data += data
        while len(self.data) >= 16:
            body, _, fields = struct.unpack_from("<III", self.data, 4)
            total = (16 + fields + 7) // 8 * 8 + body
            if len(self.data) < total:
                break
            serial, name = answer(self.data[:total])
            self.data = self.data[total:]
            if serial in self.waiting:
                yield self.waiting.pop(serial), name

    def settle(self, most=0, seconds=30):
        """Until at most so many calls have no answer."""
        end = time.monotonic() + seconds
        while len(self.waiting) > most:
            if not select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
                raise SystemExit(f"{len(self.waiting)} calls have no answer, such as {next(iter(self.waiting.values()))[:3]}")
            yield from self.receive()


# ---- calls as an honest agentd makes them

UID = pwd.getpwnam("ml").pw_uid
JOB_UID = bytes(range(1, 17))
UNIT = "primus-900001-worker-0.1.service"
NODE = "n1"
WORK = "900001-01020304"


def executor(job=900001, role="worker", index=0, attempt=1, job_uid=JOB_UID):
    return (job_uid, job, role, index, attempt)


FIELDS = ("id", "kind", "uid", "argv", "cwd", "env", "identity", "secrets", "cpu", "memory", "job_memory", "tasks", "gpus", "visible", "ports", "runtime",
          "grace", "on_partition", "bundle", "ack", "pipe", "output", "new_privileges")


def start(extra=(), beside=(), **changes):
    fields = {"id": executor(), "kind": 0, "uid": UID, "argv": [MARK, b"job"], "cwd": b"", "env": [b"A=b"], "identity": ["PRIMUS_X=y"], "secrets": [],
              "cpu": 0, "memory": 0, "job_memory": 0, "tasks": 0, "gpus": [], "visible": [], "ports": [], "runtime": 0, "grace": 1000000,
              "on_partition": "stop", "bundle": "", "ack": "exit", "pipe": 0, "output": b"", "new_privileges": 0, **changes}
    return units("Start", ORDER + "a{sv}a{sv}", [tuple(fields[f] for f in FIELDS), list(extra), list(beside)])


def units(member, signature, values):
    return (PATH, "org.primus.Starter1.Units", member, signature, values)


def observe(member, signature, values):
    return (PATH, "org.primus.Starter1.Observe", member, signature, values)


def inventory(node=NODE, host=NODE, gpu="GPU-1", nodes="/dev/nvidia7", extra=()):
    return units("SetInventory", "s" + INVENTORY + "a{sv}",
                 [node, (host, "linux", "debian", 4, 1 << 30, [(gpu, "model", 1 << 30, nodes)], 23000, 27999, 0, 0, (0, b"", 0)), list(extra)])


def work(uid=UID, job=900001):
    return units("MakeWork", "uayu", [job, JOB_UID, uid])


def memory(uid=UID, job=900001, size=1 << 20):
    return units("MakeSharedMemory", "uaytu", [job, JOB_UID, size, uid])


NULL = os.open("/dev/null", os.O_RDWR)
PIPE = os.pipe()


def session(uid=UID, environment=("PRIMUS_X=y",), number=3, ident=executor()):
    return units("StartSession", ID + "uuasbth", [ident, number, uid, list(environment), 0, 1 << 20, NULL])


TOLD = ("PRIMUS_NODE=n1", "PRIMUS_JOB=900001", f"PRIMUS_UID={UID}", f"PRIMUS_WORK=/var/lib/primus-agent/work/{WORK}")


def hook(name="prolog", environment=TOLD, unit="primus-hook-prolog-900001-1.1.service", timeout=10**6, fd=PIPE[1]):
    return units("StartHook", "ssasth", [unit, name, list(environment), timeout, fd])


def bundle(uid, fd):
    return units("GiveBundle", "hu", [fd, uid])


def templates():
    """One call of each method that is in order, except Power."""
    return [start(ports=[23001], secrets=[("token", b"x")], output=b"/home/ml/%j", cwd=b"/home/ml"), start(id=executor(900002, index=7)), inventory(), session(), hook(),
            units("Stop", "s", [UNIT]), units("Kill", "ssi", [UNIT, "all", 15]), units("Freeze", "sb", [UNIT, 0]),
            units("SetLimits", "sbttta{sv}", [UNIT, 0, 1, 2, 3, []]), units("SetCPUs", "ss", [UNIT, "0-1"]), units("SetDevices", "sasb", [UNIT, [], 0]),
            units("MakeSlice", "utttu", [900001, 0, 0, 0, 0]), units("SetSlice", "utttu", [900001, 0, 0, 0, 0]), memory(),
            units("RemoveSharedMemory", "s", ["900001.01020304"]), units("Put", "ssay", [UNIT, "stop", b"x"]),
            units("SetRendezvous", "stuaaya{sv}", [UNIT, 3, 10, [b"A=b"], []]), units("RemovePrivate", "s", [UNIT]), units("RemoveFields", "s", [UNIT]),
            units("RemoveRecord", "s", [UNIT]), units("Usage", "", []), work(), units("TouchWork", "uay", [900001, JOB_UID]),
            units("RemoveWork", "s", [WORK]), units("MarkHooked", "uayb", [900001, JOB_UID, 1]), bundle(UID, NULL),
            observe("Trace", "s", ["io"]), observe("Untrace", "s", ["io"]), observe("Open", "ss", [UNIT, "progress"]),
            observe("Signal", "si", [UNIT, 10]), observe("Capture", "ssi", [UNIT, WORK, 10]), observe("Usage", "as", [[UNIT]]),
            observe("Written", "s", [UNIT]), observe("Widen", "hu", [PIPE[0], 1 << 16]), (PATH, "org.primus.Starter1.Journal", "Synchronize", "", [])]


# ---- chosen ones: (call, the starter has to refuse it)

TEXTS = [f"@\n{EVIL}", f"@\r{EVIL}", f"@\u2028{EVIL}", f"@\x01\x1b[2J\x7f", "@\\", "@%n%h%%", "@$HOME${PATH}$(id)`id`", "@;/bin/sh;", "../../../../etc/passwd", "+/bin/sh",
         f"-@:!{MARK.decode()}", "@ ", "/root/.ssh/authorized_keys", "x" * 100000]
UNITS = ["ssh.service", "sshd.service", "systemd-journald.service", "dbus.service", "dbus.socket", "init.scope", "-.slice", "system.slice", "user.slice", "primus.slice", "-.mount",
         "primus-masterd.service", "primus-agentd.service", "primus-starter.service", "primus-starter.socket", "run-primus-x.mount", "user@1000.service",
         "multi-user.target", "rescue.target", "primus-hook-fence@x.service", "primus-900001-worker-0.1.service.service", "primus-../x-0.1.service",
         "primus-900001-worker-0.1.socket", "PRIMUS-900001-worker-0.1.service", "", "*", "primus-*", "primus-900001-w\u00f6rker-0.1.service", "x" * 300 + ".service"]
NUMBERS = [0, 1, 2, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]


def unserved():
    """uids that the host serves under no setting, or not under its own (DenyUsers=eve)."""
    named = [p.pw_uid for p in pwd.getpwall() if p.pw_uid < 1000 or p.pw_name in ("nobody", "eve", "primus", "primus-agent")]
    return sorted({*named, 65535, 61184, 65519, 2**32 - 1})


def chosen_texts():
    for t in TEXTS:
        raw = t.encode()
        line = all(c.isprintable() for c in t) and len(t) < 1000  # what may be a word of a command, or a name
        yield start(id=executor(900003, role=t)), True
        yield start(id=executor(900003, index=1), cwd=raw), t[0] != "/"
        yield start(id=executor(900003, index=2), cwd=b"/" + raw), not line or t[-1] in "\\ "
        yield start(id=executor(900003, index=3), argv=[raw]), False
        yield start(id=executor(900003, index=4), argv=[MARK, raw]), False
        yield start(id=executor(900003, index=5), env=[b"A=" + raw]), False
        yield start(id=executor(900003, index=6), env=[raw + b"=x"]), True
        yield start(id=executor(900003, index=7), identity=["PRIMUS_X=" + t]), not line or t[-1] in "\\ "
        yield start(id=executor(900003, index=8), identity=[t + "=x"]), True
        yield start(id=executor(900003, index=9), secrets=[(t, b"x")]), not line or "/" in t or t[0] == "."
        yield start(id=executor(900003, index=10), gpus=[t]), True
        yield start(id=executor(900003, index=11), on_partition=t), True
        yield start(id=executor(900003, index=12), bundle=t), True
        yield start(id=executor(900003, index=13), ack=t), True
        yield start(id=executor(900003, index=14), output=b"/home/ml/" + raw), False
        yield start(id=executor(900003, index=15), extra=[("cpus", ("s", t))]), True
        yield start(id=executor(900003, index=16), extra=[("numa", ("s", t))]), len(t) > 20
        yield start(id=executor(900003, index=17), extra=[("ready", ("s", t))]), len(t) > 20
        yield start(id=executor(900003, index=18), extra=[("io", ("a(sttuuu)", [(t, 1, 1, 1, 1, 1)]))]), len(t) > 5000
        yield start(id=executor(900003, index=19), beside=[("sharedCpus", ("s", t))]), True
        yield start(id=executor(900003, index=20), beside=[("ready", ("ay", raw))]), len(t) > 5000
        yield start(id=executor(900003, index=21), beside=[(t, ("s", "x"))]), True
        yield inventory(node=t), True
        yield inventory(nodes=t), True
        yield inventory(nodes=f"/dev/nvidia0 {t}"), True
        yield session(environment=[t]), True
        yield session(environment=["PRIMUS_X=" + t]), not line or t[-1] in "\\ "
        yield hook(name=t), True
        yield hook(unit=t), True
        yield hook(unit=f"primus-hook-{t}.service"), True
        yield hook(environment=[*TOLD[:3], "PRIMUS_WORK=" + t]), True
        yield hook(environment=[*TOLD[:2], "PRIMUS_UID=" + t, TOLD[3]]), True
        yield hook(environment=[*TOLD, t]), True
        yield units("SetCPUs", "ss", [UNIT, t]), True
        yield units("SetDevices", "sasb", [UNIT, [t], 0]), False
        yield units("Kill", "ssi", [UNIT, t, 9]), True
        yield units("Put", "ssay", [UNIT, t, b"x"]), True
        yield units("RemoveWork", "s", [t]), True
        yield units("RemoveSharedMemory", "s", [t]), True
        yield units("Power", "s", [t]), True
        for member, signature, rest in (("Open", "ss", ["progress"]), ("Signal", "si", [10]), ("Capture", "ssi", [WORK, 0]), ("Written", "s", [])):
            yield observe(member, signature, [t, *rest]), True
        yield observe("Open", "ss", [UNIT, t]), True
        yield observe("Capture", "ssi", [UNIT, t, 0]), True
        yield observe("Trace", "s", [t]), True


def chosen_users():
    own = os.memfd_create("bundle")
    for i, uid in enumerate(unserved()):
        yield start(id=executor(900004, index=i), uid=uid), True
        yield start(id=executor(), uid=uid), True
        yield session(uid=uid), True
        yield work(uid, 900004), True
        yield memory(uid, 900004), True
        yield bundle(uid, own), True
        yield hook(environment=[*TOLD[:2], f"PRIMUS_UID={uid}", TOLD[3]]), True
        yield hook(environment=["PRIMUS_NODE=n1", "PRIMUS_JOB=900004", f"PRIMUS_UID={uid}", "PRIMUS_WORK=/var/lib/primus-agent/work/900004-01020304"]), True
    for path in ("/etc/passwd", "/usr/bin/passwd", "/proc/self/status", "/usr/lib/systemd/systemd"):
        yield bundle(UID, os.open(path, os.O_RDONLY)), True
        yield observe("Widen", "hu", [os.open(path, os.O_RDONLY), 1 << 16]), True
    yield bundle(UID, os.open("/etc", os.O_RDONLY)), True
    yield bundle(UID, socket.socket().detach()), True
    yield bundle(UID, PIPE[0]), True


def chosen_units():
    for u in UNITS:
        for member, signature, rest in (("Stop", "s", []), ("Kill", "ssi", ["all", 9]), ("Freeze", "sb", [1]), ("SetLimits", "sbttta{sv}", [1, 1, 1, 1, []]), ("SetCPUs", "ss", ["0"]),
                                        ("SetDevices", "sasb", [[], 0]), ("Put", "ssay", ["stop", b"x"]), ("SetRendezvous", "stuaaya{sv}", [1, 0, [], []]),
                                        ("RemovePrivate", "s", []), ("RemoveRecord", "s", []), ("RemoveFields", "s", [])):
            yield units(member, signature, [u, *rest]), True
        for member, signature, rest in (("Open", "ss", ["memory.pressure"]), ("Signal", "si", [15]), ("Capture", "ssi", [WORK, 0]), ("Written", "s", []), ("Usage", "as", None)):
            yield observe(member, signature, [[u]] if rest is None else [u, *rest]), True
    yield units("MakeSlice", "utttu", [0, 0, 0, 0, 0]), True
    yield units("SetSlice", "utttu", [0, 1, 1, 1, 1]), True
    for signal in (0, -1, 65, 2**31 - 1):
        yield units("Kill", "ssi", [UNIT, "all", signal]), True
    for signal in (0, 9, 19, 32, 65, -1):
        yield observe("Signal", "si", [UNIT, signal]), True


def chosen_devices():
    for nodes in ("/dev/sda", "/dev/mem", "/dev/kmsg", "/dev/vda1", "/dev/nvidia0/../mem", "/dev/nvidia", "/dev/nvidia99999999999", "/dev/dri/../sda", "char-mem", "block-*", "/dev/*",
                  "/dev/nvidia0 /dev/mem", "/", "/dev/nvidiactl-x", "/dev/kfd/"):
        yield inventory(nodes=nodes), True
    for port in (0, 1, 22, 80, 7747, 22999, 28000, 65535):
        yield start(id=executor(900005), ports=[port]), True
        yield start(id=executor(900005), ports=[23000, port]), True
    yield start(id=executor(900005), gpus=["GPU-of-another-host"]), True


def chosen_sizes():
    big = "x" * (4 << 20)
    yield start(id=executor(900006), argv=[MARK, big.encode()]), True
    yield start(id=executor(900006), env=[b"A=" + big.encode()]), True
    yield start(id=executor(900006), cwd=b"/" + big.encode()), True
    yield start(id=executor(900006), secrets=[("x", big.encode())]), True
    yield start(id=executor(900006, role=big)), True
    yield start(id=executor(900006), argv=[b"x"] * 5000), True
    yield start(id=executor(900006), env=[b"A=b"] * 9000), True
    yield start(id=executor(900006), secrets=[(f"s{i}", b"") for i in range(300)]), True
    yield start(id=executor(900006), gpus=[f"GPU-{i}" for i in range(1000)]), True
    yield start(id=executor(900006), ports=list(range(23000, 23100))), True
    yield start(id=executor(900006), extra=[("io", ("a(sttuuu)", [("/home", 1, 1, 1, 1, 1)] * 1000))]), True
    yield inventory(extra=[("labels", ("as", ["a=b"] * 5000))]), True
    yield units("Stop", "s", [big]), True
    yield units("Put", "ssay", [UNIT, "stop", bytes(5000)]), True
    yield units("SetRendezvous", "stuaaya{sv}", [UNIT, 1, 0, [b"A=" + big.encode()], []]), True
    yield session(environment=[f"PRIMUS_X{i}=y" for i in range(1000)]), True
    yield session(environment=["PRIMUS_X=" + big]), True
    yield hook(environment=[*TOLD] * 1000), True
    yield hook(timeout=0), True
    yield hook(timeout=2**64 - 1), True
    yield observe("Usage", "as", [[UNIT] * 2000]), True
    yield observe("Widen", "hu", [PIPE[0], 0]), True
    yield observe("Widen", "hu", [PIPE[0], 2**32 - 1]), True
    for n in NUMBERS[7:]:
        yield start(id=executor(900007), cpu=n, memory=n, job_memory=n, runtime=n, grace=n, tasks=2**32 - 1), False
        yield units("MakeSlice", "utttu", [900007, n, n, n, 10001]), True
        yield memory(job=900007, size=n), True
    yield start(id=executor(0)), True
    yield start(id=executor(900007, attempt=0)), True
    yield start(id=executor(900007, job_uid=bytes(16))), True
    yield start(id=executor(900007, job_uid=b"")), True
    yield start(id=executor(900007), kind=200), True
    yield start(id=executor(900007), pipe=2**32 - 1), True
    yield start(id=executor(900007), argv=[]), True


def chosen_forms():
    for path, interface, member, signature, values in templates():
        if signature:
            yield (path, interface, member, "", []), True
        yield (path, interface, member, signature + "s", [*values, "more"]), True
        yield (path, interface, member, "v", [("s", "x")]), True
    for member in ("StartUnit", "StartTransientUnit", "SetUnitProperties", "Reload", "Exec", "", "A" * 255, "start"):
        yield units(member or "X", "s", ["x"]), True
        yield (PATH, "org.freedesktop.systemd1.Manager", member or "X", "ss", ["ssh.service", "replace"]), True
    for path in ("/", "/org", "/org/primus", PATH + "/x", "/org/freedesktop/systemd1"):
        yield (path, "org.primus.Starter1.Units", "Stop", "s", ["ssh.service"]), True
    yield (PATH, "org.freedesktop.DBus.Properties", "Set", "ssv", ["org.primus.Starter1.Units", "X", ("s", "x")]), True
    yield (PATH, "org.freedesktop.DBus.Properties", "GetAll", "s", ["org.primus.Starter1.Units"]), False
    yield (PATH, "org.freedesktop.DBus.Introspectable", "Introspect", "", []), False


def chosen():
    """What the calls are about is there: an executor, its job's directory."""
    for call in (inventory(), work(), start(argv=[b"/bin/sleep", b"1000"])):
        yield call, False
    yield from chosen_texts()
    yield inventory(), False
    for part in (chosen_users, chosen_units, chosen_devices, chosen_sizes, chosen_forms):
        yield from part()
    yield inventory(), False


# ---- random ones

def odd(kind, dice):
    if kind in "sog" or kind == "ay":
        text = dice.choice([*TEXTS[:13], *UNITS[:20], UNIT, WORK, "", "x" * dice.randrange(300), "".join(chr(dice.randrange(1, 0x500)) for _ in range(dice.randrange(40)))])
        text = text.replace("\0", "")
        return text.encode() if kind == "ay" else text
    if kind == "h":
        return dice.choice((NULL, *PIPE))
    if kind == "v":
        inside = dice.choice(("s", "u", "t", "b", "as", "ay", "a{sv}"))
        return (inside, change(inside, [] if inside[0] == "a" else 0 if inside != "s" else "", dice, 1))
    bits = {"y": 8, "b": 1, "q": 16, "n": 15, "i": 31, "u": 32}.get(kind, 64)
    number = dice.choice((*NUMBERS, dice.getrandbits(64), dice.randrange(64)))
    return number % (1 << bits) * (dice.choice((1, -1)) if kind == "i" else 1)


def change(kind, value, dice, chance):
    """The value, with each part of it another one by that chance."""
    if kind == "ay" or kind[0] not in "a({":
        return odd(kind, dice) if dice.random() < chance else value
    if kind[0] in "({":
        out, rest = [], kind[1:-1]
        for each in value:
            n = one(rest)
            out.append(change(rest[:n], each, dice, chance))
            rest = rest[n:]
        return tuple(out)
    inside = kind[1:]
    value = [change(inside, each, dice, chance) for each in value]
    if dice.random() < chance and (value or inside[0] not in "({"):
        some = value or [odd(inside, dice)] if inside[0] != "a" or inside == "ay" else value
        value = (some * dice.choice((0, 2, 3, 70)))[:dice.choice((1, 2, 5, 200))]
    return value


def strange(templates_, dice):
    path, interface, member, signature, values = dice.choice(templates_)
    if dice.random() < 0.02:
        signature, values = "s", [odd("s", dice)]
    out, rest = [], signature
    chance = dice.choice((0.02, 0.1, 0.3))
    for value in values:
        n = one(rest)
        out.append(change(rest[:n], value, dice, chance))
        rest = rest[n:]
    return (path, interface, member, signature, out)


def plant():
    """What is agentd's own is made to lead elsewhere."""
    for link, to in ((f"/var/lib/primus-agent/bundles/{UID}", "/root"), ("/var/lib/primus-agent/bundles/7", "/etc/shadow"), ("/run/primus/agent/tail", "/etc/shadow"),
                     ("/var/lib/primus-agent/progress/x", "/etc/shadow"), ("/etc/primus/node/x", "/etc/shadow")):
        try:
            os.symlink(to, link)
        except OSError:
            continue


def garbage():
    """No message at all, and the beginning of an endless one."""
    for data in (b"\0AUTH EXTERNAL 30\r\n", b"x" * 100000, b"\0" * 1000, b"\0AUTH ANONYMOUS\r\nBEGIN\r\n"):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(SOCKET)
            try:
                s.sendall(data)
            except OSError:
                pass
    for data in (b"l\1\0\1" + b"\xff" * 12, b"B\1\0\1" + bytes(12), b"l\1\0\1\0\0\0\0\1\0\0\0\0\0\0\0" * 4, os.urandom(4096)):
        one_ = Starter()
        try:
            one_.socket.sendall(data)
        except OSError:
            pass
        one_.socket.close()


def main(seed, n):
    dice = random.Random(seed)
    starter = Starter()
    wrong, said = [], collections.Counter()
    count = refused = 0
    plant()
    garbage()
    for call, must in chosen():
        count += 1
        try:
            answers = [*starter.send(call), *starter.settle()]
        except (AssertionError, OSError) as e:
            raise SystemExit(f"{call[2]}: {e}: {str(call)[:500]}") from e
        for _, name in answers:
            refused += bool(name)
            # Nothing that has to be refused gets as far as systemd, whatever that makes of it.
            if must and (not name or name.startswith("org.freedesktop.systemd1.")):
                wrong.append(f"{name}: {str(call[2:])[:300]}")
    good = templates()
    for _ in range(n):
        for _, name in [*starter.send(strange(good, dice)), *starter.settle(most=200)]:
            said[name] += 1
    for _, name in starter.settle():
        said[name] += 1
    print(json.dumps({"chosen": count, "refused": refused, "wrong": wrong, "random": sum(said.values()), "answers": said}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
