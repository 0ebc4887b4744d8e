# SPDX-License-Identifier: Apache-2.0
"""primus-stdio without hosts: what its other side can say, and what the command sees of it."""
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import pytest

HELD, OUTPUT, TAKEN, UNREAD, EXIT = 1, 2, 3, 4, 5
HELLO, INPUT, END, SHOWN, SIZE, ABORT = 64, 65, 66, 67, 68, 69


class Holder:
    def __init__(self, program, *arguments, options=()):
        key, work = secrets.token_hex(16), tempfile.mkdtemp()
        os.mkdir(f"{work}/tmp")
        self.work, self.path = work, f"{work}/tmp/.stdio-{key}.2"
        self.process = subprocess.Popen([program, "hold", *options, "--", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, "PRIMUS_STDIO": key, "PRIMUS_RANK": "0", "PRIMUS_WORK": work,
                                                                     "PRIMUS_ATTEMPT": "2"})

    def connect(self, sent=0, shown=0, hello=True):
        for _ in range(100):
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(self.path)
                break
            except (ConnectionRefusedError, FileNotFoundError):
                time.sleep(0.05)
        self.socket.settimeout(10)
        kind, body = self.read()
        assert kind == HELD
        if hello:
            self.say(HELLO, struct.pack("<QQHHI", sent, shown, 30, 100, 0))
        return struct.unpack("<QQQ", body)

    def say(self, kind, body=b""):
        self.socket.sendall(struct.pack("<BI", kind, len(body)) + body)

    def read(self):
        kind, size = struct.unpack("<BI", self.exactly(5))
        return kind, self.exactly(size)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def until(self, wanted):
        while (frame := self.read())[0] != wanted:
            pass
        return frame[1]

    def ended(self):
        out, errors = self.process.communicate(timeout=10)
        return self.process.returncode, out, errors.decode()


@pytest.fixture
def hold(programs):
    program, held = os.path.join(programs, "primus-stdio"), []
    if not os.path.exists(program):
        program = os.path.join(os.path.dirname(os.path.dirname(programs)), "session", "primus-stdio")

    def make(*arguments, **options):
        held.append(Holder(program, *arguments, **options))
        return held[-1]
    yield make
    for each in held:
        each.process.kill()
        each.process.wait()
        shutil.rmtree(each.work)


def test_input_and_its_end(hold):
    h = hold("sh", "-c", "cat; exit 3")
    assert h.connect() == (0, 0, 0)
    h.say(INPUT, b"a\0b")
    h.say(INPUT)
    h.say(INPUT, b"c")
    h.say(END)
    assert h.ended() == (3, b"a\0bc", "")


def test_it_goes_on_where_it_was(hold):
    h = hold("cat")
    h.connect()
    h.say(INPUT, b"ab")
    assert struct.unpack("<Q", h.until(TAKEN)) == (2,)
    h.socket.sendall(struct.pack("<BI", INPUT, 4) + b"lo")  # a frame that breaks is one that has not come
    h.socket.close()
    assert h.connect(2) == (2, 2, 0)
    h.say(INPUT, b"cd")
    h.say(END)
    assert h.ended() == (0, b"abcd", "")


@pytest.mark.parametrize("said", [
    struct.pack("<BI", INPUT, 1 << 20), struct.pack("<BI", HELLO, 24) + bytes(24), struct.pack("<BIQ", SHOWN, 8, 5),
    struct.pack("<BIQ", SHOWN, 8, 1 << 63), b"\xff" * 100])
def test_nonsense_is_sent_away(hold, said):
    h = hold("cat")
    h.connect()
    h.socket.sendall(said)
    with pytest.raises((EOFError, ConnectionResetError)):
        while True:
            h.read()
    assert h.connect() == (0, 0, 0)
    h.say(END)
    assert h.ended() == (0, b"", "")


def test_more_than_there_is_room_for(hold):
    h = hold("sleep", "100")
    h.connect()
    with pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)):
        for _ in range(64):
            h.say(INPUT, bytes(32 << 10))
        while True:
            h.read()
    assert h.process.poll() is None


def test_input_that_will_never_be_whole(hold, tmp_path):
    """No process of the command sees an end."""
    reader = "cat <&3; echo wrong > {}/{}"
    h = hold("sh", "-c", f"exec 3<&0; ({reader.format(tmp_path, 1)}) & setsid sh -c '{reader.format(tmp_path, 2)}' & wait")
    h.connect()
    h.say(INPUT, b"x")
    h.until(TAKEN)
    time.sleep(0.3)
    h.say(ABORT, b"so\nit is")
    status, _, errors = h.ended()
    assert status == 125 and "broke off after 1 bytes: so?it is; the command was killed" in errors
    time.sleep(0.3)
    assert os.listdir(tmp_path) == []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def wait_until(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


READER = "trap '' TERM; cat > {0}/o.tmp && mv {0}/o.tmp {0}/o"


def test_the_holder_is_killed(hold, tmp_path):
    """Its keeper holds the input until nobody reads it any more."""
    h = hold("sh", "-c", READER.format(tmp_path))
    h.connect()
    h.say(INPUT, b"half")
    wait_until(lambda: os.path.exists(f"{tmp_path}/o.tmp") and os.path.getsize(f"{tmp_path}/o.tmp") == 4)
    command, *keeper = children(h.process.pid)
    reader = children(command)
    h.process.kill()
    for pid in (*keeper, command, *reader):
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.5)
    assert os.listdir(tmp_path) == ["o.tmp"] and alive(*keeper) and alive(command)
    for pid in (command, *reader):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(*keeper))
    assert os.listdir(tmp_path) == ["o.tmp"]


def test_the_command_ends_before_who_reads_its_input(hold, tmp_path):
    h = hold("sh", "-c", f"exec 3<&0; ({READER.format(tmp_path)}) <&3 & wait")
    h.connect()
    h.say(INPUT, b"half")
    wait_until(lambda: os.path.exists(f"{tmp_path}/o.tmp") and os.path.getsize(f"{tmp_path}/o.tmp") == 4)
    command, *keeper = children(h.process.pid)
    reader = children(command)
    reader += children(reader[0])
    h.process.send_signal(signal.SIGTERM)
    assert h.process.wait(10) == -signal.SIGTERM
    time.sleep(0.5)
    assert os.listdir(tmp_path) == ["o.tmp"] and alive(*keeper)
    for pid in reader:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(*keeper))
    assert os.listdir(tmp_path) == ["o.tmp"]


def test_no_keeper_stays(hold):
    h = hold("sh", "-c", "cat; sleep 100")
    h.connect()
    wait_until(lambda: len(children(h.process.pid)) == 2)
    keeper = children(h.process.pid)[1]
    h.say(INPUT, b"whole")
    h.say(END)
    wait_until(lambda: not alive(keeper))
    h = hold("sleep", "0.5")
    h.connect()
    wait_until(lambda: len(children(h.process.pid)) == 2)
    keeper = children(h.process.pid)[1]
    assert h.ended()[0] == 0 and not alive(keeper)


def test_a_command_that_closes_its_input(hold):
    for _ in range(5):
        h = hold("sh", "-c", "exec <&-; sleep 0.3; exit 4")
        h.connect()
        try:
            for _ in range(10):
                h.say(INPUT, bytes(20000))
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert h.ended()[0] == 4


def test_before_the_start_not_every_signal_ends_it(hold):
    h = hold("true")
    h.connect(hello=False)
    h.process.send_signal(signal.SIGCONT)
    h.process.send_signal(signal.SIGWINCH)
    h.say(HELLO, struct.pack("<QQHHI", 0, 0, 30, 100, 0))
    assert h.ended()[0] == 0


def test_nothing_begins_without_its_input(hold, tmp_path):
    h = hold("touch", f"{tmp_path}/begun")
    h.connect(hello=False)
    h.say(ABORT, b"gone")
    assert h.ended()[0] == 125 and os.listdir(tmp_path) == []


def test_who_types_may_leave(hold):
    h = hold("sh", "-c", "echo begun; read line; echo $line; sleep 0.5; echo on", options=["--may-leave"])
    assert h.process.stdout.readline() == b"begun\n"  # nobody is waited for
    h.connect(7)  # what an earlier attempt was given
    h.say(INPUT, b"word\n")
    h.until(TAKEN)
    h.socket.close()
    assert h.ended() == (0, b"word\non\n", "")


def test_signals_and_statuses(hold):
    h = hold("sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.1; done", options=["--may-leave"])
    assert h.process.stdout.readline() == b"ready\n"
    h.process.send_signal(signal.SIGUSR1)
    assert h.ended()[0] == 9
    for number in (signal.SIGALRM, signal.SIGQUIT, signal.SIGPIPE, signal.SIGRTMIN):
        h = hold("python3", "-c", f"import signal, sys; signal.signal({int(number)}, lambda *_: sys.exit(8)); print(flush=True); signal.pause()",
                 options=["--may-leave"])
        h.process.stdout.readline()
        h.process.send_signal(number)
        assert h.ended()[0] == 8, number
    assert hold("sh", "-c", "kill -9 $$", options=["--may-leave"]).ended()[0] == -9
    assert hold("no-such", options=["--may-leave"]).ended()[0] == 127
    assert hold("printenv", "PRIMUS_STDIO", options=["--may-leave"]).ended()[0] == 1
    assert hold("sh", "-c", "cat; exit 4", options=["--rank", "1"]).ended()[0] == 4  # another rank has /dev/null


def test_a_terminal(hold):
    h = hold("sh", "-c", "stty size; read x; echo got $x; seq 50000; exit 6", options=["--pty"])
    h.connect()
    assert h.until(OUTPUT) == b"30 100\r\n"
    h.say(SHOWN, struct.pack("<Q", 8))
    h.say(INPUT, b"word\r")
    seen = b""
    while b"\n50000\r\n" not in seen:
        kind, body = h.read()
        if kind == OUTPUT:
            seen += body
            h.say(SHOWN, struct.pack("<Q", 8 + len(seen)))
    assert b"got word" in seen and seen.count(b"\r\n") >= 50000
    h.until(EXIT)
    h.socket.close()
    assert h.ended()[0] == 6


def test_a_terminal_that_nobody_reads(hold):
    """Its output is bounded, and there is no way on but to be read."""
    h = hold("sh", "-c", "cat /dev/zero", options=["--pty"])
    h.connect()
    total, end = 0, time.monotonic() + 3
    h.socket.settimeout(1)
    with pytest.raises(TimeoutError):
        while time.monotonic() < end:
            total += len(h.read()[1])
    assert total == 256 << 10
