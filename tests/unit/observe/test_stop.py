"""Ctrl-C: the first one asks, the second one ends."""

from __future__ import annotations

import os
import signal

from hangdoc.observe.stop import Stop


def test_first_and_second() -> None:
    """The first SIGINT only asks and hands the signal back to the kernel, which ends hangdoc at a second one."""
    calls: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with Stop(lambda: calls.append("stop")) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.asked
        assert calls == ["stop"]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is before
