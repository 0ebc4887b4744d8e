# SPDX-License-Identifier: Apache-2.0
"""Upgrades with training running: masterd first, agents first, and back. The other version is made by tests/package/next.py; its
build is named by $PRIMUS_NEXT, else made beside this one."""
import json
import os
import re
import shutil
import time

import pytest
from data_jobs import all_lines, config, make_data
from ledger import Ledger
from sandbox import AGENTD, MASTERD
from upgrading import installed, main_pids, next_build, replace_files, version, without_leaks

TICKING = "while :; do echo tick $EPOCHREALTIME; [ -e $LEDGER.go ] && exit 0; sleep 0.1; done"
# Not to its end before it is let go.
SLOWLY = ('n=0; while read -r line; do echo "$line" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; n=$((n + 1)); '
          '[ $((n % 20)) != 0 ] || sleep 0.08; while [ $((n % 2500)) = 0 -a ! -e $LEDGER.go ]; do sleep 0.1; done; done; say eof')


# A trainer that has libprimus mapped all the time.
LIBRARY = """
import os, time
import primus
feed = primus.Feed()
with open("{LEDGER}.{PRIMUS_INDEX}.{PRIMUS_ATTEMPT}".format_map(os.environ), "ab", buffering=0) as out:
    for n, record in enumerate(feed.records(), 1):
        out.write(bytes(record) + b"\\n")
        feed.ack()
        if n % 20 == 0:
            time.sleep(0.1)
        while n % 2500 == 0 and not os.path.exists("{LEDGER}.go".format_map(os.environ)):
            time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def trees(build, tmp_path_factory):
    """Directories with what either version installs: this, next."""
    directory = tmp_path_factory.mktemp("trees")
    os.chmod(directory, 0o755)
    for parent in directory.parents[:2]:
        os.chmod(parent, 0o755)
    following = os.environ.get("PRIMUS_NEXT") or next_build(os.path.join(build, "next"))
    installed(build, str(directory / "this"))
    installed(following, str(directory / "next"))
    return directory


@pytest.fixture
def pair(new_cluster, trees, shared_dir):
    cluster = new_cluster(2, binds=[f"{shared_dir}:/shared", f"{trees}:/trees"], conf=["masterd.conf:Master.LostSec=20", "masterd.conf:Master.QuarantineScore=0"])
    cluster.wait_nodes()
    without_leaks(cluster)
    return cluster


def upgrade(cluster, node, unit, tree="next"):
    replace_files(cluster, node, f"/trees/{tree}")
    cluster.exec(node, "systemctl", "restart", unit)


def works(cluster, ledger, node):
    """Starts, output, a way in, stacks, a trace, growth, a stop: on that host."""
    job = cluster.submit(ledger.config(TICKING, name="new", job={"nodes": [node]}))
    cluster.wait_state(job, "RUNNING")
    cluster.wait_for(lambda: "tick" in cluster.primusctl("logs", str(job)), 15, "its output")
    assert cluster.primusctl("exec", str(job), "worker/0", "--", "echo", "inside").strip() == "inside"
    assert "worker/0" in cluster.primusctl("stacks", str(job))
    assert cluster.run("n1", "primusctl", "trace", str(job), "--runqueue=1s", user="ml").returncode in (0, 1)
    cluster.primusctl("scale", str(job), "worker=2")
    cluster.wait_for(lambda: len(main_pids(cluster, job)) == 2, 15, "one more executor")
    assert {where for where, _, _ in main_pids(cluster, job).values()} == {node}
    cluster.kill(job)


class Followers:
    """People who look on while the daemons are replaced: each goes on, or says what happened."""

    def __init__(self, cluster, job, tmp_path):
        self.cluster, self.files, self.running = cluster, {}, {}
        for name, argv in {"wait": ["wait", str(job)], "logs": ["logs", "-f", str(job)], "exec": ["exec", str(job), "worker/0", "--", "sleep", "1000"],
                           "run": ["run", "--", "sh", "-c", "sleep 12; echo the end"]}.items():
            self.files[name] = open(tmp_path / name, "w+")
            self.running[name] = cluster.process("n1", "primusctl", *argv, user="ml", stdout=self.files[name])
        self.processes = {name: one.__enter__() for name, one in self.running.items()}
        time.sleep(1)

    def said(self, name):
        self.files[name].seek(0)
        return self.files[name].read()

    def over(self, name, timeout=30):
        return self.processes[name].wait(timeout)

    def done(self):
        for one in self.running.values():
            one.__exit__(None, None, None)


def test_master_first_and_back(pair, shared_dir, tmp_path):
    ticks, data = Ledger(shared_dir), Ledger(shared_dir)
    # So many files that whoever begins anew gets some, however far ahead the other one has taken them.
    wanted = make_data(data, 16, 1000)
    train = pair.submit(ticks.config(TICKING, num=2, name="train", scheduleStrategy={"maxReplicasPerNode": 1}))
    reads = pair.submit(config(data, SLOWLY, num=2, name="reads", input={"ack": "read", "pipeSize": "4K"}, scheduleStrategy={"maxReplicasPerNode": 1}))
    pair.wait_for(lambda: len(all_lines(data)) > 500, 30, "data that flows")
    mapped = Ledger(shared_dir)
    records = make_data(mapped, 1, 6000)
    script = mapped.path.with_name(mapped.path.name + ".py")
    script.write_text(LIBRARY)
    script.chmod(0o644)
    library = pair.submit(config(mapped, f"python3 {mapped.inside}.py", name="library", memoryMb=64, job={"nodes": ["n1"]},
                                 input={"mode": "ring", "ack": "explicit", "slots": 2, "slotSize": "64K"}))
    point = pair.primusctl_json("savepoint", "create", str(reads))["savepoint"]
    held = pair.primusctl_json("submit", "--begin", "+2h", "-", input=json.dumps(ticks.config("true", name="held")))["job"]
    array = pair.primusctl_json("submit", "--array", "0-3%1", "-", input=json.dumps(ticks.config("sleep 1000", name="elements", vcores=0.01)))["job"]
    token = pair.primusctl("token", "create", user="root")
    pair.wait_for(lambda: len(main_pids(pair, train)) == 2 and len(main_pids(pair, reads)) == 2, 20, "both jobs")
    pair.wait_for(lambda: main_pids(pair, library) and all_lines(mapped), 20, "the trainer with libprimus")
    before = {job: main_pids(pair, job) for job in (train, reads, library)}
    pair.primusctl("node", "cordon", "n2", "--reason", "look at the fan", user="root")
    followers = Followers(pair, train, tmp_path)
    try:
        # masterd alone: the store migrates, the agents are one version behind.
        upgrade(pair, "n1", MASTERD)
        pair.wait_for(lambda: set(pair.node_states().values()) <= {"READY", "CORDONED"}, 30, "both hosts")
        assert version(pair, "n1") == version(pair, "n2") == pair.exec("n2", "/trees/this/usr/lib/primus/primus-agentd", "--version").split()[1]
        assert pair.shown("n2")["link"] == "1.0"
        assert {job: main_pids(pair, job) for job in (train, reads, library)} == before
        assert not pair.events(train, "executor-lost") and not pair.events(reads, "executor-lost")
        assert [row["name"] for row in pair.primusctl_json("savepoint", "list")] == [point]
        assert pair.status(held)["state"].upper() not in ("FAILED", "KILLED", "SUCCEEDED") and not main_pids(pair, held)
        assert pair.run("n1", "primusctl", "status", f"{array}[0]", user="ml").returncode == 0
        assert "look at the fan" in pair.primusctl("nodes", user="root")
        assert "look" not in token
        assert followers.over("exec") == 255 and "what ran in the session has ended, the executor runs on" in followers.said("exec")
        pair.primusctl("node", "uncordon", "n2", user="root")
        works(pair, Ledger(shared_dir), "n2")
        pair.primusctl("node", "drain", "n2", user="root")
        pair.wait_for(lambda: pair.node_states()["n2"] == "DRAINED", 40, "n2 drains")
        pair.primusctl("node", "uncordon", "n2", user="root")
        pair.wait_for(lambda: len(main_pids(pair, reads)) == 2, 30, "its executors are back")
        after = {job: main_pids(pair, job) for job in (train, reads, library)}
        assert after[library] == before[library]
        # Then the agents, whose executors another version has started.
        for node in pair.nodes:
            upgrade(pair, node, AGENTD)
        pair.wait_for(lambda: {version(pair, node) for node in pair.nodes} == {"0.1.0+next"} or None, 20, "the agents' version")
        pair.wait_nodes()
        assert pair.shown("n2")["link"] == "1.1"
        assert {job: main_pids(pair, job) for job in (train, reads, library)} == after
        works(pair, Ledger(shared_dir), "n2")
        assert followers.over("run") == 0 and "the end" in followers.said("run")
        # All is read, once, by those who began under the version before.
        for ledger in (data, mapped):
            ledger.path.with_name(ledger.path.name + ".go").touch()
        assert pair.wait_job(reads, timeout=120) == 0
        assert sorted(all_lines(data)) == sorted(wanted)
        assert pair.wait_job(library, timeout=120) == 0
        assert sorted(all_lines(mapped)) == sorted(records)
        back(pair, train)
        (ticks.path.parent / f"{ticks.path.name}.go").touch()
        assert followers.over("wait") == 0 and "SUCCEEDED" in followers.said("wait")
        assert followers.over("logs") == 0 and "tick" in followers.said("logs")
    finally:
        followers.done()


def back(cluster, train):
    """masterd as it was: it refuses the newer store, and says how to go back; then the newer agents work with it."""
    running = main_pids(cluster, train)
    replace_files(cluster, "n1", "/trees/this")
    done = cluster.run("n1", "systemctl", "restart", MASTERD)
    assert done.returncode != 0
    shown = dict(line.split("=", 1) for line in cluster.exec("n1", "systemctl", "show", MASTERD, "-p", "ActiveState,ExecMainStatus,StatusText,NRestarts").splitlines())
    assert shown["ActiveState"] == "failed" and shown["ExecMainStatus"] == "78" and shown["NRestarts"] == "0", shown
    copy = re.search(r"\S+/primus\.db\.v\d+\.bak", shown["StatusText"])
    assert copy and "was written by a newer Primus" in shown["StatusText"], shown
    begin = time.monotonic()
    done = cluster.run("n1", "primusctl", "nodes", user="ml")
    assert done.returncode == 4 and "masterd has failed to start (systemctl status primus-masterd): /var/lib/primus/primus.db was written by" in done.stderr
    assert time.monotonic() - begin < 5
    assert cluster.exec("n1", "stat", "-c", "%a %U", copy[0]).strip() == "600 primus"
    cluster.exec("n1", "sh", "-c", shown["StatusText"].split("as root: ")[1])
    # All is as it was when the copy was made, hosts too.
    cluster.wait_for(lambda: cluster.node_states() == {"n1": "READY", "n2": "CORDONED"}, 30, "both hosts")
    cluster.primusctl("node", "uncordon", "n2", user="root")
    cluster.wait_nodes()
    assert {version(cluster, node) for node in cluster.nodes} == {"0.1.0+next"}
    # The one that the copy knows runs on; the other began anew on n2 later, so it is not known, is stopped and started again.
    stays = next(one for one in running.values() if one[0] == "n1")
    assert stays in main_pids(cluster, train).values()
    cluster.exec("n1", "rm", "/var/lib/primus/primus.db.newer")


def test_agents_first(pair, shared_dir):
    ticks = Ledger(shared_dir)
    train = pair.submit(ticks.config(TICKING, num=2, name="train", scheduleStrategy={"maxReplicasPerNode": 1}))
    pair.wait_for(lambda: len(main_pids(pair, train)) == 2, 20, "the job")
    before = main_pids(pair, train)
    upgrade(pair, "n2", AGENTD)
    pair.wait_for(lambda: version(pair, "n2").endswith("+next"), 20, "the agent's version")
    pair.wait_nodes()
    assert pair.shown("n2")["link"] == "1.0"
    works(pair, Ledger(shared_dir), "n2")
    upgrade(pair, "n1", AGENTD)
    pair.exec("n1", "systemctl", "restart", MASTERD)
    pair.wait_for(lambda: version(pair, "n1").endswith("+next"), 20, "the agent's version")
    pair.wait_nodes()
    assert pair.shown("n2")["link"] == "1.1"
    assert main_pids(pair, train) == before
    (ticks.path.parent / f"{ticks.path.name}.go").touch()
    assert pair.wait_job(train) == 0


@pytest.mark.parametrize("daemon", [MASTERD, AGENTD])
def test_settings_that_only_a_person_can_mend(pair, daemon):
    """A bad value of a security key: failed at once, with file and line; the same for what else nobody but a person can mend."""
    name, section, key = {MASTERD: ("masterd", "Master", "Listen"), AGENTD: ("agentd", "Agent", "AllowRoot")}[daemon]
    path = f"/etc/primus/{name}.conf.d/bad.conf"
    pair.exec("n1", "sh", "-c", f"printf '[{section}]\\n{key}=perhaps\\n' > {path}")
    assert pair.run("n1", "systemctl", "restart", daemon).returncode != 0
    shown = dict(line.split("=", 1) for line in pair.exec("n1", "systemctl", "show", daemon, "-p", "ActiveState,ExecMainStatus,StatusText").splitlines())
    assert shown["ActiveState"] == "failed" and shown["ExecMainStatus"] == "78", shown
    assert f"{path}:2: {key}=perhaps: expected" in shown["StatusText"], shown
    pair.exec("n1", "rm", path)
    pair.exec("n1", "systemctl", "start", daemon)
    pair.wait_nodes()


def test_daemons_are_restarted_while_jobs_are_submitted(pair, shared_dir, tmp_path):
    """As an upgrade does it, again and again: files on their way, jobs that are being taken. Whoever is told of a job has it; whoever
    is not is told to look."""
    files = shared_dir / "to-send"
    files.mkdir(exist_ok=True)
    (files / "weights.bin").write_bytes(os.urandom(8 << 20))
    (files / "job.json").write_text(json.dumps({"name": "sent", "files": ["weights.bin"], "role": [{
        "roleName": "worker", "num": 1, "vcores": 0, "memoryMb": 16, "command": "test $(stat -c %s weights.bin) = 8388608"}]}))
    for one in (files, *files.iterdir()):
        one.chmod(0o755)
    jobs, told = [], []
    for n in range(4):
        (files / "weights.bin").write_bytes(os.urandom(8 << 20))
        running = [pair.process("n1", "primusctl", "submit", "--json", f"/shared/{files.name}/job.json", user="ml") for _ in range(2)]
        submits = [one.__enter__() for one in running]
        time.sleep(0.1 * n)
        pair.exec("n1", "systemctl", "restart", MASTERD, AGENTD)
        for submit in submits:
            said = submit.communicate(timeout=60)[0]
            if submit.returncode == 0:
                jobs.append(json.loads(said[said.index("{\n"):])["job"])  # behind the notes
            else:
                told.append(said)
        for one in running:
            one.__exit__(None, None, None)
    assert all("'primusctl list' shows whether it has the job" in text for text in told), told
    assert len(jobs) >= 4 and len(set(jobs)) == len(jobs), (jobs, told)
    for job in jobs:
        assert pair.wait_job(job) == 0
