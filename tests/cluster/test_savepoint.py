# SPDX-License-Identifier: Apache-2.0
"""Savepoints and suspension: what was acknowledged is not fed again, everything else is, once."""
import collections
import json
import re
import time

import pytest
from data_jobs import KEEP, all_lines, config, fed, make_data
from sandbox import MASTERD

# About a thousand lines a second. What is stopped writes down the line that it has read: that counts as acknowledged.
SLOWLY = ('n=0; stop=; trap "stop=1" TERM; while [ -z "$stop" ] && read -r line; do echo "$line" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; n=$((n + 1)); '
          '[ $((n % 20)) != 0 ] || sleep 0.02; done; [ -z "$stop" ] || exit 1; say eof')
INPUT = {"ack": "read", "pipeSize": "4K"}


# Every record is written down, then acknowledged.
LIBRARY = """
import os, time
import primus
feed = primus.Feed()
with open("{LEDGER}.{PRIMUS_INDEX}.{PRIMUS_ATTEMPT}".format_map(os.environ), "ab", buffering=0) as out:
    for n, record in enumerate(feed.records(), 1):
        out.write(bytes(record) + b"\\n")
        feed.ack()
        if n % 20 == 0:
            time.sleep(0.02)
"""


def savepoint(cluster, job, *arguments):
    return cluster.primusctl_json("savepoint", "create", str(job), *arguments)["savepoint"]


def restore(cluster, ledger, name, *arguments):
    """The lines that were fed so far are put aside. Returns the new job, and them, as fed() has them."""
    before = fed(ledger)
    for path in ledger.path.parent.glob(ledger.path.name + ".[0-9]*"):
        path.rename(path.with_name(f"before-{path.name}"))
    return cluster.primusctl_json("savepoint", "restore", name, *arguments)["job"], before


def acknowledged(cluster, name):
    """Bytes, as the list of savepoints has them."""
    return next(row for row in cluster.primusctl_json("savepoint", "list") if row["name"] == name)


def behind(lines, acked):
    """The lines that end behind a position in the order of delivery: a line that is acknowledged in part comes again."""
    end = 0
    for n, line in enumerate(lines):
        end += len(line) + 1
        if end > acked:
            return lines[n:]
    return []


def wait_lines(cluster, ledger, n):
    cluster.wait_for(lambda: len(all_lines(ledger)) >= n, 30, f"{n} lines")


@pytest.mark.parametrize("kill", [True, False])
def test_one_worker_goes_on_where_it_was(quick, ledger, kill):
    wanted = make_data(ledger, 6, 1000)
    name = f"halfway-{kill}"
    job = quick.submit(config(ledger, SLOWLY, input=INPUT))
    wait_lines(quick, ledger, 1500)
    assert savepoint(quick, job, name, *(["--kill"] if kill else [])) == name
    quick.kill9_now("n1", MASTERD)  # it is on disk when the command has answered
    quick.wait_nodes()
    if not kill:
        wait_lines(quick, ledger, 3000)
        quick.primusctl("kill", str(job))
    assert quick.wait_job(job) == 3
    acked = acknowledged(quick, name)["acked"]
    assert 1400 * len(wanted[0]) < acked < len(wanted) * len(wanted[0])
    again, before = restore(quick, ledger, name)
    assert quick.wait_job(again) == 0
    assert all_lines(ledger) == behind(wanted, acked), "what was acknowledged never again, all the rest once and in order"
    assert before[0, 1] == wanted[:len(before[0, 1])]
    assert quick.events(again, "restored")
    assert not [e for e in quick.events(again, "scanned")], "the list of files came with the savepoint"
    quick.primusctl("savepoint", "delete", name)
    assert name not in [row["name"] for row in quick.primusctl_json("savepoint", "list")]


def test_many_workers(quick, ledger):
    """Made while the job runs; the job is not disturbed by it, and another one does the rest a second time."""
    wanted = make_data(ledger, 12, 1000, 40)  # a second for each task: never all workers between two
    job = quick.submit(config(ledger, SLOWLY, num=3, input=INPUT))
    wait_lines(quick, ledger, 5000)
    name = savepoint(quick, job)
    assert name == f"{job}-1"
    at = acknowledged(quick, name)
    assert at["done"] > 0 and at["failed"] == 0 and at["partial"] >= 1, at
    assert quick.wait_job(job) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted) and set(counts.values()) == {1}
    again, _ = restore(quick, ledger, name, "--name=second")
    assert quick.status(again)["name"] == "second"
    assert quick.wait_job(again) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts.values()) == {1} and set(counts) < set(wanted)
    # Of a line that is acknowledged in part, the whole comes again: one for each task that was begun.
    left = len(wanted) - at["acked"] // (len(wanted[0]) + 1)
    assert left <= len(counts) <= left + at["partial"]


@pytest.mark.parametrize("mode", ["ring", "descriptor"])
def test_exactly_once_with_explicit_acknowledgement(quick, ledger, mode):
    """A job that is ended by its savepoint, and the one that goes on from it: together every record once. The trainers are given
    the time to acknowledge what they had got."""
    wanted = make_data(ledger, 5, 1200)
    script = ledger.path.with_name(ledger.path.name + ".py")
    script.write_text(LIBRARY)
    script.chmod(0o644)
    job = quick.submit(config(ledger, f"python3 {ledger.inside}.py", num=2, memoryMb=64, input={
        "mode": mode, "ack": "explicit", "order": "shuffle", "seed": 7, "split": "4K"} | (
            {"slots": 2, "slotSize": "64K"} if mode == "ring" else {})))
    wait_lines(quick, ledger, 1500)
    name = savepoint(quick, job, "--kill")
    assert quick.wait_job(job) == 3
    again, before = restore(quick, ledger, name)
    assert quick.wait_job(again) == 0
    counts = collections.Counter(all_lines(ledger) + [line for lines in before.values() for line in lines])
    assert set(counts) == set(wanted)
    assert set(counts.values()) == {1}, [line for line, n in counts.items() if n > 1][:10]


def test_next_job_with_the_same_staging_dir_goes_on(quick, ledger):
    """Three runs of one configuration, as upstream's users do: what the first two acknowledged is not read again, with a kill of
    masterd right behind the first end; the third finds nothing left. Other users and other names begin at the beginning."""
    wanted = make_data(ledger, 6, 1000)
    job = config(ledger, SLOWLY, input=INPUT)
    job["inputManager"]["workPreserve"] = {"dumpIntervalSec": 10, "hdfsConfig": {"stagingDir": f"/primus/staging/{ledger.path.name}"}}
    once = lambda: [(line, n) for line, n in collections.Counter(all_lines(ledger)).items() if n > 1]
    first = quick.submit(job)
    wait_lines(quick, ledger, 1500)
    text = quick.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(job))
    assert text.returncode == 1 and f"Job {first} keeps its progress under the same" in text.stderr, text
    quick.primusctl("kill", str(first))
    assert quick.wait_job(first) == 3
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    [kept] = [row for row in quick.primusctl_json("savepoint", "list") if row["job"] == first]
    assert kept["name"].startswith("kept-1000-") and [e["text"] for e in quick.events(first, "progress-kept")] == [
        f"the next job with this stagingDir goes on from savepoint {kept['name']}"]
    assert "kept-" in quick.run("n1", "primusctl", "savepoint", "create", str(first), "kept-mine", user="ml").stderr

    changed = json.loads(json.dumps(job))
    changed["inputManager"]["fileConfig"]["inputs"][0]["spec"]["split"] = "1K"
    text = quick.run("n1", "primusctl", "submit", "-", user="ml", input=json.dumps(changed))
    assert text.returncode == 1 and "is of other data" in text.stderr and "split" in text.stderr, text

    before = len(all_lines(ledger))
    second = quick.submit(job)
    assert quick.wait_job(second) == 0
    assert quick.events(second, "restored") and set(all_lines(ledger)) == set(wanted)
    # Of what the first had in its pipe and had not acknowledged, at most that comes again.
    assert len(all_lines(ledger)) - len(wanted) == sum(n - 1 for _, n in once()) <= 4096 // len(wanted[0]) + 1 and before >= 1500
    third = quick.submit(job)
    assert quick.wait_job(third) == 0
    assert sum(n - 1 for _, n in once()) == len(all_lines(ledger)) - len(wanted) <= 4096 // len(wanted[0]) + 1
    assert quick.status(third)["data"]["done"] == quick.status(second)["data"]["done"]

    other = quick.run("n1", "primusctl", "submit", "-", user="eve", input=json.dumps(job))
    assert other.returncode == 0, other.stderr
    number = int(re.search(r"\d+", other.stdout)[0])
    assert not quick.events(number, "restored"), "another user's progress"
    quick.primusctl("kill", str(number), user="eve")
    quick.wait_job(number)
    for row in quick.primusctl_json("savepoint", "list", user="root"):
        if row["name"].startswith("kept-"):
            quick.primusctl("savepoint", "delete", row["name"], user="root")


def test_suspended_holds_data_back(quick, ledger):
    wanted = make_data(ledger, 6, 1000)
    job = quick.submit(config(ledger, SLOWLY, num=2, input=INPUT))
    wait_lines(quick, ledger, 1000)
    quick.primusctl("suspend", str(job))
    assert quick.status(job)["state"] == "SUSPENDED"

    def still():
        n = len(all_lines(ledger))
        time.sleep(2)
        return len(all_lines(ledger)) == n

    quick.wait_for(still, 20, "the end of what was in the pipes")
    n = len(all_lines(ledger))
    assert n < len(wanted)
    quick.kill9_now("n1", MASTERD)
    quick.wait_nodes()
    assert quick.status(job)["state"] == "SUSPENDED"
    assert still() and len(all_lines(ledger)) == n
    assert quick.run("n1", "primusctl", "suspend", str(job), user="ml").returncode == 1
    quick.primusctl("resume", str(job))
    assert quick.wait_job(job) == 0
    counts = collections.Counter(all_lines(ledger))
    assert set(counts) == set(wanted) and set(counts.values()) == {1}
    assert quick.events(job, "suspended") and quick.events(job, "resumed")


def test_suspended_job_can_be_killed(quick, ledger):
    make_data(ledger, 2, 1000)
    job = quick.submit(config(ledger, SLOWLY, input=INPUT))
    wait_lines(quick, ledger, 100)
    quick.primusctl("suspend", str(job))
    name = savepoint(quick, job, "--kill")
    assert quick.wait_job(job) == 3
    again, before = restore(quick, ledger, name)
    assert quick.wait_job(again) == 0
    assert len(all_lines(ledger)) + len(before[0, 1]) >= 2000


def test_refused(quick, ledger):
    """In words, and nothing is left behind."""
    make_data(ledger, 2, 1000)
    job = quick.submit(config(ledger, SLOWLY, input=INPUT))
    wait_lines(quick, ledger, 100)
    savepoint(quick, job, "mine")

    def refused(*argv, user="ml", text=None):
        done = quick.run("n1", *argv, user=user, input=text)
        assert done.returncode != 0, done.stdout
        return done.stderr

    assert "mine" in refused("primusctl", "savepoint", "create", str(job), "mine")
    assert "letter or digit" in refused("primusctl", "savepoint", "create", str(job), "../etc")
    assert "NOTHING" in refused("primusctl", "savepoint", "restore", "NOTHING")
    elsewhere = config(ledger, KEEP, path="/shared/elsewhere", input=INPUT)
    message = refused("sh", "-c", "umask 077; cat > /tmp/elsewhere.json; primusctl savepoint restore mine /tmp/elsewhere.json",
                      text=json.dumps(elsewhere))
    assert "pathPattern" in message and "/shared/elsewhere" in message
    plain = quick.submit(ledger.config("sleep 60"))
    assert "no" in refused("primusctl", "suspend", str(plain))
    quick.primusctl("savepoint", "delete", "mine")
    assert "mine" in refused("primusctl", "savepoint", "show", "mine")
