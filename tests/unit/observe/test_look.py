"""One look: when it ends, and what it does when there is nothing to see."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.reading import Missing
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe.look import Reasoning, Window, is_gone, look
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from tests.unit.observe.rounds import LAUNCHER, RANK, PlayedObserver, alive, attached, cpu, sample, snapshot

FIVE = Window(5.0, 30.0)


def diagnose(_: Trace) -> Diagnosis:
    raise AssertionError("look only asks whether the trace is settled")


never = Reasoning(diagnose, lambda _: False)
always = Reasoning(diagnose, lambda _: True)


def test_ends_with_the_window_when_the_readings_agree() -> None:
    """Five slices of a second are the least, and enough when they agree: six rounds."""
    seen = look(attached(PlayedObserver([alive(index) for index in range(60)])), FIVE, always)
    assert (seen.end, len(seen.trace.snapshots)) == ("settled", 6)


def test_goes_on_to_the_longest_window() -> None:
    """While they do not agree it goes on, to the longest window and no further."""
    seen = look(attached(PlayedObserver([alive(index) for index in range(60)])), FIVE, never)
    assert (seen.end, len(seen.trace.snapshots)) == ("time", 31)


def test_a_round_that_began_early_costs_no_other_second() -> None:
    """Rounds do not begin to the nanosecond."""
    rounds = [alive(0), *(alive(index) for index in range(1, 60))]
    early = snapshot(5, cpu(RANK))
    rounds[5] = type(early)(
        index=5, at_ns=early.at_ns - 3_000_000, wall_ns=0, processes=early.processes, samples=early.samples
    )
    assert len(look(attached(PlayedObserver(rounds)), FIVE, always).trace.snapshots) == 6


def test_late_readings_join_the_last_round() -> None:
    """What arrives after the last round is part of the trace."""
    late = (sample("stacks", RANK, Missing("stacks", "timeout")),)
    seen = look(attached(PlayedObserver([alive(index) for index in range(6)], late)), FIVE, always)
    assert seen.trace.snapshots[-1].samples[-1].probe == "stacks"


def test_the_recording_is_the_trace(tmp_path: Path) -> None:
    """What was written is what was looked at, late readings included."""
    path = tmp_path / "a.hangtrace"
    late = (sample("stacks", RANK, Missing("stacks", "timeout")),)
    one = attached(PlayedObserver([alive(index) for index in range(6)], late), path)
    seen = look(one, FIVE, always)
    assert [len(s.samples) for s in read(path).snapshots] == [len(s.samples) for s in seen.trace.snapshots]


def test_gone_later() -> None:
    """A launch that ends while it is watched ends the look, and its last round is empty."""
    seen = look(attached(PlayedObserver([alive(0), alive(1), snapshot(2, processes=())])), FIVE, always)
    assert seen.end == "gone"
    assert seen.trace.snapshots[-1].processes == ()


@pytest.mark.parametrize("rounds", [[], [snapshot(0, processes=())], [snapshot(0, cpu(LAUNCHER, "Z"), cpu(RANK, "Z"))]])
def test_gone_before_the_first_round(rounds: list) -> None:  # type: ignore[type-arg]
    """Without one complete round there is nothing to speak of: 4."""
    with pytest.raises(HangdocError) as raised:
        look(attached(PlayedObserver(rounds)), FIVE, always)
    assert raised.value.exit_code is ExitCode.UNOBSERVABLE


def test_ctrl_c_before_the_first_round() -> None:
    """Ctrl-C before there is anything to report is no sign that the launch is gone."""

    class Interrupted(PlayedObserver):
        def rounds(self) -> Iterator[Snapshot]:
            os.kill(os.getpid(), signal.SIGINT)
            return iter(())

    with pytest.raises(KeyboardInterrupt):
        look(attached(Interrupted([])), FIVE, always)


def test_nothing_readable() -> None:
    """When not one reading succeeds: 4, with a remedy."""
    denied = snapshot(0, sample("cpu", RANK, Missing("cpu", "denied")))
    with pytest.raises(HangdocError) as raised:
        look(attached(PlayedObserver([denied])), FIVE, always)
    assert raised.value.exit_code is ExitCode.UNOBSERVABLE
    assert raised.value.remedy


def test_zombies_are_gone() -> None:
    """Zombies that nobody buries are no launch; one living member is."""
    assert is_gone(snapshot(0, cpu(LAUNCHER, "Z"), cpu(RANK, "Z")))
    assert not is_gone(snapshot(0, cpu(LAUNCHER, "S"), cpu(RANK, "Z")))
    assert not is_gone(snapshot(0, cpu(LAUNCHER, "Z")))
