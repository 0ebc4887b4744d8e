# SPDX-License-Identifier: Apache-2.0
"""Job files in YAML."""
JOB = """\
# what everybody wants, in a few lines
name: hello
role:
- roleName: worker
  command: |
    echo "$RANK"
    exec python3 train.py
  num: 3
  cpus: 0.5
  memory: 2G
env: {LR: "0.1", NORWAY: "no"}
"""


def test_submit(master, ctl, tmp_path):
    (tmp_path / "job.yaml").write_text(JOB)
    r = ctl("submit", "job.yaml")
    assert r.returncode == 0 and "Submitted job 1 (hello)" in r.stdout, r
    (job,) = master.jobs.values()
    assert job.spec == {"name": "hello", "env": {"LR": "0.1", "NORWAY": "no"}, "role": [
        {"roleName": "worker", "command": 'echo "$RANK"\nexec python3 train.py\n', "num": 3, "cpus": 0.5, "memory": "2G"}]}


def test_places(ctl, tmp_path):
    """What is wrong is said with the line that it has in the YAML."""
    (tmp_path / "job.yml").write_text(JOB + "gpu:\n  - 1\nfiles: 7\n")
    r = ctl("validate", "job.yml")
    assert r.returncode == 1, r
    lines = r.stderr.splitlines()
    assert any(line.startswith("job.yml:12:1: ") and "gpu" in line for line in lines), lines
    assert any(line.startswith("job.yml:14:") for line in lines), lines


def test_refused(master, ctl, tmp_path):
    for text, says in [("a: &x 1\n", "job.yaml:1:4: anchors and tags"), ("a: [1\n", "job.yaml:2:1: "), ("", "job.yaml: is empty")]:
        (tmp_path / "job.yaml").write_text(text)
        for command in ("submit", "validate"):
            r = ctl(command, "job.yaml")
            assert r.returncode == 1 and r.stderr.startswith(says) and not master.jobs, (text, r.stderr)


def test_as_large_as_can_be(ctl, tmp_path):
    (tmp_path / "job.yaml").write_text("\n" * (5 << 20))
    r = ctl("validate", "job.yaml")
    assert r.returncode == 1 and "larger than 4 MiB" in r.stderr
    (tmp_path / "job.yaml").write_text("a: [" + "\x7f, " * 400000 + "]")
    assert ctl("validate", "job.yaml").returncode == 1
