# SPDX-License-Identifier: Apache-2.0
"""What tests of searches share."""


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
