# SPDX-License-Identifier: Apache-2.0
"""What an executor printed before it failed decides what follows: exitCodes with output, and the site's [ExitRule]."""
import pytest
from ledger import Ledger, failover
from sandbox import AGENTD, MASTERD, Cluster, cluster_name, shared_directory

BACKOFF = {"backoff": {"initial": "0.1s", "max": "0.2s"}}
SITE = ["masterd.conf:ExitRule ecc.Output=uncorrectable ECC", "masterd.conf:ExitRule ecc.Action=blame",
        "masterd.conf:ExitRule steps.Output=^step [0-9]+ of", "masterd.conf:ExitRule steps.Codes=5", "masterd.conf:ExitRule steps.Action=note"]


@pytest.fixture(scope="module")
def ruled(build, tmp_path_factory):
    shared = shared_directory(tmp_path_factory, "rules")
    with Cluster(cluster_name(), 3, build=build, binds=[f"{shared}:/shared"], conf=["masterd.conf:Master.QuarantineScore=0", *SITE]) as cluster:
        cluster.shared = shared
        yield cluster


@pytest.fixture
def ledger(ruled):
    return Ledger(ruled.shared)


def reasons(cluster, job, kind="executor-failed"):
    """None: of events of all kinds."""
    return [e["text"] for e in cluster.events(job, kind)]


def first_fails(then="say end"):
    """The first attempt prints and fails, each later one does this."""
    return "[ $PRIMUS_ATTEMPT -ge 2 ] || { for i in 1 2 3; do echo step $i of 9; done; echo 'NCCL WARN: remote closed' >&2; echo bye; exit 5; }; " + then


def test_a_line_decides(ruled, ledger):
    """maxFailureTimes is 1: a failure that counts would be the end. What the site notes is said, too."""
    job = ruled.submit(ledger.config(first_fails(), job={**BACKOFF, "exitCodes": [{"output": "^NCCL .*(closed|timeout)$", "action": "restart"}]}))
    assert ruled.wait_job(job) == 0
    assert len(ledger.entries("end")) == 1
    assert "printed 'NCCL WARN: remote closed'; does not count (exitCodes: restart)" in reasons(ruled, job)[0]


def test_what_was_not_printed_decides_nothing(ruled, ledger):
    job = ruled.submit(ledger.config(first_fails(), job={**BACKOFF, "exitCodes": [{"output": "out of cheese", "action": "restart"}]}))
    assert ruled.wait_job(job) == 1
    assert "printed 'step 1 of 9'" in reasons(ruled, job)[0], "the site's note"
    assert "exitCodes" not in reasons(ruled, job)[0]


def test_codes_and_output_have_to_fit(ruled, ledger):
    rules = [{"codes": "6", "output": "NCCL", "action": "restart"}, {"codes": "1-5", "output": "NCCL", "action": "ignore"}]
    job = ruled.submit(ledger.config(first_fails(), job={**BACKOFF, "exitCodes": rules}))
    ruled.wait_job(job)
    assert "counts as nothing (exitCodes: ignore)" in " ".join(reasons(ruled, job, None))


def test_site_blames_the_host(ruled, ledger):
    """Whatever the job says or not: it goes on elsewhere."""
    command = "[ $PRIMUS_NODE != n3 ] || { echo 'GPU 2: uncorrectable ECC error'; exit 1; }; say end; sleep 0.3"
    job = ruled.submit(ledger.config(command, num=6, scheduleStrategy={"maxReplicasPerNode": 2}, job=BACKOFF))
    assert ruled.wait_job(job) == 0
    assert len(ledger.entries("end")) == 6 and not ledger.entries("end", node="n3")
    assert "printed 'GPU 2: uncorrectable ECC error'; counts against the host (masterd.conf: blame)" in " ".join(reasons(ruled, job))


def test_users_take_what_is_theirs(ruled, ledger):
    """Two users with different rules about the same line."""
    again = ruled.submit(ledger.config(first_fails(), job={**BACKOFF, "exitCodes": [{"output": "NCCL", "action": "restart"}]}))
    over = ruled.submit({"name": "eve", "maxAppAttempts": 1, "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "echo NCCL; exit 5",
                                                                    "failover": failover(9)}],
                         "exitCodes": [{"output": "NCCL", "action": "fail"}]}, user="eve")
    assert ruled.wait_job(again) == 0
    assert ruled.wait_job(over) == 1
    assert "fails the job (exitCodes: fail)" in " ".join(reasons(ruled, over))


def test_long_output(ruled, ledger):
    """Of much output the end is looked at: 256 KiB."""
    command = ("[ $PRIMUS_ATTEMPT -ge 2 ] || { echo early word; for i in $(seq 4000); do echo $i $(printf %090d 0); done; "
               "echo late word; for i in $(seq 100); do echo x; done; exit 5; }; say end")
    job = ruled.submit(ledger.config(command, job={**BACKOFF, "exitCodes": [{"output": "early word", "action": "fail"}, {"output": "late word", "action": "restart"}]}))
    assert ruled.wait_job(job) == 0, reasons(ruled, job, None)
    assert "printed 'late word'" in " ".join(reasons(ruled, job))


def test_daemons_killed_at_the_end(ruled, ledger):
    """Whoever is killed while the log is searched: the end is judged by it, once."""
    rules = {**BACKOFF, "exitCodes": [{"output": "NCCL", "action": "restart"}]}
    jobs = []
    for daemon in (AGENTD, MASTERD, AGENTD, MASTERD):
        job = ruled.submit(ledger.config("[ $PRIMUS_ATTEMPT -ge 2 ] || { say begun; sleep 0.5; echo NCCL; exit 5; }; say end", name=f"k{len(jobs)}",
                                         scheduleStrategy={"maxReplicasPerNode": 9}, job={**rules, "nodes": ["n1"]}))
        jobs.append(job)
        ruled.wait_for(lambda n=len(jobs): len(ledger.entries("begun")) >= n, what="its start")
        ruled.kill9_now("n1", daemon)
    for job in jobs:
        assert ruled.wait_job(job) == 0
        assert len(reasons(ruled, job)) == 1 and "does not count (exitCodes: restart)" in reasons(ruled, job)[0]


def test_changed_while_it_runs(ruled, ledger):
    job = ruled.submit(ledger.config("[ $PRIMUS_ATTEMPT -ge 2 ] || { while [ ! -e $LEDGER.go ]; do sleep 0.05; done; echo NCCL; exit 5; }; say end", job=BACKOFF))
    ruled.wait_state(job, "RUNNING")
    ruled.primusctl("update", str(job), 'exitCodes=[{"output": "NCCL", "action": "restart"}]')
    ledger.path.with_name(ledger.path.name + ".go").touch()
    assert ruled.wait_job(job) == 0


def test_no_expression_is_refused(ruled):
    config = '{"role": [{"roleName": "w", "command": "true"}], "exitCodes": [{"output": "a(", "action": "fail"}]}'
    refused = ruled.run("n1", "sh", "-c", f"echo '{config}' > /tmp/bad.json; primusctl submit /tmp/bad.json", user="ml")
    assert refused.returncode != 0
    assert 'exitCodes[0].output: "a(" is no regular expression (pcre2pattern(3)): missing closing parenthesis, at its byte 3' in refused.stderr
