# SPDX-License-Identifier: Apache-2.0
"""An evolution strategy on several hosts: a pole is to be kept upright on a cart, and no gradient is known.

    python3 evolution.py [--hosts 3] [--slots 2] [--generations 30]

Each actor has an environment of its own and says how well a policy did with noise added and taken away (antithetic sampling, Salimans et
al. 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning"). What travels is a seed and two numbers. A host that
is lost takes its actors along: what they were to say is asked of others, and new actors begin where the job finds another host."""
import argparse
import math

import numpy as np

from primus import actors

STEPS_MAX = 300
SIGMA, RATE = 0.3, 0.1
PAIRS = 16  # of policies, a generation


class Cart:
    """Barto, Sutton and Anderson's cart and pole: (position, speed, angle, its speed); the force is 10 N to the left or to the right."""

    def __init__(self, seed):
        self._state = np.random.default_rng(seed).uniform(-0.05, 0.05, 4)

    def step(self, right):
        x, speed, angle, turning = self._state
        force, sin, cos = 10.0 if right else -10.0, math.sin(angle), math.cos(angle)
        pushed = (force + 0.05 * turning * turning * sin) / 1.1
        turned = (9.8 * sin - cos * pushed) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        moved = pushed - 0.05 * turned * cos / 1.1
        self._state = np.array([x + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turning, turning + 0.02 * turned])
        return abs(self._state[0]) < 2.4 and abs(self._state[2]) < 0.21

    def steps(self, policy):
        """How long it stays up."""
        n = 0
        while n < STEPS_MAX and self.step(self._state @ policy > 0):
            n += 1
        return n


def noise(seed):
    return np.random.default_rng(seed).standard_normal(4)


@actors.remote
class Player:
    def play(self, policy, seed):
        """(seed, reward with the noise of that seed, reward with its opposite)"""
        step = SIGMA * noise(seed)
        return seed, Cart(seed).steps(policy + step), Cart(seed).steps(policy - step)


class Players:
    """As many as there are slots now; what one was to do that dies is asked of another."""

    def __init__(self, pool):
        self._pool, self._idle = pool, []
        self._n = self.lost = 0

    def _fill(self):
        """Also with hosts that have come meanwhile; one player at least, who waits for a host where there is none."""
        while self._n < max(self._pool.stats()["slots"], 1):
            self._idle.append(Player())
            self._n += 1

    def rewards(self, policy, seeds):
        self._fill()
        left, asked, found = list(seeds), {}, []
        while left or asked:
            while left and self._idle:
                player, seed = self._idle.pop(), left.pop()
                asked[player.play(policy, seed)] = player, seed
            for future in actors.wait(asked, n=1)[0]:
                player, seed = asked.pop(future)
                try:
                    found.append(future.result())
                    self._idle.append(player)
                except actors.ActorDied as e:
                    print(e, flush=True)
                    self._n, self.lost = self._n - 1, self.lost + 1
                    left.append(seed)
            if not self._n:
                self._fill()
        return sorted(found)


def tried(policy):
    return np.mean([Cart(10**6 + i).steps(policy) for i in range(10)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--hosts", type=int, help="run on so many hosts of the cluster; here, if not said")
    parser.add_argument("--slots", type=int, default=2, help="actors on each host (default %(default)s)")
    parser.add_argument("--generations", type=int, default=30)
    options = parser.parse_args()
    there = {} if options.hosts is None else {"hosts": options.hosts, "cpus": 0.1, "memory": "128M"}
    with actors.Pool(slots=options.slots, preload=["numpy"], **there) as pool:
        players, policy = Players(pool), np.zeros(4)
        print(f"untrained: reward {tried(policy):.0f}", flush=True)
        for generation in range(options.generations):
            played = players.rewards(policy, range(generation * PAIRS, (generation + 1) * PAIRS))
            better = np.array([plus - minus for _, plus, minus in played])
            if better.any():
                policy = policy + RATE * sum(b * noise(seed) for (seed, _, _), b in zip(played, better)) / (PAIRS * better.std())
            print(f"generation {generation}: reward {tried(policy):.0f}, {pool.stats()['hosts']} hosts", flush=True)
        print(f"at the end: reward {tried(policy):.0f}, {players.lost} actors were lost", flush=True)


if __name__ == "__main__":
    main()
