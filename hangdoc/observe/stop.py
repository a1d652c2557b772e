"""Ctrl-C, SIGTERM or SIGHUP in an observation: the first asks for the report of what is known, a second one ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

_ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Takes the signals that ask to end over while it is entered (in the main thread only, as Python demands).

    then: called once, from the signal handler, when the first one comes. SIGTERM and SIGHUP too, so that no py-spy is
    left behind by a hangdoc that a timeout or a closed terminal ended.
    """

    def __init__(self, then: Callable[[], None]) -> None:
        self.asked = False
        self._then = then
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # somebody else's signals: who has the main thread stops the observation by other ways
        for number in _ASK_TO_END:
            self._before[number] = signal.signal(number, self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _first(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        # The kernel's own action, because it needs no Python: a second Ctrl-C works whatever hangdoc is stuck in.
        for number in _ASK_TO_END:
            signal.signal(number, signal.SIG_DFL)
        self._then()
