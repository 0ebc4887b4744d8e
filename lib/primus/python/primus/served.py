# SPDX-License-Identifier: Apache-2.0
"""A page that a job serves to its owner alone; what `primusctl notebook` and `primusctl tensorboard` run.

    python3 -m primus.served notebook                   Jupyter, with a token
    python3 -m primus.served tensorboard [--logdir DIR] TensorBoard, below a path that nobody can guess
    python3 -m primus.served where                      in the same executor: {"port": 40021, "path": "/?token=..."}

The page listens on the loopback of its host, where others can connect: token and path are the key to it. They are made anew at each start,
are in no argument, log or configuration, and stand, for the job's user alone, in the job's work directory on that host."""
import argparse
import importlib.util
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 300  # seconds from the start until the page answers


def _place():
    return os.path.join(os.environ.get("PRIMUS_WORK", "."), f".primus-served-{os.environ.get('PRIMUS_RANK', '0')}")


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def _answers(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def _tell(port, path):
    """From now on where() knows."""
    fd = os.open(_place() + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"port": port, "path": path}, file)
    os.replace(_place() + "~", _place())


def _forget():
    try:
        os.unlink(_place())
    except FileNotFoundError:
        pass


def where(patience=PATIENCE):
    """The line that says where the page is, when it is there; None: it has not come up."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            with open(_place(), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            time.sleep(0.1)
    return None


def _wait_for(port, alive):
    """Whether the page answers before it ends, or PATIENCE does."""
    end = time.monotonic() + PATIENCE
    while alive() and time.monotonic() < end:
        if _answers(port):
            return True
        time.sleep(0.1)
    return False


def notebook():
    """JupyterLab, or else Jupyter Notebook, until it ends; its status."""
    found = next((m for m in ("jupyterlab", "notebook") if importlib.util.find_spec(m)), None)
    if not found:
        sys.exit(f"{sys.executable} on this host has neither jupyterlab nor notebook: pip install jupyterlab, or apt install jupyter-notebook")
    port, token = _free_port(), secrets.token_urlsafe(24)
    child = subprocess.Popen([sys.executable, "-m", found, "--no-browser", "--ip=127.0.0.1", f"--port={port}", "--port-retries=0"],
                             env={**os.environ, "JUPYTER_TOKEN": token})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: child.send_signal(signal.SIGTERM))
    if not _wait_for(port, lambda: child.poll() is None):
        child.terminate()
        sys.exit(f"{found} has not come up: it ended with {child.wait()}")
    _tell(port, f"/?token={token}")
    status = child.wait()
    _forget()
    return status if status >= 0 else 128 - status


def tensorboard(logdir):
    """TensorBoard in this process: it has no password, and a path in an argument is one that everybody on the host can read."""
    try:
        from tensorboard import program
    except ImportError:
        sys.exit(f"{sys.executable} on this host has no tensorboard: pip install tensorboard")
    port, prefix = _free_port(), "/" + secrets.token_urlsafe(24)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # requests, which name the path
    page = program.TensorBoard()
    page.configure(argv=["tensorboard", "--logdir", logdir, "--host", "127.0.0.1", "--port", str(port), "--path_prefix", prefix])
    page.launch()
    if not _wait_for(port, lambda: True):
        sys.exit("tensorboard has not come up")
    _tell(port, prefix + "/")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            signal.pause()
    finally:
        _forget()


def main():
    parser = argparse.ArgumentParser(prog="python3 -m primus.served", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("notebook", "tensorboard", "where"))
    parser.add_argument("--logdir", default=".", help="the folder with event files (%(default)s)")
    args = parser.parse_args()
    if args.what == "where":
        line = where()
        if line is None:
            sys.exit("no page is served in this executor")
        print(line)
        return 0
    _forget()
    return notebook() if args.what == "notebook" else tensorboard(args.logdir)


if __name__ == "__main__":
    sys.exit(main())
