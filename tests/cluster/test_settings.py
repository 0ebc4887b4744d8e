# SPDX-License-Identifier: Apache-2.0
"""Settings as they are installed: drop-ins, what is wrong with them and who says so, what refuses the start, and what holds."""
import json

import pytest
from sandbox import AGENTD, MASTERD, Cluster, cluster_name

ETC = "/etc/primus"
DAEMONS = {MASTERD: ("/usr/lib/primus/primus-masterd", "masterd.conf"), AGENTD: ("/usr/lib/primus/primus-agentd", "agentd.conf")}
REFUSED = 78


@pytest.fixture(scope="module")
def _host(build):
    with Cluster(cluster_name(), 1, build=build) as cluster:
        cluster.wait_nodes()
        yield cluster


@pytest.fixture
def host(_host):
    yield _host
    _host.exec("n1", "sh", "-c", f"rm -rf {ETC}/*.conf.d/t* {ETC}/job-defaults.d/* /run/primus/*.conf.d /usr/lib/primus/*.conf.d; chmod 755 {ETC}/*.conf.d; "
                                 f"systemctl reset-failed {MASTERD} {AGENTD}; systemctl restart {MASTERD} {AGENTD}")
    _host.wait_nodes()


def put(host, path, text):
    host.exec("n1", "sh", "-c", 'mkdir -p "$(dirname "$0")"; cat > "$0"', path, input=text)


def ask(host, unit, option="--check-config", user="root"):
    return host.run("n1", DAEMONS[unit][0], option, user=user)


def shown(host, unit, key):
    """What holds, and where it was read: (value, place), or (default, None)."""
    lines = ask(host, unit, "--show-config").stdout.splitlines()
    for before, line in zip(["", *lines], lines):
        if line.startswith(f"{key}="):
            return line.partition("=")[2], before.removeprefix("# ")
        if line.startswith(f"#{key}="):
            return line.partition("=")[2], None
    raise AssertionError(lines)


def test_as_installed(host):
    for unit in DAEMONS:
        done = ask(host, unit, user="eve")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), unit
    assert shown(host, MASTERD, "HeartbeatSec") == ("1s", None)
    assert shown(host, AGENTD, "Master") == ("n1", f"{ETC}/agentd.conf.d/50-sandbox.conf:2")


def test_every_default_is_what_it_is_shown_to_be(host):
    """The commented lines of the installed files, taken at their word, are understood."""
    for unit, (_, name) in DAEMONS.items():
        host.exec("n1", "sh", "-c", f"mkdir -p {ETC}/{name}.d; sed -n 's/^#\\([A-Z][A-Za-z]*=..*\\)/\\1/p; /^\\[/p' {ETC}/{name} > {ETC}/{name}.d/t.conf")
        done = ask(host, unit)
        assert (done.returncode, done.stderr) == (0, ""), unit


@pytest.mark.parametrize("directory", ["/usr/lib/primus", "/run/primus", ETC])
def test_a_drop_in_overrides_one_key(host, directory):
    put(host, f"{directory}/masterd.conf.d/t.conf", "[Master]\nLostSec=77s\n")
    put(host, f"{directory}/agentd.conf.d/t.conf", "[Agent]\nLabels=rack=r9\n")
    assert shown(host, MASTERD, "LostSec") == ("77s", f"{directory}/masterd.conf.d/t.conf:2")
    assert shown(host, MASTERD, "SuspectSec") == ("3s", None)
    host.exec("n1", "systemctl", "restart", AGENTD)
    host.wait_nodes()
    host.wait_for(lambda: "rack=r9" in host.primusctl("node", "show", "n1", user="root").replace(": ", "="), 10, "the label")


def test_what_is_wrong_is_named_and_left_out(host):
    put(host, f"{ETC}/masterd.conf.d/t.conf", "[Master]\nLostSec=soon\nNonsense=1\nJobMax=5\nAgingSec=1h\n[Maste]\nLostSec=9s\nwhat is this\n")
    expected = ["t.conf:2: LostSec=soon: expected a duration", "t.conf:3: unknown key Nonsense in section [Master]",
                "t.conf:4: unknown key JobMax in section [Master]; did you mean JobsMax in [Master]?",
                "t.conf:5: key AgingSec does not belong in section [Master] but in [Scheduler]",
                "t.conf:6: unknown section [Maste]; did you mean [Master]?", "t.conf:8: expected [Section], Key=Value or a comment"]
    done = ask(host, MASTERD)
    assert done.returncode == 1
    for text in expected:
        assert sum(text in line for line in done.stderr.splitlines()) == 1, (text, done.stderr)
    assert shown(host, MASTERD, "LostSec") == ("60s", None)
    host.exec("n1", "systemctl", "restart", MASTERD)
    journal = host.journal("n1", MASTERD)
    assert all(text in journal for text in expected)
    host.wait_nodes()


SECURITY = {MASTERD: ["[Master]\nListen=everywhere\n", "[Master]\nCertificateSec=long\n", "[Master]\nStateDirectory=here\n", "[Pool a]\nUsers=\xff\n",
                      "[Pool a]\nLimit=cpus\n", "[Pool a]\nMaxTime=never\n", "[Pool a]\nUser=ml\n", "[Pool a]\nUsers ml\n", "[Pol a]\nGroups=ml\n",
                      "[Pool a]\nVisible=friends\n", "[Pool a]\nVisibleMax=\n", "[Pool a]\nGroup=" + "g" * 200 + "\n", "[Master]\nVisible=nobody\n",
                      "[Scheduler]\nListen=127.0.0.1\n", "[Pool " + "a" * 60 + "]\nUsers=ml\n"],
            AGENTD: ["[Agent]\nAllowRoot=maybe\n", "[Agent]\nMetricsListen=somewhere\n", "[Agent]\nMetricsJobs=never\n", "[Agent]\nAddress=me\n",
                     "[Agnt]\nMetricListen=no\n"]}


@pytest.mark.parametrize("unit", SECURITY)
def test_what_is_there_for_security_refuses(host, unit):
    path = f"{ETC}/{DAEMONS[unit][1]}.d/t.conf"
    for text in SECURITY[unit]:
        host.exec("n1", "python3", "-c", f"open({path!r}, 'wb').write({text.encode('latin-1')!r})")
        done = ask(host, unit)
        assert done.returncode == REFUSED, text
        assert "t.conf:2: " in done.stderr and "refusing to start with it" in done.stderr, done.stderr
    host.run("n1", "systemctl", "restart", unit)
    # Not by the unit: of a process that is gone before journald gets to its line it does not know the unit any more. Its status has it.
    assert "refusing to start with it" in host.journal("n1", lines=200)
    assert "refusing to start with it" in host.run("n1", "systemctl", "show", "-P", "StatusText", unit).stdout
    assert host.run("n1", "systemctl", "is-active", unit).stdout.strip() != "active"


BAD_FILES = {"directory": ("mkdir $f", "it is a directory"), "fifo": ("mkfifo $f", "no regular file"), "loop": ("ln -s t.conf $f", "symbolic links"),
             "device": ("ln -s /dev/zero $f", "no regular file"), "100 MB": ("truncate -s 100M $f", "larger than 1 MiB"),
             "everybody's": ("touch $f; chmod 666 $f", "everybody may write"), "a user's": ("touch $f; chown eve $f", "another user"),
             "directory of everybody": ("touch $f; chmod 777 $(dirname $f)", "everybody may write")}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_files_that_are_none(host, bad):
    for unit, (_, name) in DAEMONS.items():
        script, why = BAD_FILES[bad]
        host.exec("n1", "sh", "-c", f"f={ETC}/{name}.d/t.conf; mkdir -p $(dirname $f); {script}")
        done = ask(host, unit)
        assert done.returncode == REFUSED and why in done.stderr and f"{ETC}/{name}.d" in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_unreadable(host):
    """masterd is not root."""
    host.exec("n1", "sh", "-c", f"echo > {ETC}/masterd.conf.d/t.conf; chmod 600 {ETC}/masterd.conf.d/t.conf")
    done = ask(host, MASTERD, user="primus")
    assert done.returncode == REFUSED and "t.conf: Permission denied" in done.stderr


def test_junk_is_bounded(host):
    host.exec("n1", "sh", "-c", f"head -c 1000000 /dev/urandom > {ETC}/masterd.conf.d/t.conf; printf '\\n[Master]\\nLostSec=55s\\n' >> {ETC}/masterd.conf.d/t.conf")
    done = ask(host, MASTERD)
    assert done.returncode in (1, REFUSED) and len(done.stderr) < 20000
    host.exec("n1", "python3", "-c", f"open('{ETC}/masterd.conf.d/t.conf', 'w').write('[Master]\\nLostSec=' + 'x' * 1000000 + '\\nSuspectSec=4s\\n')")
    done = ask(host, MASTERD)
    assert done.returncode == 1 and "longer than 64 KiB" in done.stderr and len(done.stderr) < 2000
    assert shown(host, MASTERD, "SuspectSec")[0] == "4s"


def test_masked_by_dev_null(host):
    put(host, "/usr/lib/primus/masterd.conf.d/t.conf", "[Master]\nLostSec=77s\n")
    host.exec("n1", "ln", "-s", "/dev/null", f"{ETC}/masterd.conf.d/t.conf")
    assert shown(host, MASTERD, "LostSec") == ("60s", None)


def test_reload(host):
    """masterd takes over what it can; where anything is wrong the reload fails, and nothing changes. agentd has no reload, and says so."""
    put(host, f"{ETC}/masterd.conf.d/t.conf", "[Pool special]\nUsers=ml\n[Master]\nJobsPerUserMax=0\n")
    host.exec("n1", "systemctl", "reload", MASTERD)
    host.wait_for(lambda: "was read again: 2 pools" in host.journal("n1", MASTERD), 10, "the reload")
    before = host.journal("n1", MASTERD).count("was read again")
    for wrong, says in (("[Pool special]\nUser=ml\n", "t.conf:2"), ("[Pool special]\nUsers=ml nosuchone\n", "nosuchone"),
                        ("[Pool special]\nUsers=ml\nPreempts=perhaps\n", "t.conf:3")):
        put(host, f"{ETC}/masterd.conf.d/t.conf", wrong)
        assert host.run("n1", "systemctl", "reload", MASTERD).returncode != 0, wrong
        assert says in host.run("n1", "systemctl", "status", "-n", "20", MASTERD).stdout, wrong
    put(host, f"{ETC}/masterd.conf.d/t.conf", "[Pool special]\nUsers=ml\n")
    host.exec("n1", "systemctl", "reload", MASTERD)
    host.wait_for(lambda: host.journal("n1", MASTERD).count("was read again") == before + 1, 10, "the settings that are good")
    # A signal by itself is taken as before.
    put(host, f"{ETC}/masterd.conf.d/t.conf", "[Pool special]\nUser=ml\n")
    host.exec("n1", "systemctl", "kill", "--kill-who=main", "-s", "HUP", MASTERD)
    host.wait_for(lambda: "the settings stay as they are" in host.journal("n1", MASTERD), 10, "the refusal")
    assert host.exec("n1", "systemctl", "is-active", MASTERD).strip() == "active"
    assert host.run("n1", "systemctl", "reload", AGENTD).returncode != 0
    assert host.exec("n1", "systemctl", "is-active", AGENTD).strip() == "active"


def config(host, job):
    return host.primusctl_json("config", str(job))


def test_what_holds_for_all_jobs(host):
    """Defaults stand under what a job says, forced values over it, and a job keeps what it began with, over kill -9 and other files."""
    def reload():
        before = host.journal("n1", MASTERD).count("was read again")
        host.exec("n1", "systemctl", "reload", MASTERD)
        host.wait_for(lambda: host.journal("n1", MASTERD).count("was read again") == before + 1, 10, "the reload")

    def say(name, what):
        put(host, f"{ETC}/job-defaults.d/{name}", json.dumps(what))

    def submit(*options, **more):
        done = host.run("n1", "primusctl", "submit", "--json", *options, "-", user="ml", input=json.dumps({"command": "echo $SITE-$OWN; exec sleep 300", "cpus": 0.1, **more}))
        return json.loads(done.stdout)["job"] if done.returncode == 0 else done.stderr

    say("10-site.json", {"defaults": {"time": "1h", "role": {"memory": "32M"}}, "forced": {"env": {"SITE": "yes"}}})
    say("20-other.json", {"pools": ["default"], "defaults": {"time": "2h"}})
    reload()
    job = submit(env={"OWN": "1"})
    found = config(host, job)
    assert (found["timeLimit"], found["role"][0]["memoryMb"], found["env"]) == (7200, 32, {"OWN": "1", "SITE": "yes"})
    host.wait_for(lambda: host.primusctl("logs", str(job)) == "yes-1\n", 15, "what its program was given")
    assert config(host, submit("--time", "3h", memory="48M"))["timeLimit"] == 10800
    # What is forced: by the file, by a later change; whoever says the same says nothing wrong.
    assert 'env.SITE: 10-site.json forces another value for all jobs of this pool; leave it out' in submit(env={"SITE": "no"})
    assert isinstance(submit(env={"SITE": "yes"}), int)
    done = host.run("n1", "primusctl", "update", str(job), "env.SITE=no", user="ml")
    assert done.returncode == 1 and "10-site.json forces another value" in done.stderr, done
    assert host.run("n1", "primusctl", "update", str(job), "priority=3", user="ml").returncode == 0
    # A file that is broken: the reload fails, and what held goes on.
    say("30-broken.json", {"defaults": {"memmory": "1G"}})
    assert host.run("n1", "systemctl", "reload", MASTERD).returncode != 0
    assert "30-broken.json: defaults.memmory: unknown key" in host.run("n1", "systemctl", "status", "-n", "20", MASTERD).stdout
    assert config(host, submit())["env"] == {"SITE": "yes"}
    assert ask(host, MASTERD).returncode == REFUSED
    # Another word of the site: nothing of a job that is there, all of one that comes; and over a death of the master.
    say("30-broken.json", {"forced": {"onPartition": "stop"}})
    host.exec("n1", "rm", f"{ETC}/job-defaults.d/20-other.json")
    host.exec("n1", "systemctl", "kill", "-s", "KILL", MASTERD)
    host.wait_nodes()
    assert (config(host, job)["timeLimit"], config(host, job)["onPartition"]) == (7200, "replace")
    assert host.run("n1", "primusctl", "update", str(job), "priority=4", user="ml").returncode == 0  # it was not so before
    found = config(host, submit())
    assert (found["timeLimit"], found["onPartition"]) == (3600, "stop")
    rows = host.run("n1", "primusctl", "config", "--origin", "-", user="eve", input='{"command": "true"}').stdout
    assert ["onPartition", '"stop"', "job-defaults.d/30-broken.json"] in [line.split() for line in rows.splitlines()]
