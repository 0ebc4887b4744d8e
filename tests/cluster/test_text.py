# SPDX-License-Identifier: Apache-2.0
"""Text of a submitter and PID 1's unit files: whatever a job, a call or an order says, systemd has after a daemon-reload what it had
before, and runs nothing that Primus did not tell it to."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree

import pytest
from conftest import PATIENT
from sandbox import AGENTD, SOURCE, Cluster, cluster_name

EVIL = "/home/ml/evil.sh"
ROOTED = "/run/rooted"


# In texts of any kind; "@" stands for what each of them is put behind, where a key wants a beginning.
BAD = ["@\nExecStopPost=+/home/ml/evil.sh", "@\\nExecStopPost=+/home/ml/evil.sh", "@\\", "@\\\\", "@%h%n%%", "@$HOME${HOME}$$", "@'\"`;|", "@\x01\x7f", "@\u2028ExecStopPost=+/home/ml/evil.sh",
       "@ ", "@\r\nExecStopPost=+/home/ml/evil.sh\n", "+sh", "@"]


def place_evil(cluster):
    """The directory and the program of the attack, on every host, and no trace of an earlier one."""
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-c", f"rm -f {ROOTED}; printf '#!/bin/sh\\nid > {ROOTED}\\n' > {EVIL}; chmod 755 {EVIL}; chown ml {EVIL}; "
                     f"mkdir -p /home/ml/x \"$(printf '/home/ml/x\\nExecStopPost=+{EVIL}')\" '/home/ml/y\\' && chown -R ml /home/ml")


def rooted(cluster):
    return [node for node in cluster.nodes if cluster.run(node, "test", "-e", ROOTED).returncode == 0]


def refused(cluster, config, says):
    done = cluster.run("n1", "sh", "-c", "cat > /tmp/text.json; primusctl submit /tmp/text.json", input=json.dumps(config), user="ml")
    assert done.returncode != 0 and says in done.stderr, done.stdout + done.stderr


def job(command="sleep 600", **more):
    return {"name": "text", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": command}], **more}


def test_line_break_in_cwd(cluster):
    """Any submitter became root: the unit's file got a line ExecStopPost=+, which the next daemon-reload read."""
    place_evil(cluster)
    text = json.dumps(job(cwd=f"/home/ml/x\nExecStopPost=+{EVIL}"))
    done = cluster.run("n1", "sh", "-c", "cat > /tmp/text.json; primusctl submit --json /tmp/text.json", input=text, user="ml")
    if done.returncode == 0:
        number = json.loads(done.stdout)["job"]
        cluster.wait_state(number, "RUNNING", "FAILED", "SUCCEEDED")
        for node in cluster.nodes:
            cluster.exec(node, "systemctl", "daemon-reload")
        cluster.kill(number)
    assert rooted(cluster) == []
    assert done.returncode != 0 and "cwd" in done.stderr and "control characters or line breaks" in done.stderr, done.stderr
    refused(cluster, job(cwd="/home/ml/y\\"), "a backslash there")


# ---- everything that is a text

# Counters, and what says how far a unit is: these move by themselves.
MOVING = re.compile("(Current|Available|NSec|Bytes|Operations|Packets|Pages|Peak)$|^(Watchdog|NeedDaemonReload|StateChange|JobTimeout|Effective|Job$)")

LOOK = r"""
import json, re, subprocess, sys
moving = re.compile(sys.argv[1])
listed = subprocess.run(["systemctl", "list-units", "--plain", "--no-legend", "primus-*", "run-primus-shm-*"], capture_output=True, text=True).stdout
units = [line.split()[0] for line in listed.splitlines() if re.match(r"primus-[0-9]|primus-hook-[a-z]*-|run-primus-shm-", line) and line.split()[3] == "running"]
found = {}
for unit in units:
    shown = subprocess.run(["systemctl", "show", "--all", unit], capture_output=True, text=True, errors="replace").stdout
    text = subprocess.run(["systemctl", "cat", unit], capture_output=True, text=True, errors="replace").stdout
    rows = [line.partition("=") for line in shown.split("\n")]
    found[unit] = [{name: value for name, _, value in rows if name and not moving.search(name)}, text]
print(json.dumps(found))
"""


def look(cluster, node):
    """What systemd knows of each unit of an executor, and what its files say."""
    return json.loads(cluster.exec(node, "python3", "-c", LOOK, MOVING.pattern, timeout=200))


def plain(name, value):
    """Units that it has to do with have no order, and when a process began systemd forgets with a reload. systemd 252 writes
    "\\$" and "\\;" in arguments, which it does not know when it reads them."""
    if name in ("After", "Before", "Requires", "Wants", "RequiresMountsFor", "Names"):
        return sorted(value.split())
    return re.sub(r" ; start_time=.*?(?= }|$)", "", re.sub(r"\\([$;])", r"\1", value) if name.startswith("ExecStart") else value)


def directives(text):
    """The names of what the files of a unit set; every line is one, or a heading, a remark."""
    lines = [line for line in text.split("\n") if line and line[0] not in "#["]
    assert [line for line in lines if not re.match("[A-Z][A-Za-z]+=", line)] == []
    return {line.partition("=")[0] for line in lines}


def unchanged_by_a_reload(cluster, nodes, least):
    """systemd has of each unit, and will do when it ends, what it had before it read the files of its own making."""
    n = 0
    known = set()
    for node in nodes:
        before = look(cluster, node)
        cluster.exec(node, "systemctl", "daemon-reload", timeout=120)
        after = look(cluster, node)
        for unit in sorted(before.keys() & after.keys()):  # some end meanwhile
            (properties, text), (again, _) = before[unit], after[unit]
            different = {name: (properties.get(name), again.get(name)) for name in properties.keys() | again.keys()
                         if plain(name, properties.get(name, "")) != plain(name, again.get(name, ""))}
            assert different == {}, (node, unit, text)
            assert properties["WorkingDirectory"] == "/" and properties["ExecStopPost"].count("path=") == 1 and "primus-exit" in properties["ExecStopPost"]
            assert properties.get("ExecStart", "").count("path=") == 1 and "/primus-launch ;" in properties["ExecStart"] and EVIL not in properties.get("ExecStartPre", "")
            known |= directives(text)
            n += 1
    assert known <= EXPECTED, known - EXPECTED
    assert n >= least, n
    return n


# Of a unit of systemd's, all that Primus and its drop-in set.
EXPECTED = set("""Description Slice Type NotifyAccess WatchdogSec TimeoutStartSec TimeoutStopSec CollectMode KillMode SendSIGKILL OOMPolicy Delegate User NoNewPrivileges IgnoreSIGPIPE
WorkingDirectory Environment EnvironmentFile CPUAccounting MemoryAccounting IOAccounting CPUQuota CPUQuotaPeriodSec CPUWeight MemoryMax MemoryHigh MemorySwapMax AllowedCPUs NUMAPolicy
NUMAMask TasksMax LimitNOFILE LimitNOFILESoft LimitMEMLOCK LimitMEMLOCKSoft SocketBindAllow SocketBindDeny BPFProgram Requires After BindPaths InaccessiblePaths RuntimeMaxSec DevicePolicy
DeviceAllow StandardOutput StandardError SyslogIdentifier LogRateLimitIntervalSec LogRateLimitIntervalUSec LogRateLimitBurst SyslogLevelPrefix LogExtraFields ExecStart ExecStartPre ExecStopPost""".split())


def schema_keys(build):
    """(whether it does anything, type, greatest length, path) of each key of a job that takes a text, from masterd's own tables."""
    program = os.path.join(build, "tests/job-keys")
    if not os.path.exists(program):
        pytest.skip("job-keys is not built")
    return [(live == "live", kind, int(most), path) for live, kind, most, path in (line.split() for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())]


BASE = {"name": "text", "role": [{"roleName": "worker", "num": 1, "vcores": 0, "memoryMb": 1, "argv": ["/bin/sleep", "600"]}]}


def put(config, path, value):
    """config with value at path; "[]" is a list of one, "{}" an object that has it as a value, "{name}" as a name."""
    name, _, rest = path.partition(".")
    key = name.partition("{")[0].removesuffix("[]")
    if name.endswith("}"):
        new = {value: "x"} if name.endswith("{name}") else {"A": value}
    elif name.endswith("[]"):
        old = config.get(key) or [{}]
        new = [put(old[0], rest, value)] if rest else [value]
    else:
        new = put(config.get(key) or {}, rest, value) if rest else value
    return {**config, key: new}


def configs(keys):
    for live, kind, _, path in keys:
        values = [bad.replace("@", "/tmp") for bad in BAD] + (["x" * ((4 << 20) - 4096)] if kind == "text" else [])
        if not live:  # taken for upstream's sake, and kept as it came
            values = ["".join(BAD)]
        for value in values:
            if path in ("role[].command", "role[].argv[]"):
                # It is to run, so that there is a unit to look at.
                role = {name: v for name, v in BASE["role"][0].items() if name != "argv"}
                yield path, {**BASE, "role": [{**role, "argv": ["/bin/sh", "-c", "sleep 600", value]} if "argv" in path else {**role, "command": f"sleep 600; : {value}"}]}
            else:
                yield path, put(BASE, path, value)
                if kind == "map":
                    yield path, put(BASE, path.replace("{}", "{name}"), value)


CALLS = r"""
import json, sys, time
from jeepney import DBusAddress, HeaderFields, new_method_call
from jeepney.io.blocking import open_dbus_connection
bus = open_dbus_connection(bus="SYSTEM")
answers = []
for line in open(sys.argv[1], encoding="utf-8"):
    path, interface, method, signature, body = json.loads(line)
    def real(signature, value):      # JSON knows neither bytes nor tuples
        if isinstance(value, dict) and "bytes" in value: return value["bytes"].encode()
        if isinstance(value, dict) and "tuple" in value: return tuple(real("", v) for v in value["tuple"])
        if isinstance(value, dict): return {k: real("", v) for k, v in value.items()}
        if isinstance(value, list): return [real("", v) for v in value]
        return value
    address = DBusAddress(path, bus_name="org.primus.Master1", interface="org.primus.Master1." + interface)
    while True:
        reply = bus.send_and_get_reply(new_method_call(address, method, signature, tuple(real("", v) for v in body)), timeout=60)
        error = reply.header.fields.get(HeaderFields.error_name)
        if not error or "LimitsExceeded" not in error and "Busy" not in error: break
        time.sleep(0.1)
    answers.append([error or "", reply.body[0] if reply.body and isinstance(reply.body[0], (int, str)) else ""])
print(json.dumps(answers))
"""


def call_all(cluster, calls, user="ml"):
    """(path, interface, method, signature, body) each; its error, or "", and the first of what it answers."""
    path = cluster.exec("n1", "mktemp", user=user).strip()
    try:
        cluster.exec("n1", "sh", "-c", f"cat > {path}", input="".join(json.dumps(c) + "\n" for c in calls), user=user, timeout=200)
        return json.loads(cluster.exec("n1", "python3", "-c", CALLS, path, user=user, timeout=280))
    finally:
        cluster.run("n1", "rm", "-f", path)


MANAGER = "/org/primus/Master1"


def submit_call(config, options=None):
    return MANAGER, "Manager", "Submit", "aya{sv}", [{"bytes": json.dumps(config)}, options or {}]


def settled(cluster):
    """No job is on its way to run any more."""
    def moving():
        return [row["job"] for row in cluster.primusctl_json("list", "--all", user="root") if row["state"] in ("STARTING", "PLACED")]
    time.sleep(1)
    cluster.wait_for(lambda: not moving(), 120, "every job runs or has ended")


@pytest.fixture(scope="module")
def two(build):
    with Cluster(cluster_name(), 2, build=build, conf=[PATIENT]) as cluster:
        cluster.wait_nodes()
        place_evil(cluster)
        yield cluster
        for node in cluster.nodes:
            cluster.exec(node, "systemctl", "daemon-reload", timeout=120)
        cluster.exec("n1", "sh", "-c", "primusctl list --json | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*' | xargs -r -n1 -P4 primusctl kill", timeout=300)
        cluster.wait_for(lambda: not any(look(cluster, node) for node in cluster.nodes), 120, "every unit has gone")
        assert rooted(cluster) == []


def test_every_key_of_a_job(two, build):
    keys = schema_keys(build)
    assert len(keys) > 150 and (True, "text", 4095, "cwd") in keys and (True, "texts", 0, "role[].argv[]") in keys
    wanted = list(configs(keys))
    answers = []
    for i in range(0, len(wanted), 250):
        answers += call_all(two, [submit_call(config) for _, config in wanted[i:i + 250]])
    taken = {path for (path, _), (error, _) in zip(wanted, answers) if not error}
    print(f"{len(wanted)} jobs of {len(keys)} keys, {sum(1 for error, _ in answers if not error)} taken, of the keys {sorted(taken)}")
    assert not {a for a, _ in answers} - {"", "org.primus.Error.BadConfig", "org.primus.Error.NoSuchPool", "org.freedesktop.DBus.Error.InvalidArgs", "org.primus.Error.NoSuchJob",
                                         "org.primus.Error.Refused"}, dict(answers)
    settled(two)
    unchanged_by_a_reload(two, two.nodes, 60)
    assert rooted(two) == []


def text_of(signature, bad):
    """A body of that signature in which every text is bad."""
    def one(s):
        c = s[0]
        if c == "a" and s[1] == "{":
            inner, rest = s[2:].split("}", 1)
            return {bad: ["s", bad] if inner == "sv" else 1}, rest
        if c == "a" and s[1] == "y":
            return {"bytes": bad}, s[2:]
        if c == "a":
            value, rest = one(s[1:])
            return [value], rest
        return (bad if c in "sog" else False if c == "b" else 1), s[1:]
    body = []
    while signature:
        value, signature = one(signature)
        body.append(value)
    return body


def variants(value):
    """JSON made lists of the tuples that jeepney wants for variants."""
    if isinstance(value, dict) and "bytes" not in value:
        return {k: {"tuple": [v[0], variants(v[1])]} if isinstance(v, (list, tuple)) else v for k, v in value.items()}
    return value


def test_every_call(two):
    """Each method of Master1 that takes a text, as its caller, and each option of Submit."""
    root = xml.etree.ElementTree.parse(os.path.join(SOURCE, "dbus/org.primus.Master1.xml")).getroot()
    methods = [(i.get("name").rpartition(".")[2], m.get("name"), "".join(a.get("type") for a in m.iter("arg") if a.get("direction") != "out"))
               for i in root.iter("interface") for m in i.iter("method")]
    methods = [m for m in methods if re.search("[so]|ay|sv", m[2]) and m[1] != "Submit"]
    assert len(methods) > 25
    mine, theirs = [], []
    for interface, method, signature in methods:
        path = {"Manager": MANAGER, "Node": f"{MANAGER}/node/n2"}.get(interface)
        if not path:
            path = f"{MANAGER}/job/{two.submit(BASE)}"
        for bad in BAD:
            body = [variants(v) for v in text_of(signature, bad.replace("@", "/tmp"))]
            (theirs if interface == "Node" else mine).append((path, interface, method, signature, body))
    # The options of Submit, by the tables that read them.
    def table(name, row):
        with open(os.path.join(SOURCE, "masterd", name)) as f:
            return re.findall(row, f.read())
    types = {"cwd": "ay", "env": "aay", "secrets": "a(say)", "bundle": "s", "name": "s", "savepoint": "s", "key": "s"}
    no_text = {"withParent"}
    assert set(table("api/submit-call.c", r'\{ "(\w+)", read_\w+ \}')) - no_text == types.keys()
    types |= {key: signature for key, signature in table("admit/submit-options.c", r'\{ "(\w+)", "(\w+)", "\w+" \}') if signature in ("s", "as")}
    assert "queue" in types and "after" in types
    for key, signature in types.items():
        for bad in BAD:
            text = bad.replace("@", "/tmp")
            value = {"ay": {"bytes": text}, "s": text, "as": [text], "aay": [{"bytes": f"A={text}"}, {"bytes": f"{text}=x"}],
                     "a(say)": [{"tuple": ["secret" if bad == "@" else text, {"bytes": text}]}]}[signature]
            mine.append(submit_call(BASE, {key: {"tuple": [signature, value]}}))
    answers = call_all(two, mine) + call_all(two, theirs, user="root")
    print(f"{len(answers)} calls of {len(methods)} methods and {len(types)} options, {sum(1 for error, _ in answers if not error)} taken")
    two.run("n1", "primusctl", "node", "uncordon", "n2")
    settled(two)
    unchanged_by_a_reload(two, two.nodes, 20)
    assert rooted(two) == []


# ---- every text of an order: masterd was taken over


@pytest.fixture(scope="module")
def lone(build, tmp_path_factory):
    """n1 with an agent that a master of our own can be put before."""
    program = os.path.join(build, "tests/fake-master")
    if not os.path.exists(program):
        pytest.skip("fake-master is not built")
    shared = tmp_path_factory.mktemp("fake")
    for path in (shared, *shared.parents[:2]):
        path.chmod(0o755)
    shutil.copy(program, shared / "fake-master")
    with Cluster(cluster_name(), 1, build=build, binds=[f"{shared}:/fake"], conf=[PATIENT, "agentd.conf:Agent.MetricsJobs=no"]) as cluster:
        place_evil(cluster)
        yield cluster


@contextlib.contextmanager
def ruled(cluster):
    """The agent of n1 follows the lines that are written; yields a function that sends lines and returns the answers."""
    with cluster.process("n1", "/fake/fake-master", "/fake", "n1", "17747", "20s", stdin=subprocess.PIPE) as master:
        def until(word):
            heard = []
            for line in master.stdout:
                heard.append(line)
                if line.startswith(word):
                    return heard
            raise AssertionError("".join(heard))

        def order(*lines):
            """One at a time: its answer."""
            answers = []
            for line in lines:
                master.stdin.write(line + "\n")
                master.stdin.flush()
                answers.append(until(("done start", "error"))[-1])
            return answers
        until("listening")
        cluster.exec("n1", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /run/primus/agent/link; cp /fake/ca.crt /fake/node.crt /fake/node.key /etc/primus/node/; chmod 600 /etc/primus/node/node.key; "
                     f"mkdir -p /etc/primus/agentd.conf.d; printf '[Agent]\\nMaster=127.0.0.1:17747\\n' > /etc/primus/agentd.conf.d/99-test.conf; systemctl start {AGENTD}")
        until("ready")
        yield order


FIELDS = {"cwd": "", "output": "", "env": "A=", "secret": "", "identity": "PRIMUS_X=", "gpu": "", "visible": "", "bundle": "", "cpus": "", "devices": "", "ready": "", "ready-file": "",
          "numa": "", "io": "", "argv": ""}


def test_every_text_of_an_order(lone):
    def word(text):
        return "%" + text.encode().hex()

    with ruled(lone) as order:
        # What the wire calls text is what is tried: a new field of an order, or beside it, is to be a row above.
        with open(os.path.join(SOURCE, "lib/wire/messages.h")) as f:
            header = f.read()
        texts = set(re.findall(r"char \**(\w+)[;\[]", header[header.index("struct start_extra {"):header.index("start_order_done(")]))
        assert texts == {"ready", "ready_file", "cpus", "gpus", "numa", "argv", "cwd", "env", "identity", "visible_gpus", "bundle", "output"}
        job, answers = 0, {}
        for field, head in FIELDS.items():
            for bad in [*BAD, "x" * (4 << 20)]:
                job += 1
                value = head + bad.replace("@", "/tmp")
                argv = f"/bin/sh -c {word('sleep 600')} {word(value)}" if field == "argv" else "/bin/sleep 600"
                setting = "" if field == "argv" else word(f"{field}={value}")
                extra = "ready=file" if field == "ready-file" else ""
                answers[field, bad[:40]] = order(f"start {job} worker 0 1 1000 cwd=/tmp {extra} {setting} -- {argv}" if field != "cwd" else f"start {job} worker 0 1 1000 {setting} -- {argv}")[0]
        taken = [key for key, answer in answers.items() if answer.startswith("done")]
        print(f"{len(answers)} orders, {len(taken)} taken")
        for field in ("cwd", "output", "identity", "gpu", "visible", "cpus", "devices", "ready-file", "io"):
            for bad in BAD:
                if re.search("[\x01\n\u2028]", bad):
                    assert (field, bad[:40]) not in taken, (field, bad)
        assert "control characters" in answers["cwd", BAD[0][:40]]
        assert ("argv", BAD[0][:40]) in taken and ("env", BAD[0][:40]) in taken
        unchanged_by_a_reload(lone, ["n1"], 30)
        assert rooted(lone) == []
        # An agent that finds them again knows them all, and they end with a record.
        lone.exec("n1", "systemctl", "restart", AGENTD)
        for n in range(1, job + 1):
            lone.run("n1", "systemctl", "stop", "--no-block", f"primus-{n}-worker-0.1.service")
        lone.wait_for(lambda: not look(lone, "n1"), 60, "every unit has gone")
        assert rooted(lone) == []
        journal = lone.exec("n1", "journalctl", "-q", "--no-pager", "-o", "cat", "-u", AGENTD)
        assert "no exit record" not in journal
