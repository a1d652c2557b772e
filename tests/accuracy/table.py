"""The accuracy table, in Markdown, from the records of all rounds."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence

from hangdoc import __version__
from tests.accuracy.figures import Share, confusion, share, spread
from tests.accuracy.records import Group, Record
from tests.patients.stage import HANGS

GROUPS: dict[Group, str] = {
    "patients": "Patients written with the hypotheses in view",
    "unseen": "Patients written by somebody who had not read the hypotheses",
    "sglang": "Ill launches of the real SGLang on the CPU",
    "healthy": "Healthy launches of the real SGLang on the CPU",
}
NOTES = """\
Each figure: so many of so many observations (the share, and what it may be at 95 % confidence; exact intervals, with
one side where none or all were right). A verdict is right when the patient's truth accepts it; "undetermined" is
accepted only where the readings cannot tell. A culprit is right when nobody else is named. A false hang is busy-wait,
blocked, hung or crashed said of a launch that is well. An observation is inconclusive, and counts for nothing, when
readings that are not hangdoc's did not show the illness, or the health, while it was looked at. Several patients are
looked at at a time (`--parallel`), so that "no other load" is no idle machine. Cells with wrong verdicts are bold.
"""


def table(records: Sequence[Record], command: str) -> str:
    """Return the page: one section for each group of launches that was looked at."""
    sections = [_section(group, [one for one in records if one.group == group]) for group in GROUPS]
    head = f"# Accuracy\n\n<!-- Written by `make accuracy`. -->\n\n    {command}\n\n{_where()}\n\n{NOTES}"
    return "\n".join([head, *(section for section in sections if section)])


def _where() -> str:
    cores = len(os.sched_getaffinity(0))
    return (
        f"hangdoc {__version__}, Python {platform.python_version()}, Linux {platform.release()} "
        f"({platform.machine()}), {cores} cores."
    )


def _section(group: Group, records: list[Record]) -> str:
    if not records:
        return ""
    counted = [one for one in records if one.counts]
    loads = [load for load in ("none", "busy") if any(one.load == load for one in counted)]
    columns = [[one for one in counted if one.load == load] for load in loads]
    names = [{"none": "no other load", "busy": "all cores busy"}[load] for load in loads]
    if len(loads) > 1:
        columns, names = [*columns, counted], [*names, "together"]
    lines = [f"## {GROUPS[group]}", "", _row("", names), _row("---", ["---"] * len(names))]
    lines += [_row(title, [figure(column) for column in columns]) for title, figure in FIGURES.items()]
    lines += ["", *_matrix(counted), *_listed(records)]
    return "\n".join(lines) + "\n"


def _row(title: str, cells: Iterable[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |"


def _launches(records: list[Record]) -> str:
    return f"{len({one.name for one in records})}, {len(records)} observations"


def _graded(grade: str, records: list[Record]) -> Share:
    return share(one.right for one in records if one.grade == grade)


FIGURES = {
    "launches": _launches,
    "verdict right": lambda records: str(share(one.verdict_right for one in records)),
    "... of ill launches": lambda records: str(share(one.verdict_right for one in records if one.is_ill)),
    "... of launches that can be told": lambda records: str(
        share(one.verdict_right for one in records if "undetermined" not in one.accepted)
    ),
    "said more than undetermined": lambda records: str(share(one.verdict != "undetermined" for one in records)),
    "... and rightly, of ill launches": lambda records: str(
        share(one.verdict_right and one.verdict != "undetermined" for one in records if one.is_ill)
    ),
    "culprit right, of hangs": lambda records: str(
        share(one.culprit_right for one in records if one.culprit_right is not None)
    ),
    "phase right, where the truth names one": lambda records: str(
        share(one.phase_right for one in records if one.phase_right is not None)
    ),
    "false hangs, of launches that are well": lambda records: str(
        share(one.false_hang for one in records if not one.is_ill)
    ),
    "all right where confirmed": lambda records: str(_graded("confirmed", records)),
    "all right where likely": lambda records: str(_graded("likely", records)),
    "waits listed": lambda records: (
        f"{sum(one.waits_right for one in records)} of {sum(one.waits_known for one in records)}"
    ),
    "time to a verdict": lambda records: spread([one.took_s for one in records if one.verdict in HANGS | SETTLED]),
    'time to "undetermined"': lambda records: spread([one.took_s for one in records if one.verdict == "undetermined"]),
}
"""Rows of a group's table; "all right" is verdict and culprit."""

SETTLED = {"healthy", "slow-start"}


def _matrix(records: list[Record]) -> Iterator[str]:
    columns, rows = confusion((one.truth, one.verdict) for one in records)
    wrong = {(one.truth, one.verdict) for one in records if not one.verdict_right}
    yield _row("what is true / what was said", columns)
    yield _row("---", ["---:"] * len(columns))
    for truth, row in rows.items():
        cells = {said: f"**{count}**" if (truth, said) in wrong else str(count) for said, count in row.items()}
        yield _row(truth, [cells.get(said, "") for said in columns])
    yield ""


def _listed(records: list[Record]) -> Iterator[str]:
    wrong = [one for one in records if one.counts and not one.right]
    for title, chosen in (("Wrong", wrong), ("Inconclusive", [one for one in records if not one.counts])):
        if chosen:
            yield f"{title}:\n"
            yield from (f"- {_told(one)}" for one in sorted(chosen, key=lambda one: one.key))
            yield ""


def _told(one: Record) -> str:
    why = f": {' '.join(one.why.split())[:160]}" if one.why else ""
    whom = f" {', '.join(one.culprits)}" if one.culprits else ""
    return f"{one.name} (load {one.load}, round {one.round}): {one.verdict} {one.grade} {one.hypothesis}{whom}{why}"
