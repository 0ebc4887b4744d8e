# SPDX-License-Identifier: Apache-2.0
"""Hosts on which packages are installed by apt.

    packages     the directory with the packages that are tested
    repository   a Repository of them, which hosts see as /repository
    hosts        n1 and n2: plain Debian hosts that know this repository and nothing else; shared by the tests of a file, which
                 tell one story in their order
"""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "cluster"))

import tree  # noqa: E402
from repository import Repository  # noqa: E402
from sandbox import SOURCE, Cluster, cluster_name, shared_directory  # noqa: E402

APT = {
    "etc/apt/sources.list": "deb [trusted=yes] file:/repository ./\n",
    "etc/apt/apt.conf.d/99test": 'APT::Sandbox::User "root";\nDpkg::Use-Pty "false";\n',
}


def pytest_addoption(parser):
    parser.addoption("--packages", default=os.path.join(SOURCE, "build/packages"), help="directory with the packages that are tested")


@pytest.fixture(scope="session")
def packages(request):
    return os.path.abspath(request.config.getoption("--packages"))


@pytest.fixture(scope="module")
def repository(packages, tmp_path_factory):
    return Repository(shared_directory(tmp_path_factory, "repository"), packages)


@pytest.fixture(scope="module")
def hosts(repository):
    with Cluster(cluster_name(), 2, primus=False, binds=[f"{repository.directory}:/repository"], root=tree.ensure()) as cluster:
        for node in cluster.nodes:
            for path, text in APT.items():
                cluster.exec(node, "sh", "-c", f"cat > /{path}", input=text)
            cluster.exec(node, "apt-get", "-q", "update")
        yield cluster


@pytest.fixture(scope="module")
def story():
    """What later tests of a file need to know of earlier ones."""
    return {}
