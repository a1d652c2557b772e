"""A live launch, observed for a command: one look with its report, or following with a line at each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hangdoc.cli.failure import progress
from hangdoc.cli.output import emit, emit_diagnosis
from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.attach import Attached
from hangdoc.observe.follow import Following, Goal, View, following_code
from hangdoc.observe.look import Look, Window, look
from hangdoc.observe.reasoning import lazily
from hangdoc.report.document import encode
from hangdoc.report.exit_code import exit_code, exit_code_after_end
from hangdoc.report.line import change, is_change
from hangdoc.trace.records import Trace

if TYPE_CHECKING:  # recording is imported for what records: one look must not wait for it
    from hangdoc.unattended.vigil import Vigil


def look_once(attached: Attached, window: Window, *, as_json: bool) -> tuple[Diagnosis, ExitCode]:
    """Observe once; return the diagnosis and the exit code that goes with it."""
    return looked(attached, window, as_json=as_json)[1:]


def looked(attached: Attached, window: Window, *, as_json: bool) -> tuple[Trace, Diagnosis, ExitCode]:
    """Observe once; return what was read, too."""
    announce(attached, f"for {window.least_s:g} to {window.most_s:g} s")
    diagnosing = lazily(as_json=as_json, baseline=attached.baseline)
    seen: Look = look(attached, window, diagnosing)
    diagnosis = diagnosing.diagnose(seen.trace)
    if seen.end == "gone":
        return seen.trace, diagnosis, exit_code_after_end(diagnosis)
    return seen.trace, diagnosis, exit_code(diagnosis.verdict, diagnosis.grade)


def follow(attached: Attached, goal: Goal, vigil: Vigil, *, as_json: bool, no_color: bool) -> ExitCode:
    """Print a line at each change and the whole report at the end; as JSON one document a line, the last one final."""
    shown: View | None = None
    for view in Following(attached, lazily(as_json=as_json, baseline=attached.baseline), goal, vigil).views():
        vigil.view(view)
        try:
            _show(view, shown, as_json=as_json, no_color=no_color)
        except BrokenPipeError:  # nobody reads any more: there is no point in going on
            return following_code(view, goal.until)
        shown = view
    assert shown is not None  # the last view always comes
    return following_code(shown, goal.until)


def announce(attached: Attached, how_long: str) -> None:
    """Say on standard error what is being watched."""
    launch = attached.launch
    members = f"{len(launch.processes)} process" + ("es" if len(launch.processes) != 1 else "")
    progress(f"hangdoc: watching {launch.engine} launch {launch.root.pid} ({members}) {how_long}")


def _show(view: View, before: View | None, *, as_json: bool, no_color: bool) -> None:
    changed = before is None or is_change(before.diagnosis, view.diagnosis)
    if as_json and (changed or view.end is not None):
        emit(encode(view.diagnosis, indent=None))
    elif not as_json and changed:
        emit(change(view.diagnosis) + "\n")
    if not as_json and view.end is not None:
        emit("\n")
        emit_diagnosis(view.diagnosis, as_json=False, no_color=no_color)
