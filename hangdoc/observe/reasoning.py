"""The pure half of hangdoc, imported when there is time for it: the first round must not wait for it."""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.look import Reasoning
from hangdoc.trace.records import Trace


def lazily(*, as_json: bool) -> Reasoning:
    """Return the reasoning, imported in the pause after the first round; as_json: no report for people is needed."""

    def prepare() -> None:
        from hangdoc.diagnosis import hypotheses

        hypotheses()
        if not as_json:
            import hangdoc.report.terminal  # noqa: F401

    return Reasoning(_diagnose, _settled, prepare)


def _diagnose(trace: Trace) -> Diagnosis:
    from hangdoc.diagnosis import diagnose

    return diagnose(trace)


def _settled(trace: Trace) -> bool:
    from hangdoc.diagnosis import settled

    return settled(trace)
