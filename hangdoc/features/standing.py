"""Since when the totals of a launch's ranks stand: what they read, wrote, received and took in memory did not move."""

from __future__ import annotations

from hangdoc.features.activity import work
from hangdoc.features.index import Index, Window, window_of
from hangdoc.features.motion import Flow, flow
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import Progress
from hangdoc.trace.records import Trace

STOOD = "standing"
"""The name under which the oldest round of a long observation has the totals that nothing moved from since."""


def standing_s(trace: Trace, index: Index, ranks: tuple[ProcessKey, ...], last: int) -> Reading[float]:
    """Return for how many seconds before round `last` no rank showed work; Missing without two readings of each.

    Counts back round by round to the first one in which a rank worked or could not be read. In a long observation the
    oldest round stands for all that were folded into it, and has the totals from which nothing moved since.
    """
    if not ranks or last < 1:
        return Missing("progress", "not-taken", "nothing to compare the totals with")
    since_ns = trace.snapshots[last].at_ns
    for end in range(last, 0, -1):
        window = window_of(trace, end - 1, end)
        flows = [flow(index, key, window) for key in ranks]
        if not all(isinstance(one, Known) and is_still(one.value) for one in flows):
            break
        since_ns = max(_began_ns(index, key, window) for key in ranks)
    stood_s = (trace.snapshots[last].at_ns - since_ns) / 1e9
    return Known(stood_s) if stood_s > 0 else Missing("progress", "not-taken", "the totals do not stand")


def is_still(moved: Flow) -> bool:
    """Tell whether nothing moved, with every total read."""
    return not isinstance(moved.io_bytes, Missing) and not isinstance(moved.tcp_bytes, Missing) and work(moved) is None


def _began_ns(index: Index, key: ProcessKey, window: Window) -> int:
    readings = index.known(STOOD, key, Progress, window) or index.known("progress", key, Progress, window)
    return readings[0][0]
