# SPDX-License-Identifier: Apache-2.0
"""connect(): where this process's remote objects are. On a cluster of xparl, by its master's address; or, where python3 -m primus.parl was
told so, in a pool of primus.actors: on this host, or as a job on several."""
import json
import os
import queue
import socket
import sys
import threading

from primus.actors import NotStarted, Pool
from primus.actors._job import own_addresses

from . import _bundle
from ._link import Link, dial
from ._secret import secret
from .exceptions import ResourceError

WAIT_SECONDS = 300  # for a slot
JOIN_SECONDS = 30
POOL = "PRIMUS_PARL_POOL"  # in the environment: Pool()'s arguments, as JSON

_client = None
_choosing = threading.RLock()  # which is the one of this process
os.register_at_fork(before=_choosing.acquire, after_in_parent=_choosing.release, after_in_child=_choosing.release)


class Place:
    """A slot that an object has. give_back() is for once, and waits for nothing."""

    def __init__(self, pool, job, gpus, give_back, host=None):
        """host: whose slot it is; None: the pool has yet to find one."""
        self.pool, self.job, self.gpus, self.give_back, self.host = pool, job, gpus, give_back, host


def _preload():
    """What each object's process would import again."""
    return ["primus.parl._runner", *(name for name in ("numpy", "torch") if name in sys.modules)]


class Xparl:
    """A cluster of xparl. One pool for each worker that has an object of this client."""

    def __init__(self, address):
        self._lock = threading.Lock()
        self._pools = {}  # by worker
        self._link = Link(dial(address), self._hear).start()  # when it ends, objects live on; there will be no other ones
        self._over = queue.SimpleQueue()  # jobs of objects that are gone; None: the end
        threading.Thread(target=self._give_back, name="xparl-back", daemon=True).start()
        script = os.path.abspath(getattr(sys.modules["__main__"], "__file__", os.getcwd()))
        said, _ = self._link.ask(client={"hostname": socket.gethostname(), "file_path": script}).result(JOIN_SECONDS)
        self.id, self.monitor_url = said["id"], said["monitor"]

    def take(self, gpus, seconds):
        """A Place. ResourceError: there is none."""
        asked = self._link.ask(lease=gpus)
        try:
            granted, _ = asked.result(seconds)
        except TimeoutError:
            if self._link.forget(asked):
                self._link.say(cancel=asked.number)
                raise ResourceError(f"no slot of the cluster has become free within {seconds} s") from None
            granted, _ = asked.result()
        except ConnectionError as e:
            raise ResourceError(str(e)) from None
        if "refused" in granted:
            raise ResourceError(granted["refused"])
        job = granted["job"]
        try:
            pool = self._pool_of(granted["worker"])
        except BaseException:
            self._link.say(back=job)
            raise
        return Place(pool, job, granted["gpus"], lambda: self._over.put(job), granted["host"])

    def _give_back(self):
        """In a thread: an object may go anywhere, also while another thread, or this one, says something."""
        while (job := self._over.get()) is not None:
            self._link.say(back=job)

    def _pool_of(self, worker):
        with self._lock:
            pool = self._pools.get(worker)
            if pool is None:
                pool = self._pools[worker] = Pool.of_job(private=True, port=0, secret=secret(), preload=_preload())
                try:
                    addresses = own_addresses()
                except NotStarted:  # the master knows one
                    addresses = []
                self._link.say(open=worker, port=pool.port, addresses=addresses)
            return pool

    def _hear(self, said):
        """In the link's thread."""
        if "gone" in said:
            with self._lock:
                pool = self._pools.pop(said["gone"], None)
            if pool is not None:
                pool.close()
        elif "job" in said:  # for who has given up waiting
            self._link.say(back=said["job"])

    def close(self):
        with self._lock:
            pools, self._pools = self._pools, {}
        self._over.put(None)
        self._link.close()
        for pool in pools.values():
            pool.close()

    def forget(self):
        self._link.forget_in_child()


class Here:
    """A pool of primus.actors, which has slots and nothing else."""

    def __init__(self, settings):
        self._gpus = settings.get("gpus") or 0
        self._pool = Pool(private=True, preload=_preload(), **settings)
        self.id, self.monitor_url = "primus", None

    def take(self, gpus, _):
        if gpus != self._gpus:
            raise ResourceError(f"n_gpu={gpus}: each slot of this pool has {self._gpus}: python3 -m primus.parl --gpus {gpus}")
        return Place(self._pool, os.urandom(8).hex(), None, lambda: None)

    def close(self):
        self._pool.close()
        _bundle.sweep()

    def forget(self):
        pass


class _Count:
    """PARL has a shared number there."""

    def __init__(self):
        self._lock = threading.RLock()  # an object may go in the middle of it
        self.value = 0

    def add(self, n):
        with self._lock:
            self.value += n


class Client:
    """master_address, distributed_files: connect()'s

    client_id    what the master calls it
    actor_num    .value: objects that are there"""

    def __init__(self, master_address, distributed_files):
        self.master_address, self.distributed_files = master_address, distributed_files
        self.process_id = os.getpid()
        self.bundle = _bundle.read(distributed_files)
        self.actor_num = _Count()
        settings = os.environ.get(POOL)
        self.cluster = Here(json.loads(settings)) if settings else Xparl(master_address)
        self.client_id, self.log_monitor_url = self.cluster.id, self.cluster.monitor_url
        self.connected_to_master = True

    def take(self, gpus):
        place = self.cluster.take(gpus, WAIT_SECONDS)
        self.actor_num.add(1)
        return place

    def give_back(self, place):
        self.actor_num.add(-1)
        place.give_back()

    def destroy(self):
        self.connected_to_master = False
        if self.process_id == os.getpid():
            self.cluster.close()
        else:
            self.cluster.forget()


def connect(master_address, distributed_files=[]):
    """master_address    "HOST:PORT" of the cluster's master
    distributed_files    names of files and directories, with * and ?, relative to this one: they lie by the same names beside each object;
                         the scripts beside the main one go along by themselves

    They are read now. ValueError: a name matches nothing; AssertionError: an address or a name that is none; ConnectionError: nobody is there."""
    global _client
    if os.environ.get("XPARL") == "True":  # a module that connects has been imported by an object
        return
    with _choosing:
        if _client is not None and _client.process_id == os.getpid():
            print(f"parl.connect: this process is connected to {_client.master_address} already", file=sys.stderr)
            return
        parents, _client = _client, Client(master_address, distributed_files)
        if parents is not None:
            parents.destroy()


def get_global_client():
    """The Client of this process. A child of one that has connected gets one of its own. AssertionError: there is none."""
    with _choosing:
        assert _client is not None, "connect first: parl.connect(\"HOST:PORT\")"
        if _client.process_id != os.getpid():
            connect(_client.master_address, _client.distributed_files)
        return _client


def disconnect():
    """All remote objects of this process end."""
    global _client
    if _client is not None:
        _client.destroy()
    _client = None
