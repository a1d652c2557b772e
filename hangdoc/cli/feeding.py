"""The talk of `--prompts`: a progress bar, what was refused, and a diagnosis when the server stops answering."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hangdoc.cli.failure import say
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.look import Window, look
from hangdoc.observe.reasoning import lazily
from hangdoc.relaunch.document import Course
from hangdoc.relaunch.engine import given_options
from hangdoc.relaunch.feed import Fed, Place, Server, Tell, feed
from hangdoc.relaunch.prompts import check_prompts, read_prompts
from hangdoc.relaunch.watch import Watched
from hangdoc.report.exit_code import exit_code

MOST_REFUSED = 5
"""Refused prompts that are named; --json has all. Arbitrary."""

STEPS = 10
"""Lines of progress where there is no terminal for a bar. Arbitrary."""

EVERYWHERE = {"", "0.0.0.0", "::"}  # noqa: S104 - what the server was told, not where hangdoc listens


def feed_prompts(course: Course, watched: Watched, prompts: Path) -> Watched:
    """Feed a server that is ready; returns what came of it: 1 when a prompt has no sample, or the server hangs.

    Ctrl-C leaves the server; the same command goes on where it ended.
    """
    plan = course.plan
    assert plan.capture is not None
    wish = plan.capture.wish
    count = check_prompts(prompts)
    bar, doubt = _bar(), _Doubt(course)
    try:
        with bar or nullcontext():
            tell = _in_bar(bar, count) if bar is not None else _in_lines(count)
            place = Place(wish.directory, wish.form)
            course.fed = fed = feed(read_prompts(prompts), _server(course), place, tell, doubt)
    except KeyboardInterrupt:
        return replace(watched, end="interrupted", code=ExitCode.UNDETERMINED)
    _tell(fed, wish.directory)
    if not fed.stopped:
        return watched if fed.is_whole else replace(watched, code=ExitCode.HANG)
    return doubt.outcome(watched)


class _Doubt:
    """Looks at a server that does not answer."""

    def __init__(self, course: Course) -> None:
        assert course.started is not None
        self._started = course.started
        self._seen: Diagnosis | None = None

    def __call__(self) -> str:
        """Return why to stop feeding it, "" when it does not hang."""
        say("hangdoc: no answer for a while: looking at the launch")
        diagnosis = self._look()
        return "" if diagnosis is not None and not _hangs(diagnosis) else "the server does not answer"

    def outcome(self, watched: Watched) -> Watched:
        """Say what became of a server that is not fed any more."""
        if self._started.has_ended():
            return Watched("exit", ExitCode.HANG, watched.diagnosis, self._started.bury())
        seen = self._seen if self._seen is not None else self._look()
        if seen is None:
            return replace(watched, code=ExitCode.UNDETERMINED)
        return Watched("hang" if _hangs(seen) else "ready", ExitCode.HANG, seen)

    def _look(self) -> Diagnosis | None:
        reasoning = lazily(as_json=False)
        try:
            with attach(self._started.pid, None, Setting()) as attached:
                diagnosis = reasoning.diagnose(look(attached, Window(), reasoning).trace)
        except HangdocError as error:
            say(f"hangdoc: {error.message}")
            return None
        self._seen = diagnosis if _hangs(diagnosis) else None
        return diagnosis


def _hangs(diagnosis: Diagnosis) -> bool:
    return exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG


def _server(course: Course) -> Server:
    options = given_options(course.plan.command.argv)
    host = options.get("--host", "")
    address = "127.0.0.1" if host in EVERYWHERE else host
    url = f"http://[{address}]" if ":" in address else f"http://{address}"
    return Server(f"{url}:{course.plan.port}", options.get("--api-key", ""))


def _bar() -> Progress | None:
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    columns = (
        TextColumn("prompts"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    return Progress(*columns, console=Console(file=sys.stderr))


def _in_bar(bar: Progress, count: int) -> Tell:
    task = bar.add_task("prompts", total=count, note="")

    def tell(fed: Fed) -> None:
        bar.update(task, completed=fed.there + fed.answered, note=_note(fed))

    return tell


def _in_lines(count: int) -> Tell:
    told = -1

    def tell(fed: Fed) -> None:
        nonlocal told
        step = (fed.there + fed.answered) * STEPS // count
        if step > told:
            told = step
            say(f"hangdoc: {fed.there + fed.answered} of {count} prompts{_note(fed)}")

    return tell


def _note(fed: Fed) -> str:
    parts = [f"{fed.there} were there" if fed.there else "", f"{len(fed.refused)} refused" if fed.refused else ""]
    said = ", ".join(part for part in parts if part)
    return f" ({said})" if said else ""


def _tell(fed: Fed, directory: Path) -> None:
    for index, reason in fed.refused[:MOST_REFUSED]:
        say(f"hangdoc: prompt {index} was refused: {reason}")
    left = len(fed.expected) - fed.written
    if left:
        say(f"hangdoc: {left} prompts have no sample; why: hangdoc capture status {directory}")
    if fed.stopped:
        say(f"hangdoc: {fed.stopped}; the same command goes on where it ended")
    say(f"hangdoc: {fed.written} samples written, {fed.there} were there before, in {directory}")
