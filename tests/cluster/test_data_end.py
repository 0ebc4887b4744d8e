# SPDX-License-Identifier: Apache-2.0
"""What the end of the data means for a job, with and without inputManager.gracefulShutdown."""
import pytest


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
