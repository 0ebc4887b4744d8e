# SPDX-License-Identifier: Apache-2.0
"""Which samples a rank gets, in an order that follows from a seed alone and goes on in the middle of an epoch, whatever the
number of ranks is then.

The samples of an epoch are in one order, in which the ranks take turns: with W ranks, rank r gets the places r, W + r, 2 W + r …
behind where the epoch began or was resumed. Ranks in lockstep have so at any moment passed one piece of the order without
gaps, and its end says everything about where they are."""
from __future__ import annotations

import operator
import os

import torch
from torch.utils.data import BatchSampler, Sampler

try:
    import numpy
except ImportError:  # which torch can do without, and TaskDataset
    numpy = None

__all__ = ["ElasticSampler"]

VERSION = 1
ORDER = "feistel-1"  # what the order is computed by: another algorithm gets another name, so that no state means two orders
CHUNK = 4096  # places that are computed at once: what an epoch takes of memory, whatever its size
ROUNDS = 8
SORTED_MAX = 4096  # so many are simply sorted: a Feistel network of few bits has too few orders
MASK = (1 << 64) - 1


class ElasticSampler(Sampler):
    """For DataLoader(sampler=...), with the arguments of torch's DistributedSampler.

    data: what is sampled, or how many samples there are.
    num_replicas, rank: how many ranks share the samples out among them, and which one this is; of torch.distributed where that
    has been initialized, else of WORLD_SIZE and RANK in the environment, else this process is alone.
    drop_last: what becomes of the end of an epoch that cannot be divided by the ranks. False: samples from the beginning
    come once more, fewer than ranks. True: so many are left out.

    A rank computes where its samples are (some 60 ns each); an epoch takes no memory, also one of 10^12 samples.

    state_dict() counts what came out of the loader; workers and prefetching have taken more from the sampler. So loop over
    counted(loader), or call advance() with the number of samples of each batch. Ranks are taken to be in lockstep, as DDP
    keeps them: the state of one is that of all."""

    def __init__(self, data, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        need_numpy("ElasticSampler")
        self.size = _index("data", data if isinstance(data, int) else len(data), 0, 1 << 62)
        self.seed = _index("seed", seed, 0, MASK)
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self._set_ranks(num_replicas, rank)
        self.epoch = 0
        self._begin_epoch(0)

    def __len__(self):
        """How many samples this rank gets in what is left of the epoch."""
        return self._share() - self._counted

    def __iter__(self):
        """From behind what came out of the loader on."""
        self._handed_out = True
        return self._indices(self.epoch, self._start + self._counted * self.num_replicas + self.rank, len(self))

    def counted(self, loader):
        """The batches of loader, each of which counts when it is handed out; behind the last one, the next epoch begins."""
        size, left = self._batch_size(loader), len(self)
        for batch in loader:
            n = min(size, left)
            left -= n
            self.advance(n)
            yield batch
        self.epoch += 1
        self._begin_epoch(0)

    def advance(self, n):
        """So many samples of this rank came out of the loader."""
        self._counted += _index("advance()", n, 0, len(self))

    def set_epoch(self, epoch):
        """Another epoch begins, in another order. The one that it is in goes on."""
        epoch = _index("epoch", epoch, 0, MASK)
        if epoch != self.epoch:
            self.epoch = epoch
            self._begin_epoch(0)

    def resize(self, num_replicas=None, rank=None):
        """Goes on with other ranks, in the next loop over the loader: what has not come out of the loaders by now is shared out
        anew. All ranks call it after the same step."""
        position = self._position()
        self._set_ranks(num_replicas, rank)
        self._begin_epoch(position)

    def state_dict(self):
        """Where the data are, for a checkpoint: the same of all ranks, so that of one is enough."""
        if self._handed_out and self._counted == 0:
            raise RuntimeError("nothing has been counted of what the loader took; loop over sampler.counted(loader), or call "
                               "sampler.advance() for each batch")
        return {"version": VERSION, "order": ORDER if self.shuffle else "none", "size": self.size, "seed": self.seed,
                "epoch": self.epoch, "position": self._position()}

    def load_state_dict(self, state):
        """Goes on from there, in the order that it names. The number of ranks may be another."""
        if state.get("version") != VERSION or state.get("order") not in (ORDER, "none"):
            raise ValueError(f"a sampler's state of version {state.get('version')}, order {state.get('order')}: this one knows "
                             f"version {VERSION} and order {ORDER}")
        if state["size"] != self.size:
            raise ValueError(f"the state is of {state['size']} samples, and there are {self.size}: the data are others")
        seed, epoch = _index("seed", state["seed"], 0, MASK), _index("epoch", state["epoch"], 0, MASK)
        position = _index("position", state["position"], 0, self.size)
        self.seed, self.epoch, self.shuffle = seed, epoch, state["order"] == ORDER
        self._begin_epoch(position)

    # ---- inside ----

    def _begin_epoch(self, start):
        """start: place in the order of all ranks from where on they take turns; counted: samples of this rank since."""
        self._start, self._counted, self._handed_out = start, 0, False

    def _set_ranks(self, num_replicas, rank):
        if (num_replicas is None) != (rank is None):
            raise ValueError("num_replicas and rank go together: say both or none")
        if num_replicas is None:
            num_replicas, rank = _ranks()
        self.num_replicas = _index("num_replicas", num_replicas, 1, 1 << 31)
        self.rank = _index("rank", rank, 0, self.num_replicas - 1)

    def _share(self):
        left = self.size - self._start
        return left // self.num_replicas if self.drop_last else -(-left // self.num_replicas)

    def _position(self):
        return min(self.size, self._start + self._counted * self.num_replicas)

    def _indices(self, epoch, first, n):
        key = _mix(_mix(self.seed) ^ epoch)
        while n > 0:
            count = min(n, CHUNK)
            places = (numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(self.num_replicas) + numpy.uint64(first))
            places %= numpy.uint64(self.size)  # the end, where the beginning comes once more
            yield from (permuted(places, self.size, key) if self.shuffle else places).tolist()
            first += count * self.num_replicas
            n -= count

    def _batch_size(self, loader):
        """How many samples a batch has, but for the last one."""
        by = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        if type(by) is BatchSampler and by.sampler is self:
            return by.batch_size
        if by is self:
            return 1
        raise ValueError("counted() wants a loader that was made with sampler= this sampler; where something else makes batches, call "
                         "advance() with the size of each")


def need_numpy(who):
    if numpy is None:
        raise ImportError(f"primus.torch.{who} needs numpy: install python3-numpy")


def _ranks():
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size(), torch.distributed.get_rank()
    size, rank = os.environ.get("WORLD_SIZE"), os.environ.get("RANK")
    if not size or not rank:
        return 1, 0
    if not (size.isascii() and size.isdecimal() and rank.isascii() and rank.isdecimal()):
        raise ValueError(f"WORLD_SIZE={size!r} and RANK={rank!r} in the environment are no numbers")
    return int(size), int(rank)


def _index(what, value, least, most):
    value = operator.index(value)
    if not least <= value <= most:
        raise ValueError(f"{what}: {value} is not in [{least}, {most}]")
    return value


# ---- the order ----

def _mix(x):
    """splitmix64's, of one number."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def permuted(places, size, key):
    """What stands at these places (uint64) of a permutation of range(size). Of few, all are sorted by a hash. Of more, a Feistel
    network permutes the numbers of as many bits as size - 1 has; what it sends beyond size is sent on until it is not. Nothing
    but whole numbers of 64 bits, so it is the same on every machine and with every numpy."""
    if size <= SORTED_MAX:
        hashes = numpy.arange(size, dtype=numpy.uint64)
        for k in range(2):
            hashes = _hash(hashes, numpy.uint64(_mix(key ^ k)))
        return numpy.argsort(hashes, kind="stable").astype(numpy.uint64)[places]
    bits = (size - 1).bit_length()
    low = bits // 2
    keys = [numpy.uint64(_mix(key ^ k)) for k in range(ROUNDS)]
    result = _feistel(places, low, bits - low, keys)
    while True:
        beyond = numpy.nonzero(result >= size)[0]
        if len(beyond) == 0:
            return result
        result[beyond] = _feistel(result[beyond], low, bits - low, keys)


def _hash(x, key):
    x = (x ^ key) * numpy.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> numpy.uint64(31)
    x *= numpy.uint64(0x94D049BB133111EB)
    x ^= x >> numpy.uint64(32)
    return x


def _feistel(x, low_bits, high_bits, keys):
    masks = [numpy.uint64((1 << bits) - 1) for bits in (low_bits, high_bits)]
    halves = [x & masks[0], x >> numpy.uint64(low_bits)]
    for k, key in enumerate(keys):
        halves[k % 2] ^= _hash(halves[(k + 1) % 2], key) & masks[k % 2]
    return halves[1] << numpy.uint64(low_bits) | halves[0]
