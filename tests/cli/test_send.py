# SPDX-License-Identifier: Apache-2.0
"""What is sent along, and what is left out of it."""
import io
import json
import os
import random
import subprocess
import tarfile

import pytest

from fakemaster import ranks

GIT = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}


def sent(master):
    """Names of the one bundle that the master has."""
    (content,) = master.bundles.values()
    unpacked = subprocess.run(["zstd", "-dc"], input=bytes(content), stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
        return {m.name: m for m in tar.getmembers()}


def send(master, ctl, folder, *options):
    master.on_submit = ranks()
    master.bundles.clear()
    return ctl("run", "--send", folder, *options, "--detach", "--parsable", "--", "./train.sh")


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.sh").write_text("#!/bin/sh\necho hi\n")
    (folder / "train.sh").chmod(0o755)
    return folder


def test_a_folder(master, ctl, code):
    (code / ".git").mkdir()
    (code / ".git/config").write_text("x")
    (code / "lib/__pycache__").mkdir(parents=True)
    (code / "lib/__pycache__/a.pyc").write_text("x")
    (code / "lib/a.py").write_text("a")
    (code / "link").symlink_to("lib/a.py")
    r = send(master, ctl, code)
    assert r.returncode == 0 and r.stdout == "1\n", r
    assert set(sent(master)) == {"train.sh", "lib", "lib/a.py", "link"}
    assert sent(master)["train.sh"].mode == 0o755
    assert "3 files" in r.stderr and "go along; 2 left out" in r.stderr, r.stderr
    (job,) = master.jobs.values()
    config = job.spec
    assert config["files"] == ["."] and "cwd" not in job.options


def test_ignore_files(master, ctl, code):
    write(code, **{".gitignore": "*.log\n/data/\n", ".primusignore": "!keep.log\nbig.*\n", "a.log": "", "keep.log": "", "big.bin": "", "data__x": "",
                   "sub__data__x": "", "sub__.primusignore": "*\n!y\n", "sub__y": ""})
    assert send(master, ctl, code).returncode == 0
    assert {n for n in sent(master) if not n.startswith(".")} == {"train.sh", "keep.log", "sub", "sub/y"}


def test_too_much(master, ctl, code):
    (code / "weights.bin").write_bytes(bytes(3 << 20))
    r = send(master, ctl, code, "--send-max", "1M")
    assert r.returncode == 1 and not master.bundles and not master.jobs
    assert "2 files" in r.stderr and "more than 1M" in r.stderr and "weights.bin" in r.stderr and ".primusignore" in r.stderr, r.stderr
    (code / ".primusignore").write_text("*.bin\n")
    assert send(master, ctl, code, "--send-max", "1M").returncode == 0


@pytest.mark.parametrize("make, says", [
    (lambda d: (d / "out").symlink_to("../secret"), "out: is a link that leaves what is sent, to ../secret"),
    (lambda d: (d / "out").symlink_to("/etc/passwd"), "out: is a link that leaves what is sent, to /etc/passwd"),
    (lambda d: os.mkfifo(d / "fifo"), "fifo: is neither a file nor a folder"),
    (lambda d: (d / ".gitignore").symlink_to("/etc/passwd"), ".gitignore: is a link, which is not followed"),
    (lambda d: (d / ".gitignore").write_bytes(b"#" * ((1 << 20) + 1)), ".gitignore: has too many lines"),
    (lambda d: (d / ".primusignore").write_text("x\n" * 20001), ".primusignore: has too many lines"),
])
def test_refused(master, ctl, code, make, says):
    make(code)
    r = send(master, ctl, code)
    assert r.returncode == 1 and says in r.stderr and not master.jobs, r.stderr


def test_usage(master, ctl, code):
    for options, says in [(("--send", code / "train.sh"), "is not a folder"), (("--send", code / "nothing"), "No such file"),
                          (("--send-max", "1M"), "goes with --send"), (("--send", code, "--output", "x.%i"), "absolute path")]:
        r = ctl("run", *options, "--", "true")
        assert r.returncode in (1, 2) and says in r.stderr and not master.jobs, (options, r.stderr)


def test_where_the_directory_is_not(master, ctl):
    """What to do when the hosts do not have the directory."""
    def script(job):
        job.everybody("RUNNING")
        job.executor("task", 0, "FAILED", result=("s", "exit-code"), status=("i", 200), node="n2",
                     reason=("s", "directory /srv/x does not exist on host n2"))
        job.finish("FAILED", "task/0")
    master.on_submit = script
    r = ctl("run", "--", "true")
    assert r.returncode == 200 and "run --send . --" in r.stderr, r.stderr


# Against git itself; a set that begins before a slash and ends behind it is the one thing that is read in another way.

NAMES = ["a", "b", "ab", "a.c", "b.log", "foo", "[x]", "a b", "é", "-n"]
PIECES = ["*", "?", "a", "b", "foo", "*.c", "*.log", "**", "[ab]", "[!a]*", "[a-c]?", "\\[x\\]", "a b", "[[:alpha:]]", "é", "*o", "f**o", "[]a]", "\\a"]


def random_rules(rng):
    lines = []
    for _ in range(rng.randint(0, 5)):
        line = "/".join(rng.choice(PIECES) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))
        line = rng.choice(["", "", "", "/"]) + line + rng.choice(["", "", "/", "  ", "\\ "])
        lines.append(rng.choice(["", "", "!"]) + line)
    lines += rng.choice([[], ["# a comment", ""], ["\\#x", "\\!y"]])
    rng.shuffle(lines)
    return "".join(line + rng.choice(["\n", "\r\n"] if rng.random() < 0.1 else ["\n"]) for line in lines)


def random_tree(rng, folder, depth=0):
    for name in rng.sample(NAMES, rng.randint(1, 6)):
        path = folder / name
        if depth < 3 and rng.random() < 0.45:
            path.mkdir()
            random_tree(rng, path, depth + 1)
        else:
            path.write_text("")
    if rng.random() < 0.5:
        (folder / ".gitignore").write_text(random_rules(rng), newline="")


def test_as_git_does_it(master, ctl, tmp_path):
    compared = 0
    for seed in range(int(os.environ.get("PRIMUS_TEST_SEEDS", 40))):
        rng = random.Random(seed)
        folder = tmp_path / f"tree-{seed}"
        folder.mkdir()
        random_tree(rng, folder)
        (folder / "always.sh").write_text("")
        (folder / ".gitignore").write_text(random_rules(rng) + "!/always.sh\n", newline="")
        git = lambda *arguments, **more: subprocess.run(["git", "-C", folder, "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", *arguments],
                                                        env=GIT, capture_output=True, check=True, **more)
        git("init", "-q")
        want = set(filter(None, git("ls-files", "-z", "--others", "--exclude-standard").stdout.decode().split("\0")))
        r = send(master, ctl, folder)
        assert r.returncode == 0, (seed, r.stderr)
        have = {name for name, member in sent(master).items() if not member.isdir()}
        rules = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob(".gitignore")}
        assert have == want, (seed, have ^ want, rules)
        compared += len(want)
    assert compared > 100
