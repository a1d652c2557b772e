"""End a launch for another one's sake, and judge it: whether the new one may be started, and what to say about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hangdoc.ending.carry_out import carry_out, snapshot_path
from hangdoc.ending.outcome import Outcome
from hangdoc.ending.plan import Plan as Ending
from hangdoc.ending.plan import prepared, targets
from hangdoc.ending.records import After
from hangdoc.errors import HangdocError
from hangdoc.launch.start import Started
from hangdoc.relaunch.watch import Say

GPU_TIMEOUT_S = 30.0
"""How long GPU memory may take to come back: kill-clean's default."""


NO_SNAPSHOT = "leave the evidence out: --no-snapshot"
"""What kill-clean advises, which has that option."""


def end(ending: Ending, folder: Path, say: Say) -> Outcome:
    """End a launch; the evidence goes to a folder that is known to be writable."""
    try:
        outcome = carry_out(ending, folder / snapshot_path(ending), GPU_TIMEOUT_S, lambda step: say(f"hangdoc: {step}"))
    except HangdocError as error:
        remedy = error.remedy.replace(NO_SNAPSHOT, f"give a --log elsewhere, not in {folder}: the trace lies beside it")
        raise HangdocError(error.message, remedy, error.exit_code) from error
    for line in account(outcome):
        say(f"hangdoc: {line}")
    return outcome


def end_again(started: Started, folder: Path, say: Say) -> Outcome | None:
    """End what was started, by a member that lives when its first process does not; None when nobody is left of it."""
    living, root = started.living_pid(), started.handle.key
    try:
        with prepared(lambda: targets(living, None) if living not in {None, root.pid} else [root], ()) as plans:
            return end(plans[0], folder, say)
    except HangdocError as error:
        say(f"hangdoc: {error.message}")
        return None


def obstacle(outcome: Outcome, port: int | None) -> str:
    """Return why nothing can be started, "" when it can: leftover files and memory that cannot be compared are none."""
    ended, after = outcome.ended, outcome.after
    if ended is None or ended.interrupted:
        return "interrupted while the old launch was being ended"
    if ended.survivors:
        return f"process {ended.survivors[0].key.pid} of the old launch did not end ({ended.survivors[0].because})"
    if ended.restless or after is None:
        return "processes of the old launch hand over to others and end before they can be held"
    return _what_stands_in_the_way(outcome, after, port)


def _what_stands_in_the_way(outcome: Outcome, after: After, port: int | None) -> str:
    if after.returned:
        return f"the old launch came back by itself: process {after.returned[0].key.pid} ({after.returned[0].because})"
    if outcome.memory_is_proved is False:
        return "; ".join(f"GPU {one.index}: {one.says}" for one in after.gpus if one.returned is False)
    taken = next((one for one in after.ports if one.number == port and not one.free), None)
    return "" if taken is None else f"port {taken.number}: {taken.says}"


def start_again(outcome: Outcome) -> Iterator[str]:
    """Yield what is left of a launch that was to be ended, and how it is started again: nothing was started for it."""
    ended = outcome.ended
    steps = () if ended is None else ended.steps
    survivors = () if ended is None else ended.survivors
    if outcome.after is not None and outcome.after.returned:
        return  # it runs again, as it was
    if not steps and survivors:
        yield "no signal was sent: the old launch is as it was"
        return
    root = outcome.plan.roll.launch.root
    # Ranks first: a launcher that was asked to end is on its way out, and its pid would name nobody.
    left = sorted(survivors, key=lambda one: one.key == root)
    if left:
        yield f"left of the old launch: {', '.join(f'{one.key.pid} ({one.title})' for one in left)}"
        yield f"to end what is left: hangdoc kill-clean {left[0].key.pid}"
    yield advice(outcome)


def advice(outcome: Outcome) -> str:
    """Say how a launch that was ended is started again."""
    if outcome.snapshot is None:
        return "to start it again, give its command line: hangdoc relaunch -- COMMAND"
    return f"to start it again: hangdoc relaunch --from {outcome.snapshot}"


def account(outcome: Outcome) -> Iterator[str]:
    """Yield what there is to say about an ending, one line each."""
    ended, after = outcome.ended, outcome.after
    if ended is None:
        return
    yield f"{len(ended.gone)} of {len(ended.gone) + len(ended.survivors)} processes ended in {ended.seconds:.1f} s"
    if outcome.snapshot is not None:
        yield f"evidence in {outcome.snapshot}, for hangdoc replay"
    if outcome.memory_is_proved is None and after is not None:
        yield f"whether its GPU memory came back is not known{f': {after.gpus_unread}' if after.gpus_unread else ''}"
    for one in ended.newcomers:
        yield f"process {one.key.pid} may be of it, and lives: {one.because}"
    for left in outcome.left:
        yield f"left: {left.thing.path}, because {left.because}"
