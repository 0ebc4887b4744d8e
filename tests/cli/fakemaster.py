# SPDX-License-Identifier: Apache-2.0
"""A master that does what a test tells it: org.primus.Master1 on whatever bus the address names.

Jobs are plain objects; a test (or a script started by `on_submit`) moves them along with job.state(), job.executor(),
job.log() and so on. Replies that wait (ReadLog) are answered from there at once.
"""
import hashlib
import json
import threading
import time

from jeepney import DBusAddress, HeaderFields, MessageType, new_error, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

NAME = "org.primus.Master1"
PATH = "/org/primus/Master1"
JOB = "org.primus.Master1.Job"
ENDS = {"SUCCEEDED": 0, "FAILED": 1, "KILLED": 3}


class Refuse(Exception):
    def __init__(self, name, text):
        super().__init__(text)
        self.name, self.text = name, text


def now():
    return int(time.time() * 1e6)


class Job:
    def __init__(self, master, number, config, options):
        self.master, self.number, self.config, self.options = master, number, config, options
        self.spec = json.loads(config)
        self.name = options.get("name", ("s", self.spec.get("name", "job")))[1]
        self.state_now, self.owner = "SUBMITTED", 1000
        self.times = {"SubmittedAt": now(), "StartedAt": 0, "EndedAt": 0}
        self.status, self.place = {}, {}
        self.events = []
        self.executors = {}  # (role, index) -> row
        self.logs = {}  # (role, index, attempt) -> [bytes, ended]
        self.killed = None
        self.kill_status = 3
        self.tasks = []  # rows of ListTasks, in the order of their numbers
        self.changed = []  # (method, task)
        self.reads = 0
        self.version, self.said, self.edits = 1, "", []
        self.at = 0  # when its telemetry was; 0: now
        self.why = {"state": ("s", "RUNNING")}
        self.rates, self.history, self.verdicts = {}, {}, {}  # (role, index) -> numbers; name -> points; (role, index) -> words
        rank = 0
        for role in self.spec["role"]:
            for index in range(int(role["num"])):
                self.past = []
                self.executors[role["roleName"], index] = {"attempt": 0, "state": "PENDING", "node": "", "rank": rank,
                                                           "started": 0, "ended": 0, "more": {}}
                rank += 1

    @property
    def path(self):
        return f"{PATH}/job/{self.number}"

    def properties(self):
        return {"Number": ("u", self.number), "Uid": ("s", "0123456789abcdef" * 2), "Name": ("s", self.name),
                "Owner": ("u", self.owner), "State": ("s", self.state_now), "Attempt": ("u", 1), "Version": ("t", self.version),
                "ExitStatus": ("u", self.kill_status if self.state_now == "KILLED" else ENDS.get(self.state_now, 255)), **{k: ("t", v) for k, v in self.times.items()}}

    def state(self, state, reason=None):
        with self.master.lock:
            self.state_now = state
            if state == "RUNNING" and not self.times["StartedAt"]:
                self.times["StartedAt"] = now()
            if state in ENDS:
                self.times["EndedAt"] = now()
            if reason is not None:
                self.status["reason"] = ("s", reason)
            self.event("state", state)
            self.master.signal(self.path, "org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as",
                               (JOB, {"State": ("s", state), "ExitStatus": self.properties()["ExitStatus"]}, []))

    def executor(self, role, index, state, attempt=None, node="n1", **more):
        with self.master.lock:
            row = self.executors[role, index]
            if attempt and row["attempt"] and attempt != row["attempt"]:
                self.past.append(((role, index), dict(row)))
            row["attempt"] = attempt or row["attempt"] or 1
            row["state"], row["node"] = state, node
            row["more"].update(more)
            if state == "RUNNING":
                row["started"] = now()
            if state in (*ENDS, "LOST"):
                row["ended"] = now()
                self.logs.setdefault((role, index, row["attempt"]), [b"", False])
            self.event("executor", f"{role}/{index} {state}", role, index)
            self.master.signal(self.path, JOB, "ExecutorChanged", "suuss", (role, index, row["attempt"], state, node))

    def log(self, role, index, data=b"", attempt=None, end=False):
        with self.master.lock:
            key = (role, index, attempt or self.executors[role, index]["attempt"] or 1)
            entry = self.logs.setdefault(key, [b"", False])
            entry[0] += data
            entry[1] = entry[1] or end
            self.master.answer_reads()

    def event(self, kind, text, role="", index=0):
        with self.master.lock:
            self.events.append((len(self.events) + 1, now(), kind, role, index, text))

    def everybody(self, state, **more):
        for role, index in list(self.executors):
            self.executor(role, index, state, **more)

    def finish(self, state="SUCCEEDED", reason=None):
        for role, index in list(self.executors):
            if self.executors[role, index]["state"] not in (*ENDS, "LOST"):
                self.executor(role, index, state)
            self.log(role, index, end=True)
        self.state(state, reason)

    def total(self, executors):
        """Of those that run, as masterd adds them up."""
        mine = [self.rates[key] for key in executors if key in self.rates]
        running = sum(self.executors[key]["state"] == "RUNNING" for key in executors)
        numbers = {name: [r[name] for r in mine if name in r] for name in {name for r in mine for name in r}}
        adds = ("cpu", "memory", "read", "write", "netRx", "netTx", "gpuMemory")
        return {"running": ("u", running), "measured": ("u", len(mine)), "cpu": ("d", 2.0 * running), "memory": ("t", running << 30), "gpus": ("u", running),
                "sum": ("a{sd}", {k: sum(v) for k, v in numbers.items() if k in adds}), "mean": ("a{sd}", {k: sum(v) / len(v) for k, v in numbers.items()}),
                "max": ("a{sd}", {k: max(v) for k, v in numbers.items()})}

    def role_counts(self):
        rows = []
        for role in self.spec["role"]:
            states = [row["state"] for (name, _), row in self.executors.items() if name == role["roleName"]]
            count = lambda *of: sum(s in of for s in states)
            rows.append((role["roleName"], len(states), count("RUNNING"), count("PENDING", "PLACED", "STARTING"),
                         count("SUCCEEDED"), count("FAILED"), count("KILLED"), count("LOST")))
        return rows


class FakeMaster:
    def __init__(self, address):
        self.lock = threading.RLock()
        self.jobs, self.calls, self.waiting = {}, [], []
        self.bundles = {}
        self.nodes = []
        self.queue, self.pools, self.usage, self.described, self.node_events = [], [], [], {}, []
        self.job_defaults = []
        self.tokens = []  # rows of ListTokens
        self.savepoints = []  # (row of ListSavepoints, manifest)
        self.on_submit = lambda job: None
        self.refuse = {}  # member -> Refuse
        self.vanished = {}  # job -> how many of the next calls of it find that it is not on the bus
        self.busy = {}  # member -> how many of the next calls find it busy
        self.warnings = []
        self.trial = {}
        self.tried = None
        self.connection = open_dbus_connection(address)
        self.connection.send_and_get_reply(message_bus.RequestName(NAME))
        self.stopping = False
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.connection.close()

    def move(self, address):
        """Another master process takes over the same jobs, as after a restart."""
        self.stop()
        time.sleep(0.2)
        self.start(address)

    def start(self, address):
        self.stopping = False
        self.waiting = []
        self.connection = open_dbus_connection(address)
        self.connection.send_and_get_reply(message_bus.RequestName(NAME))
        self.thread = threading.Thread(target=self._loop, daemon=True)
        self.thread.start()

    def _loop(self):
        while not self.stopping:
            try:
                message = self.connection.receive(timeout=0.05)
            except TimeoutError:
                message = None
            with self.lock:
                if message is not None and message.header.message_type == MessageType.method_call:
                    self._call(message)
                self.answer_reads()

    def send(self, message):
        with self.lock:
            self.connection.send(message)

    def signal(self, path, interface, member, signature, body):
        self.send(new_signal(DBusAddress(path, interface=interface), member, signature, body))

    def _call(self, message):
        fields = message.header.fields
        path, member = fields[HeaderFields.path], fields[HeaderFields.member]
        self.calls.append(member)
        try:
            if self.busy.get(member, 0) > 0:
                self.busy[member] -= 1
                raise Refuse("org.primus.Error.Busy", "The store still looks up what you asked before; try again in a moment")
            if member in self.refuse:
                raise self.refuse[member]
            target = self
            if path.startswith(PATH + "/job/"):
                number = int(path.rsplit("/", 1)[1])
                target = self.jobs.get(number)
                if self.vanished.get(number, 0) > 0:
                    self.vanished[number] -= 1
                    target = None
                if target is None:
                    raise Refuse("org.freedesktop.DBus.Error.UnknownObject", f"Unknown object '{path}'.")
            if member == "ReadLog":
                self._read_log(target, message)
                return
            method = getattr(self, f"do_{member}", None)
            if method is None:
                raise Refuse("org.freedesktop.DBus.Error.UnknownMethod", f"no {member}")
            signature, body = method(target, *message.body)
            reply = new_method_return(message, signature, body)
        except Refuse as e:
            reply = new_error(message, e.name, "s", (e.text,))
        self.send(reply)

    # ---- Manager
    def do_Submit(self, _, config, options):
        try:
            text = bytes(config).decode()
            if not text and "savepoint" in options:
                text = self.savepoint(options["savepoint"][1])[1]["config"]
        except ValueError as e:
            raise Refuse("org.primus.Error.BadConfig", f"1:1: {e}") from e
        number = len(self.jobs) + 1
        job = Job(self, number, text, options)
        self.jobs[number] = job
        threading.Thread(target=self.on_submit, args=(job,), daemon=True).start()
        return "uoas", (number, job.path, self.warnings)

    def do_TrySubmit(self, _, config, options):
        self.tried = options
        return "asa{sv}", (self.warnings, self.trial)

    def do_ListJobs(self, _, options):
        self.last_filter = options
        rows = []
        for job in sorted(self.jobs.values(), key=lambda j: -j.number):
            if job.state_now in ENDS and "all" not in options:
                continue
            element = job.status.get("array", ("", {}))[1]
            if "array" in options and element.get("of", ("u", 0))[1] != options["array"][1]:
                continue
            if "before" in options and job.number >= options["before"][1]:
                continue
            if "array" in options and len(rows) == options["limit"][1]:
                break
            more = {"array": element["of"], "index": element["index"]} if "of" in element else {}
            running = sum(row["state"] == "RUNNING" for row in job.executors.values())
            more.update(job.place)
            rows.append((job.number, job.name, job.state_now, job.owner, *job.times.values(), running, len(job.executors),
                         job.status.get("reason", ("s", ""))[1], more))
        return "a(ussutttuusa{sv})", (rows,)

    def do_GetJob(self, _, number):
        if number == 0 and self.jobs:
            return "o", (self.jobs[max(self.jobs)].path,)
        if number not in self.jobs:
            raise Refuse("org.primus.Error.NoSuchJob", "no such job")
        return "o", (self.jobs[number].path,)

    def do_ListNodes(self, _):
        return "a(sssddttuuuta{sv})", (self.nodes,)

    def do_ListTelemetry(self, _, options):
        rows = [{"job": ("u", job.number), "name": ("s", job.name), "user": ("u", job.owner), "state": ("s", job.state_now),
                 "since": ("t", job.times["SubmittedAt"]), "executors": ("u", len(job.executors)), **job.total(job.executors)}
                for job in self.jobs.values() if job.state_now not in ENDS]
        return "aa{sv}", (rows,)

    def do_Usage(self, _, by, options):
        return "a(uususttttttttt)", (self.usage,)

    def do_Describe(self, _):
        return "a{sv}", (self.described,)

    def do_ListQueue(self, _):
        return "aa{sv}", (self.queue,)

    def do_GetJobDefaults(self, _):
        return "a(ss)", (self.job_defaults,)

    def do_ListPools(self, _):
        return "aa{sv}", (self.pools,)

    def do_PutBundle(self, _, sha256, size, offset, chunk):
        have = self.bundles.setdefault(sha256, b"")
        if len(have) < size and offset == len(have):
            have = self.bundles[sha256] = have + bytes(chunk)
            if len(have) == size and hashlib.sha256(have).hexdigest() != sha256:
                raise Refuse("org.freedesktop.DBus.Error.InvalidArgs", "the digest is another")
        return "t", (len(have),)

    def do_CreateToken(self, _, options):
        self.last_token = options
        return "s", ("primus1.abcdef",)

    def do_ListTokens(self, _):
        return "a(sutsua{sv})", (self.tokens,)

    def do_RevokeToken(self, _, token):
        if token not in [row[0] for row in self.tokens]:
            raise Refuse("org.primus.Error.NotFound", f"There is no token '{token}'")
        self.tokens = [row for row in self.tokens if row[0] != token]
        return "", ()

    def do_RemoveNode(self, _, name):
        if name not in [row[0] for row in self.nodes]:
            raise Refuse("org.primus.Error.NoSuchNode", f"there is no node {name}")
        return "", ()

    def savepoint(self, name):
        for row, manifest in self.savepoints:
            if row[0] == name:
                return row, manifest
        raise Refuse("org.primus.Error.NotFound", f"There is no savepoint '{name}'")

    def do_ListSavepoints(self, _):
        return "a(suuttta{sv})", ([row for row, _ in self.savepoints],)

    def do_GetSavepoint(self, _, name):
        return "ay", (json.dumps(self.savepoint(name)[1]).encode(),)

    def do_DeleteSavepoint(self, _, name):
        self.savepoints.remove(self.savepoint(name))
        return "", ()

    # ---- Job
    def do_GetAll(self, job, interface):
        return "a{sv}", (job.properties(),)

    # ---- changes
    def do_Get(self, job, interface, name):
        return "v", ({"LatestChange": ("s", job.said), "Version": ("t", job.version)}[name],)

    def new_version(self, job, version, what, said):
        if version not in (0, job.version):
            raise Refuse("org.primus.Error.Conflict", f"Job {job.number} is at version {job.version}")
        job.version, job.said = job.version + 1, said
        job.edits.append(what)
        return "t", (job.version,)

    def do_Update(self, job, version, changes):
        return self.new_version(job, version, {key: value[1] for key, value in changes.items()}, "updated")

    def do_Scale(self, job, version, roles):
        return self.new_version(job, version, roles, "scaled")

    def do_AddRole(self, job, version, role):
        return self.new_version(job, version, json.loads(role), "role added")

    def do_RemoveRole(self, job, version, name):
        return self.new_version(job, version, name, "role removed")

    def do_AddSource(self, job, version, source):
        return self.new_version(job, version, json.loads(source), "data source added")

    def do_ReplaceSources(self, job, version, sources):
        names = [s.get("topic") or s["name"] for s in json.loads(sources)]
        self.new_version(job, version, sources, "data sources replaced")
        return "tuu", (job.version, sum(n not in ("logs", "clicks") for n in names), sum(n not in names for n in ("logs", "clicks")))

    def do_RestartRole(self, job, role, index, batch):
        job.edits.append((role, index, batch))
        return "u", (3 if index < 0 else 1,)

    def do_GetStatus(self, job):
        return "a{sv}", ({"roles": ("a(suuuuuuu)", job.role_counts()), "reason": ("s", ""), **job.status},)

    def do_Telemetry(self, job, options):
        job.telemetry_options = options
        roles = []
        for role in job.spec["role"]:
            mine = [key for key in job.executors if key[0] == role["roleName"]]
            history = {name: (points, points) for name, points in job.history.items()}
            roles.append({"name": ("s", role["roleName"]), "executors": ("u", len(mine)), "history": ("a{s(adad)}", history), **job.total(mine)})
        executors = [{"role": ("s", role), "index": ("u", index), "attempt": ("u", 1), "state": ("s", row["state"]), "node": ("s", row["node"]),
                      **({"age": ("t", 1_000_000), "rates": ("a{sd}", job.rates[role, index]), "values": ("a{st}", {"cpuUsec": 12345})}
                         if (role, index) in job.rates else {}),
                      **({"verdicts": ("as", job.verdicts[role, index])} if (role, index) in job.verdicts else {})}
                     for (role, index), row in job.executors.items() if row["state"] == "RUNNING"]
        return "a{sv}", ({"at": ("t", job.at or now()), "interval": ("t", 120_000_000 if "history" in options else 5_000_000), "roles": ("aa{sv}", roles), "executors": ("aa{sv}", executors)},)

    def do_Why(self, job):
        return "a{sv}", (job.why,)

    def do_GetConfig(self, job):
        return "ay", (job.config.encode(),)

    def do_ListExecutors(self, job, every):
        rows = [(role, index, row["attempt"], row["state"], row["node"],
                 f"primus-{job.number}-{role}-{index}.{row['attempt']}.service" if row["attempt"] else "", row["rank"],
                 row["started"], row["ended"], row["more"]) for (role, index), row in
                [*(job.past if every else []), *job.executors.items()]]
        return "a(suusssutta{sv})", (rows,)

    def do_ListEvents(self, job, after):
        if job is self:  # a node's
            return "a(ttss)", ([e for e in self.node_events if e[0] > after],)
        return "a(ttssus)", ([e for e in job.events if e[0] > after],)

    def do_SuspendAs(self, job, mode):
        job.suspended = mode
        if job.state_now != "RUNNING":
            raise Refuse("org.primus.Error.Refused", f"The job is {job.state_now}")
        job.state("SUSPENDED")
        return "", ()

    def do_Resume(self, job):
        job.state("RUNNING")
        return "", ()

    def do_ListTasks(self, job, after, options):
        rows = [row for row in job.tasks if row[0] > after and options.get("state", ("s", row[1]))[1] == row[1]]
        return "a(tssayttttussa{sv})", (rows[:options["limit"][1]],)

    def change(self, job, method, task):
        job.changed.append((method, task))
        found = [row for row in job.tasks if row[0] == task or (task == 0 and row[1] == "FAILED")]
        if not found and task:
            raise Refuse("org.primus.Error.NotFound", f"There is no task {task} that is not done")
        return "t", (len(found),)

    def do_RetryTask(self, job, task):
        return self.change(job, "retry", task)

    def do_SkipTask(self, job, task):
        return self.change(job, "skip", task)

    def do_SteerSource(self, job, source, changes):
        if source not in ("logs", "clicks"):
            raise Refuse("org.primus.Error.NotFound", f"Job {job.number} has no data source '{source}'")
        job.changed.append((source, *next((k, v[1]) for k, v in changes.items())))
        return "", ()

    def do_CreateSavepoint(self, job, name, options):
        name = name or f"{job.number}-{len(self.savepoints) + 1}"
        if any(row[0] == name for row, _ in self.savepoints):
            raise Refuse("org.primus.Error.Refused", f"There is a savepoint {name} already")
        row = (name, job.number, job.owner, now(), 120, 5 << 30, {"jobName": ("s", job.name), "records": ("t", 987654),
                                                                 "partial": ("t", 3), "failed": ("t", 1)})
        self.savepoints.insert(0, (row, {"version": 1, "name": name, "complete": True, "sources": ["logs", "clicks"],
                                         "config": job.config}))
        if options.get("kill", ("b", False))[1]:
            self.do_Kill(job, "savepoint")
        return "s", (name,)

    def do_Kill(self, job, reason):
        job.killed = reason
        threading.Thread(target=job.finish, args=("KILLED", "killed by its owner"), daemon=True).start()
        return "", ()

    def do_KillWith(self, job, options):
        job.kill_grace = options.get("grace", ("t", None))[1]
        job.kill_status = options.get("exitStatus", ("u", 3))[1]
        return self.do_Kill(job, options.get("reason", ("s", ""))[1])

    def do_Delete(self, job):
        if job.state_now not in ("SUCCEEDED", "FAILED", "KILLED"):
            raise Refuse("org.primus.Error.Refused", f"Job {job.number} is {job.state_now}: only what has ended can be deleted")
        del self.jobs[job.number]
        return "", ()

    def _read_log(self, job, message):
        role, index, attempt, cursor, wait, options = message.body
        job.reads += 1
        if (role, index) not in job.executors:
            raise Refuse("org.primus.Error.NotFound", f"Job {job.number} has no executor {role}/{index}")
        key = (role, index, attempt or job.executors[role, index]["attempt"])
        if key not in job.logs and not wait:
            self.send(new_error(message, "org.primus.Error.NotFound", "s", ("no log",)))
            return
        self.waiting.append((message, job, key, int(bytes(cursor) or b"-1"), time.monotonic() + wait / 1e6, options))

    def answer_reads(self):
        with self.lock:
            waiting, self.waiting = self.waiting, []
            for message, job, key, cursor, deadline, options in waiting:
                data, ended = job.logs.get(key, (b"", False))
                if cursor < 0:
                    cursor = 0
                    if "tail" in options and len(data) > options["tail"][1]:
                        cursor = data.index(b"\n", len(data) - options["tail"][1]) + 1
                piece = data[cursor:cursor + 65536]
                piece = piece[:piece.rfind(b"\n") + 1] or piece if not ended else piece
                end = ended and cursor + len(piece) == len(data)
                if piece or end or time.monotonic() >= deadline:
                    self.send(new_method_return(message, "ayayb", (piece, str(cursor + len(piece)).encode(), end)))
                else:
                    self.waiting.append((message, job, key, cursor, deadline, options))


def ranks(text=lambda i: f"host{i}\n".encode(), state="SUCCEEDED", reason=None):
    """A script for FakeMaster.on_submit: every executor of the job runs, says its text, and the job ends."""
    def script(job):
        job.state("STARTING")
        job.everybody("RUNNING")
        job.state("RUNNING")
        for role, index in job.executors:
            job.log(role, index, text(index))
        job.finish(state, reason)
    return script
