"""Where the launch's output goes, since when it is silent, and which milestones its log names."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.hidden import Hidden, hidden, holding, last_look
from hangdoc.features.index import Index, Window
from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.log import HEALTH_CHECKS, REVIEWS, LogEvent, LogTail, Phase
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading

OUTPUT_DESCRIPTORS = (1, 2)

HARD_WATCHDOG = "watchdog"
"""The complaint after which a server ends itself; all others may pass."""


_ENDS = frozenset({"cancelled", "exit-zero"})
"""Lines of whoever started the launch, by which it ended and no failure is told."""


@dataclass(frozen=True)
class LogState:
    """What the launch's log says up to a moment.

    milestones: every milestone line so far, oldest first; crashes: crash and watchdog lines; fresh: lines of any kind
    that were written within the window and say something new; progress: progress lines so far, each text once, in the
    order in which they were last written; grown_bytes: growth of the file in the window; silent_s: since its last
    write, at the end of the window; until_known: somebody watched
    until then; complaints: all lines by which somebody complains of a wait; endless: the newest batch and progress
    lines; errors: lines of failures that a server may survive;
    refused: the newest answers that end a row of failed ones; lines, size_bytes, last_stamp: of the whole file;
    has_file_time: the file's own time of change is known.
    """

    milestones: tuple[LogEvent, ...]
    crashes: tuple[LogEvent, ...]
    fresh: tuple[LogEvent, ...]
    grown_bytes: int
    silent_s: float
    path: str
    progress: tuple[LogEvent, ...] = ()
    complaints: tuple[LogEvent, ...] = ()
    endless: tuple[LogEvent, ...] = ()
    errors: tuple[LogEvent, ...] = ()
    refused: tuple[LogEvent, ...] = ()
    lines: int = 0
    size_bytes: int = 0
    last_stamp: str = ""
    until_known: bool = True
    has_file_time: bool = True

    def reached(self, name: str) -> bool:
        """Tell whether a milestone stands in the log."""
        return any(event.name == name for event in self.milestones)

    @property
    def draining(self) -> int:
        """The requests that it still waits for, by the last line of its end; 0 where that says none."""
        told = [event for event in self.milestones if event.phase == "shutdown"]
        return int(told[-1].numbers.get("open", 0)) if told else 0

    @property
    def unexplained_end(self) -> LogEvent | None:
        """The line that says that it ended, where none says why: cancelled from outside, or left without an error."""
        told = any(event.phase == "shutdown" for event in self.milestones)
        ends = [event for event in self.milestones if event.name in _ENDS]
        if told or not ends:
            return None
        return None if any(event.offset > ends[-1].offset for event in (*self.milestones, *self.endless)) else ends[-1]

    @property
    def phase(self) -> Phase:
        """The phase that the newest milestone opened."""
        phases = [event.phase for event in self.milestones if event.phase != "unknown"]
        return phases[-1] if phases else "unknown"


def log_state(index: Index, window: Window, end_wall_ns: int) -> Reading[LogState]:
    """Return the state of the launch's log at the end of a window; Missing when no log could be read."""
    until_now = Window(0, window.last, 0, window.end_ns)
    tails = index.known("log", None, LogTail, until_now)
    if not tails:
        return index.missing("log", None, until_now)
    path = max((tail for _, tail in tails), key=lambda tail: (tail.size_bytes, tail.path)).path
    of_path = [(at_ns, tail) for at_ns, tail in tails if tail.path == path]
    every = [event for _, tail in of_path for event in tail.events]
    inside = [tail for at_ns, tail in of_path if at_ns > window.start_ns and not tail.first]
    before = [tail for at_ns, tail in of_path if at_ns <= window.start_ns] or [of_path[0][1]]
    last = of_path[-1][1]
    return Known(
        LogState(
            milestones=tuple(event for event in every if event.kind == "milestone"),
            crashes=tuple(event for event in every if event.kind == "crash" or event.name == HARD_WATCHDOG),
            fresh=_fresh(every, tuple(event for tail in inside for event in tail.events)),
            grown_bytes=max(0, last.size_bytes - before[-1].size_bytes),
            silent_s=max(0.0, (end_wall_ns - last.modified_wall_ns) / 1e9),
            path=path,
            progress=_last_of_each(every),
            complaints=tuple(event for event in every if event.kind == "watchdog"),
            endless=tuple(event for event in every if _is_endless(event)),
            refused=tuple(event for event in every if event.numbers.get("in_a_row", 0) >= FEWEST_REFUSED),
            errors=tuple(event for event in every if event.kind == "error"),
            lines=last.lines,
            size_bytes=last.size_bytes,
            last_stamp=last.last_stamp,
            until_known=last.until_known,
            has_file_time=last.modified_wall_ns > 0,
        )
    )


FEWEST_REFUSED = 3
"""Failed answers in a row that mean something: one request may be wrong in itself, and be tried again. Arbitrary."""


def refused_words(event: LogEvent) -> str:
    """Return what the newest of failed answers in a row says."""
    what = "health checks" if event.name in HEALTH_CHECKS else "requests"
    return f"the last {event.numbers['in_a_row']:.0f} {what} in a row failed, {event.numbers['status']:.0f}"


def _is_endless(event: LogEvent) -> bool:
    return event.kind in {"batch", "progress"} and event.name not in HEALTH_CHECKS


def _last_of_each(every: list[LogEvent]) -> tuple[LogEvent, ...]:
    """Return the last progress line of each text: bars write the same one again and again."""
    bars = {(event.name, event.text): event for event in every if event.kind == "progress"}
    return tuple(sorted(bars.values(), key=lambda event: event.offset))


def _fresh(every: list[LogEvent], inside: tuple[LogEvent, ...]) -> tuple[LogEvent, ...]:
    """Leave out what a hung launch prints as well: bars that stand, answers of those in front, looks back.

    A monitor thread draws bars again every 10 s. The HTTP server answers health checks and refuses requests by itself.
    """
    before: dict[str, tuple[str, float | None]] = {}
    moved = set()
    for event in every:
        told = event.text, event.numbers.get("done")
        if event.kind != "progress" or before.get(event.name, told) != told:
            moved.add(event.offset)
        before[event.name] = told
    return tuple(event for event in inside if event.offset in moved and event.name not in _NO_PROGRESS)


_NO_PROGRESS = HEALTH_CHECKS | REVIEWS | {"request-failed"}


@dataclass(frozen=True)
class OutputFile:
    """One of a process's output descriptors at its last reading. hidden: what was printed to it and is not there.

    grown_bytes: by how much its file grew, or how far the fill of its pipe changed, within the window.
    """

    process: Process
    file: OpenFile
    hidden: Reading[Hidden]
    grown_bytes: Reading[int]


def outputs(index: Index, processes: tuple[Process, ...], window: Window, boot_wall_ns: int) -> tuple[OutputFile, ...]:
    """Return descriptors 1 and 2 of every process whose descriptors could be read, and what else text waits for.

    These are files that hold text back, and pipes that a thread was seen to write to.

    boot_wall_ns: Unix time at which the machine started.
    """
    found = []
    for process in processes:
        readings = [files for _, files in index.known("fds", process.key, OpenFiles, window)]
        if not readings:
            continue
        look = last_look(index, process.key, window, boot_wall_ns)
        also = holding(look)
        found += [
            OutputFile(process, file, hidden(look, file), _grown(readings, file))
            for file in readings[-1].files
            if file.fd in OUTPUT_DESCRIPTORS
            or (file.kind == "file" and file.fd in also)
            or isinstance(file.pipe, Known)
        ]
    return tuple(found)


def _grown(readings: list[OpenFiles], file: OpenFile) -> Reading[int]:
    """Return how much more a descriptor's file or pipe holds than at the first reading; 0 for what holds nothing."""
    same = [one for files in readings for one in files.files if (one.fd, one.target) == (file.fd, file.target)]
    if file.kind not in {"file", "pipe"}:
        return Known(0)
    if len(same) < 2:
        return Missing("fds", "not-taken", "the descriptor was read only once")
    first, last = _holds(same[0]), _holds(same[-1])
    if isinstance(first, Missing) or isinstance(last, Missing):
        return first if isinstance(first, Missing) else last
    return Known(last.value - first.value)


def _holds(file: OpenFile) -> Reading[int]:
    if file.kind == "file":
        return file.size_bytes
    return file.pipe if isinstance(file.pipe, Missing) else Known(file.pipe.value.queued_bytes)


def descriptors(index: Index, process: ProcessKey, window: Window) -> Reading[tuple[OpenFile, ...]]:
    """Return the last complete list of a process's open files up to the end of a window."""
    until_now = Window(0, window.last, 0, window.end_ns)
    complete = [files for _, files in index.known("fds", process, OpenFiles, until_now) if files.complete]
    if not complete:
        missing = index.missing("fds", process, until_now)
        return Missing("fds", missing.reason, missing.detail, missing.remedy)
    return Known(complete[-1].files)


def opened_gpu(index: Index, process: ProcessKey, window: Window) -> Reading[bool]:
    """Tell whether a process had a GPU's device file open at the last complete look."""
    until_now = Window(0, window.last, 0, window.end_ns)
    looks = [files.nvidia for _, files in index.known("fds", process, OpenFiles, until_now) if files.nvidia is not None]
    if not looks:
        return index.missing("fds", process, until_now)
    return Known(bool(looks[-1]))
