# SPDX-License-Identifier: Apache-2.0
"""Determined's Core API on Primus: what a program of it imports. Names and meanings are Determined's (0.38); what is behind them is
primus.trial, primus.metrics, primus.checkpoints and primus.distributed. What is not here is refused by name.
docs/migrating-from-determined.md has the table."""
import sys

__version__ = "0.38.1+primus"
LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"


class InvalidHP(Exception):
    """These hyperparameters make no sense: the trial ends, does not count, and another one takes its place."""

    def __init__(self, msg="...", *args):
        super().__init__(msg, *args)


class _Refuses:
    """What there is no shim of says so."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("determined."):
            raise ModuleNotFoundError(f"{name} is not in Primus's stand-in for Determined, which has the Core API alone: "
                                      "docs/migrating-from-determined.md says what takes its place", name=name)


sys.meta_path.append(_Refuses)

from determined import core  # noqa: E402, F401
from determined._info import ClusterInfo, RendezvousInfo, TrialInfo, get_cluster_info  # noqa: E402, F401


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"determined.{name} is not in Primus's stand-in for Determined: docs/migrating-from-determined.md")
