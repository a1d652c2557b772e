"""replay --expect: a part of the document, and where the document differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hangdoc.errors import HangdocError
from hangdoc.report.document import document
from hangdoc.report.expectation import differences, read_expectation
from tests.unit.report.diagnoses import FULL


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        ({"verdict": "busy-wait", "phase": "warmup"}, 0),
        ({"target": {"engine": "sglang"}}, 0),
        ({"culprits": [{"pid": 130}, {}]}, 0),
        ({"processes": [{"state": "null"}, {"state": "R"}]}, 0),
        ({"verdict": "healthy"}, 1),
        ({"culprits": [{"pid": 130}]}, 1),
        ({"culprits": [{"pid": 129}, {"pid": 1}]}, 2),
        ({"vredict": "busy-wait"}, 1),
        ({"target": "sglang"}, 1),
    ],
)
def test_differences(expected: dict[str, Any], lines: int) -> None:
    """Named fields must be as named, lists as long as named, other fields may be anything."""
    assert len(differences(expected, document(FULL))) == lines


def test_a_difference_names_its_place() -> None:
    """The line says where, what was expected and what was found."""
    found = differences({"culprits": [{"rank": {"tp": 0}}, {}]}, document(FULL))
    assert found == ["culprits[0].rank.tp: expected 0, found 1"]


def test_toml_and_json(tmp_path: Path) -> None:
    """Both formats say the same."""
    toml, json = tmp_path / "a.expect.toml", tmp_path / "a.json"
    toml.write_text('verdict = "blocked"\n[[culprits]]\npid = 1\n')
    json.write_text('{"verdict": "blocked", "culprits": [{"pid": 1}]}')
    assert read_expectation(toml) == read_expectation(json)


@pytest.mark.parametrize("text", ["", "= =", "\xff"])
def test_no_expectation(tmp_path: Path, text: str) -> None:
    """A file that names nothing, or is no TOML, is one clear error: it must not pass for a fitting one."""
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(HangdocError, match=r"bad\.toml"):
        read_expectation(path)
