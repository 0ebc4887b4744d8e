# SPDX-License-Identifier: Apache-2.0
"""primus.torch.TaskDataset under DataLoader."""
import os
import subprocess
import sys

import pytest

LOADS_TORCH = True  # see conftest.py's --unsanitized
if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
    pytest.skip("python3-torch is not installed", allow_module_level=True)


@pytest.mark.parametrize("workers", (0, 2))
@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_every_record_once(run, text_files, mode, workers):
    o = run("""
        import sys
        import primus.torch
        from torch.utils.data import DataLoader
        def decode(record):
            return len(record), record.decode()
        seen = []
        for sizes, texts in DataLoader(primus.torch.TaskDataset(decode), batch_size=32, num_workers=int(sys.argv[1])):
            assert [len(t) for t in texts] == sizes.tolist()
            seen += texts
        print("\\n".join(seen))
        """, text_files, mode=mode, task_size=20000, arguments=[workers])
    assert sorted(o.output.splitlines()) == sorted(line for path in text_files for line in path.read_text().splitlines())


def test_state(run, text_files, tmp_path):
    source = """
        import os
        import primus.torch, torch
        from torch.utils.data import DataLoader
        data = primus.torch.TaskDataset(bytes.decode)
        if os.path.exists("state"):
            data.load_state_dict(torch.load("state"))
        out = open("seen", "a")
        for step, batch in enumerate(DataLoader(data, batch_size=7)):
            out.write("".join(s + "\\n" for s in batch))
            if step == 300:
                out.flush()
                torch.save(data.state_dict(), "state")
                if len(open("seen").readlines()) % 2:
                    data.committed(torch.load("state"))
                os._exit(3)
        """
    n = sum(len(path.read_text().splitlines()) for path in text_files)
    for _ in range(n // (301 * 7)):
        run(source, text_files, ack="checkpoint", task_size=9000, status=3)
    run(source, text_files, ack="checkpoint", task_size=9000)
    assert (tmp_path / "seen").read_text().splitlines() == [line for path in text_files for line in
                                                            path.read_text().splitlines()]


def test_workers_cannot_checkpoint(run, text_files):
    o = run("""
        import primus.torch
        from torch.utils.data import DataLoader
        try:
            next(iter(DataLoader(primus.torch.TaskDataset(), num_workers=1)))
        except Exception as e:
            print(str(e).splitlines()[-1])
        """, text_files, ack="checkpoint")
    assert "num_workers=0" in o.output


BAD = """
    import logging, sys
    import primus.torch
    from torch.utils.data import DataLoader
    logging.basicConfig(format="%(message)s")
    def decode(record):
        if b"oops" in record:
            raise ValueError(f"could not convert string to float: {record!r}")
        return record.decode()
    data = primus.torch.TaskDataset(decode, on_error=sys.argv[2])
    try:
        for batch in DataLoader(data, batch_size=32, num_workers=int(sys.argv[1])):
            print("\\n".join(batch))
    except ValueError as e:
        print("".join(__import__("traceback").format_exception(e)), file=sys.stderr)
        sys.exit(5)
    """


@pytest.fixture
def bad_files(text_files):
    """Of the second file, lines 1501 and 1502 are no samples."""
    lines = text_files[1].read_bytes().split(b"\n")
    lines[1500:1502] = [b"oops", b"oops again"]
    text_files[1].write_bytes(b"\n".join(lines))
    return text_files


@pytest.mark.parametrize("workers", (0, 2))
@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_bad_sample_is_named(run, bad_files, mode, workers):
    """The file, the line, the byte and the task, whichever process it was that met it."""
    o = run(BAD, bad_files, mode=mode, task_size=20000, arguments=[workers, "raise"], status=5)
    at = bad_files[1].read_bytes().index(b"oops")
    assert "could not convert string to float: b'oops" in o.error
    assert f"primus: the record is line 1501, byte {at} of {bad_files[1]} (task " in o.error
    assert ", source 0)" in o.error


@pytest.mark.parametrize("workers", (0, 2))
@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_bad_samples_are_left_out(run, bad_files, mode, workers):
    o = run(BAD, bad_files, mode=mode, task_size=20000, arguments=[workers, "skip"])
    wanted = [line for path in bad_files for line in path.read_text().splitlines() if "oops" not in line]
    assert sorted(o.output.splitlines()) == sorted(wanted)
    at = bad_files[1].read_bytes().index(b"oops again")
    assert "left out, 1 by now: line 1501, byte " in o.error
    assert f"left out, 2 by now: line 1502, byte {at} of {bad_files[1]} (task " in o.error
    assert not o.lines("FAIL")


@pytest.mark.parametrize("mode", ("ring", "descriptor"))
def test_bad_task_fails(run, bad_files, mode):
    o = run(BAD, bad_files, mode=mode, arguments=[0, "fail_task"])
    lines = bad_files[1].read_text().splitlines()
    assert o.output.splitlines() == [*bad_files[0].read_text().splitlines(), *lines[:1500], *bad_files[2].read_text().splitlines()]
    at = bad_files[1].read_bytes().index(b"oops")
    assert o.lines("FAIL") == [f"FAIL 2 decode of the record at byte {at}: ValueError: could not convert string to float: b'oops'"]
