# SPDX-License-Identifier: Apache-2.0
"""tools/quickstart as its user sees it, without a terminal; what was built before is taken."""
import os
import re
import signal
import subprocess
import urllib.request

import pytest
from sandbox import cluster_name
from sandbox import SOURCE, sandbox

QUICKSTART = os.path.join(SOURCE, "tools/quickstart")


@pytest.fixture
def quickstart(build):
    name = cluster_name()

    def start():
        return subprocess.Popen([QUICKSTART, "--build", build], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True, env={**os.environ, "PRIMUS_SANDBOX_NAME": name})
    start.name = name
    yield start
    sandbox("down", "--name", name)


def test_trains_and_shows_it(quickstart):
    with quickstart() as running:
        out = running.stdout.read()
    assert running.returncode == 0, out
    losses = [float(loss) for loss in re.findall(r"step \d+  loss (\d\.\d+)", out)]
    assert len(losses) >= 3 and losses[-1] < losses[0] / 2, out
    done = [int(number) for number in re.findall(r"data \[[#-]+\] (\d+)/24 tasks", out)]
    assert len(done) >= 2 and done == sorted(done), out
    assert len(re.findall(r"^ROLE +NUM +RUNNING", out, re.M)) == 1
    assert float(re.search(r"done: held-out accuracy (\d\.\d+)", out)[1]) >= 0.95
    assert [line.split(":")[0] for line in out.splitlines()[-4:]] == ["in a browser", "look around", "submit another", "take it down"]
    # The lines are true.
    with subprocess.Popen(out.splitlines()[-4].split(":", 1)[1].split(), cwd=SOURCE, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as web:
        try:
            address = web.stdout.readline()
            with urllib.request.urlopen(address.split("#")[0], timeout=20) as page:
                assert b"<title>Primus" in page.read()
        finally:
            web.send_signal(signal.SIGINT)
    look, another = [line.split(":", 1)[1].strip() for line in out.splitlines()[-3:-1]]
    said = subprocess.run(["bash", "-euc", look], cwd=SOURCE, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0 and "/org/primus/Master1/node/n3" in said.stdout, said.stderr
    said = subprocess.run(["bash", "-euc", another], cwd=SOURCE, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert said.returncode == 0 and len(said.stdout.splitlines()) == 4, said.stderr


def test_interrupted(quickstart):
    """Ctrl-C says what to do."""
    with quickstart() as running:
        for line in running.stdout:
            if "loss" in line:
                break
        os.killpg(running.pid, signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130
    assert "Detached: job 1 goes on" in rest
    assert "stopped while the job runs. Run it again to go on from there; tools/quickstart --down removes it all." in rest


def test_wrong_use(build):
    done = subprocess.run([QUICKSTART, "--nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "tools/quickstart --down" in done.stderr
    done = subprocess.run([QUICKSTART, "--build", "/nowhere"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "quickstart: --build /nowhere: not a meson build directory\n"
