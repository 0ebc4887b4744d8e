# SPDX-License-Identifier: Apache-2.0
"""Jobs whose data is lines of files that are fed to them, and what came in of it."""

# Every line that came in goes to a file of the attempt, line by line as it is read.
KEEP = 'while read -r line; do echo "$line" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; done; say eof'


def slowly(every, pause):
    """The same, so slowly that there is time to do something to it: a pause of so many seconds after every so many lines."""
    return ('n=0; while read -r line; do echo "$line" >> $LEDGER.$PRIMUS_INDEX.$PRIMUS_ATTEMPT; n=$((n + 1)); '
            f'[ $((n % {every})) != 0 ] || sleep {pause}; done; say eof')


SLOWLY = slowly(100, 0.02)


def library(every, pause):
    """A trainer in Python that does as slowly() does, with the library."""
    return f"""
import os, time
import primus
name = "{{PRIMUS_INDEX}}.{{PRIMUS_ATTEMPT}}".format_map(os.environ)
with open(os.environ["LEDGER"] + "." + name, "ab", buffering=0) as out:
    for n, record in enumerate(primus.records(), 1):
        out.write(bytes(record) + b"\\n")
        if n % {every} == 0:
            time.sleep({pause})
"""


def make_source(ledger, name, files, lines):
    """A directory of lines that are all different and begin with its name: its entry of inputs, and the lines."""
    path = ledger.path.with_name(ledger.path.name + ".data") / name
    path.mkdir(parents=True)
    wanted = []
    for f in range(files):
        text = [f"{name}-{f:04d}-{n:04d}-".ljust(100, "x") for n in range(lines)]
        (path / f"{f:04d}.txt").write_text("".join(line + "\n" for line in text))
        wanted += text
    for one in (path.parent, path, *path.iterdir()):
        one.chmod(0o755)
    return {"name": name, "spec": {"pathPattern": f"{ledger.inside}.data/{name}", "textInput": {}}}, wanted


def make_data(ledger, files, lines, width=8):
    """Files under the shared directory; every line is unique. Returns the lines."""
    path = ledger.path.with_name(ledger.path.name + ".data")
    path.mkdir()
    wanted = []
    for f in range(files):
        text = [f"{f:04d}-{line:06d}-".ljust(width, "x") for line in range(lines)]
        (path / f"part-{f:04d}.txt").write_text("".join(line + "\n" for line in text))
        wanted += text
    for one in (path, *path.iterdir()):
        one.chmod(0o755)
    return wanted


def fed(ledger):
    """{(index, attempt): lines in order}"""
    result = {}
    for path in ledger.path.parent.glob(ledger.path.name + ".[0-9]*"):
        _, index, attempt = path.name.rsplit(".", 2)
        result[int(index), int(attempt)] = path.read_text().split("\n")[:-1]
    return result


def config(ledger, command, path=None, input=None, manager=None, **keys):
    job = ledger.config(command, inputPolicy="STREAMING", **keys)
    job["inputManager"] = {"gracefulShutdown": True, **(manager or {}), "fileConfig": {"inputs": [
        {"name": "data", "spec": {"pathPattern": path or ledger.inside + ".data", "textInput": {}}}]}}
    if input:
        job["input"] = input
    return job


def all_lines(ledger):
    return [line for lines in fed(ledger).values() for line in lines]
