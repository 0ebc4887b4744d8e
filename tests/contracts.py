#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is installed beside the programs, held against each other: D-Bus interfaces, bus policy, activation, polkit actions,
units, settings.

usage: contracts.py SOURCE BUILD"""
import configparser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

source, build = map(pathlib.Path, sys.argv[1:3])
failures = []


def check(good, what):
    if not good:
        failures.append(what)


def xml(name):
    return ElementTree.parse(source / "dbus" / name).getroot()


def interfaces(name):
    return [interface.get("name") for interface in xml(name).iter("interface")]


def calls_are_allowed(bus_name):
    """Every interface of the name's XML may be called by everybody, and nothing may that is not there."""
    policy = xml(f"{bus_name}.conf")
    allowed = {allow.get("send_interface") for allow in policy.iterfind("policy[@context='default']/allow")
               if allow.get("send_destination") == bus_name}
    if (source / f"dbus/{bus_name}.xml").exists():
        ours = {name for name in allowed if name.startswith("org.primus.")}
        check(ours == set(interfaces(f"{bus_name}.xml")), f"{bus_name}.conf allows {sorted(ours)}, not the interfaces of {bus_name}.xml")
    for name in ("Properties", "Introspectable", "Peer"):
        check(f"org.freedesktop.DBus.{name}" in allowed, f"{bus_name}.conf does not allow org.freedesktop.DBus.{name}")
    owners = [policy.get("user") for policy in policy.iter("policy") if policy.find("allow[@own]") is not None]
    check(len(owners) == 1, f"{bus_name}.conf: one user may own the name, not {owners}")
    return owners


def unit(name):
    parser = configparser.RawConfigParser(strict=False, comment_prefixes="#", delimiters="=")
    parser.optionxform = str
    parser.read_string((build / "units" / name).read_text(encoding="utf-8"))
    return parser


for path in sorted((source / "dbus").glob("*.xml")):
    for member in xml(path.name).iter():
        if member.tag in ("method", "signal", "property"):
            check(re.fullmatch(r"[A-Z][A-Za-z0-9]*", member.get("name")), f"{path.name}: member {member.get('name')}")
master_owner, agent_owner = calls_are_allowed("org.primus.Master1"), calls_are_allowed("org.primus.Agent1")

# The starter's vtable says what its interface says.
constants = dict(re.findall(r'^#define (LINK_\w+_SIGNATURE) (.+)$', (source / "lib/wire/messages.h").read_text(encoding="utf-8"), re.M))


def signature(text):
    return "".join(part[1:-1] if part.startswith('"') else signature(constants[part]) for part in re.findall(r'"[^"]*"|LINK_\w+', text))


offered = {name: (signature(taken), signature(given)) for name, taken, given in re.findall(
    r'^        METHOD\("(\w+)", ((?:"[^"]*"|LINK_\w+| )+), ((?:"[^"]*"|LINK_\w+| )+), \w+\),', (source / "starter/calls/connection.c").read_text(encoding="utf-8"), re.M)}
described = {}
for interface in xml("org.primus.Starter1.xml").iter("interface"):
    if interface.get("name") == "org.primus.Starter1.Units":
        for method in interface.iter("method"):
            arguments = {way: "".join(a.get("type") for a in method.iter("arg") if a.get("direction") == way) for way in ("in", "out")}
            described[method.get("name")] = (arguments["in"], arguments["out"])
check(offered and offered == described, f"org.primus.Starter1.xml and starter/calls/connection.c differ in {sorted(set(offered.items()) ^ set(described.items()))}")

actions = xml("org.primus.policy")
for action in actions.iter("action"):
    owner = action.findtext("annotate[@key='org.freedesktop.policykit.owner']")
    check(owner == f"unix-user:{master_owner[0]}", f"{action.get('id')}: polkit answers its owner only, which is {owner}")
named = set(re.findall(r"org\.primus\.(?:manage|see)-[a-z]+", (source / "dbus/org.primus.Master1.xml").read_text(encoding="utf-8")))
check(named == {action.get("id") for action in actions.iter("action")}, f"org.primus.policy does not have the actions {sorted(named)}")

masterd, agentd = unit("primus-masterd.service"), unit("primus-agentd.service")
check(masterd.get("Service", "User") == master_owner[0], "masterd runs as another user than may own its name")
check(agentd.get("Service", "User", fallback="root") == agent_owner[0], "agentd runs as another user than may own its name")
check(not agentd.has_option("Service", "RuntimeDirectory"), "/run/primus must outlive the agent, and is not its user's")
activation = configparser.RawConfigParser(comment_prefixes="#")
activation.read(source / "dbus/org.primus.Master1.service")
check(activation.get("D-BUS Service", "SystemdService") == masterd.get("Install", "Alias"), "the bus activates what enabling does not name")
users = (source / "units/primus.sysusers.conf").read_text(encoding="utf-8")
check(re.search(rf"^u {master_owner[0]} ", users, re.M), f"sysusers makes no user {master_owner[0]}")
users = (source / "units/primus-agent.sysusers.conf").read_text(encoding="utf-8")
check(re.search(rf"^u {agent_owner[0]} ", users, re.M), f"sysusers makes no user {agent_owner[0]}")


def calls_are_audited():
    """Every method of masterd's is in the audit's table, with names for what it shows of the arguments; and every answer to a call
    leaves by the functions that tell the audit."""
    text = (source / "masterd/caller/audit-table.c").read_text(encoding="utf-8")
    rows = re.findall(r'\{ "(\w+)", "(\w+)", AUDIT_(\w+), (?:NULL|"([^"]*)") \}', text)
    table = {(interface, member): shown for interface, member, _, shown in rows}
    check(len(table) == len(rows), "audit-table.c has a method twice")
    known = {}
    for interface in xml("org.primus.Master1.xml").iter("interface"):
        for method in interface.iter("method"):
            known[interface.get("name").rpartition(".")[2], method.get("name")] = [
                arg.get("name") for arg in method.iter("arg") if arg.get("direction", "in") == "in"]
    check(set(table) == set(known), "audit-table.c and org.primus.Master1.xml differ in "
          f"{sorted('.'.join(pair) for pair in set(table) ^ set(known))}: each method changes something, or only reads")
    for pair, shown in table.items():
        names = [None if name == "-" else name.rstrip("*") for name in shown.split()]
        wanted = known.get(pair, [])[:len(names)]
        check(len(names) <= len(known.get(pair, names)) and all(name in (None, want) for name, want in zip(names, wanted)),
              f"audit-table.c: {'.'.join(pair)} has the arguments {known.get(pair)}, not {shown!r}")
    for path in sorted((source / "masterd").rglob("*.c")):
        if path.name not in ("link-object.c", "answer.c"):  # the former answers agents
            check("sd_bus_reply_method_" not in path.read_text(encoding="utf-8"),
                  f"{path.relative_to(source)} answers a call past the audit: use masterd/caller/reply.h")


calls_are_audited()


def settings_are_complete(daemon, file):
    """The keys in the daemon's table, in its commented settings and in its man page are the same."""
    table = source / file
    known = set(re.findall(r'\{\s*(?:CONF_\w+\()?"([A-Z][A-Za-z]+)",\s*"([A-Z][A-Za-z0-9]+)",', table.read_text(encoding="utf-8")))
    # The defaults that --show-config shows are the ones that the file shows.
    initial = {(match[0], match[1]): match[2] for match in re.findall(
        r'\{\s*"([A-Z][A-Za-z]+)",\s*"([A-Z][A-Za-z0-9]+)",[^{}]*?(?:true|false),\s*"([^"]*)"\s*\}', table.read_text(encoding="utf-8"))}
    section, shown = None, {}
    for line in (source / f"units/{daemon}.conf").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"#?\[(\w+)( \w+)?\]", line):
            section = match[1]
        elif match := re.match(r"#([A-Z]\w+)=(.*)", line):
            shown[section, match[1]] = match[2]
        else:
            check(not line or line.startswith("# "), f"units/{daemon}.conf: {line!r} is neither a comment nor a commented setting")
    check(known, f"no table of keys was found in {table.name}")
    check(set(shown) == known, f"units/{daemon}.conf and {file} differ in {sorted(set(shown) ^ known)}")
    check(shown == initial, f"units/{daemon}.conf and {file} have other defaults: {sorted(set(shown.items()) ^ set(initial.items()))}")
    page = source / f"docs/man/primus-{daemon}.conf.5.scd"
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("*")]
    described = set(re.findall(r"\*([A-Z]\w+)=\*", " ".join(lines)))
    check(described == {key for _, key in known}, f"{page.name} and {file} differ in {sorted(described ^ {key for _, key in known})}")


settings_are_complete("masterd", "masterd/conf/conf.c")
settings_are_complete("agentd", "agentd/core/settings.c")



def members_are_sent():
    """What JSON takes out of a dictionary of D-Bus by name, somebody writes by that name."""
    def text(*patterns):
        return "".join(path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(source.glob(pattern)))
    sent = set(re.findall(r'"([A-Za-z]+)"', text("masterd/**/*.c", "lib/wire/*.c")))
    members = re.findall(r'\{ "([A-Za-z]+)", "[^"]+"([^{}]*)\}', text("lib/json/*.c"))
    named = {re.search(r'\.key = "(\w+)"|$', rest)[1] or name for name, rest in members if not re.search(r"\.at\b|\.make\b|ELEMENTSOF", rest)}
    check(len(named) > 100, "lib/json is not read as it is written")
    check(named <= sent, f"lib/json has members that nobody sends: {sorted(named - sent)}")


members_are_sent()


def methods_are_served():
    """Each method of masterd's is at an address of primus-webd's, or docs/rest.md says why not; and the page has each address, with its
    methods. Arguments have the types of the interface."""
    program = build / "tests/unit/webd/route/test-table"
    known = {(interface.get("name").rpartition(".")[2], method.get("name")): "".join(a.get("type") for a in method.iter("arg") if a.get("direction", "in") == "in")
             for interface in xml("org.primus.Master1.xml").iter("interface") for method in interface.iter("method")}
    addresses, served = {}, set()
    for line in subprocess.run([program, "--print"], capture_output=True, text=True, check=True).stdout.splitlines():
        method, path, call, taken = line.split(" ")
        owner, _, member = call.rpartition(".")
        addresses.setdefault(f"{method} {path}", []).append(f"{owner.rpartition('.')[2]}.{member}")
        if owner == "org.freedesktop.DBus.Properties":
            continue
        served.add((owner, member))
        check(known.get((owner, member)) == taken, f"{method} {path} calls {call} with {taken!r}, which takes {known.get((owner, member))!r}")
    table, _, rest = (source / "docs/rest.md").read_text(encoding="utf-8").partition("## What has no address")
    told = {address: methods.split(", ") for address, methods in re.findall(r"^\| `([A-Z]+ \S+)` \| (\w[^|]*) \|", table, re.M)}
    told.pop("GET /v1/events", None)
    check(told == addresses, f"docs/rest.md and webd/route/table.c differ in {sorted(a for a in set(told) | set(addresses) if told.get(a) != addresses.get(a))}")
    without = {tuple(name.split(".")) for row in re.findall(r"^\| (\w+\.[^|]*) \|", rest, re.M) for name in row.split(", ")}
    check(served | without == set(known) and not served & without,
          f"docs/rest.md does not say why these have no address, or they have one: {sorted('.'.join(pair) for pair in ((served | without) ^ set(known)) | (served & without))}")


methods_are_served()

# What every service has at least; one that cannot says why in a comment, by the setting's name.
LEAST = ("CapabilityBoundingSet", "LockPersonality", "NoNewPrivileges", "PrivateMounts", "PrivateTmp", "PrivateDevices", "ProtectClock",
         "ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables",
         "ProtectProc", "ProtectSystem", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID",
         "SystemCallArchitectures", "SystemCallFilter", "UMask", "MemoryDenyWriteExecute", "ProcSubset", "PrivateNetwork", "IPAddressDeny",
         "PrivateUsers")
for path in sorted((build / "units").glob("*.service")):
    text = path.read_text(encoding="utf-8")
    for name in LEAST:
        explained = re.search(rf"^#.*\b{name}\b", text, re.M)
        check(re.search(rf"^{name}=", text, re.M) or explained, f"{path.name} has no {name}=, and no comment with the reason")

if shutil.which("systemd-analyze"):
    with tempfile.TemporaryDirectory() as directory:
        for path in [*(build / "units").glob("*.service"), *(source / "units").glob("*.slice"), *(source / "units").glob("*.mount"), *(source / "units").glob("*.socket"), *(source / "units").glob("*.path")]:
            text = re.sub(r"^(Exec\w+)=.*", r"\1=/bin/true", path.read_text(encoding="utf-8"), flags=re.M)
            (pathlib.Path(directory) / path.name).write_text(text, encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", *sorted(map(str, pathlib.Path(directory).iterdir()))],
                              capture_output=True, text=True)
        ours = [line for line in done.stderr.splitlines() if "primus" in line]
        check(not ours, "systemd-analyze verify: " + "\n".join(ours))
    for unit, most in (("primus-masterd", 1.4), ("primus-agentd", 1.9), ("primus-starter", 2.5), ("primus-first-contact", 1.7), ("primus-join", 1.7), ("primus-alone", 1.0), ("primus-backup", 0.5), ("primus-backup-key", 0.8),
                       ("primus-hook-fence@", 2.6), ("primus-hook-notify@", 1.4), ("primus-provider@", 1.8), ("user/primus-web", 1.5), ("primus-web", 1.2)):
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", f"--threshold={round(most * 10)}", "--no-pager",
                               build / f"units/{unit}.service"], capture_output=True, text=True)
        check(done.returncode == 0, f"systemd-analyze security: {unit}: more than {most}: {done.stdout.strip().splitlines()[-1:]}")

for failure in failures:
    print(f"contracts: {failure}", file=sys.stderr)
sys.exit(bool(failures))
