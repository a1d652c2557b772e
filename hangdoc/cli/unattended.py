"""A running launch that is followed for a command, with what it tells beside its lines."""

from __future__ import annotations

from hangdoc.cli.live import announce, follow
from hangdoc.cli.outlets import outlets_of
from hangdoc.cli.recorded import code_with
from hangdoc.cli.watch_wishes import Wishes, recording_of, setting_of
from hangdoc.observe.attach import attach
from hangdoc.observe.follow import Goal
from hangdoc.unattended.vigil import Vigil


def follow_launch(pid: int | None, port: int | None, wishes: Wishes, goal: Goal) -> int:
    """Follow a running launch; return the exit code."""
    recording = recording_of(wishes)
    with outlets_of(wishes) as outlets, attach(pid, port, setting_of(wishes, outlets, recording)) as attached:
        announce(attached, "until Ctrl-C" if goal.until is None else f"until {goal.until}")
        vigil = Vigil(attached, outlets)
        code = follow(attached, goal, vigil, as_json=wishes.as_json, no_color=wishes.no_color)
    return code_with(code, recording)
