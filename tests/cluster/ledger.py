# SPDX-License-Identifier: Apache-2.0
"""Jobs that write down what happens to them: every executor appends lines to one file that all hosts share, one write() a
line, so what ran where, when and how often is known without asking Primus."""
import collections
import itertools
import os

COUNTER = itertools.count(1)
Entry = collections.namedtuple("Entry", "what role index attempt node time text")

# say WHAT [TEXT]: a line of the ledger. Commands are bash's, so no process is needed, which a signal might hit.
# rest MILLISECONDS: for traps. systemd may still be sending SIGTERM to whatever is there when the first sleep of one begins.
PRELUDE = ('say() { echo "$1 $PRIMUS_ROLE $PRIMUS_INDEX $PRIMUS_ATTEMPT $PRIMUS_NODE $EPOCHREALTIME $2" >> "$LEDGER"; }; '
           'rest() { local end=$((${EPOCHREALTIME/[^0-9]/} + $1 * 1000)); while [ ${EPOCHREALTIME/[^0-9]/} -lt $end ]; do sleep 0.1; done; }; '
           'say start; ')


class Ledger:
    def __init__(self, shared_dir):
        name = f"ledger-{next(COUNTER)}"
        self.path = shared_dir / name
        self.inside = f"/shared/{name}"
        self.path.touch()
        os.chmod(self.path, 0o666)

    def entries(self, what=None, index=None, attempt=None, role=None, node=None):
        """In the order in which they were written; times in seconds."""
        found = []
        for line in self.path.read_text().split("\n")[:-1]:  # the last one may be on its way
            fields = line.split(" ", 6)
            e = Entry(fields[0], fields[1], int(fields[2]), int(fields[3]), fields[4], float(fields[5]), fields[6])
            if all(wanted is None or wanted == seen for wanted, seen in
                   ((what, e.what), (index, e.index), (attempt, e.attempt), (role, e.role), (node, e.node))):
                found.append(e)
        return found

    def attempts(self):
        """How often each (role, index, attempt) was started, and how often it came to its end."""
        return (collections.Counter((e.role, e.index, e.attempt) for e in self.entries("start")),
                collections.Counter((e.role, e.index, e.attempt) for e in self.entries("end")))

    def config(self, command, num=1, name="ledger", job=None, **role):
        """A job of one role `worker`; command is shell and may use `say`."""
        return {"name": name, "env": {"LEDGER": self.inside}, **(job or {}), "role": [self.role(command, num=num, **role)]}

    @staticmethod
    def role(command, **keys):
        return {"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": PRELUDE + command, **keys}


def failover(times=1, policy="FAIL_APP", restart="ON_FAILURE"):
    return {"commonFailoverPolicy": {"restartType": restart, "maxFailureTimes": times, "maxFailurePolicy": policy}}
