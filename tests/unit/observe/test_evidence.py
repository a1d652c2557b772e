"""Native stacks at the end of an observation: only at a hang, only when asked for, and they reach trace and file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stacks
from hangdoc.observe.evidence import finish
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from tests.unit.observe.rounds import RANK, PlayedObserver, alive, attached, sample, snapshot
from tests.unit.report.diagnoses import a_diagnosis


class Asked(PlayedObserver):
    """Also has native stacks, for whoever asks."""

    def __init__(self, rounds: Sequence[Snapshot]) -> None:
        super().__init__(rounds)
        self.requests: list[str] = []

    def request(self, name: str) -> Snapshot | None:
        self.requests.append(name)
        last = self.finish()
        assert last is not None
        return snapshot(last.index, *last.samples, sample("native", RANK, Stacks(())))


def probes_of(trace: Trace) -> set[str]:
    return {one.probe for round_ in trace.snapshots for one in round_.samples}


@pytest.mark.parametrize(
    ("verdict", "grade", "wanted", "asked"),
    [
        ("busy-wait", "likely", True, True),
        ("busy-wait", "likely", False, False),
        ("busy-wait", "undetermined", True, False),
        ("healthy", "confirmed", True, False),
    ],
)
def test_when_native_stacks_are_taken(verdict: str, grade: str, wanted: bool, asked: bool, tmp_path: Path) -> None:
    """They are asked for when the user wants them and the verdict is a hang, once, and are recorded."""
    file = tmp_path / "a.hangtrace"
    observer = Asked([alive(0), alive(1)])
    here = replace(attached(observer, file), native=wanted)
    for one in observer.rounds():
        here.tape.add(one)
    diagnosis = cast("Diagnosis", a_diagnosis(verdict=verdict, grade=grade))
    finish(here, lambda _: diagnosis)
    assert observer.requests == (["native"] if asked else [])
    assert ("native" in probes_of(here.tape.trace())) is asked
    assert ("native" in probes_of(read(file))) is asked
