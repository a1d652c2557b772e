"""A round that says how many samples it had tells what a trace has lost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hangdoc.features.index import Index
from hangdoc.features.slices import steady_window
from hangdoc.model.reading import Missing
from hangdoc.model.snapshot import tally_of
from hangdoc.model.thread import CpuUse
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import KEY, clock, cpu, progress, trace, whole


def recorded() -> Trace:
    """Six rounds of a process that sleeps, counted as the recorder counts them."""
    of = trace([{("cpu", KEY): cpu(clock()), ("progress", KEY): progress()} for _ in range(6)])
    return replace(of, snapshots=tuple(replace(one, tally=tally_of(one.samples)) for one in of.snapshots))


def without(of: Trace, position: int) -> Trace:
    """The same without the clocks of one round."""
    thin = replace(of.snapshots[position], samples=of.snapshots[position].samples[1:])
    return replace(of, snapshots=(*of.snapshots[:position], thin, *of.snapshots[position + 1 :]))


@pytest.mark.parametrize("position", range(6))
def test_a_lost_reading_is_a_refused_probe(position: int) -> None:
    """What is left of a probe that lost a reading in a window counts as little as if all had been refused."""
    index = Index(without(recorded(), position))
    assert index.known("cpu", KEY, CpuUse, whole(recorded())) == []
    assert "lost" in index.missing("cpu", KEY, whole(recorded())).detail
    assert index.was_taken("cpu")


@pytest.mark.parametrize("position", range(6))
def test_a_loss_does_not_shorten_the_window(position: int) -> None:
    """The window is the one that it was, and whether its slices are of one kind is not known."""
    full, steady = steady_window(recorded(), (KEY,))
    window, unsure = steady_window(without(recorded(), position), (KEY,))
    assert (window, steady) == (full, True)
    assert isinstance(unsure, Missing)


def test_nobody_counted() -> None:
    """In an older trace, that nobody counted, what is there is taken for all there was."""
    thin = without(trace([{("cpu", KEY): cpu(clock()), ("progress", KEY): progress()} for _ in range(6)]), 2)
    assert len(Index(thin).known("cpu", KEY, CpuUse, whole(thin))) == 5
