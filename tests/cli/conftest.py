# SPDX-License-Identifier: Apache-2.0
"""primusctl against a master made for the test, on a bus of its own.

    master   a FakeMaster (fakemaster.py)
    ctl      ctl("list", "-a", …) runs primusctl to its end
    tty      tty("run", …) runs it on a terminal
"""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest
from fakemaster import FakeMaster

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={path}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/><allow receive_type="method_return"/>
    <allow receive_type="error"/><allow receive_type="signal"/>
  </policy>
  <limit name="max_replies_per_connection">128</limit>
</busconfig>
"""


def pytest_addoption(parser):
    try:
        parser.addoption("--build", default=os.environ.get("PRIMUS_BUILD", os.path.join(SOURCE, "build")),
                         help="meson build directory whose programs are tested")
    except ValueError:
        pass  # another folder's tests have it already


@pytest.fixture(scope="session")
def programs(request):
    return os.path.join(os.path.abspath(request.config.getoption("--build")), "tools", "primusctl")


@pytest.fixture
def bus(tmp_path):
    path = tmp_path / "bus"
    config = tmp_path / "bus.conf"
    config.write_text(BUS.format(path=path))
    daemon = subprocess.Popen(["dbus-daemon", "--nofork", "--print-address", f"--config-file={config}"],
                              stdout=subprocess.PIPE, text=True)
    daemon.stdout.readline()
    yield f"unix:path={path}"
    daemon.terminate()
    daemon.wait()


@pytest.fixture
def master(bus):
    master = FakeMaster(bus)
    yield master
    master.stop()


def environment(bus, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PRIMUS_", "DBUS_"))}
    # The sanitizer's runtime guesses where a thread's storage of a loaded library lies from the bytes before it; a wrong guess ends the look for leaks.
    env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS"), "intercept_tls_get_addr=0"]))
    return {**env, "DBUS_SYSTEM_BUS_ADDRESS": bus, "TERM": "xterm", "TZ": "UTC", "LC_ALL": "C.UTF-8", **more}


@pytest.fixture
def ctl(programs, bus, tmp_path):
    def run(*args, program="primusctl", env=None, cwd=tmp_path, timeout=20, **more):
        argv = [program, *map(str, args)]
        return subprocess.run(argv, executable=os.path.join(programs, "primusctl"), cwd=cwd, timeout=timeout,
                              env=environment(bus, **(env or {})), capture_output=True,
                              **{"text": True, **({} if "input" in more else {"stdin": subprocess.DEVNULL}), **more})
    return run


class Terminal:
    """primusctl on a terminal of 100 columns."""

    def __init__(self, programs, bus, cwd, args, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(os.path.join(programs, "primusctl"), ["primusctl", *map(str, args)], environment(bus, **env))
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.seen = b""
        self.code = None

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def until(self, pattern, timeout=10):
        """Reads until the pattern (bytes regex) has been seen; returns the match."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern, self.seen)):
            left = deadline - time.monotonic()
            assert left > 0 and self.read(left), f"no {pattern!r} in {self.seen!r}"
        return match

    def key(self, data):
        os.write(self.fd, data)

    def wait(self, timeout=10):
        """To the end; the exit status."""
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0 and self.read(left):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def close(self):
        if self.code is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.fd)


@pytest.fixture
def tty(programs, bus, tmp_path):
    terminals = []

    def start(*args, **env):
        terminals.append(Terminal(programs, bus, tmp_path, args, env))
        return terminals[-1]
    yield start
    for terminal in terminals:
        terminal.close()
