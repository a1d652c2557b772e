"""What to type next: the commands that go with a verdict, for whoever sits at the machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.model.diagnosis import HANG_VERDICTS, Diagnosis

_MENDABLE = frozenset({"denied", "not-installed"})
"""Reasons for a missing reading that somebody at the machine can do away with."""


@dataclass(frozen=True)
class Command:
    """A command line, and what it does, as a clause."""

    line: str
    does: str


def commands(diagnosis: Diagnosis) -> tuple[Command, ...]:
    """Return the commands in the order in which they are worth typing.

    A log has no pid to type; of a launch that is gone there is nothing left to watch.
    """
    return tuple(_commands(diagnosis))


def _commands(diagnosis: Diagnosis) -> Iterator[Command]:
    pid = diagnosis.target.pid if diagnosis.processes and diagnosis.target.kind != "log" else None
    playbook = next((step.playbook for step in diagnosis.next_steps), None)
    if pid is not None and diagnosis.verdict == "undetermined":
        yield Command(f"hangdoc watch {pid} --once --max-window 120", "looks once more, for up to two minutes")
        if any(lack.reason in _MENDABLE for lack in diagnosis.missing):
            yield Command("hangdoc probes", "says which readings are refused here, and what would change that")
    if pid is not None and diagnosis.verdict == "slow-start":
        yield Command(f"hangdoc watch {pid} --until ready", "waits until it is ready, and speaks up if it stops moving")
    if playbook is not None and diagnosis.verdict != "healthy":
        what = "may be" if diagnosis.verdict == "undetermined" else "is"
        yield Command(f"hangdoc explain {playbook}", f"tells what this {what}, and how to check it by hand")
    if pid is not None and diagnosis.verdict in HANG_VERDICTS:
        if diagnosis.verdict != "crashed":
            yield Command(f"hangdoc watch {pid} --once", "looks again: is it still so?")
        yield Command(
            f"hangdoc kill-clean {pid} --dry-run",
            "shows what ending the launch would touch; without --dry-run it ends it and proves that memory and ports "
            "came back",
        )
    if pid is not None and diagnosis.verdict == "healthy":
        yield Command(f"hangdoc watch {pid} --until hang", "goes on watching, and ends when something hangs")
