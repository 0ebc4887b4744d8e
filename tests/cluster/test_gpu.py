# SPDX-License-Identifier: Apache-2.0
"""GPUs that are none: a host with a libnvidia-ml.so.1 that shows what a file says (tests/fake-nvml), and device nodes of other devices.

What the kernel refuses is not seen here (a container host has no device controller); tests/vm/limits-vm shows that.
"""
import json

import pytest
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

HOST = "n1"
MODEL = "NVIDIA_H100_80GB_HBM3"
GIB = 1 << 30
CAPS = "/proc/driver/nvidia/capabilities"


def uuid(n):
    return f"GPU-{n}{n}{n}{n}{n}{n}{n}{n}-0000-1111-2222-333333333333"


def mig(n):
    return f"MIG-{n}{n}{n}{n}{n}{n}{n}{n}-0000-1111-2222-333333333333"


def gpu(n, **more):
    keys = {"uuid": uuid(n), "name": MODEL, "pci": f"0000:{n + 1}b:00", "minor": n, "memory": 80 * GIB, "used": GIB, "utilization": 50, "power": 300000,
            "temperature": 40, "corrected": 0, "uncorrected": 0, "rows": "0,0", "replays": 0, "throttle": 0, "recovery": 0, "mig": 0, **more}
    return f"gpu {n} " + " ".join(f"{k}={v}" for k, v in keys.items())


TWO_PAIRS = [gpu(n) for n in range(4)] + ["link 0 2", "link 1 3"]


@pytest.fixture(scope="module")
def host(build):
    """One host, with four GPUs, joined two by two."""
    with Cluster(cluster_name(), 1, build=build, binds=[f"{build}/tests/fake-nvml:/opt/fake-nvml"],
                 conf=["masterd.conf:Master.ConditionGPU=drain", "agentd.conf:Agent.ConditionSettleSec=1s"]) as cluster:
        show(cluster, *TWO_PAIRS)
        # Nodes of harmless devices; a file does where none can be made.
        cluster.exec(HOST, "sh", "-c", """set -e
            for n in 0 1 2 3; do mknod -m 666 /dev/nvidia$n c 7 $n 2>/dev/null || touch /dev/nvidia$n; done
            for n in ctl -uvm -uvm-tools; do mknod -m 666 /dev/nvidia$n c 7 128 2>/dev/null || touch /dev/nvidia$n; done
            ln -s /opt/fake-nvml/libnvidia-ml.so.1 /usr/lib/""")
        cluster.exec(HOST, "systemctl", "restart", AGENTD)
        cluster.wait_nodes()
        yield cluster


@pytest.fixture(autouse=True)
def settled(host):
    yield
    show(host, *TWO_PAIRS)


def show(cluster, *lines):
    cluster.exec(HOST, "sh", "-c", "cat > /run/fake-nvml.new && mv /run/fake-nvml.new /run/fake-nvml", input="\n".join(lines) + "\n")


def gpu_list(cluster):
    return cluster.shown(HOST).get("gpuList", [])


def conditions(cluster):
    return cluster.shown(HOST).get("conditions", [])


def well(cluster):
    return len(gpu_list(cluster)) == 4 and not conditions(cluster)


def connected(cluster):
    """Not what masterd takes the host for, which may be what it was before a restart."""
    return cluster.exec(HOST, "busctl", "get-property", "org.primus.Agent1", "/org/primus/Agent1", "org.primus.Agent1.Manager", "Connected").strip() == "b true"


def role(name="worker", num=1, **keys):
    return {"roleName": name, "num": num, "vcores": 0.1, "memoryMb": 32, "gpuNum": 1, "command": "env | grep -E '^(CUDA|ROCR|PRIMUS_GPUS)' ; sleep 600",
            "failover": {"commonFailoverPolicy": {"restartType": "NEVER"}}, **keys}


def start(cluster, *roles, **keys):
    job = cluster.submit({"name": "gpus", "role": list(roles), **keys})
    cluster.wait_state(job, "RUNNING")
    return job


def variables(cluster, job, index=0, name="worker"):
    """Of an executor, as it printed them; its lines may have its name in front."""
    def printed():
        out = cluster.run("n1", "primusctl", "logs", str(job), f"{name}/{index}", user="ml").stdout
        return dict(line.split(" | ")[-1].split("=", 1) for line in out.splitlines() if "=" in line) if "CUDA_VISIBLE_DEVICES=" in out else None
    return cluster.wait_for(printed, what="the executor's variables")


def allowed(cluster, job, index=0, name="worker"):
    unit = cluster.executor(job, name, index)["unit"]
    out = cluster.exec(HOST, "systemctl", "show", unit, "-pDeviceAllow", "-pDevicePolicy", "-pLimitMEMLOCK")
    shown = [line.split("=", 1) for line in out.splitlines()]
    assert ["DevicePolicy", "closed"] in shown
    return {value.split()[0] for key, value in shown if key == "DeviceAllow"}


def gpus_of(nodes):
    return sorted(n for n in nodes if n.startswith("/dev/nvidia") and n[len("/dev/nvidia"):].isdigit())


def test_inventory(host):
    host.wait_for(lambda: len(gpu_list(host)) == 4, what="four GPUs")
    assert [g["uuid"] for g in gpu_list(host)] == [uuid(n) for n in range(4)]
    assert all(g["model"] == "NVIDIA H100 80GB HBM3" and g["memory"] == 80 * GIB and not g["mig"] and not g["taken"] for g in gpu_list(host))
    text = host.primusctl("node", "show", HOST, user="root")
    assert "4 x NVIDIA H100 80GB HBM3, 80G" in text, text


def test_two_executors_share_what_is_joined(host):
    """Two executors of a job get GPUs that are joined, see both, and may open both; the host's others they may not."""
    job = start(host, role(num=2, gpu={"model": "H100"}))
    seen = [variables(host, job, i) for i in range(2)]
    assert seen[0]["CUDA_VISIBLE_DEVICES"] == seen[1]["CUDA_VISIBLE_DEVICES"]
    visible = seen[0]["CUDA_VISIBLE_DEVICES"].split(",")
    assert visible in ([uuid(0), uuid(2)], [uuid(1), uuid(3)])
    assert sorted(v["PRIMUS_GPUS"] for v in seen) == sorted(visible)
    assert [host.executor(job, index=i)["gpus"] for i in range(2)] == [[v["PRIMUS_GPUS"]] for v in seen]
    numbers = [f"/dev/nvidia{n}" for n in range(4) if uuid(n) in visible]
    for i in range(2):
        nodes = allowed(host, job, i)
        assert gpus_of(nodes) == numbers
        assert "/dev/nvidiactl" in nodes
    assert sum(g["taken"] for g in gpu_list(host)) == 2
    host.kill(job)


def test_gpu_visibility_of_its_own(host):
    job = start(host, role(num=2), gpuVisibility="executor")
    seen = [variables(host, job, i) for i in range(2)]
    assert all(v["CUDA_VISIBLE_DEVICES"] == v["PRIMUS_GPUS"] for v in seen)
    assert seen[0]["PRIMUS_GPUS"] != seen[1]["PRIMUS_GPUS"]
    assert len(gpus_of(allowed(host, job, 0))) == 2
    host.kill(job)


def test_none_given_none_opened(host):
    """A job without GPUs, and a role without in a job with some."""
    job = start(host, role("worker"), role("ps", gpuNum=0))
    assert variables(host, job, name="ps")["CUDA_VISIBLE_DEVICES"] == ""
    assert gpus_of(allowed(host, job, name="ps")) == []
    assert len(gpus_of(allowed(host, job))) == 1
    host.kill(job)


def test_who_leaves_takes_its_gpu_along(host):
    """An executor ends: the other of its job may not open that GPU any more."""
    job = start(host, role(num=1, command="sleep 600"), role("short", command="sleep 6"))
    both = gpus_of(allowed(host, job))
    assert len(both) == 2
    host.wait_for(lambda: host.executor(job, "short")["state"] == "SUCCEEDED", 30, "the end of the short one")
    host.wait_for(lambda: len(gpus_of(allowed(host, job))) == 1, what="its GPU taken from the other")
    host.kill(job)


def node(host, *arguments, user="root"):
    return host.run("n1", "primusctl", "node", *arguments, user=user)


def test_out_of_use(host):
    """One that a person has taken out of use is given to nobody, over a kill of masterd and whatever its place in the list; who has it
    keeps it. Others may not say so."""
    first = start(host, role())
    taken = variables(host, first)["PRIMUS_GPUS"]
    done = node(host, "disable", HOST, f"gpu:{taken}", "--reason=too hot")
    assert done.returncode == 0 and "what runs on it goes on" in done.stdout, done
    other = next(n for n in range(4) if uuid(n) != taken)
    assert node(host, "disable", HOST, f"gpu:{other}").returncode == 0
    host.kill9_now("n1", MASTERD)
    host.wait_nodes()
    assert host.status(first)["state"] == "RUNNING"
    host.kill(first)
    text = node(host, "show", HOST).stdout
    assert f"Out of use: GPU {int(taken[4])} by root, since" in text and ": too hot" in text, text
    assert "GPUs:       2 of 4 free" in text, text
    two = start(host, role(num=2), gpuVisibility="executor")
    assert {variables(host, two, i)["PRIMUS_GPUS"] for i in range(2)} == {uuid(n) for n in range(4)} - {taken, uuid(other)}
    more = host.submit({"name": "more", "role": [role()]})
    why = lambda: host.primusctl("why", str(more))
    host.wait_for(lambda: "GPU" in why(), 10, "what it is short of")
    show(host, *[gpu(n, uuid=uuid(3 - n), minor=3 - n, pci=f"0000:{n + 5}b:00") for n in range(4)])  # another order
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_for(lambda: [g["uuid"] for g in gpu_list(host)] == [uuid(n) for n in (3, 2, 1, 0)], 30, "another order")
    host.wait_nodes()
    assert host.status(more)["state"] == "QUEUED", why()
    assert "is out of use already" in node(host, "disable", HOST, f"gpu:{taken}").stderr
    refused = node(host, "disable", HOST, "gpu:7")
    assert refused.returncode == 1 and f"Node {HOST} has no GPU '7'" in refused.stderr and "it has 4" in refused.stderr
    assert "not a GPU: 2" in node(host, "disable", HOST, "2").stderr
    assert node(host, "enable", HOST, f"gpu:{taken}", user="eve").returncode != 0
    assert host.status(more)["state"] == "QUEUED"
    assert node(host, "enable", HOST, f"gpu:{taken}").returncode == 0
    assert variables(host, more)["PRIMUS_GPUS"] == taken
    assert "is in use" in node(host, "enable", HOST, f"gpu:{taken}").stderr
    assert node(host, "enable", HOST, f"gpu:{uuid(other)}").returncode == 0
    host.kill(two, more)
    assert "Out of use" not in node(host, "show", HOST).stdout
    show(host, *TWO_PAIRS)
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_nodes()


def test_listed_anew(host):
    """A GPU falls off its bus and the agent starts again: those behind it move up in the list, and whoever has one keeps it alone."""
    jobs = [start(host, role()) for _ in range(3)]
    have = [variables(host, job)["PRIMUS_GPUS"] for job in jobs]
    gone = next(n for n in range(4) if uuid(n) not in have or n == int(have[0][4]))
    host.kill(jobs[0])
    show(host, *[gpu(n) for n in range(4) if n != gone])
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_for(lambda: len(gpu_list(host)) == 3, 30, "three GPUs")
    host.wait_nodes()
    last = start(host, role())
    assert variables(host, last)["PRIMUS_GPUS"] not in have[1:] + [uuid(gone)]
    host.kill(*jobs[1:], last)
    show(host, *TWO_PAIRS)
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_for(lambda: len(gpu_list(host)) == 4, 30, "four GPUs again")
    host.wait_nodes()


def test_parts(host):
    """A GPU that is cut is offered as its parts; whoever asks for a part gets its uuid and the nodes of its capabilities."""
    can = host.run(HOST, "sh", "-c", f"mount -t tmpfs tmpfs /proc/driver && mkdir -p {CAPS}/gpu0/mig/gi1/ci0 {CAPS}/gpu0/mig/gi2/ci0 && "
                   f"for x in gi1:10 gi1/ci0:11 gi2:20 gi2/ci0:21; do echo \"DeviceFileMinor: ${{x#*:}}\" > {CAPS}/gpu0/mig/${{x%:*}}/access; done")
    if can.returncode != 0:
        pytest.skip(f"/proc/driver cannot be covered here: {can.stderr}")
    # With control groups or tunables protected, systemd gives the service a /proc without what is mounted upon it; NVIDIA's driver mounts nothing.
    host.exec(HOST, "sh", "-c", f"d=/run/systemd/system/{AGENTD}.d; mkdir -p $d; printf '[Service]\\nProtectControlGroups=no\\nProtectKernelTunables=no\\n' > $d/proc.conf; "
              f"systemctl daemon-reload; systemctl restart {AGENTD}")
    host.wait_nodes()
    show(host, gpu(0, mig=1), f"part 0 gi=1 ci=0 uuid={mig(1)} profile=1g.10gb memory={10 * GIB}", f"part 0 gi=2 ci=0 uuid={mig(2)} profile=2g.20gb memory={20 * GIB}",
         gpu(1))
    host.wait_for(lambda: {g["uuid"] for g in gpu_list(host)} == {mig(1), mig(2), uuid(1)}, 30, "two parts and a GPU")
    host.wait_nodes()
    assert {g["mig"] for g in gpu_list(host)} == {"1g.10gb", "2g.20gb", ""}
    job = start(host, role(gpu={"mig": "2g.20gb"}))
    whole = start(host, role())
    assert variables(host, job)["CUDA_VISIBLE_DEVICES"] == mig(2)
    assert variables(host, whole)["CUDA_VISIBLE_DEVICES"] == uuid(1)
    nodes = allowed(host, job)
    assert {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap20", "/dev/nvidia-caps/nvidia-cap21"} <= nodes
    assert "/dev/nvidia-caps/nvidia-cap10" not in nodes
    host.kill(job, whole)
    host.exec(HOST, "sh", "-c", f"umount /proc/driver; rm /run/systemd/system/{AGENTD}.d/proc.conf; systemctl daemon-reload; systemctl restart {AGENTD}")
    host.wait_nodes()
    show(host, *TWO_PAIRS)
    host.wait_for(lambda: len(gpu_list(host)) == 4, 30, "four GPUs again")
    host.wait_nodes()


def test_rdma_needs_devices(host):
    text = json.dumps({"name": "rdma", "role": [role(rdma=True)]})
    done = host.run("n1", "sh", "-c", "f=$(mktemp /tmp/job.XXXXXX); cat > $f; primusctl submit $f", user="ml", input=text)
    assert done.returncode != 0 and "no host of the cluster has rdma" in done.stderr
    host.exec(HOST, "sh", "-c", "mkdir -p /dev/infiniband; touch /dev/infiniband/uverbs0")
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_for(lambda: "rdma" in host.shown(HOST)["labels"], 20, "the label")
    job = start(host, role(rdma=True, gpuNum=0))
    assert {"char-infiniband_verbs", "/dev/infiniband/rdma_cm"} <= allowed(host, job)
    assert "LimitMEMLOCK=infinity" in host.exec(HOST, "systemctl", "show", host.executor(job)["unit"], "-pLimitMEMLOCK")
    host.kill(job)


def test_ecc_is_said(host):
    show(host, gpu(0, uncorrected=3), *TWO_PAIRS[1:])
    host.wait_for(lambda: any("3 ECC errors" in c["text"] and c["severity"] == "warn" for c in conditions(host)), 20, "the warning")
    assert host.node_states()[HOST] == "READY"
    show(host, *TWO_PAIRS)
    host.wait_for(lambda: not conditions(host) or all("ECC" not in c["text"] for c in conditions(host)), 30, "its end")


def test_who_uses_it_from_outside_is_named(host):
    """A process of a user's that is in no executor's unit and has memory of a GPU that was given to one."""
    job = start(host, role(command="sleep 600"))
    number = next(n for n in range(4) if uuid(n) in host.exec(HOST, "systemctl", "show", host.executor(job)["unit"], "-pEnvironment"))
    main = host.exec(HOST, "systemctl", "show", "-P", "MainPID", host.executor(job)["unit"]).strip()
    host.exec(HOST, "systemd-run", "-q", "--unit=stray", "--uid=ml", "sleep", "600")
    pid = host.exec(HOST, "systemctl", "show", "-P", "MainPID", "stray").strip()
    try:
        show(host, *TWO_PAIRS, f"process {number} pid={main} memory=1000000")
        host.wait_for(lambda: host.exec(HOST, "true") == "" and len(gpu_list(host)) == 4, 10, "a look")
        assert not any("outside of any executor" in c["text"] for c in conditions(host))
        show(host, *TWO_PAIRS, f"process {number} pid={main} memory=1000000", f"process {number} pid={pid} memory=5000000")
        said = f"process {pid} (sleep) of uid 1000, the job's owner, uses it outside of any executor, in /system.slice/stray.service; it is worker/0's of job {job}"
        host.wait_for(lambda: any(c["text"] == said and c["severity"] == "warn" for c in conditions(host)), 20, "the condition")
        assert host.node_states()[HOST] == "READY"
        host.wait_for(lambda: "outside of any executor" in json.dumps(host.events(job)), 10, "an event of the job")
        host.exec(HOST, "systemctl", "stop", "stray")
        show(host, *TWO_PAIRS, f"process {number} pid={main} memory=1000000")
        host.wait_for(lambda: not any("outside of any executor" in c["text"] for c in conditions(host)), 30, "its end")
    finally:
        host.run(HOST, "systemctl", "stop", "stray")
        host.kill(job)


def test_a_library_that_hangs(host):
    """Neither what runs nor what is started waits for it; the host is held until it answers."""
    show(host, *TWO_PAIRS, "hang")
    host.wait_for(lambda: any("has not answered" in c["text"] for c in conditions(host)), 60, "the condition")
    assert "has not answered" in host.primusctl("node", "show", HOST, user="root")
    host.exec(HOST, "systemctl", "restart", AGENTD, timeout=60)  # it starts without the library
    host.wait_for(lambda: connected(host), 40, "the host back")
    show(host, *TWO_PAIRS)
    host.wait_for(lambda: well(host), 60, "all as before")
    host.wait_nodes()


def test_a_library_that_hung_before(host):
    """It answers an agent that has been started since, and gave up on nothing: what the one before told is over at once."""
    show(host, *TWO_PAIRS, "hang")
    host.wait_for(lambda: any("has not answered" in c["text"] for c in conditions(host)), 60, "the condition")
    host.exec(HOST, "systemctl", "stop", AGENTD, timeout=60)
    show(host, *TWO_PAIRS)
    host.exec(HOST, "systemctl", "start", AGENTD)
    host.wait_for(lambda: well(host), 20, "all as before")
    host.wait_nodes()


ACTORS = """
import os
from primus import actors

class Seen:
    def gpus(self):
        return os.environ["CUDA_VISIBLE_DEVICES"]

with actors.Pool(hosts=1, slots=2, cpus=0.1, memory="64M", gpus=2) as pool:
    for seen in sorted(f.result() for f in [one.gpus() for one in [pool.create(Seen) for _ in range(2)]]):
        print(seen)
"""


def test_actors(host):
    """Each has so many of its own."""
    host.exec(HOST, "tee", "/tmp/seen.py", input=ACTORS)
    pairs = [line.split(",") for line in host.exec(HOST, "python3", "/tmp/seen.py", user="ml").split()]
    assert [len(pair) for pair in pairs] == [2, 2] and {gpu for pair in pairs for gpu in pair} == {uuid(n) for n in range(4)}


def test_xid_drains(host):
    """Last: it holds until the host restarts."""
    job = start(host, role(command="sleep 600"))
    number = next(n for n in range(4) if uuid(n) in host.exec(HOST, "systemctl", "show", host.executor(job)["unit"], "-pEnvironment"))
    show(host, *TWO_PAIRS, f"xid {number} 79")
    host.wait_for(lambda: any("Xid 79" in c["text"] and c["severity"] == "drain" for c in conditions(host)), 20, "the condition")
    assert host.node_states()[HOST] != "READY"
    assert "GPU has fallen off the bus: restart the host" in host.primusctl("node", "show", HOST, user="root")
    host.exec(HOST, "systemctl", "kill", "--signal=ABRT", host.executor(job)["unit"])
    assert host.wait_job(job) == 1
    assert "Xid 79" in json.dumps(host.events(job)) + json.dumps(host.status(job)), host.events(job)
    # A restart of the agent does not make the GPU better.
    host.exec(HOST, "systemctl", "restart", AGENTD)
    host.wait_for(lambda: connected(host), 20, "the host back")
    host.wait_for(lambda: any("Xid 79" in c["text"] for c in conditions(host)), 20, "the condition again")
