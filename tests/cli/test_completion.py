# SPDX-License-Identifier: Apache-2.0
"""Completion, as bash and zsh would call it."""
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time

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
    assert complete("primusctl", "run", "--visible", "") == ["owner", "group", "pool", "all"]
    assert complete("primusctl", "submit", "--visible", "=", "g") == ["group"]


def test_jobs_roles_nodes(master, complete):
    for number in (1, 2):
        master.jobs[number] = Job(master, number, SPEC, {})
    master.jobs[1].finish()
    master.nodes = [("n1", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {}), ("n2", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {})]
    assert complete("primusctl", "status", "") == ["2", "1"]
    assert complete("primusctl", "kill", "") == ["2"]
    assert complete("primusctl", "logs", "2", "") == ["ps", "worker"]
    assert complete("primusctl", "node", "remove", "") == ["n1", "n2"]
    assert complete("primusctl", "node", "") == ["show", "events", "cordon", "uncordon", "drain", "disable", "enable", "label", "maintenance", "declare-dead",
                                                 "remove"]
    assert complete("primusctl", "node", "drain", "n1", "") == ["n1", "n2"]
    assert complete("primusctl", "replace", "2", "") == ["n1", "n2"]
    assert complete("primusctl", "token", "create", "--replace", "") == ["n1", "n2"]


def test_data_and_savepoints(master, complete):
    job = master.jobs[1] = Job(master, 1, SPEC, {})
    job.tasks = [(8, "FAILED", "d", b"/d", 0, 1, 0, 0, 2, "", "bad", {}), (9, "LEASED", "d", b"/d", 1, 2, 1, 0, 0, "ps/0", "", {})]
    master.savepoints = [(("one", 1, 0, 1, 0, 0, {}), {}), (("two", 1, 0, 1, 0, 0, {}), {})]
    assert complete("primusctl", "data", "") == ["1", "retry", "skip", "add", "replace", "pause", "resume", "end", "remove", "weight"]
    assert complete("primusctl", "data", "skip", "1", "") == ["8", "9"]
    assert complete("primusctl", "data", "retry", "1", "") == ["8"]
    assert complete("primusctl", "data", "--state", "") == ["PENDING", "LEASED", "FAILED"]
    assert complete("primusctl", "savepoint", "") == ["create", "list", "show", "restore", "delete"]
    assert complete("primusctl", "savepoint", "restore", "") == ["one", "two"]
    assert complete("primusctl", "savepoint", "delete", "one", "t") == ["two"]
    assert complete("primusctl", "savepoint", "create", "") == ["1"]
    assert complete("primusctl", "suspend", "") == ["1"]


def test_names_are_no_commands(master, complete, tmp_path):
    """What a master on some other host calls its nodes is not run here, nor put on the command line."""
    bad = ["$(touch${IFS}ran)", "`touch\tran`", "*", "n1;id"]
    master.nodes = [(name, "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {}) for name in [*bad, "n2"]]
    assert complete("primusctl", "node", "drain", "") == ["n2"]
    assert not (tmp_path / "ran").exists()


def test_files(complete, tmp_path):
    (tmp_path / "job.json").write_text("{}")
    assert "job.json" in complete("primusctl", "submit", "jo")
    assert "job.json" in complete("primus-submit", "--primus_conf", "jo", function="_primus_submit")
    assert "hostname" in complete("primusctl", "run", "-n", "4", "--", "hostna")


def test_what_follows_every_command(programs):
    """A command that takes arguments is in the table of either shell."""
    words = subprocess.run([f"{programs}/primusctl", "--words"], capture_output=True, text=True, check=True).stdout.split()
    for shell in ("bash", "zsh"):
        with open(f"{SOURCE}/tools/primusctl/completion.{shell}", encoding="utf-8") as f:
            script = f.read()
        for command in (word for word in words if not word.startswith("-")):
            usage = subprocess.run([f"{programs}/primusctl", command, "--help"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
            arguments = re.sub(r"\[OPTIONS\]|\[?--[^ ]*\]?", "", usage.split(command, 1)[1]).strip()
            if arguments:
                assert re.search(rf"^        ([a-z]+ \| )*{command}( \| [a-z]+)*\)", script, re.M), f"{shell}: {command} {arguments}"


# ---- zsh ---------------------------------------------------------------------------------------------------------------------

ZSH = r"""
compadd() { while (( $# )); do case $1 in --) shift; break ;; -V | -S) shift 2 ;; *) shift ;; esac; done; for w in "$@"; do [[ $w == ${PREFIX}* ]] && print -r -- "$w"; done }
_describe() { while [[ $1 == -t ]]; do shift 2; done; for w in ${(P)2}; do [[ $w == ${PREFIX}* ]] && print -r -- "${w%%:*}"; done }
_files() { print -r -- FILES }
_hosts() { print -r -- HOSTS }
_command_names() { print -r -- COMMANDS }
_normal() { print -r -- "NORMAL ${words[*]}" }
compset() { PREFIX=${PREFIX#*=} }
"""


@pytest.fixture
def zcomplete(programs, bus, tmp_path):
    """What _primusctl offers, with what zsh's own completion has in place of it."""
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh; tools/install-deps test")

    def run(*words):
        script = f"{ZSH}\nwords=({' '.join(shlex.quote(w) or chr(39) * 2 for w in words)}); CURRENT={len(words)}; PREFIX={shlex.quote(words[-1])}\n" \
                 f"source {SOURCE}/tools/primusctl/completion.zsh"
        env = environment(bus)
        env["PATH"] = f"{programs}:{env['PATH']}"
        done = subprocess.run(["zsh", "-f", "-c", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.stderr == "", done.stderr
        return done.stdout.split("\n")[:-1]
    return run


def test_zsh_words(zcomplete):
    assert {"submit", "run", "logs", "nodes"} <= set(zcomplete("primusctl", ""))
    assert zcomplete("primusctl", "va") == ["validate"]
    assert "--follow" in zcomplete("primusctl", "logs", "--f")
    assert zcomplete("primusctl", "--color", "al") == ["always"]
    assert zcomplete("primusctl", "list", "--color=ne") == ["never"]
    assert zcomplete("primusctl", "token", "") == ["create", "list", "revoke"]
    assert zcomplete("primusctl", "token", "create", "--repl") == ["--replace"]
    assert zcomplete("primusctl", "join", "") == ["HOSTS"]
    assert zcomplete("primusctl", "submit", "") == ["FILES"]
    assert zcomplete("primusctl", "run", "-n", "2", "--", "host") == ["NORMAL host"]
    assert "--primus_conf" in zcomplete("primus-submit", "--p")


def test_zsh_jobs_roles_nodes(master, zcomplete):
    for number in (1, 2):
        master.jobs[number] = Job(master, number, SPEC, {})
    master.jobs[1].finish()
    master.nodes = [("n1", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {}), ("n2", "READY", "", 1.0, 1.0, 1, 1, 0, 0, 0, 0, {})]
    assert zcomplete("primusctl", "status", "") == ["2", "1"]
    assert zcomplete("primusctl", "kill", "") == ["2"]
    assert zcomplete("primusctl", "logs", "2", "") == ["ps", "worker"]
    assert zcomplete("primusctl", "scale", "2", "") == ["ps", "worker"]
    assert zcomplete("primusctl", "node", "drain", "n1", "") == ["n1", "n2"]
    assert zcomplete("primusctl", "run", "--hosts", "") == ["n1", "n2"]


def test_zsh_for_real(programs, bus, tmp_path):
    """The file is found by its name, and a tab gives the rest of a word."""
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh; tools/install-deps test")
    functions = tmp_path / "functions"
    functions.mkdir()
    shutil.copy(f"{SOURCE}/tools/primusctl/completion.zsh", functions / "_primusctl")
    env = environment(bus) | {"TERM": "dumb"}
    env["PATH"] = f"{programs}:{env['PATH']}"
    here, there = pty.openpty()
    with subprocess.Popen(["zsh", "-f", "-i"], env=env, cwd=tmp_path, stdin=there, stdout=there, stderr=there, start_new_session=True) as zsh:
        def until(text):
            seen, end = b"", time.monotonic() + 20
            while text not in seen and time.monotonic() < end:
                if select.select([here], [], [], 0.2)[0]:
                    seen += os.read(here, 4096)
            return seen

        os.write(here, f"PS1=; fpath=({functions} $fpath); autoload -U compinit; compinit -u -D; print RE''ADY\n".encode())
        assert b"READY" in until(b"READY")
        os.write(here, b"primusctl va\t")
        assert b"validate" in until(b"lidate").replace(b"\a", b"")
        zsh.kill()
    os.close(here)
    os.close(there)
