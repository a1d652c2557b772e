"""Puts the lines of a text that NCCL's RAS answered together: what stands below a heading says it of a rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from hangdoc.model.log import LogEvent

MOST_RECORDS = 8192
"""Lines of an answer that are kept. Arbitrary: its longest lists have a line for each rank."""


def count(rank: int, operation: int, pid: int) -> LogEvent:
    """Return the record of how many operations a rank has launched; pid: 0 where it is not told."""
    numbers = {"rank": float(rank), "operation": float(operation), "pid": float(max(pid, 0))}
    return _record("ras-count", f"rank {rank} has launched up to operation {operation}", numbers)


def missing(rank: int, pid: int) -> LogEvent:
    """Return the record of a rank whose process does not answer."""
    return _record("ras-missing", f"rank {rank} is missing", _numbers(rank, pid))


def dead(rank: int, pid: int) -> LogEvent:
    """Return the record of a rank that its group still has, while its process was out of reach for a minute."""
    return _record("ras-dead", f"rank {rank} is dead, and its group still has it", _numbers(rank, pid))


def left(rank: int, pid: int) -> LogEvent:
    """Return the record of a rank that has left its group while others have not."""
    return _record("ras-left", f"rank {rank} has left its group", _numbers(rank, pid))


def error(rank: int, pid: int, *, victim: bool) -> LogEvent:
    """Return the record of a rank in which NCCL failed; victim: because of a peer."""
    if victim:
        return replace(_record("ras-suffered", f"rank {rank}: a peer is gone", _numbers(rank, pid)), victim=True)
    return _record("ras-error", f"rank {rank} failed in a collective", _numbers(rank, pid))


def _numbers(rank: int, pid: int) -> dict[str, float]:
    return {"rank": float(rank), "pid": float(max(pid, 0))}


def _record(name: str, text: str, numbers: dict[str, float]) -> LogEvent:
    return LogEvent(
        kind="watchdog",
        name=name,
        phase="unknown",
        rank={},
        offset=0,
        text=f"NCCL counts: {text}",
        numbers=numbers,
    )


_LISTS: Mapping[str, Callable[[int, int], LogEvent]] = {
    "ras-silent-ranks": missing,
    "ras-few-left": left,
    "ras-few-victims": lambda rank, pid: error(rank, pid, victim=True),
    "ras-few-errors": lambda rank, pid: error(rank, pid, victim=False),
}
"""Headings below which each line names one more rank of the same kind."""


class RasText:
    """Takes the lines of one answer after the other; the last one counts."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._head = ""
        self._operation: int | None = None
        self._told: list[LogEvent] = []
        self._counts: list[list[LogEvent]] = [[]]
        self._dead: list[LogEvent] = []
        self._kept = 0

    def take(self, event: LogEvent) -> bool:
        """Take one line; tell whether it is one of RAS's."""
        if not event.name.startswith("ras-"):
            return False
        if event.name == "ras-begins":
            self._clear()
        elif self._kept < MOST_RECORDS:
            self._kept += 1
            self._line(event)
        return True

    def _line(self, event: LogEvent) -> None:
        match event.name:
            case "ras-count" | "ras-count-none":
                self._counts[-1].append(_at(count(_rank(event), int(_number(event, "operation")), _pid(event)), event))
            case "ras-few" | "ras-few-none":
                self._head, self._operation = event.name, int(_number(event, "operation"))
                self._counts[-1].append(replace(event, name="ras-few", numbers={**event.numbers, **self._few()}))
            case "ras-rank":
                self._of_list(event)
            case "ras-missing":
                self._told.append(_at(missing(_rank(event), 0), event))
            case "ras-left":
                self._told.append(_at(left(_rank(event), _pid(event)), event))
            case "ras-error" | "ras-suffered":
                self._told.append(_at(error(_rank(event), _pid(event), victim=event.victim), event))
            case "ras-gone":
                (self._dead if self._head == "ras-lost-processes" else self._told).append(event)
            case _:
                self._heading(event.name)

    def _few(self) -> dict[str, float]:
        return {"operation": float(self._operation or 0)}

    def _heading(self, name: str) -> None:
        self._head, self._operation = name, None
        if name in {"ras-operation", "ras-communicator"} and self._counts[-1]:
            self._counts.append([])

    def _of_list(self, event: LogEvent) -> None:
        """Take a rank of a list: its heading says what of."""
        if self._operation is not None:
            self._counts[-1].append(_at(count(_rank(event), self._operation, _pid(event)), event))
        elif (make := _LISTS.get(self._head)) is not None:
            self._told.append(_at(make(_rank(event), _pid(event)), event))

    def told(self) -> Iterator[LogEvent]:
        """Yield what the answer says: who is lost, and the counts of the operation in which ranks differ most."""
        yield from self._lost()
        yield from max(self._counts, key=spread)

    def _lost(self) -> Iterator[LogEvent]:
        """Yield who does not answer, each process once, as dead where that is said of it and its group still has it.

        Where ranks are listed without their processes, as NCCL 2.24 does, one rank and one process are the same.
        """
        gone = {_pid(event): event for event in (*self._dead, *self._of("ras-gone"))}
        ranks = {(_rank(event), _pid(event)): event for event in self._of("ras-missing")}
        if len(gone) == 1 and len(ranks) == 1 and (alone := next(iter(ranks.values()))).numbers["pid"] == 0:
            ranks = {(0, 0): replace(alone, numbers={**alone.numbers, "pid": float(next(iter(gone)))})}
        lost = {_pid(event) for event in self._dead}
        named: set[int] = set()
        for event in ranks.values():
            pid = _pid(event)
            if pid == 0 or pid not in named:
                yield _at(dead(_rank(event), pid), event) if pid in lost else event
            named.add(pid)
        yield from (event for pid, event in gone.items() if pid not in named)
        yield from (event for event in self._told if event.name not in {"ras-gone", "ras-missing"})

    def _of(self, name: str) -> list[LogEvent]:
        return [event for event in self._told if event.name == name]


def spread(counts: Sequence[LogEvent]) -> tuple[float, float]:
    """Return how far apart ranks are; of equal ones the operation that was launched most says most."""
    numbers = [event.numbers["operation"] for event in counts]
    return (max(numbers) - min(numbers), max(numbers)) if numbers else (-1.0, 0.0)


def _at(record: LogEvent, line: LogEvent) -> LogEvent:
    """Return a record at the place of the line that it is made of."""
    return replace(record, offset=line.offset, line=line.line, stamp=line.stamp)


def _rank(event: LogEvent) -> int:
    return int(event.numbers["rank"])


def _pid(event: LogEvent) -> int:
    return int(_number(event, "pid"))


def _number(event: LogEvent, name: str) -> float:
    return event.numbers.get(name, 0.0)
