# SPDX-License-Identifier: Apache-2.0
"""Jobs and the data of jobs that run, from Python, as the user who runs it.

    from primus.client import Client

    cluster = Client()                                   # on the master's host; Client("host") goes there by ssh
    job = cluster.submit({"command": "python3 train.py", "hosts": 2})
    cluster.add_source(job, {"name": "clicks", "spec": {"pathPattern": "/data/clicks", "textInput": {}}})
    cluster.weigh_source(job, "clicks", 3)
    assert cluster.wait(job) == 0

Each method is one call of primusctl(1), which has the rights of the user, goes on over a restart of the master, and has the
words where something is refused: they are Error's. Where primusctl answers in JSON, so does the method: docs/json.md says what
is in it.
"""
import json
import subprocess

__all__ = ["Client", "Conflict", "Error"]


class Error(RuntimeError):
    """It was refused: why, and in .name the error's name ("org.primus.Error.NoSuchJob", primusctl(1)); "": ssh or the like failed."""

    def __init__(self, text, name):
        super().__init__(text)
        self.name = name


class Conflict(Error):
    """Somebody else was quicker: the job is not at the version that was given. Look at it again."""


class Client:
    """host: the master's, to which ssh goes; None: this one. program: which primusctl is run."""

    def __init__(self, host=None, program="primusctl"):
        self._command = [program, *(["-H", host] if host else [])]

    # ---- jobs

    def submit(self, config):
        """Submits a job, a dict as primus-job(5) has it. Returns its number."""
        return self._json("submit", "-", input=config)["job"]

    def status(self, job):
        """What `primusctl status --json` says, a dict."""
        return self._json("status", job)

    def jobs(self, ended=False):
        """The user's jobs, a list of dicts; ended: those that are over, too."""
        return self._json("list", options=["--all"] if ended else [])

    def wait(self, job):
        """Waits until the job is over. Returns 0 (it succeeded), 1 (it failed), 3 (it was killed), or what the kill said."""
        done = self._run("wait", job)
        if done.returncode and done.stderr:
            _fail(done)
        return done.returncode

    def kill(self, job):
        """Ends the job."""
        self._call("kill", job)

    def scale(self, job, version=None, **roles):
        """Gives roles another number of executors: scale(7, worker=4). Returns the job's version."""
        return self._json("scale", job, *(f"{role}={int(n)}" for role, n in roles.items()), options=_at(version))["version"]

    # ---- the sources of a job's data

    def sources(self, job):
        """A list of dicts: name, weight, paused, removed and what has been read of each."""
        return (self.status(job).get("data") or {}).get("sources") or []

    def version(self, job):
        """Of the job's configuration; it rises with each change."""
        return self.status(job)["version"]

    def add_source(self, job, source, version=None):
        """One more source, a dict: an entry of inputManager.fileConfig.inputs or .kafkaConfig.topics. Returns the job's version.

        version: the one that the job has to be at (version()); None: any. Conflict where it is at another."""
        return self._json("data", "add", job, "-", options=_at(version), input=source)["version"]

    def replace_sources(self, job, sources, version=None):
        """All sources at once: what is not in the list is removed, what is new is added, weights are those of the list.

        Returns a dict: version, added, removed. Where one of them is wrong nothing has changed."""
        return self._json("data", "replace", job, "-", options=_at(version), input=list(sources))

    def pause_source(self, job, *names):
        """Gives out no more of them, until resume_source()."""
        self._call("data", "pause", job, *names)

    def resume_source(self, job, *names):
        """They go on."""
        self._call("data", "resume", job, *names)

    def end_source(self, job, *names):
        """They bring no more than they have by now: of one that follows the clock, and of topics. For ever."""
        self._call("data", "end", job, *names)

    def remove_source(self, job, *names):
        """What nobody has begun of them is no part of the job any more. For ever."""
        self._call("data", "remove", job, *names)

    def weigh_source(self, job, name, weight):
        """So many turns beside those of the others, 1 to 1000000."""
        self._call("data", "weight", job, name, int(weight))

    # ---- primusctl

    def _run(self, command, *arguments, options=(), input=None):
        # Behind "--" nothing is an option, whatever a source is called.
        words = [*self._command, "--json", command, *options, "--", *map(str, arguments)]
        return subprocess.run(words, input=None if input is None else json.dumps(input), stdin=subprocess.DEVNULL if input is None else None,
                              capture_output=True, text=True, check=False)

    def _call(self, command, *arguments, **more):
        done = self._run(command, *arguments, **more)
        if done.returncode != 0:
            _fail(done)
        return done.stdout

    def _json(self, command, *arguments, **more):
        return json.loads(self._call(command, *arguments, **more))


def _at(version):
    return [] if version is None else [f"--if-version={int(version)}"]


def _fail(done):
    for line in done.stderr.splitlines():
        try:
            said = json.loads(line)["error"]
            raise (Conflict if said["name"] == "org.primus.Error.Conflict" else Error)(said["message"], said["name"])
        except (ValueError, KeyError, TypeError):
            continue  # a note, or what is not primusctl's
    raise Error(done.stderr.strip() or f"primusctl ended with status {done.returncode}", "")
