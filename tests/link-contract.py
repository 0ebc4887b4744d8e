#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The contract of the link between the daemons: dbus/org.primus.Link1.xml and lib/wire/messages.h name the same types, one-way
methods answer nothing, and everything that goes in or comes out ends in a dictionary for later additions.

usage: link-contract.py SOURCE"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

source = pathlib.Path(sys.argv[1])
header = (source / "lib/wire/messages.h").read_text(encoding="utf-8")
signatures = {}
for name, value in re.findall(r"^#define (LINK_\w+_SIGNATURE) (.+)$", header, re.MULTILINE):
    signatures[name] = "".join(part[1:-1] if part.startswith('"') else signatures[part]
                               for part in re.findall(r'"[^"]*"|LINK_\w+_SIGNATURE', value))

# Where each struct travels.
PLACES = {
    "LINK_ID_SIGNATURE": [("FeedOpen", "id"), ("FeedReport", "id"), ("ScanBatch", "id"), ("Tail", "id"), ("Ready", "id"), ("Taken", "id"), ("Stop", "id"), ("Signal", "id"),
                          ("ExitCommitted", "id"), ("Unkillable", "id"), ("Pressure", "id"), ("Grant", "id"), ("FeedControl", "id"), ("FeedSource", "id"), ("ReadLog", "id"),
                          ("Capture", "id"), ("FindInLog", "id"), ("Trace", "id"), ("TrialReport", "id"), ("AskSearch", "id")],
    "LINK_WELCOME_SIGNATURE": [("Hello", "welcome")],
    "LINK_INVENTORY_SIGNATURE": [("Register", "inventory")],
    "LINK_UNIT_SIGNATURE": [("Register", "units")],
    "LINK_EXIT_SIGNATURE": [("Register", "exits"), ("Exited", "exit")],
    "LINK_COUNTERS_SIGNATURE": [("FeedReport", "counters")],
    "LINK_ORDER_SIGNATURE": [("Start", "order")],
}
failures = []
methods = {}
for method in ElementTree.parse(source / "dbus/org.primus.Link1.xml").getroot().iter("method"):
    arguments = [(a.get("name"), a.get("type"), a.get("direction")) for a in method.iterfind("arg")]
    methods[method.get("name")] = {name: kind for name, kind, _ in arguments}
    inputs, outputs = ([a for a in arguments if a[2] == direction] for direction in ("in", "out"))
    if not inputs or inputs[-1][1] != "a{sv}":
        failures.append(f"{method.get('name')}: its arguments do not end in a{{sv}}")
    if outputs and outputs[-1][1] != "a{sv}":
        failures.append(f"{method.get('name')}: its results do not end in a{{sv}}")
    if method.find("annotation[@name='org.freedesktop.DBus.Method.NoReply']") is not None and outputs:
        failures.append(f"{method.get('name')}: a one-way message has results")

if set(PLACES) != set(signatures):
    failures.append(f"messages.h has {sorted(signatures)}, this test knows {sorted(PLACES)}")
for name, places in PLACES.items():
    for method, argument in places:
        kind = methods.get(method, {}).get(argument, "nothing")
        if signatures.get(name) not in (kind, kind.removeprefix("a")):
            failures.append(f"{method}({argument}) is {kind} in the XML, {signatures.get(name)} in messages.h")
for failure in failures:
    print(f"link-contract: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
