# SPDX-License-Identifier: Apache-2.0
"""What the end of the data means for a job, with and without inputManager.gracefulShutdown."""
import time

import pytest
from sandbox import MASTERD


def job(source, graceful):
    return {
        "name": "data-end",
        "role": [
            {"roleName": "reader", "command": "cat >/dev/null", "inputPolicy": "STREAMING", "vcores": 0, "memoryMb": 16},
            {"roleName": "server", "command": "sleep infinity", "vcores": 0, "memoryMb": 16},
        ],
        "inputManager": {
            "fileConfig": {"inputs": [{"spec": {"pathPattern": source}}]},
            "gracefulShutdown": graceful,
        },
    }


@pytest.fixture(scope="module")
def source(shared_dir):
    directory = shared_dir / "data-end"
    directory.mkdir()
    directory.chmod(0o755)
    for i in range(3):
        (directory / f"{i}.txt").write_text("".join(f"line {n}\n" for n in range(100)))
    return "/shared/data-end"


def test_end_of_data_is_success(cluster, source):
    number = cluster.submit(job(source, False))
    assert cluster.wait_job(number) == 0
    assert "all data is through" in cluster.primusctl("status", str(number))


def test_graceful_waits_for_all_roles(cluster, source):
    number = cluster.submit(job(source, True))
    cluster.wait_for(lambda: "all data is through" in cluster.primusctl("events", str(number)), 30, "the end of the data")
    assert cluster.primusctl_json("status", str(number))["state"] == "RUNNING"
    cluster.primusctl("kill", str(number))
    assert cluster.wait_job(number) == 3


@pytest.mark.parametrize("graceful", [False, True])
def test_trainers_that_go_on_have_their_time(cluster, source, graceful):
    """A restart of masterd begins it anew."""
    config = job(source, graceful)
    config["role"][0]["command"] = "cat >/dev/null; exec sleep infinity"
    config["inputManager"]["gracefulShutdownTimeWaitSec"] = 4
    number = cluster.submit(config)
    cluster.wait_for(lambda: cluster.status(number).get("data", {}).get("read", 0) == 3 * (10 * 7 + 90 * 8), 30, "that all is read")
    cluster.kill9_now("n1", MASTERD)
    began = time.monotonic()
    assert cluster.wait_job(number) == 0
    assert time.monotonic() - began > 3
    assert "what had not ended 4s later was stopped (gracefulShutdownTimeWaitSec)" in cluster.status(number)["reason"]


@pytest.mark.parametrize("graceful", [False, True])
@pytest.mark.parametrize("percent, status", [(None, 0), (0, 0), (60, 0), (80, 1), (100, 1)])
def test_percent_that_have_to_be_done(cluster, shared_dir, percent, status, graceful):
    """One of four files cannot be read: 75 % are done."""
    directory = shared_dir / "data-percent"
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    for i in range(4):
        (directory / f"{i}.txt").write_text("line\n")
    (directory / "1.txt").chmod(0)
    config = job("/shared/data-percent", graceful)
    config["role"] = config["role"][:1]
    config["inputManager"]["fileConfig"]["stopPolicy"] = {} if percent is None else {"taskSuccessPercent": percent}
    number = cluster.submit(config)
    assert cluster.wait_job(number) == status
    reason = cluster.status(number)["reason"]
    if status:
        assert reason.startswith(f"3 of 4 data tasks are done, 1 failed, and {percent} % were to be (stopPolicy.taskSuccessPercent)") and "1.txt" in reason


def test_who_does_not_read_on_is_short(cluster, source):
    config = job(source, True)
    config["role"] = [{**config["role"][0], "command": "read -r line; exit 0"}]
    config["inputManager"]["fileConfig"]["stopPolicy"] = {"taskSuccessPercent": 100}
    number = cluster.submit(config)
    assert cluster.wait_job(number) == 1
    assert "were to be (stopPolicy.taskSuccessPercent)" in cluster.status(number)["reason"]
