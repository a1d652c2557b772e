"""A look or a following with a recording beside it: what the disk does not take costs the exit code, not the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hangdoc.cli.failure import complain
from hangdoc.cli.live import follow, look_once
from hangdoc.cli.output import emit_diagnosis
from hangdoc.errors import ExitCode
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.follow import Goal
from hangdoc.observe.look import Window
from hangdoc.trace.forgiving import Forgiving


def watch_once(
    pid: int | None, port: int | None, setting: Setting, record: Path | None, window: Window, **shown: bool
) -> ExitCode:
    """Find a launch, observe it once and print the report; shown: as_json and no_color."""
    recording = None if record is None else Forgiving(record, complain)
    with attach(pid, port, replace(setting, record=None if recording is None else recording.open)) as attached:
        diagnosis, code = look_once(attached, window, as_json=shown["as_json"])
    emit_diagnosis(diagnosis, **shown)
    return code if recording is None or recording.lost is None else ExitCode.USAGE


def watch_on(
    pid: int | None, port: int | None, setting: Setting, record: Path | None, goal: Goal, **shown: bool
) -> ExitCode:
    """Find a launch and follow it; shown: as_json and no_color."""
    recording = None if record is None else Forgiving(record, complain)
    with attach(pid, port, replace(setting, record=None if recording is None else recording.open)) as attached:
        code = follow(attached, goal, **shown)
    return code if recording is None or recording.lost is None else ExitCode.USAGE
