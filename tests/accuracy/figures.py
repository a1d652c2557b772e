"""The arithmetic of the accuracy table: shares with their intervals, spreads of times, the confusion matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

SURE = 0.95
"""Confidence of every interval."""

STEPS = 60
"""Halvings of the search for a bound: far beyond the digits that are printed."""

Cell = tuple[str, str]


@dataclass(frozen=True)
class Share:
    """So many of so many. The interval is exact (Clopper and Pearson); where none or all were, it has one side only."""

    hits: int
    count: int

    @property
    def interval(self) -> tuple[float, float]:
        """Lowest and highest share that the count does not speak against, at 95 %.

        >>> Share(0, 50).interval[1] < 0.06
        True
        >>> tuple(round(bound, 3) for bound in Share(49, 50).interval)
        (0.894, 0.999)
        """
        if not self.count:
            return 0.0, 1.0
        left_out = (1 - SURE) / (1 if self.hits in {0, self.count} else 2)
        low = _where(lambda share: at_most(self.count - self.hits, self.count, 1 - share) > left_out)
        high = _where(lambda share: at_most(self.hits, self.count, share) <= left_out)
        return (0.0 if not self.hits else low), (1.0 if self.hits == self.count else high)

    def __str__(self) -> str:
        """Return the row's cell.

        >>> str(Share(0, 50)), str(Share(0, 0))
        ('0 of 50 (0.0 %, at most 5.8 %)', 'none')
        >>> str(Share(50, 50)), str(Share(49, 50))
        ('50 of 50 (100.0 %, at least 94.2 %)', '49 of 50 (98.0 %, 89.4 to 99.9 %)')
        """
        if not self.count:
            return "none"
        low, high = (100 * bound for bound in self.interval)
        between = f"{low:.1f} to {high:.1f} %"
        if self.hits == 0:
            between = f"at most {high:.1f} %"
        elif self.hits == self.count:
            between = f"at least {low:.1f} %"
        return f"{self.hits} of {self.count} ({100 * self.hits / self.count:.1f} %, {between})"


def at_most(hits: int, count: int, share: float) -> float:
    """Return how probable it is that at most so many of count are hits, when each is one with this probability.

    >>> round(at_most(0, 50, 0.06), 4)
    0.0453
    """
    if not 0 < share < 1:
        return 1.0 if share <= 0 or hits >= count else 0.0
    logs = (
        math.lgamma(count + 1)
        - math.lgamma(n + 1)
        - math.lgamma(count - n + 1)
        + n * math.log(share)
        + (count - n) * math.log1p(-share)
        for n in range(hits + 1)
    )
    return min(1.0, sum(math.exp(log) for log in logs))


def _where(holds: Callable[[float], bool]) -> float:
    """Return the share from which on the test holds; it holds at 1 and not at 0."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def share(answers: Iterable[bool]) -> Share:
    """Return how many of the answers are yes."""
    given = list(answers)
    return Share(sum(given), len(given))


def spread(times_s: Sequence[float]) -> str:
    """Return the middle, the 90th percentile (the least that 90 % do not exceed) and the most of some times.

    >>> spread([5.0, 6.0, 30.0])
    'median 6.0 s, 90 % within 30.0 s, at most 30.0 s (n = 3)'
    """
    if not times_s:
        return "none"
    ordered = sorted(times_s)
    ninetieth = ordered[math.ceil(0.9 * len(ordered)) - 1]
    most = f"at most {ordered[-1]:.1f} s (n = {len(ordered)})"
    return f"median {median(ordered):.1f} s, 90 % within {ninetieth:.1f} s, {most}"


def confusion(cells: Iterable[Cell]) -> tuple[tuple[str, ...], dict[str, Counter[str]]]:
    """Return the columns, and each row's counts; cells: (what is true, what was said).

    >>> confusion([("blocked", "blocked"), ("no hang", "healthy")])
    (('blocked', 'healthy'), {'blocked': Counter({'blocked': 1}), 'no hang': Counter({'healthy': 1})})
    """
    rows: dict[str, Counter[str]] = {}
    for truth, said in cells:
        rows.setdefault(truth, Counter())[said] += 1
    columns = tuple(sorted({said for row in rows.values() for said in row}))
    return columns, dict(sorted(rows.items()))
