# SPDX-License-Identifier: Apache-2.0
"""primusctl get: what executors have put into $PRIMUS_ARTIFACTS comes back, from hosts that share no file system."""
import concurrent.futures
import hashlib
import json

import pytest
from sandbox import MASTERD

WRITE = r"""
set -e
cd "$PRIMUS_ARTIFACTS"
mkdir -p deep/er empty
head -c 300000 /dev/urandom > model.pt
seq 1000 > deep/er/lines.txt
: > nothing
printf 'x' > "$(printf 'two\nlines')"
chmod 4755 deep/er/lines.txt
find . -type f -exec sha256sum -z {} + > "$PRIMUS_WORK/sums"
tr '\0' '\n' < "$PRIMUS_WORK/sums" | grep model.pt
"""
HOSTILE = r"""
cd "$PRIMUS_ARTIFACTS"
echo good > good.txt
ln -s good.txt inside
ln -s /etc/shadow absolute
ln -s ../../../../etc/shadow upwards
ln -s /etc etc
mkfifo fifo
ln good.txt hard
mkdir closed; echo no > closed/secret; chmod 0 closed
truncate -s 64M sparse
"""


# A captured host: in the place of primus-executor --collect, what says and sends what it likes.
CAPTURED = r"""#!/usr/bin/python3
import os, signal, socket, struct, sys, time
if sys.argv[1] != "--collect":
    os.execv("/run/real-executor", ["primus-executor"] + sys.argv[1:])
way = open("/run/captured").read().strip()
s = socket.socket(fileno=0)
mode = s.recv(65536)[1 + 20:].split(b"\0")[0]
told = 0
def crc(data):
    sum = 0xffffffff
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = sum >> 1 ^ (0x82f63b78 if sum & 1 else 0)
    return sum ^ 0xffffffff
def say(kind, payload=b"", size=0, sum=0, why=0):
    global told
    told += kind != "E"
    s.send(b"\x01" + struct.pack("<BBHIQQ", ord(kind), why, len(payload), sum, size, 1) + payload)
def end():
    say("E", size=told)
    s.send(bytes([4]) + struct.pack("<i", 0))
if mode == b"list":
    names = {"up": b"worker-0/../../evil", "absolute": b"/tmp/evil", "dots": b"..", "nul": b"worker-0/a\0b"}
    if way == "silent": # and does not want to end
        for number in (1, 2, 15):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)
    elif way in names:
        say("f", names[way], 3)
    elif way == "link":
        say("l", b"worker-0/d\0/tmp")
        say("f", b"worker-0/d/evil", 3)
    elif way == "other":
        say("f", b"worker-1/f", 3)
    elif way == "half":
        say("f", b"worker-0/f", 3)
        s.send(bytes([4]) + struct.pack("<i", 0))
        sys.exit()
    else:
        say("f", b"worker-0/f", 3)
    end()
else:
    while s.recv(65536)[0] != 66:
        pass
    name = b"worker-0/../../evil" if way == "elsewhere" else b"worker-0/f"
    if way == "other":
        name = b"worker-1/f"
    if way == "link":
        name = b"worker-0/d/evil"
    say("f", name, 3000 if way == "larger" else 3)
    say("D", b"x" * (3000 if way in ("larger", "more") else 1 if way in ("shrunk", "unreadable") else 3))
    if way in ("shrunk", "unreadable"): # fewer bytes than were listed, and their right sum
        say("F", size=1, sum=crc(b"x"), why=1 if way == "shrunk" else 3)
        end()
    elif way != "cut":
        say("F", size=3, sum=7)
        end()
    else:
        s.send(bytes([4]) + struct.pack("<i", 0))
"""


def job(command, num=2, nodes=("n2", "n3"), role=None, **more):
    return {"name": "artifacts", "role": [{**(role or {}),
        "roleName": "worker", "num": num, "vcores": 0, "memoryMb": 0, "nodes": list(nodes), "command": command, "successPercent": 100,
        "scheduleStrategy": {"maxReplicasPerNode": (num + len(nodes) - 1) // len(nodes)}}], **more}


@pytest.fixture
def place(cluster):
    """A directory of ml's on n1 to fetch into."""
    path = cluster.exec("n1", "mktemp", "-d", user="ml").strip()
    yield path
    cluster.run("n1", "rm", "-rf", path)


def get(cluster, place, *arguments, user="ml", **options):
    return cluster.run("n1", "primusctl", "get", *map(str, arguments), user=user, cwd=place, **options)


def tree(cluster, directory):
    text = cluster.exec("n1", "find", directory, "-type", "f", "-printf", "%P\\n", user="ml")
    return sorted(text.splitlines())


def ended(cluster, command, status=0, **more):
    number = cluster.submit(job(command, **more))
    assert cluster.wait_job(number) == status
    return number


def test_exactly_the_bytes_of_a_job_that_has_ended(cluster, place):
    number = ended(cluster, WRITE)
    sums = dict(zip((0, 1), (line.split()[0] for line in sorted(cluster.primusctl("logs", str(number), "worker/0").splitlines())
                             + sorted(cluster.primusctl("logs", str(number), "worker/1").splitlines()))))
    done = get(cluster, place, number)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Job {number}: 8 files, " in done.stdout
    for i in (0, 1):
        got = cluster.exec("n1", "sha256sum", f"{place}/{number}/worker-{i}/model.pt").split()[0]
        assert got == sums[i]
        assert cluster.exec("n1", "cat", f"{place}/{number}/worker-{i}/deep/er/lines.txt") == "".join(f"{n}\n" for n in range(1, 1001))
        assert cluster.exec("n1", "stat", "-c", "%a %U", f"{place}/{number}/worker-{i}/deep/er/lines.txt").split() == ["755", "ml"]
        assert cluster.exec("n1", "cat", f"{place}/{number}/worker-{i}/two\nlines") == "x"
        cluster.exec("n1", "test", "-d", f"{place}/{number}/worker-{i}/empty")
    assert not [name for name in tree(cluster, place) if ".primus-get" in name]
    # Again: what is there and equal stays; what differs is not replaced but for --force.
    again = get(cluster, place, number)
    assert again.returncode == 0 and "8 of them there before" in again.stdout and "files," not in again.stdout
    cluster.exec("n1", "sh", "-c", f"echo mine > {place}/{number}/worker-0/model.pt", user="ml")
    refused = get(cluster, place, number)
    assert refused.returncode == 1 and "worker-0/model.pt on" in refused.stderr and "--force" in refused.stderr
    assert cluster.exec("n1", "cat", f"{place}/{number}/worker-0/model.pt") == "mine\n"
    assert get(cluster, place, number, "--force").returncode == 0
    assert cluster.exec("n1", "sha256sum", f"{place}/{number}/worker-0/model.pt").split()[0] == sums[0]


def test_a_file_a_directory_a_pattern(cluster, place):
    number = ended(cluster, WRITE)
    assert get(cluster, place, number, "worker-1/model.pt", "-o", "one").returncode == 0
    assert tree(cluster, f"{place}/one") == ["worker-1/model.pt"]
    assert get(cluster, place, number, "worker-*/deep", "-o", "two").returncode == 0
    assert tree(cluster, f"{place}/two") == [f"worker-{i}/deep/er/lines.txt" for i in (0, 1)]
    assert get(cluster, place, number, "worker/0/model.pt", "-o", "named").returncode == 0
    assert tree(cluster, f"{place}/named") == ["worker-0/model.pt"]
    missing = get(cluster, place, number, "worker-9", "-o", "three")
    assert missing.returncode == 1 and "nothing is called worker-9" in missing.stderr
    listed = json.loads(get(cluster, place, number, "--list", "--json").stdout)
    assert {(f["path"], f["size"]) for f in listed} >= {("worker-0/model.pt", 300000), ("worker-1/deep/er/lines.txt", 3893)}
    assert {f["node"] for f in listed} == {"n2", "n3"} and all(f["mtime"] > 1e15 for f in listed)
    assert get(cluster, place, number, "--list", "worker-0/model.pt").stdout.split()[-1] == "worker-0/model.pt"
    assert cluster.run("n1", "test", "-e", f"{place}/{number}").returncode == 1, "a list fetches nothing"


def test_while_it_runs_and_over_a_kill_of_masterd(cluster, place):
    number = cluster.submit(job("echo early > $PRIMUS_ARTIFACTS/early; echo there; exec sleep 600"))
    try:
        cluster.wait_state(number, "RUNNING", timeout=30)
        cluster.wait_for(lambda: cluster.primusctl("logs", str(number)).count("there") == 2, 20, "both files")
        done = get(cluster, place, number)
        assert done.returncode == 0, done.stderr
        assert tree(cluster, place) == [f"{number}/worker-{i}/early" for i in (0, 1)]
    finally:
        cluster.kill(number)
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    cluster.wait_for(lambda: get(cluster, place, number, "--list").returncode == 0, 20, "the connections for bulk")
    done = get(cluster, place, number, "-o", "after")
    assert done.returncode == 0, done.stderr
    assert tree(cluster, f"{place}/after") == [f"worker-{i}/early" for i in (0, 1)]


def test_an_attempt_finds_what_the_one_before_has_left(cluster, place):
    number = cluster.submit(job('test -e $PRIMUS_ARTIFACTS/checkpoint && exit 0; echo 1 > $PRIMUS_ARTIFACTS/checkpoint; exit 7', 1, ("n2",),
                                role={"retries": 3}))
    assert cluster.wait_job(number) == 0, cluster.events(number)


def test_links_fifos_and_what_is_closed(cluster, place):
    number = ended(cluster, HOSTILE, num=1, nodes=("n2",))
    done = get(cluster, place, number)
    assert done.returncode == 1
    for name, why in (("absolute", "points out"), ("upwards", "points out"), ("etc", "points out"), ("fifo", "FIFO"), ("closed", "cannot be read")):
        assert any(f"worker-0/{name} on n2" in line and why in line for line in done.stderr.splitlines()), (name, done.stderr)
    top = f"{place}/{number}/worker-0"
    assert tree(cluster, top) == ["good.txt", "hard", "sparse"]
    assert cluster.exec("n1", "readlink", f"{top}/inside").strip() == "good.txt"
    assert int(cluster.exec("n1", "stat", "-c", "%b", f"{top}/sparse")) < 1000
    assert int(cluster.exec("n1", "stat", "-c", "%s", f"{top}/sparse")) == 64 << 20


def test_a_link_here_is_never_followed(cluster, place):
    """Somebody else's link in the place of a directory: nothing is written through it."""
    number = ended(cluster, "mkdir $PRIMUS_ARTIFACTS/d; echo x > $PRIMUS_ARTIFACTS/d/f", num=1, nodes=("n2",))
    cluster.exec("n1", "sh", "-c", f"mkdir -p {place}/{number}/worker-0 {place}/elsewhere; ln -s {place}/elsewhere {place}/{number}/worker-0/d", user="ml")
    done = get(cluster, place, number)
    assert done.returncode == 1 and "a link is in the way" in done.stderr
    assert tree(cluster, f"{place}/elsewhere") == []


@pytest.fixture
def captured(cluster):
    """The way in which n2 is."""
    program = "/usr/lib/primus/primus-executor"

    def begin(way):
        cluster.exec("n2", "sh", "-c", f"cat > /run/false-executor; chmod 755 /run/false-executor; cp {program} /run/real-executor; "
                     f"echo {way} > /run/captured; mount --bind /run/false-executor {program}", input=CAPTURED)
    yield begin
    # What stood in its place may still be on its way out.
    cluster.wait_for(lambda: cluster.run("n2", "umount", program).returncode == 0, 30, "unmounted")


@pytest.mark.parametrize("way", ["up", "absolute", "dots", "nul", "link", "half", "elsewhere", "larger", "more", "sum", "cut", "other", "shrunk", "unreadable"])
def test_a_captured_host(cluster, place, captured, way):
    """Whatever it says: nothing is written outside of the directory, nothing gets a name that did not come whole, and it is said."""
    number = ended(cluster, "echo x > $PRIMUS_ARTIFACTS/f", num=1, nodes=("n2",))
    captured(way)
    done = get(cluster, place, number)
    assert done.returncode == 1, done.stdout
    said = {"half": "ended before everything was there", "cut": "ended before everything was there",
            "shrunk": "worker-0/f on n2: became shorter", "unreadable": "worker-0/f on n2: cannot be read"}.get(way, "is not what was asked for")
    assert "on n2: " in done.stderr and said in done.stderr, done.stderr
    assert tree(cluster, place) == []
    assert cluster.run("n1", "test", "-e", "/tmp/evil").returncode == 1


def test_a_silent_reader_is_left_and_does_not_stay(cluster, place, captured):
    """It is the job's user's process, which may do what it likes: its unit ends with the session all the same."""
    def readers():
        return cluster.exec("n2", "systemctl", "list-units", "--no-legend", "--all", "primus-get-*").strip()
    number = ended(cluster, "echo x > $PRIMUS_ARTIFACTS/f", num=1, nodes=("n2",))
    captured("silent")
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(get, cluster, place, number, "--list", timeout=100)
        cluster.wait_for(readers, 20, "the reader")
        done = waiting.result()
    assert done.returncode == 1 and "nothing came for a minute" in done.stderr, done.stderr
    cluster.wait_for(lambda: not readers(), 20, "its end")


def test_names_move_no_cursor(cluster, place):
    number = ended(cluster, r"""cd "$PRIMUS_ARTIFACTS"; touch "$(printf 'a\033[31m\nb\302\233')"; ln -s "$(printf 'c\033')" link""", num=1, nodes=("n2",))
    done = get(cluster, place, number, "--list")
    assert "worker-0/a?[31m b??" in done.stdout and "link -> c?" in done.stdout, done.stdout
    assert "\033" not in done.stdout + done.stderr


def test_another_user_is_refused(cluster, place):
    number = ended(cluster, "echo mine > $PRIMUS_ARTIFACTS/f", num=1, nodes=("n2",))
    done = get(cluster, "/tmp", number, user="eve")
    assert done.returncode != 0 and "f" not in done.stdout
    assert cluster.run("n2", "sh", "-c", "ls /var/lib/primus-agent/artifacts/*", user="eve").returncode != 0


def test_a_host_that_is_away_is_named_and_the_rest_comes(cluster, place):
    number = ended(cluster, WRITE)
    where = {i: cluster.executor(number, index=i)["node"] for i in (0, 1)}
    cluster.exec("n3", "systemctl", "stop", "primus-agentd")
    try:
        cluster.wait_for(lambda: "not connected" in get(cluster, place, number, "--list").stderr, 20, "n3 gone")
        done = get(cluster, place, number)
    finally:
        cluster.exec("n3", "systemctl", "start", "primus-agentd")
        cluster.wait_nodes()
    assert done.returncode == 1 and "n3 is not connected" in done.stderr
    here = next(i for i in where if where[i] == "n2")
    assert f"{number}/worker-{here}/model.pt" in tree(cluster, place)


def test_an_array(cluster, place):
    number = cluster.submit({**job("echo $PRIMUS_ARRAY_INDEX > $PRIMUS_ARTIFACTS/index", 1), "array": "0-2"})
    assert cluster.wait_job(number) == 0
    assert get(cluster, place, f"{number}[1]", "-o", "one").returncode == 0
    assert cluster.exec("n1", "cat", f"{place}/one/worker-0/index").strip() == "1"
    done = get(cluster, place, number)
    assert done.returncode == 0, done.stderr
    assert [cluster.exec("n1", "cat", f"{place}/{number}/{i}/worker-0/index").strip() for i in range(3)] == ["0", "1", "2"]


def test_they_are_removed_in_time(cluster, place):
    number = ended(cluster, "echo x > $PRIMUS_ARTIFACTS/f", num=1, nodes=("n2",))
    cluster.exec("n2", "sh", "-c", "printf '[Agent]\\nArtifactsKeepSec=5s\\n' > /etc/primus/agentd.conf.d/keep.conf; systemctl restart primus-agentd")
    try:
        cluster.wait_nodes()
        cluster.wait_for(lambda: "has no artifacts" in get(cluster, place, number, "--list").stderr, 30, "the removal")
        assert "ArtifactsKeepSec=" in cluster.journal("n2", "primus-agentd", lines=100)
    finally:
        cluster.exec("n2", "sh", "-c", "rm /etc/primus/agentd.conf.d/keep.conf; systemctl restart primus-agentd")
        cluster.wait_nodes()
    assert get(cluster, place, number).returncode == 1


def test_the_oldest_goes_when_it_is_too_much(cluster, place):
    large = "head -c 800000 /dev/urandom > $PRIMUS_ARTIFACTS/f"
    jobs = [ended(cluster, large, num=1, nodes=("n2",)) for _ in range(2)]
    running = cluster.submit(job(large + "; exec sleep 600", 1, ("n2",)))
    cluster.wait_state(running, "RUNNING", timeout=30)
    cluster.exec("n2", "sh", "-c", "printf '[Agent]\\nArtifactsMax=2M\\n' > /etc/primus/agentd.conf.d/max.conf; systemctl restart primus-agentd")
    try:
        cluster.wait_nodes()
        cluster.wait_for(lambda: "has no artifacts" in get(cluster, place, jobs[0], "--list").stderr, 30, "the removal")
        assert "ArtifactsMax=" in cluster.journal("n2", "primus-starter", lines=100)
        for number in (jobs[1], running):
            assert get(cluster, place, number).returncode == 0
    finally:
        cluster.kill(running)
        cluster.exec("n2", "sh", "-c", "rm /etc/primus/agentd.conf.d/max.conf; systemctl restart primus-agentd")
        cluster.wait_nodes()


def test_a_large_file_is_not_kept_in_masterd(cluster, place):
    number = ended(cluster, "head -c 134217728 /dev/zero | tr '\\0' 'x' > $PRIMUS_ARTIFACTS/large", num=1, nodes=("n2",))
    pid = cluster.main_pid("n1", MASTERD)

    def peak():
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return int(next(line.split()[1] for line in status if line.startswith("VmHWM")))
    before = peak()
    done = get(cluster, place, number, timeout=240)
    assert done.returncode == 0, done.stderr
    grown = peak() - before
    print(f"masterd grew by {grown} KiB")
    assert grown < 16 << 10
    want = hashlib.sha256()
    for _ in range(128):
        want.update(b"x" * (1 << 20))
    assert cluster.exec("n1", "sha256sum", f"{place}/{number}/worker-0/large", timeout=60).split()[0] == want.hexdigest()
