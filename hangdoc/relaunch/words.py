"""The plan of a relaunch for people: the command, what differs in the environment, the profile with its reasons."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from rich.console import RenderableType

from hangdoc.ending.memory import holdings
from hangdoc.ending.plan import Plan as Ending
from hangdoc.launch.marker import VARIABLE
from hangdoc.relaunch.begin import changed_cpus, changed_limits
from hangdoc.relaunch.capturing import described
from hangdoc.relaunch.records import Change, Command, Plan, Treatment
from hangdoc.relaunch.secrets import HIDDEN, shown_argv, shown_value
from hangdoc.report.rows import bullet, harmless, section
from hangdoc.report.words import rank_text

SIGNS = {"made": "+", "already": "=", "yours": "=", "impossible": "!"}
STYLES = {"made": "green", "already": "", "yours": "", "impossible": "yellow"}
UNLIMITED = "unlimited"


def plan_parts(plan: Plan, endings: tuple[Ending, ...]) -> Iterator[RenderableType]:
    """Yield what will be ended and started, and why each thing differs from what was there."""
    origin = plan.origin
    version = f" {origin.version}" if origin.version else ""
    yield harmless(f"Relaunch of {origin.engine}{version}, as in {origin.name}", "bold")
    yield from section("Command", list(_command(plan.command)))
    yield from section("Environment", list(_environment(plan)))
    yield from section("Limits", list(_limits(plan.command)))
    yield from section("Profile", list(_treatment(plan.treatment)))
    if plan.capture is not None:
        yield from section("Capture", [bullet("-", line) for line in described(plan.capture)])
    yield from section("To know", [bullet("-", note) for note in origin.notes])
    for ending in endings:
        yield from section("Ended first", list(_ending(ending)))
    yield from section("Output", [bullet("-", str(plan.log))])


def _command(command: Command) -> Iterator[RenderableType]:
    shown = shown_argv(command.argv)
    yield bullet("-", f"in {command.cwd}:")
    yield bullet("$", shlex.join(shown).replace(shlex.quote(HIDDEN), HIDDEN))
    if any(HIDDEN in word for word in shown):
        yield bullet("", "hidden words may be secrets: they are passed on and never shown", "dim")


def _environment(plan: Plan) -> Iterator[RenderableType]:
    whose = "hangdoc's own" if plan.origin.kind != "process" else f"that of {plan.origin.name}"
    yield bullet("-", f"{len(plan.origin.command.environment)} variables: {whose}")
    for name, before, after, why in environment_changes(plan):
        was = "not set before" if before is None else f"{before} before"
        yield bullet("+", f"{name}={after} ({was}): {why}", "green")
    yield bullet("+", f"{VARIABLE}=... so that hangdoc knows each of its processes", "dim")


def environment_changes(plan: Plan) -> Iterator[tuple[str, str | None, str, str]]:
    """Yield each variable that differs from what was taken over: name, before, after (as they may be shown), reason."""
    before = _before(plan)
    reasons = {one.text.partition("=")[0]: one.reason for one in plan.treatment.changes if one.outcome == "made"}
    for name, value in sorted(plan.command.environment.items()):
        old = before.get(name)
        if old != value:
            why = "set by --set" if name in plan.given else reasons.get(name, "")
            yield name, None if old is None else shown_value(name, old), shown_value(name, value), why


def _before(plan: Plan) -> Mapping[str, str]:
    return plan.origin.command.environment


def _limits(command: Command) -> Iterator[RenderableType]:
    for name, (soft, hard) in changed_limits(command).items():
        wanted = command.limits[name]
        less = "" if (soft, hard) == wanted else f" (it had {_limit(wanted)}, which only root may give)"
        yield bullet("-", f"{name.removeprefix('RLIMIT_').lower()}: {_limit((soft, hard))}{less}")
    if cpus := changed_cpus(command):
        yield bullet("-", f"CPUs: {', '.join(map(str, cpus))}")


def _limit(pair: tuple[int, int]) -> str:
    return ", ".join(
        f"{what} {UNLIMITED if number < 0 else number}" for what, number in zip(("soft", "hard"), pair, strict=True)
    )


def _treatment(treatment: Treatment) -> Iterator[RenderableType]:
    yield bullet("-", f"{treatment.name or 'none'}: {treatment.because}")
    yield from (_change(one) for one in treatment.changes)
    yield from (bullet("?", f"not made: {hint}") for hint in treatment.hints)
    yield from (bullet("!", warning, "yellow") for warning in treatment.warnings)


def _change(one: Change) -> RenderableType:
    return bullet(
        SIGNS[one.outcome],
        f"{one.text}: {_outcome(one)}. {one.reason[:1].upper()}{one.reason[1:]} [{one.source}]",
        STYLES[one.outcome],
    )


def _outcome(one: Change) -> str:
    words = {"made": "added", "already": "already so", "yours": "left out", "impossible": "cannot be added"}
    return f"{words[one.outcome]}, {one.detail}"


def _ending(ending: Ending) -> Iterator[RenderableType]:
    for one in ending.members:
        what = "; ".join((*one.because, *holdings(ending.before, one.key.pid)))
        yield bullet("-", f"{one.key.pid} {rank_text(one.process.role, one.process.rank)}: {what}")
    for supervisor in ending.roll.supervisors:
        first = f" may start it again; first: {supervisor.command}" if supervisor.command else " started it"
        yield bullet("!" if supervisor.command else "-", f"{supervisor.name}{first}", "yellow")
    root = ending.roll.launch.root.pid
    yield bullet("", f"hangdoc kill-clean {root} --dry-run also lists who is not touched, and why", "dim")
