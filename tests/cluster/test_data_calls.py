# SPDX-License-Identifier: Apache-2.0
"""What people do with a job's data: look at its tasks, try some again or skip them, hold it back, keep where it stands."""
import json
import time

import pytest

LINES = 400


@pytest.fixture(scope="module")
def source(shared_dir):
    directory = shared_dir / "data-calls"
    directory.mkdir()
    directory.chmod(0o755)
    for i in range(4):
        (directory / f"{i}.txt").write_text("".join(f"{i} {n}\n" for n in range(LINES)))
    return "/shared/data-calls"


def job(source, command, inputs=None, **delivery):
    return {
        "name": "calls",
        "role": [{"roleName": "reader", "num": 2, "command": command, "inputPolicy": "STREAMING", "vcores": 0, "memoryMb": 16}],
        "inputManager": {"fileConfig": {"inputs": inputs or [{"name": "lines", "spec": {"pathPattern": source}}],
                                        "stopPolicy": {"taskFailedPercent": 100}}, "gracefulShutdown": True},
        "input": {"poll": "1s", **delivery},
    }


def slow(pause):
    return f"while read l; do echo $l; sleep {pause}; done"


def status(cluster, number):
    return cluster.primusctl_json("status", str(number))


def tasks(cluster, number, *options):
    return cluster.primusctl_json("data", str(number), *options)


def refused(cluster, *command, user="eve"):
    done = cluster.run("n1", "primusctl", *map(str, command), user=user)
    assert done.returncode == 1 and done.stdout == "", done
    return done.stderr


def test_sources_and_executors(cluster, source):
    number = cluster.submit(job(source, slow(0.05), pipeSize="4K"))
    cluster.wait_for(lambda: status(cluster, number)["data"]["leased"] > 0, 30, "a task to be leased")
    cluster.wait_for(lambda: any(row.get("trainerWaitUsec", 0) > 100_000 for row in status(cluster, number)["executors"]), 30,
                     "data to wait for a trainer")
    o = status(cluster, number)
    assert o["data"]["scanned"] and o["data"]["tasks"] == 4
    assert [(s["name"], s["kind"], s["files"], s["tasks"]) for s in o["data"]["sources"]] == [("lines", "files", 4, 4)]
    assert sum(row["dataTasks"] for row in o["executors"]) == o["data"]["leased"]
    rows = tasks(cluster, number)
    assert [row["task"] for row in rows] == ["1", "2", "3", "4"]
    assert {row["holder"] for row in rows if row["state"] == "LEASED"} <= {"reader/0", "reader/1"}
    assert [row["path"] for row in rows] == [f"{source}/{i}.txt" for i in range(4)]
    assert tasks(cluster, number, "--failed") == []
    cluster.kill(number)


def test_suspend_and_resume(cluster, source):
    number = cluster.submit(job(source, slow(0.02), pipeSize="4K", ack="read"))
    said = lambda: len(cluster.primusctl("logs", str(number)).splitlines())
    cluster.wait_for(lambda: said() > 20, 30, "lines")
    cluster.primusctl("suspend", str(number))
    assert status(cluster, number)["state"] == "SUSPENDED"
    quiet, before = said(), -1
    while quiet != before:  # the trainers read what had been delivered
        time.sleep(2)
        before, quiet = quiet, said()
    assert quiet < 4 * LINES
    assert "SUSPENDED" in refused(cluster, "suspend", number, user="ml")
    cluster.primusctl("resume", str(number))
    assert status(cluster, number)["state"] == "RUNNING"
    cluster.wait_for(lambda: said() > quiet + 20, 30, "more lines")
    assert cluster.wait_job(number) == 0
    assert said() == 4 * LINES
    assert "SUCCEEDED" in refused(cluster, "suspend", number, user="ml")


def test_failed_tasks_are_retried_or_skipped(cluster, source, shared_dir):
    """Lines are no TFRecords; one of the files becomes one meanwhile."""
    inputs = [{"name": "records", "spec": {"pathPattern": source, "tfrecordInput": {}}},
              {"name": "lines", "spec": {"pathPattern": source, "namePattern": "0.txt"}}]
    # Its trainers read slowly, so there is somebody to take what is tried again.
    number = cluster.submit(job(source, slow(0.2), inputs, pipeSize="4K"))
    cluster.wait_for(lambda: len(tasks(cluster, number, "--failed")) == 4, 30, "the tasks to be set aside")
    rows = tasks(cluster, number, "--failed")
    assert all(row["failures"] == 2 and row["source"] == "records" and "TFRecord" in row["error"] for row in rows)
    assert cluster.primusctl("data", "retry", str(number), rows[0]["task"]) == f"Task {rows[0]['task']} is tried again\n"
    assert cluster.primusctl("data", "skip", str(number), rows[1]["task"]) == f"Task {rows[1]['task']} counts as done\n"
    assert "has no task" in refused(cluster, "data", "skip", number, rows[1]["task"], user="ml")
    assert "that has failed" in refused(cluster, "data", "retry", number, 999, user="ml")
    assert cluster.primusctl("data", "skip", str(number), "--failed").endswith("count as done\n")
    assert status(cluster, number)["data"]["done"] >= 3
    cluster.kill(number)
    assert "is over" in refused(cluster, "data", "retry", number, "--failed", user="ml")


def test_nobody_is_left_to_read(cluster, source):
    """Executors that have been promised the end of the data read nothing more."""
    inputs = [{"name": "records", "spec": {"pathPattern": source, "tfrecordInput": {}}},
              {"name": "lines", "spec": {"pathPattern": source, "namePattern": "0.txt"}}]
    number = cluster.submit(job(source, "cat >/dev/null; sleep 300", inputs))
    retry = lambda: cluster.run("n1", "primusctl", "data", "retry", str(number), "--failed", user="ml").stderr
    cluster.wait_for(lambda: "end of its data" in retry(), 60, "the end of the data")
    assert len(tasks(cluster, number, "--failed")) == 4
    assert cluster.primusctl("data", "skip", str(number), "--failed") == "4 failed tasks count as done\n"
    cluster.kill(number)


def test_what_failed_is_shown_after_the_end(cluster, source):
    """Also by another masterd, which has the job from its store."""
    inputs = [{"name": "records", "spec": {"pathPattern": source, "tfrecordInput": {}}}]
    number = cluster.submit(job(source, "cat", inputs))
    assert cluster.wait_job(number) == 1
    rows = tasks(cluster, number)
    assert len(rows) == 4 and {row["state"] for row in rows} == {"FAILED"}
    cluster.exec("n1", "systemctl", "restart", "primus-masterd")
    cluster.wait_nodes()
    assert [(row["task"], row["path"], row["failures"], row["error"], row["source"]) for row in tasks(cluster, number)] == [
        (row["task"], row["path"], row["failures"], row["error"], "records") for row in rows]
    assert tasks(cluster, number, "--state=LEASED") == []
    assert status(cluster, number)["data"]["failed"] == 4


def test_savepoint_and_restore(cluster, source):
    """What was acknowledged does not come again; all else comes once."""
    number = cluster.submit(job(source, slow(0.02), pipeSize="4K", ack="read", split="1K"))
    cluster.wait_for(lambda: status(cluster, number)["data"]["done"] >= 2, 60, "some tasks to be done")
    name = cluster.primusctl_json("savepoint", "create", str(number), "--kill")["savepoint"]
    assert name.startswith(f"{number}-") and cluster.wait_job(number) == 3
    row = next(row for row in cluster.primusctl_json("savepoint", "list") if row["name"] == name)
    assert row["job"] == number and row["done"] >= 2
    manifest = cluster.primusctl_json("savepoint", "show", name)
    assert manifest["sources"] == ["lines"] and manifest["job"] == number
    assert f"of job {number} (calls)" in cluster.primusctl("savepoint", "show", name)

    for command in (["savepoint", "show", name], ["savepoint", "delete", name], ["savepoint", "restore", name]):
        assert refused(cluster, *command).count("\n") == 1
    assert name not in cluster.primusctl("savepoint", "list", user="eve")
    assert name in cluster.primusctl("savepoint", "list", user="root")
    assert "There is no savepoint 'none'" in refused(cluster, "savepoint", "show", "none", user="ml")
    assert "KILLED" in refused(cluster, "savepoint", "create", number, user="ml")

    again = cluster.primusctl_json("savepoint", "restore", name, "--name", "again")["job"]
    assert cluster.wait_job(again) == 0
    before, after = (cluster.primusctl("logs", str(n), "--json") for n in (number, again))
    lines = lambda text: [json.loads(line)["line"] for line in text.splitlines()]
    got = lines(before) + lines(after)
    assert sorted(set(got)) == sorted(f"{i} {n}" for i in range(4) for n in range(LINES))
    assert status(cluster, again)["name"] == "again"
    cluster.primusctl("savepoint", "delete", name)
    assert "There is no savepoint" in refused(cluster, "savepoint", "delete", name, user="ml")


def test_strangers_are_refused(cluster, source):
    number = cluster.submit(job(source, slow(0.5)))
    cluster.wait_for(lambda: status(cluster, number)["state"] == "RUNNING", 30, "the job to run")
    for command in (["data", number], ["data", "skip", number, 1], ["suspend", number], ["resume", number], ["savepoint", "create", number]):
        assert refused(cluster, *command).count("\n") == 1
    cluster.kill(number)


def test_jobs_without_data(cluster):
    number = cluster.submit({"name": "none", "role": [{"roleName": "w", "command": "sleep 60", "vcores": 0, "memoryMb": 16}]})
    cluster.wait_for(lambda: status(cluster, number)["state"] == "RUNNING", 30, "the job to run")
    for command in (["data", number], ["data", "retry", number, "--failed"], ["suspend", number], ["savepoint", "create", number]):
        assert "is not fed with data" in refused(cluster, *command, user="ml"), command
    cluster.kill(number)
