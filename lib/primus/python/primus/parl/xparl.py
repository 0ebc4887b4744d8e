# SPDX-License-Identifier: Apache-2.0
"""The command xparl: start, connect, stop and status of a cluster of one user. What it has started is known by files in the user's own
directory, and stop ends that and nothing else."""
import argparse
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys

from primus.actors._register import began

from . import _secret, monitor
from ._link import Link, dial
from .master import Master
from .worker import Worker

READY = b"ready\n"
STOP_SECONDS = 10


def _directory():
    path = _secret.state() / "running"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


@contextlib.contextmanager
def _registered(**about):
    path = _directory() / str(os.getpid())
    path.write_text(json.dumps({"pid": os.getpid(), "began": began(os.getpid()), "host": socket.gethostname(), **about}), encoding="ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _running():
    """[about each process of this user's that xparl has started on this host]"""
    found = []
    for path in sorted(_directory().iterdir()):
        try:
            about = json.loads(path.read_text(encoding="ascii"))
            if about["host"] != socket.gethostname():  # the home directory is on several hosts
                continue
        except (ValueError, KeyError, FileNotFoundError):
            continue
        if began(about["pid"]) == about["began"]:
            found.append(about)
        else:
            path.unlink(missing_ok=True)
    return found


# ---- processes

def _start(*arguments):
    """A process of xparl, which stays in this one's group. SystemExit: what it has said."""
    process = subprocess.Popen([sys.executable, "-m", "primus.parl.xparl", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if process.stdout.read(len(READY)) != READY:
        process.wait()
        sys.exit(1)
    process.stdout.close()


def _log():
    """What goes wrong later is said there."""
    return _secret.state() / "xparl.log"


def _is_ready():
    os.write(1, READY)
    with _log().open("ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(service, **about):
    signal.signal(signal.SIGTERM, lambda number, frame: service.exit())
    with _registered(**about):
        service.run()


def _run_master(o):
    master = Master(o.port, o.monitor_port, "gpu" if o.gpu_cluster else "cpu")
    master.on_listening = _is_ready
    try:
        _run(master, kind="master", address=f"localhost:{o.port}", monitor=master.monitor_url)
    except OSError as e:
        sys.exit(f"xparl: port {o.port} or {o.monitor_port}: {e.strerror}")


def _run_worker(o):
    try:
        worker = Worker(o.address, o.cpu_num, o.log_port, o.gpu)
    except OSError as e:
        sys.exit(f"xparl: {e}")
    _is_ready()
    _run(worker, kind="worker", address=o.address)


# ---- what people type

def _free_port(first, last):
    for port in range(first, last + 1):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                s.bind(("", port))
                return port
    sys.exit(f"xparl: none of the ports from {first} to {last} is free")


def _range(text):
    first, dash, last = text.partition("-")
    if not dash or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of ports: 8000-9000")
    return int(first), int(last)


def _worker_arguments(o, address):
    cpus = [] if o.cpu_num is None else ["--cpu_num", str(o.cpu_num)]
    return ["_worker", "--address", address, "--log_port", str(_free_port(*o.log_server_port_range)), "--gpu", o.gpu, *cpus]


def _start_cluster(o):
    port = int(o.port)
    o.cpu_num, o.gpu = (0, o.gpu) if o.gpu_cluster else (o.cpu_num, "")
    if not _running():
        _log().unlink(missing_ok=True)
    monitor_port = o.monitor_port or _free_port(min(port + 100, 65535), 65535)
    _start("_master", "--port", str(port), "--monitor_port", str(monitor_port), *(["--gpu_cluster"] if o.gpu_cluster else []))
    address = f"localhost:{port}"
    print(f"The cluster is started at {address}.")
    if o.gpu or (not o.gpu_cluster and o.cpu_num != 0):
        _start(*_worker_arguments(o, address))
        print(f"A worker with {f'GPUs {o.gpu}' if o.gpu else f'{o.cpu_num or len(os.sched_getaffinity(0))} CPUs'} of this host is connected to it.")
    host = socket.gethostname()
    print(f"""
Programs connect to it:   parl.connect("{host}:{port}")
More hosts join it:       xparl connect --address {host}:{port}{' --gpu 0,1' if o.gpu_cluster else ''}
                          (with this user's secret: {_secret.state() / 'secret'}, in a home directory that they share, or copied there)
How it is:                xparl status
                          http://127.0.0.1:{monitor_port}{monitor.path(_secret.secret())}/
What goes wrong:          {_log()}
Its end:                  xparl stop""")


def _connect(o):
    _start(*_worker_arguments(o, o.address))
    print(f"This host is connected to the cluster at {o.address}.")


def _stop(_):
    ending = []
    for about in _running():
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(about["pid"])
            if began(about["pid"]) == about["began"]:  # it is that one still
                signal.pidfd_send_signal(pidfd, signal.SIGTERM)
                ending.append(pidfd)
    for pidfd in ending:
        if not select.select([pidfd], [], [], STOP_SECONDS)[0]:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.close(pidfd)
    print(f"{len(ending)} processes of xparl have ended." if ending else "No active cluster is found.")


def _status(_):
    running = _running()
    if not running:
        print("No active cluster is found.")
    for address in dict.fromkeys(about["address"] for about in running):
        try:
            link = Link(dial(address), lambda said: None).start()
            _, info = monitor.ask(link, 10)
            link.close()
        except (OSError, TimeoutError) as e:
            print(f"# Cluster {address} does not answer: {e}")
            continue
        print(f"# Cluster {address} {info}")
        url = next((about["monitor"] for about in running if about["address"] == address and about["kind"] == "master"), None)
        if url:
            print(f"  {url}/")


def _parser():
    p = argparse.ArgumentParser(prog="xparl", description="A cluster of PARL's remote objects, of one user.")
    commands = p.add_subparsers(metavar="COMMAND", required=True)

    def command(name, run, text):
        one = commands.add_parser(name, description=text, **({"help": text} if text else {}))
        one.set_defaults(run=run)
        return one

    def of_worker(one):
        one.add_argument("--cpu_num", type=int, metavar="N", help="slots of this host (as many as it has CPUs)")
        one.add_argument("--gpu", default="", metavar="0,1", help="in a cluster of GPUs: those of this host that it has")
        one.add_argument("--log_server_port_range", type=_range, default=(8000, 9000), metavar="FIRST-LAST", help="where its logs may be had (8000-9000)")

    start = command("start", _start_cluster, "start a master here, and a worker")
    start.add_argument("--port", required=True, metavar="PORT", help="where it listens")
    start.add_argument("--gpu_cluster", action="store_true", help="a slot is a GPU, and not a CPU")
    start.add_argument("--monitor_port", type=int, metavar="PORT", help="where its page is, on this host")
    start.add_argument("--debug", action="store_true", help="for PARL's scripts; changes nothing: what goes wrong is always said")
    of_worker(start)
    connect = command("connect", _connect, "connect this host to a cluster")
    connect.add_argument("--address", required=True, metavar="HOST:PORT", help="of the master")
    of_worker(connect)
    command("stop", _stop, "end what this command has started on this host")
    command("status", _status, "how the clusters of this host are")
    master = command("_master", _run_master, None)
    master.add_argument("--port", type=int)
    master.add_argument("--monitor_port", type=int)
    master.add_argument("--gpu_cluster", action="store_true")
    worker = command("_worker", _run_worker, None)
    worker.add_argument("--address")
    worker.add_argument("--cpu_num", type=int)
    worker.add_argument("--log_port", type=int)
    worker.add_argument("--gpu")
    return p


def main(arguments=None):
    o = _parser().parse_args(arguments)
    try:
        o.run(o)
    except (AssertionError, ConnectionError, PermissionError) as e:
        sys.exit(f"xparl: {e}")


if __name__ == "__main__":
    main()
