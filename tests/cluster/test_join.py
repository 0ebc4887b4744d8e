# SPDX-License-Identifier: Apache-2.0
"""Who gets into a cluster, who does not, and what a stranger at the port can do: nothing."""
import os
import re
import subprocess
import time

import pytest
from sandbox import AGENTD, MASTERD

SLEEPER = {"name": "sleeper", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "sleep 600"}]}
BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def token(cluster, *options):
    return cluster.primusctl("token", "create", *options, user="root").strip()


def join(cluster, node, text, *options, master="n1"):
    """The agent is the test's to start."""
    return cluster.run(node, "primusctl", "join", "--no-start", *options, master, input=text + "\n")


def forget(cluster, node):
    """The node is out of the cluster and has no identity."""
    cluster.run("n1", "primusctl", "node", "remove", node)
    cluster.exec(node, "sh", "-c", f"systemctl stop {AGENTD}; rm -f /etc/primus/node/*")


def back(cluster, node):
    done = join(cluster, node, token(cluster))
    assert done.returncode == 0, done.stderr
    cluster.exec(node, "systemctl", "restart", AGENTD)
    cluster.wait_nodes()


def says(cluster, node, unit, text, timeout=15):
    return cluster.wait_for(lambda: re.search(text, cluster.journal(node, unit)), timeout, f"{unit} on {node} says {text!r}")


@pytest.fixture
def out(cluster):
    """n3 is out of the cluster for the test."""
    forget(cluster, "n3")
    yield cluster
    forget(cluster, "n3")
    back(cluster, "n3")


# ---- tokens ------------------------------------------------------------------------------------------------------------


def refused(cluster, text, why, *options):
    done = join(cluster, "n3", text, *options)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and why in done.stderr, done.stderr
    assert cluster.exec("n3", "ls", "/etc/primus/node") == ""


def test_tokens_that_are_none(out):
    good = token(out)
    wrong_secret = good[:-5] + BASE32[(BASE32.index(good[-5]) + 1) % 32] + good[-4:]
    for text in ("", "x", "primus1.", "primus2" + good[7:], good[:-1], good + "a", good.upper() + "!", "primus1." + "a" * 5000):
        refused(out, text, "token")
    refused(out, wrong_secret, "token")
    other_cluster = "primus1." + BASE32[(BASE32.index(good[8]) + 1) % 32] + good[9:]
    refused(out, other_cluster, "token")
    assert join(out, "n3", good).returncode == 0, "the good one is still good"


def test_tokens_run_out(out):
    expired, spent, elsewhere = token(out, "--expires=1s"), token(out), token(out, "--from=192.0.2.0/24")
    assert join(out, "n3", spent).returncode == 0
    out.exec("n3", "sh", "-c", "rm -f /etc/primus/node/*")
    refused(out, spent, "spent")
    refused(out, elsewhere, "not for this address")
    time.sleep(1.1)
    refused(out, expired, "expired")
    says(out, "n1", MASTERD, r"Refused a connection from .*\(n3\): the token has expired")
    spent_twice = token(out, "--uses=2")
    for _ in range(2):
        assert join(out, "n3", spent_twice).returncode == 0
    refused_name = token(out)
    for name in ("primus-masterd", "N3", "../n3", "a b", "-x", "x" * 300):
        done = join(out, "n3", refused_name, f"--name={name}")
        assert done.returncode in (1, 2) and len(done.stderr.splitlines()) == 1, done.stderr


def test_a_name_that_is_taken(cluster):
    before = cluster.exec("n2", "sha256sum", "/etc/primus/node/node.key")
    done = join(cluster, "n3", token(cluster), "--name=n2")
    assert done.returncode == 1 and "connected" in done.stderr
    done = join(cluster, "n2", token(cluster))
    assert done.returncode == 1 and "connected" in done.stderr
    assert cluster.exec("n2", "sha256sum", "/etc/primus/node/node.key") == before
    cluster.wait_nodes()


# Journal lines of a hook that says what it is told.
TELLS = r"""mkdir -p /etc/primus/hooks; cat > /etc/primus/hooks/notify <<'E'
#!/bin/sh
echo "told: $PRIMUS_EVENT $PRIMUS_NODE $PRIMUS_TEXT"
E
chmod 755 /etc/primus/hooks/notify"""


@pytest.fixture
def away(out):
    """n3 is out of the cluster, and n2 belongs to it and is not connected."""
    out.exec("n1", "sh", "-c", TELLS)
    out.exec("n2", "sh", "-c", f"cp -a /etc/primus/node /root/own; systemctl stop {AGENTD}")
    out.wait_for(lambda: not out.primusctl_json("node", "show", "n2")["link"], 20, "n2 is away")
    yield out
    out.exec("n1", "rm", "/etc/primus/hooks/notify")
    out.exec("n2", "sh", "-c", f"rm -rf /root/own; systemctl reset-failed {AGENTD}; systemctl start --no-block {AGENTD}")


def test_a_name_whose_node_is_away(away):
    """A token is no key to it, also one of many uses and one for another name; its node comes back as if nothing had been."""
    plain = token(away, "--uses=5")
    for text, options, why in ((plain, ("--name=n2",), "token create --replace n2"), (token(away, "--name=n2"), ("--name=n2",), "token create --replace n2"),
                               (token(away, "--name=n9"), ("--name=n2",), "the token is for the name n9"), (token(away, "--replace=n2"), (), "the token is for the name n2")):
        refused(away, text, why, *options)
    says(away, "n1", MASTERD, r"Refused a connection from .*\(n2\): the name n2 belongs to a node")
    away.exec("n2", "systemctl", "start", AGENTD)
    away.wait_nodes(nodes=["n1", "n2"])
    assert away.primusctl_json("node", "show", "n2")["takenOver"] is False
    assert join(away, "n3", plain).returncode == 0, "what it is for"


def test_a_name_that_is_replaced(away):
    """By a token for that alone; everybody is told, and it can be done the other way round."""
    done = join(away, "n3", token(away, "--replace=n2"), "--name=n2")
    assert done.returncode == 0, done.stderr
    says(away, "n1", MASTERD, r"Node n2 was taken over from .*, with the token [0-9a-f]{16} of uid 0; the certificate that it had is revoked")
    away.exec("n3", "systemctl", "restart", AGENTD)
    away.wait_nodes(nodes=["n1", "n2"])
    away.exec("n2", "systemctl", "start", "--no-block", AGENTD)
    says(away, "n2", AGENTD, "our certificate was revoked")
    shown = away.primusctl_json("node", "show", "n2")
    assert shown["takenOver"] is True and shown["joinedBy"] == 0 and shown["joinedFrom"] in away.exec("n3", "ip", "-o", "addr", "show", "host0")
    assert "took the name over" in away.primusctl("node", "show", "n2")
    away.wait_for(lambda: re.search(r"told: host-taken-over n2 from .* of uid 0", away.exec("n1", "journalctl", "-q", "--no-pager", "-u", "primus-hook-notify@*")),
                  20, "the notify hook")
    # It is still known after a restart, and taken back the same way.
    away.exec("n1", "systemctl", "restart", MASTERD)
    away.wait_nodes(nodes=["n1", "n2"])
    assert re.search(r"^n2 .*taken over by a host that joined .* ago", away.primusctl("nodes"), re.M)
    away.exec("n3", "sh", "-c", f"systemctl stop {AGENTD}; rm -f /etc/primus/node/*")
    away.exec("n2", "systemctl", "stop", AGENTD)
    text = token(away, "--replace=n2")
    away.wait_for(lambda: join(away, "n2", text).returncode == 0, 20, "the name is free")
    away.exec("n2", "systemctl", "start", AGENTD)
    away.wait_nodes(nodes=["n1", "n2"])


def test_a_removed_name_is_new(away):
    away.exec("n1", "primusctl", "node", "remove", "n2")
    assert join(away, "n3", token(away), "--name=n2").returncode == 0
    forget(away, "n3")
    away.exec("n1", "primusctl", "node", "remove", "n2")
    assert join(away, "n2", token(away, "--name=n2")).returncode == 0
    away.exec("n2", "systemctl", "start", AGENTD)
    away.wait_nodes(nodes=["n1", "n2"])
    away.wait_for(lambda: "told: host-joined n2 from" in away.exec("n1", "journalctl", "-q", "--no-pager", "-u", "primus-hook-notify@*"), 20, "the notify hook")


def test_the_token_is_nowhere(out):
    text = token(out, "--uses=3")
    end = text[-20:]
    assert join(out, "n3", text).returncode == 0
    for node in out.nodes:
        found = out.exec(node, "sh", "-c", "e=$(cat); journalctl --no-pager -o export | grep -a -e \"$e\"; "
                         "grep -rlaF -e \"$e\" /etc /run /var/lib/primus /var/lib/primus-agent /tmp /var/tmp /root 2>/dev/null; true", input=end)
        assert found == "", "the journal or a file on " + node
    modes = out.exec("n3", "stat", "-c", "%n %u %a", "/etc/primus/node", *(f"/etc/primus/node/{f}" for f in ("ca.crt", "node.crt", "node.key")))
    assert modes.split() == ["/etc/primus/node", "0", "755", "/etc/primus/node/ca.crt", "0", "644", "/etc/primus/node/node.crt", "0", "644",
                             "/etc/primus/node/node.key", "0", "600"]
    assert out.run("n3", "cat", "/etc/primus/node/node.key", user="eve").returncode != 0


def test_join_as_a_user(cluster):
    done = cluster.run("n3", "primusctl", "join", "n1", user="eve", input=token(cluster) + "\n")
    assert done.returncode != 0 and len(done.stderr.splitlines()) == 1
    cluster.wait_nodes()


# ---- certificates ---------------------------------------------------------------------------------------------------------


def swap(cluster, node, script):
    """Restarts the agent with another identity."""
    cluster.exec(node, "sh", "-c", f"systemctl stop {AGENTD}; cp -a /etc/primus/node /root/kept; cd /etc/primus/node; {script}; "
                 f"systemctl reset-failed {AGENTD}; systemctl start --no-block {AGENTD}")


def unswap(cluster, node):
    cluster.exec(node, "sh", "-c", f"systemctl stop {AGENTD}; rm -rf /etc/primus/node/*; cp -a /root/kept/. /etc/primus/node/; rm -rf /root/kept; "
                 f"systemctl reset-failed {AGENTD}; systemctl start {AGENTD}")
    cluster.wait_nodes()


@pytest.fixture
def foreign(build, shared_dir):
    """Another cluster's authority with certificates for n3 and its master, and a master that uses them."""
    program = os.path.join(build, "tests/fake-master")
    if not os.path.exists(program):
        pytest.skip("fake-master is not built")
    directory = shared_dir / "foreign"
    directory.mkdir(exist_ok=True)
    if not (directory / "node.key").exists():
        with subprocess.Popen([program, directory, "n3", "17747"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
            time.sleep(1)
            running.kill()
    target = shared_dir / "fake-master"
    if not target.exists():
        target.write_bytes(open(program, "rb").read())
        target.chmod(0o755)
    return directory


def test_a_foreign_certificate(cluster, foreign):
    """With the right authority to check the master against, but certified by another."""
    swap(cluster, "n3", "cp /shared/foreign/node.crt /shared/foreign/node.key .; chmod 600 node.key")
    try:
        says(cluster, "n3", AGENTD, "refused by the other side: .*(another CA|not known|not signed|unknown)")
        says(cluster, "n1", MASTERD, "Refused a connection from .*: certificate signed by another CA")
        assert "Registered" not in cluster.journal("n3", AGENTD, 4)
    finally:
        unswap(cluster, "n3")


def test_a_foreign_master(cluster, foreign):
    """An agent gives nothing to a master that its own authority has not certified, though the name is right."""
    argv = ("/shared/fake-master", "/shared/foreign", "n3", "7747")
    with cluster.process("n2", *argv, stdin=subprocess.PIPE) as fake:
        swap(cluster, "n3", "mkdir -p /etc/primus/agentd.conf.d; printf '[Agent]\\nMaster=n2\\n' > /etc/primus/agentd.conf.d/99-test.conf")
        try:
            says(cluster, "n3", AGENTD, "masterd at n2 .*certificate signed by another CA")
        finally:
            cluster.exec("n3", "rm", "/etc/primus/agentd.conf.d/99-test.conf")
            unswap(cluster, "n3")
        fake.terminate()
        assert "hello" not in fake.stdout.read().lower()


POSE = r"""
import socket, ssl, sys
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
c.load_cert_chain("/etc/primus/node/node.crt", "/etc/primus/node/node.key")
c.set_alpn_protocols(["primus/1", "primus-join/1"])
s = socket.create_server(("::", 7747), family=socket.AF_INET6, dualstack_ipv6=True)
print("up", flush=True)
while True:
    try:
        t = c.wrap_socket(s.accept()[0], server_side=True)
        print("GOT", t.recv(10), flush=True)
    except Exception as e:
        print(repr(e), flush=True)
"""


def test_a_node_cannot_pose_as_the_master(cluster):
    with cluster.process("n2", "python3", "-c", POSE) as pose:
        assert pose.stdout.readline() == "up\n"
        swap(cluster, "n3", "printf '[Agent]\\nMaster=n2\\n' > /etc/primus/agentd.conf.d/99-test.conf")
        try:
            says(cluster, "n3", AGENTD, "masterd at n2 .*not masterd's certificate")
        finally:
            cluster.exec("n3", "rm", "/etc/primus/agentd.conf.d/99-test.conf")
            unswap(cluster, "n3")
        done = join(cluster, "n3", token(cluster), "--name=n9", master="n2")
        assert done.returncode == 1 and ("not masterd's certificate" in done.stderr or "another cluster" in done.stderr), done.stderr
        pose.terminate()
        assert "GOT b'" not in pose.stdout.read().replace("GOT b''", "")


def test_a_removed_node(cluster):
    cluster.primusctl("node", "remove", "n3", user="root")
    try:
        says(cluster, "n3", AGENTD, "refused by the other side: our certificate was revoked")
        assert "our certificate was revoked" in cluster.exec("n3", "systemctl", "show", "-P", "StatusText", AGENTD)
        assert "our certificate was revoked" in cluster.run("n3", "primusctl", "doctor").stdout
        assert "n3" not in cluster.node_states()
        cluster.exec("n3", "sh", "-c", "cp -a /etc/primus/node /root/first")
        back(cluster, "n3")
        swap(cluster, "n3", "cp /root/first/* .")
        says(cluster, "n1", MASTERD, "Refused a connection from .*: the certificate was revoked")
        unswap(cluster, "n3")
    finally:
        cluster.exec("n3", "rm", "-rf", "/root/first")
        if "n3" not in cluster.node_states():
            back(cluster, "n3")


def test_renewal_and_expiry(new_cluster):
    cluster = new_cluster(2, conf=["masterd.conf:Master.CertificateSec=45s"])
    start = time.monotonic()
    cluster.wait_nodes()
    number = cluster.submit(SLEEPER)
    cluster.wait_for(lambda: cluster.primusctl_json("status", str(number))["state"].upper() == "RUNNING", 20, "the job")
    first = cluster.exec("n1", "cat", "/etc/primus/node/node.crt")
    cluster.exec("n1", "cp", "-a", "/etc/primus/node", "/root/first")
    # n2 misses its renewal: the certificate runs out while the agent is down.
    cluster.exec("n2", "systemctl", "stop", AGENTD)
    links = cluster.journal("n1", AGENTD, 100).count("Registered")
    cluster.wait_for(lambda: cluster.exec("n1", "cat", "/etc/primus/node/node.crt") != first, 40, "the renewal on n1")
    journal = says(cluster, "n1", AGENTD, "certificate of this host was renewed").string
    assert journal.count("Registered") == links, "the link went on"
    assert journal.count("was renewed") == 1, "one renewal, not all the time"
    # Once the agent has come with the new one, the first is over, though it has not run out.
    cluster.exec("n1", "systemctl", "restart", AGENTD)
    cluster.wait_nodes(nodes=["n1"])
    says(cluster, "n1", AGENTD, "(?s)Registered.*Registered")
    swap(cluster, "n1", "cp /root/first/* .")
    says(cluster, "n1", AGENTD, "our certificate was revoked")
    assert "removed from the cluster" not in cluster.journal("n1", AGENTD, 100), "it has a newer one: nothing is stopped for that"
    assert time.monotonic() - start < 45, "it would have run out by itself"
    cluster.exec("n1", "sh", "-c", f"systemctl stop {AGENTD}; cp /root/kept/* /etc/primus/node/; systemctl start {AGENTD}")
    cluster.wait_nodes(nodes=["n1"])
    time.sleep(max(0.0, start + 47 - time.monotonic()))
    cluster.exec("n2", "systemctl", "start", "--no-block", AGENTD)
    says(cluster, "n2", AGENTD, "certificate (has )?expired")
    says(cluster, "n2", AGENTD, "has expired at .* join again here", 30)
    assert cluster.primusctl_json("status", str(number))["state"].upper() == "RUNNING"


def test_the_authority_is_renewed(new_cluster):
    """It gets a new certificate long before its end, and so do the agents, with their own: nobody notices."""
    cluster = new_cluster(2, conf=["masterd.conf:Master.CertificateSec=12s", "masterd.conf:Master.AuthoritySec=60s"])
    cluster.wait_nodes()
    number = cluster.submit(SLEEPER)
    cluster.wait_state(number, "RUNNING")
    start = time.monotonic()
    first = cluster.exec("n2", "cat", "/etc/primus/node/ca.crt")
    says(cluster, "n1", MASTERD, "Renewed the certificate of the cluster's authority", 60)
    cluster.wait_for(lambda: cluster.exec("n2", "cat", "/etc/primus/node/ca.crt") != first, 30, "the authority's certificate on n2")
    says(cluster, "n2", AGENTD, "authority's certificate in .* was renewed")
    # One that had the first all the time would be out now.
    time.sleep(max(0.0, start + 70 - time.monotonic()))
    for unit in (MASTERD, AGENTD):
        cluster.exec("n1", "systemctl", "restart", unit)
    cluster.wait_nodes()
    cluster.exec("n2", "systemctl", "restart", AGENTD)
    cluster.wait_nodes()
    assert cluster.status(number)["state"] == "RUNNING" and cluster.executor(number)["attempt"] == 1


# ---- strangers at the port --------------------------------------------------------------------------------------------------


STRANGERS = r"""
import os, random, socket, ssl, sys, time
host = ("n1", 7747)
random.seed(7)
idle = []
for i in range(300):
    s = socket.create_connection(host, 5); idle.append(s)
for garbage in (b"GET / HTTP/1.1\r\nHost: n1\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(5000), os.urandom(70000), b"\0" * 65536, b"SSH-2.0-x\r\n",
                b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", b"AUTH EXTERNAL 30\r\nBEGIN\r\n"):
    for _ in range(5):
        try:
            s = socket.create_connection(host, 5); s.settimeout(0.3); s.sendall(garbage); s.recv(100)
        except OSError: pass
        finally: s.close()
# Half handshakes: a real ClientHello, then nothing.
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE; c.set_alpn_protocols(["primus/1"])
for _ in range(50):
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = c.wrap_bio(i, o)
    try: t.do_handshake()
    except ssl.SSLWantReadError: pass
    hello = o.read()
    try:
        s = socket.create_connection(host, 5); s.sendall(hello[:random.randrange(1, len(hello))] if random.random() < .5 else hello); idle.append(s)
    except OSError: pass
# Complete handshakes without a certificate, and with other protocols.
for protocols in (["primus/1"], ["h2"], [], ["primus-join/1"]):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    if protocols: c.set_alpn_protocols(protocols)
    try:
        t = c.wrap_socket(socket.create_connection(host, 5)); t.settimeout(1); t.sendall(os.urandom(4000)); print(protocols, t.recv(1000))
    except OSError as e: print(protocols, repr(e))
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE; c.maximum_version = ssl.TLSVersion.TLSv1_2
try: c.wrap_socket(socket.create_connection(host, 5)); print("TLS 1.2!")
except OSError as e: print(repr(e))
print("all", flush=True)
time.sleep(float(sys.argv[1]))
"""


def test_strangers_do_not_matter(cluster):
    pid = cluster.exec("n1", "systemctl", "show", "-P", "MainPID", MASTERD)
    job = cluster.submit(SLEEPER)
    with cluster.process("n3", "python3", "-c", STRANGERS, "6") as strangers:
        said = []
        for line in strangers.stdout:
            said.append(line)
            if line == "all\n":
                break
        assert "TLS 1.2!" not in "".join(said) and said[-1] == "all\n", "".join(said)
        assert "[b'" not in "".join(said)
        # While hundreds of them sit there, an agent that comes anew gets in, and everything answers.
        start = time.monotonic()
        cluster.exec("n2", "systemctl", "restart", AGENTD)
        says(cluster, "n2", AGENTD, "Registered")
        cluster.wait_nodes(timeout=15)
        assert time.monotonic() - start < 15
        assert cluster.primusctl_json("status", str(job))["state"].upper() in ("STARTING", "RUNNING")
    assert cluster.exec("n1", "systemctl", "show", "-P", "MainPID", MASTERD) == pid
    rss = int(cluster.exec("n1", "sh", "-c", f"grep VmRSS /proc/{pid.strip()}/status").split()[1])
    assert rss < 40000
    assert cluster.journal("n1", MASTERD, 1000).count("Refused a connection") < 200
    cluster.primusctl("kill", str(job))
