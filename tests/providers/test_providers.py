# SPDX-License-Identifier: Apache-2.0
"""Providers of hosts by demand (docs/providers.md), as primus-provider@ starts them, with stand-ins for what they call: systemd-run,
systemctl, primusctl, the CLIs of clouds. What they are asked is never run by a shell, and one token is one instance."""
import concurrent.futures
import configparser
import json
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
OURS = {name: TOP / "tools/providers" / name for name in ("nspawn", "qemu", "wol")}
EXAMPLES = {name: TOP / "examples/providers" / name for name in ("aws", "gcp", "slurm")}
ALL = {**OURS, **EXAMPLES}
VERBS = ("list", "up", "down")
CLUSTER = "3fa81c20" + "0" * 24
TOKEN = "3fa81c20-0123456789abcdef"
OTHER = "3fa81c20-0000000000000001"
SECRET = "primus1.sesame"

PROVIDER_KEYS = set("Min Max Spare IdleSec StartSec MinLifeSec LostSec StartingMax UpPerMinute MaxCostPerHour Pools PowerOff Master".split())
SHAPE_KEYS = set("Cpus Memory Gpus GpuModel GpuMemory Shm Labels Max CostPerHour".split())

# Units, as a directory of files: Description and ActiveState.
SYSTEMD = r"""#!{python}
import fnmatch, json, os, pathlib, sys
units, log = pathlib.Path({units!r}), pathlib.Path({log!r})
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
with log.open("a") as f:
    f.write(json.dumps([name, *words]) + "\n")
broken = pathlib.Path({units!r} + ".broken")
if broken.exists():
    sys.exit(int(broken.read_text()))
if name == "systemd-run":
    unit = next(w for w in words if w.startswith("--unit=")).partition("=")[2]
    if (units / unit).exists():
        sys.exit("Unit " + unit + " already exists.")
    for word in words:
        secret = word.partition("primus.join:")[2]
        if secret and os.path.isabs(secret):
            s = os.stat(secret)
            (units.parent / "secret").write_text(oct(s.st_mode & 0o7777) + " " + open(secret).read())
    description = next(w for w in words if w.startswith("--description=")).partition("=")[2]
    (units / unit).write_text("active\n" + description)
elif words[0] == "show":
    for path in sorted(units.iterdir()):
        if fnmatch.fnmatchcase(path.name, words[-1]):
            state, _, description = path.read_text().partition("\n")
            print(f"Id={{path.name}}\nLoadState=loaded\nActiveState={{state}}\nDescription={{description}}\n")
    if "*" not in words[-1] and not (units / words[-1]).exists():
        print(f"Id={{words[-1]}}\nLoadState=not-found\nActiveState=inactive\nDescription=x\n")
elif words[0] in ("stop", "reset-failed"):
    (units / words[-1]).unlink(missing_ok=True)
else:
    sys.exit(1)
"""


class Provider:
    """One that is set up in a directory of the test's."""

    def __init__(self, top, kind, name="lab"):
        self.top, self.kind, self.name = top, kind, name
        self.etc, self.state, self.bin, self.units, self.calls_file = top / "etc" / name, top / "state", top / "bin", top / "units", top / "calls"
        for directory in (self.etc, self.state, self.bin, self.units, top / "tree/usr"):
            directory.mkdir(parents=True, exist_ok=True)
        self.state.chmod(0o700)
        for verb in VERBS:
            (self.etc / verb).symlink_to(ALL[kind] / verb)
        (self.etc / "provider.conf").write_text("[Provider]\nMax=4\n[Shape small]\nCpus=2\nMemory=4G\n")
        text = SYSTEMD.format(python=sys.executable, units=str(self.units), log=str(self.calls_file))
        for program in ("systemd-run", "systemctl"):
            self.stand_in(program, text)

    def stand_in(self, program, text):
        (self.bin / program).write_text(text)
        (self.bin / program).chmod(0o755)

    def run(self, verb, request, **environment):
        data = request if isinstance(request, bytes) else (json.dumps(request) + "\n").encode()
        # Not the machine's own: what has no stand-in is missing.
        e = {"PATH": str(self.bin), "PRIMUS_PROVIDER": self.name, "PRIMUS_VERB": verb, "PRIMUS_TOKEN": TOKEN, "PRIMUS_CLUSTER": CLUSTER,
             "PRIMUS_DIRECTORY": str(self.state), "PRIMUS_PROVIDERS": str(self.top / "etc"), "LANG": "C.UTF-8", **environment}
        return subprocess.run([self.etc / verb], input=data, capture_output=True, env=e, cwd=self.state, timeout=60)

    def ok(self, verb, request):
        """What it prints, each line an object."""
        done = self.run(verb, request)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def list(self):
        return self.ok("list", {"cluster": CLUSTER})

    def calls(self, program):
        if not self.calls_file.exists():
            return []
        return [words[1:] for words in map(json.loads, self.calls_file.read_text().splitlines()) if words[0] == program]


def up_of(token=TOKEN, **more):
    return {"token": token, "node": "lab-17", "shape": "small", "join": f"n1:7747 lab-17 {SECRET}", "labels": ["rack=a"], "deadline": 1700000000, **more}


def down_of(token=TOKEN, **more):
    return {"token": token, "id": "", "node": "lab-17", **more}


@pytest.fixture(params=["nspawn", "qemu"])
def local(request, tmp_path):
    """One whose hosts are units of this machine."""
    p = Provider(tmp_path, request.param)
    image = tmp_path / "image"
    image.write_text("")
    (p.etc / "nspawn.conf").write_text(f"[Nspawn]\nTree={tmp_path}/tree\nNetwork=zone=primus\nArguments=--bind=/data '--x=$HOME a'\nProperties=IOWeight=50\n")
    (p.etc / "qemu.conf").write_text(f"[Qemu]\nImage={image}\nFormat=raw\nNetwork=user\nArguments=-device 'x,y=$HOME a'\nProperties=IOWeight=50\n")
    return p


# ---- what all of them are ----


def test_scripts_are_in_order():
    if not shutil.which("shellcheck"):
        pytest.skip("no shellcheck: tools/install-deps test")
    scripts = [path for directory in EXAMPLES.values() for path in sorted(directory.iterdir()) if path.suffix != ".conf"]
    assert len(scripts) == 12
    done = subprocess.run(["shellcheck", "-x", *scripts], capture_output=True, text=True, cwd=TOP)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", ALL)
def test_executables(kind):
    for verb in VERBS:
        path = ALL[kind] / verb
        assert stat.S_IMODE(path.stat().st_mode) & 0o7777 in (0o755, 0o775), path  # as the checkout's umask has it
        first = path.read_text().splitlines()[0]
        assert first == ("#!/usr/bin/python3 -IB" if kind in OURS else "#!/bin/sh"), path
    if kind in EXAMPLES:
        for verb in VERBS:
            head = " ".join(line.lstrip("# ") for line in (ALL[kind] / verb).read_text().splitlines()[:8] if line.startswith("#"))
            assert "AN EXAMPLE: checked by shellcheck only, never run against the real service" in head


@pytest.mark.parametrize("kind", ALL)
def test_provider_conf(kind):
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str
    parser.read_string((ALL[kind] / "provider.conf").read_text())
    shapes = [s for s in parser.sections() if s != "Provider"]
    assert shapes and all(re.fullmatch(r"Shape [A-Za-z0-9][A-Za-z0-9_-]{0,31}", s) for s in shapes)
    assert set(parser["Provider"]) <= PROVIDER_KEYS
    for shape in shapes:
        assert set(parser[shape]) <= SHAPE_KEYS and "Cpus" in parser[shape]


def test_keys_are_those_of_the_document():
    text = (TOP / "docs/providers.md").read_text()
    told = set(re.findall(r"^\| `([A-Za-z]+)=`", text, re.M))
    assert told == PROVIDER_KEYS | SHAPE_KEYS


@pytest.mark.parametrize("request_", [
    b"", b"x", b"[]", b"null", b'"x"', b"{}", b"\xff\xfe", b"[" * 60000, b" " * 70000 + b"{}", b'{"token": 1, "id": [], "cluster": {}}',
    *(json.dumps({**up_of(), "id": "", "cluster": CLUSTER, key: value}).encode() for key in ("token", "cluster") for value in (
        "", "../../x", f"{TOKEN}\n", f"{TOKEN};id", "$(id)", "3FA81C20-0123456789ABCDEF", "-" * 25, 7, None, [TOKEN], "x" * 4000))])
@pytest.mark.parametrize("kind", OURS)
def test_bad_requests(tmp_path, kind, request_):
    """Nothing is called, nothing is written; one line says why. A key that a verb does not look at may be anything."""
    p = Provider(tmp_path, kind)
    for verb in VERBS:
        key = "cluster" if verb == "list" else "token"
        try:
            value = json.loads(request_)[key]
            if isinstance(value, str) and value in (TOKEN, CLUSTER):
                continue
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        done = p.run(verb, request_)
        assert done.returncode == 1 and done.stdout == b"" and len(done.stderr.splitlines()) == 1, (verb, done)
    assert p.calls("systemd-run") == [] and list(p.state.iterdir()) == []


@pytest.mark.parametrize("more", [{"node": "../x"}, {"node": "a b"}, {"node": "x\n"}, {"node": "--help"}, {"node": "X" * 65}, {"shape": "../x"}, {"shape": "a\nb"}, {"shape": None},
                                  {"join": "a b c\nd"}, {"join": "a b"}, {"join": "a  b c"}, {"join": "a b \u00e4"}, {"join": "a b " + "x" * 2000}, {"join": "a b c,d\0"}])
def test_bad_words(local, more):
    done = local.run("up", up_of(**more))
    assert done.returncode == 1 and done.stdout == b"" and local.calls("systemd-run") == []


def test_wrongly_set_up(local):
    """Status 78: asking again changes nothing."""
    for environment in ({"PRIMUS_PROVIDER": "../x"}, {"PRIMUS_PROVIDER": ""}, {"PRIMUS_DIRECTORY": ""}, {"PRIMUS_DIRECTORY": "/nonexistent"},
                        {"PRIMUS_DIRECTORY": str(local.top) + "/a b"}, {"PRIMUS_VERB": "down"}):
        assert local.run("up", up_of(), **environment).returncode == 78, environment
    assert local.run("up", up_of(shape="large")).returncode == 78
    own = local.etc / f"{local.kind}.conf"
    good = own.read_text()
    for bad in ("", "nonsense", good.replace("Tree=/", "Tree=/nonexistent/").replace("Image=/", "Image=/nonexistent/"), re.sub("Network=.*", "Network=bridge=br0/..", good),
                re.sub("Arguments=.*", "Arguments='", good)):
        own.write_text(bad)
        assert local.run("up", up_of()).returncode == 78, bad
    own.write_text(good)
    for bad in ("[Shape small]\nCpus=two\n", "[Shape small]\nCpus=1\nMemory=lots\n", "x"):
        (local.etc / "provider.conf").write_text(bad)
        assert local.run("up", up_of()).returncode == 78, bad
    (local.etc / "provider.conf").unlink()
    assert local.run("up", up_of()).returncode == 78
    assert local.calls("systemd-run") == [] and list(local.state.iterdir()) == []


# ---- hosts that are units of this machine ----


def test_one_token_is_one_unit(local):
    unit = f"primus-host-lab-{TOKEN}.service"
    assert local.list() == []
    assert local.ok("up", up_of()) == local.ok("up", up_of()) == [{"id": unit}]
    assert len(local.calls("systemd-run")) == 1
    assert local.ok("up", up_of(OTHER, node="lab-18")) == [{"id": f"primus-host-lab-{OTHER}.service"}]
    assert local.list() == [{"id": f"primus-host-lab-{OTHER}.service", "token": OTHER, "state": "running", "node": "lab-18"},
                            {"id": unit, "token": TOKEN, "state": "running", "node": "lab-17"}]
    assert local.ok("down", down_of(id=unit)) == local.ok("down", down_of(id=unit)) == local.ok("down", down_of()) == []
    assert [row["token"] for row in local.list()] == [OTHER]
    assert local.ok("down", down_of(OTHER)) == [] and local.list() == []


def test_asked_for_at_a_time(local):
    """Whoever comes second finds the first one's, and does not take its unit down."""
    slow = (local.bin / "systemd-run").read_text().replace('if name == "systemd-run":', 'if name == "systemd-run":\n    import time; time.sleep(0.5)')
    local.stand_in("systemd-run", slow)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in pool.map(lambda _: local.ok("up", up_of()), range(4)):
            assert done == [{"id": f"primus-host-lab-{TOKEN}.service"}]
    assert len(local.calls("systemd-run")) == 1 and len(local.list()) == 1 and list(local.state.iterdir()) == []


def test_the_secret(local):
    """In a file of root's while it is loaded, and in no argument."""
    local.ok("up", up_of())
    mode, _, text = (local.top / "secret").read_text().partition(" ")
    assert mode == "0o600"
    if local.kind == "nspawn":
        assert text == f"n1:7747 lab-17 {SECRET}"
    else:
        assert text == "io.systemd.credential.binary:primus.join=bjE6Nzc0NyBsYWItMTcgcHJpbXVzMS5zZXNhbWU="
    assert list(local.state.iterdir()) == []
    assert "sesame" not in local.calls_file.read_text() and "c2VzYW1l" not in local.calls_file.read_text()


def test_a_secret_that_was_left(local):
    """The script was killed half way, or somebody has put a link there."""
    (local.state / f"{TOKEN}.join").symlink_to(local.top / "elsewhere")
    local.ok("up", up_of())
    assert not (local.top / "elsewhere").exists() and list(local.state.iterdir()) == []
    (local.state / f"{TOKEN}.join").write_text("x")
    local.ok("down", down_of())
    assert list(local.state.iterdir()) == []


def test_the_command(local):
    local.ok("up", up_of())
    words = local.calls("systemd-run")[0]
    options, command = words[:words.index("--")], words[words.index("--") + 1:]
    assert "--slice=machine.slice" in options and "--property=IOWeight=50" in options
    if local.kind == "nspawn":
        assert command[0] == "systemd-nspawn" and {"--network-zone=primus", "--volatile=overlay", "--machine=lab-17", "--register=no", "--bind=/data"} <= set(command)
        assert "--property=CPUQuota=200%" in options and f"--property=MemoryMax={4 << 30}" in options
        assert "--x=$$HOME a" in command, "systemd would put a variable there"
    else:
        assert command[0] == "qemu-system-x86_64" and command[command.index("-smp") + 1] == "2" and command[command.index("-m") + 1] == "4096"
        assert command[command.index("-smbios") + 1] == f"type=11,path=/run/credentials/primus-host-lab-{TOKEN}.service/primus.join"
        assert "x,y=$$HOME a" in command
    uuids = [words for words in command if re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-", words)]
    assert len(uuids) == 1


def test_hosts_of_others(local):
    """Another provider's units, another cluster's, and names that only look so: neither listed nor stopped."""
    foreign = [f"primus-host-lab2-{TOKEN}.service", f"primus-host-lab-b-{TOKEN}.service", "primus-host-lab-aaaaaaaa-0123456789abcdef.service", "primus-host-lab-x.service",
               f"primus-host-lab-{TOKEN}-x.service", f"primus-host-lab-x-{TOKEN}.service"]
    for unit in foreign:
        (local.units / unit).write_text("active\nPrimus host lab-17")
    assert local.list() == []
    assert local.ok("down", down_of()) == []
    for unit in (foreign[0], foreign[2], "lab-17", "-x"):
        assert local.run("down", down_of(id=unit)).returncode == 1
    assert sorted(path.name for path in local.units.iterdir()) == sorted(foreign)


@pytest.mark.parametrize("state, told", [("active", "running"), ("reloading", "running"), ("activating", "pending"), ("deactivating", "stopping"), ("failed", "failed"),
                                         ("inactive", "stopped"), ("maintenance", "stopped")])
def test_states(local, state, told):
    unit = f"primus-host-lab-{TOKEN}.service"
    (local.units / unit).write_text(f"{state}\nPrimus host lab-17")
    assert local.list() == [{"id": unit, "token": TOKEN, "state": told, "node": "lab-17"}]
    # Whatever became of it: the token has had its instance.
    assert local.ok("up", up_of()) == [{"id": unit}] and local.calls("systemd-run") == []


@pytest.mark.parametrize("description", ["", "Primus host ../x", 'Primus host "},{', "Primus host \u00e4", "Primus host " + "x" * 65])
def test_hostile_descriptions(local, description):
    (local.units / f"primus-host-lab-{TOKEN}.service").write_text(f"active\n{description}")
    assert local.list() == [{"id": f"primus-host-lab-{TOKEN}.service", "token": TOKEN, "state": "running"}]


def test_systemd_does_not_answer(local):
    """No list is better than an empty one."""
    local.ok("up", up_of())
    pathlib.Path(f"{local.units}.broken").write_text("3")
    for verb, request in (("list", {"cluster": CLUSTER}), ("up", up_of(OTHER)), ("down", down_of())):
        done = local.run(verb, request)
        assert done.returncode == 1 and done.stdout == b"" and b"systemctl show ended with status 3" in done.stderr
    assert list(local.state.iterdir()) == []


def test_it_does_not_start(local):
    """What has failed to start is put away: the token may be tried again."""
    good = (local.bin / "systemd-run").read_text()
    local.stand_in("systemd-run", good.replace('write_text("active', 'write_text("failed') + '\nsys.exit(7)\n')
    done = local.run("up", up_of())
    assert done.returncode == 1 and done.stdout == b"" and local.list() == [] and list(local.state.iterdir()) == []
    local.stand_in("systemd-run", good)
    assert local.ok("up", up_of()) == [{"id": f"primus-host-lab-{TOKEN}.service"}]


def test_a_program_is_missing(local):
    (local.bin / "systemd-run").unlink()
    done = local.run("up", up_of())
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and list(local.state.iterdir()) == []


# ---- wake-on-LAN ----


@pytest.fixture
def wire():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        s.settimeout(10)
        yield s


@pytest.fixture
def wol(tmp_path, wire):
    p = Provider(tmp_path, "wol")
    to = f"127.0.0.1:{wire.getsockname()[1]}"
    p.machines = p.etc / "machines"
    p.machines.write_text(f"# NODE MAC SHAPE\n\ngpu-1 3c:EC:ef:01:02:03 small {to} # the first\ngpu-2 3c-ec-ef-01-02-04 small {to}\nold 00:00:00:00:00:09 large {to}\n")
    p.nodes = tmp_path / "nodes"
    p.nodes.write_text("[]")
    p.stand_in("primusctl", f'#!/bin/sh\n[ "$*" = "nodes --json" ] && /bin/cat {p.nodes}\n')
    return p


def node(name, state):
    return {"name": name, "state": state}


def drain(wire):
    packets = []
    wire.settimeout(0.2)
    try:
        while True:
            packets.append(wire.recv(4096))
    except TimeoutError:
        return packets


def test_the_packet(wol, wire):
    assert wol.ok("up", up_of()) == [{"id": "gpu-1", "node": "gpu-1"}]
    packets = drain(wire)
    assert packets and set(packets) == {b"\xff" * 6 + bytes.fromhex("3cecef010203") * 16}
    assert wol.ok("up", up_of()) == [{"id": "gpu-1", "node": "gpu-1"}]
    assert set(drain(wire)) == set(packets), "who asks again may have lost the first"
    assert wol.ok("up", up_of(OTHER)) == [{"id": "gpu-2", "node": "gpu-2"}]
    assert set(drain(wire)) == {b"\xff" * 6 + bytes.fromhex("3cecef010204") * 16}
    done = wol.run("up", up_of("3fa81c20-0000000000000002"))
    assert done.returncode == 69 and b"is in use" in done.stderr and drain(wire) == []
    assert wol.ok("down", down_of()) == wol.ok("down", down_of()) == []
    assert drain(wire) == []
    assert wol.ok("up", up_of("3fa81c20-0000000000000002")) == [{"id": "gpu-1", "node": "gpu-1"}]


def test_woken_machines(wol):
    assert wol.list() == []
    wol.ok("up", up_of())
    row = {"id": "gpu-1", "token": TOKEN, "node": "gpu-1"}
    for nodes in ([], [node("gpu-1", "LOST")], [node("gpu-1", "SUSPECT")], [node("gpu-2", "POWERED_DOWN")], [node("other", "READY")]):
        wol.nodes.write_text(json.dumps(nodes))
        assert wol.list() == [{**row, "state": "pending"}]
    # One of its machines that nobody has woken: masterd takes it over.
    wol.nodes.write_text(json.dumps([node("gpu-2", "READY")]))
    assert wol.list() == [{**row, "state": "pending"}, {"id": "gpu-2", "node": "gpu-2", "shape": "small", "state": "running"}]
    for state in ("READY", "DRAINED", "LOST", "SUSPECT"):
        wol.nodes.write_text(json.dumps([node("gpu-1", state)]))
        assert wol.list() == [{**row, "state": "running"}], "nothing here knows that it is off"
    wol.ok("down", down_of(id="gpu-1"))
    assert wol.list() == [] and list(wol.state.iterdir()) == []


def test_machines_that_are_up(wol):
    """Somebody else has switched it on: it is a node already."""
    wol.nodes.write_text(json.dumps([node("gpu-1", "READY")]))
    assert wol.ok("up", up_of()) == [{"id": "gpu-2", "node": "gpu-2"}]


def test_a_machine_that_is_no_more_in_the_file(wol):
    wol.ok("up", up_of())
    wol.machines.write_text("gpu-2 3c-ec-ef-01-02-04 small 127.0.0.1:9\n")
    assert [row["id"] for row in wol.list()] == ["gpu-1"]
    assert wol.ok("up", up_of()) == [{"id": "gpu-1", "node": "gpu-1"}]
    assert wol.ok("down", down_of()) == [] and wol.list() == []


@pytest.mark.parametrize("said", ["", "{", "null", "[1]", '[{"name": "gpu-1"}]', "7", '{"gpu-1": 1}'])
def test_masterd_does_not_answer(wol, said):
    wol.ok("up", up_of())
    wol.nodes.write_text(said)
    for verb, request in (("list", {"cluster": CLUSTER}), ("up", up_of(OTHER))):
        done = wol.run(verb, request)
        assert done.returncode == 1 and done.stdout == b"" and len(done.stderr.splitlines()) == 1, done
    assert wol.ok("up", up_of()) == [{"id": "gpu-1", "node": "gpu-1"}] and wol.ok("down", down_of()) == []


@pytest.mark.parametrize("line", ["gpu-1", "gpu-1 3c:ec:ef:01:02 small", "gpu-1 3c:ec:ef:01:02:0g small", "../x 3c:ec:ef:01:02:03 small", "gpu-1 3c:ec:ef:01:02:03 a/b",
                                  "gpu-1 3c:ec:ef:01:02:03 small host", "gpu-1 3c:ec:ef:01:02:03 small 127.0.0.1:x", "a 3c:ec:ef:01:02:03 small 1.2.3.4 5",
                                  "a 3c:ec:ef:01:02:03 small\na 3c:ec:ef:01:02:04 small"])
def test_bad_machines(wol, line):
    wol.machines.write_text(line + "\n")
    done = wol.run("up", up_of())
    assert done.returncode == 78 and done.stdout == b"" and re.search(rb"machines:\d: ", done.stderr) and list(wol.state.iterdir()) == []


def test_no_machines(wol):
    assert wol.run("up", up_of(shape="huge")).returncode == 78
    wol.machines.unlink()
    assert wol.run("up", up_of()).returncode == 78


@pytest.mark.parametrize("text", ["", "{", "[]", '{"token": "../x"}', '{"token": 1}', "x" * 600])
def test_bad_state(wol, text):
    """That a machine is in use may not be forgotten because a file is bad."""
    (wol.state / "gpu-1").write_text(text)
    for verb, request in (("list", {"cluster": CLUSTER}), ("up", up_of()), ("down", down_of())):
        done = wol.run(verb, request)
        assert done.returncode == 1 and done.stdout == b"" and b"gpu-1 cannot be read" in done.stderr


# ---- the examples, as far as that goes without what they are for ----


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("token", ["", "$(id)", f"{TOKEN}\n", f"{TOKEN};id", "../x"])
def test_examples_refuse(tmp_path, kind, token):
    if not shutil.which("jq"):
        pytest.skip("no jq: tools/install-deps test")
    for verb in VERBS:
        # They read /etc/primus/providers; here a copy reads its own.
        copy = tmp_path / verb
        copy.write_text((EXAMPLES[kind] / verb).read_text().replace("/etc/primus/providers/$PRIMUS_PROVIDER/settings", str(EXAMPLES[kind] / "settings")))
        log = tmp_path / "log"
        for program in ("aws", "gcloud", "squeue", "sbatch", "scancel"):
            (tmp_path / program).write_text(f"#!/bin/sh\necho called >> {log}\nexit 1\n")
            (tmp_path / program).chmod(0o755)
        done = subprocess.run(["sh", copy], input=json.dumps({**up_of(token), "cluster": token, "id": ""}).encode(), capture_output=True, timeout=60, cwd=tmp_path,
                              env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PRIMUS_PROVIDER": "lab", "PRIMUS_DIRECTORY": str(tmp_path)})
        assert done.returncode == 1 and done.stdout == b"" and b"the request has no" in done.stderr, (verb, done)
        assert not log.exists()
