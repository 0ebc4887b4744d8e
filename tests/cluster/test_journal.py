# SPDX-License-Identifier: Apache-2.0
"""Both readers of the journal against a real journald: no line lost, none twice, the end found."""
import os
import shutil
import subprocess
import threading

import pytest

# What agentd gives every executor's unit. An interval of 0 would be journald's default, not "no limit".
PROPERTIES = ["-p", "LogRateLimitIntervalSec=1us", "-p", "LogRateLimitBurst=100000000", "-p", "SyslogLevelPrefix=no"]
PRINT = "$|=1; my ($n,$pause)=@ARGV; for $i (1..$n) { print \"line $i\\n\"; select undef,undef,undef,$pause if $pause > 0 }\n"


@pytest.fixture
def host(bare, build):
    probe = os.path.join(build, "tests/unit/agentd/log/probe-log")
    if not os.path.exists(probe):
        pytest.skip("probe-log is not built")
    shutil.copy(probe, bare.shared / "probe-log")
    os.chmod(bare.shared / "probe-log", 0o755)
    (bare.shared / "print.pl").write_text(PRINT)
    return bare


def expected(n):
    return "".join(f"line {i}\n" for i in range(1, n + 1))


def probe(host, *arguments):
    return subprocess.Popen(host.argv("n1", "/shared/probe-log", *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run_unit(host, job, *argv):
    return host.exec("n1", "systemd-run", "-q", "--wait", f"--unit=primus-{job}-worker-0.1.service", f"--slice=primus-{job}.slice",
                     *PROPERTIES, "-p", "User=nobody", *argv, timeout=90)


def finish(process, feed=None):
    """Ends the probe's input, which tells it that the unit has ended, and returns its output."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out, err


@pytest.mark.parametrize("job, lines, pause, rotate", [(9001, 50000, "0.00014", True), (9002, 100000, "0", False), (9003, 1, "0", False)])
def test_no_line_lost(host, job, lines, pause, rotate):
    reader = probe(host, "read", f"primus-{job}-worker-0.1.service")
    got = []
    drain = threading.Thread(target=lambda: got.append(reader.stdout.read()))
    drain.start()
    unit = threading.Thread(target=run_unit, args=(host, job, "perl", "/shared/print.pl", str(lines), pause))
    unit.start()
    if rotate:
        host.exec("n1", "journalctl", "--rotate")
    unit.join()
    reader.stdin.close()
    drain.join(60)
    assert reader.wait(60) == 0, reader.stderr.read()
    assert got[0] == expected(lines)


def test_read_after_the_end(host):
    run_unit(host, 9011, "perl", "/shared/print.pl", "1000", "0")
    out, _ = finish(probe(host, "read", "primus-9011-worker-0.1.service"))
    assert out == expected(1000)


def test_equal_lines_at_once(host):
    """They have the same times and content, and are not the same line."""
    job = 9013
    wanted = "same\n" * 20000
    tail = probe(host, "tail", str(job), "worker", f"/run/tail-{job}", str(len(wanted)))
    assert tail.stderr.readline() == "ready\n"
    run_unit(host, job, "perl", "-e", "print qq(same\\n) x 20000")
    assert finish(probe(host, "read", f"primus-{job}-worker-0.1.service"))[0] == wanted
    out, err = finish(tail)
    assert out == wanted


def test_long_and_binary_lines(host):
    run_unit(host, 9012, "perl", "-e", "print 'x' x 200000, qq(\\n); print qq(a\\rb\\rc\\n); print qq(\\xff\\xfe\\n); print 'end'")
    reader = subprocess.run(host.argv("n1", "/shared/probe-log", "read", "primus-9012-worker-0.1.service"), input=b"",
                            capture_output=True, timeout=60)
    assert reader.stdout == b"x" * 200000 + b"\na\rb\rc\n\xff\xfe\nend\n"


@pytest.mark.parametrize("job, lines, pause", [(9021, 20000, "0.00014"), (9022, 300000, "0"), (9023, 1, "0")])
def test_tail(host, job, lines, pause):
    everything = expected(lines)
    tail = probe(host, "tail", str(job), "worker", f"/run/tail-{job}", str(len(everything)))
    assert tail.stderr.readline() == "ready\n"
    run_unit(host, job, "perl", "/shared/print.pl", str(lines), pause)
    out, err = finish(tail)
    chunks = [tuple(map(int, line.split())) for line in err.splitlines()]
    # Chunks are what the offsets say; the end is there; what fits is all there.
    place = 0
    for offset, size in chunks:
        assert out[place:place + size] == everything[offset:offset + size]
        place += size
    assert chunks[-1][0] + chunks[-1][1] == len(everything)
    if lines < 100000:
        assert out == everything
    else:
        assert out[-262144:] == everything[-262144:]
    assert f"primus-{job}-worker-0.1.service {len(everything)}\n" in host.exec("n1", "cat", f"/run/tail-{job}")
