"""What came of an ending: the exit code, and the document for scripts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from hangdoc import __version__
from hangdoc.ending import names
from hangdoc.ending.descriptors import lives
from hangdoc.ending.memory import holdings, was_used
from hangdoc.ending.namespaces import caveat
from hangdoc.ending.plan import Plan
from hangdoc.ending.records import After, Ended, GpuReading, LookAlike, Member, Removal, Thing
from hangdoc.ending.remains import removal_command
from hangdoc.errors import ExitCode
from hangdoc.launch.find import PROC
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known
from hangdoc.report.document import timestamp
from hangdoc.report.plain import encodable

SCHEMA = 1
"""Version of the document; it may grow fields, nothing in it changes meaning."""

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One launch: what was planned and, unless it was a dry run, what was done and is proved."""

    plan: Plan
    snapshot: Path | None = None
    ended: Ended | None = None
    after: After | None = None

    @property
    def left(self) -> tuple[Removal, ...]:
        """What the engine left and hangdoc could not remove."""
        return tuple(one for one in self.removals if not one.removed and counts(one.thing))

    @property
    def removals(self) -> tuple[Removal, ...]:
        """Every thing that was there afterwards."""
        return self.after.removals if self.after is not None else ()

    @property
    def memory_is_proved(self) -> bool | None:
        """Whether all GPU memory came back; None when that cannot be told."""
        if self.after is None or not was_used(self.plan.before):
            return None if self.is_unseen else True
        states = [one.returned for one in self.after.gpus]
        if False in states:
            return False
        return True if states and all(states) and not self.after.gpus_unread else None

    @property
    def is_unseen(self) -> bool:
        """Whether a member may have had a GPU open that nobody could see: on a host that has one, or may have one."""
        gpus = self.plan.before.gpus
        return bool(self.plan.before.unseen) and bool(gpus.unread or gpus.devices)


def counts(thing: Thing) -> bool:
    """Say whether a thing is the engine's: a data file in /dev/shm is its user's, an unlocked file stops nobody."""
    if thing.kind in {"shm", "semaphore"}:
        return names.owner_of(thing.path.name) is not None
    return thing.kind == "baton" or (thing.kind == "socket" and bool(names.ZMQ_PATHS.fullmatch(str(thing.path))))


def with_doubtful(outcome: Outcome, proc: Path = PROC) -> Outcome:
    """Return the outcome with who is in doubt and lives on: looked at last, for another launch's end may be his."""
    if outcome.after is None:
        return outcome
    doubtful = tuple(one for one in outcome.plan.roll.look_alikes if one.in_doubt and lives(proc, one.key))
    return replace(outcome, after=replace(outcome.after, doubtful=doubtful))


def exit_code(outcome: Outcome) -> ExitCode:
    """Return the code of one ending: 1 something survived or was left, or Ctrl-C; 3 not proved, 0 all is gone."""
    ended, after = outcome.ended, outcome.after
    if ended is not None and ended.interrupted:
        return ExitCode.HANG
    if ended is None or after is None:
        return ExitCode.OK
    if is_left(outcome) or any(one.is_tied for one in (*after.doubtful, *ended.going_on)):
        return ExitCode.HANG
    return ExitCode.OK if outcome.memory_is_proved else ExitCode.UNDETERMINED


def is_left(outcome: Outcome) -> bool:
    """Say whether something of the launch is there beyond doubt, or came back."""
    ended, after = outcome.ended, outcome.after
    if ended is None or after is None:
        return False
    taken = any(port.listened and not port.free for port in after.ports)
    return bool(
        ended.survivors
        or ended.restless
        or ended.newcomers
        or after.returned
        or taken
        or outcome.left
        or outcome.memory_is_proved is False
    )


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code of several endings: what is left outweighs what is not proved."""
    found = set(codes)
    return next((code for code in (ExitCode.HANG, ExitCode.UNDETERMINED) if code in found), ExitCode.OK)


def document(outcomes: Sequence[Outcome], strays: Sequence[Thing], wall_ns: int, code: ExitCode) -> Json:
    """Return the document: before, what was done, after."""
    fields: Json = {
        "schema": SCHEMA,
        "hangdoc": __version__,
        "taken_at": timestamp(wall_ns),
        "dry_run": all(one.ended is None for one in outcomes),
        "launches": [_launch(one) for one in outcomes],
        "leftovers": [_thing(one) | {"command": removal_command(one.path)} for one in strays],
        "caveat": caveat(PROC) or None,
        "exit_code": int(code),
    }
    return {name: encodable(value) for name, value in fields.items()}


def _launch(outcome: Outcome) -> Json:
    plan, launch = outcome.plan, outcome.plan.roll.launch
    version = launch.engine_version
    head = {
        "root": _key(launch.root),
        "engine": launch.engine,
        "engine_version": version.value if isinstance(version, Known) else None,
        "members": [{**_member(one), "holds": list(holdings(plan.before, one.key.pid))} for one in plan.members],
        "look_alikes": [_look_alike(one) for one in plan.roll.look_alikes],
        "supervisors": [{"name": s.name, "pid": s.pid, "command": s.command or None} for s in plan.roll.supervisors],
        "snapshot": None if outcome.snapshot is None else os.fspath(outcome.snapshot),
        "before": _before(outcome),
    }
    return {**head, "done": _done(outcome.ended), "after": _after(outcome)}


def _key(key: ProcessKey) -> Json:
    return {"pid": key.pid, "start_ticks": key.start_ticks}


def _member(member: Member) -> Json:
    process = member.process
    words = {"role": process.role, "rank": dict(process.rank), "title": process.title, "fate": member.fate}
    return {**_key(member.key), **words, "because": list(member.because)}


def _look_alike(one: LookAlike) -> Json:
    return {
        **_key(one.key),
        "title": one.title,
        "because": one.because,
        "in_doubt": one.in_doubt,
        "is_tied": one.is_tied,
    }


def _before(outcome: Outcome) -> Json:
    before = outcome.plan.before
    return {
        "gpus": _gpus(before.gpus),
        "gpu_open": [{"pid": pid, "paths": list(paths)} for pid, paths in sorted(before.opened.items())],
        "ports": [{"port": one.number, "listened": one.listened} for one in before.ports],
        "things": [_thing(one) for one in before.things],
        "unseen": list(before.unseen),
    }


def _gpus(reading: GpuReading) -> list[Json] | None:
    if reading.unread:
        return None
    return [{"index": one.index, "name": one.name, "used_bytes": one.used_bytes} for one in reading.devices]


def _thing(thing: Thing) -> Json:
    return {"kind": thing.kind, "path": os.fspath(thing.path), "held": thing.held}


def _done(ended: Ended | None) -> Json | None:
    if ended is None:
        return None
    return {
        "steps": list(ended.steps),
        "ended": [_key(one.key) for one in ended.gone],
        "joined": [_member(one) for one in ended.joined],
        "survivors": [
            {**_key(s.key), "title": s.title, "state": s.state, "waits_in": s.waits_in, "because": s.because}
            for s in ended.survivors
        ],
        "restless": ended.restless,
        "newcomers": [_look_alike(one) for one in ended.newcomers],
        "interrupted": ended.interrupted,
        "going_on": [_look_alike(one) for one in ended.going_on],
        "seconds": round(ended.seconds, 3),
    }


def _after(outcome: Outcome) -> Json | None:
    after = outcome.after
    if after is None:
        return None
    return {
        "gpus": [
            {
                "index": one.index,
                "name": one.name,
                "before_bytes": one.before_bytes,
                "after_bytes": one.after_bytes,
                "returned": one.returned,
                "says": one.says,
                "holders": [{"pid": h.pid, "used_bytes": h.used_bytes, "title": h.title} for h in one.holders],
            }
            for one in after.gpus
        ],
        "gpus_unread": after.gpus_unread or None,
        "memory_returned": outcome.memory_is_proved,
        "ports": [
            {"port": one.number, "free": one.free, "listened": one.listened, "says": one.says} for one in after.ports
        ],
        "things": [
            {**_thing(one.thing), "removed": one.removed, "because": one.because, "command": one.command}
            for one in after.removals
        ],
        "returned": [_look_alike(one) for one in after.returned],
        "doubtful": [_look_alike(one) for one in after.doubtful],
    }
