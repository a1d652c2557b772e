"""Stand between a launch and who started it: pass signals on and its exit code back, whatever hangdoc itself does."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hangdoc.launch.pidfd import send
from hangdoc.launch.start import Order, Started, start

PASSED_ON = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2})
"""Signals that somebody may mean for the server. Stopping and going on are left to the kernel, see supervise."""

SI_KERNEL = 0x80
"""Sent by the kernel itself (asm-generic/siginfo.h): by a terminal, to its whole foreground process group."""

POLL_S = 1.0
"""How long a death may stay unseen when its SIGCHLD was lost among others. Arbitrary."""

ASKED_S = 60.0
"""How long after it was asked to end a launch that ends counts as shut down. Arbitrary: servers drain requests."""

LAST_LOOK_S = 3.0
"""How long the watch may take to see by itself that nobody is left. Arbitrary: three rounds."""

LAST_WORDS_S = 15.0
"""How long the end of the launch waits for hangdoc's last report. Arbitrary: a diagnosis of many ranks takes seconds
on a busy machine."""


class Halt:
    """Asks the watch, which runs in a thread of its own, to come to its end."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._then: list[Callable[[], None]] = []
        self._signal: tuple[signal.Signals, float] | None = None

    @property
    def asked(self) -> bool:
        """Whether the launch is over."""
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for it, for so long at most; whether it was asked for."""
        return self._asked.wait(seconds)

    def note(self, number: int) -> None:
        """Remember that the launch was sent a signal, where it is one that asks to end."""
        if number in (signal.SIGINT, signal.SIGTERM):
            self._signal = (signal.Signals(number), time.monotonic())

    @property
    def asked_by(self) -> signal.Signals | None:
        """Return the signal by which the launch was asked to end not long ago; None when it was not."""
        if self._signal is None or time.monotonic() - self._signal[1] > ASKED_S:
            return None
        return self._signal[0]

    def then(self, stop: Callable[[], None]) -> None:
        """Call this when it is asked for, at once when it has been already."""
        self._then.append(stop)
        if self.asked:
            stop()

    def ask(self) -> None:
        """Ask."""
        self._asked.set()
        for stop in list(self._then):
            stop()


def hold_signals() -> set[int]:
    """Take signals one by one from now on instead of being interrupted by them; return the mask as it was.

    Threads that begin later get none at all, so this comes before any other: the kernel gives a signal to whichever
    thread does not block it, and there it would end hangdoc.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, no exit code would be left to wait for
    return {int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})}


def supervise(argv: tuple[str, ...], watch: Callable[[Started, Halt], None], before: set[int]) -> int:
    """Start a launch, watch it in a thread, and return its exit code, 128 + N after signal N.

    The launch stays in hangdoc's process group and session, as without hangdoc: a terminal's Ctrl-C, quit and
    Ctrl-Z reach both at once, and job control works as ever. So what the kernel sends is not sent once more; what a
    process sends to hangdoc is. watch: called with the launch; it must not raise, and whether it ends early
    or never does, the launch does not notice. before: what hold_signals returned; signals are let go of again.
    """
    with _released(before):
        started = start(Order(argv, signal_mask=before))
        halt = Halt()
        watching = threading.Thread(target=watch, args=(started, halt), name="hangdoc-watch", daemon=True)
        watching.start()
        _pass_on(started, halt)
        watching.join(LAST_LOOK_S)
        halt.ask()
        watching.join(LAST_WORDS_S)
        return started.bury()


@contextmanager
def _released(before: set[int]) -> Iterator[None]:
    """Let go of the signals at the end."""
    try:
        yield
    finally:
        # Those that came after the launch's end find nobody any more; a second Ctrl-C must not turn the exit code.
        while signal.sigtimedwait(PASSED_ON | {signal.SIGCHLD}, 0) is not None:
            continue
        release_signals(before)


def release_signals(before: set[int]) -> None:
    """Undo hold_signals, for the calling thread."""
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _pass_on(started: Started, halt: Halt) -> None:
    """Pass signals on until the launch has ended."""
    while not started.has_ended():
        told = signal.sigtimedwait(PASSED_ON | {signal.SIGCHLD}, POLL_S)
        if told is None or told.si_signo not in PASSED_ON:
            continue
        halt.note(told.si_signo)  # before it is passed on: the end may be seen at once
        if told.si_code != SI_KERNEL:
            send(started.handle.descriptor, told.si_signo)
