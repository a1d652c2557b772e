"""The pure half of hangdoc, imported when there is time for it: the first round must not wait for it."""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from typing import TYPE_CHECKING

from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.look import Reasoning
from hangdoc.trace.records import Trace

if TYPE_CHECKING:
    from hangdoc.features.baseline import Baseline


def lazily(*, as_json: bool, baseline: Baseline | None = None) -> Reasoning:
    """Return the reasoning, imported in the pause after the first round.

    as_json: no report for people is needed; baseline: good starts that the launch's log is compared with.
    """

    def prepare() -> None:
        from hangdoc.diagnosis import hypotheses

        hypotheses()
        if not as_json:
            import hangdoc.report.terminal  # noqa: F401

    memory = _Memory(baseline)
    return Reasoning(memory.diagnose, memory.settled, prepare)


def for_recording() -> Reasoning:
    """Return the reasoning of a recording that asks for its diagnosis at the end only, and goes on until then."""
    return Reasoning(_Memory(None).diagnose, lambda _: False)


class _Memory:
    """The diagnosis of the trace that was asked for last: whether it settles a trace, and what it says, is one work."""

    def __init__(self, baseline: Baseline | None) -> None:
        self._baseline = baseline
        self._last: tuple[Trace, Diagnosis] | None = None

    def diagnose(self, trace: Trace) -> Diagnosis:
        from hangdoc.diagnosis import diagnose

        if self._last is None or self._last[0] is not trace:
            self._last = (trace, diagnose(trace, baseline=self._baseline))
        return self._last[1]

    def settled(self, trace: Trace) -> bool:
        from hangdoc.diagnosis import settled

        return settled(trace, self.diagnose)
