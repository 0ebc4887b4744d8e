# SPDX-License-Identifier: Apache-2.0
"""Ray's name for it, and for what it has not dealt out yet."""
from primus import actors


class ActorPool(actors.ActorPool):
    @property
    def _pending_submits(self):
        return self._waiting
