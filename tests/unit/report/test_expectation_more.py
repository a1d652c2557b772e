"""What an expectation has beyond the document's fields, and names that no document has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.report.document import document
from hangdoc.report.expectation import differences, read_expectation
from tests.unit.report.diagnoses import FULL

SAID = document(FULL)
RULED_OUT = next(one for one in SAID["hypotheses"] if one["grade"] == "ruled-out")
STANDING = next(one for one in SAID["hypotheses"] if one["grade"] != "ruled-out")


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        ({"verdict": "hung", "accept": ["busy-wait", "blocked"]}, []),
        ({"verdict": "hung", "accept": ["blocked"]}, ['verdict: expected "hung" or "blocked", found "busy-wait"']),
        ({"grade_floor": "undetermined"}, []),
        ({"grade_floor": SAID["grade"]}, []),
        ({"ruled_out": [RULED_OUT["id"], RULED_OUT["name"]]}, []),
        ({"ruled_out": ["HD000"]}, ['ruled_out: there is no hypothesis "HD000"']),
        ({"culprits": []}, ["culprits: expected nobody, found scheduler TP1 (pid 130), scheduler"]),
    ],
)
def test_beyond_the_document(expected: dict[str, Any], lines: list[str]) -> None:
    """Other verdicts may pass, a grade has a floor, hypotheses have to be ruled out; each miss is a line in words."""
    assert differences(expected, SAID) == lines


def test_a_grade_below_the_floor() -> None:
    """The line says what was the least."""
    assert differences({"grade_floor": "confirmed"}, {**SAID, "grade": "likely"}) == [
        'grade: expected at least "confirmed", found "likely"'
    ]


def test_a_hypothesis_that_is_not_ruled_out() -> None:
    """It is named with what it was found to be."""
    (line,) = differences({"ruled_out": [STANDING["id"]]}, SAID)
    assert line.startswith(f"{STANDING['name']} ({STANDING['id']}): expected to be ruled out, found ")


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ('vredict = "blocked"', r'there is no field "vredict" \(verdict\?\)'),
        ('verdict = "blokced"', r'verdict cannot be "blokced" \(blocked\?\)'),
        ('culprits = [{ rolle = "scheduler" }]', r'there is no field "culprits\[0\].rolle" \(role\?\)'),
        ("culprits = 1", "culprits has to be a list, not 1"),
        ("target = 1", "target has to be a table, not 1"),
        ('window_s = "5"', 'window_s cannot be "5"'),
        ('accept = ["hung"]', "accept needs a verdict beside it"),
        ('verdict = "hung"\naccept = ["hang"]', r'accept\[0\] cannot be "hang" \(hung\?\)'),
        ('grade_floor = "sure"', 'grade_floor cannot be "sure"'),
    ],
)
def test_what_no_document_has_is_refused(tmp_path: Path, text: str, clause: str) -> None:
    """A slip in a name or a value is one clear line and wrong use, not a difference for ever."""
    path = tmp_path / "a.expect.toml"
    path.write_text(text)
    with pytest.raises(HangdocError, match=clause) as raised:
        read_expectation(path)
    assert raised.value.exit_code is ExitCode.USAGE
    assert "\n" not in raised.value.message


def test_a_whole_document_is_an_expectation(tmp_path: Path) -> None:
    """What --json printed can be expected as it is, null and head fields included."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(SAID))
    assert differences(read_expectation(path), SAID) == []
