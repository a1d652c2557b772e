"""The JSON document of a relaunch: what was planned, ended, started, and what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeAlias

from hangdoc import __version__
from hangdoc.ending.outcome import Outcome, exit_code
from hangdoc.ending.plan import Plan as Ending
from hangdoc.errors import ExitCode
from hangdoc.launch.start import Started
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.relaunch.begin import changed_cpus, changed_limits
from hangdoc.relaunch.capturing import Capture
from hangdoc.relaunch.feed import Fed
from hangdoc.relaunch.records import Plan
from hangdoc.relaunch.secrets import shown_argv
from hangdoc.relaunch.words import environment_changes
from hangdoc.report.document import document as diagnosis_document
from hangdoc.report.document import timestamp
from hangdoc.report.plain import encodable

SCHEMA = 1
"""Version of the document; it may grow fields, nothing in it changes meaning."""

Json: TypeAlias = dict[str, Any]


@dataclass
class Course:
    """How far a relaunch has come; changed as it goes, so that wherever it ends the same document is printed."""

    plan: Plan
    endings: tuple[Ending, ...] = ()
    outcome: Outcome | None = None
    started: Started | None = None
    diagnosis: Diagnosis | None = None
    end: str = ""
    fed: Fed | None = None
    ended_again: Outcome | None = None
    dry_run: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing lives of what was started."""
        ended = None if self.ended_again is None else self.ended_again.ended
        return self.end == "exit" or (ended is not None and not ended.survivors and not ended.interrupted)


def document(course: Course, code: ExitCode) -> Json:
    """Return the document."""
    plan = course.plan
    fields: Json = {
        "schema": SCHEMA,
        "hangdoc": __version__,
        "taken_at": timestamp(time.time_ns()),
        "dry_run": course.dry_run,
        "origin": _origin(plan),
        "command": _command(plan),
        "profile": _profile(plan),
        "capture": None if plan.capture is None else _capture(plan.capture),
        "ends_first": [_ending(one) for one in course.endings],
        "ended": None if course.outcome is None else _outcome(course.outcome),
        "started": None if course.started is None else _started(course.started, plan),
        "end": course.end or None,
        "diagnosis": None if course.diagnosis is None else diagnosis_document(course.diagnosis),
        "prompts": None if course.fed is None else _fed(course.fed),
        "ended_again": None if course.ended_again is None else _outcome(course.ended_again),
        "exit_code": int(code),
    }
    cleaned: Json = encodable(fields)
    return cleaned


def _origin(plan: Plan) -> Json:
    origin = plan.origin
    return {
        "kind": origin.kind,
        "name": origin.name,
        "engine": origin.engine,
        "engine_version": origin.version or None,
        "notes": list(origin.notes),
    }


def _command(plan: Plan) -> Json:
    command = plan.command
    return {
        "argv": list(shown_argv(command.argv)),
        "cwd": str(command.cwd),
        "environment": {
            "taken_over": len(plan.origin.command.environment),
            "changes": [
                {"name": name, "before": before, "after": after, "reason": reason}
                for name, before, after, reason in environment_changes(plan)
            ],
        },
        "limits": {name: list(pair) for name, pair in changed_limits(command).items()},
        "cpus": changed_cpus(command) or None,
        "log": str(plan.log),
        "port": plan.port,
    }


def _profile(plan: Plan) -> Json:
    treatment = plan.treatment
    changes = [
        {
            "place": one.place,
            "text": one.text,
            "outcome": one.outcome,
            "detail": one.detail,
            "reason": one.reason,
            "source": one.source,
        }
        for one in treatment.changes
    ]
    return {
        "name": treatment.name or None,
        "because": treatment.because,
        "changes": changes,
        "hints": list(treatment.hints),
        "warnings": list(treatment.warnings),
    }


def _capture(capture: Capture) -> Json:
    return {
        "layers": list(capture.wish.layers),
        "directory": str(capture.wish.directory),
        "format": capture.wish.form,
        "way": capture.way,
        "flags": list(capture.flags),
        "notes": list(capture.notes),
    }


def _fed(fed: Fed) -> Json:
    return {
        "there_before": fed.there,
        "answered": fed.answered,
        "written": fed.written,
        "refused": [{"index": index, "reason": reason} for index, reason in fed.refused],
        "stopped": fed.stopped or None,
    }


def _ending(ending: Ending) -> Json:
    members = [{"pid": one.key.pid, "role": one.process.role, "rank": dict(one.process.rank)} for one in ending.members]
    return {"root": ending.roll.launch.root.pid, "members": members}


def _outcome(outcome: Outcome) -> Json:
    ended = outcome.ended
    return {
        "root": outcome.plan.roll.launch.root.pid,
        "members": [one["pid"] for one in _ending(outcome.plan)["members"]],
        "snapshot": None if outcome.snapshot is None else str(outcome.snapshot),
        "steps": [] if ended is None else list(ended.steps),
        "survivors": [] if ended is None else [one.key.pid for one in ended.survivors],
        "exit_code": int(exit_code(outcome)),
    }


def _started(started: Started, plan: Plan) -> Json:
    return {
        "pid": started.pid,
        "start_ticks": started.handle.key.start_ticks,
        "marker": started.marker,
        "log": str(plan.log),
        "port": plan.port,
        "ends_with": f"hangdoc kill-clean {started.living_pid() or started.pid}",
    }
