# SPDX-License-Identifier: Apache-2.0
"""As much of Ray's interface as its own tests of ActorPool need, by primus.actors. With a checkout of Ray's repository:

    PYTHONPATH=lib/primus/python:tests/python/standin python3 -m pytest RAY/python/ray/tests/test_actor_pool.py --noconftest

of a copy of that file elsewhere, since beside it lies Ray itself."""
from primus import actors


class _Method:
    def __init__(self, call):
        self.remote = call


class _Actor:
    """A handle whose methods are called by .remote()."""

    def __init__(self, handle):
        self._handle = handle

    def __getattr__(self, name):
        return _Method(getattr(self._handle, name))


class _Class:
    def __init__(self, made):
        self._made = made

    def remote(self, *args, **kwargs):
        return _Actor(actors.current().create(self._made, *args, **kwargs))


def remote(made):
    return _Class(made)


def method(num_returns):
    """Several are one tuple here."""
    def decorate(function):
        def several(*args):
            return list(function(*args))
        return several if num_returns > 1 else function
    return decorate


def init(num_cpus):
    actors.Pool(slots=num_cpus)


def shutdown():
    actors.current().close()
