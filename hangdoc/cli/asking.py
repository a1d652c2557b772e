"""What `hangdoc kill-clean` shows and asks before its first step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hangdoc.cli.consent import consent
from hangdoc.cli.failure import progress
from hangdoc.cli.output import emit, to_terminal
from hangdoc.ending.plan import Plan
from hangdoc.ending.records import Thing
from hangdoc.ending.words import nobody, plan_parts, stray_parts
from hangdoc.errors import HangdocError


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


@contextmanager
def nothing_touched() -> Iterator[None]:
    """Make of Ctrl-C before the first step what declining is."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise HangdocError("interrupted", "nothing was touched") from error


def present(plans: Sequence[Plan], strays: Sequence[Thing], wishes: Wishes) -> None:
    """Show the plan and ask; returns when it may be carried out, or when there is nothing to carry out."""
    if not wishes.as_json:
        _show(plans, strays, wishes)
    elif not (wishes.yes or wishes.dry_run):  # who is asked must have seen the plan
        progress(to_terminal([part for plan in plans for part in plan_parts(plan)], no_color=True))
    if wishes.dry_run or not plans:
        return
    if wishes.record and len(plans) > 1:
        raise HangdocError(f"{len(plans)} launches do not fit into one --record file", "leave --record out")
    consent(f"End these {sum(len(plan.members) for plan in plans)} processes?", yes=wishes.yes)


def _show(plans: Sequence[Plan], strays: Sequence[Thing], wishes: Wishes) -> None:
    parts = [part for plan in plans for part in plan_parts(plan)] or [nobody()]
    with suppress(BrokenPipeError):  # nobody reads, but what was asked for is done all the same
        emit(to_terminal([*parts, *stray_parts(strays)], no_color=wishes.no_color))
