# SPDX-License-Identifier: Apache-2.0
"""Output of executors, from the trainer to the reader: nothing lost, nobody slowed, the end kept."""
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from sandbox import AGENTD, MASTERD, Failed

# Prints `rate` lines a second for `seconds`, on time however late the machine is, and then says how long each took.
STEADY = r"""
import sys, time
rate, seconds, name = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
out = sys.stdout.buffer
begin = time.monotonic(); n = 0; slowest = 0.0
while n < rate * seconds:
    due = min(int((time.monotonic() - begin) * rate) + 1, int(rate * seconds))
    while n < due:
        before = time.monotonic()
        out.write(b"%s line %d\n" % (name.encode(), n)); out.flush()
        slowest = max(slowest, time.monotonic() - before)
        n += 1
    time.sleep(0.002)
took = time.monotonic() - begin
open(f"/shared/steady.{name}", "w").write(f"{took} {slowest}")
"""


def job(name, command, num=1, **more):
    role = {"roleName": "w", "num": num, "vcores": 0, "memoryMb": 0, "command": command, "successPercent": 100,
            **more.pop("role", {})}
    return {"name": name, "role": [role], **more}


@pytest.fixture(scope="module")
def steady(shared_dir):
    (shared_dir / "steady.py").write_text(STEADY)
    return lambda name, rate, seconds: f"exec python3 /shared/steady.py {rate} {seconds} {name}"


def expected(name, n):
    return [f"{name} line {i}" for i in range(n)]


def text_of(lines, prefix=""):
    return [line.removeprefix(prefix) for line in lines]


def number_of(cluster, name):
    return cluster.wait_for(lambda: next((row["job"] for row in cluster.primusctl_json("list") if row["name"] == name), None), 20,
                            f"a job named {name}")


def test_grep(cluster):
    """Through the output of all executors, on several hosts; of an array, of all elements."""
    number = cluster.submit(job("grep", "seq 1 2000; echo loss $PRIMUS_INDEX nan; seq 2001 3000", 3, role={"scheduleStrategy": {"maxReplicasPerNode": 1}}))
    assert cluster.wait_job(number) == 0
    found = cluster.primusctl("logs", str(number), "--grep", "LOSS [0-9]+ nan$", "-i").splitlines()
    assert found == [f"w/{i} | loss {i} nan" for i in range(3)]
    around = cluster.primusctl("logs", str(number), "w/1", "-g", "nan|^2999$", "-C", "1").splitlines()
    assert around == ["2000", "loss 1 nan", "2001", "--", "2998", "2999", "3000"]
    done = cluster.run("n1", "primusctl", "logs", str(number), "-g", "nothing of the kind", user="ml")
    assert done.returncode == 1 and not done.stdout and "matches nothing of the kind" in done.stderr
    array = cluster.submit(job("greps", "echo here is $PRIMUS_ARRAY_INDEX", array="0-4"))
    assert cluster.wait_job(array) == 0
    assert cluster.primusctl("logs", str(array), "--grep", "is [13]").splitlines() == [f"[{i}] w/0 | here is {i}" for i in (1, 3)]


def test_no_line_lost_and_nobody_slowed(cluster, steady, shared_dir, tmp_path):
    """5,000 lines/s for 10 s, read by `run`, by `logs -f`, and by two who do not read at all."""
    rate, seconds = 5000, 10
    outputs = {"run": tmp_path / "run", "follow": tmp_path / "follow"}
    with open(outputs["run"], "wb") as run_out, open(outputs["follow"], "wb") as follow_out:
        run = subprocess.Popen(cluster.argv("n1", "primusctl", "run", "--name", "steady", "--cpus", "0", "--mem", "0", "--", "sh", "-c",
                                            steady("a", rate, seconds), user="ml", cwd="/shared"), stdin=subprocess.DEVNULL, stdout=run_out)
        follow = ["n1", "primusctl", "logs", "-f", str(number_of(cluster, "steady"))]
        with cluster.process(*follow, user="ml", stdout=follow_out) as reader, cluster.process(*follow, user="ml"), \
                cluster.process(*follow, user="ml"):
            assert run.wait(90) == 0
            assert reader.wait(30) == 0
    wanted = expected("a", rate * seconds)
    for name, path in outputs.items():
        got = path.read_text(errors="replace").splitlines()
        assert len(got) == len(wanted), f"primusctl {name}: {len(got)} of {len(wanted)} lines"
        assert got == wanted, f"primusctl {name}"
    took, slowest = map(float, (shared_dir / "steady.a").read_text().split())
    print(f"{rate} lines/s for {seconds} s took {took:.2f} s, the slowest line {slowest * 1000:.1f} ms")
    assert took < seconds * 1.1, "the trainer is not slowed"


def test_end_survives_the_host(cluster, shared_dir):
    (shared_dir / "printed").unlink(missing_ok=True)
    # Longer than what is kept, and all of it equal: nothing is taken for a repetition.
    number = cluster.submit(job("end", "i=0; while [ $i -lt 4000 ]; do printf '%090d\\n' $((i / 2000)); i=$((i + 1)); done; "
                                       "touch /shared/printed; exec sleep infinity", role={"nodes": ["n3"]}))
    cluster.wait_for((shared_dir / "printed").exists, 60, "all is printed")
    begin = time.monotonic()
    kept = cluster.state_path("n1", "primus", "logs", str(number), "w-0.1")
    # Full is not enough: it is a ring, and the last lines may still be on their way.
    cluster.wait_for(lambda: os.path.exists(kept) and Path(kept).read_bytes().count(b"1\n") >= 2000, 10, "its end is at masterd")
    took = time.monotonic() - begin
    print(f"the end was at masterd {took:.1f} s after it was printed")
    cluster.crash("n3")
    shown = cluster.primusctl("logs", str(number)).splitlines()
    assert 5 > took
    assert len(shown) in range((256 << 10) // 91 - 2, (256 << 10) // 91 + 1)
    assert shown[-2000:] == [f"{1:090d}"] * 2000 and set(shown[:-2000]) == {f"{0:090d}"}
    cluster.boot("n3")
    cluster.wait_nodes()
    cluster.kill(number)


def paused(cluster, node, service):
    """Its main process stands still until the context ends; or, killed in it, is another one then."""
    pid = cluster.exec(node, "systemctl", "show", "-P", "MainPID", service).strip()

    @contextlib.contextmanager
    def pause():
        cluster.exec(node, "kill", "-STOP", pid)
        try:
            yield
        finally:
            cluster.run(node, "kill", "-CONT", pid)
    return pause()


def kept_of(cluster, number):
    return Path(cluster.state_path("n1", "primus", "logs", str(number), "w-0.1"))


def test_who_follows_stays_with_the_host(cluster, shared_dir):
    """A new masterd has the end of the log before the host is back, and is asked in between: what is more than that comes all the same."""
    go = shared_dir / "follow-go"
    number = cluster.submit(job("stays", f"echo one; while [ ! -e /shared/{go.name} ]; do sleep 0.1; done; seq 1 100000; sleep 3", role={"nodes": ["n2"]}))
    cluster.wait_for(lambda: kept_of(cluster, number).exists() and b"one" in kept_of(cluster, number).read_bytes(), 20, "its first line at masterd")
    with contextlib.ExitStack() as stack:
        with paused(cluster, "n2", AGENTD):
            cluster.kill9_now("n1", MASTERD)
            cluster.wait_for(lambda: cluster.run("n1", "primusctl", "list", user="ml").returncode == 0, 20, "the new masterd")
            follow = stack.enter_context(cluster.process("n1", "primusctl", "logs", "-f", str(number), user="ml"))
            time.sleep(1.5)
        cluster.wait_nodes()
        go.touch()
        shown = follow.communicate(timeout=120)[0].splitlines()
    assert [line for line in shown if line != "one" and not line.isdigit()] == []
    assert shown == ["one", *(str(i) for i in range(1, 100001))], (len(shown), shown[:3], shown[-3:])
    assert cluster.wait_job(number) == 0


def test_what_a_killed_masterd_had_not_written(cluster, shared_dir):
    """It was on its way, and is sent again: there is no gap in what is kept."""
    go = shared_dir / "gap-go"
    number = cluster.submit(job("gap", f"echo one; while [ ! -e /shared/{go.name}.2 ]; do sleep 0.1; done; echo two; "
                                       f"while [ ! -e /shared/{go.name}.3 ]; do sleep 0.1; done; echo three; sleep 600", role={"nodes": ["n2"]}))
    cluster.wait_for(lambda: kept_of(cluster, number).exists() and b"one" in kept_of(cluster, number).read_bytes(), 20, "its first line at masterd")
    with paused(cluster, "n1", MASTERD):
        (shared_dir / "gap-go.2").touch()
        time.sleep(3)  # longer than lines are gathered: it is sent
        assert b"two" not in kept_of(cluster, number).read_bytes()
        cluster.kill9_now("n1", MASTERD)
    cluster.wait_nodes()
    (shared_dir / "gap-go.3").touch()
    cluster.wait_for(lambda: b"three" in kept_of(cluster, number).read_bytes(), 20, "its last line at masterd")
    assert b"one\ntwo\nthree\n" in kept_of(cluster, number).read_bytes()
    cluster.kill(number)


def test_first_traceback(cluster):
    number = cluster.submit(job("traceback", "echo fine; python3 -c 'def f(): raise ValueError(\"bad shape (3, 4)\")\nf()'"))
    assert cluster.wait_job(number) == 1
    cluster.wait_for(lambda: "ValueError: bad shape (3, 4)" in cluster.primusctl("status", str(number)), 10, "the error in status")
    assert "ValueError: bad shape (3, 4)" in cluster.primusctl("events", str(number))
    assert cluster.primusctl_json("status", str(number))["firstError"].startswith("ValueError: bad shape (3, 4)")


def test_submit_wait_shows_the_traceback(cluster):
    """Which comes behind the end; and what fails without a word is waited for no longer than that takes."""
    config = job("traceback", "python3 -c 'raise KeyError(17)'")
    for n in range(3):
        done = cluster.run("n1", "primusctl", "submit", "--wait", "-", user="ml", input=json.dumps(config))
        assert done.returncode == 1 and "first error:" in done.stdout and "KeyError: 17" in done.stdout, done
    begun = time.monotonic()
    done = cluster.run("n1", "primusctl", "submit", "--wait", "-", user="ml", input=json.dumps(job("mute", "exit 3")))
    assert done.returncode == 1 and "first error" not in done.stdout
    assert time.monotonic() - begun < 20


def test_what_was_printed_is_there_after_a_kill(cluster):
    """Nobody has to flush for that."""
    number = cluster.submit(job("killed", "exec python3 -c 'import os; print(\"my last\"); os.kill(os.getpid(), 9)'"))
    assert cluster.wait_job(number) == 1
    assert cluster.primusctl("logs", str(number)) == "my last\n"


def test_every_attempt(cluster):
    failover = {"commonFailoverPolicy": {"restartType": "ON_FAILURE", "maxFailureTimes": 5}}
    number = cluster.submit(job("attempts", "echo attempt $PRIMUS_ATTEMPT; [ $PRIMUS_ATTEMPT -ge 3 ]", role={"failover": failover}))
    assert cluster.wait_job(number) == 0
    assert cluster.primusctl("logs", str(number)).splitlines() == ["attempt 1", "attempt 2", "attempt 3"]
    assert cluster.primusctl("logs", "-f", str(number)).splitlines() == ["attempt 1", "attempt 2", "attempt 3"]
    assert cluster.primusctl("logs", "--tail", "2", str(number)).splitlines() == ["attempt 2", "attempt 3"]
    assert cluster.primusctl("logs", "--attempt", "2", str(number), "w/0").splitlines() == ["attempt 2"]


def test_all_executors_together(cluster):
    number = cluster.submit(job("chorus", "for i in 1 2 3; do echo $PRIMUS_INDEX says $i; done", 64))
    with cluster.process("n1", "primusctl", "logs", "-f", str(number), user="ml") as follow:
        followed = follow.communicate(timeout=120)[0]
    assert cluster.wait_job(number) == 0
    wanted = sorted(f"w/{i} | {i} says {n}" for i in range(64) for n in (1, 2, 3))
    for text in (followed, cluster.primusctl("logs", str(number))):
        assert sorted(" ".join(line.split()) for line in text.splitlines()) == sorted(" ".join(line.split()) for line in wanted)
    assert len(cluster.primusctl("logs", str(number), "w/7").splitlines()) == 3


def test_output_files(cluster, shared_dir):
    (shared_dir / "out").mkdir(exist_ok=True)
    os.chmod(shared_dir / "out", 0o777)
    number = cluster.submit(job("files", "echo $PRIMUS_INDEX; echo error >&2", 2, output="/shared/out/%j-%r-%i.%a"))
    assert cluster.wait_job(number) == 0
    for i in range(2):
        assert (shared_dir / "out" / f"{number}-w-{i}.1").read_text() == f"{i}\nerror\n"
    cluster.exec("n1", "primusctl", "run", "--cpus", "0", "--mem", "0", "-o", "out/mine-%i", "--", "echo", "mine", user="ml", cwd="/shared")
    assert (shared_dir / "out" / "mine-0").read_text() == "mine\n"


def test_bytes_and_long_lines(cluster, tmp_path):
    """What is printed comes out as it is, whatever journald makes of it on the way."""
    number = cluster.submit(job("bytes", "python3 -c \"import sys; sys.stdout.buffer.write(b'x' * 1000000 + b'\\\\xff\\\\xfe\\\\r\\\\x1b[31m"
                                         "\\\\n' + b'end\\\\n')\""))
    assert cluster.wait_job(number) == 0
    out = subprocess.run(cluster.argv("n1", "primusctl", "logs", str(number), user="ml"), stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=60).stdout
    assert out == b"x" * 1000000 + b"\xff\xfe\r\x1b[31m\nend\n"


def test_progress_bar_on_a_terminal(cluster):
    command = "primusctl run --cpus 0 --mem 0 -n 2 --color never -- sh -c 'for i in 1 2 3; do printf \"\\rstep $i\"; done; echo; echo done'"
    shown = cluster.exec("n1", "script", "-qec", command, "/dev/null", user="ml", cwd="/shared")
    lines = sorted(line.strip("\r") for line in shown.splitlines())
    assert lines == ["[0] done", "[0] step 3", "[1] done", "[1] step 3"], shown


def test_a_journald_that_is_behind(cluster):
    """It runs a fifth of the time, so it answers nobody in time who asks whether it has written all; the end is waited for."""
    job = {"role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "nodes": "n3", "command": "seq 60000"}]}
    pid = cluster.exec("n3", "systemctl", "show", "-P", "MainPID", "systemd-journald").strip()
    cluster.exec("n3", "systemd-run", "-q", "--unit=slow-journald", "sh", "-c",
                 f"trap 'kill -CONT {pid}; exit' TERM; while :; do kill -STOP {pid}; sleep 0.8; kill -CONT {pid}; sleep 0.2; done")
    try:
        number = cluster.submit(job)
        lines = cluster.primusctl("logs", "-f", str(number), timeout=200).splitlines()
    finally:
        cluster.exec("n3", "systemctl", "stop", "slow-journald")
    assert len(lines) == 60000
    # And what masterd keeps for when the host is gone.
    kept = cluster.state_path("n1", "primus", "logs", str(number), "worker-0.1")
    cluster.wait_for(lambda: os.path.exists(kept) and Path(kept).read_bytes().find(b"\n60000\n") > 0, 60, "its end is at masterd")
