"""What the capture of one process has done so far, for `hangdoc capture status`: a small file, replaced whole."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .layout import RECORDS, started_at

MOST_NAMED = 1000
"""Numbers of skipped samples that are kept; more are only counted. Arbitrary."""


class Tally:
    """Counts by what happened to a prompt; from any thread."""

    def __init__(self, directory: Path, settings: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, float] = {}
        self._nan: list[int] = []
        self._facts: dict[str, Any] = {
            "pid": os.getpid(),
            "start_ticks": started_at(os.getpid()),
            "began_at": time.time(),
            "state": "capturing",
            "reason": "",
            **settings,
        }
        self._path = directory / RECORDS / f"writer-{time.time_ns()}-{os.getpid()}.json"
        self._saved: dict[str, Any] = {}

    def count(self, what: str, by: float = 1) -> None:
        """Count one more prompt to which this happened."""
        with self._lock:
            self._counts[what] = self._counts.get(what, 0) + by

    def nan(self, index: int) -> None:
        """Note the number of a sample that has NaN; -1 when it had none."""
        self.count("nan")
        with self._lock:
            if len(self._nan) < MOST_NAMED:
                self._nan.append(index)

    def tell(self, **facts: Any) -> None:
        """Change what is known of this process."""
        with self._lock:
            self._facts.update(facts)

    @property
    def facts(self) -> dict[str, Any]:
        """Return everything that is known now."""
        with self._lock:
            return {**self._facts, "counts": dict(self._counts), "nan": list(self._nan)}

    def save(self) -> None:
        """Write the file if something has changed; a disk that is too full for it is told in the log anyway."""
        facts = self.facts
        if facts == self._saved:
            return
        temporary = self._path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(facts))
            temporary.replace(self._path)
            self._saved = facts
        except OSError:
            temporary.unlink(missing_ok=True)


def same_run(directory: Path, settings: dict[str, Any]) -> str:
    """Keep the settings with the first sample's; return what differs now, "" when nothing does."""
    path = directory / RECORDS / "run.json"
    try:
        before = json.loads(path.read_text())
    except FileNotFoundError:
        path.write_text(json.dumps(settings))
        return ""
    differing = [name for name in settings if before.get(name) != settings[name]]
    return ", ".join(f"{name} was {_short(before.get(name))} and is {_short(settings[name])}" for name in differing)


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)
