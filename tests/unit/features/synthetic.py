"""Traces made by hand: a few processes, a round a second, and only the readings that a test speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hangdoc.features.index import Window, window_of
from hangdoc.model.link import Link, LinkEnd, Links, SocketFlow, Through
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.process import EngineName, Launch, Process, ProcessKey, Role
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload, Sample, Snapshot
from hangdoc.model.stack import Frame, Stack, Stacks, ThreadStack
from hangdoc.model.thread import (
    CpuUse,
    ProcessIo,
    ProcessStat,
    Progress,
    SystemCall,
    ThreadClock,
    ThreadState,
    ThreadWait,
    Waits,
)
from hangdoc.trace.records import Header, Trace

SECOND_NS = 10**9
KEY = ProcessKey(100, 1)
PARKED = SystemCall(202, (0x7F00, 0x189, 0, 0, 0, 0xFFFFFFFF))
"""futex(2) on x86_64: private, without a timeout."""

Readings = Mapping[tuple[str, ProcessKey | None], Payload | Missing]


def process(
    pid: int = 100, role: Role = "other", ppid: int = 1, title: str = "", rank: Mapping[str, int] | None = None
) -> Process:
    return Process(key=ProcessKey(pid, 1), ppid=ppid, role=role, title=title, rank=dict(rank or {}))


def trace(
    rounds: Sequence[Readings],
    processes: Sequence[Process] | Sequence[Sequence[Process]] = (),
    stacks: Iterable[Stack] = (),
    engine: EngineName = "generic",
    settings: Mapping[str, str] | None = None,
) -> Trace:
    """One snapshot a round; processes: the roster, or one a round."""
    rosters = [_roster(processes, number) for number in range(len(rounds))]
    snapshots = tuple(
        _snapshot(number, roster, readings)
        for number, (roster, readings) in enumerate(zip(rosters, rounds, strict=True))
    )
    root = rosters[0][0].key
    launch = Launch(root=root, engine=engine, processes=rosters[0], settings=dict(settings or {}))
    header = Header(
        hangdoc="0",
        host="h",
        machine="x86_64",
        cpus=2,
        clock_ticks_per_s=100,
        started_wall_ns=0,
        interval_s=1.0,
        launch=launch,
    )
    return Trace(header=header, stacks=tuple(stacks), snapshots=snapshots)


def _roster(processes: Sequence[Process] | Sequence[Sequence[Process]], number: int) -> tuple[Process, ...]:
    found = processes[number] if processes and not isinstance(processes[0], Process) else processes
    return tuple(one for one in found if isinstance(one, Process)) if processes else (process(),)


def _snapshot(number: int, roster: tuple[Process, ...], readings: Readings) -> Snapshot:
    at_ns = (number + 1) * SECOND_NS
    samples = tuple(
        Sample(probe=probe, process=key, taken_ns=at_ns, reading=value if isinstance(value, Missing) else Known(value))
        for (probe, key), value in readings.items()
    )
    return Snapshot(index=number, at_ns=at_ns, wall_ns=at_ns, processes=roster, samples=samples)


def whole(of: Trace) -> Window:
    return window_of(of, 0, len(of.snapshots) - 1)


def cpu(*clocks: ThreadClock, state: str = "S", states: tuple[ThreadState, ...] = ()) -> CpuUse:
    return CpuUse(ProcessStat(state, 1, 0, 0, 0, 0, len(clocks), 0), Known(clocks), states)


def clock(run_s: float = 0.0, wait_s: float = 0.0, slices: int = 0, tid: int = 100) -> ThreadClock:
    return ThreadClock(tid, int(run_s * SECOND_NS), int(wait_s * SECOND_NS), slices)


def progress(read_bytes: int = 0, faults: int = 0) -> Progress:
    return Progress(Known(ProcessIo(read_bytes, 0, read_bytes // 4096, 0, 0, 0)), 0, faults, 0, 0, 0)


def waits(*calls: tuple[int, SystemCall | None]) -> Waits:
    return Waits("x86_64", 0, tuple(ThreadWait(tid, "S", Known(call), Known("")) for tid, call in calls))


def link(
    tid: int, *ends: int, through: Through = "pipe", weak: bool = False, member: bool = True, ticks: int = 0
) -> Link:
    """Make a wait of a thread for one of these processes."""
    rests = None if member else False
    others = (LinkEnd(ProcessKey(pid, 1), member, None, False, "python", ticks, rests=rests) for pid in ends)
    return Link(tid=tid, through=through, detail="pipe on descriptor 3", ends=Known(tuple(others)), weak=weak)


def links(*found: Link, received: int | None = None, segments: int = 0, thorough: bool = True) -> Links:
    flows = () if received is None else (SocketFlow(5, received, 0, segments),)
    return Links(links=found, tcp=Known(flows), thorough=thorough)


def dump(*stacks: tuple[int, int]) -> Stacks:
    """Make a dump of (thread, number of its stack)."""
    return Stacks(tuple(ThreadStack(tid, "", False, False, number) for tid, number in stacks))


def stack(*functions: str, file: str = "engine/program.py") -> Stack:
    """Make a stack, innermost first; "name:7" is line 7."""
    pairs = (name.partition(":") for name in functions)
    return tuple(Frame(function, file, int(line or 1)) for function, _, line in pairs)


def tail(*events: LogEvent, size: int = 100, modified_s: float = 0.0, first: bool = False) -> LogTail:
    return LogTail("server.log", (100,), size, int(modified_s * SECOND_NS), events, first)
