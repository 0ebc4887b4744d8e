# SPDX-License-Identifier: Apache-2.0
"""Data that is fed: every line once, also when what feeds it is killed."""
import collections
import os
import random

import pytest
from data_jobs import KEEP, SLOWLY, all_lines, config, fed, make_data
from ledger import failover
from sandbox import AGENTD, MASTERD, SOURCE

UPSTREAM = os.path.join(SOURCE, "tests/data/upstream")


def test_upstream_example(quick, shared_dir):
    """As it was written for upstream: its data where it says, on every host."""
    for node in quick.nodes:
        quick.exec(node, "mkdir", "-p", "/primus/examples/input-file-text/data")
        for name in sorted(os.listdir(f"{UPSTREAM}/input-file-text-data")):
            with open(f"{UPSTREAM}/input-file-text-data/{name}", encoding="utf-8") as f:
                quick.exec(node, "sh", "-c", f"cat > /primus/examples/input-file-text/data/{name}", input=f.read())
    wanted = []
    for name in sorted(os.listdir(f"{UPSTREAM}/input-file-text-data")):
        with open(f"{UPSTREAM}/input-file-text-data/{name}", encoding="utf-8") as f:
            wanted += f.read().splitlines()
    with open(f"{UPSTREAM}/input-file-text.json", encoding="utf-8") as f:
        job = quick.submit(f.read())
    assert quick.wait_job(job) == 0
    out = quick.primusctl("logs", str(job), "worker/0", user="ml")
    got = [line.split("| ", 1)[-1] for line in out.splitlines()]
    assert collections.Counter(got) == collections.Counter(wanted)


@pytest.mark.parametrize("workers, files, lines", [(1, 4, 1000), (4, 40, 100), (3, 2, 3000), (2, 300, 3)])
def test_every_line_once(quick, ledger, workers, files, lines):
    wanted = make_data(ledger, files, lines)
    job = quick.submit(config(ledger, KEEP, num=workers, scheduleStrategy={"maxReplicasPerNode": 2}))
    assert quick.wait_job(job) == 0
    assert sorted(all_lines(ledger)) == wanted
    assert len(ledger.entries("eof")) == workers, "end of file after the last line, for everybody"
    for lines_of in fed(ledger).values():  # files are not mixed, lines stay in order
        assert len(list(_runs(lines_of))) == len({line[:4] for line in lines_of})
    assert quick.events(job, "data-done")


def _runs(lines):
    before = None
    for line in lines:
        if before is None or line[:4] != before[:4]:
            yield line
        else:
            assert line > before
        before = line


def test_no_data_at_all(quick, ledger):
    make_data(ledger, 0, 0)
    job = quick.submit(config(ledger, KEEP))
    assert quick.wait_job(job) == 0
    assert ledger.entries("eof") and not all_lines(ledger)


def test_missing_path(quick, ledger):
    job = quick.submit(config(ledger, KEEP, path="/shared/nowhere/here"))
    assert quick.wait_job(job) == 1
    reason = quick.status(job)["reason"]
    assert "/shared/nowhere/here" in reason and "No such file" in reason and "\n" not in reason


def test_path_without_permission(quick, ledger):
    for node in quick.nodes:
        quick.exec(node, "install", "-d", "-m", "0700", "/var/closed")
    job = quick.submit(config(ledger, KEEP, path="/var/closed"))
    assert quick.wait_job(job) == 1
    assert "/var/closed" in quick.status(job)["reason"] and "Permission denied" in quick.status(job)["reason"]


def test_trainer_that_reads_three_lines(quick, ledger):
    """It ends well, early; nobody writes into a closed pipe, and nothing hangs."""
    make_data(ledger, 20, 5000, 80)
    job = quick.submit(config(ledger, "head -n3 > $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; say end", num=2))
    assert quick.wait_job(job) == 0
    assert len(all_lines(ledger)) == 6


def test_killed_feeder_goes_on_from_what_was_acknowledged(quick, ledger):
    """Under ack lag: at most one pipe is read twice, and no line is lost."""
    width, pipe = 100, 64 << 10
    wanted = make_data(ledger, 1, 20000, width)
    job = quick.submit(config(ledger, SLOWLY, input={"pipeSize": "64K"}, failover=failover(5), job={"backoff": {"initial": "0s"}}))
    for attempt in (1, 2):
        quick.wait_for(lambda attempt=attempt: len(fed(ledger).get((0, attempt), [])) > 5000, what=f"attempt {attempt} with 5000 lines")
        e = quick.executor(job)
        quick.exec(e["node"], "systemctl", "kill", "-s", "KILL", e["unit"])
    assert quick.wait_job(job) == 0
    lines = fed(ledger)
    assert set(all_lines(ledger)) == set(wanted), "no line is lost"
    for attempt in (2, 3):
        assert lines[0, attempt][0] != wanted[0], "it does not begin from the start"
        again = set(lines[0, attempt - 1]) & set(lines[0, attempt])
        assert len(again) <= 2 * pipe // (width + 1) + 1100, "what is read twice is the lag and what the last look had not seen"
    assert lines[0, 3] == wanted[-len(lines[0, 3]):]


def test_ack_exit(quick, ledger):
    """Nothing counts before the trainer has ended well."""
    wanted = make_data(ledger, 3, 200)
    job = quick.submit(config(ledger, f"{KEEP}; [ $PRIMUS_ATTEMPT -ge 2 ]", input={"ack": "exit"}, failover=failover(3)))
    assert quick.wait_job(job) == 0
    assert sorted(fed(ledger)[0, 1]) == sorted(fed(ledger)[0, 2]) == wanted


def test_changed_file_fails_its_task(quick, ledger):
    make_data(ledger, 2, 5000, 100)
    job = quick.submit(config(ledger, "say reading; while [ ! -e $LEDGER.go ]; do sleep 0.05; done; " + KEEP, input={"pipeSize": "64K"}))
    quick.wait_for(lambda: quick.events(job, "scanned"), what="the list of files")
    quick.wait_for(lambda: ledger.entries("reading"), what="its start")
    (ledger.path.with_name(ledger.path.name + ".data") / "part-0001.txt").write_text("another\n" * 10)
    open(f"{ledger.path}.go", "w").close()
    # One of two tasks: as many as stopPolicy.taskFailedPercent allows, so the job ends, and not well.
    assert quick.wait_job(job) == 1
    assert [e for e in quick.events(job) if e["kind"] in ("task-failed", "task-gave-up") and "part-0001" in e["text"]]
    assert all("part-0001" in e["text"] for e in quick.events(job) if e["kind"] in ("task-failed", "task-gave-up"))


@pytest.mark.parametrize("seed", range(8))
def test_daemons_killed_while_feeding(quick, ledger, seed):
    """No line is lost; none comes twice either, since no executor died."""
    rng = random.Random(seed)
    wanted = make_data(ledger, rng.choice([6, 60]), rng.choice([100, 1000]), 40)
    job = quick.submit(config(ledger, SLOWLY, num=3, scheduleStrategy={"maxReplicasPerNode": 1}, input={
        "ack": rng.choice(["lag", "exit", "read"]), "pipeSize": rng.choice(["64K", "1M"])}))
    killed = []
    for _ in range(3):
        share = rng.random() * 0.95
        quick.wait_for(lambda share=share: len(all_lines(ledger)) >= share * len(wanted) or len(ledger.entries("eof")) == 3,
                       60, f"{share:.0%} of the data")
        targets = rng.choice([[("n1", MASTERD)], [(node, AGENTD) for node in quick.nodes],
                              [("n1", MASTERD), *((node, AGENTD) for node in quick.nodes)]])
        for node, unit in targets:
            killed += [f"{node}:{unit}"] if quick.kill9_now(node, unit) else []
    print("killed", killed)
    assert quick.wait_job(job, timeout=60) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted), f"lost: {len(set(wanted) - set(counts))}"
    assert set(counts.values()) == {1}, f"fed twice: {sum(n - 1 for n in counts.values())}"
    assert set(ledger.attempts()[0].values()) == {1} and len(ledger.entries("start")) == 3


@pytest.mark.parametrize("ack", ["lag", "exit"])
@pytest.mark.parametrize("seed", range(4))
def test_daemons_killed_when_a_trainer_ends(quick, ledger, ack, seed):
    """What a trainer had finished is known although whoever was to be told was killed at that moment: the other one, which goes
    on, gets none of it."""
    rng = random.Random(seed)
    wanted = make_data(ledger, 12, 50)
    # Worker 0 reads what it gets and ends when it is told to; worker 1 reads only after that.
    command = ("if [ $PRIMUS_INDEX = 0 ]; then while read -r -t 2 line; do echo \"$line\" >> $LEDGER.0.1; done; say read; "
               "while [ ! -e $LEDGER.go ]; do sleep 0.02; done; say leaves; else while [ ! -e $LEDGER.go2 ]; do sleep 0.05; done; "
               "say begins; " + KEEP + "; fi")
    job = quick.submit(config(ledger, command, num=2, input={"ack": ack}, scheduleStrategy={"maxReplicasPerNode": 1}))
    quick.wait_for(lambda: ledger.entries("read"), 20, "a first worker that has read")
    node = quick.executor(job)["node"]
    targets = rng.choice([[("n1", MASTERD)], [(node, AGENTD)], [("n1", MASTERD), (node, AGENTD)]])
    before = rng.random() < 0.5
    if before:
        for target in targets:
            quick.kill9_now(*target)
    open(f"{ledger.path}.go", "w").close()
    quick.wait_for(lambda: ledger.entries("leaves"), what="the end of the first worker")
    if not before:
        for target in targets:
            quick.kill9_now(*target)
    quick.wait_nodes()
    quick.wait_for(lambda: quick.executor(job)["state"] == "SUCCEEDED", what="the first worker's result")
    open(f"{ledger.path}.go2", "w").close()
    assert quick.wait_job(job) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted)
    assert set(counts.values()) == {1}, f"fed twice: {sum(n - 1 for n in counts.values())}"


def test_masterd_killed_while_files_are_listed(quick, ledger):
    wanted = make_data(ledger, 3000, 1)
    job = quick.submit(config(ledger, KEEP, num=2))
    quick.wait_for(lambda: ledger.entries("start"), what="its start")
    for _ in range(3):
        quick.kill9_now("n1", MASTERD)
        quick.wait_for(lambda: quick.status(job)["state"], what="masterd")  # the job may be through by then
    assert quick.wait_job(job) == 0
    assert sorted(all_lines(ledger)) == wanted


def test_host_lost_while_feeding(quick, ledger):
    """Its tasks go on elsewhere, from the acknowledged offset."""
    wanted = make_data(ledger, 10, 1500, 60)
    job = quick.submit(config(ledger, SLOWLY, num=2, vcores=1.5, input={"pipeSize": "64K"}, job={"nodes": ["n2", "n3"]}))
    quick.wait_for(lambda: all(len(fed(ledger).get((i, 1), [])) > 1200 for i in (0, 1)), 20, "1200 lines each")
    quick.crash("n3")
    quick.wait_nodes("LOST", ["n3"], timeout=15)
    quick.boot("n3")
    assert quick.wait_job(job) == 0
    assert set(all_lines(ledger)) == set(wanted)
    assert len(all_lines(ledger)) - len(wanted) < 2 * 65536 // 61 + 1500, "only what was in the pipe comes twice"
