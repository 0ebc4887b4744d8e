# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch's samples: a pure function of how many samples each block of the data has, the seed and the epoch. Who
reads, in how many processes, and where somebody went on, do not enter into it.

Shuffled, it is made in two steps. The blocks are put into an order of the seed's, and what they hold, one behind another, is
cut into LANES equal lanes, which take turns: position p of the epoch is sample p // LANES of lane p % LANES. Within a lane,
samples are permuted in windows of so many blocks. So a batch draws from the open windows of all lanes, and rank r of n, whose
positions are those with p % n == r, opens a LANES-th part of the data where n divides LANES, and reads each block once.
Lanes change windows at different times, so that disks do not have to serve all of them at once.

The numbers come from SplitMix64 and a stable sort, and from no library's generator: the order is the same for ever."""
import numpy as np

LANES = 48  # divided by 1, 2, 3, 4, 6, 8, 12, 16, 24 and 48 ranks
WINDOW = 64  # blocks of a lane
SAMPLES_MAX = 4 << 20  # in the windows of all lanes together: 16 bytes of memory each, at most

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(x):
    """SplitMix64's finalizer, of an array of uint64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _key(*numbers):
    """One number out of several."""
    key = np.zeros(1, dtype=np.uint64)
    for number in numbers:
        key = _mix(key + _GOLDEN + np.array([number & (2**64 - 1)], dtype=np.uint64))
    return key


def permutation(n, *key):
    """0 .. n - 1 in the order of the key's."""
    return np.argsort(_mix(_key(*key) + (np.arange(n, dtype=np.uint64) + np.uint64(1)) * _GOLDEN), kind="stable")


class Epoch:
    """counts: samples of each block; seed None: as they are listed. locate() is the whole of it."""

    def __init__(self, counts, seed, epoch, window=WINDOW):
        counts = np.asarray(counts, dtype=np.int64)
        self.n = int(counts.sum())
        self._seed, self._epoch = seed, epoch
        self._blocks = None if seed is None else permutation(len(counts), seed, epoch)
        in_order = counts if seed is None else counts[self._blocks]
        self._ends = np.cumsum(in_order)
        self._starts = self._ends - in_order
        self._lane, self._longer = divmod(self.n, LANES)  # samples of a lane; how many have one more
        blocks = max(1, int(np.count_nonzero(counts)))
        self._window = max(1, min(-(-self.n * window // blocks), SAMPLES_MAX // LANES))
        self._open = {}  # lane: (number of its window, first sample of it, permutation)

    def locate(self, positions):
        """Of each position in the epoch (int64, 0 .. n - 1) the block and the number of the sample in it."""
        places = positions if self._seed is None else self._shuffled(positions)
        found = np.searchsorted(self._ends, places, side="right")
        return (found if self._blocks is None else self._blocks[found]), places - self._starts[found]

    def _shuffled(self, positions):
        lanes, at = positions % LANES, positions // LANES
        places = np.empty(len(positions), dtype=np.int64)
        for lane in np.unique(lanes):
            mine = np.flatnonzero(lanes == lane)
            places[mine] = self._in_lane(int(lane), at[mine])
        return places

    def _in_lane(self, lane, at):
        length = self._lane + (lane < self._longer)
        begins = lane * self._lane + min(lane, self._longer)
        # The first window is up to a half shorter than the others, the last one between a half and one and a half of them.
        shift = lane * self._window // (2 * LANES)
        last = max(1, (length + shift + self._window // 2) // self._window) - 1
        numbers = np.minimum((at + shift) // self._window, last)
        places = np.empty(len(at), dtype=np.int64)
        for number in np.unique(numbers):
            mine = numbers == number
            first, order = self._window_of(lane, int(number), last, shift, length)
            places[mine] = begins + first + order[at[mine] - first].astype(np.int64)
        return places

    def _window_of(self, lane, number, last, shift, length):
        have = self._open.get(lane)
        if have is None or have[0] != number:
            first = max(0, number * self._window - shift)
            end = length if number == last else (number + 1) * self._window - shift
            order = permutation(end - first, self._seed, self._epoch, lane + 1, number).astype(np.uint32)
            have = self._open[lane] = (number, first, order)
        return have[1], have[2]


class Share:
    """Which positions of an epoch are whose: of n samples from start on, each rank of so many gets batch_size in each batch.

    pad False (drop): only whole batches of all ranks; what is left behind them is not read in this epoch. True: the last
    batch has what is left, equally many samples for each rank; where that does not divide, samples from the beginning of the
    epoch come once more, fewer than there are ranks."""

    def __init__(self, n, start, batch_size, rank, world_size, pad):
        self.n, self.start = n, start
        self._batch, self._rank, self._world, self._pad = batch_size, rank, world_size, pad
        self.of_all = batch_size * world_size  # samples of one batch of all ranks
        left = max(n - start, 0)
        self.batches = -(-left // self.of_all) if pad else left // self.of_all

    def size(self, batch):
        """Samples of this rank in that batch, 0 .. batches - 1."""
        left = self.n - self.start - batch * self.of_all
        return min(self._batch, -(-left // self._world))

    def samples(self):
        """Of this rank in all batches."""
        return 0 if self.batches == 0 else (self.batches - 1) * self._batch + self.size(self.batches - 1)

    def end(self, batch):
        """Position behind that batch: where somebody goes on who has had it."""
        return min(self.n, self.start + (batch + 1) * self.of_all)

    def positions(self, batch):
        first = self.start + batch * self.of_all + self._rank
        return (first + np.arange(self.size(batch), dtype=np.int64) * self._world) % self.n
