"""When a round begins, which rounds read everything, and how much a probe may use."""

from __future__ import annotations

import time
from dataclasses import dataclass

OBSERVATION_ROUNDS = 30
"""The longest single observation at one round a second."""
DENSE_EVERY = 5
"""During an observation every fifth round is thorough, so the first and the last slice of the shortest one are."""
SPARSE_EVERY = 30
"""While following for longer; 2,000 threads cost 0.2 s of CPU in a thorough round, 0.6 % of a core at this pace."""


def is_thorough(index: int) -> bool:
    """Say whether a round reads everything.

    >>> [index for index in range(130) if is_thorough(index)]
    [0, 5, 10, 15, 20, 25, 30, 60, 90, 120]
    """
    return index % (DENSE_EVERY if index <= OBSERVATION_ROUNDS else SPARSE_EVERY) == 0


class Ticker:
    """Round numbers and the monotonic moments at which they begin; missed moments are left out, not made up for."""

    def __init__(self, interval_s: float) -> None:
        self._interval_ns = int(interval_s * 1e9)
        self._next_ns = time.monotonic_ns()

    def wait_s(self) -> float:
        """Return how long it is until the next round begins, and settle on the one after."""
        now_ns = time.monotonic_ns()
        if now_ns - self._next_ns > self._interval_ns:
            self._next_ns = now_ns
        left_s = max(0, self._next_ns - now_ns) / 1e9
        self._next_ns += self._interval_ns
        return left_s


@dataclass
class Budget:
    """CPU time a probe may use: an allowance up front, refilled at a share of one core, never beyond the allowance."""

    ratio: float
    allowance_s: float

    def __post_init__(self) -> None:
        self._left_s = self.allowance_s
        self._at_s = time.monotonic()

    def spend(self, used_s: float) -> None:
        """Book what a take used."""
        self._left_s -= used_s

    def wait_s(self) -> float:
        """Return in how long the probe may run again; 0 when it may now."""
        now_s = time.monotonic()
        self._left_s = min(self.allowance_s, self._left_s + (now_s - self._at_s) * self.ratio)
        self._at_s = now_s
        return max(0.0, -self._left_s / self.ratio)
