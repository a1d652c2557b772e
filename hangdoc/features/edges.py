"""One edge of the wait-for graph, whatever reading it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """Who waits for whom.

    tid None: the process, whichever of its threads; weak: it looks the same when all is well; ended: whoever should
    end the wait was a thread of that process, and is no more; inferred: that is most likely who, and not proven.
    """

    from_pid: int
    from_tid: int | None
    to_pid: int
    to_tid: int | None
    through: str
    detail: str
    weak: bool = False
    ended: bool = False
    inferred: bool = False
