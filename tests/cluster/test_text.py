# SPDX-License-Identifier: Apache-2.0
"""Text of a submitter and PID 1's unit files: whatever a job, a call or an order says, systemd has after a daemon-reload what it had
before, and runs nothing that Primus did not tell it to."""
import json

EVIL = "/home/ml/evil.sh"
ROOTED = "/run/rooted"


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
