# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests of concurrent.futures (Debian: libpython3.11-testsuite), with primus.actors.Executor for its executors and
primus.actors.Future for its futures."""
import pathlib
import sys
import unittest

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib/primus/python"))
theirs = pytest.importorskip("test.test_concurrent_futures")

from primus import actors  # noqa: E402


class Mixin(theirs.ExecutorMixin):
    executor_type = actors.Executor

    def get_context(self):
        return None

    @classmethod
    def setUpClass(cls):
        cls.worker_count = 4


class TestExecutor(Mixin, theirs.ExecutorTest, unittest.TestCase):
    # A local function that is counted by its references is pickled here.
    test_no_stale_references = None


class TestWait(Mixin, theirs.WaitTests, unittest.TestCase):
    pass


class TestAsCompleted(Mixin, theirs.AsCompletedTests, unittest.TestCase):
    pass


class TestInitializer(Mixin, theirs.InitializerMixin, unittest.TestCase):
    pass


class TestShutdown(Mixin, theirs.ExecutorShutdownTest, unittest.TestCase):
    # Programs that name their executor by its name in concurrent.futures; test_actors.py has them.
    test_interpreter_shutdown = test_submit_after_interpreter_shutdown = test_hang_gh83386 = None
