# SPDX-License-Identifier: Apache-2.0
"""docs/recipes does what it says: files and commands are taken out of the pages as they stand there, and run on three hosts, side by side with
what the pages say comes of it. A fenced block has a comment in the line before it:

    <!-- file: NAME -->   is written beside the others of its page, in a directory that all hosts see
    <!-- run: NAME -->    is run there, in a shell, in the order of the page
    <!-- says: NAME -->   every line of it is one of that run's; … is anything
    <!-- not run -->      as the page then says in words
"""
import os
import pathlib
import re
import subprocess

import pytest
from sandbox import SOURCE, Cluster, Failed, cluster_name, shared_directory

PAGES = pathlib.Path(SOURCE) / "docs/recipes"
ML = 1000  # the hosts' user
LENT = "/mnt/usr"
# What the recipes need and the hosts' tree has not, for its size; that of the build machine, the same Debian, is lent, and found as if it were installed.
NEEDED = ("torch", "mpi4py", "sklearn", "xgboost", "notebook")
LEND = f"""
echo {LENT}/lib/python3/dist-packages > /usr/lib/python3/dist-packages/lent.pth
for d in /x86_64-linux-gnu /x86_64-linux-gnu/blas /x86_64-linux-gnu/lapack /x86_64-linux-gnu/openmpi/lib ''; do echo {LENT}/lib$d; done > /etc/ld.so.conf.d/zz-lent.conf
ldconfig
for p in torchrun jupyter jupyter-notebook mpirun.openmpi orted; do ln -sfn {LENT}/bin/$p /usr/bin/$p; done
ln -sfn mpirun.openmpi /usr/bin/mpirun
for d in lib/x86_64-linux-gnu/openmpi lib/x86_64-linux-gnu/pmix2 share/openmpi share/jupyter; do [ -e /usr/$d ] || ln -s {LENT}/$d /usr/$d; done
"""
# Debian's torchrun dies without these on Python 3.11: docs/recipes/pytorch.md.
DEBIAN = "export PET_REDIRECTS=1 PET_TEE=1\n"
PLAIN = {"pytorch": ["torchrun", "ddp", "loader"], "trees": ["xgboost"], "sweeps": ["sweep"], "mpi": ["mpi", "mine"], "jax": ["coordinate"],
         "lightning-accelerate-hf-deepspeed": ["show"], "notebooks-and-boards": [], "venv-conda": ["venv", "venv-job", "namespaces"]}
OTHERS = {("pytorch", "job"), ("pytorch", "elastic"), ("notebooks-and-boards", "jupyter")}


class Page:
    def __init__(self, name):
        self.files, self.runs, self.says, self.unmarked = {}, {}, {}, []
        before, block = "", None
        for line in (PAGES / f"{name}.md").read_text(encoding="utf-8").splitlines():
            if block is None and line.startswith("```"):
                block = []
            elif line == "```":
                self.put(before, "\n".join(block) + "\n")
                block = None
            elif block is not None:
                block.append(line)
            if block is None or block == []:
                before = line if not line.startswith("```") else before

    def put(self, before, text):
        mark = re.fullmatch(r"<!-- (file|run|says): (\S+) -->", before)
        if mark:
            {"file": self.files, "run": self.runs, "says": self.says}[mark[1]][mark[2]] = text
        elif before != "<!-- not run -->":
            self.unmarked.append(text)


def test_pages():
    """What is shown is either run or said not to be."""
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in PAGES.glob("*.md")} - {"README"} == set(PLAIN)
    for name, plain in PLAIN.items():
        page = Page(name)
        assert not page.unmarked, f"{name}.md"
        assert set(page.runs) == {*plain, *(run for other, run in OTHERS if other == name)}, f"{name}.md"
        assert set(page.says) <= set(page.runs) and set(plain) <= set(page.says), f"{name}.md"
        assert f"]({name}.md)" in index
    assert Page("pytorch").runs["torchrun"] in (pathlib.Path(SOURCE) / "README.md").read_text(encoding="utf-8"), "the first command of README's tour is that of the page"
    for page in PAGES.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            there, heading = (page.parent / target).read_text(encoding="utf-8") if anchor else "", (anchor or "").replace("-", " ")
            assert not anchor or f'<a id="{anchor}">' in there or f"## {heading}" in there.lower(), f"{page.name}: {anchor}"


@pytest.fixture(scope="module")
def hosts(build, tmp_path_factory):
    missing = subprocess.run(["/usr/bin/python3", "-c", f"import {', '.join(NEEDED)}"], check=False, capture_output=True, text=True)
    if missing.returncode != 0:
        pytest.skip(f"tools/install-deps test: {missing.stderr.splitlines()[-1]}")
    shared = shared_directory(tmp_path_factory, "recipes")
    conf = ["masterd.conf:Master.LostSec=5", "masterd.conf:Master.QuarantineScore=0"]
    with Cluster(cluster_name(), 3, build=build, binds=[f"/usr:{LENT}", f"{shared}:/shared"], conf=conf) as cluster:
        for node in cluster.nodes:
            cluster.exec(node, "sh", "-e", "-c", LEND)
        cluster.shared = shared
        yield cluster


def script(cluster, name, *runs):
    """The commands of a page, with the directory in which its files are."""
    page, directory = Page(name), cluster.shared / name
    if not directory.exists():
        directory.mkdir()
        for file, text in page.files.items():
            (directory / file).write_text(text, encoding="utf-8")
        for path in (directory, *directory.iterdir()):
            os.chown(path, ML, ML)
    return DEBIAN + f"cd /shared/{name}\n" + "".join(page.runs[run] for run in runs)


def check_says(name, run, output):
    for line in Page(name).says[run].splitlines():
        pattern = ".*".join(map(re.escape, line.split("…")))
        assert any(re.fullmatch(pattern, said) for said in output.splitlines()), f"{name}.md: nobody said {line!r}:\n{output}"


@pytest.mark.parametrize("name, run", [(name, run) for name, runs in PLAIN.items() for run in runs])
def test_recipe(hosts, name, run):
    done = hosts.run("n1", "sh", "-e", "-c", script(hosts, name, run), user="ml", timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    check_says(name, run, done.stdout + done.stderr)


def test_torchrun_job(hosts):
    """One of four ranks is killed: both torchruns begin again, from the checkpoint."""
    with hosts.process("n1", "sh", "-e", "-c", script(hosts, "pytorch", "job"), user="ml") as running:
        def trains():
            jobs = [job for job in hosts.primusctl_json("list", "--all") if job["name"] == "torchrun"]
            return jobs and "epoch 3 of 25" in hosts.primusctl("logs", str(jobs[0]["job"])) and jobs[0]["job"]
        job = hosts.wait_for(trains, 60, "the fourth epoch")
        victim = hosts.executor(job, index=1)["node"]
        pid = hosts.exec(victim, "pgrep", "-n", "-f", "train.py job.pt").strip()
        hosts.exec(victim, "kill", "-KILL", pid)
        output = running.communicate(timeout=120)[0]
    assert running.returncode == 0, output
    check_says("pytorch", "job", output)
    begun = [int(epoch) for epoch in re.findall(r"rank 0 of 4 begins with epoch (\d+)", output)]
    assert len(begun) == 2 and begun[0] == 0 and begun[1] > 3
    assert {e["attempt"] for e in hosts.status(job)["executors"]} == {2}


def test_torchrun_elastic(hosts):
    """The power of a host is cut: two go on without the third, and with it when it is back."""
    hosts.exec("n1", "sh", "-e", "-c", script(hosts, "pytorch", "elastic"), user="ml")
    job = max(job["job"] for job in hosts.primusctl_json("list", "--all") if job["name"] == "elastic")

    def trains(n):
        found = re.findall(r"epoch (\d+) of 3000 with (\d) ranks", hosts.primusctl("logs", str(job)))
        return found and int(found[-1][1]) == n and int(found[-1][0])

    def wait_for_ranks(n):
        try:
            return hosts.wait_for(lambda: trains(n), 90, f"{n} ranks")
        except Failed as e:
            raise Failed(f"{e}\n{hosts.primusctl('events', str(job))}{hosts.primusctl('logs', str(job), '--tail', '40')}") from e
    wait_for_ranks(3)
    rank0 = hosts.executor(job)["node"]
    victim = next(e["node"] for e in hosts.status(job)["executors"] if e["node"] not in (rank0, "n1"))
    hosts.crash(victim)
    try:
        before = wait_for_ranks(2)
        assert before > 0, "they went on from the checkpoint"
        assert [e["attempt"] for e in hosts.status(job)["executors"] if e["node"] != victim] == [1, 1]
    finally:
        hosts.boot(victim)
        hosts.exec(victim, "sh", "-e", "-c", LEND)  # what is in /usr went with the power
    assert wait_for_ranks(3) > before
    hosts.kill(job)


ASK = """
import json, sys, urllib.error, urllib.parse, urllib.request
page = urllib.parse.urlsplit(sys.argv[1])
def ask(path, data=None, token=page.query.split("=")[1]):
    request = urllib.request.Request(f"http://{page.netloc}/api/{path}", data, {"Authorization": "token " + token})
    return json.load(urllib.request.urlopen(request, timeout=20))
print(ask("kernels", b"{}")["name"], len(ask("kernels")))
try:
    ask("kernels", token="another")
except urllib.error.HTTPError as e:
    print(e.code)
"""


def test_jupyter(hosts):
    """The address opens it, with its token alone, which is in no log; a kernel runs."""
    name = "notebooks-and-boards"
    with hosts.process("n1", "sh", "-e", "-c", script(hosts, name, "jupyter").replace("primusctl notebook", "exec primusctl notebook"), user="ml") as running:
        output = "".join(running.stdout.readline() for _ in range(3))
        check_says(name, "jupyter", output)
        url, job = re.search(r"^http\S+", output, re.M)[0], re.search(r"job (\d+)", output)[1]
        assert hosts.exec("n1", "python3", "-c", ASK, url, user="ml").split() == ["python3", "1", "403"]
        assert url.split("token=")[1] not in hosts.primusctl("logs", job)
    hosts.kill(job)


def test_ulimit(hosts):
    """docs/limits.md's table; the hosts of the test get a hard limit that is below the default of OpenFiles=."""
    few, off = "/run/systemd/system.conf.d/few.conf", "/run/primus/agentd.conf.d/off.conf"

    def everywhere(commands):
        for node in hosts.nodes:
            hosts.exec(node, "sh", "-e", "-c", f"{commands}; systemctl daemon-reload; systemctl restart primus-agentd")
        hosts.wait_nodes()
    limits = "ulimit -Sn; ulimit -Hn; ulimit -Sc"
    try:
        everywhere(f"mkdir -p $(dirname {few} {off}); printf '[Manager]\\nDefaultLimitNOFILE=1024:16384\\n' > {few}")
        assert hosts.primusctl("run", "--", "sh", "-c", limits).split() == ["16384", "16384", "0"]
        job = hosts.submit({"name": "few", "role": [{"roleName": "w", "num": 1, "openFiles": 2000, "command": f"{limits}; sleep 60"}]})
        hosts.wait_for(lambda: hosts.primusctl("logs", str(job)).split() == ["2000", "2000", "0"], 20, "the role's own")
        assert hosts.primusctl("exec", str(job), "0", "--", "sh", "-c", "ulimit -Sn").split() == ["16384"]
        hosts.kill(job)
        everywhere(f"printf '[Agent]\\nOpenFiles=0\\n' > {off}")
        assert hosts.primusctl("run", "--", "sh", "-c", limits).split() == ["1024", "16384", "0"]
    finally:
        everywhere(f"rm -f {few} {off}")
