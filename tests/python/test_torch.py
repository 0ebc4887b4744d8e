# SPDX-License-Identifier: Apache-2.0
"""primus.torch.TaskDataset under DataLoader."""
import os
import subprocess
import sys

import pytest

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
