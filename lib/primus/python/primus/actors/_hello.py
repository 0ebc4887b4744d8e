# SPDX-License-Identifier: Apache-2.0
"""What a host and a pool say of themselves, and whether they go together."""
import os
import socket
import sys

PROTOCOL = 1
REFUSED, UNLIKE = 2, 3  # statuses of a host's process: not to be tried again, and not to be tried on that host


def hello(slots):
    """What a host says."""
    name = os.environ.get("PRIMUS_NODE") or socket.gethostname()
    return {"host": name, "slots": slots, "python": list(sys.version_info[:2]), "order": sys.byteorder, "protocol": PROTOCOL}


def unlike(said):
    """A sentence where its Python and this one's do not go together, or None."""
    name, python = str(said.get("host"))[:64], said.get("python")
    if said.get("protocol") != PROTOCOL:
        return f"{name} has another version of primus.actors than this host"
    if python != list(sys.version_info[:2]):
        return f"{name} runs Python {'.'.join(map(str, python or []))[:16]}, and this is {sys.version_info[0]}.{sys.version_info[1]}"
    if said.get("order") != sys.byteorder:
        return f"{name} has another byte order than this host"
    return None
