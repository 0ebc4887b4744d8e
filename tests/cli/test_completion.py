# SPDX-License-Identifier: Apache-2.0
"""bash completion, as bash would call it."""
import json
import os
import subprocess

import pytest
from conftest import SOURCE, environment
from fakemaster import Job

SPEC = json.dumps({"name": "digits", "role": [{"roleName": "ps", "num": 1}, {"roleName": "worker", "num": 3}]})


@pytest.fixture
def complete(programs, bus, tmp_path):
    def run(*words, function="_primusctl"):
        script = f"""
            source {SOURCE}/tools/primusctl/completion.bash
            COMP_WORDS=({' '.join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}
            {function} 2>&1
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        env = environment(bus)
        env["PATH"] = f"{programs}:{env['PATH']}"
        r = subprocess.run(["bash", "--norc", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        return [w for w in r.stdout.split("\n") if w]
    return run


def test_words(complete):
    assert {"submit", "run", "logs", "nodes"} <= set(complete("primusctl", ""))
    assert complete("primusctl", "va") == ["validate"]
    assert "--follow" in complete("primusctl", "logs", "--f")
    assert complete("primusctl", "--color", "al") == ["always"]
    assert complete("primusctl", "list", "--color", "=", "ne") == ["never"]


def test_jobs_roles_nodes(master, complete):
    for number in (1, 2):
        master.jobs[number] = Job(master, number, SPEC, {})
    master.jobs[1].finish()
    master.nodes = [("n1", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {}), ("n2", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {})]
    assert complete("primusctl", "status", "") == ["2", "1"]
    assert complete("primusctl", "kill", "") == ["2"]
    assert complete("primusctl", "logs", "2", "") == ["ps", "worker"]
    assert complete("primusctl", "node", "remove", "") == ["n1", "n2"]
    assert complete("primusctl", "node", "") == ["show", "cordon", "uncordon", "drain", "label", "maintenance", "declare-dead", "remove"]
    assert complete("primusctl", "node", "drain", "n1", "") == ["n1", "n2"]
    assert complete("primusctl", "replace", "2", "") == ["n1", "n2"]


def test_data_and_savepoints(master, complete):
    job = master.jobs[1] = Job(master, 1, SPEC, {})
    job.tasks = [(8, "FAILED", "d", b"/d", 0, 1, 0, 0, 2, "", "bad", {}), (9, "LEASED", "d", b"/d", 1, 2, 1, 0, 0, "ps/0", "", {})]
    master.savepoints = [(("one", 1, 0, 1, 0, 0, {}), {}), (("two", 1, 0, 1, 0, 0, {}), {})]
    assert complete("primusctl", "data", "") == ["1", "retry", "skip"]
    assert complete("primusctl", "data", "skip", "1", "") == ["8", "9"]
    assert complete("primusctl", "data", "retry", "1", "") == ["8"]
    assert complete("primusctl", "data", "--state", "") == ["PENDING", "LEASED", "FAILED"]
    assert complete("primusctl", "savepoint", "") == ["create", "list", "show", "restore", "delete"]
    assert complete("primusctl", "savepoint", "restore", "") == ["one", "two"]
    assert complete("primusctl", "savepoint", "delete", "one", "t") == ["two"]
    assert complete("primusctl", "savepoint", "create", "") == ["1"]
    assert complete("primusctl", "suspend", "") == ["1"]


def test_files(complete, tmp_path):
    (tmp_path / "job.json").write_text("{}")
    assert "job.json" in complete("primusctl", "submit", "jo")
    assert "job.json" in complete("primus-submit", "--primus_conf", "jo", function="_primus_submit")
    assert "hostname" in complete("primusctl", "run", "-n", "4", "--", "hostna")
