# SPDX-License-Identifier: Apache-2.0
"""What tests of searches share."""
import os
import random
import time

from sandbox import AGENTD, MASTERD


def shown(cluster, job):
    return cluster.primusctl_json("search", "show", str(job))


def consistent(found):
    """What the rows say is what the rules say: who is ahead went on, everyone ended, and the best is the best."""
    rows = found["list"]
    assert [r["trial"] for r in rows] == list(range(len(rows))) and found["made"] == len(rows)
    assert len({r["job"] for r in rows}) == len(rows) and 0 not in {r["job"] for r in rows}
    done = [r for r in rows if r["state"] == "succeeded"]
    best = min((r for r in done if r["best"] is not None), key=lambda r: r["best"])
    assert (found["best"], found["bestMetric"], found["bestStep"]) == (best["trial"], best["best"], best["bestStep"])
    for rung in found["rungs"]:
        assert rung["trials"] == sum(r["bracket"] == rung["bracket"] and r["rungs"] > rung["rung"] for r in rows)
    return rows


def kill_rounds(cluster, killed, behind=lambda: None):
    """Four times, after a while: the master, all agents, or both ("masterd", "agentd", "both") are killed and come back; then
    behind(). With other PRIMUS_SEARCH_SEEDs a campaign."""
    draw = random.Random(killed + os.environ.get("PRIMUS_SEARCH_SEED", ""))
    for _ in range(4):
        time.sleep(draw.random() * 1.5)
        if killed != "agentd":
            cluster.kill9_now("n1", MASTERD)
        if killed != "masterd":
            for node in ("n1", "n2", "n3"):
                cluster.kill9_now(node, AGENTD)
        cluster.wait_nodes()
        behind()


def same_to_a_new_master(cluster, job):
    before = shown(cluster, job)
    cluster.kill9("n1", MASTERD)
    cluster.wait_nodes()
    assert shown(cluster, job) == before
    assert "told again, decide the same" in cluster.primusctl("search", "replay", str(job))
