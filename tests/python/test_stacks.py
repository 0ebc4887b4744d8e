# SPDX-License-Identifier: Apache-2.0
"""On $PRIMUS_STACK_SIGNAL a program that imports primus says where it is."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

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


# Without import primus: by what the launcher puts on PYTHONPATH (executor/python)

@pytest.fixture
def hook(build, tmp_path):
    """The directory as it is installed."""
    directory = tmp_path / "hook"
    directory.mkdir()
    top = pathlib.Path(__file__).resolve().parents[2]
    shutil.copy(top / "executor/python/sitecustomize.py", directory)
    shutil.copy(top / "lib/primus/python/primus/_stacks.py", directory / "_primus_stacks.py")
    return directory


PLAIN = SCRIPT.replace(", primus", "")


def run_hooked(hook, stacks, script, *options, path=(), **more):
    e = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    e.update(PYTHONPATH=":".join(map(str, (hook, *path))), PRIMUS_STACK_SIGNAL=str(SIGNAL), PRIMUS_STACKS=str(stacks), **more)
    return subprocess.Popen([sys.executable, *options, "-c", script, "fork" if "fork" in more.get("HOW", "") else "plain"], env=e,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_every_python(hook, tmp_path):
    with run_hooked(hook, tmp_path, PLAIN, HOW="fork") as p:
        pids = [int(p.stdout.readline()) for _ in range(2)]
        for pid in pids:
            assert "stuck_here" in ask(pid, tmp_path / f"stacks.{pid}")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_import_primus_as_well(hook, tmp_path, environment):
    """One file, one handler."""
    with run_hooked(hook, tmp_path, SCRIPT, path=environment["PYTHONPATH"].split(":"), **{k: environment[k] for k in ("PRIMUS_LIBRARY",)},
                    **{k: environment[k] for k in ("LD_PRELOAD", "ASAN_OPTIONS") if k in environment}) as p:
        pid = int(p.stdout.readline())
        assert "stuck_here" in ask(pid, tmp_path / f"stacks.{pid}")
        p.kill()


def test_the_hook_steps_aside(hook, tmp_path):
    """A sitecustomize of the environment runs, and the program sees nothing of ours."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "sitecustomize.py").write_text("import sys\nsys.mine = __file__\n")
    look = "import sys, sitecustomize; print(getattr(sys, 'mine', None), sitecustomize.__file__, sys.path)"
    with run_hooked(hook, tmp_path, look, path=(mine,)) as p:
        out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and not err, err
    assert out.split()[0] == out.split()[1] == str(mine / "sitecustomize.py") and str(hook) not in out
    (mine / "sitecustomize.py").unlink()
    with run_hooked(hook, tmp_path, "import sys; print(sys.path)", path=(mine,)) as p:
        out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and not err and str(hook) not in out and str(mine) in out
    (mine / "sitecustomize.py").write_text("import nothing_like_it\n")  # its own mistake is told as its own
    with run_hooked(hook, tmp_path, "print('runs')", path=(mine,)) as p:
        out, err = p.communicate(timeout=60)
    assert "nothing_like_it" in err and out == ("runs\n" if p.returncode == 0 else "")


def test_nothing_is_left(hook, tmp_path):
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    with run_hooked(hook, stacks, "import os; print(os.listdir(os.environ['PRIMUS_STACKS']))") as p:
        out, _ = p.communicate(timeout=60)
    assert "stacks." in out and not list(stacks.iterdir())
    for options in (("-I",), ("-S",)):  # they say that they want nothing of the environment
        with run_hooked(hook, stacks, "import os, sys; print(os.listdir(os.environ['PRIMUS_STACKS']))", *options) as p:
            assert p.communicate(timeout=60)[0] == "[]\n"


def test_descriptors_that_others_close(hook, tmp_path):
    """A program that closes what it does not know does not get our text into its next file."""
    script = PLAIN.replace("import os, sys, threading", "import os, sys, threading\nos.closerange(3, 400)\n"
                           "out = [open(os.environ['OUT'] + str(i), 'w') for i in range(20)]")
    with run_hooked(hook, tmp_path, script, OUT=str(tmp_path / "out")) as p:
        pid = int(p.stdout.readline())
        assert "stuck_here" in ask(pid, tmp_path / f"stacks.{pid}")
        p.kill()
    assert all((tmp_path / f"out{i}").stat().st_size == 0 for i in range(20))
