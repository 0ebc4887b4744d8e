# SPDX-License-Identifier: Apache-2.0
"""Checks that make up a story: each is a function, numbered, one line "ok" or "not ok" of the result. What a check needs to have
happened before is named, and happens first when only some are asked for."""
import os
import time
import traceback

from checks import Failed

CHECKS = []


class Log:
    """All that happens, with seconds, in a file; results and figures on standard output too."""

    def __init__(self, path):
        self.path, self.directory = path, os.path.dirname(path)
        os.makedirs(self.directory, exist_ok=True)
        self.file = open(path, "w")  # noqa: SIM115 - as long as the tests
        self.began = time.monotonic()

    def _write(self, text):
        self.file.write(f"{time.monotonic() - self.began:7.1f}s  {text}\n")
        self.file.flush()

    def note(self, text):
        self._write(text)

    def command(self, name, command, done, seconds):
        lines = [f"{name}$ {command}   [{done.status}, {seconds:.1f} s]"]
        for text, mark in ((done.out, "    "), (done.err, "  ! ")):
            lines += [mark + line for line in text.splitlines()[:400]]
        self._write("\n".join(lines))

    def say(self, text):
        self._write(text)
        print(f"{time.monotonic() - self.began:6.0f}s  {text}", flush=True)

    def figure(self, text):
        self.say(f"   figure: {text}")


def check(number, *needs):
    """Makes a function a check. number: its place in the story, "4.2"; needs: functions that have to have passed before."""
    def add(function):
        function.number, function.needs = number, needs
        CHECKS.append(function)
        return function
    return add


def chosen(words):
    """The checks that are asked for, by number ("4", "4.2") or name, with all they need, in order. Raises LookupError."""
    if not words:
        wanted = set(CHECKS)
    else:
        wanted = set()
        for word in words:
            some = {c for c in CHECKS if word in (c.__name__, c.number) or c.number.startswith(f"{word}.")}
            if not some:
                raise LookupError(word)
            wanted |= some
    asked, rest = set(wanted), list(wanted)
    while rest:
        for function in rest.pop().needs:
            if function not in wanted:
                wanted.add(function)
                rest.append(function)
    order = sorted(wanted, key=lambda c: [int(part) for part in c.number.split(".")])
    return order, asked


def play(words, pair, log):
    """Returns how many passed and how many did not."""
    order, asked = chosen(words)
    passed, failed = [], []
    for function in order:
        line = f"{function.number} {function.__doc__}"
        if function.__name__ in pair.done and not (words and function in asked):
            passed.append(function)
            continue
        missing = [n.number for n in function.needs if n not in passed]
        began = time.monotonic()
        try:
            if missing:
                raise Failed(f"not tried, since {', '.join(missing)} failed")
            if pair.left() <= 0:
                raise Failed("not tried: the time for all of it is over")
            for m in pair.machines.values():
                if not m.is_on():  # after a check that failed half-way
                    m.power_on()
            function(pair, log)
            log.say(f"ok - {line} ({time.monotonic() - began:.0f} s)")
            passed.append(function)
            pair.done.append(function.__name__)
            pair.save()
        except Failed as e:
            log.say(f"not ok - {line}: {e}")
            failed.append(function)
        except Exception:  # a check that breaks is one that fails
            log.say(f"not ok - {line}:\n{traceback.format_exc()}")
            failed.append(function)
    return len(passed), len(failed)
