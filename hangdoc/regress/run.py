"""All cases, judged in as many processes as there are CPUs."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from hangdoc.diagnosis import hypotheses
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.regress.cases import Case
from hangdoc.regress.judge import Result, judge

MOST_AT_ONCE = 16
"""Cases handed to a process at a time. Arbitrary: a second of work, so the last ones are spread evenly."""

COLLECTED_AFTER = 2_000_000
"""Objects that outlive their making before the garbage collector looks for circles: more than a large trace has. The
records of a trace make no circles, and a collector that walks them again and again takes a third of the time."""

_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def run(cases: Sequence[Case], jobs: int | None = None) -> Iterator[Result]:
    """Yield the result of each case in their order. jobs: processes, None for as many as CPUs may be used."""
    wanted = min(jobs or len(os.sched_getaffinity(0)), len(cases))
    if wanted <= 1:
        yield from map(judge, cases)
        return
    hypotheses()  # imported once, before the processes part ways
    together = max(1, min(MOST_AT_ONCE, len(cases) // (wanted * 4)))
    context = multiprocessing.get_context("fork")  # this process has no threads yet
    pool = ProcessPoolExecutor(wanted, context, _begin_work, (os.getpid(),))
    try:
        yield from pool.map(judge, cases, chunksize=together)
    except BrokenProcessPool as error:
        raise HangdocError(
            "a process that replays traces was killed", "see dmesg for the out-of-memory killer, or use --jobs 1"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_work(parent: int) -> None:
    """Leave Ctrl-C to the parent, do not outlive it, and seldom look for circles."""
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def exit_code(results: Sequence[Result]) -> ExitCode:
    """Return 2 when a case could not be judged, 5 when one differs, else 0."""
    states = {result.state for result in results}
    if "unusable" in states:
        return ExitCode.USAGE
    return ExitCode.DIFFERS if "differs" in states else ExitCode.OK
