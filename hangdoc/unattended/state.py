"""The state of a watch, kept in a small file for `hangdoc healthcheck` and for scripts."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from hangdoc import __version__
from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.process import Launch
from hangdoc.report.document import timestamp
from hangdoc.unattended.health import SCHEMA, STALE_AFTER_S

WRITE_S = 5.0
"""Longest pause between two writings while rounds go on. Arbitrary: half of what a probe waits by default (10 s)."""

MODE = 0o644
"""Others may read it (a probe of another container); so there is nothing in it of what the launch wrote."""


class StateFile:
    """Writes the state as a whole or not at all: whoever reads it never sees half of one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written_s = float("-inf")
        self._since: tuple[tuple[str, str], float] | None = None
        self._facts: dict[str, Any] = {"verdict": "undetermined", "grade": "undetermined", "phase": "unknown"}

    def begin(self) -> None:
        """Write it for the first time; HangdocError when it cannot be, which is better said before the watch."""
        try:
            self.write()
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}"
            raise HangdocError(message, "give --state a file in a folder that can be written") from error

    def meet(self, launch: Launch) -> None:
        """Write which launch is watched from now on, before there is a diagnosis; OSError when it cannot be."""
        self._facts |= {"pid": launch.root.pid, "engine": launch.engine}
        self.write()

    def tell(self, diagnosis: Diagnosis, *, ended: bool = False) -> None:
        """Write how the launch stands."""
        about = (diagnosis.verdict, diagnosis.grade)
        if self._since is None or self._since[0] != about:
            self._since = (about, time.time())
        self._facts = {
            "verdict": diagnosis.verdict,
            "grade": diagnosis.grade,
            "phase": diagnosis.phase,
            "since": _rounded(self._since[1]),
            "no_progress_s": None if diagnosis.no_progress_s is None else round(diagnosis.no_progress_s, 1),
            "ended": ended,
            "pid": diagnosis.target.pid,
            "engine": diagnosis.target.engine,
        }
        self.write()

    def end(self) -> None:
        """Write that the launch ended before anything could be read of it; OSError when it cannot be."""
        self._facts |= {"phase": "shutdown", "ended": True}
        self.write()

    def beat(self) -> None:
        """Say that the watch still goes on; writes seldom."""
        if time.monotonic() - self._written_s >= WRITE_S:
            self.write()

    def write(self) -> None:
        """Replace the file; OSError when it cannot be."""
        self._written_s = time.monotonic()
        now = time.time()
        head = {"schema": SCHEMA, "hangdoc": __version__, "written": timestamp(int(now * 1e9))}
        head |= {"written_at": _rounded(now), "stale_after_s": STALE_AFTER_S, "watch_pid": os.getpid()}
        text = json.dumps({**head, **self._facts}) + "\n"
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            fresh.write_text(text, encoding="ascii")
            fresh.chmod(MODE)
            fresh.replace(self._path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
