# SPDX-License-Identifier: Apache-2.0
"""On $PRIMUS_STACK_SIGNAL a program that imports primus says where it is."""
import os
import signal
import subprocess
import sys
import time

SIGNAL = 42
SCRIPT = """
import os, sys, threading, primus
lock = threading.Lock()
def stuck_here():
    os.write(1, b"%d\\n" % os.getpid())
    lock.acquire()
lock.acquire()
if sys.argv[1] == "fork":
    pid = os.fork()
stuck_here()
"""


def ask(pid, path):
    for _ in range(100):
        os.kill(pid, SIGNAL)
        time.sleep(0.05)
        text = path.read_text() if path and path.exists() else ""
        if "stuck_here" in text:
            return text
    return ""


def start(environment, *arguments, **more):
    e = dict(environment, PRIMUS_STACK_SIGNAL=str(SIGNAL), **more)
    return subprocess.Popen([sys.executable, "-c", SCRIPT, *arguments], env=e, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def test_a_file(environment, tmp_path):
    with start(environment, "plain", PRIMUS_STACKS=str(tmp_path)) as p:
        pid = int(p.stdout.readline())
        path = tmp_path / f"stacks.{pid}"
        assert "stuck_here" in ask(pid, path) and path.stat().st_mode & 0o777 == 0o600
        p.kill()


def test_a_child_has_its_own(environment, tmp_path):
    with start(environment, "fork", PRIMUS_STACKS=str(tmp_path)) as p:
        pids = [int(p.stdout.readline()) for _ in range(2)]
        for pid in pids:
            assert "stuck_here" in ask(pid, tmp_path / f"stacks.{pid}")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_standard_error(environment):
    with start(environment, "plain") as p:
        os.kill(int(p.stdout.readline()), SIGNAL)
        assert "most recent call first" in p.stderr.readline()
        p.kill()


def test_not_wanted(environment, tmp_path):
    for more in ({"PRIMUS_STACK_SIGNAL": ""}, {"PRIMUS_STACK_SIGNAL": "nonsense"}, {}):
        e = dict(environment, PRIMUS_STACKS=str(tmp_path), **more)
        e.pop("PRIMUS_STACK_SIGNAL", None) if not more else None
        code = f"import signal, primus; print(signal.getsignal({SIGNAL}) == signal.SIG_DFL)"
        assert subprocess.run([sys.executable, "-c", code], env=e, stdout=subprocess.PIPE, text=True, check=True,
                              timeout=60).stdout == "True\n"
        assert not list(tmp_path.iterdir())


def test_a_handler_that_was_there(environment, tmp_path):
    code = (f"import signal\nmine = lambda *a: None\nsignal.signal({SIGNAL}, mine)\nimport primus\n"
            f"print(signal.getsignal({SIGNAL}) is mine)")
    e = dict(environment, PRIMUS_STACK_SIGNAL=str(SIGNAL), PRIMUS_STACKS=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", code], env=e, stdout=subprocess.PIPE, text=True, check=True,
                          timeout=60).stdout == "True\n"
