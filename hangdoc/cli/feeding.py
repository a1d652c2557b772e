"""The talk of `--prompts`: how far it is, what was refused, and a diagnosis when the server stops answering."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from hangdoc.cli.failure import say
from hangdoc.cli.far import bar_on_terminal, in_bar, in_lines
from hangdoc.errors import ExitCode
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.doubt import Doubt
from hangdoc.relaunch.feed import Fed, Place, feed, server_of
from hangdoc.relaunch.prompts import check_prompts, read_prompts
from hangdoc.relaunch.watch import Watched

MOST_REFUSED = 5
"""Refused prompts that are named; --json has all. Arbitrary."""


def feed_prompts(course: Course, watched: Watched, prompts: Path) -> Watched:
    """Feed a server that is ready; returns what came of it: 1 when a prompt has no sample, or the server hangs.

    Ctrl-C leaves the server; the same command goes on where it ended.
    """
    plan = course.plan
    assert plan.capture is not None
    assert course.started is not None
    wish = plan.capture.wish
    count = check_prompts(prompts)
    bar, doubt = bar_on_terminal(), Doubt(course.started, say)
    try:
        with bar or nullcontext():
            tell = in_bar(bar, count) if bar is not None else in_lines(count)
            place = Place(wish.directory, wish.form)
            course.fed = fed = feed(read_prompts(prompts), server_of(plan), place, tell, doubt)
    except KeyboardInterrupt:
        return replace(watched, end="interrupted", code=ExitCode.UNDETERMINED)
    _tell(fed, wish.directory)
    if not fed.stopped:
        return watched if fed.is_whole else replace(watched, code=ExitCode.HANG)
    return doubt.outcome(watched)


def _tell(fed: Fed, directory: Path) -> None:
    for index, reason in fed.refused[:MOST_REFUSED]:
        say(f"hangdoc: prompt {index} was refused: {reason}")
    left = len(fed.expected) - fed.written
    if left:
        say(f"hangdoc: {left} prompts have no sample; why: hangdoc capture status {directory}")
    if fed.stopped:
        say(f"hangdoc: {fed.stopped}; the same command goes on where it ended")
    say(f"hangdoc: {fed.written} samples written, {fed.there} were there before, in {directory}")
