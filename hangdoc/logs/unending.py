"""Standard input that may have no end: it counts as ended when it only trickles, or at Ctrl-C."""

from __future__ import annotations

import select
import signal
import threading
import time
from collections.abc import Callable
from io import FileIO
from types import FrameType, TracebackType
from typing import Any

from hangdoc.model.reading import Missing

QUIET_INPUT_S = 30.0
"""Seconds after which it is asked how much came. Arbitrary: nobody waits for ever for a `tail -f`."""

LEAST_BYTES = 1 << 20
"""What has to come in that time, or else all that came is taken for all there is. Arbitrary: a file comes at megabytes
a second over any network, and a log that is followed grows by some kilobytes."""


class Unending:
    """A pipe or a terminal that is read until its end, until it only trickles, or until Ctrl-C.

    lacks: takes the sentence that says why no more was read. Ctrl-C is taken over between enter and exit.
    """

    def __init__(
        self,
        file: FileIO,
        lacks: list[Missing],
        *,
        clock: Callable[[], float] = time.monotonic,
        wait_s: float = QUIET_INPUT_S,
    ) -> None:
        self._file = file
        self._lacks = lacks
        self._clock = clock
        self._wait_s = wait_s
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)
        self._is_over = self._waits = False
        self._since_s = clock()
        self._came_bytes = 0
        self._before: Any = None

    def __enter__(self) -> Unending:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def read(self, size: int = -1, /) -> bytes:
        """Return at most size bytes; b"" when it has ended, or counts as ended."""
        while not self._is_over:
            data = self._awaited(size)
            self._came_bytes += len(data or b"")
            self._is_over = self._is_over or data == b""
            if not self._is_over and self._clock() - self._since_s >= self._wait_s:
                self._judge()
            if data:
                return data
        return b""

    def _awaited(self, size: int) -> bytes | None:
        """Return the next bytes, b"" at the end, and None where none came in time."""
        left_s = max(0.0, self._since_s + self._wait_s - self._clock())
        try:
            self._waits = True
            return self._file.read(size) or b"" if self._poll.poll(left_s * 1000) else None
        except KeyboardInterrupt:
            self._over("was interrupted")
            return None
        finally:
            self._waits = False

    def _judge(self) -> None:
        """Go on only where much came since the last time."""
        if self._came_bytes < LEAST_BYTES:
            much = f"only {self._came_bytes:,} bytes" if self._came_bytes else "nothing"
            self._over(f"gave {much} in {self._wait_s:g} s")
        self._since_s, self._came_bytes = self._clock(), 0

    def _over(self, why: str) -> None:
        self._is_over = True
        detail = f"standard input {why} and has not ended: what came until then was read"
        self._lacks.append(Missing("input", "timeout", detail, "give the file itself"))

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        """End the input; what came is diagnosed. While nothing is waited for, only note it."""
        del number, frame
        if self._waits:
            raise KeyboardInterrupt
        if not self._is_over:
            self._over("was interrupted")
