# SPDX-License-Identifier: Apache-2.0
"""What is sick is provoked for real, and told within its (shortened) time; nothing is told of what is well."""
import json
import subprocess

import pytest
from sandbox import MASTERD, Cluster, cluster_name, shared_directory

# As in test_examples.py: PyTorch of the build machine is lent to the hosts.
LENT = "/mnt/usr"
LIBRARIES = ":".join(f"{LENT}/lib{folder}" for folder in ("/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack", ""))
WITH_TORCH = {"PYTHONPATH": f"{LENT}/lib/python3/dist-packages", "LD_LIBRARY_PATH": LIBRARIES}

# Ranks that compute and average, as a synchronous trainer does. What a rank finds in its file it does instead.
TRAINER = r"""
import os, sys, threading, time
import torch, torch.distributed as dist
rank, control = int(os.environ["RANK"]), sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="env://")
gradients = torch.ones(200000)
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
step = 0
print("rank", rank, "begins", flush=True)
while True:
    try:
        word = open(f"{control}/{rank}").read().strip()
    except FileNotFoundError:
        word = ""
    if word == "skip":
        time.sleep(3600)
    if word == "loop":
        while True:
            pass
    if word == "deadlock":
        lock = threading.Lock(); lock.acquire(); lock.acquire()
    compute(0.5 if word == "slow" else 0.05)
    dist.all_reduce(gradients)
    step += 1
    if step % 20 == 0 and rank == 0:
        print("step", step, flush=True)
"""


@pytest.fixture(scope="module")
def sick(build, tmp_path_factory):
    shared = shared_directory(tmp_path_factory, "health")
    (shared / "train.py").write_text(TRAINER)
    with Cluster(cluster_name(), 3, build=build, binds=[f"/usr:{LENT}", f"{shared}:/shared"],
                 conf=["agentd.conf:Agent.TelemetrySec=1s", "masterd.conf:Master.QuarantineScore=0"]) as cluster:
        cluster.wait_nodes()
        cluster.shared = shared
        yield cluster


def job_of(name, health, command, num=1, **more):
    role = {"roleName": "worker", "num": num, "vcores": 0.25, "memoryMb": 512, "command": command, **more.pop("role", {})}
    return {"name": name, "health": health, "backoff": {"initial": 0}, "role": [role], **more}


def gang(sick, name, health, num=3, **more):
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no python3-torch")
    control = sick.shared / name
    control.mkdir()
    control.chmod(0o777)
    job = sick.submit(job_of(name, health, f"exec python3 -u /shared/train.py /shared/{name}", num, env=WITH_TORCH,
                             **{"role": {"scheduleStrategy": {"maxReplicasPerNode": 1}}, **more}))
    sick.wait_for(lambda: "step 100" in sick.primusctl("logs", str(job), "worker/0"), 120, "a hundred steps")
    return job, control


def verdicts(sick, job):
    return sick.status(job)["verdicts"]


def told(sick, job, kind, seconds):
    found = []

    def look():
        found[:] = [e for e in sick.events(job, kind)]
        return found
    try:
        sick.wait_for(look, seconds, f"{kind} of job {job}")
    except AssertionError as error:
        top = sick.run("n1", "primusctl", "top", "--once", str(job)).stdout
        raise AssertionError(f"{error}\n{json.dumps(sick.events(job), indent=1)}\n{top}") from error
    return found[0]


def trainer_pid(sick, executor):
    """On its host, of the python below the unit's first process."""
    cgroup = sick.exec(executor["node"], "systemctl", "show", "-P", "ControlGroup", executor["unit"]).strip()
    return sick.exec(executor["node"], "sh", "-c",
                     f"for p in $(cat /sys/fs/cgroup/unified{cgroup}/cgroup.procs /sys/fs/cgroup{cgroup}/cgroup.procs 2>/dev/null); do "
                     f"grep -qz train.py /proc/$p/cmdline && echo $p; done | sort -n | tail -1").strip()


HUNG = {"hung": {"after": "10s"}, "straggler": {"after": "20s"}, "idle": {"action": "off"}}


def test_healthy_then_stopped(sick):
    """Nothing for 30 s; then a rank is stopped, and named; it goes on, and that is said."""
    job, _ = gang(sick, "stopped", HUNG)
    sick.wait_for(lambda: "step 240" in sick.primusctl("logs", str(job), "worker/0"), 180, "more steps")
    assert verdicts(sick, job) == []
    victim = sick.executor(job, index=1)
    pid = trainer_pid(sick, victim)
    sick.exec(victim["node"], "kill", "-STOP", pid)
    event = told(sick, job, "hung", 30)
    assert (event["role"], event["index"]) == ("worker", 1) and "stopped" in event["text"], event
    odd = told(sick, job, "odd-one", 30)
    assert odd["index"] == 1 and "1 stopped" in odd["text"], odd
    assert verdicts(sick, job)[0]["index"] == 1
    assert "hung for" in sick.primusctl("status", str(job))
    sick.exec(victim["node"], "kill", "-CONT", pid)
    told(sick, job, "recovered", 30)
    sick.wait_for(lambda: verdicts(sick, job) == [], 10, "no verdict")
    sick.kill(job)


@pytest.mark.parametrize("word", ["skip", "loop", "deadlock"])
def test_skips_all_reduce(sick, word):
    job, control = gang(sick, f"skips-{word}", HUNG)
    (control / "2").write_text(word)
    event = told(sick, job, "hung", 40)
    assert "none of 3 makes progress" in event["text"], event
    threads = told(sick, job, "odd-one", 30)
    if word != "deadlock":  # where it waits as the others wait, its Python stack tells it apart
        assert threads["index"] == 2, [threads, sick.events(job, "threads")]
    sick.kill(job)


def test_straggler(sick):
    job, control = gang(sick, "slow", HUNG)
    (control / "1").write_text("slow")
    event = told(sick, job, "straggler", 90)
    assert (event["role"], event["index"]) == ("worker", 1), event
    sick.kill(job)


def test_cut_cable(sick):
    """A rank's host is cut off from the others, and from its master: the gang is told hung long before the host is LOST."""
    job, _ = gang(sick, "cut", HUNG)
    node = next(e["node"] for e in sick.status(job)["executors"] if e["node"] != "n1")
    sick.cut(node)
    try:
        event = told(sick, job, "hung", 40)
        assert "progress" in event["text"], event
    finally:
        sick.heal(node)
    sick.wait_nodes()
    sick.kill(job)


def test_restart(sick):
    """The gang begins anew, and goes on; nobody is charged with a failure."""
    job, control = gang(sick, "again", {**HUNG, "hung": {"after": "10s", "action": "restart"}}, restartScope="job")
    victim = sick.executor(job, index=2)
    sick.exec(victim["node"], "kill", "-STOP", trainer_pid(sick, victim))
    told(sick, job, "healing", 40)
    sick.wait_for(lambda: {e["attempt"] for e in sick.status(job)["executors"]} == {2}, 60, "second attempts")
    sick.wait_for(lambda: "step 100" in sick.primusctl("logs", str(job), "worker/0"), 120, "a hundred steps")
    sick.wait_for(lambda: verdicts(sick, job) == [], 30, "no verdict")
    assert len(sick.events(job, "healing")) == 1
    sick.kill(job)


def test_replace(sick):
    job = sick.submit(job_of("elsewhere", {"hung": {"after": "8s", "action": "replace"}},
                             "exec python3 -c 'import time\nwhile time.process_time() < 8: pass\nimport threading\nx = threading.Lock()\n"
                             "x.acquire()\nimport os\nos.environ[\"PRIMUS_ATTEMPT\"] != \"1\" or x.acquire()'"))
    before = sick.executor(job)["node"]
    told(sick, job, "healing", 60)
    assert sick.wait_job(job) == 0
    executor = sick.executor(job)
    assert executor["attempt"] == 2 and executor["node"] != before


def test_idle_is_stopped(sick):
    job = sick.submit(job_of("idle", {"idle": {"after": "10s", "action": "stop"}}, "exec sleep 600"))
    assert sick.wait_job(job, timeout=60) == 3
    assert "idle" in sick.status(job)["reason"]


def test_starved(sick):
    """Its data comes as slowly as the command prints that makes them."""
    slow = "i=0; while [ $i -lt 600 ]; do echo line $i; i=$((i + 1)); sleep 0.3; done"
    job = sick.submit(job_of("starved", {"starved": {"after": "8s"}}, "exec python3 -c 'import sys\nfor line in sys.stdin: pass'",
                             role={"inputPolicy": "STREAMING"},
                             inputManager={"fileConfig": {"inputs": [
                                 {"name": "slow", "spec": {"commandInput": {"command": slow}, "textInput": {}}}]}}))
    event = told(sick, job, "starved", 90)
    assert (event["role"], event["index"]) == ("worker", 0), event
    sick.kill(job)


def test_leaking(sick):
    job = sick.submit(job_of("leaks", {"leaking": {"after": "16s", "within": "1h"}},
                             "exec python3 -c 'import time\nx = []\nwhile True: x.append(bytearray(b\"x\" * 1000000)); time.sleep(0.4)'"))
    sick.wait_state(job, "RUNNING")
    sick.exec("n1", "sleep", "6")
    if "MEMORY" in sick.primusctl("top", "--once", str(job)) and sick.run("n1", "sh", "-c", f"primusctl top --once --json {job} | grep -q memoryBytes").returncode != 0:
        sick.kill(job)
        pytest.skip("without the memory controller, nobody measures what an executor holds on these hosts")
    event = told(sick, job, "leaking", 60)
    assert "comes to its limit in about" in event["text"], event
    sick.kill(job)


def test_crash_loop(sick):
    job = sick.submit(job_of("crashes", {"crashLoop": {"action": "stop"}}, "sleep 0.2; exit 1",
                             role={"failover": {"commonFailoverPolicy": {"maxFailureTimes": 9}}}))
    assert sick.wait_job(job, timeout=60) == 1
    assert "crash-loop" in sick.status(job)["reason"] and sick.executor(job)["attempt"] <= 4


def test_told_once(sick):
    """The master is killed while a verdict stands: it is known again, and neither told nor acted upon twice."""
    job = sick.submit(job_of("once", {"hung": {"after": "8s", "action": "warn"}},
                             "exec python3 -c 'import time, threading\nwhile time.process_time() < 8: pass\nx = threading.Lock()\n"
                             "x.acquire()\nx.acquire()'"))
    told(sick, job, "hung", 60)
    sick.kill9("n1", MASTERD)
    sick.wait_for(lambda: sick.run("n1", "primusctl", "status", str(job)).returncode == 0, 30, "a master")
    assert [v["kind"] for v in verdicts(sick, job)] == ["hung"]
    assert "not all is well" in (why := sick.primusctl("why", str(job))) and "hung for" in why, why
    sick.exec("n1", "sleep", "14")
    assert [v["kind"] for v in verdicts(sick, job)] == ["hung"]
    assert len(sick.events(job, "hung")) == 1 and len(sick.events(job, "recovered")) == 0
    sick.kill(job)
