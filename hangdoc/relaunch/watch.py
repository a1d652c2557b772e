"""Watch a launch that was just started: until it is as it should be, or until it is known that it will not be."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.find import find_launch
from hangdoc.launch.start import Started
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.log import LogTail
from hangdoc.model.patience import Stage
from hangdoc.model.reading import Known
from hangdoc.observe.attach import Attached, Setting, attach
from hangdoc.observe.follow import Following, Goal, Until, View, following_code, is_reached
from hangdoc.observe.reasoning import lazily
from hangdoc.report.line import change, is_change

HANGS = 2
"""Diagnoses in a row that have to find a hang before it ends the watch: what it may lead to cannot be undone."""

ENGINE_S = 120.0
"""How long a script may take to start an engine before it is watched as the program that it is. Arbitrary."""

STEP_S = 0.2
"""From one look for the engine to the next. Arbitrary."""

KEPT_ROUNDS = 32
"""Rounds that a diagnosis rests on: what `watch` keeps with its longest default window."""

End: TypeAlias = Literal["ready", "hang", "exit", "time", "interrupted"]
Say: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Aim:
    """What to wait for. until: "ready", "hang" or "exit"; a hang ends the watch in any case. timeout_s: at most.

    expects_engine: an engine is in the command, or a script that may start one.
    """

    until: Until = "ready"
    timeout_s: float | None = None
    patience_s: Mapping[Stage, float] | None = None
    expects_engine: bool = True


@dataclass(frozen=True)
class Watched:
    """What came of it. code: the exit code; status: of the launch's first process when it has ended, 128 + N."""

    end: End
    code: ExitCode
    diagnosis: Diagnosis | None = None
    status: int | None = None


class _Milestones:
    """Tells what the log has said since the last look: each milestone once, by the rank that came first."""

    def __init__(self, attached: Attached, say: Say) -> None:
        self.say = say
        self._attached = attached
        self._told: set[str] = set()

    def tell(self) -> None:
        """Say what is new."""
        for snapshot in self._attached.tape.trace().snapshots:
            for sample in snapshot.samples:
                tail = sample.reading.value if isinstance(sample.reading, Known) else None
                for event in tail.events if isinstance(tail, LogTail) else ():
                    if event.kind == "milestone" and event.name not in self._told:
                        self._told.add(event.name)
                        self.say(f"           {event.stamp:<19}  {event.text}")


def watch(started: Started, aim: Aim, say: Say, *, as_json: bool) -> Watched:
    """Watch it; say: told each change of its state and each milestone of its log."""
    began_s = time.monotonic()
    try:
        if not _wait_for_engine(started, aim, say):
            return _ended(started, None, aim)
        left_s = None if aim.timeout_s is None else max(0.0, aim.timeout_s - (time.monotonic() - began_s))
        setting = Setting(kept_rounds=KEPT_ROUNDS, patience_s=dict(aim.patience_s or {}))
        with attach(started.pid, None, setting) as attached:
            goal = Goal("ready" if aim.until == "ready" else None, left_s)
            following = Following(attached, lazily(as_json=as_json), goal)
            return _follow(following, _Milestones(attached, say), started, aim)
    except HangdocError:
        if not started.has_ended():
            raise
        return _ended(started, None, aim)
    except KeyboardInterrupt:
        return Watched("interrupted", ExitCode.UNDETERMINED)


def _follow(following: Following, milestones: _Milestones, started: Started, aim: Aim) -> Watched:
    before: Diagnosis | None = None
    hangs = 0
    for view in following.views():
        milestones.tell()
        if before is None or is_change(before, view.diagnosis):
            milestones.say(change(view.diagnosis))
        before = view.diagnosis
        hangs = hangs + 1 if is_reached("hang", view.diagnosis) else 0
        if view.end is not None:
            return _over(view, started, aim)
        if hangs >= HANGS:
            return Watched("hang", ExitCode.HANG, view.diagnosis)
    raise AssertionError("a following ends with a view that says so")


def _over(view: View, started: Started, aim: Aim) -> Watched:
    ends: dict[str, End] = {"settled": "ready", "time": "time", "stopped": "interrupted"}
    if view.end == "gone" or (view.end == "stopped" and started.has_ended()):
        return _ended(started, view.diagnosis, aim)
    code = following_code(view, aim.until)
    return Watched(ends[str(view.end)], code, view.diagnosis)


def _ended(started: Started, diagnosis: Diagnosis | None, aim: Aim) -> Watched:
    """Judge an end by the exit status, which only who started it gets: a crash unless it is 0."""
    if not started.has_ended():  # its first process was a wrapper and lives, the engine below it is gone
        return Watched("exit", ExitCode.HANG, diagnosis)
    status = started.bury()
    if status:
        return Watched("exit", ExitCode.HANG, diagnosis, status)
    return Watched("exit", ExitCode.OK if aim.until == "exit" else ExitCode.UNDETERMINED, diagnosis, status)


def _wait_for_engine(started: Started, aim: Aim, say: Say) -> bool:
    """Wait until the launch shows its engine: a script has no name of its own. False when it ended before."""
    until_s = time.monotonic() + min(ENGINE_S, aim.timeout_s if aim.timeout_s is not None else ENGINE_S)
    told = False
    while not started.has_ended():
        if not aim.expects_engine or _engine_is_there(started) or time.monotonic() >= until_s:
            return True
        if not told:
            say("hangdoc: waiting for the script to start an engine")
            told = True
        select.select([started.handle.descriptor], [], [], STEP_S)
    return False


def _engine_is_there(started: Started) -> bool:
    try:
        return find_launch(started.pid).engine != "generic"
    except HangdocError:
        return False
