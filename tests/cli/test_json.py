# SPDX-License-Identifier: Apache-2.0
"""What --json prints is a contract (docs/json.md): of every command the whole text is kept below json/, and compared.

PRIMUS_TEST_KEEP=1 writes these files anew, for a change of the contract that is meant."""
import os
import pathlib

import pytest
import scene

KEPT = pathlib.Path(__file__).parent / "json"
COMMANDS = {
    "list": ["list", "-a"],
    "status": ["status", 1],
    "status-failed": ["status", 2],
    "status-array": ["status", 4],
    "status-element": ["status", 5],
    "why-running": ["why", 1],
    "why-ended": ["why", 2],
    "why-waiting": ["why", 3],
    "events": ["events", 1],
    "data": ["data", 1],
    "queue": ["queue"],
    "pools": ["pools"],
    "nodes": ["nodes"],
    "node": ["node", "show", "n1"],
    "usage": ["usage", "--by=day,pool,user,job,role"],
    "usage-pool": ["usage", "--by=pool"],
    "savepoints": ["savepoint", "list"],
    "savepoint": ["savepoint", "show", "one"],
    "top": ["top", 1],
    "top-jobs": ["top"],
    "tokens": ["token", "list"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_whole(master, ctl, name):
    scene.build(master)
    r = ctl(*COMMANDS[name], "--json")
    assert r.returncode == 0, r.stderr
    path = KEPT / f"{name}.json"
    if os.environ.get("PRIMUS_TEST_KEEP"):
        path.write_text(r.stdout)
    assert r.stdout == path.read_text()
