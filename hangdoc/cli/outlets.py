"""Where a following tells what it sees beside its lines: the command's options, opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hangdoc.cli.failure import say
from hangdoc.cli.watch_options import is_folder
from hangdoc.cli.watch_wishes import Wishes
from hangdoc.errors import HangdocError
from hangdoc.trace.scribe import ANSWER_S, HURRIED_S
from hangdoc.unattended.command import OnHang
from hangdoc.unattended.folder import Folder
from hangdoc.unattended.metrics import Metrics
from hangdoc.unattended.shelf import DISK
from hangdoc.unattended.state import State
from hangdoc.unattended.vigil import Outlets


@contextmanager
def outlets_of(wishes: Wishes, *, may_wait: bool = False) -> Iterator[Outlets]:
    """Open what was asked for; HangdocError when a part of it cannot be had, before anything is watched or started.

    may_wait: a disk that is full or read-only is only complained of, as a launch must not wait for it.
    """
    with ExitStack() as stack:
        folder = on_hang = metrics = None
        if wishes.record is not None and is_folder(wishes.record):
            folder = Folder(wishes.record, complain, wishes.limit_bytes, may_wait=may_wait)
            stack.callback(folder.close)
        if wishes.metrics is not None:
            metrics = Metrics(wishes.metrics)
            stack.callback(metrics.close)
        if wishes.on_hang is not None:
            on_hang = OnHang(wishes.on_hang, complain)
            stack.callback(on_hang.wait)
        state = None if wishes.state is None else State(wishes.state, complain)
        if state is not None:
            stack.callback(state.close)
            _begin(state, may_wait=may_wait)
        yield Outlets(complain, folder, on_hang, state, metrics)


def _begin(state: State, *, may_wait: bool) -> None:
    try:
        state.begin(HURRIED_S if may_wait else ANSWER_S)
    except HangdocError as error:
        reason = error.__cause__
        if not (may_wait and isinstance(reason, OSError) and reason.errno in DISK):
            raise
        complain(f"{error.message}; the launch is started all the same")


def complain(line: str) -> None:
    """Tell people something, while a watch goes on."""
    say(f"hangdoc: {line}")
