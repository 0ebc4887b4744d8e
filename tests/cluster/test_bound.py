# SPDX-License-Identifier: Apache-2.0
"""Data-bound or compute-bound: what status says of both sides, against a trainer that has a clock."""
import json

import pytest

# Busy for a tenth of a second now and then, in a rhythm that leaves data in the ring or pipe at the end, too; it counts what lies between
# its reads as its own time, and the reads that took long as waits.
TRAINER = """
import json, os, sys, time
import primus
clock = time.monotonic
# Between its start and its first read data may lie there already.
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
startup = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
if sys.argv[1] == "stdin":
    records = iter(lambda: os.read(0, 4096), b"")
else:
    records = primus.records()
waited = busy = 0.0
n, end = 0, clock()
while True:
    begin = clock()
    if n:
        busy += begin - end
    record = next(records, None)
    end = clock()
    waited += end - begin
    if record is None:
        break
    n += 1
    if n % int(sys.argv[2]) == 0:
        time.sleep(0.1)
print(json.dumps({"n": n, "busy": busy, "waited": waited, "startup": startup}), flush=True)
"""


@pytest.mark.parametrize("mode, lines, every", [("ring", 40000, 1000), ("descriptor", 40000, 1000), ("stdin", 16000, 5)])
def test_both_sides(cluster, shared_dir, mode, lines, every):
    directory = shared_dir / "bound"
    if not directory.exists():
        directory.mkdir()
        directory.chmod(0o755)
        (directory / "trainer.py").write_text(TRAINER)
    data = directory / mode
    data.mkdir()
    data.chmod(0o755)
    for part in range(2):
        (data / f"{part}.txt").write_text("".join(f"{part} {i} something to read\n" for i in range(lines // 2)))
    number = cluster.submit({
        "name": "bound",
        "role": [{"roleName": "reader", "num": 1, "inputPolicy": "STREAMING", "vcores": 0, "memoryMb": 32,
                  "command": f"exec python3 /shared/bound/trainer.py {mode} {every}"}],
        "inputManager": {"fileConfig": {"inputs": [{"name": "lines", "spec": {"pathPattern": f"/shared/bound/{mode}", "textInput": {}, "split": "64K"}}]}},
        "input": {"poll": "1s", "mode": mode},
    })
    log = lambda: cluster.primusctl("logs", str(number))
    # In the middle nothing comes for a while.
    row = lambda: cluster.primusctl_json("status", str(number))["executors"][0]
    cluster.wait_for(lambda: row().get("trainerWaitUsec", 0) > 0, 60, "the first data")
    cluster.primusctl("suspend", "--data", str(number))
    cluster.wait_for(lambda: row()["dataWaitUsec"] > 1_000_000, 30, "a trainer that waits")
    cluster.primusctl("resume", str(number))
    assert cluster.wait_job(number) == 0, log()
    knows = json.loads(log().splitlines()[-1])
    shown = {"busy": row()["trainerWaitUsec"] / 1e6, "waited": row()["dataWaitUsec"] / 1e6}
    print(f"{mode}: the trainer knows {knows}, shown is {shown}")
    for side, more in (("busy", knows["startup"]), ("waited", 0)):
        off = 0.02 * knows[side] + 0.15
        assert -off <= shown[side] - knows[side] <= off + more, (side, knows, shown)
