#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""mpirun on the hosts that Primus hands out, without ssh: one executor a host, and this in each of them.

    launch.py PROGRAM [ARGUMENT...]

Rank 0 runs mpirun over $PRIMUS_HOSTS. Where mpirun would start its daemon on another host by ssh, it calls this program again (--agent), and that hands the
command to the executor there, which has been connected to rank 0 (MASTER_ADDR, MASTER_PORT) from the beginning. So everything of MPI
runs in the executors, as their user and within their limits. $MPI_SLOTS ranks (1) run on each host.

Like MPI's own connections, these are not encrypted, and whoever can reach the port is believed: for networks that one trusts."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PATIENCE = 60


def send(file, message):
    file.write(json.dumps(message).encode() + b"\n")
    file.flush()


def receive(file):
    line = file.readline()
    return json.loads(line) if line else None


def run(command):
    return subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, check=False).returncode


def agent(path, arguments):
    """As mpirun calls its ssh: HOST COMMAND..."""
    host, command = arguments[0], " ".join(arguments[1:])
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        file = s.makefile("rwb")
        send(file, {"host": host, "command": command})
        answer = receive(file)
    return 1 if answer is None else answer["status"]


def follow():
    """Every rank but 0: runs what it is told, until mpirun is through."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    end = time.monotonic() + PATIENCE
    while True:
        try:
            s = socket.create_connection(address, timeout=PATIENCE)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
    s.settimeout(None)
    file = s.makefile("rwb")
    send(file, {"host": os.environ["PRIMUS_NODE"]})
    while message := receive(file):
        if "status" in message:
            return message["status"]
        print(f"{os.environ['PRIMUS_NODE']} joins", flush=True)
        send(file, {"status": run(message["command"])})
    print("rank 0 has gone", file=sys.stderr)
    return 1


class Launcher:
    """Rank 0."""

    def __init__(self, hosts):
        self.hosts, self.followers = hosts, {}

    def gather(self):
        listener = socket.create_server(("", int(os.environ["MASTER_PORT"])), family=socket.AF_INET6, dualstack_ipv6=True)
        listener.settimeout(PATIENCE)
        while len(self.followers) < len(self.hosts) - 1:
            file = listener.accept()[0].makefile("rwb")
            host = receive(file)["host"]
            if host in self.hosts and host not in self.followers:
                self.followers[host] = file

    def serve(self, agents):
        while True:
            threading.Thread(target=self.pass_on, args=(agents.accept()[0].makefile("rwb"),), daemon=True).start()

    def pass_on(self, caller):
        order = receive(caller)
        if order["host"] == os.environ["PRIMUS_NODE"]:
            send(caller, {"status": run(order["command"])})
            return
        follower = self.followers[order["host"]]
        send(follower, {"command": order["command"]})
        send(caller, receive(follower) or {"status": 1})

    def launch(self, program):
        slots = int(os.environ.get("MPI_SLOTS", "1"))
        self.gather()
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as agents:
            path, hostfile = f"{directory}/agents", f"{directory}/hosts"
            agents.bind(path)
            agents.listen(len(self.hosts))
            threading.Thread(target=self.serve, args=(agents,), daemon=True).start()
            with open(hostfile, "w", encoding="utf-8") as file:
                file.writelines(f"{host} slots={slots}\n" for host in self.hosts)
            status = subprocess.run([os.environ.get("MPIRUN", "mpirun"), "--hostfile", hostfile, "-np", str(slots * len(self.hosts)), "--bind-to", "none",
                                     "--leave-session-attached", "--mca", "plm_rsh_no_tree_spawn", "1",
                                     "--mca", "plm_rsh_agent", f"{sys.executable} {os.path.abspath(__file__)} --agent {path}", *program],
                                    stdin=subprocess.DEVNULL, check=False).returncode
        for follower in self.followers.values():
            send(follower, {"status": status})
        return status


def main():
    if sys.argv[1] == "--agent":
        return agent(sys.argv[2], sys.argv[3:])
    if os.environ["RANK"] != "0":
        return follow()
    return Launcher(os.environ["PRIMUS_HOSTS"].split(",")).launch(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
