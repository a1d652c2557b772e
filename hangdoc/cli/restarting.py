"""The course of `hangdoc relaunch`: plan, consent, the old launch's end, the new one's start, the watch."""

from __future__ import annotations

from contextlib import ExitStack

from hangdoc.cli.asking import nothing_touched
from hangdoc.cli.failure import say
from hangdoc.cli.feeding import feed_prompts
from hangdoc.cli.retelling import finish, present, tell
from hangdoc.ending.interruption import interruptible, report_undisturbed
from hangdoc.ending.named import refuse_outsider
from hangdoc.ending.plan import prepared
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.observe.stop import Stop
from hangdoc.relaunch.begin import begin
from hangdoc.relaunch.capturing import forget, ready_to_start
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.ended import advice, end, end_again, obstacle, start_again
from hangdoc.relaunch.planning import Wishes, make_plan, may_be_an_engine
from hangdoc.relaunch.records import Command
from hangdoc.relaunch.watch import Aim, Watched, watch
from hangdoc.samples.needs import Additions


def restart(wishes: Wishes) -> ExitCode:
    """Do what is wished; returns the exit code."""
    with interruptible(), ExitStack() as stack:
        with nothing_touched():
            course = _planned(wishes, stack)
            present(course, wishes)
        if wishes.dry_run:
            return finish(course, ExitCode.OK, wishes)
        command, additions = ready_to_start(course.plan)
        try:
            code = _start(course, command, additions, wishes) if _is_ended(course) else ExitCode.HANG
        except KeyboardInterrupt:
            report_undisturbed()
            code = _interrupted(course)
        if course.is_over or course.started is None:
            forget(additions)
        return finish(course, code, wishes)


def _planned(wishes: Wishes, stack: ExitStack) -> Course:
    course = Course(make_plan(wishes, say), dry_run=wishes.dry_run)
    old = course.plan.origin.old
    if old is not None:
        named = () if wishes.pid is None else (wishes.pid,)
        course.endings = tuple(stack.enter_context(prepared(lambda: [old], (), named)))
        refuse_outsider(wishes.pid, course.endings)
    return course


def _interrupted(course: Course) -> ExitCode:
    """Say what there is after an interruption between two steps; within them each step says it itself."""
    if course.started is not None:
        course.end = "interrupted"
        tell(course, Watched("interrupted", ExitCode.UNDETERMINED))
        return ExitCode.UNDETERMINED
    say("hangdoc: interrupted: nothing was started")
    if course.outcome is not None:
        say(f"hangdoc: the old launch has been ended; {advice(course.outcome)}")
    return ExitCode.HANG if course.endings else ExitCode.UNDETERMINED


def _is_ended(course: Course) -> bool:
    """End the old launch, if there is one; when the new one cannot be started now, say why and what to do."""
    for ending in course.endings:
        course.outcome = end(ending, course.plan.log.parent, say)
        reason = obstacle(course.outcome, course.plan.port)
        if reason:
            say(f"hangdoc: {reason}: nothing was started")
            for line in start_again(course.outcome):
                say(f"hangdoc: {line}")
            return False
    return True


def _start(course: Course, command: Command, additions: Additions | None, wishes: Wishes) -> ExitCode:
    plan = course.plan
    was_there = plan.log.exists()
    with Stop(lambda: None) as stop:  # Ctrl-C must not lose what was just started
        try:
            course.started = started = begin(command, plan.log)
        except HangdocError as error:
            forget(additions)
            if not was_there and plan.log.exists() and not plan.log.stat().st_size:
                plan.log.unlink()
            if course.outcome is None:
                raise
            remedy = f"{error.remedy}; {advice(course.outcome)}".removeprefix("; ")
            raise HangdocError(f"{error.message}; the old launch has been ended", remedy, error.exit_code) from error
    say(f"hangdoc: started process {started.pid}, its output goes to {plan.log}")
    watched = Watched("interrupted", ExitCode.UNDETERMINED) if stop.asked else _watch(course, started, wishes)
    course.end, course.diagnosis = watched.end, watched.diagnosis
    if watched.code is ExitCode.HANG and wishes.kill_on_hang and watched.end in {"hang", "exit", "time"}:
        course.ended_again = end_again(started, plan.log.parent, say)
    tell(course, watched)
    return watched.code


def _watch(course: Course, started: Started, wishes: Wishes) -> Watched:
    aim = Aim(wishes.until, wishes.timeout_s, wishes.patience_s, may_be_an_engine(course.plan))
    if wishes.until == "ready" and not aim.expects_engine:
        say("hangdoc: no engine is known in the command, so it will not be told ready: Ctrl-C leaves it to itself")
    watched = watch(started, aim, say, as_json=wishes.as_json)
    if watched.end == "ready" and wishes.prompts is not None:
        watched = feed_prompts(course, watched, wishes.prompts)
    return watched
