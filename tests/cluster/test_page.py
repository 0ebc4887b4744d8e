# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: what a person does there, in both colours and on a narrow screen; and over kills of what it stands on."""
import contextlib
import json

import pytest
from browser import WINDOW, Browser
from web import Everybody, Web

TALKS = {"name": "talks", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 32,
                                    "command": r"printf '\033[31mred\033[0m <img src=x onerror=alert(1)> \342\200\256turned\n10%%\r20%%\r30%%\n'; exec sleep 600"}]}
FAILS = {"name": "fails", "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "echo 'ValueError: bad shard 17' >&2; exit 3"}]}
# Pixels on the first plot that are neither of an axis nor of the grid, which are grey: lines are not. A line's edge is paler, and of its colour.
DRAWN = """const c = document.querySelector('.chart canvas');
    if (!c || !c.width) return 0;
    const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    let n = 0;
    for (let i = 0; i < p.length; i += 4) n += p[i + 3] > 60 && Math.max(p[i], p[i + 1], p[i + 2]) - Math.min(p[i], p[i + 1], p[i + 2]) > 40;
    return n;"""


@pytest.fixture(scope="module")
def opened():
    """{(cluster, user): browser}, closed after the last test."""
    browsers = {}
    with contextlib.ExitStack() as stack:
        browsers["stack"] = stack
        yield browsers


@pytest.fixture
def browse(cluster, opened, tmp_path_factory):
    def get(user="ml"):
        if user not in opened:
            opened[user] = Browser(Web(cluster, user), tmp_path_factory.mktemp("profile"))
            opened["stack"].callback(opened[user].close)
        return opened[user]
    return get


def test_submit_look_and_kill(cluster, browse):
    b = browse()
    b.open("#/submit")
    b.wait("Submit a job")
    b.fill("textarea", '{\n  "name": "talks",\n  "role": [{"num": 0}]\n}')
    b.wait("roleName: missing")  # as one types
    assert b.run("return document.querySelector('.editor .wrong').textContent.trim()") == "3"
    filling = cluster.submit({"name": "filling", "role": [{"roleName": "w", "num": 5, "vcores": 1, "memoryMb": 32, "command": "exec sleep 600"}]})
    cluster.wait_state(filling, "RUNNING")
    b.fill("textarea", json.dumps({**TALKS, "role": [{**TALKS["role"][0], "num": 3, "vcores": 1}]}))
    b.wait("It would wait: role worker: ")
    b.wait("It would start now with")
    cluster.kill(filling)
    cluster.wait_job(filling)
    b.fill("textarea", json.dumps(TALKS))
    b.wait("It would start now: 2 executors.")
    b.press("Submit")
    b.wait("2 executors run")
    job = int(b.run("return location.hash").split("/")[-1])
    assert cluster.status(job)["owner"] == 1000
    b.press("Logs")
    b.wait("<img src=x onerror=alert(1)> ‹202E›turned")
    b.wait(lambda: "30%" in b.text() and "10%" not in b.text(), what="the last state of a bar")
    assert b.run("return document.querySelector('.log .ansi-red').textContent") == "red"
    b.press("Kill")
    b.fill("dialog[open] input", "seen enough")
    b.press("Kill", within="dialog[open]")
    b.wait("Killed after")
    b.wait("seen enough")
    assert cluster.status(job)["state"] == "KILLED"
    assert b.complaints() == []


def test_every_view_in_both_colours_and_narrow(cluster, browse):
    b = browse()
    failed, job = cluster.submit(FAILS), cluster.submit(TALKS)
    waits = cluster.submit({"name": "waits", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "true"}], "after": [f"{job}:ok"]})
    array = cluster.submit({"name": "many", "array": "0-1", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "true"}]})
    cluster.wait_job(failed)
    cluster.wait_job(array)
    cluster.wait_state(job, "RUNNING")
    views = {"#/": "All 3 hosts are ready", "#/jobs?all=1": "fails", "#/queue": "waits", "#/hosts": "n3", "#/host/n1": "About it", "#/usage": "Usage", "#/submit": "Submit a job",
             f"#/job/{failed}": "ValueError: bad shard 17", f"#/job/{job}": "worker/1", f"#/job/{waits}/why": "Pool", f"#/job/{job}/timeline": "2 attempts",
             f"#/job/{job}/inside": "Look now", f"#/job/{job}/events": "submitted", f"#/job/{array}": "2 elements: 2 succeeded", f"#/jobs?array={array}&all=1": f"{array}[1]", "#/jobs?user=ml&all=1": "talks", "#/job/x": "no such job", "#/savepoints": "There is none",
             f"#/job/{job}/config": '"talks"', f"#/job/{job}/logs": "Live", f"#/job/{job}/metrics": "10 minutes", f"#/job/{job}/training": "have said nothing", "#/bla": "no such page"}
    grounds = set()
    for scheme, width in (("light", WINDOW[0]), ("dark", WINDOW[0]), ("light", 400)):
        b.scheme(scheme)
        b.window(width, WINDOW[1])
        for address, text in views.items():
            b.open(address)
            b.wait(text)
            assert b.unnamed() == [], (address, scheme)
            # What is wide scrolls in itself; the page does not.
            assert b.run("return document.documentElement.scrollWidth") <= width, (address, width)
        # Not only axes are drawn.
        b.open(f"#/job/{job}/metrics")
        b.wait("Processors in use", timeout=40)
        b.wait(lambda: b.run(DRAWN) > 20, what="a line of a plot")
        grounds.add(b.run("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    b.scheme("light")
    b.window(*WINDOW)
    cluster.kill(waits, job)
    # What was measured is there behind the end.
    b.open(f"#/job/{job}/metrics")
    b.wait("before the end of its latest attempt")
    b.wait(lambda: b.run(DRAWN) > 20, what="a line of a plot of a job that has ended")
    assert b.unnamed() == [] and b.complaints() == []


def test_what_would_start_it_is_a_button(cluster, browse):
    job = cluster.submit({"name": "too-many", "waitForHosts": True, "role": [{"roleName": "worker", "num": 4, "vcores": 1.9, "memoryMb": 32, "command": "exec sleep 600"}]})
    b = browse()
    b.open(f"#/job/{job}/why")
    b.wait("worker vcores 1 (instead of 1.9)")
    b.wait("it is number 1 in the queue")
    b.run("[...document.querySelectorAll('li')].find(e => e.textContent.includes('vcores')).querySelector('button').click()")
    b.press("Change it so", within="dialog[open]")
    b.wait("4 executors run")
    assert cluster.status(job)["version"] == 2
    cluster.kill(job)


def test_inside(cluster, browse):
    job = cluster.submit({"name": "inside", "role": [{"roleName": "worker", "num": 2, "vcores": 0.2, "memoryMb": 64,
                                                      "command": "while :; do cat /etc/passwd > /dev/null; sleep 0.1; done"}]})
    cluster.wait_state(job, "RUNNING")
    b = browse()
    b.open(f"#/job/{job}/inside?role=worker&index=1")
    b.press("Look now")
    b.wait("Waits for")
    b.wait(lambda: b.run("return document.querySelectorAll('tbody tr').length") >= 1, what="a thread")
    b.press("Reads, writes, sends")
    b.wait("times,")
    assert b.run("return location.hash") == f"#/job/{job}/inside?role=worker&index=1&kind=io"
    assert b.complaints() == []
    cluster.kill(job)


def test_filters_are_in_the_address(cluster, browse):
    b = browse()
    b.open("#/jobs?state=FAILED&name=fails")
    b.wait("fails")
    assert "talks" not in b.text()
    b.press("Time")
    assert b.run("return location.hash") == "#/jobs?state=FAILED&name=fails&sort=time"
    assert b.complaints() == []


def test_a_savepoint_and_a_job_that_goes_on_from_it(cluster, browse, shared_dir):
    (shared_dir / "page").mkdir(exist_ok=True)
    for name in ("lines.txt", "more.txt"):
        (shared_dir / "page" / name).write_text("".join(f"{i}\n" for i in range(1000)))
    job = cluster.submit({"name": "fed", "inputManager": {"fileConfig": {"inputs": [{"spec": {"pathPattern": "/shared/page/lines.txt", "textInput": {}}}]}},
                          "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 32, "inputPolicy": "STREAMING", "command": "while read -r line; do sleep 1; done"}]})
    cluster.wait_state(job, "RUNNING")
    b = browse()
    b.open(f"#/job/{job}/data")
    b.press("Add a source")
    b.fill("dialog[open] textarea", "{ no json")
    b.press("Add a source", within="dialog[open]")
    b.wait("This is no JSON")
    b.fill("dialog[open] textarea", json.dumps({"name": "more-lines", "spec": {"pathPattern": "/shared/page/more*.txt", "textInput": {}}}))
    b.press("Add a source", within="dialog[open]")
    b.wait("more-lines")
    b.open(f"#/job/{job}/savepoints")
    b.wait("There is none")
    b.press("Savepoint")
    b.fill("dialog[open] input", "before-lunch")
    b.press("Savepoint", within="dialog[open]")
    b.wait("before-lunch")
    assert b.unnamed() == []
    b.press("Go on from it")
    b.wait("Its data goes on from savepoint before-lunch.")
    b.wait("Goes on from")
    b.press("Submit")
    b.wait("1 executor runs")
    more = int(b.run("return location.hash").split("/")[-1])
    assert "before-lunch" in json.dumps(cluster.status(more)) + json.dumps(cluster.events(more))
    cluster.kill(job, more)
    b.open("#/savepoints")
    b.press("Delete")
    b.press("Delete", within="dialog[open]")
    b.wait("There is none")
    assert cluster.primusctl_json("savepoint", "list") == [] and b.complaints() == []


def test_what_is_wanted_seldom(cluster, browse):
    job = cluster.submit(TALKS)
    cluster.wait_state(job, "RUNNING")
    b = browse()
    b.open(f"#/job/{job}")
    b.wait("2 executors run")
    more = "document.querySelector('.more summary').click()"
    for width in (400, WINDOW[0]):
        b.window(width, WINDOW[1])
        b.run(more)
        b.wait(lambda: b.run("return document.querySelector('.more .buttons').checkVisibility()"), what="what is behind More")
        assert b.unnamed() == [] and b.run("return document.documentElement.scrollWidth") <= width
        b.run(more)
    b.run(more)
    b.press("Add a role")
    b.fill("dialog[open] textarea", json.dumps({"roleName": "eval", "num": 1, "vcores": 0.1, "memoryMb": 32, "command": "exec sleep 600"}))
    b.press("Add a role", within="dialog[open]")
    b.wait("3 executors run")
    b.press("Restart executors")
    b.fill("dialog[open] input[name=role]", "worker")
    b.fill("dialog[open] input[name=index]", "1")
    b.press("Restart executors", within="dialog[open]")
    cluster.wait_for(lambda: {(e["role"], e["index"]): e["attempt"] for e in cluster.status(job)["executors"]} == {("worker", 0): 1, ("worker", 1): 2, ("eval", 0): 1},
                     what="that worker/1 alone is started again")
    b.press("Remove a role")
    b.fill("dialog[open] input", "eval")
    b.press("Remove a role", within="dialog[open]")
    b.wait("2 executors run")
    b.press("End as a success")
    b.press("End as a success", within="dialog[open]")
    cluster.wait_for(lambda: cluster.status(job)["state"] == "SUCCEEDED", what="its success")
    assert b.complaints() == []


def test_the_administrators_say_something(cluster, browse):
    b = browse()
    b.open("#/queue")
    b.wait("live")
    assert "manage-nodes" in cluster.run("n1", "primusctl", "banner", "mine", user="ml").stderr
    for text in ("two\nlines", "x" * 501):
        assert "one line of at most 500 bytes" in cluster.run("n1", "primusctl", "banner", text).stderr
    cluster.primusctl("banner", "maintenance <b>tonight</b> at 20:00 \u202e", user="root")
    b.open("#/hosts")
    b.wait("maintenance <b>tonight</b> at 20:00 ‹202E›", timeout=40)
    assert b.unnamed() == [] and b.complaints() == []
    cluster.kill9("n1", "primus-masterd")
    cluster.wait_nodes()
    assert "maintenance <b>tonight</b> at 20:00" in cluster.primusctl("banner", user="eve")
    cluster.primusctl("banner", "", user="root")
    assert cluster.primusctl("banner", user="eve") == ""
    b.wait(lambda: "tonight" not in b.text(), timeout=40, what="that it goes")


def test_labels_and_windows_of_a_host(cluster, browse):
    with cluster.granted("manage-nodes", "ml"):
        b = browse()
        b.open("#/host/n3")
        b.wait("registered (")
        b.press("Labels")
        b.fill("dialog[open] input", "rack=b7 zone=x")
        b.press("Labels", within="dialog[open]")
        b.wait("rack=b7 zone=x")
        b.press("Labels")
        b.fill("dialog[open] input", "rack- zone-")
        b.press("Labels", within="dialog[open]")
        b.wait(lambda: "rack=b7" not in b.text(), what="that the labels go")
        b.press("Set a window")
        assert b.run("return document.querySelector('dialog[open] input[name=from]').required")
        b.fill("dialog[open] input[name=from]", "2040-02-03T04:05")
        b.fill("dialog[open] input[name=to]", "2040-02-03T06:05")
        b.fill("dialog[open] input[name=reason]", "new disks")
        b.press("Set a window", within="dialog[open]")
        b.wait("new disks")
        (window,) = cluster.primusctl_json("node", "show", "n3")["windows"]
        assert window["to"] - window["from"] == 2 * 3600 * 10**6
        b.press("Cancel this window")
        b.press("Cancel this window", within="dialog[open]")
        b.wait("No window is set")
        assert b.unnamed() == [] and b.complaints() == []


def test_another_user(cluster, browse):
    job = cluster.submit(TALKS)
    cluster.wait_state(job, "RUNNING")
    eve = browse("eve")
    eve.open("#/jobs")
    eve.wait("talks")
    eve.open(f"#/job/{job}")
    eve.wait("You may not")
    assert "worker" not in eve.text()
    b = browse()
    b.open("#/host/n2")
    b.press("Cordon")
    b.press("Cordon", within="dialog[open]")
    b.wait("org.primus.manage-nodes")
    assert cluster.node_states()["n2"] == "READY"
    b.press("Cancel", within="dialog[open]")
    cluster.kill(job)


def test_it_goes_on_by_itself(cluster, browse):
    """The gateway and the master are killed while the page is open; nobody touches it."""
    b = browse()
    b.open("#/")
    b.wait("live")
    b.run("window.untouched = true")
    cluster.exec("n1", "kill", "-9", str(b.tunnel.web.pid))
    cluster.kill9("n1", "primus-masterd")
    cluster.wait_nodes()
    job = cluster.submit({**TALKS, "name": "after-the-kill"})
    b.wait("after-the-kill", timeout=40)
    b.wait("live")
    cluster.kill(job)
    b.wait(lambda: "after-the-kill" not in b.text(), what="that the job goes")
    assert b.run("return window.untouched")


COUNTED = "window.streams = []; window.EventSource = class extends EventSource { constructor(...a) { super(...a); window.streams.push(this); } };"


def test_no_stream_while_nobody_looks(cluster, browse):
    b = browse()
    script = b.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})["identifier"]
    try:
        b.driver.get("about:blank")
        b.open("#/")
        b.wait("live")
        streams = "return window.streams.map(s => s.readyState).filter(s => s !== 2).length"
        assert b.run(streams) == 1
        b.driver.minimize_window()
        b.wait(lambda: b.run("return document.visibilityState") == "hidden" and b.run(streams) == 0, what="that a page that nobody sees closes its stream")
        job = cluster.submit({**TALKS, "name": "while-away"})
        cluster.wait_state(job, "RUNNING")
        assert "while-away" not in b.text()
    finally:
        b.driver.set_window_rect(0, 0, *WINDOW)
        b.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script})
    b.wait("while-away")
    assert b.run(streams) == 1
    cluster.kill(job)
    b.wait(lambda: "while-away" not in b.text(), what="that the job goes")
    assert b.complaints() == []


def test_everybodys_page(cluster, tmp_path):
    """It shows what everybody may see, and has nothing that could be pressed in vain."""
    job = cluster.submit(TALKS)
    cluster.wait_state(job, "RUNNING")
    with contextlib.closing(Browser(Everybody(cluster), tmp_path / "profile")) as b:
        for address, text in (("#/", "All 3 hosts are ready"), ("#/jobs", "talks"), ("#/queue", "Queue"), ("#/host/n1", "About it"), ("#/usage", "Usage"), (f"#/job/{job}", "visible to its owner only")):
            b.open(address)
            b.wait(text)
            assert b.run("return document.querySelectorAll('main dialog, main input[aria-label^=Choose]').length") == 0, address
        assert "Submit" not in b.run("return document.querySelector('header').innerText") and "to look at" in b.text()
        assert b.complaints() == []
    cluster.kill(job)
    cluster.exec("n1", "systemctl", "stop", "primus-web.socket", "primus-web.service")


def test_trials_of_a_search(cluster, browse):
    """Best, rungs, a plot for each parameter that there is more than one value of, and a row for each trial; what was given is text."""
    trainer = "from primus import trial; [trial.report_validation(n, loss=trial.params['lr'] + 1 / n) for n in range(1, 10)]; trial.flush()"
    job = cluster.submit({"name": "looks", "search": {"method": "asha", "metric": "loss", "maxTrials": 12, "maxConcurrent": 4, "maxTime": 9, "divisor": 3, "maxRungs": 3, "seed": 5, "space": {
        "lr": {"type": "log", "minval": -5, "maxval": 0}, "net": {"kind": {"type": "categorical", "vals": ["<b>a</b>", "mlp\u202e"]}}, "same": 7}},
        "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 48, "argv": ["python3", "-c", trainer]}]})
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = cluster.primusctl_json("search", "show", str(job))
    b = browse()
    b.open(f"#/job/{job}")
    b.press("Trials")
    b.wait(f"The best is trial {found['best']}: loss")
    b.wait("Rung 2, at 9")
    b.wait("What the parameters did")
    b.wait("How they went")
    assert b.run("return [...document.querySelectorAll('.chart figcaption')].map(e => e.textContent)") == ["loss by step", "lr (by orders)", "net.kind", "All of them beside each other"]
    b.wait(lambda: b.run("return document.querySelectorAll('.chart table.unseen th').length") == 13, what="a curve of each trial")
    b.wait(lambda: b.run(DRAWN) > 20, what="the trials' curves")
    assert b.run("return document.querySelectorAll('.charts:not(:has(canvas)) .chart:first-child circle').length") == 12 and b.run("return document.querySelectorAll('.chart circle.best').length") == 2
    assert b.run("return document.querySelectorAll('.parallel path').length") == 12 and b.run("return document.querySelectorAll('.parallel path.best').length") == 1
    assert b.run("return [...document.querySelector('.parallel path.best').getAttribute('d').matchAll(/[ML]/g)].length") == 3
    rows = b.run("return [...document.querySelectorAll('main table:not(.unseen, .u-legend) tbody tr')].map(r => r.innerText)")
    assert len(rows) == 12 and rows[0].split()[0] == str(found["best"]) and "net.kind=" in rows[0] and "same=7" in rows[0]
    assert "<b>a</b>" in b.text() and "mlp‹202E›" in b.text()
    b.press("More trials")
    b.fill("dialog[open] input[name=trials]", "14")
    b.press("More trials", within="dialog[open]")
    b.wait("asha: 14 trials of 14 made", timeout=40)
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    found = cluster.primusctl_json("search", "show", str(job))
    b.wait(f"The best is trial {found['best']}: loss")
    assert b.complaints() == []
    b.run("document.querySelector('main table:not(.unseen, .u-legend) tbody tr a').click()")
    b.wait(f"Element {found['best']} of job {job}")


TRAINS = """
import time
from primus import metrics
for step in range(60):
    metrics.report(step, loss=1 / (step + 1), **{"val/accuracy": step / 60, "nothing": float("nan")})
metrics.flush()
time.sleep(%d)
"""


def test_checkpoints_and_models(cluster, browse, shared_dir):
    """What trials have saved: pinned, made a model, and the rest removed; another user sees none of it."""
    path = shared_dir / "page-kept"
    path.mkdir()
    path.chmod(0o777)
    trainer = ("from primus import checkpoints, trial\nkept = checkpoints.Store(f'/shared/page-kept/t{trial.number}', keep=100, metric='loss')\n"
               "for step in range(1, 4):\n    with kept.save(step, loss=trial.params['x'] / step) as p:\n        (p / 'model').write_bytes(b'm' * 1000)\n"
               "    trial.report_validation(step, loss=trial.params['x'] / step)")
    job = cluster.submit({"name": "kept", "search": {"method": "list", "metric": "loss", "points": [{"x": 6}, {"x": 3}]},
                          "role": [{"roleName": "worker", "num": 1, "vcores": 0.1, "memoryMb": 64, "argv": ["python3", "-c", trainer]}]})
    cluster.wait_state(job, "SUCCEEDED", timeout=60)
    cluster.wait_for(lambda: len(cluster.primusctl_json("checkpoints", "list", str(job))) == 6, 20, "six checkpoints")
    b = browse()
    b.open(f"#/job/{job}")
    b.press("Checkpoints")
    b.wait("/shared/page-kept/t1/step-")
    b.run("[...document.querySelectorAll('button.sort')].find(x => x.textContent.startsWith('Metric')).click()")
    rows = "return [...document.querySelectorAll('main tbody tr')].map(r => r.innerText)"
    b.wait(lambda: "loss 1" in b.run(rows)[0], what="the best first")
    b.press("Pin")
    b.press("Pin", within="dialog[open]")
    b.wait("pinned")
    b.press("Make it a model")
    b.fill("dialog[open] input[name=name]", "no such name")
    b.press("Make it a model", within="dialog[open]")
    b.wait(lambda: b.run("return !!document.querySelector('dialog[open] .problem')"), what="what is wrong with it")
    b.fill("dialog[open] input[name=name]", "page-model")
    b.fill("dialog[open] input[name=note]", "<b>bold</b>")
    b.press("Make it a model", within="dialog[open]")
    b.wait("page-model@1")
    b.wait("<b>bold</b>")
    assert b.unnamed() == []
    for width, scheme in ((1280, "light"), (400, "dark")):
        b.window(width, 900)
        b.scheme(scheme)
        b.open("#/models")
        b.wait("page-model@1")
        assert b.run("return document.documentElement.scrollWidth") <= width
        b.open(f"#/job/{job}/checkpoints")
        b.wait("pinned")
        assert b.run("return document.documentElement.scrollWidth") <= width and b.unnamed() == []
    b.window(*WINDOW)
    b.scheme("light")
    b.press("Clean up")
    b.fill("dialog[open] input[name=trialLatest]", "0")
    b.press("Clean up", within="dialog[open]")
    b.wait(lambda: len(b.run(rows)) == 1, what="the best alone")
    assert len(list(path.glob("t*/step-*"))) == 1
    b.open("#/models")
    b.press("Archive")
    b.press("Archive", within="dialog[open]")
    b.wait("There is none. A job's checkpoint becomes one")
    b.run("document.querySelector('.filters input').click()")
    b.wait("page-model@1 archived")
    eve = browse("eve")
    for where in ("#/models?archived=1", "#/checkpoints"):
        eve.open(where)
        eve.wait("There is none" if "models" in where else "None is known")
    assert b.complaints() == [] and eve.complaints() == []


def test_training(cluster, browse):
    """A curve for each name, while the job runs and behind its end, and beside another job's."""
    role = {"roleName": "w", "num": 2, "vcores": 0.1, "memoryMb": 48}
    first = cluster.submit({"name": "before", "role": [{**role, "argv": ["python3", "-c", TRAINS % 0]}]})
    assert cluster.wait_job(first) == 0
    job = cluster.submit({"name": "trains", "role": [{**role, "num": 1, "argv": ["python3", "-c", TRAINS % 600]}]})
    b = browse()
    b.open(f"#/job/{job}")
    b.press("Training")
    b.wait("val/accuracy", timeout=30)
    b.wait(lambda: b.run(DRAWN) > 20, what="a curve")
    rows = b.run("return [...document.querySelectorAll('main table:not(.unseen, .u-legend) tbody tr')].map(r => r.innerText.split(/\\s+/).slice(0, 5).join(' '))")
    assert rows == ["loss w 1 59 0.0166667", "nothing w 1 59 –", "val/accuracy w 1 59 0.983333"]
    b.run("document.querySelector('input[name=with]').value = arguments[0]", f"{first}, ")
    b.press("Compare")
    b.wait(lambda: b.run("return [...document.querySelectorAll('.chart[aria-label=loss] table.unseen th')].map(e => e.textContent)")
           == ["Step", f"{job} w/0", f"{first} w/0", f"{first} w/1"], what="the curves of both")
    b.press("By orders of size")
    b.wait(lambda: b.run(DRAWN) > 20, what="a curve by orders of size")
    assert b.unnamed() == []
    b.window(400, WINDOW[1])
    b.wait(lambda: b.run("return document.documentElement.scrollWidth") <= 400, what="charts that are drawn anew, as wide as the window")
    b.window(*WINDOW)
    cluster.kill(job)
    cluster.wait_job(job)
    b.open(f"#/job/{first}/training")
    b.wait("val/accuracy")
    assert b.complaints() == []


def test_a_job_that_a_job_submitted(cluster, browse):
    """It says whose it is, with a way there, and where it came from."""
    script = "primusctl run --detach --with-parent --name=child --mem=64M --cpus=0.1 -- sleep 300; exec sleep 300"
    parent = cluster.submit({"name": "parent", "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 128, "argv": ["sh", "-c", script]}]})
    cluster.wait_for(lambda: any(j.get("parent") == parent for j in cluster.primusctl_json("list")), 30, "the child")
    (child,) = [j["job"] for j in cluster.primusctl_json("list") if j.get("parent") == parent]
    cluster.wait_state(child, "RUNNING")
    b = browse()
    b.open(f"#/job/{child}/events")
    b.wait(f"Submitted from inside job {parent}, with which it ends.")
    b.wait(f"from inside job {parent}, on host n")
    b.press(f"job {parent}")
    b.wait(lambda: "Submitted from inside" not in b.text() and "parent" in b.text(), what="the parent")
    cluster.kill(parent)
    b.open(f"#/job/{child}")
    b.wait(f"its parent, job {parent}, has ended")
    assert b.complaints() == []


PROVIDER = """[Provider]
Max=1
[Shape box]
Cpus=2
Memory=256M
Labels=boxed
"""
UP = "#!/bin/sh\ncat > /dev/null\necho '{\"id\": \"i-1\"}'\n"


def test_hosts_by_demand(cluster, browse):
    """A host that does not come: the job says that it waits for it, and the hosts' page has it."""
    where = "/etc/primus/providers/slow"
    cluster.exec("n1", "sh", "-c", f"mkdir -p {where}; cat > {where}/up; printf '#!/bin/sh\\nexit 0\\n' > {where}/list; cp {where}/list {where}/down; chmod 755 {where}/*", input=UP)
    cluster.exec("n1", "sh", "-c", f"cat > {where}/provider.conf; systemctl reload primus-masterd", input=PROVIDER)
    job = cluster.submit({"name": "boxed", "waitForHosts": True, "role": [{"roleName": "w", "num": 1, "vcores": 0.1, "memoryMb": 32, "constraints": ["boxed"], "command": "true"}]})
    try:
        b = browse()
        b.open(f"#/job/{job}")
        b.wait("waits for slow-1")
        b.open("#/hosts")
        b.wait("Hosts by demand")
        b.wait("STARTING")
        assert "slow-1" in b.text() and b.complaints() == []
    finally:
        cluster.kill(job)
        cluster.exec("n1", "primusctl", "provider", "down", "slow-1")
        cluster.wait_for(lambda: cluster.exec("n1", "primusctl", "provider", "hosts", "--json").strip() == "[]", 40, "it is given back")
        cluster.exec("n1", "sh", "-c", f"rm -r {where}; systemctl reload primus-masterd")
