# SPDX-License-Identifier: Apache-2.0
"""Which files the data are: patterns as primus-job(5) has them, and what a job says of its input. A listing is made once; a
file that is another one later is an error, never other samples."""
import fnmatch
import glob
import json
import os
import re
import stat

FILES_MAX = 1_000_000
NAMES_MAX = 256 << 20  # bytes of all paths
WORDS_MAX = 1_000_000  # that braces stand for
COMPRESSED = (".gz", ".tgz", ".zst")
FORMATS = ("text", "fixed", "tar")

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d{1,18})\.\.(\d{1,18})")


def _words(pattern):
    """{a,b} and {00..15} filled in, in their order."""
    done, todo = [], [pattern]
    while todo:
        word = todo.pop()
        found = _BRACES.search(word)
        if not found:
            done.append(word)
            continue
        numbers = _RANGE.fullmatch(found[1])
        if numbers:
            first, last, width = int(numbers[1]), int(numbers[2]), len(numbers[1])
            if last < first or last - first >= WORDS_MAX:
                raise ValueError(f"{pattern}: {found[0]} is no range of at most {WORDS_MAX} numbers that rises")
            parts = [f"{number:0{width}}" for number in range(first, last + 1)]
        else:
            parts = found[1].split(",")
        todo += [word[:found.start()] + part + word[found.end():] for part in reversed(parts)]
        if len(todo) + len(done) > WORDS_MAX:
            raise ValueError(f"{pattern}: stands for more than {WORDS_MAX} paths")
    return done


def _of_directory(path, names):
    with os.scandir(path) as entries:
        return [entry.path for entry in entries if entry.name[0] not in "._" and entry.is_file() and fnmatch.fnmatchcase(entry.name, names)]


def _of_word(word, names):
    if not glob.has_magic(word):
        return _of_directory(word, names) if os.path.isdir(word) else [word]
    paths = []
    for path in glob.glob(word):
        if os.path.basename(path.rstrip("/")).startswith("_"):
            continue
        paths += _of_directory(path, names) if os.path.isdir(path) else [path]
    if not paths:
        raise FileNotFoundError(f"{word}: there is no such file")
    return paths


def _bytewise(path):
    directory, name = os.path.split(os.fsencode(path))
    return directory + b"/", name


def find(patterns):
    """[(path, size, time in ns)] of the files that (pattern, pattern of names in directories) name: of each pattern by directory,
    then by name, bytewise; none twice. ValueError, OSError."""
    listing, seen, names_size = [], set(), 0
    for pattern, names in patterns:
        pattern = pattern[len("file://"):] if pattern.startswith("file://") else pattern
        paths = {os.path.abspath(path) for word in _words(pattern) for path in _of_word(word, names)}
        for path in sorted(paths - seen, key=_bytewise):
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"{path}: is no regular file")
            if path.endswith(COMPRESSED):
                raise ValueError(f"{path}: is compressed, and in lockstep samples are read from where they stand: unpack it, or read it "
                                 "through primus.torch.TaskDataset")
            names_size += len(path)
            if len(listing) >= FILES_MAX or names_size > NAMES_MAX:
                raise ValueError(f"{pattern}: more than {FILES_MAX} files or {NAMES_MAX >> 20} MiB of paths: put samples together "
                                 "in tar files")
            listing.append((path, found.st_size, found.st_mtime_ns))
        seen |= paths
    if not any(size for _, size, _ in listing):
        raise ValueError(f"{', '.join(pattern for pattern, _ in patterns)}: no files, or empty ones")
    return listing


def of_job():
    """What the job says of its input ($PRIMUS_INPUT): None where it says nothing of lockstep; else {patterns, format, record_size,
    lockstep, shuffle, seed, max_record}. masterd has refused what does not go with it."""
    path = os.environ.get("PRIMUS_INPUT")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    settings = said.get("input", {})
    if settings.get("lockstep", "off") == "off":
        return None
    kinds, patterns = set(), []
    for source in said["inputManager"]["fileConfig"]["inputs"]:
        spec = source["spec"]
        kinds.add(("tar", None) if "tarInput" in spec else ("fixed", spec["fixedInput"]["recordSize"]) if "fixedInput" in spec else ("text", None))
        patterns.append((spec["pathPattern"], spec.get("namePattern") or "*"))
    (kind, record_size), = kinds
    return {"patterns": patterns, "format": kind, "record_size": record_size, "lockstep": settings["lockstep"],
            "shuffle": settings.get("order") == "shuffle", "seed": settings.get("seed", 0), "max_record": settings.get("maxRecord", 64 << 20)}
