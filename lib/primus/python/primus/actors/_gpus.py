# SPDX-License-Identifier: Apache-2.0
"""Which GPUs of a host an actor has: so many of the executor's own, in the variables that CUDA and ROCm read. Actors of one host are of one
user and one unit; who sets these variables anew can open the others' GPUs."""

VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "PRIMUS_GPUS")


class Gpus:
    """environment: the executor's; each: int, of one actor"""

    def __init__(self, environment, each):
        lists = {name: environment[name].split(",") for name in VARIABLES if environment.get(name)}
        n = max(map(len, lists.values()), default=0)
        self._lists = {name: devices for name, devices in lists.items() if len(devices) == n}  # the other maker's says that it has none
        self._each, self._free = each, list(range(n))
        self._taken = {}  # by the actor's id

    def missing(self, slots):
        """A sentence where there are not enough of them, or None."""
        if len(self._free) >= slots * self._each:
            return None
        return f"gpus: {slots} slots of {self._each} GPUs each, and this host's executor has {len(self._free)}"

    def take(self, id):
        """The actor's environment."""
        self._taken[id], self._free = self._free[:self._each], self._free[self._each:]
        if not self._each:
            return {}
        return {name: ",".join(devices[i] for i in self._taken[id]) for name, devices in self._lists.items()}

    def give_back(self, id):
        self._free = sorted(self._free + self._taken.pop(id, []))
