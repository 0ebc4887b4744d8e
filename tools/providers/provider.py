# SPDX-License-Identifier: Apache-2.0
"""What the executables of these providers have in common: the request, the settings, systemd. docs/providers.md has the contract.

Invariant: what came from outside is checked here before anything is done with it, and no shell ever sees it.
"""
import configparser
import contextlib
import fcntl
import json
import os
import re
import subprocess
import sys
import uuid

# Exit statuses beside 0 and 1.
UNAVAILABLE, LATER, CONFIG = 69, 75, 78

REQUEST_MAX = 64 << 10
CREDENTIAL = "primus.join"
PATTERNS = {
    "cluster": r"[0-9a-f]{32}",
    "token": r"[0-9a-f]{8}-[0-9a-f]{16}",
    "id": r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}",
    "node": r"[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?",
    "shape": r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}",
    "join": r"[!-~]{1,263} [!-~]{1,64} [!-~]{1,192}",
}
WANTED = {"list": ("cluster",), "up": ("token", "node", "shape", "join"), "down": ("token", "id")}
SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Failure(Exception):
    """One line for the journal, and the exit status that says what masterd is to make of it."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def valid(what, text):
    return isinstance(text, str) and re.fullmatch(PATTERNS[what], text, re.ASCII) is not None


def read_request(verb, stream):
    data = stream.read(REQUEST_MAX + 1)
    if len(data) > REQUEST_MAX:
        raise Failure("the request is too long")
    try:
        request = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Failure("the request is no JSON") from e
    if not isinstance(request, dict):
        raise Failure("the request is no object")
    for key in WANTED[verb]:
        if not valid(key, request.get(key)) and not (verb == "down" and key == "id" and request.get(key) == ""):
            raise Failure(f"the request has no good '{key}'")
    return request


def main(act):
    """act(request, settings) does what $PRIMUS_VERB says; what it returns, or yields, goes out as JSON, an object a line."""
    try:
        verb = os.path.basename(sys.argv[0])
        if os.environ.get("PRIMUS_VERB", verb) != verb or verb not in WANTED:
            raise Failure(f"this is started as list, up or down, not as '{verb[:32]}'", CONFIG)
        request = read_request(verb, sys.stdin.buffer)
        settings = Settings()
        with locked(settings.state) if verb == "up" else contextlib.nullcontext():
            lines = [json.dumps(line) for line in act(request, settings) or ()]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    except Failure as e:
        print(e, file=sys.stderr)
        sys.exit(e.status)
    except (OSError, subprocess.SubprocessError) as e:
        print(f"{type(e).__name__}: {e}", file=sys.stderr)
        sys.exit(1)


class Settings:
    """provider.conf, which masterd reads too, and NAME.conf beside it, of the executables alone."""

    def __init__(self):
        name = os.environ.get("PRIMUS_PROVIDER", "")
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", name, re.ASCII):
            raise Failure("PRIMUS_PROVIDER is no provider's name", CONFIG)
        self.name = name
        # PRIMUS_PROVIDERS: for who tries them by hand elsewhere.
        self.directory = os.path.join(os.environ.get("PRIMUS_PROVIDERS", "/etc/primus/providers"), name)
        self.state = os.environ.get("PRIMUS_DIRECTORY", "")
        # It becomes part of units' properties.
        if not re.fullmatch(r"/[A-Za-z0-9/._-]+", self.state, re.ASCII) or not os.path.isdir(self.state):
            raise Failure("PRIMUS_DIRECTORY is no directory", CONFIG)
        self.files = {}

    def file(self, name):
        if name not in self.files:
            parser = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",), comment_prefixes=("#", ";"), empty_lines_in_values=False)
            parser.optionxform = str
            path = os.path.join(self.directory, name)
            try:
                with open(path, encoding="utf-8") as f:
                    parser.read_file(f)
            except (OSError, ValueError, configparser.Error) as e:
                raise Failure(f"{path}: {str(e).splitlines()[0]}", CONFIG) from e
            self.files[name] = parser
        return self.files[name]

    def get(self, file, section, key, default=None):
        """default None: it has to be set."""
        value = self.file(file).get(section, key, fallback="").strip() or default
        if value is None:
            raise Failure(f"{self.directory}/{file} has no {key}= in [{section}]", CONFIG)
        return value

    def shape(self, name):
        """(cpus, bytes), each None where it is not set."""
        section = f"Shape {name}"
        if not self.file("provider.conf").has_section(section):
            raise Failure(f"{self.directory}/provider.conf has no [{section}]", CONFIG)
        cpus, memory = (self.get("provider.conf", section, key, "") for key in ("Cpus", "Memory"))
        found = re.fullmatch(r"(\d{1,15})([KMGT]?)", memory, re.ASCII)
        if cpus and not re.fullmatch(r"\d{1,5}", cpus, re.ASCII) or memory and not found:
            raise Failure(f"{self.directory}/provider.conf: [{section}] has no good Cpus= or Memory=", CONFIG)
        return int(cpus) if cpus else None, int(found[1]) * SIZES[found[2]] if memory else None

    def words(self, file, section, key):
        return self.get(file, section, key, "").split()


@contextlib.contextmanager
def locked(directory):
    """One after the other, of one provider: `up` always, so that one token has one instance however often it is asked for at a time."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def run(*command, timeout=90):
    """Its output; what it complains about goes to the journal as it is."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=timeout, check=False)
    if done.returncode != 0:
        raise Failure(f"{os.path.basename(command[0])} {command[1] if len(command) > 1 else ''} ended with status {done.returncode}")
    return done.stdout.decode("utf-8", "replace")


# ---- a file with the secret, for as long as it takes to load it ----


def secret_path(settings, token):
    return os.path.join(settings.state, f"{token}.join")


def write_secret(settings, token, text):
    path = secret_path(settings, token)
    forget_secret(settings, token)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="ascii") as f:
        f.write(text)
    return path


def forget_secret(settings, token):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(secret_path(settings, token))


# ---- hosts that are transient units of this machine's systemd: what there is, is what systemd says ----


STATES = {"active": "running", "reloading": "running", "activating": "pending", "deactivating": "stopping", "failed": "failed"}


def unit_of(settings, token):
    return f"primus-host-{settings.name}-{token}.service"


def units(settings, pattern):
    """{unit: (state, description)} of those that systemd knows."""
    found, unit = {}, {}
    for line in [*run("systemctl", "show", "--property=Id,LoadState,ActiveState,Description", "--", pattern).splitlines(), ""]:
        key, is_property, value = line.partition("=")
        if is_property:
            unit[key] = value
        else:
            if unit.get("LoadState") == "loaded" and "Id" in unit:
                found[unit["Id"]] = (unit.get("ActiveState"), unit.get("Description", ""))
            unit = {}
    return found


def list_units(request, settings):
    name = re.compile(rf"primus-host-{re.escape(settings.name)}-({re.escape(request['cluster'][:8])}-[0-9a-f]{{16}})\.service", re.ASCII)
    for unit, (state, description) in sorted(units(settings, f"primus-host-{settings.name}-*.service").items()):
        found = name.fullmatch(unit)
        if found:
            node = description.rpartition(" ")[2]
            line = {"id": unit, "token": found[1], "state": STATES.get(state, "stopped")}
            yield {**line, "node": node} if valid("node", node) else line


def put_away(unit):
    """Stopped, and nothing of it is remembered."""
    run("systemctl", "stop", "--", unit)
    subprocess.run(["systemctl", "reset-failed", "--", unit], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def start_unit(request, settings, properties, command):
    """One unit for a token, whoever asks how often. One that does not start was none: the token may be tried again."""
    unit = unit_of(settings, request["token"])
    if unit not in units(settings, unit):
        try:
            # systemd puts $VARIABLES into a command.
            run("systemd-run", "--quiet", f"--unit={unit}", f"--description=Primus host {request['node']}", "--slice=machine.slice",
                *(f"--property={p}" for p in properties), "--", *(word.replace("$", "$$") for word in command))
        except (Failure, subprocess.SubprocessError):
            if unit in units(settings, unit):
                put_away(unit)
            raise
    return [{"id": unit}]


def stop_unit(request, settings):
    """By the token: the id says no more. What is not there any more has been stopped."""
    unit = unit_of(settings, request["token"])
    if request["id"] not in ("", unit):
        raise Failure("this id is of another instance")
    forget_secret(settings, request["token"])
    if unit in units(settings, unit):
        put_away(unit)


def machine_uuid(request):
    return str(uuid.uuid5(uuid.NAMESPACE_OID, request["token"]))
