"""What hangdoc itself uses: its own CPU time and that of the programs it ran."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Overhead:
    """CPU time of hangdoc and of its ended children over a span of time."""

    wall_s: float
    own_cpu_s: float
    children_cpu_s: float

    @property
    def cpu_ratio(self) -> float:
        """Share of one core."""
        return (self.own_cpu_s + self.children_cpu_s) / self.wall_s if self.wall_s > 0 else 0.0


class Meter:
    """Measures from its creation on."""

    def __init__(self) -> None:
        self._begun_s = time.monotonic()
        self._own_s = cpu_s(resource.RUSAGE_SELF)
        self._children_s = cpu_s(resource.RUSAGE_CHILDREN)

    def read(self) -> Overhead:
        """Return what was used since."""
        return Overhead(
            wall_s=time.monotonic() - self._begun_s,
            own_cpu_s=cpu_s(resource.RUSAGE_SELF) - self._own_s,
            children_cpu_s=cpu_s(resource.RUSAGE_CHILDREN) - self._children_s,
        )


def cpu_s(who: int) -> float:
    """Return user and system time of hangdoc itself (RUSAGE_SELF) or of its ended children (RUSAGE_CHILDREN)."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
