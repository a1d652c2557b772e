"""Ctrl-C during an observation: the first one asks for the report of what is known, a second one leaves at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self


class Stop:
    """Takes SIGINT over while it is entered (in the main thread only, as Python demands).

    then: called once, from the signal handler, when the first Ctrl-C comes.
    """

    def __init__(self, then: Callable[[], None]) -> None:
        self.asked = False
        self._then = then
        self._before: signal._HANDLER = signal.default_int_handler

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _first(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        # The kernel's own action, because it needs no Python: a second Ctrl-C works whatever hangdoc is stuck in.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self._then()
