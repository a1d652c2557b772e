"""One case judged: the trace replayed, its diagnosis held against the expectation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from hangdoc.diagnosis import diagnose
from hangdoc.errors import HangdocError
from hangdoc.observe.replay import read_trace
from hangdoc.regress.cases import EXPECTATION, Case
from hangdoc.report.document import document
from hangdoc.report.expectation import differences, read_expectation

State: TypeAlias = Literal["same", "differs", "unusable"]


@dataclass(frozen=True)
class Result:
    """What came of a case. lines: each difference, or why it could not be judged, in words.

    said: the document of a trace that could be replayed, the fields that an expectation may be made of; took_s: CPU
    seconds of the replay.
    """

    case: Case
    state: State
    lines: tuple[str, ...] = ()
    said: dict[str, Any] | None = None
    took_s: float = 0.0

    @property
    def in_words(self) -> str:
        """What the diagnosis was: "blocked, likely, weight-load"."""
        return "" if self.said is None else ", ".join(self.said[name] for name in ("verdict", "grade", "phase"))


def judge(case: Case) -> Result:
    """Replay a case. What is wrong with its files is a result, not an exception: the others go on."""
    if not case.has_trace:
        return Result(case, "unusable", (f"{case.expectation} has no trace beside it: remove it, or put it back",))
    begin_s = time.process_time()
    try:
        said = document(diagnose(read_trace(case.trace), kind="trace"))
    except HangdocError as error:
        return Result(case, "unusable", (error.message,))
    took_s = time.process_time() - begin_s
    if not case.has_expectation:
        line = f"{case.trace} has no {EXPECTATION} beside it: write one, or let --update do it"
        return Result(case, "unusable", (line,), said, took_s)
    try:
        found = differences(read_expectation(case.expectation), said)
    except HangdocError as error:
        return Result(case, "unusable", (error.message,), said, took_s)
    return Result(case, "differs" if found else "same", tuple(found), said, took_s)
