"""How long remains until a timer of the launch's own ends it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from hangdoc.diagnosis import diagnose
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.limit import LimitName
from hangdoc.trace.reader import read

GOLDEN = Path(__file__).parents[2] / "golden"


def diagnosed(name: str, **limits: float) -> Diagnosis:
    """The diagnosis of a recording, as if the launch had these timers."""
    trace = read(GOLDEN / f"{name}.hangtrace")
    named: dict[LimitName, float] = {key.replace("_", "-"): seconds for key, seconds in limits.items()}  # type: ignore[misc]
    return diagnose(replace(trace, header=replace(trace.header, launch=replace(trace.header.launch, limits=named))))


def test_the_time_left_counts_from_the_last_progress() -> None:
    """What is left is the timer's time less the time without progress; the next one to come is named first."""
    found = diagnosed("busy-warmup", warmup_request=600, watchdog=300)
    assert found.no_progress_s
    assert [(one.name, one.left_s) for one in found.limits] == [
        ("watchdog", pytest.approx(300 - found.no_progress_s)),
        ("warmup-request", pytest.approx(600 - found.no_progress_s)),
    ]
    assert found.limits[0].latest_s == pytest.approx(450 - found.no_progress_s)


def test_one_that_is_due() -> None:
    """A timer whose time is over may come at any moment; nothing is negative."""
    (limit,) = diagnosed("busy-warmup", watchdog=1).limits
    assert limit.left_s == 0
    assert limit.latest_s is not None
    assert limit.latest_s >= 0


@pytest.mark.parametrize(
    ("name", "limit", "there"),
    [
        ("busy-warmup", "watchdog", True),
        ("busy-init", "watchdog", False),
        ("healthy-tp1-idle", "watchdog", False),
        ("busy-one-rank", "load_barrier", True),
        ("busy-init", "load_barrier", False),
        ("absent-warmup", "collective", False),
    ],
)
def test_only_timers_that_run(name: str, limit: str, there: bool) -> None:
    """A timer counts in its phases only, one of several ranks not with one rank, NCCL's not without GPUs."""
    assert bool(diagnosed(name, **{limit: 300}).limits) == there


def test_a_launch_without_timers_is_diagnosed_as_before() -> None:
    """They are beside the verdict: with and without them it is the same."""
    without, with_them = diagnosed("busy-warmup"), diagnosed("busy-warmup", watchdog=20)
    assert without.limits == ()
    assert replace(with_them, limits=()) == without
