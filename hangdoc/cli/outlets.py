"""Where a following tells what it sees beside its lines: the command's options, opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hangdoc.cli.failure import say
from hangdoc.cli.watch_options import is_folder
from hangdoc.observe.attach import Setting
from hangdoc.unattended.command import OnHang
from hangdoc.unattended.folder import Folder
from hangdoc.unattended.metrics import Address, Metrics
from hangdoc.unattended.state import StateFile
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


@contextmanager
def outlets_of(wishes: Wishes) -> Iterator[Outlets]:
    """Open what was asked for; HangdocError when a part of it cannot be had, before anything is watched or started."""
    with ExitStack() as stack:
        folder = on_hang = metrics = None
        if wishes.record is not None and is_folder(wishes.record):
            folder = Folder(wishes.record, complain, wishes.limit_bytes)
        if wishes.metrics is not None:
            metrics = Metrics(wishes.metrics)
            stack.callback(metrics.close)
        if wishes.on_hang is not None:
            on_hang = OnHang(wishes.on_hang, complain)
            stack.callback(on_hang.wait)
        state = None if wishes.state is None else StateFile(wishes.state)
        if state is not None:
            state.begin()
        yield Outlets(complain, folder, on_hang, state, metrics)


def setting_of(wishes: Wishes, outlets: Outlets) -> Setting:
    """Return how to observe, with the recording that was asked for."""
    folder = outlets.folder
    return replace(wishes.setting, record=wishes.record if folder is None else folder.attach)


def complain(line: str) -> None:
    """Tell people something, while a watch goes on."""
    say(f"hangdoc: {line}")
