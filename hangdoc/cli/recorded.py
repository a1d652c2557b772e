"""A recording beside a look or a following: what the disk does not take costs the exit code, not the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hangdoc.cli.failure import complain
from hangdoc.cli.live import look_once
from hangdoc.cli.output import emit_diagnosis
from hangdoc.errors import ExitCode
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.look import Window

if TYPE_CHECKING:
    from hangdoc.trace.forgiving import Forgiving


def recording_at(path: Path | None) -> Forgiving | None:
    """Return what records to a trace beside an observation; None when none was asked for."""
    if path is None:
        return None
    from hangdoc.trace.forgiving import Forgiving  # for what records: one look must not wait for it

    return Forgiving(path, complain)


def code_with(code: ExitCode, recording: Forgiving | None) -> ExitCode:
    """Return the exit code of an observation: wrong use (2) when the recording beside it was lost."""
    return code if recording is None or recording.lost is None else ExitCode.USAGE


def watch_once(
    pid: int | None, port: int | None, setting: Setting, record: Path | None, window: Window, **shown: bool
) -> ExitCode:
    """Find a launch, observe it once and print the report; shown: as_json and no_color."""
    recording = recording_at(record)
    with attach(pid, port, replace(setting, record=None if recording is None else recording.open)) as attached:
        diagnosis, code = look_once(attached, window, as_json=shown["as_json"])
    emit_diagnosis(diagnosis, **shown)
    return code_with(code, recording)
