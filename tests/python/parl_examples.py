#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of PARL's own tree against primus.parl: tests/python/parl_examples.py TREE. TREE: a checkout of PaddlePaddle/PARL, which is
only read. That is the programs in its documents of xparl (cut out of the text), and the training of AlphaZero for Connect 4 with PARL's
models and agents, made small; it wants python3-torch and python3-tqdm. tensorboardX, which Debian has not, and the positions that are
downloaded there, are made up."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"
BOARD = """
class SummaryWriter:
    def __init__(self, *_, **__): pass
    def add_scalar(self, *_, **__): pass
    def flush(self): pass
"""
DRIVER = """
import main
main.args.update(actors_num=2, numIters=1, numEps=8, arenaCompare=4, numMCTSSims=5)
main.main()
import parl
assert parl.remote.client.get_global_client().actor_num.value == 0
"""
SERIAL = """
class A:
    def run(self):
        ans = 0
        for i in range(100000000):
            ans += i
for _ in range(5):
    A().run()
"""


def run(tree, work, *command, **more):
    """Seconds."""
    began = time.monotonic()
    env = {**os.environ, "PYTHONPATH": f"{TOP}:{tree}:{work}", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(work), **more}
    done = subprocess.run([sys.executable, "-W", "ignore", *command], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[-1]} has failed:\n{done.stderr[-4000:]}")
    return time.monotonic() - began


def documents(tree, work):
    """Five objects that count, each in an object of its own; one after the other, beside them."""
    (work / "serial.py").write_text(SERIAL)
    serial = run(tree, work, "serial.py")
    for name in ("example1", "example2"):
        for n, text in enumerate(re.findall(r"```python\n(.*?)```", (tree / f"docs/zh_CN/xparl/{name}.md").read_text(encoding="utf-8"), re.S)):
            if "parl.connect" not in text or "sum([" in text:  # the latter counts again, in a list of 4 GiB
                continue
            (work / f"{name}-{n}.py").write_text(text)
            took = run(tree, work, "-m", "primus.parl", "--slots", "5", f"{name}-{n}.py", XPARL_igonre_core="true")
            print(f"{name}, program {n}: {took:.1f} s; one after the other: {serial:.1f} s", flush=True)


def positions(path):
    """A thousand of Connect 4, with a score for each column."""
    r = random.Random(1)
    with path.open("w", encoding="ascii") as file:
        for _ in range(1000):
            board = [0] * 42
            for ply in range(r.randrange(12)):
                column = r.randrange(7)
                free = [row for row in range(6) if not board[row * 7 + column]]
                if free:
                    board[free[-1] * 7 + column] = 1 + ply % 2
            file.write(json.dumps({"board": board, "move score": [r.randrange(-3, 4) for _ in range(7)]}) + "\n")


def alphazero(tree, work):
    shutil.copytree(tree / "benchmark/torch/AlphaZero", work, dirs_exist_ok=True)
    (work / "tensorboardX.py").write_text(BOARD)
    (work / "driver.py").write_text(DRIVER)
    positions(work / "refmoves1k_kaggle")
    took = run(tree, work, "-m", "primus.parl", "--slots", "2", "driver.py", PARL_BACKEND="torch")
    assert (work / "saved_model/checkpoint_1.pth.tar").stat().st_size > 100000
    print(f"AlphaZero, one iteration: {took:.1f} s", flush=True)


def main(tree):
    for example in (documents, alphazero):
        with tempfile.TemporaryDirectory(prefix="parl-examples-") as work:
            example(tree, pathlib.Path(work))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
