# SPDX-License-Identifier: Apache-2.0
"""The examples do on a cluster what they say."""
import json
import os
import re
import shutil
import subprocess

import pytest
from sandbox import SOURCE

EXAMPLES = "/usr/share/doc/primus/examples"


def run(cluster, name):
    """What its executors printed."""
    cluster.primusctl("submit", f"{EXAMPLES}/{name}/{name}.json", "--wait")
    return cluster.primusctl("logs").splitlines()


def test_hello(cluster):
    said = run(cluster, "hello")
    assert any(re.search(r"hello from the chief on n\d", line) for line in said)
    assert {line.split(" on ")[0] for line in said if "worker" in line} == {f"worker/{i} | hello from worker {i}" for i in range(2)}


def test_torchrun_env(cluster):
    said = run(cluster, "torchrun-env")
    for rank in range(4):
        mine = {line.split(" | ", 1)[1] for line in said if line.startswith(f"worker/{rank} | ")}
        assert {f"RANK={rank}", "WORLD_SIZE=4", f"PRIMUS_INDEX={rank}", f"PRIMUS_RANK={rank}"} <= mine
        assert any(line.startswith("MASTER_ADDR=") for line in mine)
        assert any(line.startswith("TF_CONFIG=") and f'"index":{rank}' in line for line in mine)


def test_failover(cluster):
    assert run(cluster, "failover") == ["attempt 1", "attempt 2", "attempt 3"]


def test_files(cluster):
    said = run(cluster, "files")
    assert any("hello, Ada; I run in /" in line for line in said) and any("hello, Grace; I run in /" in line for line in said)


def test_pipeline(cluster):
    run(cluster, "pipeline")
    rows = cluster.primusctl_json("list", "--all", "--limit", "4")
    parent = rows[-1]["job"]
    said = cluster.primusctl("logs", str(parent)).splitlines()
    assert said[-3:] == ["the left half", "the right half", "the whole"], said
    assert [(r["name"], r["parent"], r["state"]) for r in rows[:3]] == [(name, parent, "SUCCEEDED") for name in ("whole", "right", "left")]


def test_results(cluster):
    cluster.primusctl("submit", f"{EXAMPLES}/results/results.json", "--wait")
    number = cluster.primusctl_json("status")["job"]
    place = cluster.exec("n1", "mktemp", "-d", user="ml").strip()
    cluster.exec("n1", "primusctl", "get", str(number), user="ml", cwd=place)
    for i in range(2):
        said = cluster.exec("n1", "cat", f"{place}/{number}/worker-{i}/model.txt")
        assert said == "epoch of attempt 1\nepoch of attempt 2\n"
    cluster.exec("n1", "rm", "-rf", place)


def test_stdin(cluster):
    said = run(cluster, "stdin")
    lines = [int(count) for count in re.findall(r"was fed (\d+) lines", "\n".join(said))]
    want = int(cluster.exec("n1", "sh", "-c", "cat /usr/share/common-licenses/GPL-[123] | wc -l"))
    assert len(lines) == 2 and sum(lines) == want


def total(pattern, said):
    """Of what the workers counted."""
    return [sum(map(int, found)) for found in zip(*re.findall(pattern, "\n".join(said)))]


def test_csv(cluster):
    said = run(cluster, "csv")
    assert total(r"worker (\d) read (\d+) rows", said) == [0 + 1, 10]
    assert any("the longest river of them: Nile" in line for line in said)


def test_gzip(cluster):
    assert total(r"worker (\d) was fed (\d+) lines", run(cluster, "gzip")) == [0 + 1, 3000]


def test_tar(cluster):
    assert total(r"worker (\d) was fed (\d+) files", run(cluster, "tar")) == [0 + 1, 18]


def test_tfrecord(cluster):
    assert total(r"worker (\d) got (\d+) records of (\d+) bytes", run(cluster, "tfrecord")) == [0 + 1, 60, 60 * 10 + 30]


def test_descriptor(cluster):
    said = total(r"worker (\d) counted (\d+) lines, (\d+) bytes in (\d+) ranges", run(cluster, "descriptor"))
    files = [f"/usr/share/common-licenses/GPL-{n}" for n in (1, 2, 3)]
    text = [cluster.exec("n1", "cat", f) for f in files]
    assert said[1:3] == [sum(t.count("\n") for t in text), sum(len(t.encode()) for t in text)]
    assert said[3] >= 8  # 66 KB in pieces of 8 KB


def test_exactly_once(cluster):
    """Killed once on the way, it says what it says when it is not."""
    cluster.exec("n1", "rm", "-rf", "/tmp/alone", "/tmp/killed")
    said = []
    for name in ("alone", "killed"):
        text = cluster.exec("n1", "cat", f"{EXAMPLES}/exactly-once/exactly-once.json")
        path = f"/shared/exactly-once-{name}"
        text = text.replace("train.py checkpoint 500", f"train.py {path} 100" + (
            "; s=$?; [ $PRIMUS_ATTEMPT != 1 ] || kill -KILL $$; exit $s" if name == "killed" else ""))
        job = cluster.submit(text)
        assert cluster.wait_job(job) == 0
        said.append(cluster.primusctl("logs", str(job)).splitlines())
    assert said[0][-1].startswith("1000 lines, sum ") and said[1][-1] == said[0][-1]
    assert "attempt 2 begins behind 1000 lines" in said[1]


# The hosts' tree has no PyTorch, for its size; that of the build machine, the same Debian, is lent to one.
LENT = "/mnt/usr"
LIBRARIES = ":".join(f"{LENT}/lib{folder}" for folder in ("/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack", ""))
WITH_TORCH = {"PYTHONPATH": f"{LENT}/lib/python3/dist-packages", "LD_LIBRARY_PATH": LIBRARIES}


@pytest.mark.parametrize("mode, workers", [("ring", 0), ("ring", 2), ("descriptor", 2), ("descriptor", 4)])
def test_torch(new_cluster, mode, workers):
    """A DataLoader takes batches from its workers in turn: one that waits for a task must get it, whatever the others hold."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no python3-torch")
    cluster = new_cluster(nodes=1, binds=[f"/usr:{LENT}"])
    with open(f"{SOURCE}/examples/torch/torch.json", encoding="utf-8") as file:
        config = file.read().replace('"name": "torch",', f'"name": "torch", "env": {json.dumps(WITH_TORCH)},')
    config = config.replace("train.py 0", f"train.py {workers}").replace('"mode": "ring"', f'"mode": "{mode}"')
    cluster.exec("n1", "sh", "-c", "cat > /tmp/torch.json", input=config)
    cluster.primusctl("submit", "/tmp/torch.json", "--wait")
    said = cluster.primusctl("logs")
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", said)]
    assert len(losses) == 3 and losses[0] > 5 * losses[-1]
    assert "3000 samples in all" in said


def test_torch_ddp(new_cluster, tmp_path):
    """Four ranks on three hosts; one is killed, all begin again from the checkpoint and get where they would have got without."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no python3-torch")
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        os.chmod(path, 0o755 if path != tmp_path else 0o1777)
    cluster = new_cluster(nodes=3, binds=[f"/usr:{LENT}", f"{tmp_path}:/shared"])
    with open(f"{SOURCE}/examples/torch-ddp/torch-ddp.json", encoding="utf-8") as file:
        text = file.read()
    # Leaves room for one rank on two of the hosts and for two on the third.
    cluster.submit({"name": "others", "role": [{"roleName": "w", "num": 2, "vcores": 1, "memoryMb": 16, "command": "sleep 600",
                                                "scheduleStrategy": {"maxReplicasPerNode": 1}}]})
    said = []
    for name in ("alone", "killed"):
        where = tmp_path / name
        where.mkdir()
        os.chmod(where, 0o777)
        env = {**WITH_TORCH, "CHECKPOINT": f"/shared/{name}"}
        job = cluster.submit(text.replace('"vcores": 0.25', '"vcores": 0.75').replace('"name": "torch-ddp",', f'"name": "torch-ddp", "env": {json.dumps(env)},'))
        if name == "killed":
            # The fifth epoch is written, and none is over that all ranks know of: whoever dies takes the others with it.
            cluster.wait_for(lambda: "epoch 5:" in cluster.primusctl("logs", str(job), "worker/0"), 120, "the fifth epoch")
            victim = cluster.executor(job, index=2)
            cluster.exec(victim["node"], "systemctl", "kill", "--kill-whom=main", "--signal=KILL", victim["unit"])
        assert cluster.wait_job(job, timeout=200) == 0, cluster.primusctl("logs", str(job))
        executors = cluster.status(job)["executors"]
        assert {e["attempt"] for e in executors} == {2 if name == "killed" else 1}, "all of them, or none"
        assert len({e["node"] for e in executors}) == 3
        said.append(cluster.primusctl("logs", str(job), "worker/0"))
    first = int(re.findall(r"rank 0 of 4 begins with epoch ([0-9]+)", said[1])[-1])
    assert 5 < first <= 30, said[1]
    # The same script, alone, where there is no Primus.
    alone = subprocess.run(["/usr/bin/python3", f"{SOURCE}/examples/torch-ddp/train.py", tmp_path / "by-itself.pt", "30"], check=False, timeout=200, text=True,
                           capture_output=True, env={k: v for k, v in os.environ.items() if not k.startswith(("PRIMUS_", "PYTHON"))})
    assert alone.returncode == 0 and "rank 0 of 1 begins with epoch 1" in alone.stdout, alone.stderr
    said.append(alone.stdout)
    accuracy = [float(re.search(r"held-out accuracy ([0-9.]+)", text)[1]) for text in said]
    assert min(accuracy) > 0.95 and abs(accuracy[0] - accuracy[1]) < 0.01, accuracy


def test_torch_ddp_data(new_cluster, tmp_path):
    """Three ranks with workers; one is killed in the middle of an epoch, and the whole ends bit for bit as without."""
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no python3-torch")
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        os.chmod(path, 0o755 if path != tmp_path else 0o1777)
    cluster = new_cluster(nodes=3, binds=[f"/usr:{LENT}", f"{tmp_path}:/shared"])
    with open(f"{SOURCE}/examples/torch-ddp-data/torch-ddp-data.json", encoding="utf-8") as file:
        text = file.read().replace('torch-ddp-data.pt\\""', 'torch-ddp-data.pt\\" 40"')  # epochs: it is killed long before its end
    assert ' 40"' in text
    said = {}
    for name in ("alone", "killed"):
        where = tmp_path / name
        where.mkdir()
        os.chmod(where, 0o777)
        env = {**WITH_TORCH, "CHECKPOINT": f"/shared/{name}"}
        job = cluster.submit(text.replace('"name": "torch-ddp-data",', f'"name": "torch-ddp-data", "env": {json.dumps(env)},'))
        if name == "killed":
            cluster.wait_for(lambda: "epoch 1 is over" in cluster.primusctl("logs", str(job), "worker/0"), 120, "the second epoch")
            said["status"] = cluster.primusctl("status", str(job))
            victim = cluster.executor(job, index=2)
            cluster.exec(victim["node"], "systemctl", "kill", "--kill-whom=main", "--signal=KILL", victim["unit"])
        assert cluster.wait_job(job, timeout=200) == 0, cluster.primusctl("logs", str(job))
        assert {e["attempt"] for e in cluster.status(job)["executors"]} == {2 if name == "killed" else 1}, "all of them, or none"
        said[name] = cluster.primusctl("logs", str(job), "worker/0")
    assert "Data: in lockstep (drop): the ranks read their files themselves" in said["status"]
    begun = [(int(step), int(epoch)) for step, epoch in re.findall(r"rank 0 of 3 begins with step (\d+) in epoch (\d+), 30 steps each", said["killed"])]
    assert len(begun) == 2 and begun[0] == (0, 0) and begun[1][0] >= 60 and 0 <= begun[1][0] - 30 * begun[1][1] <= 30, begun
    # An epoch whose end was not in the checkpoint yet is ended, and said, once more.
    ends = [dict(re.findall(r"epoch (\d+) is over with step (.+)", text)) for text in (said["alone"], said["killed"])]
    assert len(ends[0]) == 40 and ends[1] == ends[0]
    weights = [re.findall(r"weights [0-9.]+", text) for text in (said["alone"], said["killed"])]
    assert len(weights[0]) == 1 and weights[1] == weights[0]
    assert float(re.search(r"accuracy ([0-9.]+)", ends[0]["39"])[1]) > 0.93


WITH_MPI = {**WITH_TORCH, "PATH": f"{LENT}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": f"{LIBRARIES}:{LENT}/lib/x86_64-linux-gnu/openmpi/lib",
            "OPAL_PREFIX": LENT, "PMIX_INSTALL_PREFIX": f"{LENT}/lib/x86_64-linux-gnu/pmix2", "MPIRUN": "mpirun.openmpi", "MPI_SLOTS": "2"}


def test_mpi(new_cluster):
    """mpirun on the three hosts of a job, without ssh; every process of MPI is in an executor."""
    if not shutil.which("mpirun.openmpi") or subprocess.run(["/usr/bin/python3", "-c", "import mpi4py"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no openmpi-bin and python3-mpi4py")
    cluster = new_cluster(nodes=3, binds=[f"/usr:{LENT}"])
    with open(f"{SOURCE}/examples/mpi/mpi.json", encoding="utf-8") as file:
        text = file.read().replace('{ "MPI_SLOTS": "2" }', json.dumps(WITH_MPI))
    job = cluster.submit(text)
    assert cluster.wait_job(job, timeout=120) == 0, cluster.primusctl("logs", str(job))
    said = cluster.primusctl("logs", str(job))
    assert "pi is 3.1415926536, says each of 6 ranks on n1 n2 n3" in said
    joined = {line.split(" | ")[1] for line in said.splitlines() if line.endswith(" joins")}
    assert len(joined) == 2, "two of them were started by way of the third"
    # One that fails fails the job, and nothing of it stays anywhere.
    job = cluster.submit(text.replace("python3 pi.py", "python3 -c 'import mpi4py.MPI, os, time; mpi4py.MPI.COMM_WORLD.Get_rank() == 5 and os._exit(3); time.sleep(600)'"))
    assert cluster.wait_job(job, timeout=120) == 1
    for node in cluster.nodes:
        assert cluster.run(node, "pgrep", "-x", "orted").returncode == 1


def test_order(cluster):
    said = run(cluster, "order")
    assert len([line for line in said if "started at" in line]) == 3


@pytest.fixture
def digits(cluster, shared_dir):
    """Submits the digits example, with the data where this cluster has it, and gives the job's number."""
    target = shared_dir / "digits"
    if not target.exists():
        shutil.copytree(f"{SOURCE}/examples/digits", target)
        job = (target / "digits.json").read_text(encoding="utf-8").replace("/data/digits", "/shared/digits/data")
        (target / "digits.json").write_text(job, encoding="utf-8")
    job = cluster.primusctl_json("submit", "/shared/digits/digits.json")["job"]
    yield job
    cluster.run("n1", "primusctl", "kill", str(job))


def executors(cluster, job):
    return {(row["role"], row["index"]): row for row in cluster.primusctl_json("status", str(job))["executors"]}


def accuracy(cluster, job):
    return float(re.search(r"held-out accuracy (\d\.\d+)", cluster.primusctl("logs", str(job), "ps"))[1])


def test_digits(cluster, digits):
    assert cluster.wait_job(digits, timeout=120) == 0
    assert accuracy(cluster, digits) >= 0.95
    assert len({row["node"] for (role, _), row in executors(cluster, digits).items() if role == "worker"}) == 3


def test_digits_with_a_worker_and_the_parameter_server_killed(cluster, digits):
    """Both come again, the parameter server at the address that the workers know, and the job ends as it would have."""
    cluster.wait_for(lambda: "loss" in cluster.primusctl("logs", str(digits), "ps"), 30, "the first loss")
    before = executors(cluster, digits)
    for victim in (("worker", 1), ("ps", 0)):
        cluster.kill9(before[victim]["node"], before[victim]["unit"])
    assert cluster.wait_job(digits, timeout=120) == 0
    assert accuracy(cluster, digits) >= 0.95
    after = executors(cluster, digits)
    assert after["worker", 1]["attempt"] == 2 and after["ps", 0]["attempt"] == 2
    assert after["worker", 0]["attempt"] == 1 and after["worker", 2]["attempt"] == 1


def test_command(cluster):
    said = run(cluster, "command")
    words = int(cluster.exec("n1", "sh", "-c", "for f in 1 2 3; do tr -cs '[:alpha:]' '\\n' < /usr/share/common-licenses/GPL-$f; done | wc -l"))
    assert total(r"worker (\d) was fed (\d+) lines", said) == [0 + 1, words + 1000]


def test_time_pattern(cluster):
    assert run(cluster, "time-pattern") == ["worker 0 was fed 3000 lines"]
