# SPDX-License-Identifier: Apache-2.0
"""masterd against an agent with a good certificate that says anything (rogue-agent.c): it goes on, its memory stays bounded, other
hosts and their jobs notice nothing, and what it wrote can be read by the next masterd. PRIMUS_ROGUE_SECONDS and PRIMUS_ROGUE_SEED
make a campaign of it; --build a build with sanitizers makes it worth more."""
import collections
import os
import re
import shutil
import time

import pytest
from sandbox import AGENTD, MASTERD

SECONDS = int(os.environ.get("PRIMUS_ROGUE_SECONDS", "8"))
SEED = os.environ.get("PRIMUS_ROGUE_SEED", "1")


def config(num, command, **more):
    return {"name": "rogue", "role": [{"roleName": "worker", "num": num, "vcores": 0.1, "memoryMb": 16, "command": command}], **more}


def pid(cluster):
    return cluster.exec("n1", "systemctl", "show", "-P", "MainPID", MASTERD).strip()


def bring(build, tmp_path):
    program = next((p for p in (os.path.join(build, "tests/rogue-agent"), os.environ.get("PRIMUS_ROGUE", "")) if os.path.exists(p)), None)
    if not program:
        pytest.skip("rogue-agent is not built")
    shutil.copy(program, tmp_path / "rogue-agent")
    for path in (tmp_path, *tmp_path.parents[:2], *tmp_path.rglob("*")):
        path.chmod(0o755)


def test_rogue(new_cluster, build, tmp_path):
    bring(build, tmp_path)
    (tmp_path / "data").mkdir()
    for i in range(50):
        (tmp_path / "data" / f"part-{i}").write_text(f"{i}\n")
    for path in (tmp_path, *tmp_path.parents[:2], *tmp_path.rglob("*")):
        path.chmod(0o755)
    cluster = new_cluster(3, binds=[f"{tmp_path}:/shared"])
    cluster.wait_nodes()
    mine = cluster.submit({"name": "mine", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 16, "command": "sleep 1000"}]})
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(mine))["state"].upper() == "RUNNING", 20, "a job that is not the rogue's")
    where = cluster.primusctl_json("status", str(mine))["executors"][0]["node"]
    rogue = "n3" if where == "n2" else "n2"
    cluster.exec(rogue, "systemctl", "stop", AGENTD)
    before = pid(cluster)
    with cluster.process(rogue, "/shared/rogue-agent", "n1", "7747", str(SECONDS), SEED) as running:
        end = time.monotonic() + SECONDS
        jobs = []
        while time.monotonic() < end and running.poll() is None:
            jobs.append(cluster.submit(config(8, "sleep 2", onPartition=("replace", "stop", "wait")[len(jobs) % 3])))
            if len(jobs) % 3 == 0:
                cluster.run("n1", "primusctl", "kill", str(jobs.pop(0)), user="ml")
            assert cluster.run("n1", "primusctl", "list", user="ml").returncode == 0
            for job in jobs[-3:]:
                for command in ("status", "events"):
                    done = cluster.run("n1", "primusctl", command, str(job), user="ml")
                    assert done.returncode == 0, done.stderr
                cluster.run("n1", "primusctl", "logs", str(job), user="ml", timeout=90)
        said = running.communicate(timeout=60)[0]
    print(said)
    journal = cluster.exec("n1", "journalctl", "--no-pager", "-o", "cat", "-u", MASTERD)
    assert "Sanitizer" not in journal and "runtime error" not in journal, journal[journal.find("Sanitizer") - 200:][:6000]
    assert pid(cluster) == before, journal[-3000:]
    assert cluster.primusctl_json("status", str(mine))["state"].upper() == "RUNNING"
    rss = int(cluster.exec("n1", "sh", "-c", f"grep VmRSS /proc/{before}/status").split()[1])
    print(f"masterd has {rss} kB")
    assert rss < (600000 if "asan" in build else 80000)
    for job in jobs:
        cluster.run("n1", "primusctl", "kill", str(job), user="ml")
    cluster.primusctl("node", "remove", rogue, user="root")
    assert cluster.submit(config(1, "true"))
    cluster.exec("n1", "systemctl", "restart", MASTERD)
    cluster.wait_nodes(nodes=[n for n in cluster.nodes if n != rogue])
    last = cluster.submit(config(2, "true"))
    assert cluster.wait_job(last) == 0
    assert cluster.primusctl_json("status", str(mine))["state"].upper() == "RUNNING"


def cpu(cluster, process):
    """Seconds."""
    fields = cluster.exec("n1", "cat", f"/proc/{process}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_floods(new_cluster, build, tmp_path):
    """One that says the same thing as fast as it is read, most of it unusable: it is read more slowly, and does not fill the journal.
    Whoever submits, and the other hosts, notice nothing."""
    bring(build, tmp_path)
    cluster = new_cluster(2, binds=[f"{tmp_path}:/shared"])
    cluster.wait_nodes()
    cluster.exec("n2", "systemctl", "stop", AGENTD)
    process, seen = pid(cluster), {}
    for method in ("HookResult", "Register", "Hello", "ScanBatch", "Exited", "FeedReport", "Renew"):
        used, lines = cpu(cluster, process), len(cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD).splitlines())
        with cluster.process("n2", "/shared/rogue-agent", "n1", "7747", "5", SEED, method) as running:
            worst = 0
            while running.poll() is None:
                begin = time.monotonic()
                assert cluster.wait_job(cluster.submit(config(1, "true", nodes="n1"))) == 0
                worst = max(worst, time.monotonic() - begin)
            said = running.communicate(timeout=30)[0].strip()
        used = cpu(cluster, process) - used
        journal = cluster.exec("n1", "journalctl", "-q", "-o", "cat", "-u", MASTERD).splitlines()[lines:]
        seen[method] = (used, len([line for line in journal if "Job " not in line]))
        print(f"{method}: {said}; masterd used {used:.2f} s, wrote {seen[method][1]} lines that are of no job; the slowest job took {worst:.2f} s;",
              "mostly:", collections.Counter(re.sub(r"\d+", "N", line) for line in journal if "Job " not in line).most_common(2))
        assert worst < 10
    assert pid(cluster) == process
    assert cluster.node_states()["n1"] == "READY"
    assert all(lines < 540 for _, lines in seen.values()), seen
    assert all(used < 2 for used, _ in seen.values()), seen
