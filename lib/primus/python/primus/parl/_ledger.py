# SPDX-License-Identifier: Apache-2.0
"""Which objects have which slots. A slot is a CPU (None) or, in a cluster of GPUs, the number of one. Who asks first is served first."""
import collections
import dataclasses
import secrets


@dataclasses.dataclass
class Lease:
    job: str  # what nobody guesses: by it a log is read
    client: str
    worker: str
    slots: list


@dataclasses.dataclass
class Share:
    """Of a worker."""
    slots: int
    vacant: list
    about: dict


class Ledger:
    """gpus: whether slots are GPUs."""

    def __init__(self, gpus):
        self.gpus = gpus
        self.shares, self.leases = {}, {}  # by worker, by job
        self._waiting = collections.OrderedDict()  # by (client, number): how many slots at once
        self._vacant = collections.OrderedDict()  # workers with a vacant slot, in turn

    def add(self, worker, slots, about):
        self.shares[worker] = Share(len(slots), list(slots), about)
        if slots:
            self._vacant[worker] = None

    def remove(self, worker):
        """And the leases that were there."""
        del self.shares[worker]
        self._vacant.pop(worker, None)
        for lease in [lease for lease in self.leases.values() if lease.worker == worker]:
            del self.leases[lease.job]

    def ask(self, client, number, slots):
        self._waiting[client, number] = slots

    def cancel(self, client, number):
        """False: it does not wait any more."""
        return self._waiting.pop((client, number), None) is not None

    def give_back(self, client, job):
        """A lease, which may be gone with its worker."""
        lease = self.leases.get(job)
        if lease is not None and lease.client == client:
            del self.leases[job]
            self.shares[lease.worker].vacant.extend(lease.slots)
            self._vacant[lease.worker] = None

    def leave(self, client):
        """With all leases that it had."""
        for key in [key for key in self._waiting if key[0] == client]:
            del self._waiting[key]
        for lease in [lease for lease in self.leases.values() if lease.client == client]:
            self.give_back(client, lease.job)

    def grants(self):
        """[(number, Lease)] of who is served now."""
        granted = []
        while self._waiting:
            (client, number), wanted = next(iter(self._waiting.items()))
            worker = next((w for w in self._vacant if len(self.shares[w].vacant) >= wanted), None)
            if worker is None:
                break
            del self._waiting[client, number]
            vacant = self.shares[worker].vacant
            lease = Lease(secrets.token_hex(8), client, worker, [vacant.pop(0) for _ in range(wanted)])
            if vacant:
                self._vacant.move_to_end(worker)
            else:
                del self._vacant[worker]
            self.leases[lease.job] = lease
            granted.append((number, lease))
        return granted

    def totals(self):
        """(used, vacant)"""
        vacant = sum(len(share.vacant) for share in self.shares.values())
        return sum(share.slots for share in self.shares.values()) - vacant, vacant
