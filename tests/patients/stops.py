"""Patients that a signal has stopped: for good, and for a moment."""

from __future__ import annotations

import os
import signal
import time

from tests.patients.stage import Stage, get_on, patient


@patient("blocked", culprit="rank1")
def stopped_rank(stage: Stage) -> None:
    """Rank 1 is stopped by a signal; rank 0 waits for it."""
    word = stage.waiting_rank()
    pid = stage.fork(get_on)
    word.close()
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    stage.arrive("rank1", pid)
    stage.wait()


@patient("undetermined", "slow-start", "healthy")
def stopped_for_moments(stage: Stage) -> None:
    """Rank 1 is stopped again and again, and each time continued."""
    word = stage.waiting_rank()
    pid = stage.fork(get_on)
    word.close()
    stage.arrive("rank1", pid)
    stage.arrive("launcher")
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.7)
