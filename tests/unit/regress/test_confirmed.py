"""record --expect: an expectation only from a confirmed verdict, and never over another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.regress.cases import Case
from hangdoc.regress.confirmed import expectation_of
from hangdoc.regress.judge import judge
from hangdoc.regress.wanted import rewritten, text_of
from hangdoc.report.expectation import read_expectation
from tests.unit.cli.commands import REPOSITORY, complaint, run

GOLDEN = REPOSITORY / "tests" / "golden"


def test_what_is_confirmed_becomes_a_case_that_passes(tmp_path: Path) -> None:
    """The expectation that was written fits the trace."""
    trace = tmp_path / "a.hangtrace"
    trace.write_bytes((GOLDEN / "healthy-tp1-idle.hangtrace").read_bytes())
    assert expectation_of(trace, tmp_path / "a.expect.toml") is ExitCode.OK
    assert read_expectation(tmp_path / "a.expect.toml")["verdict"] == "healthy"
    assert judge(Case("a", tmp_path, True, True)).state == "same"


def test_what_is_only_likely_is_not_written(tmp_path: Path) -> None:
    """Nobody is held to a verdict that is not certain: code 3, and no file."""
    with pytest.raises(HangdocError, match=r"blocked, likely\) is not confirmed") as raised:
        expectation_of(GOLDEN / "absent-barrier.hangtrace", tmp_path / "a.expect.toml")
    assert raised.value.exit_code is ExitCode.UNDETERMINED
    assert not list(tmp_path.iterdir())


def test_an_expectation_that_is_there_is_refused_before_recording(tmp_path: Path) -> None:
    """It may have been written by hand; nothing is recorded."""
    there = tmp_path / "a.expect.toml"
    there.write_text("mine")
    line = complaint(run("record", "1", "-o", str(tmp_path / "a.hangtrace"), "--expect", str(there)))
    assert "exists: it is left as it is" in line
    assert [path.name for path in tmp_path.iterdir()] == ["a.expect.toml"]
    assert there.read_text() == "mine"


def test_toml_that_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    """Quotes, control characters, other alphabets, nested tables, numbers and what could not be read."""
    fields = {
        "headline": 'a "b" \\ \x7f \u00e9 \U0001f600 \n',
        "culprits": [{"role": "scheduler", "rank": {"tp": 1, "odd key": 2}}, {}],
        "window_s": 5.5,
        "gpus": "null",
    }
    path = tmp_path / "a.expect.toml"
    path.write_text(text_of({**fields, "gpus": None}), encoding="utf-8")
    assert read_expectation(path) == fields


def test_a_multi_line_field_is_written_anew() -> None:
    """What a line cannot replace is written as a whole, below the comments at the top."""
    text = '# top\nculprits = [\n  { role = "worker" },  # him\n]\nverdict = "hung"\n'
    changed = {"culprits": [], "verdict": "hung"}
    assert rewritten(text, changed) == '# top\nculprits = []\nverdict = "hung"\n'
