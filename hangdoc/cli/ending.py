"""The talk of `hangdoc kill-clean`: show the plan, ask, carry it out, report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial

from hangdoc.cli.asking import Wishes, nothing_touched, present
from hangdoc.cli.failure import progress, say
from hangdoc.cli.output import emit, emit_json, to_terminal
from hangdoc.ending.carry_out import carry_out, not_begun, snapshot_path
from hangdoc.ending.interruption import interruptible
from hangdoc.ending.named import refuse_callers, refuse_outsider
from hangdoc.ending.outcome import Outcome, document, exit_code, with_doubtful, worst
from hangdoc.ending.plan import Plan, calling_users, prepared, stray_files, targets
from hangdoc.ending.records import Thing
from hangdoc.ending.words import outcome_parts
from hangdoc.errors import ExitCode, HangdocError


def end(pid: int | None, port: int | None, wishes: Wishes) -> ExitCode:
    """End what is meant; returns the exit code."""
    with interruptible(), ExitStack() as stack:
        with nothing_touched():
            refuse_callers(pid)
            strays = stray_files(calling_users()) if pid is None and port is None else []
            named = () if pid is None else (pid,)
            plans = stack.enter_context(prepared(partial(targets, pid, port), wishes.include, named))
            refuse_outsider(pid, plans)
            present(plans, strays, wishes)
        if wishes.dry_run:
            return _finish([Outcome(plan) for plan in plans], strays, wishes)
        try:
            return _finish(_carry_out_all(plans, wishes), strays, wishes)
        except KeyboardInterrupt as error:  # the procedure reports its own; this one came to the report
            raise HangdocError("interrupted", "look at what is left with --dry-run", ExitCode.HANG) from error


def _carry_out_all(plans: Sequence[Plan], wishes: Wishes) -> list[Outcome]:
    """End one after the other; after an interruption those that are left are not begun."""
    outcomes: list[Outcome] = []
    for plan in plans:
        last = outcomes[-1].ended if outcomes else None
        outcomes.append(not_begun(plan) if last is not None and last.interrupted else _carry_out(plan, wishes))
    return [with_doubtful(one) for one in outcomes]


def _tell(step: str) -> None:
    progress(f"hangdoc: {step}")


def _carry_out(plan: Plan, wishes: Wishes) -> Outcome:
    path = wishes.record or snapshot_path(plan)
    outcome = carry_out(plan, path if wishes.snapshot else None, wishes.gpu_timeout_s, _tell)
    if outcome.snapshot and not wishes.as_json:
        say(f"hangdoc: evidence in {outcome.snapshot}, for hangdoc replay")
    return outcome


def _finish(outcomes: Sequence[Outcome], strays: Sequence[Thing], wishes: Wishes) -> ExitCode:
    code = worst(exit_code(one) for one in outcomes)
    with suppress(BrokenPipeError):
        if wishes.as_json:
            emit_json(document(outcomes, strays, time.time_ns(), code))
        else:
            emit(to_terminal([part for one in outcomes for part in outcome_parts(one)], no_color=wishes.no_color))
    return code
