#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs PARL's own tests of remote objects against primus.parl: tests/python/parl_suite.py TREE [NAME...], as root.

TREE: a checkout of PaddlePaddle/PARL, which is only read. Its parl/remote/*.py are replaced, in a copy, by those of primus/parl/site, and
nothing else is. Each file runs by itself in namespaces of its own (one of them has a fixed port, one kills by name), four at a time;
that takes about ten minutes, nearly all of it the tests' own pauses. Debian has what they need: python3-six, -psutil, -requests,
-termcolor, -scipy, -flask, -tqdm, -cloudpickle, -numpy.

NAME: only files with that in their path. Left out are the tests of PARL's own insides (its transport, heartbeats and bookkeeping)."""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"
INSIDES = ("communication_test", "mocking_env_test", "utils_test", "worker_manager_test", "grpc_heartbeat")
LANES, SECONDS = 4, 600


def copied(tree, work):
    shutil.copytree(tree / "parl", work / "parl")
    shutil.copytree(TOP / "primus/parl/site/parl/remote", work / "parl/remote", dirs_exist_ok=True)
    for name in ("bin", "home", "tmp"):
        (work / name).mkdir()
    xparl = work / "bin/xparl"
    xparl.write_text(f"#!/bin/sh\nexec {sys.executable} -m primus.parl.xparl \"$@\"\n")
    xparl.chmod(0o755)


def run(work, path):
    """(how many tests, what went wrong or None)"""
    own = pathlib.Path(tempfile.mkdtemp(dir=work / "tmp"))
    shutil.copytree(work / "parl", own / "parl")  # several write beside themselves
    path = own / path
    env = {"PATH": f"{work / 'bin'}:{os.environ['PATH']}", "HOME": str(own), "TMPDIR": str(own), "PYTHONPATH": f"{own}:{TOP}", "XPARL_igonre_core": "true",
           "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    inside = f"ip link set lo up; cd {own if path.name.endswith('abs_test.py') else path.parent}; exec {sys.executable} -W ignore {path}"
    try:
        done = subprocess.run(["unshare", "-m", "-p", "-n", "--fork", "--mount-proc", "--kill-child", "sh", "-c", inside], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as e:
        return 0, f"not ended within {SECONDS} s\n{(e.stderr or b'').decode(errors='replace')[-3000:]}"
    ran = re.search(r"^Ran (\d+) tests? in", done.stderr, re.M)
    shutil.rmtree(own, ignore_errors=True)
    return int(ran[1]) if ran else 0, None if ran and done.returncode == 0 else done.stderr[-4000:]


def main(tree, names):
    with tempfile.TemporaryDirectory(prefix="parl-suite-") as work:
        work = pathlib.Path(work)
        copied(tree, work)
        files = sorted(p.relative_to(work) for p in (work / "parl/remote").rglob("*.py") if p.stem.endswith(("_test", "_test_alone", "_test_2")) or re.search(r"_test(_|$)", p.stem))
        files = [f for f in files if not any(inside in str(f) for inside in INSIDES) and (not names or any(name in str(f) for name in names))]
        passed = failed = 0
        with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
            for path, (ran, wrong) in zip(files, lanes.map(lambda path: run(work, path), files)):
                print(f"{'FAILED' if wrong else 'ok':7}{ran:3} {path}", flush=True)
                if wrong:
                    failed += 1
                    print(wrong, flush=True)
                else:
                    passed += ran
        print(f"{len(files)} files, {failed} of them failed; {passed} tests of the others passed")
        return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
