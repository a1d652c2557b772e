"""Puts the lines of one Python traceback together: one failure, whose cause the first exception of its chain tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from hangdoc.model.log import LogEvent, Phase

TIMEOUTS = frozenset({"gloo-timeout", "store-timeout", "rpc-timeout"})
"""Complaints that end a traceback: a standstill that torch, or vLLM's engine core, measured and ended."""

HEADS = frozenset({"exception", "thread-exception", "engine-core", "worker-failed", "traceback"})
"""Lines that a traceback follows, or that begin one."""

FARTHEST_BYTES = 64 << 10
"""From a traceback's head to its end. Arbitrary: 1,000 frames of recursion are printed with a line each."""

NEXT_BYTES = 4 << 10
"""From the line that says that an exception was caught, or who had it, to the traceback. Arbitrary."""

_NOTICES = frozenset({"child-failed", "sigquit", "scheduler-dead", "subprocess-crashed", "child-ended", "taken-down"})
"""Said of a process from outside: no such line is the end of a traceback."""


_NAMELESS = frozenset({"python-error", "assertion"})
"""Exceptions that say less than who had them."""


@dataclass
class _Block:
    """A traceback being read. cause: the first exception of its chain; caught: it ended nothing.

    mixed: the lines of another one stand between its own, and none of them says whose it is.
    """

    head: LogEvent
    caught: bool
    cause: LogEvent | None = None
    end: int = 0
    joint: bool = False
    mixed: bool = False


class Tracebacks:
    """Takes the failures of a log in their order and gives each traceback as one failure, once it is over."""

    def __init__(self) -> None:
        self._open: dict[tuple[tuple[str, int], ...], _Block] = {}
        self._caught_at = -FARTHEST_BYTES

    @property
    def is_open(self) -> bool:
        """Whether a traceback may go on, so that a line that is indented is a line of source."""
        return any(block.cause is None or block.joint for block in self._open.values())

    def take(self, event: LogEvent) -> Iterator[LogEvent]:
        """Take a failure or a time-out; yield what is over, and the line itself where it is in no traceback."""
        if event.name == "caught":
            self._caught_at = event.offset
            return
        block = self._block_of(event)
        if event.name in HEADS:
            yield from self._begin(event, block)
        elif event.name == "chained":
            if block is not None:
                block.joint, block.end = True, event.offset
        elif block is None or event.name in _NOTICES or (block.cause is not None and not block.joint):
            yield event
        else:
            block.cause = block.cause or event
            block.joint, block.end = False, event.offset

    def _begin(self, event: LogEvent, block: _Block | None) -> Iterator[LogEvent]:
        if block is not None and event.name == "traceback" and _goes_on(block, event):
            block.end = event.offset
            return
        caught = event.name == "traceback" and 0 <= event.offset - self._caught_at < NEXT_BYTES
        yield from self._close(_key(event))
        self._open[_key(event)] = _Block(event, caught, end=event.offset)

    def _block_of(self, event: LogEvent) -> _Block | None:
        """Return the traceback that a line belongs to: its own rank's, or its task's newest where it names no rank."""
        found = self._open.get(_key(event))
        if found is None and not event.rank:
            task = _task(event)
            near = [block for block in self._open.values() if block.head.numbers.get("task", -1) == task]
            found = self._of_mixed(near) or max(near, key=lambda block: block.head.offset, default=None)
        return found if found is not None and event.offset - found.end < FARTHEST_BYTES else None

    @staticmethod
    def _of_mixed(near: list[_Block]) -> _Block | None:
        """Return the first traceback without an end of several that began before any of them ended.

        Rule: the next one began within a few lines. Whose end comes first cannot be told, so that none keeps its rank.
        Fails where the end of the first one is a line that is not known: its rank is lost as well.
        """
        unended = [block for block in near if block.cause is None and block.head.name != "traceback"]
        pairs = [pair for pair in pairwise(unended) if pair[1].head.offset - pair[0].head.offset < NEXT_BYTES]
        for block in (one for pair in pairs for one in pair):
            block.mixed = True
        return next((block for block in unended if block.mixed), None)

    def interrupted(self) -> None:
        """Take that Ctrl-C ended what is open: that is no failure."""
        for block in self._open.values():
            block.caught = block.caught or block.cause is None or block.joint

    def flush(self) -> Iterator[LogEvent]:
        """Yield what is left at the log's end."""
        for key in list(self._open):
            yield from self._close(key)

    def _close(self, key: tuple[tuple[str, int], ...]) -> Iterator[LogEvent]:
        block = self._open.pop(key, None)
        if block is None or block.caught:
            return
        if block.cause is not None and block.cause.kind == "watchdog":
            yield _at_head(block.cause, block.head)
            if block.head.name == "traceback":
                return  # the time-out says it all
        yield _one(block)


def _goes_on(block: _Block, event: LogEvent) -> bool:
    """Tell whether the head of a traceback belongs to the one that is open: to who had it, or one more of a chain."""
    return block.joint or (block.cause is None and event.offset - block.end < NEXT_BYTES)


def _key(event: LogEvent) -> tuple[tuple[str, int], ...]:
    """Return who printed a line: its rank, else its task, which other nodes' lines do not have."""
    task = event.numbers.get("task")
    return tuple(sorted(event.rank.items())) or ((("task", int(task)),) if task is not None else ())


def _task(event: LogEvent) -> float:
    """Return the label of the task that printed a line; -1 for none."""
    return event.numbers.get("task", -1)


def _one(block: _Block) -> LogEvent:
    """Return a traceback as one failure, at the place of its head, with whom the head and what the cause names."""
    head, cause = block.head, block.cause
    if block.mixed:
        head = replace(head, rank={}, numbers={**head.numbers, "mixed": 1.0})
    if cause is None:
        return replace(head, text="a traceback that was cut") if head.name == "traceback" else head
    if head.name == "traceback":
        return _at_head(cause, head)
    if cause.kind == "watchdog":
        return replace(head, text=f"{head.text}: {cause.text}", victim=True, offset=cause.offset)
    name = head.name if cause.name in _NAMELESS else cause.name
    return replace(
        head,
        name=name,
        text=f"{head.text}: {cause.text}",
        victim=head.victim or cause.victim,
        phase=_phase(head, cause),
        numbers={**cause.numbers, **head.numbers, **({"thread": 1.0} if head.name == "thread-exception" else {})},
    )


def _at_head(cause: LogEvent, head: LogEvent) -> LogEvent:
    """Return the end of a traceback where it begins, of the rank that had it."""
    return replace(
        cause, rank=head.rank or cause.rank, offset=head.offset, line=head.line, stamp=head.stamp or cause.stamp
    )


def _phase(head: LogEvent, cause: LogEvent) -> Phase:
    return cause.phase if head.phase == "unknown" else head.phase
