# SPDX-License-Identifier: Apache-2.0
"""What docs/gpus.md says, on GPUs that are there; tests/gpu/run starts it. What NVIDIA's nvidia-smi says is taken for the truth."""
import json
import random
import re
import time

import pytest
from conftest import HOST, nodes, nvidia_smi
from metrics_page import get, metrics, value
from sandbox import AGENTD, SOURCE

MIB = 1 << 20
CUDA = "exec python3 /opt/gpu/cuda.py"
NEVER = {"commonFailoverPolicy": {"restartType": "NEVER"}}


def role(command, gpus=1, **keys):
    return {"roleName": "worker", "num": 1, "vcores": 1, "memoryMb": 8192, "gpuNum": gpus, "command": command, "failover": NEVER, **keys}


def submit(host, *arguments, **keys):
    return host.submit({"name": "gpu", "role": [role(*arguments, **keys)]})


def output(host, job):
    return [line.split(" | ")[-1] for line in host.primusctl("logs", str(job)).splitlines()]


def ran(host, *arguments, **keys):
    """What a job printed that ended well."""
    job = submit(host, *arguments, **keys)
    status = host.wait_job(job)
    lines = output(host, job)
    assert status == 0, (lines, host.status(job))
    return lines


def started(host, command, **keys):
    """A job that has said "ready"."""
    job = submit(host, command, **keys)
    host.wait_for(lambda: "ready" in output(host, job), 30, f"'ready' of job {job}")
    return job


@pytest.fixture(autouse=True)
def nothing_left(host):
    """What a test that failed has left would hold the GPUs of the next."""
    yield
    for job in host.primusctl_json("list"):
        if job["state"] not in ("SUCCEEDED", "FAILED", "KILLED"):
            host.kill(job["job"])


def gpu_list(host):
    return host.shown(HOST).get("gpuList", [])


def conditions(host):
    return host.shown(HOST).get("conditions", [])


def metric(host, name, **labels):
    found = value(metrics(host), name, **labels)
    assert found is not None, (name, labels)
    return found


def cpu_of_agent(host):
    return int(host.exec(HOST, "systemctl", "show", "-P", "CPUUsageNSec", AGENTD))


def test_discovery(host):
    """Every GPU, by uuid, model and memory, in the order of its place on the bus."""
    there = sorted(nvidia_smi("uuid", "name", "memory.total", "pci.bus_id"), key=lambda g: g["pci.bus_id"])
    host.wait_for(lambda: len(gpu_list(host)) == len(there), 30, "all GPUs")
    for seen, gpu in zip(gpu_list(host), there):
        assert (seen["uuid"], seen["model"], seen["memory"]) == (gpu["uuid"], gpu["name"], int(gpu["memory.total"]) * MIB), (seen, gpu)
    text = host.primusctl("node", "show", HOST, user="root")
    assert f"{len(there)} x {there[0]['name']}" in text, text


def test_sees_its_own(host):
    """CUDA itself finds the one that was given, and no other."""
    lines = ran(host, "echo $CUDA_VISIBLE_DEVICES; echo $PRIMUS_GPUS; " + CUDA + " list")
    visible, own, *found = lines
    assert visible == own and own in {g["uuid"] for g in gpu_list(host)}
    assert len(found) == 1 and f"GPU-{found[0].split()[0]}" == own, lines
    number = next(i for i, g in enumerate(nvidia_smi("uuid")) if g["uuid"] == own)
    opened = dict(line.split() for line in ran(host, CUDA + " nodes"))
    assert opened.pop(f"/dev/nvidia{number}") == "opens" and set(opened.values()) <= {"EPERM"}, opened


def test_none_given_none_used(host):
    """Without a GPU of its own neither the node opens nor does CUDA find one, whatever the job makes of its environment."""
    assert set(line.split()[1] for line in ran(host, CUDA + " nodes", 0)) == {"EPERM"}
    for environment in ("", "export CUDA_VISIBLE_DEVICES=0; ", "unset CUDA_VISIBLE_DEVICES; "):
        lines = ran(host, f"{environment}{CUDA} list", 0)
        assert len(lines) == 1 and lines[0].startswith("no "), lines


def test_waits_for_one_that_is_taken(host):
    """No GPU is given twice; who waits is told for what, and has it when it is free."""
    everything = len(gpu_list(host))
    first = started(host, CUDA + " spin 60 64", gpus=everything)
    second = submit(host, CUDA + " list")
    host.wait_for(lambda: "GPU" in host.primusctl("why", str(second)), 10, "what it is short of")
    assert host.status(second)["state"] == "QUEUED"
    host.kill(first)
    assert host.wait_job(second) == 0


def test_measured(host):
    """While a trainer keeps a GPU busy, all figures are those of nvidia-smi; the executor's are put down to it."""
    megabytes = 4096
    job = started(host, f"{CUDA} spin 45 {megabytes}")
    uuid, = host.executor(job)["gpus"]
    began, used = time.monotonic(), cpu_of_agent(host)
    time.sleep(20)  # four looks
    print(f"the agent used {(cpu_of_agent(host) - used) / 1e6:.0f} ms of processor time in {time.monotonic() - began:.1f} s")
    smi = next(g for g in nvidia_smi("uuid", "memory.used", "utilization.gpu", "power.draw.instant", "temperature.gpu") if g["uuid"] == uuid)
    print(smi, *(line for line in get(host)[2].splitlines() if "gpu" in line and not line.startswith("#")), sep="\n")
    assert metric(host, "primus_gpu_utilization_ratio", gpu=uuid) >= 0.9
    assert abs(metric(host, "primus_gpu_memory_used_bytes", gpu=uuid) - int(smi["memory.used"]) * MIB) <= 16 * MIB
    assert metric(host, "primus_gpu_memory_used_bytes", gpu=uuid) >= megabytes * MIB
    assert abs(metric(host, "primus_gpu_power_watts", gpu=uuid) - float(smi["power.draw.instant"])) <= 0.2 * float(smi["power.draw.instant"])
    assert abs(metric(host, "primus_gpu_temperature_celsius", gpu=uuid) - float(smi["temperature.gpu"])) <= 5
    labels = {"job": str(job), "role": "worker"}
    assert metric(host, "primus_role_gpus", **labels) == 1
    assert metric(host, "primus_role_gpu_utilization_ratio", **labels) >= 0.9
    assert megabytes * MIB <= metric(host, "primus_role_gpu_memory_used_bytes", **labels) <= (megabytes + 2048) * MIB
    energy, began = metric(host, "primus_gpu_energy_joules_total", gpu=uuid), time.monotonic()
    time.sleep(10)
    watts = (metric(host, "primus_gpu_energy_joules_total", gpu=uuid) - energy) / (time.monotonic() - began)
    assert 0.3 * float(smi["power.draw.instant"]) <= watts <= 3 * float(smi["power.draw.instant"]), watts
    assert host.wait_job(job) == 0


def test_sessions_have_what_their_executor_has(host):
    for gpus in (1, 0):
        job = started(host, "echo ready; exec sleep 60", gpus=gpus)
        out = host.primusctl("exec", str(job), "worker/0", "--", "python3", "/opt/gpu/cuda.py", "list")
        assert out.startswith("no ") == (gpus == 0), out
        host.kill(job)


def test_who_uses_it_from_outside_is_named(host):
    """A user's process in no executor that has memory of a GPU which was given to one."""
    job = started(host, "echo ready; exec sleep 60")
    host.exec(HOST, "systemd-run", "-q", "--unit=stray", "--uid=ml", "python3", "/opt/gpu/cuda.py", "spin", "60", "64")
    try:
        host.wait_for(lambda: any("outside of any executor" in c["text"] for c in conditions(host)), 30, "the condition")
        print([c["text"] for c in conditions(host)])
    finally:
        host.run(HOST, "systemctl", "stop", "stray")
    host.wait_for(lambda: not any("outside of any executor" in c["text"] for c in conditions(host)), 60, "its end")
    host.kill(job)


def test_xid(host):
    """A trainer that writes where it has no memory: its exit names the Xid, the host notes it, and goes on."""
    job = submit(host, CUDA + " fault")
    assert host.wait_job(job) == 1
    said = json.dumps(host.status(job)) + json.dumps(host.events(job))
    print(host.executor(job)["result"])
    assert re.search(r"Xid (13|31)\b", said), said
    host.wait_for(lambda: any(re.search(r"Xid (13|31)\b", c["text"]) and c["severity"] == "note" for c in conditions(host)), 20, "the note")
    assert host.node_states()[HOST] == "READY"
    assert ran(host, CUDA + " list")[0].split()[1].isdigit()


def test_ddp(host, torch_python):
    """PyTorch's DistributedDataParallel over NCCL, a rank for each GPU."""
    gpus = len(gpu_list(host))
    lines = ran(host, f"{torch_python} {SOURCE}/tests/gpu/ddp.py", num=gpus)
    told = [re.fullmatch(r"rank (\d+) of (\d+) by nccl on (\d+) GPUs: loss ([0-9.]+) to ([0-9.]+), all_reduce (\d+)", line) for line in lines]
    told = [match for match in told if match]
    assert sorted(int(m[1]) for m in told) == list(range(gpus)), lines
    for match in told:
        assert int(match[2]) == int(match[3]) == int(match[6]) == gpus and float(match[5]) < float(match[4]) / 100, match[0]
    print("\n".join(m[0] for m in told))


def test_fed(host, torch_python):
    """Files are cut into tasks and handed to a trainer that puts them on the GPU: every line comes once."""
    files, lines, weights = 20, 5000, [n - 3.5 for n in range(8)]
    draw = random.Random(1)
    for number in range(files):
        rows = [[round(draw.uniform(-1, 1), 4) for _ in weights] for _ in range(lines)]
        text = "".join(" ".join(map(str, row)) + f" {sum(a * b for a, b in zip(row, weights)):.4f}\n" for row in rows)
        host.exec(HOST, "sh", "-c", f"mkdir -p -m 755 /tmp/fed && cat > /tmp/fed/part-{number}", input=text)
    job = host.submit({"name": "fed", "role": [role(f"{torch_python} {SOURCE}/tests/gpu/fed.py", inputPolicy="STREAMING")],
                       "inputManager": {"fileConfig": {"inputs": [{"spec": {"pathPattern": "/tmp/fed/part-*", "textInput": {}}}]}}})
    status, told = host.wait_job(job), output(host, job)
    assert status == 0, (told, host.status(job))
    match = re.fullmatch(r"(\d+) lines on (.*): loss ([0-9.]+)", told[-1])
    assert match and int(match[1]) == files * lines and float(match[3]) < 0.01, told
    data = host.status(job)["data"]
    assert data["done"] == data["tasks"] and data["acked"] == data["bytes"], data
    print(told[-1])


def test_nodes_are_all_there(host):
    """Every node of the driver that the machine has is in the host: else the tests above would see less than is."""
    assert host.exec(HOST, "sh", "-c", "ls /dev/nvidia* -d").split() == nodes()
