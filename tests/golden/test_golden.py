"""Recorded launches: what was said of each when it was recorded is said again, to the byte the same on every replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.report.document import document, encode
from hangdoc.report.expectation import differences, read_expectation
from hangdoc.trace.reader import read
from tests.patients.__main__ import WARDS
from tests.patients.stage import PATIENTS

HERE = Path(__file__).parent
assert WARDS  # importing them has entered their patients
GOLDEN = sorted(HERE.rglob("*.hangtrace"))
MOST_BYTES = 60_000  # a trace in the repository stays small


def name_of(golden: Path) -> str:
    return golden.relative_to(HERE).with_suffix("").as_posix()


def test_every_trace_has_its_expectation() -> None:
    """No trace stands without what has to be said of it, and no expectation without its trace."""
    assert GOLDEN
    expected = {path.with_name(path.name.removesuffix(".expect.toml")) for path in HERE.rglob("*.toml")}
    assert {path.with_suffix("") for path in GOLDEN} == expected


def test_every_patient_has_its_twin() -> None:
    """Each patient's recording is here, and no other: a new one is recorded as recording.py says.

    Not of those that somebody else writes without having seen the hypotheses: they may still be told wrongly.
    """
    recorded = {path.stem for path in HERE.glob("patients/*.hangtrace")}
    own = {name for name, patient in PATIENTS.items() if ".unseen_" not in patient.act.__module__}
    assert own <= recorded
    assert recorded <= set(PATIENTS)


@pytest.mark.parametrize("golden", GOLDEN, ids=name_of)
def test_replay(golden: Path) -> None:
    """The replay says what is expected, and a second one is the same byte for byte."""
    first, second = (diagnose(read(golden), "trace") for _ in range(2))
    assert differences(read_expectation(golden.with_name(f"{golden.stem}.expect.toml")), document(first)) == []
    assert encode(first) == encode(second)


@pytest.mark.parametrize("golden", GOLDEN, ids=name_of)
def test_small(golden: Path) -> None:
    """A golden trace is small."""
    assert golden.stat().st_size < MOST_BYTES
