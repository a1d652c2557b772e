"""What the GPUs did within a window: memory that moved, kernels that ran all the time, and at which power."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from hangdoc.features.index import Index, Window
from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.reading import Known, Missing, Reading

SPIN_UTIL_RATIO = 0.95
"""Utilisation from which a GPU counts as busy all the time: wedged ones were reported at 96 and 100 %, a healthy decode
of a tiny model at 44 to 100 %."""

NEAR_IDLE_RATIO = 0.3
"""Share of its power limit up to which a busy GPU does next to nothing. Measured on one H200 (limit 700 W): an idle
context 0.18, kernels that spin or sleep 0.18 to 0.19, a copy 0.49, a matrix product 0.96. Arbitrary between 0.19 and
0.49. Tiny real kernels draw 0.18 to 0.19 as well: little power alone never shows a spin."""

FREE_CLOCK_RATIO = 0.5
"""Share of its highest clock under which a card is held back (heat, a power brake), so that real work draws little as
well. A spin on an H200 ran at the highest clock, a matrix product at 0.7 of it. Arbitrary below that."""

MOST_APART = 1.8
"""Intervals that two samples may lie apart: the probe answers once a round, and one that is left out may have been the
one that shows the GPU idle. Arbitrary between 1 and 2."""

KernelUse: TypeAlias = Literal["idle", "spins", "held-back", "works"]
"""idle: no kernel at any time; spins: kernels all the time, near idle power, at a clock that is free; held-back: the
same at a clock that is not, where power proves nothing; works: anything else."""


@dataclass(frozen=True)
class GpuHistory:
    """One GPU over a window. now: its newest sample; samples: oldest first, one a round."""

    now: Gpu
    samples: tuple[Gpu, ...]

    @property
    def use(self) -> Reading[KernelUse]:
        """Return what its kernels did; Missing when a reading that decides it is missing in any sample."""
        utils: list[float] = []
        for sample in self.samples:
            if isinstance(sample.util_ratio, Missing):
                return sample.util_ratio
            utils.append(sample.util_ratio.value)
        if max(utils) == 0:
            return Known("idle")
        return self._busy_use() if min(utils) >= SPIN_UTIL_RATIO else Known("works")

    def _busy_use(self) -> Reading[KernelUse]:
        power = self.power_ratio
        if isinstance(power, Missing):
            return power
        if power.value > NEAR_IDLE_RATIO:
            return Known("works")
        clock = self.clock_ratio
        if isinstance(clock, Missing):
            return clock
        return Known("spins" if clock.value >= FREE_CLOCK_RATIO else "held-back")

    @property
    def power_ratio(self) -> Reading[float]:
        """Return the highest power of any sample as a share of the limit."""
        return _worst(self.samples, "power_w", "power_limit_w", max)

    @property
    def clock_ratio(self) -> Reading[float]:
        """Return the lowest clock of any sample as a share of the highest possible one."""
        return _worst(self.samples, "sm_clock_mhz", "sm_clock_most_mhz", min)

    def user(self, pid: int) -> GpuProcess | None:
        """Return what the driver lists of a process on this GPU; None when it lists none of that pid."""
        if isinstance(self.now.processes, Missing):
            return None
        return next((one for one in self.now.processes.value if one.pid == pid), None)

    def sentence(self) -> str:
        """Say what it does, for the report."""
        util, power = self.now.util_ratio, self.now.power_w
        busy = "not read" if isinstance(util, Missing) else f"{util.value:.0%} busy"
        watts = "power not read" if isinstance(power, Missing) else f"{power.value:.0f} W"
        limit = self.now.power_limit_w
        of = "" if isinstance(limit, Missing) else f" of {limit.value:.0f} W"
        return f"GPU {self.now.index} is {busy} at {watts}{of}"


def _worst(samples: tuple[Gpu, ...], what: str, of: str, worst: Callable[[Iterable[float]], float]) -> Reading[float]:
    ratios: list[float] = []
    for sample in samples:
        value, most = getattr(sample, what), getattr(sample, of)
        for reading in (value, most):
            if isinstance(reading, Missing):
                return reading
        if most.value <= 0:
            return Missing("gpu", "unsupported", "the driver tells no limit")
        ratios.append(value.value / most.value)
    return Known(worst(ratios))


def gpu_histories(index: Index, window: Window, interval_s: float) -> Reading[tuple[GpuHistory, ...]]:
    """Return each GPU over a window; Missing when samples lie further apart than rounds do, or a GPU is not in each."""
    readings = index.known("gpu", None, Gpus, window)
    if not readings:
        return index.missing("gpu", None, window)
    times = [window.start_ns, *(at_ns for at_ns, _ in readings), window.end_ns]
    if any(after - before > MOST_APART * interval_s * 1e9 for before, after in pairwise(times)):
        return Missing("gpu", "not-taken", "the GPUs were not read in every round")
    numbers = {tuple(gpu.index for gpu in gpus.devices) for _, gpus in readings}
    if len(numbers) > 1:
        return Missing("gpu", "failed", "not every GPU was read in every round")
    columns = zip(*(gpus.devices for _, gpus in readings), strict=True)
    return Known(tuple(GpuHistory(samples[-1], samples) for samples in columns))


def gpu_memory_moved(index: Index, window: Window) -> Reading[int]:
    """Return by how many bytes the memory in use changed, over all GPUs; Missing with fewer than two readings."""
    readings = index.known("gpu", None, Gpus, window)
    if len(readings) < 2:
        return index.missing("gpu", None, window)
    (_, begin), (_, end) = readings[0], readings[-1]
    before, after = _used(begin), _used(end)
    if before.keys() != after.keys():
        return Missing("gpu", "failed", "not every GPU was read twice")
    return Known(sum(abs(after[number] - before[number]) for number in after))


def _used(gpus: Gpus) -> dict[int, int]:
    return {gpu.index: gpu.used_bytes.value for gpu in gpus.devices if isinstance(gpu.used_bytes, Known)}
