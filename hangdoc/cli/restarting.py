"""The course of `hangdoc relaunch`: plan, consent, the old launch's end, the new one's start, the watch."""

from __future__ import annotations

from contextlib import ExitStack

from hangdoc.cli.asking import nothing_touched
from hangdoc.cli.failure import say
from hangdoc.cli.retelling import finish, present, tell
from hangdoc.cli.starting import start_new
from hangdoc.ending.interruption import interruptible, report_undisturbed
from hangdoc.ending.named import refuse_outsider
from hangdoc.ending.plan import prepared
from hangdoc.errors import ExitCode
from hangdoc.relaunch.capturing import forget, ready_to_start
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.ended import advice, end, obstacle, start_again
from hangdoc.relaunch.planning import Wishes, make_plan
from hangdoc.relaunch.watch import Watched


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
            code = start_new(course, command, additions, wishes) if _is_ended(course) else ExitCode.HANG
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
