# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that masterd knows of: told of by trainers, kept by policy and pins, removed by jobs of their owner's."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kit"))
from c_store import CALLS
from sandbox import AGENTD, MASTERD
from web import Web

# Each trial saves five, the loss of which falls; Store keeps them all.
TRAINER = """
import os, time
from primus import checkpoints, trial
kept = checkpoints.Store(f"{os.environ['WHERE']}/t{trial.number or 0}", keep=100, metric="loss")
latest = kept.latest()
for step in range(latest.step + 1 if latest else 1, 6):
    loss = (trial.params or {"x": 1})["x"] / step if step != 4 else 100 + step
    with kept.save(step, loss=loss, note=step) as path:
        (path / "model").write_bytes(b"m" * 1000)
    if trial.number is not None:
        trial.report_validation(step, loss=loss)
time.sleep(float(os.environ.get("STAY", "0")))
"""
BASE = {"roleName": "worker", "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", TRAINER]}


def role(**more):
    return [{**BASE, **more}]


@pytest.fixture
def where(shared_dir, request):
    """A directory of the build machine's that anybody may write to, and what the hosts call it."""
    name = re.sub(r"\W", "-", request.node.name)
    path = shared_dir / name
    path.mkdir()
    path.chmod(0o777)
    return path, f"/shared/{name}"


def listed(cluster, job=None, user="ml"):
    return cluster.primusctl_json("checkpoints", "list", *([str(job)] if job else []), user=user)


def told(cluster, job, n, user="ml"):
    return cluster.wait_for(lambda: len(rows := listed(cluster, job, user)) == n and rows, 20, f"{n} checkpoints")


def steps(path):
    return sorted(f"{p.parent.name}/{int(p.name[5:])}" for p in path.glob("t*/step-*"))


def collected(cluster, job, *options, user="ml"):
    """gc, and the end of its jobs."""
    text = cluster.primusctl("checkpoints", "gc", str(job), *options, user=user)
    jobs = re.findall(r"^Job (\d+) removes", text, re.M)
    for number in jobs:
        assert cluster.wait_job(number, user=user) == 0, cluster.primusctl("logs", number, user=user)
    return text, jobs


def search(where, **more):
    return {"name": "s", "env": {"WHERE": where}, "search": {"method": "grid", "metric": "loss", "space": {"x": {"type": "categorical", "vals": [1, 2]}}}, "role": role(), **more}


def test_a_search(cluster, where):
    """The whole way: told of, listed, pinned, collected; over kills of the master; nobody else's business."""
    path, inside = where
    job = cluster.submit(search(inside))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    rows = told(cluster, job, 10)
    assert [(r["trial"], r["step"]) for r in sorted(rows, key=lambda r: (r["trial"], r["step"]))] == [(t, s) for t in (0, 1) for s in range(1, 6)]
    first = rows[0]
    assert first["metric"] == "loss" and first["smaller"] and first["bytes"] == 1000 and first["files"] == 1 and first["value"] == first["metrics"]["loss"]
    assert first["path"].startswith(inside) and first["job"] == job and not first["pinned"] and not first["marked"]
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    assert listed(cluster, job) == rows
    assert listed(cluster, first["run"]) == [r for r in rows if r["run"] == first["run"]], "of an element"

    # Nobody else's.
    assert listed(cluster, user="eve") == [] and {r["checkpoint"] for r in rows} <= {r["checkpoint"] for r in listed(cluster, user="root")}
    assert cluster.primusctl_json("checkpoints", "gc", str(job), "--dry-run", "--trial-best=0", "--trial-latest=0", user="eve") == []
    for verb in ("pin", "forget"):
        assert cluster.run("n1", "primusctl", "checkpoints", verb, str(first["checkpoint"]), user="eve").returncode != 0

    pinned = next(r for r in rows if (r["trial"], r["step"]) == (0, 2))
    cluster.primusctl("checkpoints", "pin", str(pinned["checkpoint"]))
    dry = cluster.primusctl_json("checkpoints", "gc", str(job), "--dry-run")
    assert {(r["trial"], r["step"]) for r in dry} == {(0, 1), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3), (1, 4)} and not any(r["marked"] for r in dry)
    assert {(r["trial"], r["step"]) for r in cluster.primusctl_json("checkpoints", "gc", f"{job}[1]", "--dry-run")} == {(1, s) for s in range(1, 5)}, "of one trial"
    assert len(steps(path)) == 10 and listed(cluster, job)[1]["pinned"] == (rows[1] == pinned)
    text, jobs = collected(cluster, job)
    assert "to be removed" in text and 1 <= len(jobs) <= 2
    assert steps(path) == ["t0/2", "t0/5", "t1/5"] and not list(path.glob("t*/.gone*"))
    assert [(r["trial"], r["step"]) for r in listed(cluster, job)] == [(0, 2), (0, 5), (1, 5)] or len(listed(cluster, job)) == 3
    nothing = cluster.run("n1", "primusctl", "checkpoints", "gc", str(job), user="ml")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "Nothing is to be removed\n")
    cluster.primusctl("checkpoints", "unpin", str(pinned["checkpoint"]))
    assert [r["step"] for r in cluster.primusctl_json("checkpoints", "gc", str(job), "--dry-run")] == [2]
    # Of all trials one, and no number is given twice.
    collected(cluster, job, "--best=1", "--trial-best=0", "--trial-latest=0")
    assert steps(path) == ["t0/5"]
    cluster.primusctl("checkpoints", "forget", str(listed(cluster, job)[0]["checkpoint"]))
    assert listed(cluster, job) == [] and steps(path) == ["t0/5"]


def test_of_c(cluster, where):
    """A trainer in C tells of what it saves, of what it finds again, and of what goes."""
    path, inside = where
    trainer = CALLS + """
opened(os.environ["WHERE"] + "/t0/", keep=2, keep_best=1, metric=b"loss", world=1)
assert not found()
for step, loss in ((1, 0.1), (2, 0.4), (3, 0.3), (4, 0.2)):
    saved(step, {"model": "m" * 1000, "sub/more": "n"}, **{f"m{i}": 1.0 for i in range(40)}, loss=loss, bad=float("nan"))
lib.primus_store_close(store)
opened(os.environ["WHERE"] + "/t0", metric=b"loss", world=1)
assert lib.primus_saved_step(found()) == 4
lib.primus_store_close(store)
"""
    job = cluster.submit({"name": "c", "env": {"WHERE": inside}, "role": role(argv=["python3", "-c", trainer])})
    assert cluster.wait_job(job, timeout=60) == 0, cluster.primusctl("logs", job)
    rows = listed(cluster, job)  # the store's end has waited for masterd
    assert [(r["step"], r["bytes"], r["files"], r["path"]) for r in rows] == [(s, 1001, 2, f"{inside}/t0/step-{s:012}") for s in (1, 3, 4)]
    assert {r["metric"] for r in rows} == {"loss"} and [r["value"] for r in rows] == [0.1, 0.3, 0.2] and all(r["smaller"] and len(r["metrics"]) == 32 for r in rows)
    collected(cluster, job)
    assert steps(path) == ["t0/1", "t0/4"]


def begins(cluster, *options, user="ml"):
    """What a job says that begins from a checkpoint; or why there is none."""
    config = json.dumps({"name": "f", "role": role(argv=["python3", "-c", FROM], memoryMb=256)})
    f = cluster.exec("n1", "sh", "-c", "f=$(mktemp /tmp/from.XXXXXX); cat > $f; echo $f", user=user, input=config).strip()
    done = cluster.run("n1", "primusctl", "submit", "--parsable", *options, f, user=user)
    if done.returncode != 0:
        return done.stderr
    cluster.wait_job(done.stdout.strip(), user=user)
    return cluster.primusctl("logs", done.stdout.strip(), user=user).strip()


# boto3 of the build machine's, and what of Amazon's services is needed.
BOTO3 = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3", "six", "requests", "chardet", "charset_normalizer", "idna", "certifi")
PORT = 18081


@pytest.fixture
def bucket(cluster, shared_dir):
    """A server of S3's kind on n1, and ml's keys to it, on all hosts, as a person would put them there."""
    packages = pathlib.Path(pytest.importorskip("boto3").__file__).parents[1]
    for name in BOTO3:
        if (packages / f"{name}.py").exists():
            shutil.copy(packages / f"{name}.py", shared_dir)
        elif not (shared_dir / name).exists():
            shutil.copytree(packages / name, shared_dir / name, ignore=lambda top, names: {n for n in names if n == "__pycache__" or (pathlib.Path(top).name == "data" and "." not in n and n != "s3")})
    shutil.copy(pathlib.Path(__file__).parents[1] / "kit/httpd.py", shared_dir / "httpd-s3.py")
    setup = f"""
mkdir -p ~ml/.aws /usr/local/lib/python3.11/dist-packages
printf '[default]\naws_access_key_id = AKIDTEST\naws_secret_access_key = s3/secret+key\n' > ~ml/.aws/credentials
printf '[default]\nregion = eu-test-1\nendpoint_url = http://n1:{PORT}\n' > ~ml/.aws/config
chown -R ml ~ml/.aws && chmod 600 ~ml/.aws/credentials
for f in {" ".join(BOTO3)}; do ln -sf /shared/$f* /usr/local/lib/python3.11/dist-packages/; done
"""
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-ec", setup)
    with cluster.process("n1", "/usr/bin/python3", "/shared/httpd-s3.py", "--bind", "0.0.0.0", "--port", str(PORT), stdin=subprocess.PIPE) as running:
        assert running.stdout.readline().strip() == str(PORT)
        yield "s3://bucket/of-a-job"
    for node in cluster.nodes:
        cluster.exec(node, "sh", "-c", f"rm -r ~ml/.aws; cd /usr/local/lib/python3.11/dist-packages && rm {' '.join(n + '*' for n in BOTO3)}")


def test_in_a_bucket(cluster, bucket):
    """The whole way where there is no directory that all see: told of, listed, a model, begun from, collected by who has the keys."""
    job = cluster.submit({"name": "b", "env": {"WHERE": bucket}, "role": role(memoryMb=256)})
    assert cluster.wait_job(job, timeout=60) == 0, cluster.primusctl("logs", str(job))
    rows = {r["step"]: r for r in told(cluster, job, 5)}
    assert [r["path"] for r in rows.values()] == [f"{bucket}/t0/step-{s:012}" for s in range(1, 6)] and {r["bytes"] for r in rows.values()} == {1000}
    cluster.primusctl("model", "register", "far", str(rows[2]["checkpoint"]))
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    for name, step in (("far", 2), (rows[5]["checkpoint"], 5), (f"{bucket}/t0/step-000000000003", 3)):
        assert begins(cluster, f"--from={name}") == f"begins from {step} 1000"
    cluster.primusctl("checkpoints", "unpin", str(rows[5]["checkpoint"]))
    collected(cluster, job)
    assert {r["step"] for r in listed(cluster, job)} == {2, 5}, "the model's and the best, which is the latest"
    names = json.loads(cluster.exec("n1", "python3", "-c", "import json; from primus import _bucket; print(json.dumps(sorted(_bucket.Bucket('%s/t0').sizes())))" % bucket, user="ml"))
    assert names == [f"step-{s:012}/{n}" for s in (2, 5) for n in ("manifest-0.json", "rank-0/model")] + [f"whole-{s:012}" for s in (2, 5)]
    for node in cluster.nodes:
        assert "s3/secret" not in cluster.run(node, "journalctl", "-q", "--no-pager", "-b").stdout
    # Who has no keys removes nothing, and says so; it stays marked until somebody who has some collects.
    cluster.primusctl("model", "archive", "far@1")
    for node in cluster.nodes:
        cluster.exec(node, "mv", "/home/ml/.aws/credentials", "/home/ml/.aws/none")
    jobs = re.findall(r"^Job (\d+) removes", cluster.primusctl("checkpoints", "gc", str(job)), re.M)
    assert cluster.wait_job(jobs[0]) == 1 and "is left alone: s3://bucket" in cluster.primusctl("logs", jobs[0])
    for node in cluster.nodes:
        cluster.exec(node, "mv", "/home/ml/.aws/none", "/home/ml/.aws/credentials")
    collected(cluster, job)
    assert [r["step"] for r in listed(cluster, job)] == [5]


def test_by_rest(cluster, where):
    """The same, asked by the gateway's addresses, each as who asks."""
    path, inside = where
    job = cluster.submit({"name": "w", "env": {"WHERE": inside}, "role": role()})
    cluster.wait_state(job, "SUCCEEDED", timeout=40)
    rows = told(cluster, job, 5)
    mine, others = Web(cluster), Web(cluster, "eve")
    assert mine.get(f"checkpoints?job={job}")["checkpoints"] == rows and others.get("checkpoints")["checkpoints"] == []
    assert [r["checkpoint"] for r in mine.get(f"checkpoints?job={job}&after={rows[2]['checkpoint']}")["checkpoints"]] == [r["checkpoint"] for r in rows[3:]]
    number = rows[0]["checkpoint"]
    assert mine.send("POST", "models", {"name": "web", "checkpoint": number, "labels": "a b"}) == (201, {"version": 1})
    assert others.send("POST", "models", {"name": "web", "checkpoint": number})[0] == 404
    assert mine.send("POST", "models/edit", {"name": "web", "note": "<b>&"})[0] == 204 and others.send("POST", "models/edit", {"name": "web", "archived": True})[0] == 404
    assert [(m["name"], m["note"], m["labels"], m["archived"]) for m in mine.get("models?name=web")["models"]] == [("web", "<b>&", "a b", False)] and others.get("models")["models"] == []
    assert others.send("POST", "checkpoints/pin", {"checkpoint": number})[0] == 403 and others.send("DELETE", f"checkpoint?checkpoint={number}")[0] == 403
    assert mine.send("POST", "checkpoints/pin", {"checkpoint": rows[1]["checkpoint"]})[0] == 204
    assert mine.send("DELETE", f"checkpoint?checkpoint={number}")[0] == 409, "a model's"
    dry = mine.send("POST", "checkpoints/collect", {"job": job, "dryRun": True})
    assert dry[0] == 200 and sorted(dry[1]["marked"]) == [rows[2]["checkpoint"], rows[3]["checkpoint"]] and dry[1]["jobs"] == []
    assert mine.send("DELETE", f"checkpoint?checkpoint={rows[4]['checkpoint']}")[0] == 204 and len(listed(cluster, job)) == 4


def test_what_runs(cluster, where):
    """A job that runs keeps all; one that goes on from another's takes it over."""
    path, inside = where
    config = {"name": "r", "env": {"WHERE": inside, "STAY": "300"}, "role": role()}
    job = cluster.submit(config)
    rows = told(cluster, job, 5)
    assert "trial" not in rows[0] and rows[0]["run"] == job
    assert cluster.primusctl_json("checkpoints", "gc", str(job), "--dry-run", "--trial-best=0", "--trial-latest=0") == []
    cluster.kill(job)
    other = cluster.submit({**config, "env": {"WHERE": inside}})
    cluster.wait_state(other, "SUCCEEDED", timeout=40)
    taken = told(cluster, other, 1)[0]
    assert taken["step"] == 5 and taken["checkpoint"] in {r["checkpoint"] for r in rows}
    collected(cluster, job, "--trial-best=0", "--trial-latest=0")
    assert steps(path) == ["t0/5"] and [r["step"] for r in listed(cluster, other)] == [5]
    collected(cluster, other, "--trial-best=0", "--trial-latest=0")
    assert steps(path) == [] and listed(cluster, other) == []


@pytest.mark.parametrize("killed", [False, True])
def test_by_itself(cluster, where, killed):
    """The job's key: what is not kept goes when it has ended, also where the master is killed then."""
    path, inside = where
    job = cluster.submit(search(inside, checkpoints={"trialBest": 1}))
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    if killed:
        cluster.kill9("n1", MASTERD)
        cluster.wait_nodes()
    cluster.wait_for(lambda: steps(path) == ["t0/5", "t1/5"], 40, "the best of each")
    cluster.wait_for(lambda: len(listed(cluster, job)) == 2, 20, "the rest forgotten")
    said = [e["text"] for e in cluster.events(job, "checkpoints")]
    assert said == ["8 checkpoints are removed, as its key checkpoints says"]
    assert cluster.primusctl_json("config", str(job))["checkpoints"] == {"best": 0, "trialBest": 1, "trialLatest": 0}


def test_that_fails(cluster, where):
    """Whoever runs it again finds where it was: the latest stays, whatever is said."""
    path, inside = where
    job = cluster.submit({"name": "f", "env": {"WHERE": inside}, "checkpoints": {"best": 1}, "role": role(argv=["python3", "-c", TRAINER.replace("step != 4", "step < 4") + "raise SystemExit(1)"], failover={"commonFailoverPolicy": {"restartType": "NEVER"}})})
    cluster.wait_state(job, "FAILED", timeout=40)
    cluster.wait_for(lambda: steps(path) == ["t0/3", "t0/5"], 40, "the best and the latest")


LIES = """
import json, os, sys
from primus import _registry
r = _registry.Registry()
def say(path, step=1, **more):
    try:
        print("told", r.ask(op="checkpoint", path=path, step=step, time=1.0, files=1, bytes=1, metrics={}, metric="", smaller=True, **more))
    except Exception as e:
        print("refused:", e)
home = os.environ["WHERE"]
say(home)
say(home + "/t0/step-000000000001")
say(home + "/link/step-000000000001")
say("/etc")
say("/etc/../etc/passwd")
say("/x" * 600)
say("/a\\nb")
say("/ok", owner=0)
print("gone", r.ask(op="checkpointGone", path=os.environ["THEIRS"]))
print("marked", r.marked(0))
"""


def test_lies(cluster, where):
    """What somebody tells of that is no checkpoint is left alone; what is told of another user's changes nothing of it."""
    path, inside = where
    mine = cluster.submit({"name": "m", "env": {"WHERE": inside}, "role": role()})
    cluster.wait_state(mine, "SUCCEEDED", timeout=40)
    rows = told(cluster, mine, 5)
    theirs = path / "eve"
    (theirs / "t0/step-000000000001/precious").mkdir(parents=True)
    (theirs / "link").symlink_to("/etc")
    for p in (theirs, theirs / "t0", theirs / "t0/step-000000000001"):
        p.chmod(0o777)
    job = cluster.submit({"name": "e", "env": {"WHERE": f"{inside}/eve", "THEIRS": rows[0]["path"]}, "role": role(argv=["python3", "-c", LIES])}, user="eve")
    cluster.wait_state(job, "SUCCEEDED", timeout=40)
    said = cluster.primusctl("logs", str(job), user="eve")
    assert said.count("told {") == 4 and said.count("refused: path must be") == 3 and "has no \"owner\"" in said and "marked []" in said, said
    assert listed(cluster, mine) == rows
    text = cluster.primusctl("checkpoints", "gc", str(job), "--trial-best=0", "--trial-latest=0", user="eve")
    number = re.search(r"^Job (\d+) removes", text, re.M)[1]
    assert cluster.wait_job(number, user="eve") == 1
    said = cluster.primusctl("logs", number, user="eve")
    assert said.count("is left alone") == 3 and "1 checkpoints removed" in said, said  # that behind the link is gone: it never was
    assert (theirs / "t0/step-000000000001/precious").is_dir() and (theirs / "link").is_symlink()
    ids = [str(r["checkpoint"]) for r in listed(cluster, job, user="eve")]
    busy = cluster.run("n1", "primusctl", "checkpoints", "pin", ids[0], user="eve")
    assert busy.returncode != 0 and "is to be removed" in busy.stderr
    cluster.primusctl("checkpoints", "forget", *ids, user="eve")
    assert listed(cluster, job, user="eve") == [] and len(steps(path)) == 5


def test_killed_over_it(cluster, where):
    """Masters, agents and the collector are killed while it removes: what the policy keeps is there, and in the end nothing else."""
    path, inside = where
    job = cluster.submit(search(inside, search={"method": "grid", "metric": "loss", "space": {"x": {"type": "categorical", "vals": list(range(1, 9))}}}))
    cluster.wait_state(job, "SUCCEEDED", timeout=90)
    rows = told(cluster, job, 40)
    keeps = sorted(f"t{t}/5" for t in range(8))
    for turn in range(3):
        cluster.run("n1", "primusctl", "checkpoints", "gc", str(job), user="ml")
        if turn != 1:
            cluster.kill9_now("n1", MASTERD)
        for node in ("n1", "n2", "n3") if turn != 0 else ():
            cluster.kill9_now(node, AGENTD)
        cluster.wait_nodes()
        for line in cluster.primusctl_json("list"):
            if line["name"] == "checkpoints-gc":
                cluster.run("n1", "primusctl", "kill", str(line["job"]), user="ml")
        assert set(keeps) <= set(steps(path))
    time.sleep(1)
    collected(cluster, job)
    assert steps(path) == keeps and not list(path.glob("t*/.gone*"))
    assert sorted(f"t{r['trial']}/{r['step']}" for r in listed(cluster, job)) == keeps
    assert {r["checkpoint"] for r in listed(cluster, job)} <= {r["checkpoint"] for r in rows}


FROM = """
import os
from primus import checkpoints
s = checkpoints.source()
print("begins from", s.step, (s.path / "model").stat().st_size)
"""


def test_models(cluster, where):
    """Registered, listed, labelled, archived; it keeps its checkpoint; a job begins from it, and from a number, which is pinned then."""
    path, inside = where
    job = cluster.submit({"name": "m", "env": {"WHERE": inside}, "role": role()})
    cluster.wait_state(job, "SUCCEEDED", timeout=40)
    rows = {r["step"]: r["checkpoint"] for r in told(cluster, job, 5)}
    models = lambda user="ml", *of: [m for m in cluster.primusctl_json("model", "list", *of, user=user) if m["path"].startswith(inside)]
    cluster.primusctl("model", "register", "digits", str(rows[2]))
    said = cluster.primusctl("model", "register", "digits", str(rows[3]), "--note=of the 3rd step", "--label=best", "--label=prod")
    assert "digits@2" in said and "primusctl submit --from=digits@2" in said
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    one, two = models()
    assert (one["name"], one["version"], one["checkpoint"], one["step"], one["note"], one["labels"], one["archived"], one["gone"]) == ("digits", 1, rows[2], 2, "", "", False, False)
    assert (two["version"], two["metric"], two["note"], two["labels"]) == (2, "loss", "of the 3rd step", "best prod") and two["value"] == 1 / 3
    assert models("ml", "other") == [] and models("eve") == [] and [m for m in models("root") if m["path"] == two["path"]]
    for bad, says in ((["digits", "999999"], "You have no checkpoint"), (["1x", str(rows[1])], "A model's name"), (["../x", str(rows[1])], "A model's name"),
                      (["x", str(rows[1]), "--label=a b"], None), (["x", str(rows[1]), "--label=<b>"], "Labels are"), (["x", str(rows[1]), "--note=a\x1b[2J"], "A note is")):
        done = cluster.run("n1", "primusctl", "model", "register", *bad, user="ml")
        assert (done.returncode == 0) == (says is None) and (says or "") in done.stderr, (bad, done)
    assert "You have no checkpoint" in cluster.run("n1", "primusctl", "model", "register", "digits", str(rows[3]), user="eve").stderr
    assert "You have no such version" in cluster.run("n1", "primusctl", "model", "archive", "digits@2", user="eve").stderr
    cluster.primusctl("model", "archive", "x@1")
    assert "is a model" in cluster.run("n1", "primusctl", "checkpoints", "forget", str(rows[3]), user="ml").stderr

    collected(cluster, job)
    assert steps(path) == ["t0/2", "t0/3", "t0/5"], "1 was x's, which is archived"
    assert [m["gone"] for m in models()] == [False, False, True]

    begun = lambda *options, user="ml": begins(cluster, *options, user=user)
    assert begun("--from=digits") == "begins from 3 1000"
    assert begun("--from=digits@1") == "begins from 2 1000"
    assert begun(f"--from={inside}/t0/step-000000000005") == "begins from 5 1000"
    assert begun(f"--from={rows[5]}") == "begins from 5 1000"
    assert [r["pinned"] for r in listed(cluster, job) if r["step"] == 5] == [True]
    assert "there is no model nothing" in begun("--from=nothing") and "is gone" in begun("--from=x@1") and "there is no model digits" in begun("--from=digits", user="eve")
    assert "there is no checkpoint 999999" in begun("--from=999999") and "there is no checkpoint" in begun(f"--from={rows[5]}", user="eve")

    cluster.primusctl("model", "edit", "digits@2", "--label=old")
    cluster.primusctl("model", "archive", "digits")
    assert begun("--from=digits") == "begins from 2 1000" and [m["labels"] for m in models("ml", "digits")] == ["", "old"]
    collected(cluster, job, "--trial-best=0", "--trial-latest=0")
    assert steps(path) == ["t0/2", "t0/5"]
    assert cluster.run("n1", "primusctl", "model", "unarchive", "digits@2", user="ml").returncode == 0 and "is gone" in begun("--from=digits")


def test_no_job_waits_for_masterd(cluster, where):
    """While masterd is away, saving goes on; it hears of all when it is back."""
    path, inside = where
    job = cluster.submit({"name": "w", "env": {"WHERE": inside, "STAY": "60"}, "role": role(env={"STEP": "x"}, argv=["python3", "-c", TRAINER.replace("kept = ", "time.sleep(3)\nkept = ")])})
    cluster.wait_state(job, "RUNNING")
    cluster.exec("n1", "systemctl", "stop", MASTERD)
    try:
        deadline = time.monotonic() + 20
        while len(steps(path)) < 5 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(steps(path)) == 5
    finally:
        cluster.exec("n1", "systemctl", "start", MASTERD)
        cluster.wait_nodes()
    told(cluster, job, 5)
    cluster.kill(job)
    cluster.primusctl("checkpoints", "forget", *(str(r["checkpoint"]) for r in listed(cluster, job)))
    assert json.loads(cluster.primusctl("checkpoints", "list", str(job), "--json")) == []
