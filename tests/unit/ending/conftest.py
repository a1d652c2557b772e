"""The theatre in which launches are put up and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.ending.theatre import Theatre


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    theatre = Theatre(tmp_path)
    try:
        yield theatre
    finally:
        theatre.close()
