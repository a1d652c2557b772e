"""The plan and the proof for people: before, what was done, after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from hangdoc.ending.lookalikes import OWN_PYTHON
from hangdoc.ending.memory import holdings, was_used
from hangdoc.ending.namespaces import caveat
from hangdoc.ending.outcome import Outcome, counts, exit_code, is_left
from hangdoc.ending.plan import Plan
from hangdoc.ending.records import After, GpuProof, LookAlike, Member, PortProof, Removal, Survivor, Thing
from hangdoc.ending.remains import removal_command
from hangdoc.errors import ExitCode
from hangdoc.launch.find import PROC
from hangdoc.report.rows import bullet, harmless, section
from hangdoc.report.words import bytes_text, rank_text

MOST_PORTS = 6
"""Ports named in a line; gloo opens dozens. Arbitrary."""

RESTLESS = "processes that hand over to a child and end before they can be held: run it again, or end their session"

MOST_ROWS = 12
"""Rows of a list, alike ones in one row; --json lists them all. Arbitrary: all lists together fit on a screen or two.
docs/kill-clean.md tells it."""

MOST_PIDS = 6
"""Pids named in a row that stands for several processes. Arbitrary: a line."""

LONGEST_TITLE = 64
"""Characters of a command line beside a reason. Arbitrary: a line."""


def plan_parts(plan: Plan) -> Iterator[RenderableType]:
    """Yield what will be done, to whom and why; and to whom not."""
    launch = plan.roll.launch
    count = len(plan.members)
    head = f"{launch.engine} launch {launch.root.pid}: {count} process{'es' if count != 1 else ''} to end"
    yield harmless(head, "bold")
    yield from section("Members", [_member(one, plan) for one in plan.members])
    yield from section("Not touched", list(_look_alikes(plan.roll.look_alikes)))
    known = [one for one in plan.roll.supervisors if one.command]
    rows = [bullet("!", f"{one.name} may start it again; first: {one.command}", "yellow") for one in known]
    yield from section("Supervisor", rows)
    others = [one for one in plan.roll.supervisors if not one.command]
    yield from section("Started by", [bullet("-", f"{one.pid}: {_short(one.name)}; it lives on") for one in others])
    yield from section("What it has", list(_stock(plan)))


def _member(member: Member, plan: Plan) -> RenderableType:
    process = member.process
    who = f"{member.key.pid} {rank_text(process.role, process.rank)}"
    last = " (comes last, may end by itself)" if member.fate == "wrapper" else ""
    return bullet(
        "-",
        f"{who}: {'; '.join((*member.because, *holdings(plan.before, member.key.pid)))}{last}. {_short(process.title)}",
    )


def _short(title: str) -> str:
    return title if len(title) <= LONGEST_TITLE else title[: LONGEST_TITLE - 3] + "..."


def _look_alikes(found: Sequence[LookAlike]) -> Iterator[RenderableType]:
    ordered = sorted(found, key=lambda one: (not one.in_doubt, one.because.startswith(OWN_PYTHON)))
    alike: dict[str, list[LookAlike]] = {}
    for one in ordered:
        alike.setdefault(f"{one.key}" if one.in_doubt else one.because, []).append(one)
    for group in list(alike.values())[:MOST_ROWS]:
        first, pids = group[0], ", ".join(str(one.key.pid) for one in group[:MOST_PIDS])
        pids += f" and {len(group) - MOST_PIDS} more" if len(group) > MOST_PIDS else ""
        more = f" [--include {first.key.pid} would add it]" if first.in_doubt else ""
        title = f". {_short(first.title)}" if len(group) == 1 else ""
        yield bullet("?" if first.in_doubt else "x", f"{pids}: {first.because}{more}{title}", "dim")
    yield from _and_more(sum(len(group) for group in list(alike.values())[MOST_ROWS:]))


def _and_more(count: int) -> Iterator[RenderableType]:
    """Yield what closes a list that was cut."""
    if count > 0:
        yield bullet("", f"and {count} more (--json lists all)", "dim")


def _stock(plan: Plan) -> Iterator[RenderableType]:
    before = plan.before
    for gpu in before.gpus.devices if was_used(before) else ():
        used = "not read" if gpu.used_bytes is None else f"{bytes_text(gpu.used_bytes)} in use"
        yield bullet("-", f"GPU {gpu.index} ({gpu.name}): {used}")
    if before.gpus.unread:
        yield bullet("?", f"GPU memory: {before.gpus.unread}", "yellow")
    if before.ports:
        yield bullet("-", f"{_ports([one.number for one in before.ports])} to come back")
    yield from (bullet("-", f"{_kind(one)} {one.path}") for one in before.things[:MOST_ROWS])
    yield from _and_more(len(before.things) - MOST_ROWS)


def outcome_parts(outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what was done and the proof."""
    ended, after = outcome.ended, outcome.after
    if ended is None:
        return
    code = exit_code(outcome)
    yield Text()
    yield _verdict(outcome, code)
    yield from section("Done", [bullet("-", step) for step in ended.steps or ("no signal was sent",)])
    restless = [bullet("!", RESTLESS, "bold red")] if ended.restless else []
    yield from section("Still there", [*(_survivor(one) for one in ended.survivors), *restless])
    yield from section("Perhaps of it", list(_newcomers(ended.newcomers)))
    yield from section("Left alone", [bullet("-", f"{one.key.pid}: {one.because}") for one in ended.going_on])
    if after is not None:
        yield from _proof(outcome, after)


def _doubtful(one: LookAlike) -> RenderableType:
    sign, style = ("!", "bold red") if one.is_tied else ("?", "dim")
    return bullet(sign, f"{one.key.pid}: {one.because}. {_short(one.title)}", style)


def _proof(outcome: Outcome, after: After) -> Iterator[RenderableType]:
    yield from section(
        "Came back", [bullet("!", f"{one.key.pid}: {one.because}. {one.title}", "bold red") for one in after.returned]
    )
    yield from section("In doubt, left alive", [_doubtful(one) for one in after.doubtful[:MOST_ROWS]])
    yield from section("GPUs", list(_gpus(outcome)))
    yield from section("Ports", list(_port_rows(after.ports)))
    hidden = caveat(PROC) if any(not one.removed for one in after.removals) else ""
    rows = list(_removals(after.removals))
    yield from section("Removed, and left behind", [*rows, *_caveat(hidden)])


def stray_parts(strays: Sequence[Thing]) -> Iterator[RenderableType]:
    """Yield files of earlier launches: nobody saw them held, so they are only listed."""
    rows = [bullet("-", f"{_kind(one)}: {removal_command(one.path)}") for one in strays[:MOST_ROWS]]
    rows += _and_more(len(strays) - MOST_ROWS)
    yield from section(
        "Left by earlier launches: nobody visible has them open", [*rows, *_caveat(caveat(PROC) if strays else "")]
    )


def _caveat(hidden: str) -> list[RenderableType]:
    return [bullet("!", hidden, "yellow")] if hidden else []


def nobody() -> RenderableType:
    """Return the line for a user without orphans."""
    return harmless("No engine process of yours has lost its launcher.", "bold")


def _verdict(outcome: Outcome, code: ExitCode) -> RenderableType:
    ended = outcome.ended
    assert ended is not None
    count = f"{len(ended.gone)} of {len(ended.gone) + len(ended.survivors)} processes ended in {ended.seconds:.1f} s"
    if ended.interrupted:
        state = f"{len(ended.survivors)} still there" if ended.survivors else "nothing was proved"
        return harmless(f"INTERRUPTED  {count}, {state}", "bold red")
    said = "; ".join(_said(outcome)) or "nothing is left"
    if code is ExitCode.OK:
        return harmless(f"GONE  {count}, {said}", "bold green")
    if code is ExitCode.UNDETERMINED:
        more = f"; {said}" if said != "nothing is left" else ""
        return harmless(f"GONE, NOT PROVED  {count}; GPU memory could not be compared{more}", "bold yellow")
    return harmless(f"NOT CLEAN  {count}, {said}", "bold red")


def _said(outcome: Outcome) -> Iterator[str]:
    """Yield what keeps "nothing is left" from being said."""
    if is_left(outcome):
        yield "something is left"
    going_on = outcome.ended.going_on if outcome.ended is not None else ()
    if going_on:
        again = any(one.is_tied for one in going_on)
        yield "the script that started it goes on" + (" and may start it again" if again else "")
    doubtful = outcome.after.doubtful if outcome.after is not None else ()
    if doubtful:
        yield f"{len(doubtful)} in doubt left alive"


def _newcomers(found: Sequence[LookAlike]) -> Iterator[RenderableType]:
    for one in found[-MOST_ROWS:]:
        yield bullet("!", f"{one.key.pid}: {one.because}. {_short(one.title)}", "bold red")
    yield from _and_more(len(found) - MOST_ROWS)


def _survivor(one: Survivor) -> RenderableType:
    where = f" in {one.waits_in}" if one.waits_in else ""
    return bullet("!", f"{one.key.pid} (state {one.state or '?'}{where}): {one.because}. {one.title}", "bold red")


def _gpus(outcome: Outcome) -> Iterator[RenderableType]:
    after = outcome.after
    assert after is not None
    if after.gpus_unread or (outcome.memory_is_proved is None and not after.gpus):
        why = after.gpus_unread or "what some members had open could not be read"
        remedy = f" -> {after.gpus_remedy}" if after.gpus_remedy else ""
        yield bullet("?", f"whether memory came back is not known: {why}{remedy}", "yellow")
    yield from (_gpu(one) for one in after.gpus)
    if not was_used(outcome.plan.before) and not outcome.is_unseen:
        yield bullet("+", "no member had a GPU open")


def _gpu(one: GpuProof) -> RenderableType:
    amounts = ["?" if value is None else bytes_text(value) for value in (one.before_bytes, one.after_bytes)]
    sign = {True: "+", False: "!", None: "?"}[one.returned]
    return bullet(sign, f"GPU {one.index} ({one.name}): {amounts[0]} before, {amounts[1]} after: {one.says}")


def _port_rows(ports: Sequence[PortProof]) -> Iterator[RenderableType]:
    free = [one.number for one in ports if one.free]
    for one in (one for one in ports if not one.free):
        sign, style = ("!", "bold red") if one.listened else ("-", "dim")
        yield bullet(sign, f"port {one.number}: {one.says}", style)
    if free:
        yield bullet("+", f"{_ports(free)} free again")


def _ports(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:MOST_PORTS]))
    more = f" and {len(numbers) - MOST_PORTS} more" if len(numbers) > MOST_PORTS else ""
    return f"port{'s' if len(numbers) > 1 else ''} {named}{more}"


def _removals(found: Sequence[Removal]) -> Iterator[RenderableType]:
    """Yield what counts first, then what was left all the same, then what was removed."""
    ordered = sorted(found, key=lambda one: (one.removed, not counts(one.thing)))
    yield from (_removal(one) for one in ordered[:MOST_ROWS])
    yield from _and_more(len(found) - MOST_ROWS)


def _removal(one: Removal) -> RenderableType:
    if one.removed:
        return bullet("+", f"removed {_kind(one.thing)} {one.thing.path}")
    sign = "!" if counts(one.thing) else "-"
    return bullet(sign, f"{_kind(one.thing)}, left because {one.because}: {one.command}")


def _kind(thing: Thing) -> str:
    words = {
        "shm": "shared memory",
        "semaphore": "semaphore",
        "socket": "socket",
        "lock": "lock file",
        "baton": "build lock",
    }
    return words[thing.kind]
