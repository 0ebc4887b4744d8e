# SPDX-License-Identifier: Apache-2.0
"""files[]: one transfer per host, however many executors; the cache; what is said when it fails."""
import json
import os

import pytest

WHERE = "/shared/files"


@pytest.fixture(scope="module")
def source(shared_dir):
    top = shared_dir / "files"
    top.mkdir()
    top.chmod(0o755)
    (top / "one.sh").write_text("echo it runs\n")
    for i in range(2000):
        path = top / "tree" / f"d{i % 20}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"file {i}\n")
    (top / "large.bin").write_bytes(os.urandom(8 << 20))
    (top / "other.bin").write_bytes(os.urandom(4 << 20))
    (top / "private").write_text("nobody's business\n")
    (top / "private").chmod(0o600)
    os.mkfifo(top / "fifo")
    return top


def received(cluster, node):
    return int(cluster.exec(node, "awk", "/host0:/ {print $2}", "/proc/net/dev"))


def submit(cluster, source, files, command, num=1, nodes=("n2", "n3")):
    config = {"name": "files", "files": files, "role": [
        {"roleName": "w", "num": num, "vcores": 0, "memoryMb": 0, "nodes": list(nodes), "command": command, "successPercent": 100,
         "scheduleStrategy": {"maxReplicasPerNode": (num + len(nodes) - 1) // len(nodes)}}]}
    (source / "job.json").write_text(json.dumps(config))
    (source / "job.json").chmod(0o644)
    return cluster.run("n1", "primusctl", "submit", "--json", "job.json", user="ml", cwd=WHERE)


def number(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["job"]


def test_a_file(cluster, source):
    job = number(submit(cluster, source, ["one.sh"], "sh one.sh"))
    assert cluster.wait_job(job) == 0
    assert cluster.primusctl("logs", str(job)) == "it runs\n"


def test_a_tree(cluster, source):
    job = number(submit(cluster, source, ["tree"], "test $(find tree -type f | wc -l) = 2000 && grep -q 'file 7$' tree/d7/f7", 8))
    assert cluster.wait_job(job) == 0


def test_one_transfer_per_host(cluster, source):
    size = (source / "large.bin").stat().st_size
    before = {node: received(cluster, node) for node in ("n2", "n3")}
    job = number(submit(cluster, source, ["large.bin"], f"test $(stat -c %s large.bin) = {size}", 10))
    assert cluster.wait_job(job) == 0
    for node, bytes_before in before.items():
        assert received(cluster, node) - bytes_before in range(size, size * 5 // 4), node
    # The next job has it already.
    before = {node: received(cluster, node) for node in ("n2", "n3")}
    assert cluster.wait_job(number(submit(cluster, source, ["large.bin"], "true", 10))) == 0
    for node, bytes_before in before.items():
        assert received(cluster, node) - bytes_before < size // 4, node


@pytest.mark.parametrize("name, why", [("absent", "absent: No such file"), ("private", "private: Permission denied"),
                                       ("fifo", "fifo: is neither a file nor a folder")])
def test_refused_at_submit(cluster, source, name, why):
    done = submit(cluster, source, [name], "true")
    assert done.returncode in (1, 2) and why in done.stderr and "files" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("where, why", [("bundles", "the disk of this host's cache of files is full"),
                                        ("work", "the job's files could not be unpacked")])
def test_full_disk(cluster, source, where, why):
    path = f"/var/lib/primus-agent/{where}"
    owner = "primus-agent" if where == "bundles" else "root"
    cluster.exec("n3", "sh", "-c", f"mount -t tmpfs -o size=1m,mode=755,uid=$(id -u {owner}) tmpfs {path}")
    try:
        job = number(submit(cluster, source, ["other.bin"], "true", nodes=["n3"]))
        assert cluster.wait_job(job) == 1
        assert why in cluster.primusctl("status", str(job))
        if where == "work":
            cluster.wait_for(lambda: "No space left on device" in cluster.primusctl("status", str(job)), 10, "the error in status")
    finally:
        cluster.wait_for(lambda: cluster.run("n3", "umount", path).returncode == 0, 10, "unmounted")
