"""Diagnoses the text of every public report and counts what is right; run as a file it prints both halves."""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

if not __package__:  # run as a file: the imports below need the repository's root, as pytest has it
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

CASES = Path(__file__).with_name("cases.toml")
HALVES = ("seen", "unseen")
Score = Literal["right", "wrong", "abstained"]


@dataclass(frozen=True)
class Report:
    """One public report; milestone, crash: whether its text has such a line."""

    id: str
    group: str
    verdict: str
    also: tuple[str, ...]
    confidence: str
    phase: str
    milestone: bool
    crash: bool
    text: str

    @property
    def half(self) -> str:
        """Rules are made from the half "seen" alone; reports of one cause are in the same half."""
        return HALVES[sha256(self.group.encode()).digest()[0] % 2]


@dataclass(frozen=True)
class Answer:
    """A report with what hangdoc says of its text."""

    report: Report
    found: Diagnosis

    @property
    def score(self) -> Score:
        """hung is right for busy-wait and blocked, nobody can say more from a text; an unclear one may be hung."""
        accepted = {self.report.verdict, *self.report.also}
        if accepted & {"busy-wait", "blocked", "unclear"}:
            accepted.add("hung")
        if "unclear" in accepted:
            accepted.add("undetermined")
        if self.found.verdict in accepted:
            return "right"
        return "abstained" if self.found.verdict == "undetermined" else "wrong"

    @property
    def phase_is_right(self) -> bool:
        """The phase is the label's."""
        return self.found.phase == self.report.phase

    @property
    def crash_is_found(self) -> bool:
        """A failure is among what the log is said to hold."""
        return self.found.log is not None and bool(self.found.log.failures)


def reports() -> list[Report]:
    rows = tomllib.loads(CASES.read_text())["case"]
    wanted = Report.__dataclass_fields__
    return [Report(**{name: row[name] for name in wanted} | {"also": tuple(row["also"])}) for row in rows]


def answer(report: Report, directory: Path) -> Answer:
    """Diagnose a report's text as a user would: saved to a file, with no word on until when it stayed so."""
    file = directory / f"{report.id}.txt"
    file.write_text(report.text)
    return Answer(report, diagnose(read([file], Wishes()), "log"))


def answers() -> list[Answer]:
    with tempfile.TemporaryDirectory() as directory:
        return [answer(report, Path(directory)) for report in reports()]


def lines(every: Sequence[Answer]) -> list[str]:
    """What one half comes to; each case that is not right is named."""
    sure = [one for one in every if one.report.confidence != "low"]
    with_milestone = [one for one in every if one.report.milestone]
    with_crash = [one for one in every if one.report.crash]
    found = [f"{len(every)} reports with text, {len(sure)} outside low confidence"]
    found += [
        f"  {name}: {sum(one.score == name for one in sure)} of {len(sure)}" for name in ("right", "abstained", "wrong")
    ]
    phases = sum(one.phase_is_right for one in with_milestone)
    found.append(f"  phase right where the text has a milestone: {phases} of {len(with_milestone)}")
    crashes = sum(one.crash_is_found for one in with_crash)
    found.append(f"  crash found where the text has a crash line: {crashes} of {len(with_crash)}")
    without = [one.report.id for one in every if not one.report.milestone and not one.report.crash]
    found.append(f"  neither milestone nor crash line ({len(without)}): {', '.join(without)}")
    found += [f"    wrong: {_row(one)}" for one in every if one.score == "wrong"]
    found += [f"    phase: {_row(one)}" for one in with_milestone if not one.phase_is_right]
    found += [f"    crash not found: {_row(one)}" for one in with_crash if not one.crash_is_found]
    return found


def _row(one: Answer) -> str:
    report = one.report
    return (
        f"{report.id} ({report.confidence}) is {report.verdict} in {report.phase}, "
        f"said {one.found.verdict} ({one.found.grade}) in {one.found.phase}"
    )


def main() -> int:
    every = answers()
    for half in HALVES if len(sys.argv) < 2 else sys.argv[1:]:
        print(f"{half} half: " + "\n".join(lines([one for one in every if one.report.half == half])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
