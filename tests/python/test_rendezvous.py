# SPDX-License-Identifier: Apache-2.0
"""primus.rendezvous() and primus.wait_rendezvous(): a file that is replaced while a trainer waits."""
import os
import signal
import subprocess
import sys
import time

SCRIPT = """
import primus, signal, sys
signal.signal(signal.SIGUSR1, lambda *a: print("signal", flush=True))
r = primus.rendezvous()
print(r.epoch, r.rank, r.world_size, r.env.get("MASTER_ADDR"), flush=True)
print(primus.wait_rendezvous(r.epoch, 0.05), flush=True)
while r.epoch < 5:
    r = primus.wait_rendezvous(r.epoch, 20)
    print(r, r.env["TF_CONFIG"], flush=True)
"""


def replace(path, epoch, rank, size):
    new = path.with_name(".new")
    new.write_text(f"PRIMUS_EPOCH={epoch}\nRANK={rank}\nWORLD_SIZE={size}\nMASTER_ADDR=192.0.2.1\n"
                   f'TF_CONFIG={{"a": "b=c"}}\n')
    os.rename(new, path)


def test_wait(environment, tmp_path):
    path = tmp_path / "rendezvous"
    replace(path, 1, 0, 2)
    e = dict(environment, PRIMUS_RENDEZVOUS_FILE=str(path))
    with subprocess.Popen([sys.executable, "-c", SCRIPT], env=e, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "1 0 2 192.0.2.1\n"
        assert p.stdout.readline() == "None\n"
        time.sleep(0.2)
        p.send_signal(signal.SIGUSR1)
        assert p.stdout.readline() == "signal\n"
        for epoch in (2, 4, 5):
            replace(path, epoch, 1, epoch)
            assert p.stdout.readline() == f'<Rendezvous epoch {epoch}: rank 1 of {epoch}> {{"a": "b=c"}}\n'
        assert p.wait(20) == 0


def test_outside(environment):
    code = "import primus; print(primus.rendezvous())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "<Rendezvous epoch 0: rank 0 of 1>\n"
    code = "import primus; primus.wait_rendezvous(0)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "FileNotFoundError" in done.stderr and "PRIMUS_RENDEZVOUS_FILE" in done.stderr
