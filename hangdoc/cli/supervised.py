"""A launch that hangdoc starts, and follows beside it: standard output is the launch's own."""

from __future__ import annotations

from collections.abc import Callable

from hangdoc.cli.failure import complain, say
from hangdoc.cli.outlets import outlets_of
from hangdoc.cli.output import to_terminal
from hangdoc.cli.watch_wishes import Wishes, recording_of, setting_of
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.observe.attach import Attached, attach
from hangdoc.observe.follow import Following, Goal, View
from hangdoc.observe.reasoning import lazily
from hangdoc.report.exit_code import exit_code
from hangdoc.report.line import change, is_change
from hangdoc.unattended.beginning import Beginning, wait_for_engine
from hangdoc.unattended.last import last_view
from hangdoc.unattended.supervise import Halt, hold_signals, release_signals, supervise
from hangdoc.unattended.vigil import Outlets, Vigil


def start_launch(argv: tuple[str, ...], wishes: Wishes, patience_s: float) -> int:
    """Start a launch and follow it to its end; return the launch's exit code."""
    before = hold_signals()
    try:
        with outlets_of(wishes, may_wait=True) as outlets:
            return supervise(argv, lambda started, halt: _beside(started, halt, wishes, outlets, patience_s), before)
    finally:
        release_signals(before)


def _beside(started: Started, halt: Halt, wishes: Wishes, outlets: Outlets, patience_s: float) -> None:
    try:
        wait_for_engine(started.pid, halt)
        is_seen, is_another = False, True
        while is_another and not halt.asked:
            with attach(started.pid, None, setting_of(wishes, outlets, recording_of(wishes))) as attached:
                halt.then(attached.observer.stop)
                beginning = Beginning(attached, Vigil(attached, outlets))
                is_seen |= _follow_aside(attached, patience_s, beginning, lambda view: last_view(view, started, halt))
                is_another = beginning.became_known
        if not is_seen:
            _tell_unwatched(HangdocError("it was over before hangdoc was there"), started, halt, outlets)
    except BaseException as error:  # noqa: BLE001 - whatever befalls hangdoc, the launch must not notice
        _tell_unwatched(error, started, halt, outlets)


def _tell_unwatched(error: BaseException, started: Started, halt: Halt, outlets: Outlets) -> None:
    """Say why a launch is not watched: it was over too soon, or hangdoc failed."""
    if (code := started.code) is not None and isinstance(error, HangdocError | KeyboardInterrupt):  # no round was seen
        say(f"hangdoc: the launch ended with {code} before the first look at it")
        if outlets.state is not None:
            outlets.state.end()
    elif not halt.asked:
        complain(error)
        say("hangdoc: the launch goes on without being watched")


def _follow_aside(attached: Attached, patience_s: float, begun: Beginning, completed: Callable[[View], View]) -> bool:
    """The same on standard error, for a launch that standard output belongs to; say whether anything was seen."""
    shown: View | None = None
    for seen in Following(attached, lazily(as_json=False), Goal(patience_s=patience_s), begun).views():
        if begun.became_known:
            break
        view = completed(seen)
        begun.vigil.view(view)
        if shown is None or is_change(shown.diagnosis, view.diagnosis):
            say(f"hangdoc: {change(view.diagnosis)}")
            if exit_code(view.diagnosis.verdict, view.diagnosis.grade) is ExitCode.HANG:
                say(_report(view))
        shown = view
    return shown is not None


def _report(view: View) -> str:
    from hangdoc.report.terminal import parts

    return to_terminal(parts(view.diagnosis), no_color=True)
