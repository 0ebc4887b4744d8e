# SPDX-License-Identifier: Apache-2.0
"""Words that people bring along from other schedulers: each is answered with the one that is meant."""
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def table(path, name):
    body = re.search(r"\} " + name + r"\[\] = \{(.*?)\n\};", (ROOT / path).read_text(), re.S).group(1)
    found = re.findall(r'\{ "([^"]+)", "([^"]+)" \}', body)
    assert len(found) > 30
    return found


def test_keys(ctl, tmp_path):
    """Every word of the table names a key that a job without roles may have."""
    words = table("masterd/spec/short.c", "known")
    assert [w for w, _ in words] == sorted({w for w, _ in words})
    for part in range(0, len(words), 20):
        job = {"command": "x"} | {word: 1 for word, _ in words[part:part + 20]}
        (tmp_path / "job.json").write_text(json.dumps(job))
        done = ctl("validate", "job.json")
        assert done.returncode == 1
        for word, key in words[part:part + 20]:
            assert f'error: {word}: unknown key; did you mean "{key}"?' in done.stderr, (word, done.stderr)
        assert not {k for _, k in words} & {w for w, _ in words}, "a key is no word for another"


def test_commands(ctl):
    words = ctl("--words").stdout.split()
    for word, command in table("tools/primusctl/cli/known-as.c", "commands"):
        assert command in words, command
        if word not in words:
            done = ctl(word, "7")
            assert done.returncode == 2
            assert f"there is no command {word}; did you mean {command}?" in done.stderr


def test_options(ctl):
    """Every word is understood by some command; by one that has no such option itself."""
    offered = {command: ctl("--words", command).stdout.split() for command in ("run", "submit", "logs")}
    for word, option in table("tools/primusctl/cli/known-as.c", "options"):
        have = [c for c, options in offered.items() if {f"--{option}", f"--{option}="} & set(options)]
        assert have, (word, option)
        for command in have:
            if not {word, word + "="} & set(offered[command]):
                for typed in [word] + [word + "=1"] * word.startswith("--"):
                    done = ctl(command, typed, "x")
                    assert done.returncode == 2
                    assert f"there is no option {word}; did you mean --{option}?" in done.stderr, (command, word)


@pytest.mark.parametrize("typed,said", [
    (["run", "-Z"], "there is no option -Z"),
    (["run", "--memm", "4"], "did you mean --mem?"),
    (["lisst"], "did you mean list?"),
    (["xyzzy"], "there is no command xyzzy"),
])
def test_slips(ctl, typed, said):
    done = ctl(*typed)
    assert done.returncode == 2 and said in done.stderr


def test_web(ctl):
    """Where the gateway is not installed it says which package has it; and no host's name becomes anything else."""
    done = ctl("web")
    assert done.returncode == 1 and "the package primus-web has it" in done.stderr
    for name in ("-oProxyCommand=x", "a;b", "a b", ""):
        done = ctl(f"--host={name}", "web")
        assert done.returncode == 2, (name, done.stderr)
    assert ctl("web", "--port", "0").returncode == 2
