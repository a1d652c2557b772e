"""Recorded launches: what was said of each when it was recorded is said again, to the byte the same on every replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.report.document import document, encode
from hangdoc.report.expectation import differences, read_expectation
from hangdoc.trace.reader import read

HERE = Path(__file__).parent
GOLDEN = sorted(HERE.glob("*.hangtrace"))
MOST_BYTES = 60_000  # a trace in the repository stays small


def test_every_trace_has_its_expectation() -> None:
    """No trace stands without what has to be said of it, and no expectation without its trace."""
    assert GOLDEN
    assert {path.stem for path in GOLDEN} == {path.name.removesuffix(".expect.toml") for path in HERE.glob("*.toml")}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_replay(golden: Path) -> None:
    """The replay says what is expected, and a second one is the same byte for byte."""
    first, second = (diagnose(read(golden), "trace") for _ in range(2))
    assert differences(read_expectation(golden.with_name(f"{golden.stem}.expect.toml")), document(first)) == []
    assert encode(first) == encode(second)


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.stem)
def test_small(golden: Path) -> None:
    """A golden trace is small."""
    assert golden.stat().st_size < MOST_BYTES
