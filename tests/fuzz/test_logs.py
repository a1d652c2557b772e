"""A short form of `make fuzz`: odd bytes never end in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.logs import by_mutation, one_input

SHORT = 2_000


def test_odd_bytes() -> None:
    """Mutated logs and reports are read, whatever they hold."""
    by_mutation(SHORT, seed=20261129)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\x04|", b"\xff" * 300, b"\r\n" * 99, b"\x25" + b"(" * 3000, b"\x25Thread 08693 (idle)\n"]
)
def test_corners(data: bytes) -> None:
    """The smallest and the oddest inputs are read as well."""
    one_input(data)


def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader that raises ends the run, and its input is kept."""
    monkeypatch.setattr("tests.fuzz.logs.HERE", tmp_path)
    seed = b"\x25Killed\n"
    monkeypatch.setattr("tests.fuzz.logs.seeds", lambda: [seed])

    def broken(data: bytes) -> None:
        raise ValueError(data)

    with pytest.raises(ValueError):
        by_mutation(1, 1, broken)
    assert [one.name for one in tmp_path.iterdir()] == ["crash-0"]
