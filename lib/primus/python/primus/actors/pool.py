# SPDX-License-Identifier: Apache-2.0
"""A pool: slots for actors, on this host or on several."""
import atexit
import collections
import contextlib
import os
import pickle
import socket
import sys
import threading
import weakref

from . import _arena, _ship, _travel, _wire
from ._caller import Connection
from ._hello import unlike
from ._life import Life
from ._place import Packets, Place
from ._relay import Relay, refused
from ._size import size as size_of
from ._watch import Watcher
from .errors import ActorError, HostLost, HostRefused, PoolClosed, PreloadRefused, died_of, memory_of

START_SECONDS = 60  # until the zygote has imported what it is to
SECRET_BYTES = 32
CONNECTING_MAX = 128  # actors of other hosts that have been started and have not connected: the door hears so many strangers at a time, and no more

_current = []  # pools that are open, the latest last
_all = weakref.WeakSet()


def _forget_all():
    """In a forked child: as long as that had the sockets, too, nothing would end with the pool's own process."""
    _current.clear()
    for pool in list(_all):
        pool._forget()


os.register_at_fork(after_in_child=_forget_all)


def opened(pool, private=False):
    """It is what current() gives, unless it is private; a forked child forgets it."""
    _all.add(pool)
    if not private:
        _current.append(pool)


def closed(pool):
    if pool in _current:
        _current.remove(pool)


def current():
    """The pool that was opened last, and is open still. ActorError: there is none."""
    if not _current:
        raise ActorError("there is no pool: with actors.Pool(slots=4): ...")
    return _current[-1]


class Handle(_travel.Handle):
    """In the program that has the pool."""

    __slots__ = ("_life", "_pool")

    def __init__(self, pool, life):
        self._pool, self._life, self._actor = pool, life, (pool.name, life.number, life.what, life.idempotent)
        self._finalize = weakref.finalize(self, life.let_go, life.hold())

    def _call(self, name, /, *args, **kwargs):
        life = self._life
        return life.connection.call(name, args, kwargs, life if name in life.idempotent else None)

    def _kill(self):
        self._pool.kill(self)


class Pool:
    """slots      int: so many actors at a time, as many as there are CPUs for this process if not said; others wait for their turn
    preload    names of modules that are imported once, before all actors are forked
    warm       int: so many processes are forked ahead of need
    private    True: it is not what current() gives

    shared     bytes as int or "64M": so much memory do the program and each actor share for large arrays in either direction, which are copied
               once then; 0: none, they go through the socket; on this host

    hosts      int: on so many hosts, slots of them on each, as a job of the cluster (primusctl submit); None: here
    cpus, memory, gpus   of each slot: float, bytes as int or "2G", int; with hosts
    queue, time    the job's, as primusctl submit has them; with hosts
    address    [str]: where hosts can reach this one; all addresses of it if not said; with hosts
    files      [str]: files and directories below the current one, which go along once to each host: they are the actors' current directory,
               and modules among them are found first; with hosts

    Actors run as this user, and end with the pool. PreloadRefused: one of the modules is none, or starts threads. A pool of several
    hosts is there at once, and actors wait until a host is; a host that is lost is replaced by the job, and its actors are HostLost."""

    def __init__(self, slots=None, *, preload=(), warm=2, private=False, hosts=None, cpus=None, memory=None, gpus=0, queue=None, time=None,
                 address=None, files=(), shared=0):
        if hosts is None and (gpus or files or not cpus is memory is queue is time is address is None):
            raise TypeError("cpus, memory, gpus, queue, time, address and files are for a pool of several hosts: hosts=N")
        if hosts is not None and shared:
            raise TypeError("shared is for a pool on this host, which shares its memory")
        shared = size_of(shared)
        self._begin(slots, preload, warm, private, memory, gpus)
        self._settings["files"] = bool(files)
        self._shared = shared
        if hosts is None:
            self._begin_here()
            return
        from . import _door, _job  # ssl and what it needs, which a pool on this host does without
        door = _door.Door(os.urandom(SECRET_BYTES), 0, self._host_came)
        try:
            self._job = _job.Job(hosts, self.slots, cpus, memory, gpus, queue, time, address, files, door)
        except BaseException:
            door.close()
            self._watcher.finish()
            raise
        self._begin_there(door)
        self._watcher.hear_from(self._job, self._hear_job)

    @classmethod
    def of_job(cls, *, preload=(), warm=2, private=False, memory=None, gpus=0, files=False, guests=False, port=None, secret=None):
        """A pool of the hosts of this very job: for the process of rank 0, where other roles run python3 -m primus.actors.host.

        memory    bytes as int or "2G", that the kernel holds each actor to, where the role of the hosts has "delegate"
        gpus      int, so many of its host's has each actor
        files     bool: the hosts' current directory has modules
        guests    bool: other programs that have the secret may come, and use it as this one does (actors.attach())
        port      int, where to listen; MASTER_PORT, which was granted to this one, if not said
        secret    bytes, that all of them have; the job's secret "actors" if not said"""
        from . import _door, host
        if port is None and os.environ.get("RANK", "0") != "0":
            raise ActorError("Pool.of_job() is for rank 0 of a job, since that is where hosts look for it")
        if port is None and "MASTER_PORT" not in os.environ:
            raise ActorError("Pool.of_job() is for an executor of a job: MASTER_PORT is not set")
        secret = host.secret(os.environ) if secret is None else secret
        pool = cls.__new__(cls)
        pool._begin(1, preload, warm, private, memory, gpus)
        pool._settings["files"] = files
        try:
            pool._begin_there(_door.Door(secret, int(os.environ["MASTER_PORT"]) if port is None else port, pool._host_came, pool._guest_came if guests else None))
        except BaseException:
            pool._watcher.finish()
            raise
        return pool

    def _begin(self, slots, preload, warm, private, memory, gpus):
        self.slots = len(os.sched_getaffinity(0)) if slots is None else slots
        if self.slots < 1 or warm < 0:
            raise ValueError("slots is at least 1, and warm not below 0")
        if not isinstance(gpus, int) or gpus < 0:
            raise ValueError("gpus is a whole number, not below 0")
        self._settings = {"path": sys.path, "preload": list(preload), "warm": warm, "gpus": gpus, "files": False,
                          "memory": None if memory is None else size_of(memory)}
        self._private = private
        self._lock = threading.RLock()
        self._connections, self._lives = {}, {}  # by id, of actors that have not ended
        self.name = os.urandom(8).hex()  # in handles that travel
        self._numbered = weakref.WeakValueDictionary()  # lives, by number
        self._names = {}  # Handles of actors that have one
        self._relay = Relay(self.name, self._numbered.get, self._hear_wish, self._keep_state)
        _travel.pools[self.name] = self
        self._shared = 0  # bytes
        self._where = {}  # by id: the Place of those that were started
        self._places = []
        self._arrivals = set()  # hosts that are not ready yet
        self._guests = []  # Connections of programs that have come
        self.ended = threading.Event()  # the pool is over, or somebody wants that
        self._free = collections.deque()  # of them, those with room, in turn
        self._waiting = collections.deque()  # ids of those that have no slot yet
        self._tokens = {}  # by id, of those that are to connect from another host
        self._next = 0
        self._over = None
        self._pid = os.getpid()
        self._door = self._job = None
        self._watcher = Watcher()

    def _begin_here(self):
        packets = Packets()
        try:
            why = packets.meet({**self._settings, "warm": min(self._settings["warm"], self.slots)}, START_SECONDS)
            if why:
                raise PreloadRefused(why)
        except ActorError:
            self._watcher.finish()
            raise
        self._open()
        self._add(Place(packets, "this host", self.slots, False, self._watcher.want_room))

    def _begin_there(self, door):
        """port: where hosts connect, int."""
        self._door, self.port = door, door.port
        self._open()

    def _open(self):
        opened(self, self._private)
        atexit.register(self.close)

    # ---- places

    def _add(self, place):
        with self._lock:
            if self._over is not None:
                place.control.close()
                return
            self._places.append(place)
            self._free.append(place)
            self._watcher.hear_from(place.control, lambda: self._hear(place))
            self._start_waiting()

    def _host_came(self, channel):
        """In the door's thread: it has the secret."""
        from ._arrival import Arrival
        arrival = Arrival(channel, {**self._settings, "seconds": START_SECONDS},
                          lambda frames, *of: self._watcher.later(lambda: self._add(Place(frames, *of, self._watcher.want_room))),
                          lambda why, of: self._end((HostRefused if why.startswith("gpus: ") else PreloadRefused)(f"{of}: {why}")))
        with self._lock:
            if self._over is not None:
                arrival.frames.close()
                return
            self._arrivals.add(arrival)
        self._watcher.hear_from(arrival.frames, lambda: self._hear_arrival(arrival))

    def _guest_came(self, channel):
        """In the door's thread: a program, which asks as an actor does."""
        channel.keep_looking()
        with self._lock:
            if self._over is not None:
                channel.close()
                return
            guest = Connection(self._next, "a program", self._watcher, self._relay)
            self._next += 1
            self._guests = [*(one for one in self._guests if one.over is None), guest]
        guest.has_no_process()
        guest.attach(channel, channel.reader())
        guest.watch()

    def _meet_guest(self, said):
        """By a program that has come. ActorError: it is not like this one."""
        why = unlike({**said, "host": "the program"})
        if why:
            raise ActorError(why)

    def _hear_arrival(self, arrival):
        going_on = arrival.hear()
        if not going_on:
            with self._lock:
                self._arrivals.discard(arrival)
        return going_on

    # ---- actors

    def create(self, made, /, *args, **kwargs):
        """A Handle at once. made: a class, or what @remote made of one. What its constructor raises is the cause of NotConstructed,
        which every call raises then."""
        with _travel.sending() as handles:
            name, restarts, idempotent, body, buffers = described(made, args, kwargs)
        return self._create(name, restarts, idempotent, body, buffers, self._relay.lives_of(handles))

    def _create(self, name, restarts, idempotent, body, buffers, lent):
        with self._lock:
            if self._over is not None:
                raise self._over
            life = Life(self._next, f"{name} {self._next}", restarts, body, buffers, idempotent, lent)
            self._numbered[life.number] = life
            connection = self._connect(life)
            self._wait_for_slot(connection.id)
            handle = Handle(self, life)
        connection.construct(body, buffers, lent)
        if lent or self._names:
            connection.watch()
        if not restarts:
            life.body = life.buffers = None  # they may be large
            life.lent = ()
        return handle

    def _connect(self, life):
        """The lock is held. Its next connection: to a process that has no slot yet."""
        connection = life.connection = Connection(self._next, life.what, self._watcher, self._relay)
        self._next += 1
        self._connections[connection.id], self._lives[connection.id] = connection, life
        return connection

    def _wait_for_slot(self, id):
        with self._lock:
            if id in self._connections:  # not killed meanwhile
                self._waiting.append(id)
                self._start_waiting()

    def _connect_again(self, life):
        """The lock is held. What is called from now on waits for it; what was under way is lost."""
        connection = self._connect(life)
        if life.state is not None:
            connection.restore(*life.state)
        connection.construct(life.body, life.buffers, life.lent)  # held back, since it has no socket
        if life.begins_soon():
            self._watcher.in_a_while(lambda: self._wait_for_slot(connection.id))
        else:
            self._wait_for_slot(connection.id)
        if life.released:
            connection.release()

    def _start_waiting(self):
        while self._waiting and self._free and self._over is None and not (self._door and self._door.expecting() >= CONNECTING_MAX):
            id, place = self._waiting.popleft(), self._free.popleft()
            place.started[id] = None
            self._where[id] = place
            if place.has_room():
                self._free.append(place)
            connection = self._connections[id]
            if self._door is None:
                ours, theirs = socket.socketpair()
                given = [theirs.detach()]
                arena = None
                if self._shared:
                    fd = _arena.file(2 * self._shared)
                    given.append(os.dup(fd))
                    arena = _arena.Arena(fd, False)
                connection.attach(ours, _wire.Reader(ours), arena)
                place.say(*given, start=id)
            else:
                self._tokens[id] = token = self._door.expect(lambda channel, c=connection: self._actor_came(c, channel))
                place.say(start=id, token=token.hex(), what=self._lives[id].what)

    def _actor_came(self, connection, channel):
        """In the door's thread."""
        connection.attach(channel, channel.reader())
        if self._waiting:
            self._watcher.later(self._start_more)

    def _start_more(self):
        with self._lock:
            self._start_waiting()

    def kill(self, handle):
        """At once, whatever it does (SIGKILL), and for good."""
        with self._lock:
            handle._life.end()
            connection = handle._life.connection
            id = connection.id
            waits = id in self._connections and id not in self._where
            if waits:
                with contextlib.suppress(ValueError):  # it is to begin in a while
                    self._waiting.remove(id)
                del self._connections[id], self._lives[id]
                self._forget_name(handle._life)
            elif id in self._where and self._over is None:
                self._where[id].say(kill=id)
        if waits:
            connection.end(died_of(connection.what, 9))

    # ---- actors by name, and what actors ask of the pool

    def get(self, name):
        """A Handle of the actor by that name. ActorError: there is none."""
        with self._lock:
            if name not in self._names:
                raise ActorError(f"there is no actor by the name of {name!r}")
            return self._names[name]

    def get_or_create(self, name, made, /, *args, **kwargs):
        """A Handle of the actor by that name, which is made now if there is none. It lives until it is killed, dies for good, or its pool
        does, whoever has a handle of it. Of several who ask at a time all get the same one."""
        return self._get_or_make(name, lambda: self.create(made, *args, **kwargs))

    def _get_or_make(self, name, make):
        with self._lock:
            handle = self._names.get(name)
            if handle is None:
                handle = self._names[name] = make()
                for connection in list(self._connections.values()):  # any of them may ask for it
                    connection.watch()
            return handle

    def _get_or_create_of(self, name, of, restarts, idempotent, body, buffers, handles):
        """By an actor, which has described what it wants, and the handles that go along."""
        return self._get_or_make(name, lambda: self._create_of(of, restarts, idempotent, body, buffers, handles))

    def _create_of(self, of, restarts, idempotent, body, buffers, handles):
        """The same, without a name."""
        return self._create(of, restarts, idempotent, body, [memoryview(b) for b in buffers], self._relay.lives_of(handles))

    def _keep_state(self, id, *state):
        life = self._lives.get(id)
        if life is not None:
            life.state = state

    def _forget_name(self, life):
        """The lock is held. It is gone for good."""
        for name in [name for name, handle in self._names.items() if handle._life is life]:
            del self._names[name]

    def handle_of(self, number):
        """A Handle of the actor of that number. ActorError: it has ended."""
        life = self._numbered.get(number)
        if life is None:
            raise ActorError("the actor has ended")
        return Handle(self, life)

    def _hear_wish(self, borrower, body, buffers):
        """What an actor asks of its pool: (kind, body, buffers) of the answer."""
        try:
            wish, *what = pickle.loads(body, buffers=buffers)
            *answer, given = _travel.pickled(_WISHES[wish](self, *what))
            self._relay.lend(borrower.id, self._relay.lives_of(given))
            return _wire.DONE, *answer
        except Exception as e:
            return refused(e)

    def actors(self):
        """[{"actor", "name", "state": "waiting", "starting" or "running", "host", "pid", "calls", "restarts"}] of those that have not ended: the
        name that it was given, or None; where it is, or None; calls that have not been answered; how often it may be made again."""
        for connection in list(self._connections.values()):
            connection.look()
        with self._lock:
            names = {handle._life: name for name, handle in self._names.items()}
            found = []
            for id, life in self._lives.items():
                place = self._where.get(id)
                pid = place and place.started.get(id)
                found.append({"actor": life.what, "name": names.get(life), "state": "running" if pid else "starting" if place else "waiting",
                              "host": place and place.name, "pid": pid, "calls": life.connection.under_way(), "restarts": life.left()})
            return found

    def why(self, handle):
        """A sentence: what the actor waits for, or where it runs, or how it has ended."""
        life = handle._life
        life.connection.look()
        with self._lock:
            connection = life.connection
            id, what = connection.id, life.what
            over, place = self._over or connection.over, self._where.get(id)
            behind = list(self._waiting).index(id) if id in self._waiting else None
            pid = place and place.started.get(id)
            slots, job = sum(p.slots for p in self._places), self._job
        if over is not None:
            return f"{what} has ended: {over}"
        if place is not None:
            return f"{what} runs on {place.name} as process {pid}, {connection.under_way()} calls are under way" if pid else f"{what} is started on {place.name}"
        if behind is None:
            return f"{what} has died soon after it was made, and is made again within some seconds"
        if not slots:
            return f"{what} waits for a host: " + (job.why_waits() if job else "none has connected yet")
        return f"{what} waits for a slot: all {slots} are taken, and {behind} others wait before it"

    def stats(self):
        """{"hosts", "slots", "running", "waiting", "limited"}: ints, of the hosts that are there; on "limited" of them the kernel holds
        each actor to its own memory."""
        with self._lock:
            return {"hosts": len(self._places), "slots": sum(place.slots for place in self._places), "running": len(self._where),
                    "waiting": len(self._waiting), "limited": sum(place.limits for place in self._places)}

    def why_over(self):
        """The exception that ended it, or None."""
        return self._over

    def host(self, handle):
        """The name of the host that the actor runs on, str; None: it has not started, or has ended."""
        with self._lock:
            place = self._where.get(handle._life.connection.id)
            return place and place.name

    def pid(self, handle):
        """Of the actor's process; None: it has none, or it is not known yet."""
        with self._lock:
            id = handle._life.connection.id
            place = self._where.get(id)
            return place and place.started.get(id)

    # ---- what zygotes say

    def _hear(self, place):
        """In the watcher's thread, when a zygote may say something, or hear. False: there is nobody any more."""
        if place.has_unsaid():
            with self._lock:
                place.say_on()
        try:
            for said in place.control.receive():
                self._take(place, said)
        except (OSError, ValueError, TypeError, KeyError):  # gone, or a host's process that is not ours any more
            self._lose(place)
            return False
        return True

    def _take(self, place, said):
        id = said["started"] if "started" in said else said["died"]
        if id not in place.started:  # killed, and its death came first
            return
        if "started" in said:
            with self._lock:
                place.started[id] = int(said["pid"])
        else:
            self._died(place, id, int(said["status"]), memory_of(said))

    def _died(self, place, id, status, memory):
        with self._lock:
            connection, life = self._connections.pop(id, None), self._lives.pop(id, None)
            had_room = place.has_room()
            del place.started[id]
            self._where.pop(id, None)
            self._forget_token(id)
            if not had_room:
                self._free.append(place)
            if life is not None and self._over is None and life.takes_another(status):
                self._connect_again(life)
            elif life is not None:
                self._forget_name(life)
            self._start_waiting()
        if connection is not None:
            connection.died(died_of(connection.what, status, memory))

    def _forget_token(self, id):
        token = self._tokens.pop(id, None)
        if token is not None:
            self._door.forget(token)

    def _lose(self, place):
        """A place is gone, and with it all actors there: of a pool on this host that is the end."""
        if self._door is None:
            self._end(PoolClosed("the pool is closed" if self._over else "the actors' zygote has ended, and all actors with it"))
            return
        with self._lock:
            self._places.remove(place)
            with contextlib.suppress(ValueError):  # it is full, or the pool is over
                self._free.remove(place)
            ids, place.started = list(place.started), {}
            lost = [c for c in (self._connections.pop(id, None) for id in ids) if c is not None]
            for id in ids:
                self._where.pop(id, None)
                self._forget_token(id)
            for life in [life for life in (self._lives.pop(id, None) for id in ids) if life is not None]:
                if self._over is None and life.takes_another(None):
                    self._connect_again(life)
                else:
                    self._forget_name(life)
            self._start_waiting()
        place.control.close()
        for connection in lost:
            error = HostLost(f"{connection.what} was on {place.name}, which is gone")
            connection.died(self._over or error)
            connection.end(self._over or error)

    def _hear_job(self):
        """In the watcher's thread: the job has ended."""
        self._end(PoolClosed("the pool is closed" if self._over else self._job.why_ended()))
        return False

    def _end(self, error):
        with self._lock:
            self._over = self._over or error
            connections, self._connections, self._lives = self._connections, {}, {}
            self._waiting.clear()
            self._free.clear()
            self._names.clear()
            for id in list(self._tokens):
                self._forget_token(id)
            self._where = {}
            for place in self._places:
                place.started = {}
                place.control.shut()
        for connection in [*connections.values(), *self._guests]:
            connection.died(self._over)
            connection.end(self._over)
        self.ended.set()

    def _forget(self):
        for place in list(self._places):
            place.control.forget()
        for connection in list(self._connections.values()):
            if connection.is_attached():
                connection.socket.close()
        if self._door is not None:
            self._door.close_sockets()

    def close(self):
        """All actors end at once."""
        atexit.unregister(self.close)
        closed(self)
        if self._pid != os.getpid():
            return
        with self._lock:
            self._over = self._over or PoolClosed("the pool is closed")
            places, arrivals = list(self._places), list(self._arrivals)
        for place in places:
            place.control.shut()  # the watcher hears of it, and so does the zygote
        for arrival in arrivals:
            arrival.frames.shut()
        if self._door is not None:
            self._door.close()
        if self._job is not None:
            self._job.end(len(places))
        self._watcher.finish()
        if self._job is not None:
            self._job.close()
        self._end(self._over)
        for place in places:
            place.control.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_WISHES = {"get": Pool.get, "get_or_create_of": Pool._get_or_create_of, "kill": lambda pool, handle: pool.kill(handle),
           "create_of": Pool._create_of, "actors": Pool.actors, "stats": Pool.stats, "attach": Pool._meet_guest}


def described(made, args, kwargs):
    """(its name, restarts, idempotent, pickle, buffers) of an actor that is to be made. Its arguments are read after its class, since they may
    be of its module."""
    concurrency, restarts, saves, idempotent = None, 0, 0, frozenset()
    if hasattr(made, "_primus_class"):  # what a class has by these names itself is its own
        concurrency, restarts, saves, idempotent, made = made.concurrency, made.restarts, made.saves, made.idempotent, made._primus_class
    buffers = []
    data = pickle.dumps(args, 5, buffer_callback=lambda b: buffers.append(b.raw()))
    body = pickle.dumps((_ship.shipped(made), concurrency, saves, data, pickle.dumps(kwargs, 5)), 5)
    return made.__qualname__, restarts, idempotent, body, buffers
