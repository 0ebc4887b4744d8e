# SPDX-License-Identifier: Apache-2.0
"""Jobs that are scripts."""
import io
import subprocess
import tarfile

import pytest

from fakemaster import ranks


@pytest.fixture
def script(tmp_path):
    def write(*lines, first="#!/bin/sh", mode=0o755, name="train.sh"):
        path = tmp_path / name
        path.write_text("\n".join((first, *lines)) + "\n")
        path.chmod(mode)
        return path
    return write


def submitted(master):
    (job,) = master.jobs.values()
    return job


def test_options_of_the_head(master, ctl, script, tmp_path):
    master.on_submit = ranks()
    path = script("# a comment", "", "#PRIMUS -n 2 --cpus=0.5 --mem 1G", "#PRIMUS\t--name='resnet  50' --time=1h --env=\"A=b c\" -q batch --after 3",
                  "echo hello", "#PRIMUS --gpus=8")
    r = ctl("submit", path, "lr", "--", "--lr", "$(id) `x` ; '")
    assert r.returncode == 0 and "Submitted job 1 (resnet  50)" in r.stdout, r
    job = submitted(master)
    (role,) = job.spec["role"]
    assert (job.spec["name"], job.spec["timeLimit"], job.spec["files"]) == ("resnet  50", "3600000ms", ["train.sh"])
    assert (role["num"], role["vcores"], role["memoryMb"]) == (2, 0.5, 1024) and "gpuNum" not in role
    # What the caller says is never part of what the shell reads.
    assert role["argv"] == ["/bin/sh", "-c", 'exec "$PRIMUS_WORK/$0" "$@"', "train.sh", "lr", "--lr", "$(id) `x` ; '"]
    assert job.options["queue"][1] == "batch" and job.options["after"][1] == ["3"]
    assert [bytes(e) for e in job.options["env"][1]] == [b"A=b c"]
    assert bytes(job.options["cwd"][1]).decode() == str(tmp_path)
    (content,) = master.bundles.values()
    with tarfile.open(fileobj=io.BytesIO(subprocess.run(["zstd", "-dc"], input=bytes(content), stdout=subprocess.PIPE, check=True).stdout)) as tar:
        assert tar.extractfile("train.sh").read() == path.read_bytes() and tar.getmember("train.sh").mode == 0o755


def test_the_command_line_wins(master, ctl, script):
    master.on_submit = ranks()
    path = script("#PRIMUS --name=a -q batch --env=A=1 --priority=3 --after=3 --begin=+1h")
    r = ctl("submit", path, "--name", "b", "--queue", "fast", "--env", "A=2", "--after", "4", "--wait")
    assert r.returncode == 0, r
    job = submitted(master)
    assert job.name == "b" and job.options["queue"][1] == "fast" and job.options["after"][1] == ["4"] and "begin" in job.options
    assert [bytes(e) for e in job.options["env"][1]] == [b"A=1", b"A=2"]


def test_with_a_folder(master, ctl, script, tmp_path):
    master.on_submit = ranks()
    (tmp_path / "code").mkdir()
    (tmp_path / "code/a.py").write_text("a")
    r = ctl("submit", script("#PRIMUS --send=code"))
    assert r.returncode == 0, r
    job = submitted(master)
    assert "cwd" not in job.options
    (content,) = master.bundles.values()
    with tarfile.open(fileobj=io.BytesIO(subprocess.run(["zstd", "-dc"], input=bytes(content), stdout=subprocess.PIPE, check=True).stdout)) as tar:
        assert {"train.sh", "a.py"} == set(tar.getnames())


@pytest.mark.parametrize("lines, says", [
    (["#SBATCH --ntasks=4"], "train.sh:2: #SBATCH lines are not read here"),
    (["", "#PRIMUS --name='x"], "train.sh:3: a quote has no end"),
    (["#PRIMUS --ntask=3"], "did you mean"),
    (["#PRIMUS ls"], "train.sh: ls: not an option; the command is the script itself"),
    (["#PRIMUS --detach"], "are for the command line, not for a script"),
    (["#PRIMUS --host=evil"], "are for the command line, not for a script"),
    (["#PRIMUS " + "--pack " * 300], "too many options"),
])
def test_refused(master, ctl, script, lines, says):
    r = ctl("submit", script(*lines))
    assert r.returncode in (1, 2) and says in r.stderr and not master.jobs and not master.bundles, r.stderr


def test_more_that_is_refused(master, ctl, script, tmp_path):
    r = ctl("submit", script("#PRIMUS -n 2", mode=0o644))
    assert r.returncode == 1 and "cannot be executed" in r.stderr and "chmod +x" in r.stderr, r.stderr
    r = ctl("submit", "-", input="#!/bin/sh\n")
    assert r.returncode == 1 and "has to be a file" in r.stderr, r.stderr
    (tmp_path / "job.json").write_text("{}")
    r = ctl("submit", "job.json", "x")
    assert r.returncode == 2 and "arguments are for scripts" in r.stderr, r.stderr
    assert not master.jobs


def test_slurm_lines_beside_ours(master, ctl, script):
    master.on_submit = ranks()
    assert ctl("submit", script("#SBATCH -N 2", "#PRIMUS -n 2")).returncode == 0 and submitted(master).spec["role"][0]["num"] == 2
