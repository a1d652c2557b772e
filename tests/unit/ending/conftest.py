"""The theatre in which launches are put up and ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import wait_until
from tests.unit.ending.theatre import Theatre

UNIFIED = Path("/sys/fs/cgroup/unified")


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    theatre = Theatre(tmp_path)
    try:
        yield theatre
    finally:
        theatre.close()


@pytest.fixture
def control_group(theatre: Theatre) -> Iterator[Path]:
    """A version 2 control group, empty again and removed at the end."""
    folder = (UNIFIED if UNIFIED.is_dir() else UNIFIED.parent) / f"hangdoc-{theatre.token}"
    try:
        folder.mkdir()
        (folder / "cgroup.procs").read_text()
    except OSError:
        pytest.skip(f"{NOT_TO_BE_HAD}no version 2 control group that may be used")
    yield folder
    theatre.close_launches()
    wait_until(lambda: "populated 0" in (folder / "cgroup.events").read_text())
    folder.rmdir()
