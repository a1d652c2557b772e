"""The talk of `hangdoc kill-clean`: show the plan, ask, carry it out, report."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hangdoc.cli.failure import progress, say
from hangdoc.cli.output import emit, emit_json, to_terminal
from hangdoc.ending.carry_out import carry_out, snapshot_path
from hangdoc.ending.outcome import Outcome, document, exit_code, worst
from hangdoc.ending.plan import Plan, calling_users, prepared, stray_files, targets
from hangdoc.ending.records import Thing
from hangdoc.ending.words import outcome_parts, plan_parts, stray_parts
from hangdoc.errors import ExitCode, HangdocError


@dataclass(frozen=True)
class Wishes:
    """The command's options."""

    include: tuple[int, ...]
    dry_run: bool
    yes: bool
    snapshot: bool
    record: Path | None
    gpu_timeout_s: float
    as_json: bool
    no_color: bool


def end(pid: int | None, port: int | None, wishes: Wishes) -> ExitCode:
    """End what is meant; returns the exit code."""
    roots = targets(pid, port)
    strays = stray_files(calling_users()) if pid is None and port is None else []
    with prepared(roots, wishes.include) as plans:
        if not wishes.as_json:
            _show(plans, strays, wishes)
        if wishes.dry_run or not plans:
            return _finish([Outcome(plan) for plan in plans], strays, wishes)
        _ask(plans, wishes)
        return _finish([_carry_out(plan, wishes) for plan in plans], strays, wishes)


def _show(plans: Sequence[Plan], strays: Sequence[Thing], wishes: Wishes) -> None:
    parts = [part for plan in plans for part in plan_parts(plan)]
    if not plans:
        emit("No engine process of yours has lost its launcher.\n")
    emit(to_terminal([*parts, *stray_parts(strays)], no_color=wishes.no_color))


def _ask(plans: Sequence[Plan], wishes: Wishes) -> None:
    """Return when the user agrees; HangdocError (2) otherwise."""
    if wishes.yes:
        return
    count = sum(len(plan.members) for plan in plans)
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        raise HangdocError("nobody can be asked: this is no terminal", "nothing was touched; add --yes to go ahead")
    sys.stderr.write(f"End these {count} processes? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise HangdocError("declined", "nothing was touched")


def _carry_out(plan: Plan, wishes: Wishes) -> Outcome:
    path = (wishes.record or snapshot_path(plan)) if wishes.snapshot else None
    outcome = carry_out(plan, path, wishes.gpu_timeout_s, lambda step: progress(f"hangdoc: {step}"))
    if outcome.snapshot is not None and not wishes.as_json:
        say(f"hangdoc: evidence in {outcome.snapshot}, for hangdoc replay")
    return outcome


def _finish(outcomes: Sequence[Outcome], strays: Sequence[Thing], wishes: Wishes) -> ExitCode:
    code = worst(exit_code(one) for one in outcomes)
    if wishes.as_json:
        emit_json(document(outcomes, strays, time.time_ns(), code))
    else:
        emit(to_terminal([part for one in outcomes for part in outcome_parts(one)], no_color=wishes.no_color))
    return code
