# SPDX-License-Identifier: Apache-2.0
"""The trainers of the examples that import primus."""
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
POINTS = sorted((EXAMPLES / "torch/data").iterdir())
LOADS_TORCH = True  # see conftest.py's --unsanitized


def test_torch(run):
    """The loss falls, and the plane through the points is found."""
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
        pytest.skip("python3-torch is not installed")
    o = run((EXAMPLES / "torch/train.py").read_text(), POINTS * 3, task_size=2000, arguments=[0])
    losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+)", o.output)]
    assert len(losses) == 3 and losses[0] > 5 * losses[-1] and losses[-1] < 0.05
    assert "3000 samples in all; weights 0.5" in o.output and "-1.2" in o.output


@pytest.mark.parametrize("mode", ("stdin", "ring", "descriptor"))
def test_exactly_once(run, tmp_path, mode):
    """Killed now and then, it says the same as without."""
    source = (EXAMPLES / "exactly-once/train.py").read_text()
    want = run(source, POINTS, mode=mode, ack="checkpoint", task_size=3000, arguments=[tmp_path / "alone", 70])
    killed = source.replace("        feed.commit(state)\n", """        if model["lines"] in (140, 490, 910):
            os._exit(9)
        feed.commit(state)
        if model["lines"] in (280, 700):
            os._exit(9)
""")
    for _ in range(5):
        run(killed, POINTS, mode=mode, ack="checkpoint", task_size=3000, arguments=[tmp_path / "killed", 70], status=9)
    got = run(killed, POINTS, mode=mode, ack="checkpoint", task_size=3000, arguments=[tmp_path / "killed", 70])
    assert got.output.splitlines()[-1] == want.output.splitlines()[-1]
    assert "begins behind 910 lines" in got.output
