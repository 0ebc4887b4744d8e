# SPDX-License-Identifier: Apache-2.0
"""Configurations that are refused: one line that says where and what, status 1 or 2, and nothing starts."""
import os
import shutil
import subprocess

import pytest
from sandbox import MASTERD, SOURCE

CORPUS = os.path.join(SOURCE, "tests/data/bad-configs")
NAMES = sorted(name[:-len(".json")] for name in os.listdir(CORPUS) if name.endswith(".json"))

# One line a file: name, status, what came on standard output, what on standard error (its line ends as \001).
SUBMIT_ALL = r"""
for f in "$1"/*.json; do
        out=$(primusctl submit "$f" 2>"$2/err" </dev/null); status=$?
        printf '%s\t%s\t%s\t%s\n' "$(basename "$f" .json)" "$status" "$out" "$(tr '\n\t' '\001 ' <"$2/err")"
done
"""


def expected_error(name):
    with open(os.path.join(CORPUS, name + ".error"), encoding="utf-8") as f:
        return f.read().rstrip("\n")


def jobs(cluster):
    return cluster.primusctl("list", "--all", "--json", user="root")


def master_pid(cluster):
    return cluster.exec("n1", "systemctl", "show", "-P", "MainPID", MASTERD).strip()


@pytest.fixture(scope="module")
def bad(shared_dir):
    """The corpus, and what is too large to be kept, where the hosts see it."""
    path = shared_dir / "bad"
    shutil.copytree(CORPUS, path)
    with open(path / "large-100mb.json", "wb") as f:
        f.write(b'{"role": [' + b" " * (100 << 20))
    with open(path / "large-deep.json", "wb") as f:
        f.write(b"[" * (4 << 20))
    with open(path / "large-values.json", "wb") as f:
        f.write(b'{"files": [' + b'"",' * (1 << 20))
    for file in path.iterdir():
        file.chmod(0o644)
    return path


def test_corpus(cluster, bad):
    before, pid = jobs(cluster), master_pid(cluster)
    scratch = cluster.exec("n1", "mktemp", "-d", user="ml").strip()
    report = cluster.exec("n1", "sh", "-c", SUBMIT_ALL, "sh", "/shared/bad", scratch, user="ml", timeout=300)

    expected = {name: expected_error(name) for name in NAMES}
    expected["large-100mb"] = "larger than 4 MiB"
    expected["large-deep"] = "nested too deeply"
    expected["large-values"] = "too many values"
    wrong, seen = [], set()
    for line in report.strip().split("\n"):
        name, status, out, err = line.split("\t")
        lines = [text for text in err.split("\001") if text]
        errors = [text for text in lines if "warning" not in text]  # the first is masterd's; behind it, all that primusctl sees
        seen.add(name)
        if status not in ("1", "2") or out or not errors or expected[name] not in errors[0].replace("error: ", ""):
            wrong.append(f"{name}: status {status}, output {out!r}, errors {errors}; expected {expected[name]!r}")
    assert not wrong, "\n".join(wrong)
    assert seen == set(expected)
    assert jobs(cluster) == before
    assert master_pid(cluster) == pid


def test_unreadable(cluster):
    before = jobs(cluster)
    for path, why in (("/nowhere/job.json", "No such file"), ("/etc/shadow", "Permission denied"), ("/etc", "directory")):
        done = cluster.run("n1", "primusctl", "submit", path, user="ml")
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        assert path in done.stderr and why in done.stderr
    assert jobs(cluster) == before


@pytest.mark.parametrize("name", ["utf8", "nul-byte", "deep", "num-billion", "duplicate-key", "unknown-key", "empty", "no-role"])
def test_past_the_client(cluster, name):
    """The master does not rely on primusctl having looked."""
    before = jobs(cluster)
    with open(os.path.join(CORPUS, name + ".json"), "rb") as f:
        text = f.read()
    done = cluster.run("n1", "busctl", "--system", "call", "org.primus.Master1", "/org/primus/Master1",
                       "org.primus.Master1.Manager", "Submit", "aya{sv}", str(len(text)), *map(str, text), "0", user="ml")
    assert done.returncode != 0
    assert expected_error(name) in done.stderr
    assert jobs(cluster) == before


def test_validate_needs_no_master(build, tmp_path):
    """`primusctl validate` says the same on a machine without a cluster."""
    primusctl = os.path.join(build, "tools/primusctl/primusctl")
    for name in NAMES:
        done = subprocess.run([primusctl, "validate", os.path.join(CORPUS, name + ".json")], capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, timeout=20,
                              env={"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path}/none", "LC_ALL": "C.UTF-8"})
        errors = [text for text in done.stderr.splitlines() if "warning" not in text]
        assert done.returncode == 1, name
        assert expected_error(name) in errors[0].replace("error: ", ""), name
