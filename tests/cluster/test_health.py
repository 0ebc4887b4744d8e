# SPDX-License-Identifier: Apache-2.0
"""What is sick is provoked for real, and told within its (shortened) time; nothing is told of what is well."""
import json
import os
import subprocess

import pytest
from sandbox import MASTERD, Cluster, cluster_name, shared_directory

# As in test_examples.py: PyTorch of the build machine is lent to the hosts.
LENT = "/mnt/usr"
LIBRARIES = ":".join(f"{LENT}/lib{folder}" for folder in ("/x86_64-linux-gnu", "/x86_64-linux-gnu/blas", "/x86_64-linux-gnu/lapack", ""))
WITH_TORCH = {"PYTHONPATH": f"{LENT}/lib/python3/dist-packages", "LD_LIBRARY_PATH": LIBRARIES}

# Ranks that compute and average, as a synchronous trainer does, about eight steps a second, so that three of them leave room to the tests
# that run beside them. What a rank finds in its file it does instead.
TRAINER = r"""
import mmap, os, random, sys, threading, time
import torch, torch.distributed as dist
rank, control = int(os.environ["RANK"]), sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="env://")
gradients = torch.ones(200000)
def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
step, pipe, page = 0, None, mmap.mmap(-1, 1 << 25)
storage = os.open(f"{control}/blocks", os.O_RDONLY | os.O_DIRECT) if os.path.exists(f"{control}/blocks") else -1
print("rank", rank, "begins", flush=True)
begun = time.monotonic()
while True:
    time.sleep(max(0, begun + 0.12 - time.monotonic()))
    begun = time.monotonic()
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
    if word == "doze":
        time.sleep(0.15)
    if word == "storage":
        end = time.monotonic() + 0.15
        while time.monotonic() < end:
            os.preadv(storage, [page], random.randrange(2) << 25)
    if word == "pipe":
        pipe = pipe or os.open(f"{control}/fifo", os.O_RDONLY)
        os.read(pipe, 512)
    compute(0.5 if word == "slow" else float(sys.argv[2]))
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


def gang(sick, name, health, num=3, blocks=False, computes=0.02, **more):
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine has no python3-torch")
    control = sick.shared / name
    control.mkdir()
    if blocks:
        (control / "blocks").write_bytes(os.urandom(64 << 20))
        subprocess.run(["sync", str(control / "blocks")], check=True)
    control.chmod(0o777)
    job = sick.submit(job_of(name, health, f"exec python3 -u /shared/train.py /shared/{name} {computes}", num, env=WITH_TORCH,
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
    assert threads["index"] == 2, [threads, sick.events(job, "threads")]  # a deadlock: by where its Python is
    sick.kill(job)


def test_straggler(sick):
    job, control = gang(sick, "slow", HUNG)
    (control / "1").write_text("slow")
    event = told(sick, job, "straggler", 90)
    assert (event["role"], event["index"]) == ("worker", 1), event
    assert "it computes" in event["text"], event
    sick.kill(job)


# Seconds: a look each 5 s; of the last 16, which begin with those of before, half; after that 20 s, and four looks for the place.
APART = 150
LIGHT = 0.01  # on a busy machine, more than that would take longer than what they wait for


def line_of(text):
    return 1 + TRAINER.split("\n").index(next(line for line in TRAINER.split("\n") if text in line))


@pytest.mark.timeout(420)
def test_straggler_that_sleeps(sick):
    """It computes no more than the others, and nothing lies unread at it; the verdict says where its program sleeps."""
    job, control = gang(sick, "doze", HUNG, computes=LIGHT)
    sick.exec("n1", "sleep", "25")
    assert verdicts(sick, job) == []  # all in step: nobody
    (control / "1").write_text("doze")
    event = told(sick, job, "straggler", APART)
    assert (event["role"], event["index"]) == ("worker", 1), event
    assert f"its program sleeps, in <module> (train.py:{line_of('time.sleep(0.15)')}) in" in event["text"], event
    assert "its program sleeps" in (why := sick.primusctl("why", str(job))), why
    (control / "1").write_text("")
    told(sick, job, "recovered", 120)  # until a quarter of the last looks is left: up to twenty
    sick.kill(job)


def test_straggler_that_waits_for_storage(sick):
    """It reads a file past the page cache, from the disk, 32 MiB at once: on a busy machine, short waits become waits for a CPU."""
    job, control = gang(sick, "storage", HUNG, blocks=True, computes=LIGHT)
    (control / "0").write_text("storage")
    event = told(sick, job, "straggler", APART)
    assert (event["role"], event["index"]) == ("worker", 0), event
    assert f"it waits for storage, in <module> (train.py:{line_of('os.preadv(')}) in" in event["text"], event
    sick.kill(job)


def test_straggler_that_waits_for_a_file(sick):
    """Its data comes as slowly out of a file (a FIFO, in the place of a file system's server) as another process writes it."""
    job, control = gang(sick, "pipe", HUNG, computes=LIGHT)
    where = sick.executor(job, index=2)
    feeder = ("import os, time\nout = os.open('/shared/pipe/fifo', os.O_RDWR)\n"
              "while True: os.write(out, bytes(512)); time.sleep(0.2)")
    sick.exec(where["node"], "systemd-run", "--unit=slow-pipe", "--property=UMask=0000", "python3", "-c",
              "import os; os.path.exists('/shared/pipe/fifo') or os.mkfifo('/shared/pipe/fifo', 0o666)\n" + feeder)
    try:
        sick.wait_for(lambda: (control / "fifo").exists(), 20, "a FIFO")
        (control / "2").write_text("pipe")
        event = told(sick, job, "straggler", APART)
        assert (event["role"], event["index"]) == ("worker", 2), event
        assert f"it waits for storage, in <module> (train.py:{line_of('os.read(pipe')}) in" in event["text"], event
    finally:
        sick.exec(where["node"], "systemctl", "stop", "slow-pipe")
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


ELSEWHERE = """
import os, threading, time
while time.process_time() < 3:
    pass
held = threading.Lock()
held.acquire()
def meet_the_others():
    held.acquire()
def save_checkpoint():
    held.acquire()
save_checkpoint() if os.environ["RANK"] == "2" else meet_the_others()
"""


def test_elsewhere_in_its_program(sick):
    """To the kernel all three wait for a lock; that one waits in another function is found without import primus."""
    (sick.shared / "elsewhere.py").write_text(ELSEWHERE)
    job = sick.submit(job_of("elsewhere", {"hung": {"after": "8s"}, "idle": {"action": "off"}}, "exec python3 /shared/elsewhere.py", 3,
                             role={"scheduleStrategy": {"maxReplicasPerNode": 1}, "memoryMb": 64}))
    event = told(sick, job, "odd-one", 120)
    assert event["index"] == 2, event
    assert "2 in meet_the_others (elsewhere.py:8), 1 in save_checkpoint (elsewhere.py:10)" in event["text"], event
    assert "elsewhere in its program" in event["text"]
    said = [e["text"] for e in sick.events(job, "threads")]
    assert any("save_checkpoint" in text for text in said) and not any("primus-" in text.split(":")[0] for text in said), said
    stacks = sick.primusctl("stacks", str(job), "worker/2")
    assert "in save_checkpoint" in stacks, stacks
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
