"""A recording beside a look or a following: what the disk does not take costs the exit code, not the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hangdoc.cli.failure import complain
from hangdoc.cli.handed import Handed
from hangdoc.cli.handing_on import opened
from hangdoc.cli.live import looked
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


@dataclass(frozen=True)
class Shown:
    """How one look is told. keep_names: in reports that are handed on, too."""

    as_json: bool
    no_color: bool
    handed: Handed
    keep_names: bool


def watch_once(
    pid: int | None, port: int | None, setting: Setting, record: Path | None, window: Window, shown: Shown
) -> ExitCode:
    """Find a launch, observe it once and print the report; then write those that are handed on."""
    recording = recording_at(record)
    observing = replace(setting, record=None if recording is None else recording.open)
    with opened(shown.handed) as handing_on:
        with attach(pid, port, observing) as attached:
            trace, diagnosis, code = looked(attached, window, as_json=shown.as_json)
        if not shown.handed.has_standard_output:
            emit_diagnosis(diagnosis, as_json=shown.as_json, no_color=shown.no_color)
        if shown.handed.is_any:
            handing_on.hand_on(trace, "live", keep_names=shown.keep_names, baseline=setting.baseline)
    return code_with(code, recording)
