"""In which phase of its start the launch is: stacks first, the log where no stack tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from hangdoc.features.dumps import Dumps
from hangdoc.features.outputs import LogState
from hangdoc.model.log import Phase
from hangdoc.model.reading import Known, Missing, Reading

ORDER: tuple[Phase, ...] = get_args(Phase)[:-1]
"""Least advanced first, as the model lists them; without "unknown"."""

STARTING: frozenset[Phase] = frozenset(ORDER[: ORDER.index("ready")])


def member_phase(stacks: Reading[Dumps], pid: int) -> Phase:
    """Return the phase a process's main thread is in by its newest stack; "unknown" when no frame tells."""
    if isinstance(stacks, Missing):
        return "unknown"
    main = stacks.value.threads.get(pid)
    if main is None:
        return "unknown"
    if main.last.meaning.phase in {"ready", "serving"} and main.ever_does("forward"):
        return "serving"
    return main.last.meaning.phase


def launch_phase(movers: Sequence[Phase], log: Reading[LogState], *, asks_warmup: bool) -> Phase:
    """Return the phase of the least advanced rank.

    A serving stack before the launcher's own warm-up request has been answered is warmup: the launcher's request
    thread (asks_warmup), or a log that has not said "ready", tells. Without any stack that tells, the log's newest
    milestone.
    """
    known = [phase for phase in movers if phase != "unknown"]
    if not known:
        return log.value.phase if isinstance(log, Known) else "unknown"
    least = min(known, key=ORDER.index)
    if least in {"ready", "serving"} and (asks_warmup or _log_says_starting(log)):
        return "warmup"
    return least


def _log_says_starting(log: Reading[LogState]) -> bool:
    return isinstance(log, Known) and log.value.phase in STARTING and not log.value.reached("ready")
