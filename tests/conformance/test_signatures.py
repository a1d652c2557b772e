"""docs/signatures.md holds: each row has its hypothesis and a case that shows it, each line is read as it says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from hangdoc import discovery
from hangdoc.diagnosis import diagnose, hypotheses
from hangdoc.logs.lines import read_line
from hangdoc.logs.read import Wishes, read
from hangdoc.model.process import EngineName
from tests.cases.literate import FILES, LiterateCase, cases_of

ROOT = Path(__file__).resolve().parents[2]
NOBODY = "never a verdict"
ROWS = 30
CELL = re.compile(r"(?<!\\)\|")


def table(columns: int) -> list[list[str]]:
    """Return the rows of the table with so many columns, without its head."""
    lines = (ROOT / "docs" / "signatures.md").read_text().splitlines()
    rows = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines if line.startswith("| ")]
    return [row for row in rows if len(row) == columns and row[0].isdigit()]


SIGNATURES, LINES = table(4), table(5)


@cache
def cases() -> dict[str, LiterateCase]:
    return {one.name: one for file in FILES for one in cases_of(file)}


def test_every_row_is_there_once() -> None:
    """The thirty signatures stand in their order, and only their lines may be told as well."""
    assert [int(row[0]) for row in SIGNATURES] == list(range(1, ROWS + 1))
    assert {int(row[0]) for row in LINES} <= set(range(1, ROWS + 1))


@pytest.mark.parametrize("row", SIGNATURES, ids=lambda row: f"row-{row[0]}")
def test_a_case_shows_each_hypothesis(row: list[str]) -> None:
    """Each hypothesis of a row has a case in which it is likely or more; one that proves nothing leads to no hang."""
    known = {one.id: one.name for one in hypotheses()}
    named = [] if row[2] == NOBODY else row[2].split(", ")
    shown = row[3].split("; ")
    for one in shown:
        if "::" in one:
            file, test = one.split("::")
            assert f"def {test}(" in (ROOT / file).read_text()
        elif named:
            assert cases()[one].expected["grade"] in {"likely", "confirmed"}, one
        else:
            assert cases()[one].expected["verdict"] == "undetermined", one
    about = {one.partition(":")[0] for one in shown}
    assert {known[name] for name in named} <= about


@pytest.mark.parametrize("row", LINES, ids=lambda row: f"row-{row[0]}-{row[2]}")
def test_each_line_is_read(row: list[str], tmp_path: Path) -> None:
    """A line is the entry of its engine's table that is told, and a log of that line alone says what is told."""
    _, engine, name, verdict, quoted = row
    engine_name: EngineName = engine  # type: ignore[assignment]
    tables, line = discovery.engine(engine_name), quoted.strip("`").replace("\\|", "|")
    event = read_line(line, tables)
    assert ("-" if event is None else event.name) == name
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n")
    assert diagnose(read([log], Wishes(engine=tables)), "log").verdict == verdict
