"""Which window is judged: the longest run of equal slices at the end, three at least."""

from __future__ import annotations

import pytest

from hangdoc.features.slices import EQUAL_SLICES, TOO_FEW, slice_kinds, steady_window
from hangdoc.model.reading import Missing
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import KEY, clock, cpu, progress, trace


def of_kinds(kinds: str) -> Trace:
    """Make a trace of slices: b(usy), q(uiet), w(orks), u(nread); the roster's only process moves."""
    run_s, read = 0.0, 0
    rounds = [{("cpu", KEY): cpu(clock()), ("progress", KEY): progress()}]
    for kind in kinds:
        run_s += kind == "b"
        read += (kind == "w") * 2**20
        full = {("cpu", KEY): cpu(clock(run_s, slices=int(run_s))), ("progress", KEY): progress(read)}
        rounds.append({} if kind == "u" else full)  # type: ignore[arg-type]
    return trace(rounds)  # type: ignore[arg-type]


def judged(kinds: str) -> tuple[int, int, bool | Missing]:
    window, steady = steady_window(of_kinds(kinds), (KEY,))
    return window.first, window.last, steady


def test_kinds() -> None:
    """A slice is busy, quiet or at work by what moved in it."""
    assert slice_kinds(of_kinds("bqw"), (KEY,)) == ("busy", "quiet", "works")


def test_the_longest_run_at_the_end() -> None:
    """All slices of the last kind are judged together."""
    assert judged("qbbbb") == (1, 5, True)


def test_fewer_than_three_are_not_steady() -> None:
    """Two equal slices are a moment: the last three are judged, and not as a state."""
    assert judged("qqqbb") == (5 - EQUAL_SLICES, 5, False)


@pytest.mark.parametrize("kinds", ["uuuu", "bbu", "qqqqub", "quq", "bb", "q"])
def test_too_few_slices_that_were_read_say_nothing(kinds: str) -> None:
    """Slices that were not read are neither of one kind nor of several: that the state changes is not known."""
    assert judged(kinds)[2] == TOO_FEW


def test_slices_that_differ_are_no_state_whatever_is_unread() -> None:
    """Two kinds among the last slices that were read: no reading more could make them one."""
    assert judged("bqu")[2] is False


def test_the_reason_of_the_probe_is_told() -> None:
    """Where the clocks were refused, that is why it is not known."""
    refused = Missing("cpu", "denied")
    of = trace([{("cpu", KEY): refused}] * 5)
    assert steady_window(of, (KEY,))[1] == refused
