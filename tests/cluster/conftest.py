# SPDX-License-Identifier: Apache-2.0
"""Clusters for tests.

    cluster      three hosts with Primus, shared by all tests of a run; every host is healed and READY before each test
    bare         two hosts without Primus, shared
    quick        like cluster, of its own, where a silent host is LOST after 5 s; also at /shared
                 What is shared goes when no file of tests that is left needs it: files are sorted by what they need.
    new_cluster  new_cluster(nodes=…, conf=[…], primus=…) for one test; taken down after it
    shared_dir   the directory of the build machine that the hosts of `cluster` see as /shared

A test that fails shows the tails of the daemons' journals. With PRIMUS_SKIPS=fail, as in continuous integration, a test that
was skipped for want of something that can be installed or built has failed.
"""
import contextlib
import os

import pytest
from ledger import Ledger
from sandbox import AGENTD, MASTERD, SOURCE, Cluster, cluster_name, shared_directory
from terminal import Terminal

LOST = 5
# What a machine has or has not.
MAY_SKIP = ("memory controller", "freezer of cgroup v1", "/proc/driver", "number of bpf()")
SEEN = "agentd.conf:Agent.MetricsJobs=yes"
PATIENT = "masterd.conf:Master.QuarantineScore=0"  # hosts fail here all the time


def pytest_addoption(parser):
    parser.addoption("--build", default=os.environ.get("PRIMUS_BUILD", os.path.join(SOURCE, "build")),
                     help="meson build directory whose programs are tested")


# In the order of the files that need them: of those that need the second, some need the third, so that each is needed by files in a row.
SHARED = ("_bare", "_quick", "_cluster")


class Lent:
    """A cluster that all tests of a run share, and what is asked of it before it goes."""
    up = {}  # by name of the fixture

    def __init__(self, name, cluster, at_end=None):
        self.name, self.cluster, self.at_end = name, cluster, at_end

    def __enter__(self):
        self.cluster.up()
        Lent.up[self.name] = self
        return self.cluster

    def __exit__(self, *_):
        if Lent.up.pop(self.name, None):
            try:
                if self.at_end:
                    self.at_end(self.cluster)
            finally:
                self.cluster.down()


def _needs(items):
    return {name for item in items for name in SHARED if name in getattr(item, "fixturenames", ())}


def pytest_collection_modifyitems(items):
    files = {}
    for item in items:
        files.setdefault(item.path, []).append(item)

    def place(tests):
        needs = _needs(tests)
        # Long files first where nothing else is asked: the last ones of all should be short.
        return (min((SHARED.index(name) for name in needs), default=-1), "_cluster" in needs, -len(tests))
    for path in files:
        for item in files[path]:
            item.file_needs = _needs(files[path])
    items[:] = [item for tests in sorted(files.values(), key=place) for item in tests]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    if nextitem and nextitem.path != item.path:
        for name in set(Lent.up) - nextitem.file_needs:
            if name in item.file_needs:
                Lent.up[name].__exit__()


@pytest.fixture(scope="session")
def build(request):
    return os.path.abspath(request.config.getoption("--build"))


@pytest.fixture(scope="session")
def shared_dir(tmp_path_factory):
    return shared_directory(tmp_path_factory, "shared")


@pytest.fixture(scope="session")
def _cluster(build, shared_dir):
    with Lent("_cluster", Cluster(cluster_name(), 3, build=build, binds=[f"{shared_dir}:/shared"], conf=[PATIENT, SEEN])) as cluster:
        yield cluster


def _kill_jobs(cluster):
    cluster.run("n1", "sh", "-c", "primusctl list --json | grep -o '\"job\": *[0-9]*' | grep -o '[0-9]*' | xargs -r -n1 primusctl kill")


@pytest.fixture
def cluster(_cluster, request):
    _cluster.heal_all()
    _cluster.wait_nodes()
    yield _cluster
    if getattr(request.node, "failed_call", False):  # others have not to fail for the jobs that it left
        _kill_jobs(_cluster)


def _no_daemon_crashed(cluster):
    """Tests kill daemons by SIGKILL; no other signal and no sanitizer has ended one meanwhile."""
    wrong = "(Address|Thread|Memory)Sanitizer|runtime error|status=[0-9]+/(ABRT|SEGV|BUS|ILL|FPE|TRAP|SYS)|watchdog timeout"
    for node in cluster.nodes:
        found = cluster.run(node, "journalctl", "-q", "--no-pager", "-o", "short-monotonic", "-u", MASTERD, "-u", AGENTD, "-u", "primus-*", "-g", wrong)
        assert not found.stdout, f"{node}:\n{found.stdout[:4000]}"


@pytest.fixture(scope="session")
def _quick(build, shared_dir):
    with Lent("_quick", Cluster(cluster_name(), 3, build=build, binds=[f"{shared_dir}:/shared"],
                                conf=[f"masterd.conf:Master.LostSec={LOST}", PATIENT]), _no_daemon_crashed) as cluster:
        yield cluster


@pytest.fixture
def quick(_quick):
    _quick.heal_all()
    _quick.wait_nodes()
    yield _quick
    _kill_jobs(_quick)


@pytest.fixture
def terminal(cluster):
    """terminal(*arguments): primusctl on a terminal of its own, closed after the test"""
    with contextlib.ExitStack() as opened:
        def make(*arguments, **options):
            one = Terminal(cluster, *arguments, **options)
            opened.callback(one.close)
            return one
        yield make


@pytest.fixture
def ledger(shared_dir):
    return Ledger(shared_dir)


@pytest.fixture(scope="session")
def _bare(tmp_path_factory):
    shared = tmp_path_factory.mktemp("bare")
    os.chmod(shared, 0o1777)
    with Lent("_bare", Cluster(cluster_name(), 2, primus=False, build="/nonexistent", binds=[f"{shared}:/shared"])) as cluster:
        cluster.shared = shared
        yield cluster


@pytest.fixture
def bare(_bare):
    _bare.heal_all()
    yield _bare


@pytest.fixture
def new_cluster(build, request):
    clusters = []

    def make(nodes=3, **options):
        options.setdefault("build", build)
        one = Cluster(cluster_name(), nodes, **options)
        clusters.append(one)
        return one.up()

    yield make
    for one in clusters:
        _show_journals(request.node, one)
        one.down()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("PRIMUS_SKIPS") == "fail" and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(text in why for text in MAY_SKIP):
            report.outcome, report.longrepr = "failed", f"{why}: PRIMUS_SKIPS=fail wants it there"
    if report.when == "call":
        item.failed_call = report.failed
        for name in ("cluster", "quick"):
            if report.failed and name in getattr(item, "funcargs", {}):
                _show_journals(item, item.funcargs[name], report)


def _show_journals(item, cluster, report=None):
    if not getattr(item, "failed_call", False) or not cluster.primus:
        return
    for node in cluster.nodes:
        for unit in ([MASTERD] if node == "n1" else []) + [AGENTD]:
            if cluster.leader(node):
                title, text = f"{unit} on {node}", cluster.journal(node, unit)
                if report:
                    report.sections.append((title, text))
                else:
                    print(f"--- {title}\n{text}")
