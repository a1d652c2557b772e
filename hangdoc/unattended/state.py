"""The state of a watch, kept in a small file for `hangdoc healthcheck` and for scripts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hangdoc import __version__
from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.process import Launch
from hangdoc.report.document import timestamp
from hangdoc.trace.scribe import ANSWER_S, Scribe
from hangdoc.unattended.health import SCHEMA, STALE_AFTER_S

WRITE_S = 5.0
"""Longest pause between two writings while rounds go on. Arbitrary: half of what a probe waits by default (10 s)."""

MODE = 0o644
"""Others may read it (a probe of another container); so there is nothing in it of what the launch wrote."""


COMPLAIN_S = 30.0
"""Shortest pause between two complaints of the same disk. Arbitrary: as for the folder of --record."""

LAST_S = 5.0
"""How long the end of a watch waits for the last state. Arbitrary: it is one small file."""


class State:
    """Keeps the state beside the watch: the newest one is written when the disk takes it, and nobody waits for that.

    A disk that fails is complained of, and the state then goes stale by itself; so it does with one that is stuck.
    """

    def __init__(self, path: Path, complain: Callable[[str], None]) -> None:
        self._file = StateFile(path)
        self._path = path
        self._complain = complain
        self._complained_s = float("-inf")
        self._scribe = Scribe("state", 1)

    def begin(self, seconds: float = ANSWER_S) -> None:
        """Write it for the first time; HangdocError when it cannot be, which is better said before the watch.

        seconds: that the disk may take.
        """
        try:
            self._scribe.do(self._file.write, seconds)
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}"
            raise HangdocError(message, "give --state a file in a folder that can be written") from error

    def meet(self, launch: Launch) -> None:
        """Write which launch is watched from now on, before there is a diagnosis."""
        self._put(partial(self._file.meet, launch), in_place=True)

    def tell(self, diagnosis: Diagnosis, *, ended: bool = False) -> None:
        """Write how the launch stands."""
        self._put(partial(self._file.tell, diagnosis, ended=ended), in_place=True)

    def end(self) -> None:
        """Write that the launch ended before anything could be read of it."""
        self._put(self._file.end, in_place=True)

    def beat(self) -> None:
        """Say that the watch still goes on; writes seldom."""
        if self._scribe.stalled_s >= STALE_AFTER_S:
            self._tell(f"the disk has not answered for {STALE_AFTER_S:g} s")
        self._put(self._file.beat)

    def close(self) -> None:
        """Wait for the last state, for a while at most."""
        if not self._scribe.close(LAST_S):
            self._complain(f"the last state is not written: the disk has not answered for {LAST_S:g} s")

    def _put(self, write: Callable[[], None], *, in_place: bool = False) -> None:
        self._scribe.put(partial(self._attempt, write), in_place=in_place)

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self._tell(str(error.strerror))

    def _tell(self, why: str) -> None:
        now_s = time.monotonic()
        if now_s - self._complained_s >= COMPLAIN_S:
            self._complained_s = now_s
            self._complain(f"the state cannot be written: {why}; the watch goes on")


class StateFile:
    """Writes the state as a whole or not at all: whoever reads it never sees half of one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written_s = float("-inf")
        self._since: tuple[tuple[str, str], float] | None = None
        self._facts: dict[str, Any] = {"verdict": "undetermined", "grade": "undetermined", "phase": "unknown"}

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
            fresh.unlink(missing_ok=True)  # of a watch with this pid that was killed, or a link that somebody laid
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE), "w") as file:
                os.fchmod(file.fileno(), MODE)
                file.write(text)
            fresh.replace(self._path)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
