# SPDX-License-Identifier: Apache-2.0
"""metrics: what trainers have reported, for people, as CSV, as JSON, and as event files that TensorBoard reads."""
import csv
import json
import math
import struct

import pytest
from fakemaster import Job

SPEC = json.dumps({"name": "s", "role": [{"roleName": "worker", "num": 2}]})
AT = 1_700_000_000_000_000
POINTS = [(1, 1, 0.1), (2, 3, 1 / 3), (3, 1, math.nan), (2**40, 1, 1e300)]


def series(index, local=0):
    columns = {"step": ("at", [p[0] for p in POINTS]), "at": ("at", [AT + p[0] for p in POINTS]), "reports": ("au", [p[1] for p in POINTS])}
    columns |= {name: ("ad", [p[2] + index for p in POINTS]) for name in ("last", "min", "max", "mean")}
    return {"role": ("s", "worker"), "index": ("u", index), "local": ("u", local), **columns}


@pytest.fixture
def job(master):
    for number in (1, 2):
        master.jobs[number] = Job(master, number, SPEC, {})
    master.asked = []

    def listed(job):
        return "aa{sv}", ([{"role": ("s", "worker"), "name": ("s", name), "series": ("u", 3), "reports": ("t", 18), "step": ("t", 2**40), "at": ("t", AT),
                            "last": ("d", last), "min": ("d", 0.1), "max": ("d", 2.5)} for name, last in (("loss", 0.5), ("a/b", math.nan))],)

    def read(job, name, options):
        master.asked.append((job.number, name, {key: value[1] for key, value in options.items()}))
        all_of_them = [series(0), series(1), series(1, 3)] if name == "loss" else []
        start = options["from"][1]
        return "aa{sv}u", (all_of_them[start:start + 2], len(all_of_them))  # in parts
    master.do_ListMetrics, master.do_ReadMetrics = listed, read
    return master


def test_table(job, ctl):
    lines = [line.split() for line in ctl("metrics", 1, 2).stdout.splitlines()]
    assert lines[0] == ["JOB", "ROLE", "NAME", "SERIES", "STEP", "LAST", "MIN", "MAX", "REPORTS", "SAID"]
    assert [line[:9] for line in lines[1:]] == [[n, "worker", name, "3", str(2**40), last, "0.1", "2.5", "18"] for n in "12" for name, last in (("loss", "0.5"), ("a/b", "-"))]
    rows = json.loads(ctl("metrics", "--json", 1, 2).stdout)
    assert [(r["job"], r["name"], r["last"]) for r in rows] == [(1, "loss", 0.5), (1, "a/b", None), (2, "loss", 0.5), (2, "a/b", None)]


def test_series(job, ctl):
    lines = [line.split() for line in ctl("metrics", "--name", "loss", "--role", "worker/1", "--points", 7, 1).stdout.splitlines()]
    assert lines[1:] == [["1", f"worker/{i}", "loss", str(2**40), "1e+300", str(low), "1e+300"] for i, low in (("0", "0.1"), ("1", "1.1"), ("1.3", "1.1"))]
    assert job.asked == [(1, "loss", {"from": start, "points": 7, "role": "worker", "index": 1}) for start in (0, 2)]


def test_csv(job, ctl):
    """The shortest text that is the same number; nothing for what is none."""
    rows = list(csv.reader(ctl("metrics", "--csv", 1).stdout.splitlines()))
    assert rows[0] == ["job", "role", "index", "local", "name", "step", "time", "reports", "last", "min", "max", "mean"] and len(rows) == 1 + 3 * len(POINTS)
    assert rows[1] == ["1", "worker", "0", "0", "loss", "1", "2023-11-14T22:13:20Z", "1", "0.1", "0.1", "0.1", "0.1"]
    assert [float(r[8]) for r in (rows[2], rows[4])] == [1 / 3, 1e300] and rows[3][8:] == [""] * 4


def crc32c(data):
    sum = 0xffffffff
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = sum >> 1 ^ (0x82f63b78 if sum & 1 else 0)
    sum ^= 0xffffffff
    return ((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff


def varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return n, at


def message(data):
    """{field: value} of a message of protobuf's."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        match key & 7:
            case 0:
                fields[key >> 3], at = varint(data, at)
            case 1:
                fields[key >> 3], at = struct.unpack_from("<d", data, at)[0], at + 8
            case 2:
                size, at = varint(data, at)
                fields[key >> 3], at = data[at:at + size], at + size
            case 5:
                fields[key >> 3], at = struct.unpack_from("<f", data, at)[0], at + 4
    return fields


def events(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        size, sum = struct.unpack_from("<QI", data, at)
        assert sum == crc32c(data[at:at + 8])
        body = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == crc32c(body)
        yield message(body)
        at += 16 + size


def test_event_files(job, ctl, tmp_path):
    for _ in range(2):  # what is there is replaced
        r = ctl("metrics", "--tensorboard", tmp_path / "runs", 1, 2)
        assert r.returncode == 0 and r.stdout == f"{tmp_path / 'runs'}: 6 event files\n", r.stderr
    found = sorted(str(p.relative_to(tmp_path / "runs")) for p in (tmp_path / "runs").rglob("*") if p.is_file())
    assert found == [f"{n}/worker-{w}/events.out.tfevents.1700000000.primus" for n in "12" for w in ("0", "1.3", "1")]
    first, *rest = events(tmp_path / "runs" / found[0])
    assert first[3] == b"brain.Event:2" and first[1] == (AT + 1) / 1e6
    said = [(e[1], e[2], message(message(e[5])[1])) for e in rest]
    assert [(at, step, value[1]) for at, step, value in said] == [((AT + p[0]) / 1e6, p[0], b"loss") for p in POINTS]
    assert [value[2] for _, _, value in said[:2]] == [pytest.approx(0.1), pytest.approx(1 / 3)] and math.isnan(said[2][2][2]) and said[3][2][2] == math.inf
    (tmp_path / "file").write_text("")
    r = ctl("metrics", "--tensorboard", tmp_path / "file", 1)
    assert r.returncode == 1 and "Not a directory" in r.stderr


@pytest.mark.parametrize("arguments, says", [
    (("--csv", "--json", 1), "--csv or --json, not both"), (("--csv", "--tensorboard", "x", 1), "one of them"), (("--points", 5, 1), "are for the points of --name"),
    (("--role", "w", 1), "are for the points of --name"), (("--name", "loss", "--points", 2000, 1), "at most 1024"), (("x",), "x"),
    (("--name", "loss", "--role", "w/x", 1), "not an index of role w: x"), (("--csv", "--role", "/1", 1), "not a role: /1")])
def test_wrong(job, ctl, arguments, says):
    r = ctl("metrics", *arguments)
    assert r.returncode == 2 and says in r.stderr, r.stderr
