# SPDX-License-Identifier: Apache-2.0
"""The master of a cluster of xparl: knows its workers and who has which slot. Calls do not come through here, but go from client to worker."""
import collections
import itertools
import pickle
import threading
import time

from primus.actors._door import Door
from primus.actors._frames import Frames

from . import monitor
from ._ledger import Ledger
from ._link import Link
from ._secret import secret

JOBS_MAX = 1000  # of a client, whose logs are found
ADDRESSES_MAX = 16


class _Peer:
    """A worker, a client, or who asks how things are, until it has said which."""

    def __init__(self, master, channel, number):
        host, port = channel.peer()
        self.host = host.removeprefix("::ffff:")
        self.kind, self.id, self.about = None, f"{self.host.replace(':', '_')}_{port}_{number}", {}
        self.began = time.time()
        self.jobs = collections.OrderedDict()  # of a client: where its logs are, by job
        self.link = Link(Frames(channel), lambda said: master.hear(self, said), lambda: master.lose(self))


class Master:
    """port       int or text; None: any
    monitor_port  where its page is; None: there is none of its own
    device        "cpu" or "gpu": what a slot is

    run() listens until exit(), and calls on_listening when it does. cpu_num and gpu_num are vacant slots."""

    on_listening = staticmethod(lambda: None)

    def __init__(self, port=None, monitor_port=None, device="cpu"):
        assert device in ("cpu", "gpu"), f"{device!r} is neither cpu nor gpu"
        self._port, self._monitor_port = int(port or 0), int(monitor_port) if monitor_port else None
        self._ledger = Ledger(device == "gpu")
        self._lock = threading.RLock()
        self._peers = {}  # by id
        self._numbers = itertools.count(1)
        self._door, self._over = None, threading.Event()
        self.cluster_monitor = self

    def run(self):
        known = secret()
        self._door = Door(known, self._port, self._come)
        self._port = self._door.port
        pages = None
        if self._monitor_port is not None:
            pages = monitor.serve(self.get_data, self._monitor_port, monitor.path(known))
        self.on_listening()
        try:
            self._over.wait()
        finally:
            if pages is not None:
                pages.close()
            self._door.close()
            with self._lock:
                peers = list(self._peers.values())
            for peer in peers:
                peer.link.close()

    def exit(self):
        self._over.set()

    # ---- what it knows

    @property
    def port(self):
        return self._port

    @property
    def cpu_num(self):
        return 0 if self._ledger.gpus else self._totals()[1]

    @property
    def gpu_num(self):
        return self._totals()[1] if self._ledger.gpus else 0

    @property
    def worker_num(self):
        with self._lock:
            return len(self._ledger.shares)

    @property
    def monitor_url(self):
        """Of its page, with what only who has the secret knows; None."""
        return self._monitor_port and f"http://127.0.0.1:{self._monitor_port}{monitor.path(secret())}"

    def _totals(self):
        with self._lock:
            return self._ledger.totals()

    def get_status_info(self):
        used, vacant = self._totals()
        cpus, gpus = ((0, 0), (used, vacant)) if self._ledger.gpus else ((used, vacant), (0, 0))
        return f"has {cpus[0]} used cpus, {cpus[1]} vacant cpus, {gpus[0]} used_gpus, {gpus[1]} vacant_gpus."

    def status(self):
        """[one dict for each worker, client, and where a client's logs are]"""
        kind = "gpus" if self._ledger.gpus else "cpus"
        with self._lock:
            for id, share in self._ledger.shares.items():
                counts = {"vacant_cpus": 0, "used_cpus": 0, "vacant_gpus": 0, "used_gpus": 0,
                          f"vacant_{kind}": len(share.vacant), f"used_{kind}": share.slots - len(share.vacant)}
                yield {"worker": {"id": id, **share.about, **counts}}
            held = collections.Counter(lease.client for lease in self._ledger.leases.values())
            for peer in self._peers.values():
                if peer.kind != "client":
                    continue
                yield {"client": {"id": peer.id, **peer.about, "actor_num": held[peer.id], "time": round(time.time() - peer.began), "log_monitor_url": self.monitor_url}}
                for job, where in peer.jobs.items():
                    yield {"job": [peer.id, job, where]}

    def get_data(self):
        return monitor.data_of(self.status())

    def _get_status(self):
        """A pickle, as PARL's own has it."""
        data = self.get_data()
        return pickle.dumps({"workers": {w["id"]: w for w in data["workers"]}, "clients": {c["id"]: c for c in data["clients"]}, "client_jobs": data["client_jobs"]})

    # ---- who comes and goes

    def _come(self, channel):
        """In the door's thread: it has the secret."""
        peer = _Peer(self, channel, next(self._numbers))
        with self._lock:
            self._peers[peer.id] = peer
        peer.link.start()
        if self._over.is_set():
            peer.link.close()

    def lose(self, peer):
        with self._lock:
            del self._peers[peer.id]
            if peer.kind == "worker":
                self._ledger.remove(peer.id)
                self._tell_clients(gone=peer.id)
            elif peer.kind == "client":
                self._ledger.leave(peer.id)
            self._grant()

    def _tell_clients(self, **what):
        for peer in self._peers.values():
            if peer.kind == "client":
                peer.link.say(**what)

    def _grant(self):
        for number, lease in self._ledger.grants():
            client, share = self._peers[lease.client], self._ledger.shares[lease.worker]
            client.jobs[lease.job] = share.about["logs"]
            while len(client.jobs) > JOBS_MAX:
                client.jobs.popitem(last=False)
            client.link.say(answer=number, job=lease.job, worker=lease.worker, host=share.about["hostname"], gpus=lease.slots if self._ledger.gpus else None)

    # ---- what they say

    def hear(self, peer, said):
        """In its link's thread."""
        try:
            with self._lock:
                kind, take = next(_WORDS[word] for word in _WORDS if word in said)
                if kind is not peer.kind and kind is not _ANY:
                    raise ValueError
                then = take(self, peer, said)
            if then is not None:
                then()
        except (StopIteration, ValueError, TypeError, KeyError, AttributeError):  # of another version
            peer.link.close()

    def _hear_worker(self, peer, said):
        about = said["worker"]
        slots = [str(gpu) for gpu in about["gpus"]] if self._ledger.gpus else [None] * (0 if about["gpus"] else int(about["cpus"]))
        peer.kind = "worker"
        peer.about = {"hostname": str(about["hostname"]), "logs": str(about["logs"])}
        self._ledger.add(peer.id, slots, peer.about)
        peer.link.say(answer=said["ask"], id=peer.id, slots=len(slots))
        self._grant()

    def _hear_client(self, peer, said):
        peer.kind = "client"
        peer.about = {"hostname": str(said["client"]["hostname"]), "file_path": str(said["client"]["file_path"])}
        peer.link.say(answer=said["ask"], id=peer.id, monitor=self.monitor_url)

    def _hear_lease(self, peer, said):
        gpus = int(said["lease"])
        refused = None
        if self._ledger.gpus and gpus < 1:
            refused = "this is a cluster of GPUs: @parl.remote_class(n_gpu=1)"
        elif not self._ledger.gpus and gpus:
            refused = "n_gpu: there are no GPUs in this cluster: xparl start --gpu_cluster"
        if refused:
            peer.link.say(answer=said["ask"], refused=refused)
            return
        self._ledger.ask(peer.id, said["ask"], gpus or 1)
        self._grant()

    def _hear_cancel(self, peer, said):
        self._ledger.cancel(peer.id, said["cancel"])
        self._grant()

    def _hear_back(self, peer, said):
        self._ledger.give_back(peer.id, said["back"])
        self._grant()

    def _hear_open(self, peer, said):
        """A client has a place for that worker's processes to connect to."""
        worker = self._peers.get(said["open"])
        if worker is not None and worker.kind == "worker":
            where = [peer.host, *(str(a) for a in said["addresses"][:ADDRESSES_MAX])]
            worker.link.say(open=peer.id, port=int(said["port"]), addresses=where)

    def _hear_closed(self, peer, said):
        """A worker's process for that client has ended."""
        client = self._peers.get(said["closed"])
        if client is not None:
            client.link.say(gone=peer.id)

    def _hear_status(self, peer, said):
        """What is to be said when the others are no longer held up: it may be much."""
        found, info = list(self.status()), self.get_status_info()

        def say():
            for one in found:
                peer.link.say(True, part=said["ask"], **one)
            peer.link.say(True, answer=said["ask"], info=info)

        return say


_ANY = object()
# Who says it (None: who has not said yet what it is), and what is done then.
_WORDS = {"worker": (None, Master._hear_worker), "client": (None, Master._hear_client), "lease": ("client", Master._hear_lease), "cancel": ("client", Master._hear_cancel),
          "back": ("client", Master._hear_back), "open": ("client", Master._hear_open), "closed": ("worker", Master._hear_closed), "status": (_ANY, Master._hear_status)}
