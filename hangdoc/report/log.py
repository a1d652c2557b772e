"""The log's own section of the report: the steps of the start, what is missing, silence, bar, failures, comparison."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from hangdoc.model.diagnosis import LogReport, LogStep
from hangdoc.report.rows import bullet
from hangdoc.report.words import bytes_text, duration

MOST_TOLD = 6
"""Failures and complaints that are shown; --json has more. Arbitrary: the first ones say what began."""


def log_rows(log: LogReport | None) -> list[RenderableType]:
    """Return the rows of the section; none without a log, or for one of a program that no table knows."""
    if log is None or not (log.steps or log.failures or log.complaints or log.bar):
        return []
    return list(_rows(log))


def _rows(log: LogReport) -> Iterator[RenderableType]:
    until = " until it was ready" if any(step.name == "ready" for step in log.steps) else ""
    lines = f", {log.lines} lines{until}" if log.lines else ""
    yield bullet("", f"{log.path}: {bytes_text(log.size_bytes)}{lines}{_end(log)}")
    for step in log.steps:
        yield bullet("+", _step(step), "green")
    if log.bar is not None:
        left = "" if log.left_s is None else f", {duration(log.left_s)} left at that pace"
        yield bullet("+", f"{log.bar}{left}")
    if log.next_text is not None:
        yield bullet("?", f"not reached: {log.next_text}", "yellow")
    if log.absent:
        ranks = ", ".join(" ".join(f"{axis.upper()}{number}" for axis, number in one.items()) for one in log.absent)
        yield bullet("?", f"ranks that have not said the last step: {ranks}", "yellow")
    for sign, style, told in (("x", "red", log.failures), ("!", "yellow", log.complaints), ("~", "", log.baseline)):
        for text in told[:MOST_TOLD]:
            yield bullet(sign, text, style)


def _end(log: LogReport) -> str:
    last = f", last line at {log.last_at}" if log.last_at else ""
    if log.silent_s is not None:
        return f"{last}, silent for {duration(log.silent_s)}"
    return last + ("" if log.changed_s is None else f"; the file was changed {duration(log.changed_s)} ago")


def _step(step: LogStep) -> str:
    at = f"{step.at}  " if step.at else ""
    took = "" if step.took_s is None or step.took_s < 1 else f", {duration(step.took_s)} to the next"
    return f"{at}{step.text}{_ranks(step)}{took}{_usual(step)}"


def _usual(step: LogStep) -> str:
    if step.usual_s is None or (step.usual_s[1] < 1 and (step.took_s or 0.0) < 1):
        return ""
    least, most = (duration(one) for one in step.usual_s)
    return f" (good starts: {least})" if least == most else f" (good starts: {least} to {most})"


def _ranks(step: LogStep) -> str:
    if step.ranks < 2:
        return ""
    if step.spread_s is None or step.spread_s < 1:
        return f" ({step.ranks} ranks)"
    last = " ".join(f"{axis.upper()}{number}" for axis, number in step.last_rank.items())
    return f" ({step.ranks} ranks, {last} {duration(step.spread_s)} after the first)"
