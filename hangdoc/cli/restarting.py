"""The course of `hangdoc relaunch`: plan, consent, the old launch's end, the new one's start, the watch."""

from __future__ import annotations

from contextlib import ExitStack

from hangdoc.cli.asking import nothing_touched
from hangdoc.cli.failure import say
from hangdoc.cli.feeding import feed_prompts
from hangdoc.cli.retelling import finish, present, tell
from hangdoc.ending.named import refuse_outsider
from hangdoc.ending.plan import prepared
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.observe.stop import Stop
from hangdoc.relaunch.begin import begin
from hangdoc.relaunch.capturing import forget, ready_to_start
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.ended import end, end_again, obstacle
from hangdoc.relaunch.planning import Wishes, make_plan, may_be_an_engine
from hangdoc.relaunch.records import Command
from hangdoc.relaunch.watch import Aim, Watched, watch
from hangdoc.samples.needs import Additions


def restart(wishes: Wishes) -> ExitCode:
    """Do what is wished; returns the exit code."""
    with ExitStack() as stack:
        with nothing_touched():
            course = Course(make_plan(wishes, say), dry_run=wishes.dry_run)
            old = course.plan.origin.old
            if old is not None:
                named = () if wishes.pid is None else (wishes.pid,)
                course.endings = tuple(stack.enter_context(prepared(lambda: [old], (), named)))
                refuse_outsider(wishes.pid, course.endings)
            present(course, wishes)
        if wishes.dry_run:
            return finish(course, ExitCode.OK, wishes)
        command, additions = ready_to_start(course.plan)
        for ending in course.endings:
            course.outcome = end(ending, course.plan.log.parent, say)
            reason = obstacle(course.outcome, course.plan.port)
            if reason:
                forget(additions)
                say(f"hangdoc: {reason}: nothing was started")
                return finish(course, ExitCode.HANG, wishes)
    code = _start(course, command, additions, wishes)
    if course.is_over:
        forget(additions)
    return finish(course, code, wishes)


def _start(course: Course, command: Command, additions: Additions | None, wishes: Wishes) -> ExitCode:
    plan = course.plan
    with Stop(lambda: None) as stop:  # Ctrl-C must not lose what was just started
        try:
            course.started = started = begin(command, plan.log)
        except HangdocError as error:
            forget(additions)
            old = "" if course.outcome is None else "; the old launch has been ended"
            raise HangdocError(f"{error.message}{old}", error.remedy, error.exit_code) from error
    say(f"hangdoc: started process {started.pid}, its output goes to {plan.log}")
    watched = Watched("interrupted", ExitCode.UNDETERMINED) if stop.asked else _watch(course, started, wishes)
    course.end, course.diagnosis = watched.end, watched.diagnosis
    if watched.code is ExitCode.HANG and wishes.kill_on_hang and watched.end in {"hang", "exit", "time"}:
        course.ended_again = end_again(started.handle.key, plan.log.parent, say)
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
