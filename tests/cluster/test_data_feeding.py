# SPDX-License-Identifier: Apache-2.0
"""Data in parts: files are cut, slow tasks are cut again, and what is enough is enough."""
import collections
import random

import pytest
from data_jobs import KEEP, SLOWLY, all_lines, config, fed, make_data
from ledger import failover
from sandbox import AGENTD, MASTERD


@pytest.mark.parametrize("workers", [1, 4])
def test_files_in_parts(quick, ledger, workers):
    wanted = make_data(ledger, 3, 20000, 50)
    job = quick.submit(config(ledger, KEEP, num=workers, input={"split": "64K"}, scheduleStrategy={"maxReplicasPerNode": 2}))
    assert quick.wait_job(job) == 0
    assert sorted(all_lines(ledger)) == wanted
    scanned = quick.events(job, "scanned")[0]["text"]
    assert "3 files, 48 tasks" in scanned  # 1,020,000 bytes each, in parts of 65,536; the short rest goes to the last one


@pytest.mark.parametrize("seed", range(3))
def test_parts_and_daemons_killed(quick, ledger, seed):
    rng = random.Random(100 + seed)
    wanted = make_data(ledger, 4, 3000, 60)
    job = quick.submit(config(ledger, SLOWLY, num=3, scheduleStrategy={"maxReplicasPerNode": 1}, input={"split": "16K", "pipeSize": "64K"}))
    for _ in range(3):
        share = rng.random() * 0.9
        quick.wait_for(lambda share=share: len(all_lines(ledger)) >= share * len(wanted) or len(ledger.entries("eof")) == 3, 30,
                       f"{share:.0%} of the data")
        for target in rng.choice([[("n1", MASTERD)], [(n, AGENTD) for n in quick.nodes], [("n1", MASTERD), *((n, AGENTD) for n in quick.nodes)]]):
            quick.kill9_now(*target)
    assert quick.wait_job(job, timeout=90) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted), f"lost: {len(set(wanted) - set(counts))}"
    assert set(counts.values()) == {1}, f"fed twice: {sum(n - 1 for n in counts.values())}"


def test_killed_feeders_in_parts(quick, ledger):
    """No line is lost, whoever goes on with a part."""
    wanted = make_data(ledger, 2, 8000, 60)
    job = quick.submit(config(ledger, SLOWLY, num=3, scheduleStrategy={"maxReplicasPerNode": 1}, failover=failover(9),
                              input={"split": "32K", "pipeSize": "64K"}, job={"backoff": {"initial": "0s"}}))
    for index in (0, 2, 1):
        quick.wait_for(lambda index=index: any(k[0] == index and len(v) > 300 for k, v in fed(ledger).items()), 30, "300 lines")
        e = quick.executor(job, index=index)
        quick.exec(e["node"], "systemctl", "kill", "-s", "KILL", e["unit"])
    assert quick.wait_job(job, timeout=90) == 0
    assert set(all_lines(ledger)) == set(wanted)


def test_long_tail(quick, ledger):
    """One worker has a large task that takes long, the other has nothing to do: it gets what is left."""
    wanted = make_data(ledger, 1, 40000, 100)
    command = ("n=0; while read -r line; do echo \"$line\" >> $LEDGER.$PRIMUS_INDEX.1; n=$((n + 1)); "
               "[ $((n % 100)) != 0 ] || sleep 0.05; done; say eof")
    job = quick.submit(config(ledger, command, num=2, input={"split": "32M", "pipeSize": "64K"}, scheduleStrategy={"maxReplicasPerNode": 1}))
    assert quick.wait_job(job, timeout=120) == 0
    assert sorted(all_lines(ledger)) == wanted
    assert quick.events(job, "task-split"), quick.events(job)
    shares = {index: len(lines) for (index, _), lines in fed(ledger).items()}
    assert min(shares.values()) > 5000 and len(shares) == 2, shares


def test_starved(quick, ledger):
    """Tasks are pending and nobody may have them: that is an event with its reason, 'why' says it, and so is its end."""
    wanted = make_data(ledger, 2, 5000, 60)
    job = quick.submit(config(ledger, SLOWLY.replace("0.02", "0.2"), num=2, input={"split": "16K", "pipeSize": "64K"},
                              scheduleStrategy={"maxReplicasPerNode": 1}))
    quick.wait_for(lambda: len(fed(ledger)) == 2, 30, "both to read")
    silent = quick.executor(job, index=1)
    quick.exec(silent["node"], "systemctl", "kill", "--kill-whom=main", "--signal=STOP", silent["unit"])
    quick.kill9_now("n1", MASTERD)  # the one that comes up does not know what it holds
    quick.wait_for(lambda: quick.events(job, "data-starved"), 30, "the event")
    event = quick.events(job, "data-starved")[0]
    assert (event["role"], event["index"]) == ("worker", 0)
    assert f"tasks are pending: nothing is granted before worker/1 on {silent['node']} has said which tasks it holds" in event["text"]
    why = quick.primusctl("why", str(job))
    assert "worker/0 has waited for data for " in why and "has said which tasks it holds" in why
    quick.exec(silent["node"], "systemctl", "kill", "--kill-whom=main", "--signal=CONT", silent["unit"])
    assert quick.wait_job(job, timeout=60) == 0
    assert quick.events(job, "data-fed")
    assert set(all_lines(ledger)) == set(wanted)


def test_enough_is_enough(quick, ledger):
    make_data(ledger, 10, 100)
    # The first file that worker 1 gets keeps it for ever; worker 0 reads all others.
    command = "if [ $PRIMUS_INDEX = 1 ]; then read -r line; sleep infinity; else cat > /dev/null; fi; say eof"
    # Only the end of the data ends it: worker 1 is asked to leave when worker 0 has gone.
    job = config(ledger, command, num=2, scheduleStrategy={"maxReplicasPerNode": 1}, manager={"gracefulShutdown": False}, input={"ack": "read"})
    job["inputManager"]["fileConfig"]["stopPolicy"] = {"taskSuccessPercent": 50}
    job["role"][0]["successPercent"] = 50
    number = quick.submit(job)
    quick.wait_for(lambda: quick.events(number, "data-done"), 30, "enough of the data")
    quick.wait_for(lambda: ledger.entries("eof"), 30, "the end of the first worker")
    assert quick.wait_job(number, timeout=30) == 0
