# SPDX-License-Identifier: Apache-2.0
"""What objects of a worker have printed, over HTTP: /get-log?job_id= (the last lines, as JSON) and /download-log?job_id= (all of it)."""
import re
import secrets

from primus.actors import host

from .monitor import Pages, as_json

LINES, TAIL = 500, 1 << 20


def _path(directory, fields):
    job = fields.get("job_id", "")
    return directory / job if re.fullmatch("[0-9a-f]{16}", job) else None


def _get(directory, fields):
    if "job_id" not in fields:
        return as_json({"message": "job_id is missing"}, 400)
    path = _path(directory, fields)
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - TAIL, 0))
            lines = file.read().decode(errors="replace").splitlines(keepends=True)
    except (OSError, AttributeError):
        return as_json({"message": "there is no such job"}, 404)
    return as_json({"message": "Log exists, content in `log`", "log": "".join(lines[-LINES:])})


def _download(directory, fields):
    path = _path(directory, fields)
    try:
        return 200, "text/plain; charset=utf-8", path.read_bytes()
    except (OSError, AttributeError):
        return as_json({"message": "there is no such job"}, 400 if "job_id" not in fields else 404)


def serve(directory, address, port):
    """(Pages, where they are as HOST:PORT/WHAT-NOBODY-GUESSES). directory: a pathlib.Path with a file for each job."""
    prefix = secrets.token_hex(16)
    pages = Pages((address, port), {f"/{prefix}/get-log": lambda fields: _get(directory, fields), f"/{prefix}/download-log": lambda fields: _download(directory, fields)})
    return pages, f"{host.where([address], pages.server_address[1])}/{prefix}"
