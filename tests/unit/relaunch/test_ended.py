"""What relaunch advises when the old launch's evidence cannot be written: only what it has an option for."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hangdoc.errors import HangdocError
from hangdoc.relaunch import ended


def test_evidence_that_cannot_be_written_leads_to_the_place_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """kill-clean's --no-snapshot is no option of relaunch: the trace lies beside --log's file."""

    def refuse(*_: Any) -> None:
        raise HangdocError(
            "no snapshot could be recorded: full", "free space; or leave the evidence out: --no-snapshot"
        )

    monkeypatch.setattr(ended, "carry_out", refuse)
    monkeypatch.setattr(ended, "snapshot_path", lambda _: Path("a.hangtrace"))
    with pytest.raises(HangdocError) as caught:
        ended.end(Mock(), Path("/full"), lambda _: None)
    assert "--no-snapshot" not in caught.value.remedy
    assert "free space; or give a --log elsewhere, not in /full" in caught.value.remedy
