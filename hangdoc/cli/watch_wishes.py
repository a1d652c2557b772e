"""What a following is to do, and how it observes for that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hangdoc.cli.recorded import recording_at
from hangdoc.cli.watch_options import is_folder
from hangdoc.observe.attach import Setting
from hangdoc.trace.forgiving import Forgiving
from hangdoc.unattended.metrics import Address
from hangdoc.unattended.vigil import Outlets


@dataclass(frozen=True)
class Wishes:
    """The command's options for following."""

    record: Path | None
    limit_bytes: int
    on_hang: str | None
    state: Path | None
    metrics: Address | None
    setting: Setting
    as_json: bool
    no_color: bool


def recording_of(wishes: Wishes) -> Forgiving | None:
    """Return what records to one trace; None when none was asked for, or a folder."""
    return None if wishes.record is None or is_folder(wishes.record) else recording_at(wishes.record)


def setting_of(wishes: Wishes, outlets: Outlets, recording: Forgiving | None) -> Setting:
    """Return how to observe, with the recording that was asked for."""
    if outlets.folder is not None:
        return replace(wishes.setting, record=outlets.folder.attach)
    return replace(wishes.setting, record=None if recording is None else recording.open)
