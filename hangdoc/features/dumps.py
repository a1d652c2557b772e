"""The Python stacks of one process over a window: what each thread was seen doing, and whether it stayed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hangdoc.features.frames import Meaning, read_stack
from hangdoc.features.index import Index, Window
from hangdoc.features.loops import Loop, loop_of
from hangdoc.model.engine import Engine
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Reading
from hangdoc.model.stack import Frame, Stack, Stacks


@dataclass(frozen=True)
class ThreadView:
    """One thread in one dump."""

    tid: int
    name: str
    active: bool
    owns_gil: bool
    stack: Stack
    meaning: Meaning


@dataclass(frozen=True)
class ThreadHistory:
    """One thread over the dumps of a window, oldest first; dumps without the thread are left out."""

    tid: int
    views: tuple[ThreadView, ...]

    @property
    def last(self) -> ThreadView:
        """The newest view."""
        return self.views[-1]

    @property
    def leaf(self) -> Frame | None:
        """The innermost frame of the newest view."""
        return self.last.stack[0] if self.last.stack else None

    @cached_property
    def is_helper(self) -> bool:
        """Whether the thread exists to wait: in every dump it sat in a helper's frame."""
        return self.always_does("helper")

    def always_does(self, *activities: str) -> bool:
        """Tell whether every view shows one of these activities in some frame."""
        return all(not kinds.isdisjoint(activities) for kinds in self._kinds)

    def ever_does(self, *activities: str) -> bool:
        """Tell whether any view shows one of these activities in some frame."""
        return any(not kinds.isdisjoint(activities) for kinds in self._kinds)

    @cached_property
    def _kinds(self) -> frozenset[frozenset[str]]:
        """What the views show: a thread that sits still shows one thing, however often it was looked at."""
        return frozenset(view.meaning.kinds for view in self.views)

    def loop(self) -> Loop | None:
        """Return the one function in which every view lies, if there is one."""
        return loop_of([view.stack for view in self.views])


@dataclass(frozen=True)
class Dumps:
    """Every Python thread of one process.

    times_ns: when the dumps were taken, oldest first; outdated: a newer one was tried, and failed.
    """

    times_ns: tuple[int, ...]
    threads: dict[int, ThreadHistory]
    outdated: bool = False

    @property
    def count(self) -> int:
        """How many dumps there are."""
        return len(self.times_ns)

    @property
    def seconds(self) -> float:
        """Over how long they were taken."""
        return (self.times_ns[-1] - self.times_ns[0]) / 1e9 if self.times_ns else 0.0


def dumps(index: Index, process: ProcessKey, window: Window, stacks: Sequence[Stack], engine: Engine) -> Reading[Dumps]:
    """Return the dumps of one process within a window; Missing when there is none."""
    readings = index.known("stacks", process, Stacks, window)
    if not readings:
        return index.missing("stacks", process, window)
    views: dict[int, list[ThreadView]] = {}
    meanings: dict[int, Meaning] = {}
    for _, reading in readings:
        for thread in reading.threads:
            stack = stacks[thread.stack]
            if thread.stack not in meanings:
                meanings[thread.stack] = read_stack(stack, engine)
            meaning = meanings[thread.stack]
            view = ThreadView(thread.tid, thread.name, thread.active, thread.owns_gil, stack, meaning)
            views.setdefault(thread.tid, []).append(view)
    alive = {thread.tid for thread in readings[-1][1].threads}
    histories = {tid: ThreadHistory(tid, _whole(seen)) for tid, seen in sorted(views.items()) if tid in alive}
    outdated = index.failed_last("stacks", process, window)
    return Known(Dumps(tuple(at_ns for at_ns, _ in readings), histories, outdated))


def _whole(views: list[ThreadView]) -> tuple[ThreadView, ...]:
    """Leave out torn views of a thread.

    Rule: a view whose outermost frame is not that of the deepest view is torn. Why it works: a thread's outermost
    frame stays for its life, and a stack read from a running target breaks off where a frame went away meanwhile
    (seen in 1 of 8 dumps of an idle scheduler: a single frame). Fails when the only view is torn.
    """
    deepest = max(views, key=lambda view: len(view.stack)).stack
    base = _function(deepest[-1:])
    return tuple(view for view in views if view.stack is deepest or _function(view.stack[-1:]) == base)


def _function(frames: Stack) -> tuple[tuple[str, str], ...]:
    return tuple((frame.function, frame.file) for frame in frames)
