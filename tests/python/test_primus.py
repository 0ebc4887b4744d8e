# SPDX-License-Identifier: Apache-2.0
"""The module primus in every mode: what comes, and what the executor is told."""
import io
import json
import struct
import subprocess
import sys
import tarfile

import pytest

MODES = ("stdin", "ring", "descriptor")


def expected(files):
    return [line for path in files for line in path.read_text().splitlines()]


@pytest.mark.parametrize("mode", MODES)
def test_lines(run, text_files, mode):
    o = run("""
        import primus
        for record in primus.records():
            assert type(record) is bytes
            print(record.decode())
        """, text_files, mode=mode, ack="lag" if mode == "stdin" else "release", task_size=20000)
    assert o.output.splitlines() == expected(text_files)
    if mode == "descriptor":
        assert len(o.lines("DONE")) == sum(-(-path.stat().st_size // 20000) for path in text_files)


@pytest.mark.parametrize("mode", MODES)
def test_blocks(run, text_files, mode):
    o = run("""
        import primus, sys
        feed = primus.open()
        size = 0
        for block in feed.blocks(10000):
            assert block.readonly and len(block) <= 10000 and feed.task > 0
            sys.stdout.buffer.write(block)
            feed.ack()
        """, text_files, mode=mode, ack="explicit", task_size=20000)
    assert o.output.splitlines() == expected(text_files) if mode == "stdin" else o.output == "".join(
        path.read_text() for path in text_files)
    if mode == "stdin":
        assert int(o.lines("STREAM")[-1].split()[1]) == len(o.output)
    else:
        assert len([line for line in o.lines("ACK") if " end " in line]) >= 3


def test_block_in_use(run, text_files):
    run("""
        import primus
        kept = None
        try:
            for block in primus.blocks(5000):
                kept = memoryview(block)[:10]
        except BufferError:
            raise SystemExit(7)
        """, text_files, status=7)


@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_ack_within_a_block(run, tmp_path, mode):
    path = tmp_path / "lines"
    path.write_text("a\nbb\nccc\ndddd\n")
    o = run("""
        import primus
        for i, record in enumerate(primus.records()):
            if i in (0, 2):
                primus.ack()
        primus.ack()
        """, [path], mode=mode, ack="explicit")
    assert o.lines("ACK") == ["ACK 1 2 0 1", "ACK 1 9 0 3", "ACK 1 end 0 4"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("commits", (True, False))
def test_exactly_once(run, text_files, tmp_path, mode, commits):
    """A trainer that ends after some records, before or after it commits, and goes on from its checkpoint."""
    source = f"""
        import json, os, primus, sys
        have = json.load(open("state")) if os.path.exists("state") else {{"n": 0, "primus": ""}}
        feed = primus.open(bytes.fromhex(have["primus"]) or None)
        records = feed.records()
        seen = []
        for record in records:
            seen.append(record.decode())
            if len(seen) == 1777:
                state = feed.checkpoint()
                json.dump({{"n": have["n"] + len(seen), "primus": state.hex()}}, open("new", "w"))
                open("seen", "a").write("".join(s + "\\n" for s in seen))
                os.rename("new", "state")
                if {commits}:
                    feed.commit(state)
                next(records, None)
                os._exit(3)
        open("seen", "a").write("".join(s + "\\n" for s in seen))
        """
    rounds = len(expected(text_files)) // 1777
    for _ in range(rounds):
        o = run(source, text_files, mode=mode, ack="checkpoint", task_size=5000, status=3)
        assert bool(o.lines("COMMIT")) == commits
    run(source, text_files, mode=mode, ack="checkpoint", task_size=5000)
    assert (tmp_path / "seen").read_text().splitlines() == expected(text_files)


def test_ranges(run, text_files):
    o = run("""
        import os, primus, sys
        for r in primus.ranges():
            sys.stdout.write(os.pread(r.fd, r.length, r.offset).decode())
            primus.ack()
        """, text_files, mode="descriptor", ack="explicit", task_size=20000)
    assert o.output == "".join(path.read_text() for path in text_files)
    assert all(" end " in line for line in o.lines("ACK"))


def test_ranges_elsewhere(run, text_files):
    o = run("""
        import errno, primus
        try:
            next(primus.ranges())
        except primus.Error as e:
            print(e.errno == errno.EOPNOTSUPP, e.strerror)
        """, text_files)
    assert o.output.startswith("True ") and "descriptor" in o.output


@pytest.mark.parametrize("mode", MODES)
def test_csv(run, tmp_path, mode):
    path = tmp_path / "table.csv"
    path.write_text("name,n\r\nAda,1\r\n\"Lovelace, A\",2\r\n\r\nshort\r\n")
    o = run("""
        import json, primus
        print(json.dumps(list(primus.records())))
        """, [path], mode=mode, ack="lag" if mode == "stdin" else "release", format="csv")
    if mode == "stdin":  # this fake executor leaves the header out; the first row is taken for it
        assert json.loads(o.output) == [{"Ada": "Lovelace, A", "1": "2"}, {"Ada": "short"}]
    else:
        assert json.loads(o.output) == [{"name": "Ada", "n": "1"}, {"name": "Lovelace, A", "n": "2"}, {"name": "short"}]


@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_tar(run, tmp_path, mode):
    path = tmp_path / "shard.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(300):
            for suffix, data in (("txt", b"text %d" % i), ("bin", bytes([i % 256]) * (i * 7)), ("cls", b"")):
                info = tarfile.TarInfo(f"d/{i:04}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    o = run("""
        import primus
        for i, record in enumerate(primus.records()):
            assert record == {f"d/{i:04}.txt": b"text %d" % i, f"d/{i:04}.bin": bytes([i % 256]) * (i * 7),
                              f"d/{i:04}.cls": b""}, record
        print(i + 1)
        """, [path], mode=mode, format="tar")
    assert o.output == "300\n"


@pytest.mark.parametrize("ack", ("lag", "explicit"))
@pytest.mark.parametrize("end, want, broken", ((None, 7, 0), (-1, 7, 0), (-512, 6, 1), (-700, 6, 1)))
def test_tar_without_its_end(run, tmp_path, ack, end, want, broken):
    """As primus-executor writes them to standard input: record behind record, and no blocks that end an archive. What is cut
    within a member is no record."""
    paths = []
    for k, count in enumerate((3, 4)):
        paths.append(tmp_path / f"{k}.tar")
        with tarfile.open(paths[-1], "w") as tar:
            for i in range(count):
                for suffix in ("txt", "bin"):
                    info = tarfile.TarInfo(f"{k}-{i}.{suffix}")
                    info.size = 700
                    tar.addfile(info, io.BytesIO(f"{k}-{i}.{suffix}".encode() * 100))
            size = tar.offset
        cut = size if k == 0 or end is None else size + 1024 if end == -1 else size + end
        paths[-1].write_bytes(paths[-1].read_bytes()[:cut])
    o = run("""
        import primus
        feed, names = primus.open(), []
        for record in feed.records():
            names.append(",".join(record))
            assert all(data == name.encode() * 100 or data == (name.encode() * 100)[:700] for name, data in record.items())
            feed.ack()
        print(len(names), feed.broken)
        """, paths, mode="stdin", ack=ack, format="tar")
    assert o.output == f"{want} {broken}\n", o.error


@pytest.mark.parametrize("mode", MODES)
def test_tar_of_many_members(run, tmp_path, mode):
    """More of them than the library is asked for at once, names longer than there is room for, in both ways to write long ones, and
    nothing at all."""
    path = tmp_path / "shard.tar"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar, tarfile.open(tmp_path / "pax", "w", format=tarfile.PAX_FORMAT) as pax:
        for i, count in enumerate((1, 700, 3, 2500, 0, 1)):
            for k in range(count):
                info = tarfile.TarInfo(f"{'directory/' * (i + 8)}{i}.{k}")
                info.size = k % 5
                for t in (tar, pax):
                    t.addfile(info, io.BytesIO(b"%d" % (k % 10) * (k % 5)))
    o = run("""
        import primus
        for record in primus.records():
            print(len(record), {name.split(".")[0] for name in record}, all(int(k) == n and v == b"%d" % (n % 10) * (n % 5)
                  for n, (k, v) in enumerate((name.split(".")[1], v) for name, v in record.items())))
        """, [path, tmp_path / "pax"], mode=mode, format="tar", ack="lag" if mode == "stdin" else "release")
    counts = [(i, count) for i, count in enumerate((1, 700, 3, 2500, 0, 1)) if count]
    assert o.output.splitlines() == 2 * [f"{count} {{'{'directory/' * (i + 8)}{i}'}} True" for i, count in counts]


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecords(payloads):
    out = b""
    for payload in payloads:
        length = struct.pack("<Q", len(payload))
        out += length + struct.pack("<I", masked_crc32c(length)) + payload + struct.pack("<I", masked_crc32c(payload))
    return out


@pytest.mark.parametrize("mode", MODES)
def test_tfrecord(run, tmp_path, mode):
    path = tmp_path / "data.tfrecord"
    path.write_bytes(tfrecords(b"record %d" % i * (i % 5) for i in range(500)))
    o = run("""
        import primus
        for i, record in enumerate(primus.records()):
            assert record == b"record %d" % i * (i % 5)
        print(i + 1)
        """, [path], mode=mode, ack="lag" if mode == "stdin" else "release", format="tfrecord", task_size=1000)
    assert o.output == "500\n"


def test_broken(run, tmp_path):
    """A broken task is logged and left; those around it come."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(tfrecords([b"x"] * 10))
    data = bytearray(tfrecords([b"x"] * 10))
    data[17 * 4 + 12] ^= 1
    bad.write_bytes(data)
    o = run("""
        import logging, primus
        logging.basicConfig()
        feed = primus.open()
        print(len(list(feed.records())), feed.broken > 0)
        """, [good, bad, good], mode="descriptor", format="tfrecord")
    assert o.output == "24 True\n"
    assert "WARNING:primus:task " in o.error
    assert o.lines("FAIL")


def test_fixed_and_raw(run, tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(200)))
    for format, sizes in (("fixed:20", [20] * 10), ("raw:30", [30] * 6 + [20])):
        o = run("import primus; print([len(r) for r in primus.records()])", [path], format=format)
        assert o.output == f"{sizes}\n"


def test_messages(run, tmp_path):
    path = tmp_path / "messages"
    out = b""
    for i in range(100):
        key, value = (b"key" if i % 2 else None), b"value" * (i % 3)
        out += struct.pack("=QqII", 1000 + i, 1500 + i, 0xFFFFFFFF if key is None else len(key), len(value))
        out += (key or b"") + value
        out += b"\0" * (-len(out) % 8)
    path.write_bytes(out)
    run("""
        import primus
        for i, m in enumerate(primus.records()):
            assert m.key == (b"key" if i % 2 else None) and m.value == b"value" * (i % 3)
            assert m.offset == 1000 + i and abs(m.timestamp - (1.5 + i / 1000)) < 1e-9
        assert i == 99
        """, [path], format="message")


def test_fail(run, text_files):
    o = run("""
        import primus
        n = 0
        for record in primus.records():
            n += 1
            if n == 100:
                primus.fail("not what I want")
        print(n)
        """, text_files)
    assert o.output == f"{100 + 6000}\n" and o.lines("FAIL") == ["FAIL 1 not what I want"]


def test_where(run, text_files, tmp_path):
    """Of a text file the line, of all others the byte."""
    source = """
        import primus
        feed = primus.open()
        assert feed.where() is None
        for n, record in enumerate(feed.records(), 1):
            if n in (1, 2345, 3000, 3001):
                p = feed.where()
                print(p.path, p.line, p.position)
        """
    said = [line.split() for line in run(source, text_files, mode="descriptor", task_size=9000).output.splitlines()]
    texts = [path.read_bytes().split(b"\n") for path in text_files]
    before = [sum(len(line) + 1 for line in texts[0][:n]) for n in (0, 2344, 2999)]
    assert said == [*([str(text_files[0]), str(n), str(at)] for n, at in zip((1, 2345, 3000), before)), [str(text_files[1]), "1", "0"]]
    path = tmp_path / "numbers"
    path.write_bytes(bytes(range(200)) * 100)
    said = run(source, [path], format="fixed:5").output.splitlines()
    assert said == [f"{path} None {5 * (n - 1)}" for n in (1, 2345, 3000, 3001)]


def test_by_hand(environment, text_files, tmp_path):
    source = "import primus\nfor record in primus.records(): print(record.decode())\nprimus.ack()"
    with open(text_files[0]) as data:
        p = subprocess.run([sys.executable, "-c", source], stdin=data, capture_output=True, text=True, env=environment,
                           timeout=60)
    assert p.returncode == 0, p.stderr
    assert p.stdout.splitlines() == expected(text_files[:1])


def test_no_data(environment):
    p = subprocess.run([sys.executable, "-c", "import primus; next(primus.records())"], capture_output=True, text=True,
                       env={**environment, "PRIMUS_JOB": "1"}, stdin=subprocess.DEVNULL, timeout=60)
    assert p.returncode == 1 and "this executor has no data" in p.stderr


def test_interrupt(run, tmp_path):
    """Waiting for data does not keep signals away."""
    run("""
        import os, primus, signal, threading
        signal.signal(signal.SIGUSR1, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        r, w = os.pipe()
        os.dup2(r, 0)
        for name in ("PRIMUS_FEED", "PRIMUS_JOB"):
            del os.environ[name]
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        try:
            next(primus.records())
        except KeyboardInterrupt:
            os._exit(5)
        """, [], status=5)


def test_forked_worker(run, text_files):
    """A process that was forked after the first record has a connection of its own."""
    o = run("""
        import os, primus
        records = primus.records()
        next(records)
        pid = os.fork()
        if pid == 0:
            try:
                next(records)  # the parent's: what is split already comes, a block does not
                list(records)
            except primus.Error as e:
                assert "fork" in e.strerror
                os._exit(0 if primus.records() else 1)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        print(len(list(records)))
        """, text_files[:1], task_size=200000)
    assert o.output == "2999\n"
