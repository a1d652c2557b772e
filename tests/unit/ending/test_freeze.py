"""Members are stopped only under a guardian; where none can be had, the ending goes on without."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hangdoc.ending.freeze import Freezer
from hangdoc.launch.pidfd import hold
from tests.unit.ending.theatre import Theatre, state


def test_without_a_guardian_nobody_is_stopped(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who multiplies may use up all processes of the user, the guardian's included: told as False, no exception."""
    key = theatre.bystander()
    handle = hold(key)
    assert handle is not None
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    try:
        with Freezer() as freezer:
            assert not freezer.stop([handle])
            assert not freezer.stop([handle])
        assert state(key) not in {"T", "t"}
    finally:
        handle.close()
