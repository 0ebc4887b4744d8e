# SPDX-License-Identifier: Apache-2.0
"""A cluster of container hosts as tests see it."""
import atexit
import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANDBOX = os.path.join(SOURCE, "tools/sandbox")
sys.path.insert(0, os.path.join(SOURCE, "tools"))

from sandboxlib import enter, state  # noqa: E402

MASTERD = "primus-masterd.service"
AGENTD = "primus-agentd.service"
STARTER = "primus-starter.service"
COUNTER = itertools.count(1)


def cluster_name():
    """Another one each time; tools/check finds those of its run by the prefix, and takes down what a killed test left."""
    return f"{os.environ.get('PRIMUS_TEST_PREFIX', f't{os.getpid()}')}-{next(COUNTER)}"


def shared_directory(factory, name):
    """A directory that hosts are to share, where their users may write."""
    path = factory.mktemp(name)
    # They pass through what pytest made for root alone.
    os.chmod(path, 0o1777)
    for parent in (path.parent, path.parent.parent):
        os.chmod(parent, 0o755)
    return path


class Failed(AssertionError):
    """A command in a host ended otherwise than the test expects."""


def sandbox(*arguments, check=True, timeout=120, **options):
    done = subprocess.run([SANDBOX, *arguments], capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode != 0:
        raise Failed(f"tools/sandbox {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def _end(running):
    """Kills what runs in a host, which its parent outside then reaps: a host with a zombie that nobody reaps never goes down."""
    end = time.monotonic() + 1
    while running.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            with open(f"/proc/{running.pid}/task/{running.pid}/children") as f:
                for child in f.read().split():
                    os.kill(int(child), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.01)
    running.kill()


@functools.cache
def _entering_program():
    """Compiled once a run, which takes no longer than ten commands."""
    directory = tempfile.mkdtemp(prefix="primus-enter.")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    program = os.path.join(directory, "enter")
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", program,
                    os.path.join(SOURCE, "tests/cluster/enter.c")], check=True)
    return program


class Cluster:
    """Host names are n1 … nN; masterd runs on n1."""

    def __init__(self, name, nodes=3, binds=(), conf=(), primus=True, build=None, root=None):
        self.name = name
        self.nodes = [f"n{i}" for i in range(1, nodes + 1)]
        self.primus = primus
        self._up = ["up", "--nodes", str(nodes), "--no-rebuild"]
        for bind in binds:
            self._up += ["--bind", bind]
        for setting in conf:
            self._up += ["--conf", setting]
        if not primus:
            self._up.append("--no-primus")
        if build:
            self._up += ["--build", build]
        if root:
            self._up += ["--root", root]

    def sandbox(self, command, *arguments, **options):
        return sandbox(command, "--name", self.name, *arguments, **options)

    def up(self):
        self.sandbox(*self._up)
        return self

    def down(self):
        self.sandbox("down")

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        self.down()

    # Commands in hosts

    def argv(self, node, *argv, user="root", cwd=None):
        """What to hand to subprocess for something that goes on beside the test."""
        options = ["--user", user] + (["--cwd", cwd] if cwd else [])
        return [SANDBOX, "exec", "--name", self.name, *options, node, "--", *argv]

    def _entering(self, node, argv, user="root", cwd=None):
        """As enter.enter(), for the thousands of commands that run to their end: (arguments, environment) of a program without an interpreter's
        start. It forwards no signal, and who kills it has to kill its child, which its parent outside then reaps."""
        leader = state.Cluster(self.name).node(node).require_leader()
        root = f"/proc/{leader['pid']}/root"
        account = enter.Account(root, user)
        home = account.home if os.path.isdir(root + account.home) else "/"
        procs = enter.make_cgroups(leader["payload"])
        return [_entering_program(), str(leader["pid"]), cwd or home, str(account.uid), ",".join(map(str, account.groups)),
                str(len(procs)), *procs, *argv], account.environment()

    def run(self, node, *argv, user="root", input=None, timeout=60, cwd=None):
        """Runs to the end, whatever the end is."""
        try:
            # On bare hosts the sandbox itself is tested.
            argv, environment = self._entering(node, argv, user, cwd) if self.primus else (self.argv(node, *argv, user=user, cwd=cwd), None)
        except (state.SandboxError, OSError) as e:
            return subprocess.CompletedProcess(argv, 2, "", f"sandbox: {e}\n")
        with subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as running:
            try:
                out, err = running.communicate(input, timeout)
            except BaseException:
                _end(running)
                raise
        status = running.returncode
        return subprocess.CompletedProcess(argv, 128 - status if status < 0 else status, out, err)

    def exec(self, node, *argv, **options):
        """Its standard output; a failure unless it ends with 0."""
        done = self.run(node, *argv, **options)
        if done.returncode != 0:
            raise Failed(f"{node}: {' '.join(argv)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def granted(self, action, user):
        """polkit grants the user that action of Primus's, while the block runs."""
        path = "/etc/polkit-1/rules.d/10-granted.rules"
        rule = f'polkit.addRule(function(action, subject) {{ if (action.id == "org.primus.{action}" && subject.user == "{user}") return polkit.Result.YES; }});'
        self.exec("n1", "sh", "-c", f"cat > {path}; systemctl restart polkit", input=rule)
        try:
            yield
        finally:
            self.exec("n1", "sh", "-c", f"rm {path}; systemctl restart polkit")

    @contextlib.contextmanager
    def process(self, node, *argv, user="root", **options):
        """A command that goes on while the block runs, and is ended with it."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, **options}
        with subprocess.Popen(self.argv(node, *argv, user=user), **options) as running:
            try:
                yield running
            finally:
                running.terminate()
                try:
                    running.wait(5)
                except subprocess.TimeoutExpired:
                    running.kill()

    # Primus

    def primusctl(self, *arguments, user="ml", node="n1", **options):
        return self.exec(node, "primusctl", *arguments, user=user, **options)

    def primusctl_json(self, *arguments, **options):
        return json.loads(self.primusctl(*arguments, "--json", **options))

    def node_states(self):
        listed = self.primusctl_json("nodes", user="root")
        rows = listed["nodes"] if isinstance(listed, dict) else listed
        rows = [{key.lower(): value for key, value in row.items()} for row in rows]
        return {row.get("name") or row["node"]: row["state"].upper() for row in rows}

    def shown(self, node):
        """What `node show` tells root."""
        return self.primusctl_json("node", "show", node, user="root")

    def wait_nodes(self, expected="READY", nodes=None, timeout=20):
        wanted = {node: expected for node in nodes or self.nodes}
        self.wait_for(lambda: wanted.items() <= self.node_states().items(), timeout, f"nodes {wanted}")

    def submit(self, config, user="ml", node="n1"):
        """Submits a configuration (a dict, or its text) and returns the job's number."""
        text = config if isinstance(config, str) else json.dumps(config)
        submit = "umask 077; f=$(mktemp /tmp/job.XXXXXX); cat > $f; exec primusctl submit --json $f"
        return json.loads(self.exec(node, "sh", "-c", submit, user=user, input=text))["job"]

    def wait_job(self, job, user="ml", timeout=60):
        """`primusctl wait`: 0 succeeded, 1 failed, 3 killed. Asked again where masterd went away in the middle of the question."""
        for _ in range(5):
            status = self.run("n1", "primusctl", "wait", str(job), user=user, timeout=timeout).returncode
            if status != 4:
                break
        return status

    def kill(self, *jobs):
        """Each is killed, and its end waited for."""
        for job in jobs:
            self.primusctl("kill", str(job))
            self.wait_job(job)

    def status(self, job, user="root"):
        return self.primusctl_json("status", str(job), user=user)

    def executor(self, job, role="worker", index=0):
        return next(e for e in self.status(job)["executors"] if (e["role"], e["index"]) == (role, index))

    def wait_state(self, job, *states, timeout=15):
        self.wait_for(lambda: self.status(job)["state"] in states, timeout, f"job {job} {' or '.join(states)}")

    def events(self, job, kind=None):
        lines = self.primusctl("events", str(job), "--json", user="root").splitlines()
        return [e for e in map(json.loads, lines) if kind in (None, e["kind"])]

    # Faults

    def main_pid(self, node, unit):
        """On the build machine; None while it does not run. Takes no process, so it can be timed."""
        record = state.Cluster(self.name).node(node).leader()
        for payload in record["payload"]:
            try:
                with open(os.path.join(payload, "system.slice", unit, "cgroup.procs")) as f:
                    pids = f.read().split()
            except OSError:  # no such unit, or it ends this moment
                continue
            if pids:
                return int(pids[0])
        return None

    def kill9_now(self, node, unit):
        """SIGKILL within microseconds. False when it did not run."""
        pid = self.main_pid(node, unit)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def kill9(self, node, unit):
        """SIGKILL to the main process of a unit; systemd does with it what the unit says."""
        self.exec(node, "systemctl", "kill", "--signal=KILL", "--kill-whom=main", unit)

    def cut(self, node):
        self.sandbox("cut", node)

    def heal(self, node):
        self.sandbox("heal", node)

    def crash(self, node):
        self.sandbox("crash", node)

    def boot(self, node):
        self.sandbox("boot", node)

    def heal_all(self):
        """Brings every host back that a test left cut off or without power."""
        for node in json.loads(self.sandbox("status", "--json").stdout)[0]["nodes"]:
            if not node["up"]:
                self.boot(node["name"])
            elif not node["cable"]:
                self.heal(node["name"])

    # Looking

    def journal(self, node, unit=None, lines=40):
        match = ["-u", unit] if unit else []
        # What was written by now: journald reads it a moment after whoever wrote it may have ended.
        return self.run(node, "sh", "-c", 'journalctl --sync; exec journalctl "$@"', "sh", "--no-pager", "-q", "-o", "short-monotonic", "-n",
                        str(lines), *match).stdout

    def leader(self, node):
        """PID, on the build machine, of the host's PID 1; None when the host is down."""
        record = state.Cluster(self.name).node(node).leader()
        return record["pid"] if record else None

    def state_path(self, node, *parts):
        return state.Cluster(self.name).node(node).path(*parts)

    @staticmethod
    def wait_for(predicate, timeout=10, what="the condition"):
        """Until predicate() is true; returns what it returned. A Failed inside counts as not yet. It is asked at once, then ever less often,
        and never for more than half of the time: who asks takes the processors from those it waits for."""
        begin = time.monotonic()
        while True:
            asked = time.monotonic()
            try:
                value, why = predicate(), None
            except Failed as e:
                value, why = None, e
            if value:
                return value
            now = time.monotonic()
            if now - begin >= timeout:
                raise Failed(f"{what} did not come true within {timeout} s") from why
            time.sleep(max(0.02, now - asked, min((now - begin) / 8, 0.25)))
