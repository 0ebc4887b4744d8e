#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Submits N jobs PREFIX.K.I (K thousands) as fast as the master takes them, and goes on when it dies in the middle.
Standard output: "NAME NUMBER" for each that was acknowledged, "NAME ?" for each of which nobody knows.

    submitter.py PREFIX N < CONFIG
"""
import sys
import time

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call
from jeepney.io.blocking import open_dbus_connection

MANAGER = DBusAddress("/org/primus/Master1", "org.primus.Master1", "org.primus.Master1.Manager")
WINDOW = 32


def main():
    prefix, n, config = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
    bus = open_dbus_connection("SYSTEM")
    waiting, i = {}, 0
    while i < n or waiting:
        while i < n and len(waiting) < WINDOW:
            name = f"{prefix}.{i // 1000}.{i}"
            call = new_method_call(MANAGER, "Submit", "aya{sv}", (config, {"name": ("s", name)}))
            serial = next(bus.outgoing_serial)
            bus.send(call, serial=serial)
            waiting[serial] = name
            i += 1
        try:
            reply = bus.receive(timeout=60)
        except TimeoutError:
            break
        name = waiting.pop(reply.header.fields.get(HeaderFields.reply_serial), None)
        if name is None:
            continue
        if reply.header.message_type == MessageType.method_return:
            print(name, reply.body[0], flush=True)
        else:
            print(name, "?", flush=True)
            time.sleep(0.02)  # the master is being started again
    for name in waiting.values():
        print(name, "?")


if __name__ == "__main__":
    main()
