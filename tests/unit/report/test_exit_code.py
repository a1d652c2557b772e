"""The contract's exit codes, row by row."""

from __future__ import annotations

import pytest

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Grade, Verdict
from hangdoc.report.exit_code import exit_code, exit_code_after_end
from tests.unit.report.diagnoses import a_diagnosis

CERTAIN: tuple[Grade, ...] = ("confirmed", "likely")


@pytest.mark.parametrize("grade", CERTAIN)
@pytest.mark.parametrize("verdict", ["busy-wait", "blocked", "hung", "crashed"])
def test_hang(verdict: Verdict, grade: Grade) -> None:
    """A hang or crash that is confirmed or likely is 1."""
    assert exit_code(verdict, grade) == 1


@pytest.mark.parametrize("grade", CERTAIN)
@pytest.mark.parametrize("verdict", ["healthy", "slow-start"])
def test_fine(verdict: Verdict, grade: Grade) -> None:
    """Healthy, and a slow start that progresses, are 0."""
    assert exit_code(verdict, grade) == 0


@pytest.mark.parametrize("verdict", ["busy-wait", "blocked", "hung", "crashed", "healthy", "slow-start"])
def test_without_a_grade(verdict: Verdict) -> None:
    """No verdict of grade undetermined is more than 3."""
    assert exit_code(verdict, "undetermined") == 3


@pytest.mark.parametrize("grade", ["confirmed", "likely", "undetermined", "ruled-out"])
def test_undetermined(grade: Grade) -> None:
    """The verdict undetermined is 3 whatever the grade."""
    assert exit_code("undetermined", grade) == 3


@pytest.mark.parametrize(
    ("verdict", "grade", "code"),
    [
        ("crashed", "confirmed", ExitCode.HANG),
        ("crashed", "likely", ExitCode.HANG),
        ("crashed", "undetermined", ExitCode.UNDETERMINED),
        ("busy-wait", "confirmed", ExitCode.UNDETERMINED),
        ("healthy", "confirmed", ExitCode.UNDETERMINED),
    ],
)
def test_gone_later(verdict: Verdict, grade: Grade, code: ExitCode) -> None:
    """When the launch went away while it was watched, only a crash is known: 1, anything else 3."""
    assert exit_code_after_end(a_diagnosis(verdict=verdict, grade=grade)) == code
