"""Read the engine's version from the files that the target loaded it from, without importing anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hangdoc.launch.table import Entry
from hangdoc.model.engine import Engine
from hangdoc.model.reading import Missing, Reading


def read_version(proc: Path, engine: Engine, members: Sequence[Entry]) -> Reading[str]:
    """Read the version that is loaded."""
    del proc, engine, members
    return Missing("launch", "not-taken")
