# SPDX-License-Identifier: Apache-2.0
"""Jobs, hosts and the data of jobs that run, from Python, as the user who runs it.

    from primus.client import Client

    with Client() as cluster:                            # on the master's host; Client("n1") goes there by ssh
        job = cluster.submit({"command": "python3 train.py", "hosts": 2})
        for line in cluster.logs(job, "task"):
            print(line, end="")
        assert cluster.wait(job) == 0

What is asked and answered is primus-webd's REST API (docs/rest.md), which has the rights of the user who asks and the shapes of
`primusctl --json` (docs/json.md): times are microseconds since 1970. The user's own socket is used where it is
(systemctl --user start primus-web.socket); else a gateway is begun with the client and ends with it (primusctl web), on this
machine. Over a restart of the master or of the gateway calls go on, and a submission is made once.
"""
from __future__ import annotations

import http.client
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from primus._gateway import Conflict, Error, Gateway

__all__ = ["Client", "Conflict", "Error"]

ENDED = {"SUCCEEDED", "FAILED", "KILLED"}
WAIT_SEC = 15  # one question for what has changed, or for more of a log


class Client:
    """where: the master's host, to which ssh goes ("n1", "ssh://ml@n1"); "unix:/path" or "https://…" of a gateway; None: here.

    program: primusctl, where a gateway has to be begun. A client may be used by several threads."""

    def __init__(self, where: str | None = None, program: str = "primusctl") -> None:
        self._gateway = Gateway(where, program)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the gateway that was begun for it; the client is of no use after that."""
        self._gateway.close()

    # ---- jobs

    def submit(self, config: dict[str, Any], key: str | None = None, **options: Any) -> int:
        """Submits a job, a dict as primus-job(5) has it. Returns its number.

        key: the same again under the same key within a day is the same job (primusctl(1)); None: one for this call, which is asked
        again where the master has gone. options: name, queue, priority, timeLimit, begin, after (a list), array, cwd, … of docs/rest.md."""
        key = key or uuid.uuid4().hex
        return self._gateway.ask("POST", "jobs", options, config, {"Idempotency-Key": key}, again=True)["job"]

    def try_submit(self, config: dict[str, Any], **options: Any) -> dict[str, Any]:
        """What would become of it: whether it starts, with how many executors, or what it would wait for; nothing is submitted.

        The answer is as of `primusctl submit --dry-run --json`."""
        return self._gateway.ask("POST", "jobs/trial", options, config, again=True)

    def status(self, job: int) -> dict[str, Any]:
        """What `primusctl status --json` says."""
        return self._gateway.ask("GET", f"jobs/{int(job)}")

    def jobs(self, ended: bool = False, **filters: Any) -> list[dict[str, Any]]:
        """Jobs, newest first: the user's and what he may see of others'; ended: those that are over, too. filters: state, name, uid, since, before, limit."""
        return self._gateway.ask("GET", "jobs", {"all": ended or None, **filters})["jobs"]

    def why(self, job: int) -> dict[str, Any]:
        """Why it waits, and what would start it now: `primusctl why --json`."""
        return self._gateway.ask("GET", f"jobs/{int(job)}/why")

    def events(self, job: int, after: int = 0) -> list[dict[str, Any]]:
        """What has happened to it, behind the event of that sequence number."""
        return self._gateway.ask("GET", f"jobs/{int(job)}/events", {"after": after})["events"]

    def config(self, job: int) -> dict[str, Any]:
        """Its configuration in effect."""
        return self._gateway.ask("GET", f"jobs/{int(job)}/config")

    def metrics(self, job: int, history: str | None = None, role: str | None = None) -> dict[str, Any]:
        """Figures of its roles and executors, now; history: with their course over the last "10min" or "4h", also of a job that has ended, before its end."""
        return self._gateway.ask("GET", f"jobs/{int(job)}/telemetry", {"history": history, "role": role})

    def training(self, job: int) -> list[dict[str, Any]]:
        """What its trainers have reported of their training: `primusctl metrics --json`."""
        return self._gateway.ask("GET", f"jobs/{int(job)}/metrics")["metrics"]

    def series(self, job: int, name: str, role: str | None = None, index: int | None = None, points: int | None = None) -> list[dict[str, Any]]:
        """The points of one of them, for each process that has reported it: `primusctl metrics --json --name`."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._gateway.ask("GET", f"jobs/{int(job)}/metrics/points", {"name": name, "role": role, "index": index, "points": points, "from": len(found)})
            found += answer["series"]
            if not answer["series"] or len(found) >= answer["total"]:
                return found

    def trials(self, job: int) -> list[dict[str, Any]]:
        """The trials of a search, by their number."""
        found: list[dict[str, Any]] = []
        while some := self._gateway.ask("GET", f"jobs/{int(job)}/trials", {"from": len(found)})["trials"]:
            found += some
        return found

    def checkpoints(self, job: int = 0) -> list[dict[str, Any]]:
        """Checkpoints that trainers of the job told of (0: of all of one's own): `primusctl checkpoints list --json`."""
        found: list[dict[str, Any]] = []
        while some := self._gateway.ask("GET", "checkpoints", {"job": int(job), "after": found[-1]["checkpoint"] if found else 0})["checkpoints"]:
            found += some
        return found

    def models(self, name: str = "") -> list[dict[str, Any]]:
        """Versions of the model, or of all, in the order of registration: `primusctl model list --json`."""
        return self._gateway.ask("GET", "models", {"name": name})["models"]

    def register_model(self, name: str, checkpoint: int, note: str = "", labels: Sequence[str] = ()) -> int:
        """The next version of the name, which it returns: a checkpoint's number."""
        return self._gateway.ask("POST", "models", None, {"name": name, "checkpoint": int(checkpoint), "note": note, "labels": " ".join(labels)})["version"]

    def wait(self, job: int, timeout: float | None = None) -> int:
        """Waits until the job is over. Returns 0 (it succeeded), 1 (it failed), 3 (it was killed), or what the kill said.

        timeout: in seconds, then TimeoutError."""
        end, since = None if timeout is None else time.monotonic() + timeout, ""
        while True:
            seen = self._changes(since, 0)["now"]  # before looking: what happens behind that is told
            status = self.status(job)
            if status["state"] in ENDED:
                return status["exitStatus"]
            since, changed = seen, False
            while not changed:
                left = WAIT_SEC if end is None else min(WAIT_SEC, end - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"job {job} is {status['state']}")
                change = self._changes(since, left)
                since = change["now"]
                changed = change["reset"] or int(job) in change["jobs"]

    def _changes(self, since: str, wait: float) -> dict[str, Any]:
        return self._gateway.ask("GET", "changes", {"since": since, "wait": int(wait * 1e6)})

    def watch(self, *jobs: int) -> Iterator[dict[str, Any]]:
        """The status of each job whenever it has changed, first as it is; until all of them are over. What changes quickly is told once, as of the last."""
        waiting = {int(job) for job in jobs}
        last, due = self._changes("", 0)["now"], set(waiting)  # what happens behind that is told
        while waiting:
            for job in sorted(due & waiting):
                status = self.status(job)
                if status["state"] in ENDED:
                    waiting.discard(job)
                yield status
            due = set()
            if not waiting:
                return
            try:
                for name, data, mark in self._gateway.stream("events", last):
                    last = mark or last
                    due = set(waiting) if name == "reset" else set(data.get("jobs", ())) & waiting
                    if due:
                        break
                else:
                    due = set(waiting)  # the connection has ended
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
                due = set(waiting)

    def logs(self, job: int, role: str, index: int = 0, attempt: int = 0, follow: bool = True, tail: int | None = None) -> Iterator[str]:
        """What an executor has written, line by line; follow: until its end. attempt: 0 the latest. tail: the last so many bytes alone."""
        cursor, rest = None, ""
        query = {"role": role, "index": index, "attempt": attempt}
        while True:
            more = {"cursor": cursor} if cursor is not None else {"tail": tail}
            answer = self._gateway.ask("GET", f"jobs/{int(job)}/log", {**query, **more, "wait": int(WAIT_SEC * 1e6) if follow else 0})
            cursor, said = answer["next"], answer["text"]
            *lines, rest = (rest + said).split("\n")
            yield from (line + "\n" for line in lines)
            if answer["end"] or (not follow and not said):
                break
        if rest:
            yield rest

    def kill(self, job: int, reason: str | None = None) -> None:
        """Ends the job."""
        self._do(job, "kill", {"reason": reason} if reason else {})

    def requeue(self, job: int, reason: str = "") -> None:
        """Puts it back into the queue."""
        self._do(job, "requeue", {"reason": reason})

    def suspend(self, job: int, mode: str = "stop") -> None:
        """mode: data (no more of it is given out), freeze, or stop (its executors end, and it begins again with resume())."""
        self._do(job, "suspend", {"mode": mode})

    def resume(self, job: int) -> None:
        """It goes on."""
        self._do(job, "resume")

    def update(self, job: int, changes: dict[str, Any], version: int | None = None) -> int:
        """Changes keys of its configuration, such as {"priority": 5, "worker.vcores": 2}. Returns the job's version."""
        return self._gateway.ask("PATCH", f"jobs/{int(job)}", None, changes, _at(version))["version"]

    def scale(self, job: int, version: int | None = None, **roles: int) -> int:
        """Gives roles another number of executors: scale(7, worker=4). Returns the job's version."""
        return self._do(job, "scale", {"roles": {role: int(n) for role, n in roles.items()}}, version)["version"]

    # ---- the sources of a job's data

    def sources(self, job: int) -> list[dict[str, Any]]:
        """A list of dicts: name, weight, paused, removed and what has been read of each."""
        return (self.status(job).get("data") or {}).get("sources") or []

    def version(self, job: int) -> int:
        """Of the job's configuration; it rises with each change."""
        return self.status(job)["version"]

    def add_source(self, job: int, source: dict[str, Any], version: int | None = None) -> int:
        """One more source, a dict: an entry of inputManager.fileConfig.inputs or .kafkaConfig.topics. Returns the job's version.

        version: the one that the job has to be at (version()); None: any. Conflict where it is at another."""
        return self._do(job, "sources", {"source": source}, version)["version"]

    def replace_sources(self, job: int, sources: Sequence[dict[str, Any]], version: int | None = None) -> dict[str, int]:
        """All sources at once: what is not in the list is removed, what is new is added, weights are those of the list.

        Returns a dict: version, added, removed. Where one of them is wrong nothing has changed."""
        return self._do(job, "sources/replace", {"sources": list(sources)}, version)

    def pause_source(self, job: int, *names: str) -> None:
        """Gives out no more of them, until resume_source()."""
        self._steer(job, names, state="paused")

    def resume_source(self, job: int, *names: str) -> None:
        """They go on."""
        self._steer(job, names, state="running")

    def end_source(self, job: int, *names: str) -> None:
        """They bring no more than they have by now: of one that follows the clock, and of topics. For ever."""
        self._steer(job, names, state="ended")

    def remove_source(self, job: int, *names: str) -> None:
        """What nobody has begun of them is no part of the job any more. For ever."""
        self._steer(job, names, state="removed")

    def weigh_source(self, job: int, name: str, weight: int) -> None:
        """So many turns beside those of the others, 1 to 1000000."""
        self._steer(job, (name,), weight=int(weight))

    def _steer(self, job, names, **changes):
        for name in names:
            self._do(job, "sources/steer", {"source": name, **changes})

    # ---- the cluster

    def nodes(self) -> list[dict[str, Any]]:
        """Hosts: `primusctl nodes --json`."""
        return self._gateway.ask("GET", "nodes")["nodes"]

    def queue(self) -> list[dict[str, Any]]:
        """Jobs that wait, in the order in which they are tried."""
        return self._gateway.ask("GET", "queue")["jobs"]

    def _do(self, job, what, body=None, version=None):
        return self._gateway.ask("POST", f"jobs/{int(job)}/{what}", None, body, _at(version))


def _at(version):
    return None if version is None else {"If-Match": f'"{int(version)}"'}
