"""The links of a process over a window as edges: who could end the waits that leave it, and whether they stood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hangdoc.features.edges import Edge
from hangdoc.features.index import Index, Window
from hangdoc.model.link import Link, LinkEnd, Links
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.trace.records import Trace

PROBE = "links"

STANDING_READINGS = 2
"""Thorough readings, some seconds apart, that must show the same wait for it to be a state and not a moment."""


def recent_links(index: Index, process: ProcessKey, window: Window) -> Reading[tuple[Links, ...]]:
    """Return the last STANDING_READINGS thorough readings of a process, oldest first; the newest is of the window.

    The older one may be from before the window: that the threads did not run within it is for their clocks to say.
    """
    until_now = index.known(PROBE, process, Links, Window(0, window.last, 0, window.end_ns))
    thorough = [(at_ns, reading) for at_ns, reading in until_now if reading.thorough]
    if not thorough or thorough[-1][0] < window.start_ns:
        return index.missing(PROBE, process, window)
    newest = thorough[-1][1]
    return (
        newest.unread if newest.unread is not None else Known(tuple(read for _, read in thorough)[-STANDING_READINGS:])
    )


def looked_twice(trace: Trace, process: ProcessKey) -> bool:
    """Tell whether the waits of a process were read as often as it takes, or are not read at all in this trace."""
    index = Index(trace)
    whole = Window(0, len(trace.snapshots), 0, 0)
    thorough = [reading for _, reading in index.known(PROBE, process, Links, whole) if reading.thorough]
    return len(thorough) >= STANDING_READINGS or not index.was_taken(PROBE)


def standing(readings: Sequence[Links]) -> Reading[tuple[Link, ...]]:
    """Return the links of the newest reading that the one before had too; Missing with only one reading."""
    if len(readings) < STANDING_READINGS:
        return Missing(PROBE, "not-taken", "the waits were read only once")
    before = {_identity(link) for link in readings[-2].links}
    return Known(tuple(link for link in readings[-1].links if _identity(link) in before))


def _identity(link: Link) -> tuple[int, str, str, tuple[ProcessKey, ...] | None]:
    ends = tuple(end.process for end in link.ends.value) if isinstance(link.ends, Known) else None
    return link.tid, link.through, link.detail, ends


def link_edges(links: Mapping[ProcessKey, Sequence[Link]]) -> tuple[Edge, ...]:
    """Return the edges of every process's links, strong ones first, otherwise by who waits and for whom.

    Whoever only inherited an end is left out where somebody did not. A process that could end its own wait is no edge:
    which of its threads would do it is not known.
    """
    found = {edge for process, own in links.items() for link in own for edge in _edges(process.pid, link)}
    return tuple(sorted(found, key=order))


def order(edge: Edge) -> tuple[bool, int, int, int, int, str, str]:
    """Return the sort key of an edge."""
    return edge.weak, edge.from_pid, edge.from_tid or 0, edge.to_pid, edge.to_tid or 0, edge.through, edge.detail


def _edges(pid: int, link: Link) -> Iterator[Edge]:
    for end in likely_ends(link):
        if end.process.pid == pid:
            continue
        who = "" if end.member else f"; pid {end.process.pid} ({end.command}) is outside the launch"
        yield Edge(pid, link.tid, end.process.pid, None, link.through, link.detail + who, link.weak)


def likely_ends(link: Link) -> tuple[LinkEnd, ...]:
    """Return who could end a wait, without those that only inherited the end where others did not."""
    if isinstance(link.ends, Missing):
        return ()
    own = tuple(end for end in link.ends.value if not end.inherited)
    return own or link.ends.value
