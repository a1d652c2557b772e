"""What `hangdoc relaunch` shows: the plan and the question, what became of the new launch, the document."""

from __future__ import annotations

from contextlib import suppress

from hangdoc.cli.consent import consent
from hangdoc.cli.failure import say
from hangdoc.cli.output import emit, emit_diagnosis, emit_json, to_terminal
from hangdoc.errors import ExitCode
from hangdoc.relaunch.document import Course, document
from hangdoc.relaunch.last_lines import last_lines
from hangdoc.relaunch.planning import Wishes
from hangdoc.relaunch.secrets import hidden_values
from hangdoc.relaunch.watch import Watched
from hangdoc.relaunch.words import plan_parts


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
        for line in last_lines(plan.log, hidden_values(plan.command)):
            say(f"  {line}")
    if course.ended_again is not None or (living is None and watched.end == "exit"):
        return
    if living == started.pid:
        left = "it goes on without hangdoc" if watched.end == "interrupted" else "it stays"
        say(f"hangdoc: pid {living}: {left}; to end it: hangdoc kill-clean {living}")
    elif living is not None:
        say(f"hangdoc: pid {started.pid} has ended, others of it live; to end them: hangdoc kill-clean {living}")
    else:
        say(f"hangdoc: pid {started.pid} has ended, and nobody of it lives; its output: {plan.log}")


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
