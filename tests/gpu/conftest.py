# SPDX-License-Identifier: Apache-2.0
"""One container host that has the machine's GPUs, its driver's libraries, and, at /machine, all else of it."""
import os
import subprocess

import pytest
from metrics_page import SOCKET
from sandbox import SOURCE, Cluster, cluster_name

HOST = "n1"
MACHINE = "/machine"
LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-gpucomp.so.*")


def pytest_addoption(parser):
    parser.addoption("--build", default=os.path.join(SOURCE, "build"), help="meson build directory whose programs are tested")
    parser.addoption("--torch-python", help="a Python of the machine that has PyTorch with CUDA")


def driver_libraries():
    """Where the machine's loader finds those of the driver: {name: file}."""
    found = {}
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, rest = line.strip().partition(" ")
        path = rest.rpartition("=> ")[2]
        if "x86-64" in rest and name.startswith(tuple(pattern.rstrip("*") for pattern in LIBRARIES)):
            found.setdefault(name, os.path.realpath(path))
    return found


def nodes():
    names = sorted(os.listdir("/dev"))
    return [f"/dev/{name}" for name in names if name.startswith("nvidia") and not os.path.isdir(f"/dev/{name}")]


def nvidia_smi(*fields):
    """Of each GPU, as NVIDIA's own program shows it: [{field: text}]."""
    shown = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True).stdout
    return [dict(zip(fields, (text.strip() for text in line.split(",")))) for line in shown.splitlines()]


@pytest.fixture(scope="session")
def host(request):
    libraries = driver_libraries()
    assert {"libnvidia-ml.so.1", "libcuda.so.1"} <= set(libraries), f"libraries of the driver that ldconfig knows: {libraries}"
    binds = [f"{path}:/usr/lib/x86_64-linux-gnu/{name}" for name, path in libraries.items()]
    binds += [f"{path}:{path}" for path in nodes()] + [f"{SOURCE}/tests/gpu:/opt/gpu", f"/:{MACHINE}"]
    with Cluster(cluster_name(), 1, build=request.config.getoption("build"), binds=binds,
                 conf=["masterd.conf:Master.ConditionGPU=drain", f"agentd.conf:Agent.MetricsListen={SOCKET}", "agentd.conf:Agent.MetricsJobs=yes"]) as cluster:
        cluster.wait_nodes()
        # The driver's library looks for its own process there, by the number that it has in the host.
        cluster.exec(HOST, "mount", "--rbind", "/proc", f"{MACHINE}/proc")
        try:
            yield cluster
        finally:
            if request.session.testsfailed:
                print(cluster.journal(HOST, "primus-agentd.service", 80))


@pytest.fixture
def torch_python(request):
    """A command that runs that Python in the machine's own tree, with the executor's rights and what it was given."""
    python = request.config.getoption("torch_python")
    assert python, "tests/gpu/run finds a Python with PyTorch, or is told of one by --torch-python"
    return f"exec unshare --map-current-user --root={MACHINE} --wd=/ -- {python}"
