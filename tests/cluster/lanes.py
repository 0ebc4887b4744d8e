# SPDX-License-Identifier: Apache-2.0
"""pytest -p lanes --share DIR: several runs beside each other, which together run every test once. Each takes a file of tests when it has
done its last one, so none waits long for another, however long the files take; what a run has claimed is a file in DIR.
--budget SECONDS: no test begins after that time; those that did not are said, and are no failure.
"""
import itertools
import os
import time


def pytest_addoption(parser):
    parser.addoption("--share", metavar="DIR", help="an empty directory; runs that have the same one share the files of tests")
    parser.addoption("--budget", metavar="SECONDS", type=float, help="no test begins after that time")


def _claimed(session, directory):
    own = set()
    for path, items in itertools.groupby(session.items, key=lambda item: item.path):
        if path not in own:
            try:
                os.close(os.open(os.path.join(directory, path.name), os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            except FileExistsError:
                continue
            own.add(path)
        yield from items


def pytest_runtestloop(session):
    """As pytest's own, over what is claimed: the next test is known while one runs, so that fixtures are kept for it."""
    directory = session.config.getoption("--share")
    if not directory or session.testsfailed or session.config.option.collectonly:
        return None
    claimed = _claimed(session, directory)
    end = time.monotonic() + (session.config.getoption("--budget") or float("inf"))
    item = next(claimed, None)
    while item is not None:
        following = next(claimed, None) if time.monotonic() < end else None
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    if time.monotonic() >= end:
        session.config.out_of_time = [one.nodeid for one in claimed]
    return True


def pytest_terminal_summary(terminalreporter, config):
    left = getattr(config, "out_of_time", [])
    if left:
        terminalreporter.write_line(f"no time was left for {len(left)} tests, of which the first is {left[0]}")
