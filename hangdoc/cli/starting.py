"""The start of the new launch for `hangdoc relaunch`, and the watch until it is ready, hangs or ends."""

from __future__ import annotations

from hangdoc.cli.failure import say
from hangdoc.cli.feeding import feed_prompts
from hangdoc.cli.retelling import tell
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.observe.stop import Stop
from hangdoc.relaunch.begin import begin
from hangdoc.relaunch.capturing import forget
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.ended import advice, end_again
from hangdoc.relaunch.planning import Wishes, may_be_an_engine
from hangdoc.relaunch.records import Command
from hangdoc.relaunch.watch import Aim, Watched, watch
from hangdoc.samples.needs import Additions


def start_new(course: Course, command: Command, additions: Additions | None, wishes: Wishes) -> ExitCode:
    """Start it and watch it; returns the exit code."""
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
