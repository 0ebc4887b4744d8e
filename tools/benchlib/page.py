# SPDX-License-Identifier: Apache-2.0
"""bench page: how long the page takes in a browser, and how long it keeps one from scrolling, beside many jobs and a large one."""
import os
import statistics
import sys
import tempfile
import time

JOBS, EXECUTORS, ROUNDS, WATCHED_SEC = 970, 2000, 9, 10
RUNS = {"name": "runs", "role": [{"roleName": "worker", "num": 2, "vcores": 0.1, "memoryMb": 32, "command": "exec sleep 3600"}]}
WAITS = {"name": "waits", "waitForHosts": True, "role": [{"roleName": "worker", "num": 4, "vcores": 1.9, "memoryMb": 64, "command": "true"}]}
LARGE = {"name": "large", "waitForHosts": True, "role": [{"roleName": "worker", "num": EXECUTORS, "vcores": 0.1, "memoryMb": 64, "command": "true"}]}
# In each document from its beginning: what blocked it for longer than 50 ms.
OBSERVE = "window.blocked = []; new PerformanceObserver(l => window.blocked.push(...l.getEntries().map(e => e.duration))).observe({ type: 'longtask', buffered: true });"


class Look:
    def __init__(self, browser):
        self.browser = browser
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OBSERVE})
        browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})

    def opened(self, address, there):
        """Milliseconds from the address to the first paint, and until there, a condition in JavaScript, holds."""
        self.browser.driver.get("about:blank")
        self.browser.open(address)
        until = self.browser.driver.execute_async_script(f"""const done = arguments[0], look = () => {{
            if ({there}) done(performance.now()); else requestAnimationFrame(look); }}; look();""")
        return self.browser.run("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"), until

    def median(self, address, there):
        times = [self.opened(address, there) for _ in range(ROUNDS)]
        return [statistics.median(column) for column in zip(*times)]

    def longest(self, seconds):
        """The longest that it was blocked while it is only looked at."""
        self.browser.run("window.blocked.length = 0")
        time.sleep(seconds)
        return max(self.browser.run("return window.blocked"), default=0)


def bench(source, build, report, say):
    sys.path.insert(0, os.path.join(source, "tests/cluster"))
    from browser import Browser
    from sandbox import Cluster, cluster_name
    from web import Web
    with Cluster(cluster_name(), 2, build=build) as cluster:
        cluster.wait_nodes()
        web = Web(cluster)
        runs = cluster.submit(RUNS)
        cluster.wait_state(runs, "RUNNING")
        say(f"submitting {JOBS} jobs and one of {EXECUTORS} executors")
        for _ in range(JOBS):
            web.send("POST", "jobs", WAITS)
        large = web.send("POST", "jobs", LARGE)[1]["job"]
        with tempfile.TemporaryDirectory() as profile:
            browser = Browser(web, profile)
            try:
                look = Look(browser)
                rows = "document.querySelectorAll('tbody tr').length"
                paint, whole = look.median(f"#/job/{runs}", f"{rows} === 2")
                ok = report("page", "first paint of a job's page", paint, "ms", goal=("value", "<=", 300))
                ok &= report("page", "until its executors stand there", whole, "ms")
                paint, whole = look.median("#/jobs", f"{rows} >= 50")
                ok &= report("page", f"until the list of {JOBS} jobs stands there", whole, "ms")
                ok &= report("page", "longest block while it is looked at", look.longest(WATCHED_SEC), "ms", goal=("value", "<=", 100))
                paint, whole = look.median(f"#/job/{large}", f"{rows} >= 200")
                ok &= report("page", f"until a job of {EXECUTORS} executors stands there, the first 200 of them", whole, "ms")
                ok &= report("page", "longest block while it is looked at, large job", look.longest(WATCHED_SEC), "ms", goal=("value", "<=", 100))
                paint, whole = look.median(f"#/job/{large}?show={EXECUTORS}", f"{rows} >= {EXECUTORS}")
                ok &= report("page", f"until all {EXECUTORS} stand there", whole, "ms")
                return ok & report("page", "longest block while it is looked at, all of them", look.longest(WATCHED_SEC), "ms")
            finally:
                browser.close()
