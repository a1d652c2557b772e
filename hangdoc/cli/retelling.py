"""What `hangdoc relaunch` shows: the plan and the question, what became of the new launch, the document."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hangdoc.cli.consent import consent
from hangdoc.cli.failure import say
from hangdoc.cli.output import emit, emit_diagnosis, emit_json, to_terminal
from hangdoc.errors import ExitCode
from hangdoc.relaunch.document import Course, document
from hangdoc.relaunch.planning import Wishes
from hangdoc.relaunch.secrets import hidden_values, veiled
from hangdoc.relaunch.watch import Watched
from hangdoc.relaunch.words import plan_parts
from hangdoc.trace.log_text import LogRedactor

LAST_LINES = 5
"""Lines of the log that are shown when the launch ended. Arbitrary."""

MOST_BYTES, LONGEST_LINE = 1 << 16, 4096
"""Of the log's end, and of each line, that are redacted for them. Arbitrary."""


def present(course: Course, wishes: Wishes) -> None:
    """Show the plan, and ask when something is going to be ended."""
    parts = list(plan_parts(course.plan, course.endings))
    if wishes.as_json:
        if not (wishes.yes or wishes.dry_run):  # who is asked must have seen the plan
            say(to_terminal(parts, no_color=True).rstrip("\n"))
    else:
        with suppress(BrokenPipeError):
            emit(to_terminal(parts, no_color=wishes.no_color))
    if not wishes.dry_run and course.endings:
        count = sum(len(one.members) for one in course.endings)
        consent(f"End these {count} processes?", yes=wishes.yes)


def tell(course: Course, watched: Watched) -> None:
    """Say on standard error whether it lives, and how it is ended."""
    started, plan = course.started, course.plan
    assert started is not None
    living = started.living_pid()
    if watched.end == "exit":
        status = "" if watched.status is None else f", exit code {watched.status}"
        say(f"hangdoc: the new launch has ended{status}; its output: {plan.log}")
        _tell_last_lines(plan.log, hidden_values(plan.command))
    if course.ended_again is not None or (living is None and watched.end == "exit"):
        return
    if living == started.pid:
        left = "it goes on without hangdoc" if watched.end == "interrupted" else "it stays"
        say(f"hangdoc: pid {living}: {left}; to end it: hangdoc kill-clean {living}")
    elif living is not None:
        say(f"hangdoc: pid {started.pid} has ended, others of it live; to end them: hangdoc kill-clean {living}")
    else:
        say(f"hangdoc: pid {started.pid} has ended, and nobody of it lives; its output: {plan.log}")


def _tell_last_lines(log: Path, hidden: frozenset[str]) -> None:
    """Redact all that is read, because names are learned from lines before: by what is hidden, and by shape."""
    redactor = LogRedactor()
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
        lines = veiled(file.read().decode(errors="replace"), hidden).splitlines()
        for line in [redactor.line(one[:LONGEST_LINE]) for one in lines][-LAST_LINES:]:
            say(f"  {line}")


def finish(course: Course, code: ExitCode, wishes: Wishes) -> ExitCode:
    """Print the document, or what came of it, and return the code."""
    with suppress(BrokenPipeError):
        if wishes.as_json:
            emit_json(document(course, code))
        elif course.started is not None:
            _emit_end(course, wishes)
    return code


def _emit_end(course: Course, wishes: Wishes) -> None:
    assert course.started is not None
    if course.diagnosis is not None and course.end != "ready":
        emit_diagnosis(course.diagnosis, as_json=False, no_color=wishes.no_color)
    if course.end == "ready":
        port = "" if course.plan.port is None else f" on port {course.plan.port}"
        emit(f"READY  process {course.started.pid}{port}; output in {course.plan.log}\n")
