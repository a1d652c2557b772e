"""What the log says up to the end of a window: which lines are new in it, what grew, since when it is silent."""

from __future__ import annotations

from hangdoc.features.index import Index, Window, window_of
from hangdoc.features.outputs import LogState, log_state
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Known, Missing
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import SECOND_NS, tail, trace, whole

OLD = LogEvent(kind="milestone", name="load-begin", phase="weight-load")
NEW = LogEvent(kind="milestone", name="ready", phase="ready")
CRASH = LogEvent(kind="crash", name="traceback")


def state(of: Trace, window: Window | None = None) -> LogState:
    seen = log_state(Index(of), window or whole(of), 10 * SECOND_NS)
    assert isinstance(seen, Known)
    return seen.value


def test_fresh_lines_are_those_of_the_window() -> None:
    """What the first reading finds was written before anybody looked; later lines are fresh."""
    log = state(trace([{("log", None): tail(OLD, first=True)}, {("log", None): tail(NEW, size=150, modified_s=7)}]))
    assert log.milestones == (OLD, NEW)
    assert log.fresh == (NEW,)
    assert (log.grown_bytes, log.silent_s, log.phase) == (50, 3.0, "ready")


def test_lines_before_the_window_are_old() -> None:
    """A line that was new before the window began is not fresh in it, and what it says still stands."""
    of = trace([{("log", None): tail(first=True)}, {("log", None): tail(CRASH)}, {("log", None): tail()}])
    log = state(of, window_of(of, 1, 2))
    assert log.fresh == ()
    assert log.crashes == (CRASH,)


def test_without_a_log() -> None:
    """No log is missing, not silent."""
    of = trace([{}, {}])
    assert isinstance(log_state(Index(of), whole(of), 0), Missing)
