"""SIGTERM and SIGHUP do to an ending what Ctrl-C does: a half-ended launch is never left without a word."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_AS_CTRL_C = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM and SIGHUP, too (in the main thread only, as Python demands).

    One that is ignored stays so: who started hangdoc by nohup wants it to go on when the terminal closes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _AS_CTRL_C}
    try:
        for number, action in before.items():
            if action is signal.SIG_DFL:
                signal.signal(number, _interrupt)
        yield
    finally:
        for number, action in before.items():
            signal.signal(number, signal.SIG_DFL if action is None else action)


def report_undisturbed() -> None:
    """Ignore what asks to end from now on: the report comes next, whatever is still pressed or sent."""
    for number in (signal.SIGINT, *_AS_CTRL_C):
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
