# SPDX-License-Identifier: Apache-2.0
"""A cluster in which every value that masterd tells has a place, at fixed times: what primusctl makes of each is compared whole."""
import json

from fakemaster import Job

T = 1_700_000_000_000_000
MIB, GIB = 1 << 20, 1 << 30
MOST = 2**64 - 1
SPEC = json.dumps({"name": "digits", "role": [{"roleName": "ps", "num": 1}, {"roleName": "worker", "num": 3}]})


def add(master, spec=SPEC, **times):
    number = len(master.jobs) + 1
    job = master.jobs[number] = Job(master, number, spec, {})
    job.owner = 0
    job.times = {"SubmittedAt": T + number, "StartedAt": 0, "EndedAt": 0, **times}
    return job


def executor(job, role, index, state, **more):
    job.executors[role, index].update(attempt=1, state=state, node="n1", started=T + 5_000_000 + index, more=more)


def source(name, kind, **more):
    types = {"waitingFor": "s", "scanned": "b", "rate": "d", "recordRate": "d"}
    return {"name": ("s", name), "kind": ("s", kind), **{key: (types.get(key, "t"), value) for key, value in more.items()}}


VERDICTS = [
    {"kind": ("s", "straggler"), "role": ("s", "worker"), "index": ("u", 2), "node": ("s", "n1"), "text": ("s", "half as fast as the others"),
     "action": ("s", "restart"), "since": ("t", T), "found": ("t", T + 1), "acted": ("t", T + 2), "all": ("b", False), "numbers": ("a{st}", {"rate": 5, "median": 10})},
    {"kind": ("s", "input"), "text": ("s", "all wait for data"), "since": ("t", T), "found": ("t", T + 1), "all": ("b", True), "numbers": ("a{st}", {})}]


def running(master):
    """All that a job that runs can say."""
    job = add(master, StartedAt=T + 4_000_000)
    job.state_now = "RUNNING"
    job.place = {"pool": ("s", "prod"), "priority": ("i", -5), "visible": ("s", "group"), "more": ("u", 1)}
    executor(job, "ps", 0, "RUNNING", memory=("t", 77 * MIB), ports=("au", [23000, 23001]), gpus=("as", ["GPU-1", "GPU-2"]), cpu=("t", 1234567), restarts=("u", 2))
    executor(job, "worker", 0, "FAILED", result=("s", "exit-code"), status=("i", 3), memoryPeak=("t", 512 * MIB), readBytes=("t", 100), writeBytes=("t", 200))
    executor(job, "worker", 1, "FAILED", result=("s", "signal"), status=("i", 11))
    executor(job, "worker", 2, "RUNNING", dataTasks=("u", 3), dataWait=("t", 90_500_000), trainerWait=("t", 1_200_000), dataIdle=("b", True), later=("u", 7))
    job.executors["worker", 0]["ended"] = T + 9_000_000
    job.status = {
        "reason": ("s", "waits for uid 0"), "failsAt": ("t", T + 7_200_000_000), "avoids": ("a(st)", [("n3", MOST), ("n4", T + 1)]), "firstError": ("s", "Traceback\nValueError: \x07"), "errorComing": ("b", True), "visible": ("s", "group"),
        "visibleTo": ("s", "visible to members of group lab"), "lockstep": ("s", "elastic"), "cwd": ("ay", b"/home/a\xff"), "warnings": ("as", ["old", "slow"]),
        "verdicts": ("aa{sv}", VERDICTS), "later": ("a{sv}", {"x": ("u", 1)}),
        "data": ("a{sv}", {
            "tasks": ("t", 130), "done": ("t", 42), "failed": ("t", 1), "leased": ("t", 3), "bytes": ("t", 8 * GIB), "read": ("t", 3 * GIB), "acked": ("t", 2 * GIB),
            "records": ("t", 1_234_567), "scanned": ("b", False), "waiting": ("u", 1), "sources": ("aa{sv}", [
                source("logs", "files", files=10, tasks=120, done=42, failed=1, leased=3, bytes=8 * GIB, acked=2 * GIB, records=1_200_000, rate=12.5 * MIB,
                       recordRate=10_250.0, eta=512_000_000, scanned=True),
                source("hourly", "files", tasks=10, done=10, eta=MOST, scanned=False, waitingFor="/data/_SUCCESS"),
                source("clicks", "kafka")])})}
    job.events = [(1, T, "state", "", 0, "SUBMITTED"), (2, T + 1_000_000, "executor", "worker", 2, "worker/2 RUNNING on n1"), (3, T + 2_000_000, "note", "ps", 0, "evil\x1b[2J")]
    job.rates = {("worker", 2): {"cpu": 1.5, "memory": float(GIB), "read": 1e6}, ("ps", 0): {"cpu": 0.25}}
    job.at = T + 10_000_000
    job.history = {"cpuShare": [0.1, float("nan"), 1.0]}
    job.verdicts = {("worker", 2): ["hung", "slow"]}
    job.tasks = [(7, "LEASED", "logs", b"/data/a", 0, 64 * MIB, 16 * MIB, 1000, 0, "worker/2", "", {"splitOff": ("b", False), "epoch": ("u", 1), "rate": ("d", 2.5)}),
                 ((1 << 63) | 5, "FAILED", "logs", b"/data/\xffb", 1, MOST, 2, 3, 4, "", "/data/b: broken", {"splitOff": ("b", True)})]
    return job


def failed(master):
    """One that has failed, with next to nothing to say."""
    job = add(master, StartedAt=T + 4_000_000, EndedAt=T + 60_000_000)
    job.state_now = "FAILED"
    job.status = {"reason": ("s", "worker/1 on n1 failed: exit 1")}
    for index in range(3):
        executor(job, "worker", index, "FAILED" if index == 1 else "KILLED", result=("s", "exit-code"), status=("i", 1))
        job.executors["worker", index]["ended"] = T + 50_000_000 + index
    job.events = [(1, T, "state", "", 0, "SUBMITTED"), (2, T + 50_000_000, "executor", "worker", 1, "worker/1 FAILED on n1: exit 1")]
    return job


def waiting(master):
    job = add(master)
    job.state_now = "QUEUED"
    job.why = {"state": ("s", "QUEUED"), "pool": ("s", "prod"), "priority": ("i", -5), "requeues": ("u", 2), "reason": ("s", "3 of 4 fit"), "summary": ("s", "waits for 2 GPUs"),
               "position": ("t", 4), "startsBy": ("t", T + 3_600_000_000), "ahead": ("t", 3), "victims": ("u", 1), "wanted": ("u", 4), "fits": ("u", 3), "role": ("s", "worker"),
               "hosts": ("a(us)", [(3, "have no GPU"), (1, "is held by uid 0")]), "suggestions": ("as", ["2 GPUs less", "memory 1G"])}
    return job


def arrays(master):
    array, element = add(master), add(master)
    array.status["array"] = ("a{sv}", {"size": ("u", 10), "waiting": ("u", 1), "running": ("u", 2), "succeeded": ("u", 3), "failed": ("u", 4), "killed": ("u", 0), "firstFailed": ("u", 7)})
    array.place = {"elements": ("u", 10)}
    element.status["array"] = ("a{sv}", {"of": ("u", array.number), "index": ("u", 7)})


def amount(cpus, memory, gpus):
    return ("(ttu)", (cpus, memory, gpus))


# In masterd's order: what is printed keeps it.
NODE = {
    "name": ("s", "n1"), "state": ("s", "DRAINING"), "liveness": ("s", "READY"), "reason": ("s", "drains"), "address": ("s", "10.0.0.1"), "cpus": ("u", 8), "cpusFree": ("d", 2.5),
    "memory": ("t", 8 * GIB), "memoryFree": ("t", GIB), "gpus": ("u", 2), "gpusFree": ("u", 1), "heartbeat": ("t", T), "boot": ("s", "b007"), "version": ("s", "0.1.0"),
    "limits": ("b", True), "kernel": ("s", "6.1"), "os": ("s", "Debian 12"), "epoch": ("t", 17), "link": ("s", "TLS"), "refused": ("s", ""), "joined": ("t", T - 5),
    "joinedFrom": ("s", "10.0.0.1"), "joinedBy": ("u", 0), "takenOver": ("b", True), "labels": ("as", ["rack=a", "ssd"]),
    "holds": ("a(sbsuttts)", [("admin", True, "disk", 0, T, MOST, 60_000_000, "reboot"), ("verdict", True, "hot", 1, T, T + 1, MOST, "none"), ("admin", False, "", 0, T, 0, MOST, "none")]),
    "conditions": ("a(sssst)", [("disk", "/var", "WARNING", "90 % full", T)]), "avoidedFor": ("a(ut)", [(0, T + 1)]),
    "gpuList": ("a(sstsb)", [("GPU-1", "H100", 80 * GIB, "", True), ("GPU-2", "H100", 80 * GIB, "1g.5gb", False)]),
    "gpusOff": ("a(suts)", [("GPU-1", 0, T, "hot"), ("GPU-9", 0, T, "")]), "windows": ("a(ttsu)", [(T, T + 1_000_000, "firmware", 0)]),
    "executors": ("a(usuusut)", [(1, "worker", 2, 1, "RUNNING", 0, T), (2, "", 0, 1, "STOPPING", 0, 0)]), "later": ("s", "new"), "strange": ("a(uu)", [(1, 2)])}


def build(master):
    running(master)
    failed(master)
    waiting(master)
    arrays(master)
    master.nodes = [
        ("n1", "READY", "10.99.0.11", 2.0, 1.5, 8 * GIB, 6 * GIB, 2, 1, 3, T, {
            "kernel": ("s", "6.1"), "os": ("s", "Debian 12"), "version": ("s", "0.1.0"), "reason": ("s", "cordoned by uid 0"), "conditions": ("s", "disk /var: 90 % full"),
            "limits": ("b", True), "takenOver": ("t", T), "labels": ("as", ["rack=a", "ssd"]), "later": ("as", ["x"])}),
        ("n2", "LOST", "", 2.0, 2.0, 8 * GIB, 8 * GIB, 0, 0, 0, 0, {})]
    master.described = NODE
    waits = {"job": ("u", 3), "name": ("s", "digits"), "user": ("u", 0), "pool": ("s", "prod"), "priority": ("i", -5), "state": ("s", "QUEUED"), "position": ("t", 1), "since": ("t", T),
             "executors": ("u", 4), "cpus": ("d", 6.5), "memory": ("t", 8 * GIB), "gpus": ("u", 2), "startsBy": ("t", T + 1), "reason": ("s", "held by uid 0"), "later": ("s", "x")}
    master.queue = [waits, {"job": ("u", 9)}]
    user = {"user": ("u", 0), "usage": ("d", 7200.0), "running": ("u", 1), "waiting": ("u", 2), "held": amount(1500, GIB, 0)}
    everything = amount(MOST, MOST, 2**32 - 1)
    master.pools = [
        {"name": ("s", "prod"), "open": ("b", True), "preempts": ("b", False), "preemptible": ("b", True), "weight": ("u", 3), "priority": ("i", -1), "maxPriority": ("i", 1000),
         "defaultTime": ("t", MOST), "maxTime": ("t", 3600_000_000), "guarantee": amount(0, 0, 0), "limit": everything, "userLimit": amount(4000, MOST, 2**32 - 1),
         "held": amount(1500, GIB, 1), "usage": ("d", 10800.0), "running": ("u", 1), "waiting": ("u", 2), "users": ("aa{sv}", [user])},
        {"name": ("s", "lab"), "open": ("b", False), "users": ("aa{sv}", [])}]
    master.tokens = [("00ff", 1, T, "", 0, {}), ("eeee", 5, T + 1, "10.0.0.0/8", 4000000000, {"name": ("s", "n7"), "replace": ("b", True), "later": ("u", 1)})]
    master.savepoints = [(("one", 1, 0, T, 120, 5 * GIB, {"jobName": ("s", "digits"), "records": ("t", 987654), "partial": ("t", 3), "failed": ("t", 1), "later": ("u", 1)}),
                          {"version": 1, "name": "one", "complete": False, "sources": ["logs"], "config": "{}"}),
                         (("two", 1, 4000000000, T, 0, 0, {}), {"version": 1})]
    master.usage = [(19600, 0, "prod", 1, "worker", 3_600_000_000, 1_800_000_000, 1024 * 3_600_000, 7_200_000_000, 4, 1, 3_600_000_000, 2, 1),
                    (19601, 4000000000, "a,b", 0, "", 1, 2, 3, 4, 5, 6, 7, 0, 0)]
