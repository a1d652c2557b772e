"""The talk of `hangdoc relaunch`: show the plan, ask, end the old launch, start the new one, say what became of it."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

from hangdoc.cli.asking import nothing_touched
from hangdoc.cli.consent import consent
from hangdoc.cli.failure import say
from hangdoc.cli.feeding import feed_prompts
from hangdoc.cli.output import emit, emit_diagnosis, emit_json, to_terminal
from hangdoc.ending.carry_out import carry_out, snapshot_path
from hangdoc.ending.named import refuse_outsider
from hangdoc.ending.outcome import Outcome
from hangdoc.ending.plan import Plan as Ending
from hangdoc.ending.plan import prepared
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.model.process import ProcessKey
from hangdoc.observe.stop import Stop
from hangdoc.relaunch.begin import begin
from hangdoc.relaunch.capturing import forget, ready_to_start
from hangdoc.relaunch.document import Course, document
from hangdoc.relaunch.ended import account, obstacle
from hangdoc.relaunch.planning import Wishes, make_plan, may_be_an_engine
from hangdoc.relaunch.records import Command
from hangdoc.relaunch.secrets import hidden_values, veiled
from hangdoc.relaunch.watch import Aim, Watched, watch
from hangdoc.relaunch.words import plan_parts

GPU_TIMEOUT_S = 30.0
"""How long GPU memory may take to come back: kill-clean's default."""

LAST_LINES = 5
"""Lines of the log that are shown when the launch ended at once. Arbitrary."""


def restart(wishes: Wishes) -> ExitCode:
    """Do what is wished; returns the exit code."""
    with ExitStack() as stack:
        with nothing_touched():
            course = Course(make_plan(wishes, say), dry_run=wishes.dry_run)
            old = course.plan.origin.old
            if old is not None:
                course.endings = tuple(
                    stack.enter_context(prepared(lambda: [old], (), () if wishes.pid is None else (wishes.pid,)))
                )
                refuse_outsider(wishes.pid, course.endings)
            _present(course, wishes)
        if wishes.dry_run:
            return _finish(course, ExitCode.OK, wishes)
        command, additions = ready_to_start(course.plan)
        for ending in course.endings:
            course.outcome = _end(ending, course.plan.log.parent)
            reason = obstacle(course.outcome, course.plan.port)
            if reason:
                forget(additions)
                say(f"hangdoc: {reason}: nothing was started")
                return _finish(course, ExitCode.HANG, wishes)
    code = _start(course, command, wishes)
    if course.is_over:
        forget(additions)
    return _finish(course, code, wishes)


def _present(course: Course, wishes: Wishes) -> None:
    """Show the plan, and ask when something is going to be ended."""
    parts = list(plan_parts(course.plan, course.endings))
    if wishes.as_json:
        if not (wishes.yes or wishes.dry_run):  # who is asked must have seen the plan
            say(to_terminal(parts, no_color=True).rstrip("\n"))
    else:
        with suppress(BrokenPipeError):
            emit(to_terminal(parts, no_color=wishes.no_color))
    if not wishes.dry_run and course.endings:
        consent(sum(len(one.members) for one in course.endings), yes=wishes.yes)


def _end(ending: Ending, folder: Path) -> Outcome:
    """End a launch; the evidence goes to a folder that is known to be writable."""
    outcome = carry_out(ending, folder / snapshot_path(ending), GPU_TIMEOUT_S, lambda step: say(f"hangdoc: {step}"))
    for line in account(outcome):
        say(f"hangdoc: {line}")
    return outcome


def _start(course: Course, command: Command, wishes: Wishes) -> ExitCode:
    plan = course.plan
    with Stop(lambda: None) as stop:  # Ctrl-C must not lose what was just started
        try:
            course.started = started = begin(command, plan.log)
        except HangdocError as error:
            raise HangdocError(_without_old(error.message, course), error.remedy, error.exit_code) from error
    say(f"hangdoc: started process {started.pid}, its output goes to {plan.log}")
    watched = Watched("interrupted", ExitCode.UNDETERMINED) if stop.asked else _watch(course, started, wishes)
    course.end, course.diagnosis = watched.end, watched.diagnosis
    if watched.code is ExitCode.HANG and wishes.kill_on_hang and watched.end in {"hang", "exit", "time"}:
        course.ended_again = _end_again(started.handle.key, plan.log.parent)
    _tell(course, watched)
    return watched.code


def _watch(course: Course, started: Started, wishes: Wishes) -> Watched:
    plan = course.plan
    aim = Aim(wishes.until, wishes.timeout_s, wishes.patience_s, may_be_an_engine(plan))
    if wishes.until == "ready" and not aim.expects_engine:
        say("hangdoc: no engine is known in the command, so it will not be told ready: Ctrl-C leaves it to itself")
    watched = watch(started, aim, say, as_json=wishes.as_json)
    if watched.end == "ready" and wishes.prompts is not None:
        watched = feed_prompts(course, watched, wishes.prompts)
    return watched


def _without_old(message: str, course: Course) -> str:
    return message if course.outcome is None else f"{message}; the old launch has been ended"


def _end_again(root: ProcessKey, folder: Path) -> Outcome | None:
    """End what was started; None when nobody is left of it."""
    try:
        with prepared(lambda: [root], ()) as plans:
            return _end(plans[0], folder)
    except HangdocError as error:
        say(f"hangdoc: {error.message}")
        return None


def _tell(course: Course, watched: Watched) -> None:
    """Say on standard error whether it lives, and how it is ended."""
    started, plan = course.started, course.plan
    assert started is not None
    if watched.end == "exit":
        status = "" if watched.status is None else f", exit code {watched.status}"
        say(f"hangdoc: the new launch has ended{status}; its output: {plan.log}")
        if watched.diagnosis is None:
            _tell_last_lines(plan.log, hidden_values(plan.command))
    elif course.ended_again is None:
        left = "it goes on without hangdoc" if watched.end == "interrupted" else "it stays"
        say(f"hangdoc: pid {started.pid}: {left}; to end it: hangdoc kill-clean {started.pid}")


def _tell_last_lines(log: Path, hidden: frozenset[str]) -> None:
    with suppress(OSError):
        for line in veiled(log.read_text(errors="replace"), hidden).splitlines()[-LAST_LINES:]:
            say(f"  {line}")


def _finish(course: Course, code: ExitCode, wishes: Wishes) -> ExitCode:
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
