"""How much a process and its threads moved within a window: processor time, demand, faults, input and output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hangdoc.features.index import Index, Window
from hangdoc.model.link import Links, SocketFlow
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import CpuUse, Progress, ThreadClock, ThreadState


@dataclass(frozen=True)
class ThreadMotion:
    """One thread over a window.

    run_ratio: time on a CPU; demand_ratio: time on a CPU plus time waiting for one, so that a spin on a full machine
    still shows 1.0 (measured: 0.65 of a core while spinning under contention, demand 0.95 to 1.0);
    slices: how often it was put on a CPU; 0 means that it did not execute one instruction.
    name: of the thread ("" when it was never read);
    voluntary_per_s, system_ratio (the kernel's share of its CPU time): where the thread's own counters were read.
    """

    tid: int
    run_ratio: float
    demand_ratio: float
    slices: int
    voluntary_per_s: Reading[float]
    system_ratio: Reading[float]
    name: str = ""

    @property
    def is_still(self) -> bool:
        """Tell whether the thread did not run at all."""
        return self.slices == 0 and self.run_ratio == 0.0


@dataclass(frozen=True)
class Flow:
    """What moved in and out of a process within a window; totals of the window, not rates.

    io_bytes: rchar and wchar together, which do not count recv and send; io_calls: the calls that moved them;
    tcp_bytes: received and acknowledged on TCP connections, those left out that only carry wake-ups; disk_bytes:
    read_bytes;
    faults: minor and major; major_faults: those that waited for a disk; rss_bytes: change, either way; child_cpu_ticks:
    of children that ended.
    """

    seconds: float
    io_bytes: Reading[int]
    io_calls: Reading[int]
    tcp_bytes: Reading[int]
    disk_bytes: Reading[int]
    faults: int
    rss_bytes: int
    child_cpu_ticks: int
    major_faults: int = 0


@dataclass(frozen=True)
class Motion:
    """One process over a window. state: of the main thread at the last reading (R, S, D, T, t, Z).

    is_zombie: the process has ended, and not its main thread alone.
    """

    seconds: float
    state: str
    is_zombie: bool
    states: tuple[str, ...]
    cpu_ratio: Reading[float]
    demand_ratio: Reading[float]
    threads: Reading[dict[int, ThreadMotion]]

    def busiest(self) -> ThreadMotion | None:
        """Return the thread with the highest demand, or None when no thread could be read."""
        if isinstance(self.threads, Missing) or not self.threads.value:
            return None
        return max(self.threads.value.values(), key=lambda thread: (thread.demand_ratio, -thread.tid))


def motion(index: Index, process: ProcessKey, window: Window, clock_ticks_per_s: int) -> Reading[Motion]:
    """Return what a process's clocks say about a window; Missing with fewer than two readings in it."""
    readings = index.known("cpu", process, CpuUse, window)
    if not readings:
        return index.missing("cpu", process, window)
    states = tuple(use.stat.state for _, use in readings)
    (begin_ns, begin), (end_ns, end) = readings[0], readings[-1]
    seconds = (end_ns - begin_ns) / 1e9
    if seconds <= 0:
        return _ONE_READING
    names = _names(index, process, window)
    return Known(_motion(begin, end, seconds, states, (clock_ticks_per_s, names)))


def busiest_ratio(index: Index, process: ProcessKey, window: Window) -> Reading[float | None]:
    """Return the demand of a process's busiest thread, as its motion has it; None when no thread could be read.

    For many windows of a long trace, where everything else of a motion would be thrown away.
    """
    readings = index.known("cpu", process, CpuUse, window)
    if not readings:
        return index.missing("cpu", process, window)
    (begin_ns, begin), (end_ns, end) = readings[0], readings[-1]
    if end_ns <= begin_ns:
        return _ONE_READING
    if isinstance(begin.clocks, Missing) or isinstance(end.clocks, Missing):
        return Known(None)
    before = {clock.tid: clock.run_ns + clock.wait_ns for clock in begin.clocks.value}
    demands = (clock.run_ns + clock.wait_ns - before.get(clock.tid, 0) for clock in end.clocks.value)
    most_ns = max(demands, default=None)
    return Known(None if most_ns is None else most_ns / (end_ns - begin_ns))


_ONE_READING = Missing("cpu", "not-taken", "one reading only: nothing to compare it with")


def _names(index: Index, process: ProcessKey, window: Window) -> dict[int, str]:
    """Return the names of all threads that were read so far: quiet rounds read only those that moved."""
    until_now = Window(0, window.last, 0, window.end_ns)
    return {state.tid: state.name for _, use in index.known("cpu", process, CpuUse, until_now) for state in use.states}


Machine: TypeAlias = tuple[int, dict[int, str]]
"""Clock ticks a second, and the names of the threads that are known."""


def _motion(begin: CpuUse, end: CpuUse, seconds: float, states: tuple[str, ...], machine: Machine) -> Motion:
    threads = _threads(begin, end, seconds, machine)
    if isinstance(threads, Known):
        cpu: Reading[float] = Known(sum(thread.run_ratio for thread in threads.value.values()))
        demand: Reading[float] = Known(sum(thread.demand_ratio for thread in threads.value.values()))
    else:
        ticks = end.stat.utime_ticks + end.stat.stime_ticks - begin.stat.utime_ticks - begin.stat.stime_ticks
        cpu, demand = Known(ticks / machine[0] / seconds), threads
    return Motion(seconds, end.stat.state, end.stat.is_zombie, states, cpu, demand, threads)


def _threads(begin: CpuUse, end: CpuUse, seconds: float, machine: Machine) -> Reading[dict[int, ThreadMotion]]:
    if isinstance(begin.clocks, Missing):
        return begin.clocks
    if isinstance(end.clocks, Missing):
        return end.clocks
    before = {clock.tid: clock for clock in begin.clocks.value}
    earlier, later = _states(begin), _states(end)
    return Known(
        {
            clock.tid: _thread(
                before.get(clock.tid, ThreadClock(clock.tid, 0, 0, 0)),
                clock,
                seconds,
                (earlier.get(clock.tid), later.get(clock.tid)),
                machine,
            )
            for clock in end.clocks.value
        }
    )


def _states(use: CpuUse) -> dict[int, ThreadState]:
    return {state.tid: state for state in use.states}


def _thread(
    before: ThreadClock,
    after: ThreadClock,
    seconds: float,
    states: tuple[ThreadState | None, ThreadState | None],
    machine: Machine,
) -> ThreadMotion:
    run_ratio = (after.run_ns - before.run_ns) / 1e9 / seconds
    wait_ratio = (after.wait_ns - before.wait_ns) / 1e9 / seconds
    return ThreadMotion(
        tid=after.tid,
        run_ratio=run_ratio,
        demand_ratio=run_ratio + wait_ratio,
        slices=after.slices - before.slices,
        voluntary_per_s=_voluntary(states, seconds),
        system_ratio=_system_share(states, run_ratio * seconds * machine[0]),
        name=machine[1].get(after.tid, ""),
    )


_NO_COUNTERS = Missing("cpu", "not-taken", "the thread's own counters were not read twice in this window")

_FEWEST_TICKS = 20
"""Ticks of CPU time under which the split into user and system time is noise, because it is sampled by the tick:
20 ticks are 0.2 s at 100 Hz. Arbitrary."""


def _voluntary(states: tuple[ThreadState | None, ThreadState | None], seconds: float) -> Reading[float]:
    before, after = states
    if before is None or after is None:
        return _NO_COUNTERS
    if isinstance(before.voluntary_switches, Missing):
        return before.voluntary_switches
    if isinstance(after.voluntary_switches, Missing):
        return after.voluntary_switches
    return Known((after.voluntary_switches.value - before.voluntary_switches.value) / seconds)


def _system_share(states: tuple[ThreadState | None, ThreadState | None], ticks: float) -> Reading[float]:
    before, after = states
    if before is None or after is None:
        return _NO_COUNTERS
    system = after.stime_ticks - before.stime_ticks
    total = system + after.utime_ticks - before.utime_ticks
    if total < _FEWEST_TICKS or ticks < _FEWEST_TICKS:
        return Missing("cpu", "not-taken", "too little CPU time to tell user from system time")
    return Known(system / total)


TELL_SLICES = ("cpu", "progress", "links")
"""Probes that tell of what kind a slice is (see slices.py)."""


def flow(index: Index, process: ProcessKey, window: Window) -> Reading[Flow]:
    """Return what moved through a process within a window; Missing with fewer than two readings in it.

    Missing, too, where the first or the last one was refused: over what is left the same bytes are a higher rate; and
    where a reading that tells slices apart is lost from the trace: the window may then reach back to other times.
    """
    lost = next((probe for probe in TELL_SLICES if index.has_lost(probe, window)), None)
    if lost is not None:
        return index.missing(lost, process, window)
    readings = index.known("progress", process, Progress, window)
    if len(readings) < 2 or index.refused_at_an_end("progress", process, window):
        return index.missing("progress", process, window)
    (begin_ns, begin), (end_ns, end) = readings[0], readings[-1]
    io_bytes, io_calls, disk_bytes = _io(begin, end)
    faults = end.minor_faults + end.major_faults - begin.minor_faults - begin.major_faults
    return Known(
        Flow(
            seconds=(end_ns - begin_ns) / 1e9,
            io_bytes=io_bytes,
            io_calls=io_calls,
            tcp_bytes=tcp_bytes(index, process, window),
            disk_bytes=disk_bytes,
            faults=faults,
            rss_bytes=abs(end.rss_bytes - begin.rss_bytes),
            child_cpu_ticks=end.child_cpu_ticks - begin.child_cpu_ticks,
            major_faults=end.major_faults - begin.major_faults,
        )
    )


WAKE_BYTES = 64
"""Bytes a call (or a TCP segment) up to which reads and writes are wake-ups, not data: an eventfd moves 8, a self-pipe
1, and a store that polls for missing ranks 16 a turn (4,400 bytes/s while nobody came)."""


def tcp_bytes(index: Index, process: ProcessKey, window: Window) -> Reading[int]:
    """Return what TCP moved; 0 in a trace that is older than the probe, whose evidence may only add work.

    A connection that was not there at the first reading counts whole: at worst, one from before the window is taken
    for work once.
    """
    if not index.was_taken("links"):
        return Known(0)
    flows: list[dict[int, SocketFlow]] = []
    for _, reading in index.known("links", process, Links, window):
        if isinstance(reading.tcp, Missing):
            return reading.tcp
        flows.append({flow.fd: flow for flow in reading.tcp.value})
    if len(flows) < 2:
        return index.missing("links", process, window)
    return Known(sum(_moved(flows[0].get(fd), flow) for fd, flow in flows[-1].items()))


def _moved(before: SocketFlow | None, after: SocketFlow) -> int:
    if before is None or before.received_bytes > after.received_bytes or before.acked_bytes > after.acked_bytes:
        before = SocketFlow(after.fd, 0, 0)  # another connection under the same number
    moved = after.received_bytes + after.acked_bytes - before.received_bytes - before.acked_bytes
    return 0 if moved <= WAKE_BYTES * (after.segments - before.segments) else moved


def _io(begin: Progress, end: Progress) -> tuple[Reading[int], Reading[int], Reading[int]]:
    if isinstance(begin.io, Missing):
        return begin.io, begin.io, begin.io
    if isinstance(end.io, Missing):
        return end.io, end.io, end.io
    before, after = begin.io.value, end.io.value
    moved = after.rchar_bytes + after.wchar_bytes - before.rchar_bytes - before.wchar_bytes
    calls = after.read_calls + after.write_calls - before.read_calls - before.write_calls
    return Known(moved), Known(calls), Known(after.read_bytes - before.read_bytes)
