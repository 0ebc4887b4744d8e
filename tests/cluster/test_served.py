# SPDX-License-Identifier: Apache-2.0
"""primusctl notebook and tensorboard: a page that a job serves, opened here by one command; who may, who may not, when it ends."""
import contextlib
import re
import subprocess

import pytest

# A stand-in for TensorBoard's documented way to be embedded: what it was given is what it shows.
TENSORBOARD = '''
import http.server, os, threading
class TensorBoard:
    def configure(self, argv):
        self.flags = dict(zip(argv[1::2], argv[2::2]))
    def launch(self):
        flags = self.flags
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass
            def do_GET(self):
                good = self.path.startswith(flags["--path_prefix"] + "/")
                self.send_response(200 if good else 404)
                self.end_headers()
                files = sorted(os.path.join(d, f) for d, _, fs in os.walk(flags["--logdir"]) for f in fs)
                self.wfile.write("\\n".join(files).encode() if good else b"")
        threading.Thread(target=http.server.ThreadingHTTPServer((flags["--host"], int(flags["--port"])), Handler).serve_forever, daemon=True).start()
'''




@pytest.fixture(scope="module")
def board(shared_dir):
    """A folder with the stand-in, which the hosts see as /shared/board."""
    (shared_dir / "board" / "tensorboard").mkdir(parents=True)
    (shared_dir / "board" / "tensorboard" / "__init__.py").write_text("")
    (shared_dir / "board" / "tensorboard" / "program.py").write_text(TENSORBOARD)
    return "PYTHONPATH=/shared/board"


@contextlib.contextmanager
def opened(cluster, *args, env=(), user="ml"):
    """primusctl notebook or tensorboard as somebody on n1, until its address is there: (address, job, the process)."""
    with cluster.process("n1", "env", *env, "primusctl", *args, user=user, stderr=subprocess.STDOUT) as running:
        said = ""
        for line in running.stdout:
            said += line
            if line.startswith("http://localhost:"):
                break
        else:
            pytest.fail(said)
        job = re.search(r"[Jj]ob (\d+)", said)
        yield line.strip(), job and int(job[1]), running


def get(cluster, url, user="ml"):
    """Status and text of a page, as seen on n1."""
    code = ("import sys, urllib.request, urllib.error\ntry:\n    a = urllib.request.urlopen(sys.argv[1], timeout=20)\n"
            "except urllib.error.HTTPError as e:\n    a = e\nprint(a.status)\nprint(a.read(20000).decode(errors='replace'))")
    status, _, text = cluster.exec("n1", "python3", "-c", code, url, user=user).partition("\n")
    return int(status), text


def other_path(url, path):
    return "/".join(url.split("/")[:3]) + path


def test_tensorboard(cluster, board):
    """What a job has reported, in the browser here, by one command; it is left and opened again, and nobody else has the way in."""
    trainer = "from primus import metrics\nfor step in range(1, 6):\n    metrics.report(step, loss=1 / step)"
    job = cluster.submit({"name": "trained", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", trainer]}]})
    cluster.wait_state(job, "SUCCEEDED", timeout=30)
    cluster.wait_for(lambda: "loss" in cluster.primusctl("metrics", str(job)), 20, "its metrics are there")
    with opened(cluster, "tensorboard", "--cpus=0.1", "--mem=64M", str(job), env=[board]) as (url, served, running):
        status, text = get(cluster, url)
        assert status == 200 and f"./{job}/worker-0/events.out.tfevents" in text and f"./{job}/worker-1/events.out.tfevents" in text
        assert get(cluster, other_path(url, "/"))[0] == 404
        # The way in is in no argument, log or configuration, and in no file that others read.
        key = url.split("/")[3]
        assert len(key) >= 32
        where = cluster.executor(served, "task")["node"]
        assert key not in cluster.exec(where, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert key not in cluster.primusctl("logs", str(served)) and key not in cluster.primusctl("config", str(served))
        assert cluster.run(where, "sh", "-c", f"grep -rs {key} /run /var/lib /var/log /tmp 2>/dev/null", user="eve").stdout == ""
        running.terminate()
        running.wait(20)
    assert cluster.status(served)["state"] == "RUNNING"
    with opened(cluster, "tensorboard", f"--attach={served}", "--port=16006") as (again, _, _running):
        assert again == f"http://localhost:16006/{key}/" and get(cluster, again)[0] == 200
        for user, args in (("eve", ("tensorboard", f"--attach={served}")), ("eve", ("notebook", f"--attach={served}"))):
            refused = cluster.run("n1", "primusctl", *args, user=user)
            assert refused.returncode != 0 and key not in refused.stdout + refused.stderr and "http" not in refused.stdout
        # Taken: said, and it does not end the job.
        taken = cluster.run("n1", "primusctl", "tensorboard", f"--attach={served}", "--port=16006", user="ml")
        assert taken.returncode != 0 and "16006" in taken.stderr
        cluster.primusctl("kill", str(served))
        cluster.wait_state(served, "KILLED")


def test_what_cannot_be(cluster, board):
    """No module, a folder that is not there, a job that serves nothing, mistakes: a sentence each."""
    def said(*args, env=()):
        done = cluster.run("n1", "env", *env, "primusctl", *args, user="ml", cwd="/tmp")
        assert done.returncode != 0 and "http://" not in done.stdout
        return done.stderr

    small = ("--cpus=0.1", "--mem=64M")
    text = said("tensorboard", "--logdir=/tmp", *small)
    job = int(re.search(r"job (\d+) (has ended|serves no page).*primusctl logs \1 may say why", text)[1])
    assert "has no tensorboard" in cluster.primusctl("logs", str(job))
    text = said("notebook", *small)
    job = int(re.search(r"job (\d+) (has ended|serves no page)", text)[1])
    assert "neither jupyterlab nor notebook" in cluster.primusctl("logs", str(job))
    assert "one of them" in said("tensorboard")
    assert "one page, on one host" in said("tensorboard", "--logdir=/tmp", "--hosts=2")
    assert "n[1-3]" in said("notebook", "--hosts=n[") or "host list" in said("notebook", "--hosts=n[")
    assert "one of them" in said("tensorboard", "--logdir=/tmp", "12")
    assert "has reported nothing" in said("tensorboard", str(job), env=[board])
    running = cluster.submit({"name": "plain", "role": [{"roleName": "task", "num": 1, "vcores": 0.1, "memoryMb": 64, "argv": ["sleep", "600"]}]})
    cluster.wait_state(running, "RUNNING")
    cluster.primusctl("exec", str(running), "0", "--", "sh", "-c", 'echo \'{"port": 1, "path": "/\\u001b[2J"}\' > $PRIMUS_WORK/.primus-served-0')
    assert "serves no page" in said("notebook", f"--attach={running}")  # what says where it is is believed nothing
    cluster.primusctl("kill", str(running))
    assert "has ended" in said("notebook", f"--attach={running}")


def test_idle(cluster, board):
    """Nobody uses it: it ends by itself, and who has it open is told."""
    with opened(cluster, "tensorboard", "--cpus=0.1", "--mem=64M", "--idle=10s", "--logdir=/shared", env=[board]) as (_, job, running):
        cluster.wait_state(job, "KILLED", timeout=90)
        assert "idle" in cluster.status(job)["reason"]
        assert running.wait(20) != 0
        assert f"job {job} has ended" in running.stdout.read()
