"""The course of an observation: what the diagnosis said after each round, so that a report shows when it came up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangdoc.diagnosis import diagnose
from hangdoc.model.diagnosis import Diagnosis, Grade, Verdict
from hangdoc.model.log import Phase
from hangdoc.report.material import Material, prefix
from hangdoc.report.words import GRADE_WORDS

MOST_MOMENTS = 24
"""Rounds that are diagnosed once more, at most. Arbitrary: more make no difference to the eye."""

MOST_WORK = 200
"""Processes times rounds that are diagnosed once more: a diagnosis of 64 ranks with 200 threads each takes 2 s.
Arbitrary: a few seconds."""


@dataclass(frozen=True)
class Stretch:
    """A time in which the diagnosis stayed the same, in seconds since the first round."""

    start_s: float
    end_s: float
    verdict: Verdict
    grade: Grade
    phase: Phase

    @property
    def says(self) -> str:
        """The verdict with its grade."""
        return self.verdict if self.verdict == "undetermined" else f"{self.verdict} ({GRADE_WORDS[self.grade]})"


def course(material: Material) -> tuple[Stretch, ...]:
    """Return what was said from when to when; each stretch ends where the next one was first seen."""
    shots = material.trace.snapshots
    found: list[Stretch] = []
    before_s = 0.0
    for position in moments(len(shots), len(material.processes)):
        is_last = position == len(shots) - 1
        kind = material.diagnosis.target.kind
        told = material.diagnosis if is_last else diagnose(prefix(material.trace, position + 1), kind)
        at_s = (shots[position].at_ns - shots[0].at_ns) / 1e9
        _append(found, told, before_s, at_s)
        before_s = at_s
    return tuple(found)


def moments(rounds: int, processes: int) -> Sequence[int]:
    """Return which rounds are diagnosed: all, or evenly spread ones; the last one always.

    >>> list(moments(4, 3)), list(moments(7, 65))
    ([1, 2, 3], [2, 4, 6])
    """
    most = max(2, min(MOST_MOMENTS, MOST_WORK // max(1, processes)))
    last = rounds - 1
    count = min(last, most)
    return sorted({round(last * number / count) for number in range(1, count + 1)}) if count else [0]


def _append(found: list[Stretch], told: Diagnosis, start_s: float, end_s: float) -> None:
    said = (told.verdict, told.grade, told.phase)
    if found and (found[-1].verdict, found[-1].grade, found[-1].phase) == said:
        start_s = found.pop().start_s
    found.append(Stretch(start_s, end_s, *said))
