"""What GPUs did over a window is told from every sample, and from none that is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from hangdoc.features.gpu import GpuHistory, KernelUse, gpu_histories
from hangdoc.features.index import Index
from hangdoc.model.gpu import Gpu, Gpus
from hangdoc.model.reading import Known, Missing, Reading
from tests.unit.features.synthetic import Readings, trace, whole

SPINS = Gpu(
    index=0,
    name="GPU",
    used_bytes=Known(1 << 30),
    total_bytes=Known(1 << 37),
    util_ratio=Known(1.0),
    power_w=Known(125.0),
    power_limit_w=Known(700.0),
    processes=Known(()),
    sm_clock_mhz=Known(1980),
    sm_clock_most_mhz=Known(1980),
)
IDLE = replace(SPINS, util_ratio=Known(0.0), power_w=Known(123.0))
WORKS = replace(SPINS, power_w=Known(480.0))
UNREAD = Missing("gpu", "unsupported")


def histories(samples: Sequence[Gpu | Missing | None]) -> Reading[tuple[GpuHistory, ...]]:
    """One sample a round; None: nothing was taken in this round."""
    rounds: list[Readings] = [
        {} if one is None else {("gpu", None): one if isinstance(one, Missing) else Gpus((one,))} for one in samples
    ]
    of = trace(rounds)
    return gpu_histories(Index(of), whole(of), 1.0)


def use(samples: Sequence[Gpu]) -> Reading[KernelUse]:
    found = histories(samples)
    assert isinstance(found, Known)
    return found.value[0].use


@pytest.mark.parametrize(
    ("samples", "kind"),
    [
        ([SPINS] * 4, "spins"),
        ([IDLE] * 4, "idle"),
        ([WORKS] * 4, "works"),
        ([SPINS, SPINS, IDLE, SPINS], "works"),
        ([SPINS, SPINS, WORKS, SPINS], "works"),
        ([replace(SPINS, sm_clock_mhz=Known(345))] * 4, "held-back"),
    ],
)
def test_use(samples: list[Gpu], kind: str) -> None:
    """Only a GPU that is busy in every sample, near idle power in every sample, at a free clock, spins."""
    assert use(samples) == Known(kind)


@pytest.mark.parametrize("field", ["util_ratio", "power_w", "power_limit_w", "sm_clock_mhz", "sm_clock_most_mhz"])
def test_a_missing_field_leaves_it_open(field: str) -> None:
    """Without utilisation, power, limit or clock of any sample a spin is not called one; an idle GPU needs no power."""
    lacking = replace(SPINS, **{field: UNREAD})
    assert use([SPINS, lacking, SPINS]) == UNREAD
    assert use([replace(IDLE, power_w=UNREAD)] * 3) == Known("idle")


def test_a_trace_without_clocks_is_open() -> None:
    """A recording that is older than the clock's reading shows no spin."""
    older = Gpu(
        index=0,
        name="GPU",
        used_bytes=Known(1),
        total_bytes=Known(1),
        util_ratio=Known(1.0),
        power_w=Known(125.0),
        power_limit_w=Known(700.0),
        processes=Known(()),
    )
    assert isinstance(use([older] * 3), Missing)


@pytest.mark.parametrize("lost", [None, Missing("gpu", "timeout")])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_round_without_a_sample_leaves_it_open(lost: Missing | None, at: int) -> None:
    """The sample that is not there may have been the one that shows the GPU idle; at the edges one may be late."""
    samples: list[Gpu | Missing | None] = [SPINS] * 4
    samples[at] = lost
    assert isinstance(histories(samples), Missing if 0 < at < 3 else Known)


def test_a_gpu_that_comes_or_goes_leaves_it_open() -> None:
    """GPUs that are not in every sample are not compared."""
    of = trace([{("gpu", None): Gpus((SPINS,))}, {("gpu", None): Gpus(())}])
    assert isinstance(gpu_histories(Index(of), whole(of), 1.0), Missing)
