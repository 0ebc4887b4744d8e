# SPDX-License-Identifier: Apache-2.0
"""The machines there are, and which of them has been woken for which token: the file $PRIMUS_DIRECTORY/NODE."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import provider  # noqa: E402

LINE_MAX, MACHINES_MAX = 512, 10000
PRIMUSCTL = "primusctl"


class Machine:
    def __init__(self, node, mac, shape, to="255.255.255.255:9"):
        host, _, port = to.partition(":")
        if not provider.valid("node", node) or not provider.valid("shape", shape):
            raise ValueError("no good node's name, or shape")
        if not re.fullmatch(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}", mac, re.ASCII):
            raise ValueError("no hardware address")
        if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}", host, re.ASCII) or port and not re.fullmatch(r"\d{1,5}", port, re.ASCII):
            raise ValueError("no BROADCAST[:PORT]")
        self.node, self.shape, self.to = node, shape, (host, int(port or 9))
        self.mac = bytes.fromhex(re.sub("[:-]", "", mac))


def read(settings):
    """{node: Machine} in the order of the file."""
    path, machines = os.path.join(settings.directory, "machines"), {}
    try:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                words = line[:LINE_MAX].partition("#")[0].split()
                if not words:
                    continue
                try:
                    machine = Machine(*words)
                    if machine.node in machines:
                        raise ValueError("this node is there twice")
                except (TypeError, ValueError) as e:
                    raise provider.Failure(f"{path}:{number}: {e if isinstance(e, ValueError) else 'expected NODE MAC SHAPE [BROADCAST[:PORT]]'}", provider.CONFIG) from e
                machines[machine.node] = machine
    except (OSError, UnicodeDecodeError) as e:
        raise provider.Failure(f"{path}: {e}", provider.CONFIG) from e
    if len(machines) > MACHINES_MAX:
        raise provider.Failure(f"{path}: more than {MACHINES_MAX} machines", provider.CONFIG)
    return machines


def taken(settings):
    """{node: {"token": ..., "seen": ...}}; seen: it has been connected since."""
    found = {}
    for name in os.listdir(settings.state):
        if not provider.valid("node", name):
            continue
        try:
            with open(os.path.join(settings.state, name), encoding="ascii") as f:
                row = json.loads(f.read(LINE_MAX))
        except FileNotFoundError:
            continue
        except ValueError:
            row = None
        if not isinstance(row, dict) or not provider.valid("token", row.get("token")):
            raise provider.Failure(f"{settings.state}/{name} cannot be read; remove it, if {name} is not in use")
        found[name] = row
    return found


def take(settings, node, token, seen=False):
    path = os.path.join(settings.state, node)
    with open(f"{path}+", "w", encoding="ascii") as f:
        json.dump({"token": token, "seen": seen}, f)
        f.flush()
        os.fsync(f.fileno())
    os.rename(f"{path}+", path)


def forget(settings, node):
    os.unlink(os.path.join(settings.state, node))


def connected():
    """Nodes that masterd hears of."""
    try:
        rows = json.loads(provider.run(PRIMUSCTL, "nodes", "--json"))
        return {row["name"] for row in rows if row["state"] not in ("LOST", "SUSPECT", "JOINING", "POWERED_DOWN")}
    except (ValueError, TypeError, KeyError) as e:
        raise provider.Failure("primusctl nodes --json said something else") from e
