"""One line a change: what somebody who follows a launch reads."""

from __future__ import annotations

from hangdoc.model.diagnosis import Diagnosis
from hangdoc.report.document import timestamp
from hangdoc.report.plain import plain
from hangdoc.report.words import GRADE_WORDS


def is_change(before: Diagnosis, after: Diagnosis) -> bool:
    """Say whether the launch is in another state now: verdict, grade, phase or who has to move."""
    return _state(before) != _state(after)


def change(diagnosis: Diagnosis) -> str:
    """Return the line of a state: time, verdict, phase, headline."""
    time = timestamp(diagnosis.taken_wall_ns)[11:19]
    verdict = f"{diagnosis.verdict} ({GRADE_WORDS[diagnosis.grade]})"
    return plain(f"{time}Z  {verdict:<24} {diagnosis.phase:<13} {diagnosis.headline}")


def first_answer(diagnosis: Diagnosis) -> str:
    """Return what the end of a long log says, before the rest of it is read."""
    verdict = f"{diagnosis.verdict} ({GRADE_WORDS[diagnosis.grade]})"
    return plain(f"hangdoc: by its end alone: {verdict}, {diagnosis.phase}: {diagnosis.headline} Reading all of it ...")


def _state(diagnosis: Diagnosis) -> tuple[object, ...]:
    culprits = frozenset((one.pid, one.start_ticks) for one in diagnosis.culprits)
    return (diagnosis.verdict, diagnosis.grade, diagnosis.phase, culprits)
