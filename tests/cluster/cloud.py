# SPDX-License-Identifier: Apache-2.0
"""A provider of hosts on n1 whose machines are hosts of the cluster that are out of it: `up` puts a request into a directory, and a
thread here boots one for it: joins it by the token that it was given, under the name that it was given. Files in that directory make
the provider fail and lie."""
import json
import threading

from sandbox import AGENTD

# Of a provider with one shape.
SETTINGS = """[Provider]
Max={max}
IdleSec={idle}
StartSec={start}
Master=n1
[Shape small]
Cpus={cpus}
Memory=256M
Labels=made
CostPerHour=0.25
"""


def settings(**more):
    return SETTINGS.format(**{"max": 2, "idle": "4s", "start": "60s", "cpus": 2, **more})


def job(n=1, command="sleep 3", cpus=0.5, **more):
    """One that no other host would do for."""
    role = {"roleName": "worker", "num": n, "vcores": cpus, "memoryMb": 32, "constraints": ["made"], "command": command, **more}
    return {"name": "wanting", "waitForHosts": True, "role": [role]}


DIRECTORY = "/etc/primus/providers/cloud"
STATE = "/var/lib/primus-provider/cloud"

# What the three executables are: by what name they are run says which.
PROGRAM = r"""#!/usr/bin/python3
import json, os, sys
verb, state = os.environ["PRIMUS_VERB"], os.environ["PRIMUS_DIRECTORY"]
given = json.load(sys.stdin)
os.makedirs(f"{state}/hosts", exist_ok=True)
with open(f"{state}/log", "a") as f:
    f.write(f"{verb} {os.environ['PRIMUS_TOKEN']}\n")
def knob(name):
    try:
        with open(f"{state}/{name}") as f:
            return f.read()
    except FileNotFoundError:
        return ""
if verb == "list":
    lie = knob("list-says")
    if lie:
        sys.stdout.write(lie)
        sys.exit(int(knob("list-status") or 0))
    for token in sorted(os.listdir(f"{state}/hosts")):
        if not token.endswith(".new"):
            host = json.load(open(f"{state}/hosts/{token}"))
            print(json.dumps({"id": host["id"], "token": token, "state": host["state"]}))
    sys.exit(int(knob("list-status") or 0))
path = f"{state}/hosts/{given['token']}"
if verb == "up":
    status = int(knob("up-status") or 0) or int(knob(f"up-status-{given['shape']}") or 0)
    if status and knob("up-makes-one") == "":
        sys.exit(status)
    if not os.path.exists(path):
        with open(path + ".new", "w") as f:
            json.dump({"id": "i-" + given["token"][-8:], "state": "pending", **given}, f)
        os.rename(path + ".new", path)
    if status:
        sys.exit(status)
    print(json.dumps({"id": "i-" + given["token"][-8:]}))
else:
    if knob("down-status"):
        sys.exit(int(knob("down-status")))
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
"""


class Cloud:
    """Of a cluster whose hosts are this one's from now on."""

    def __init__(self, cluster, hosts, settings):
        self.cluster, self.hosts = cluster, list(hosts)
        self.of = {}  # which host an instance is
        self.booting = True
        self.refused = {}  # why an instance could not join
        self._stop = threading.Event()
        self.trouble = None
        for host in self.hosts:
            cluster.run("n1", "primusctl", "node", "remove", host)
            self._leave(host)
        self.configure(settings)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def configure(self, settings):
        self.cluster.exec("n1", "sh", "-c", f"mkdir -p {DIRECTORY}; cat > {DIRECTORY}/list; chmod 755 {DIRECTORY}/list; "
                          f"for verb in up down; do cp {DIRECTORY}/list {DIRECTORY}/$verb; done", input=PROGRAM)
        self.cluster.exec("n1", "sh", "-c", f"cat > {DIRECTORY}/provider.conf", input=settings)
        self.reload()

    def reload(self):
        """The settings are read again, and `list` is asked for."""
        self.cluster.exec("n1", "systemctl", "reload", "primus-masterd")

    def knob(self, name, text):
        """A file of the provider's; "": none."""
        self.cluster.exec("n1", "sh", "-c", f"mkdir -p {STATE}; cat > {STATE}/{name}; [ -s {STATE}/{name} ] || rm {STATE}/{name}", input=text)

    def log(self):
        return self.cluster.run("n1", "cat", f"{STATE}/log").stdout.splitlines()

    def made(self):
        """What it has: {token: instance}."""
        said = self.cluster.run("n1", "sh", "-c", f"cd {STATE}/hosts 2>/dev/null && for f in *; do case $f in *.new|'*') ;; *) cat $f; echo;; esac; done")
        return {one["token"]: one for one in map(json.loads, filter(None, said.stdout.splitlines()))}

    def take_away(self, token):
        """As a cloud does with spot instances: it is gone, and was not asked about."""
        self.cluster.exec("n1", "rm", f"{STATE}/hosts/{token}")

    def instances(self):
        return json.loads(self.cluster.exec("n1", "primusctl", "provider", "hosts", "--json"))

    def states(self):
        return {one["node"]: one["state"] for one in self.instances()}

    def empty(self):
        """Nothing is left of what was made."""
        self.cluster.wait_for(lambda: self.states() == {} and self.made() == {}, 60, "the hosts are given back")
        nodes = json.loads(self.cluster.exec("n1", "primusctl", "nodes", "--json"))
        assert [node["name"] for node in nodes] == ["n1"]

    def ups(self):
        """Tokens for which `up` was called, one for each call."""
        return [line.split()[1] for line in self.log() if line.startswith("up ")]

    def reset(self, settings):
        self.cluster.exec("n1", "sh", "-c", f"cd {STATE} 2>/dev/null && rm -f log list-* up-* down-*; true")
        self.booting = True
        self.cluster.run("n1", "primusctl", "provider", "release", "cloud")
        self.configure(settings)

    def _leave(self, host):
        self.cluster.run(host, "sh", "-c", f"systemctl stop {AGENTD} 'primus-[0-9]*'; rm -f /etc/primus/node/* /etc/primus/agentd.conf.d/10-join.conf")

    def _boot(self, host, instance):
        master, name, token = instance["join"].split()
        done = self.cluster.run(host, "primusctl", "join", "--no-start", f"--name={name}", master, input=token + "\n")
        if done.returncode == 0:
            self.cluster.exec(host, "systemctl", "restart", AGENTD)
        return done.stderr if done.returncode else None

    def _look(self):
        made = self.made()
        for token in [t for t in self.of if t not in made]:
            self._leave(self.of.pop(token))
        for token, instance in made.items():
            free = [h for h in self.hosts if h not in self.of.values()]
            if token in self.of or not free or not self.booting:
                continue
            why = self._boot(free[0], instance)
            if why:  # its master may be away, or does not want it any more
                self.refused[token] = why
                continue
            self.of[token] = free[0]
            self.cluster.exec("n1", "sh", "-c", f"cd {STATE}/hosts && [ -e {token} ] && sed -i 's/\"pending\"/\"running\"/' {token}; true")

    def _serve(self):
        while not self._stop.wait(0.2):
            try:
                self._look()
            except Exception as e:  # said when all is over
                self.trouble = self.trouble or e

    def close(self):
        self._stop.set()
        self._thread.join()
        assert self.trouble is None, self.trouble
