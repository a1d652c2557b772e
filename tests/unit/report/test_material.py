"""What a report is made of: a trace that holds nothing is refused in words, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hangdoc.diagnosis import diagnose
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.report.material import material
from tests.unit.report.recordings import golden


@pytest.mark.parametrize("asked", [diagnose, material])
def test_a_trace_without_a_round(asked: Callable[..., Any]) -> None:
    """A trace that was cut before its first round is wrong use (2), and no IndexError."""
    with pytest.raises(HangdocError, match="before its first round") as caught:
        asked(replace(golden("absent-barrier"), snapshots=()), "trace")
    assert caught.value.exit_code is ExitCode.USAGE
