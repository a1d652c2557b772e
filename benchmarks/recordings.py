"""A recording of a hung launch with as many ranks, threads and seconds as asked for, built in memory from raw readings.

Seven of eight ranks wait in a collective for the last one, which stands elsewhere. What changes from round to round is
what changed in recordings of real SGLang launches (tests/golden): the clocks of the threads that poll and of those that
the kernel woke, the polled TCP counters, and every ten seconds a thorough look at each thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.link import Link, LinkEnd, Links, SocketFlow
from hangdoc.model.log import LogTail
from hangdoc.model.process import Launch, Process, ProcessKey
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
from hangdoc.trace.builder import TraceBuilder
from hangdoc.trace.records import Header, Trace

SECOND_NS = 10**9
BEGIN_WALL_NS = 1_795_961_084 * SECOND_NS
POLLING_OF = 20
"""One thread in twenty wakes up every round: of 53 threads of a real rank 1 to 4 did."""

THOROUGH_EVERY = 10
FILES, FLOWS, PACKAGES = 80, 10, "/opt/venv/lib/python3.12/site-packages"
POLL, FUTEX = 7, 202


def hung_launch(ranks: int = 8, threads: int = 150, seconds: int = 30, seed: int = 1) -> Trace:
    """Return the recording; threads: of each rank."""
    recording = _Recording(ranks, threads, seed)
    for second in range(seconds + 1):
        recording.add(second, thorough=second % THOROUGH_EVERY == 0 or second == seconds)
    return recording.builder.trace()


class _Recording:
    def __init__(self, ranks: int, threads: int, seed: int) -> None:
        self._random = Random(seed)
        self._launcher = Process(key=ProcessKey(1000, 5000), ppid=1, role="launcher", title="python3 -m sglang")
        self._ranks = [_rank(number) for number in range(ranks)]
        processes = (self._launcher, *self._ranks)
        launch = Launch(
            root=self._launcher.key,
            engine="sglang",
            engine_version=Known("0.5.23"),
            settings={"tp_size": str(ranks)},
            processes=processes,
        )
        header = Header(
            hangdoc="0.1.0",
            host="node1",
            machine="x86_64",
            cpus=2,
            clock_ticks_per_s=100,
            started_wall_ns=BEGIN_WALL_NS,
            interval_s=1.0,
            launch=launch,
        )
        self.builder = TraceBuilder(header)
        self._clocks = {
            one.key: [
                ThreadClock(tid, self._random.randrange(10**10), self._random.randrange(10**7), 9 + tid % 999)
                for tid in _tids(one, threads if one.role == "scheduler" else 4)
            ]
            for one in processes
        }

    def add(self, second: int, *, thorough: bool) -> None:
        """Add the round of a second."""
        at_ns = 9_000 * SECOND_NS + second * SECOND_NS + self._random.randrange(10**6)
        samples = [
            Sample(probe=probe, process=one.key, taken_ns=at_ns + self._random.randrange(10**7), reading=Known(payload))
            for one in (self._launcher, *self._ranks)
            for probe, payload in self._payloads(one, thorough=thorough)
        ]
        tail = LogTail("/srv/log/server.log", (1000,), 99_000, BEGIN_WALL_NS - 600 * SECOND_NS, (), first=second == 0)
        samples.append(Sample(probe="log", process=None, taken_ns=at_ns, reading=Known(tail)))
        gpu = Missing("gpu", "not-installed", "no NVML here")
        samples.append(Sample(probe="gpu", process=None, taken_ns=at_ns, reading=gpu))
        self.builder.add(
            Snapshot(
                index=second,
                at_ns=at_ns,
                wall_ns=BEGIN_WALL_NS + second * SECOND_NS,
                processes=(self._launcher, *self._ranks),
                samples=tuple(samples),
            )
        )

    def _payloads(self, one: Process, *, thorough: bool) -> Iterator[tuple[str, Payload]]:
        clocks = self._clocks[one.key]
        moved = clocks[POLLING_OF - 1 :: POLLING_OF]
        for number in range(POLLING_OF - 1, len(clocks), POLLING_OF):
            clocks[number] = self._later(clocks[number])
        states = clocks if thorough else [clocks[0], *moved]
        stat = ProcessStat("S", one.ppid, clocks[0].run_ns // 10**7, 77, 99_999, 0, len(clocks), 574_072 << 10)
        yield "cpu", CpuUse(stat, Known(tuple(clocks)), tuple(_state(clock) for clock in states))
        yield "progress", Progress(Known(ProcessIo(10**9, 10**8, 10**5, 10**4, 0, 0)), 574_072 << 10, 99_999, 0, 12, 1)
        looked_at = clocks if thorough else clocks[:1]
        yield "futex", Waits("x86_64", 0, tuple(map(_wait, looked_at)))
        yield "fds", _files(FILES if thorough else 2)
        if one.role == "scheduler":
            yield "links", self._links(one, thorough=thorough)
        if thorough:
            yield "stacks", self._stacks(one)

    def _later(self, clock: ThreadClock) -> ThreadClock:
        ran_ns = self._random.randrange(10**6)
        return ThreadClock(
            clock.tid, clock.run_ns + ran_ns, clock.wait_ns + ran_ns // 9, clock.slices + ran_ns // 10**5
        )

    def _links(self, one: Process, *, thorough: bool) -> Links:
        ranks = [rank.key for rank in self._ranks]
        flows = tuple(
            SocketFlow(20 + fd, self._random.randrange(10**4), self._random.randrange(10**4), 200)
            if fd < 2
            else SocketFlow(20 + fd, 5_000 + fd, 6_000 + fd, 200)
            for fd in range(FLOWS)
        )
        links = tuple(
            Link(
                tid=one.key.pid * 1000 + 20 * number,
                through="tcp",
                detail=f"TCP on descriptor {20 + number}, port {26_444 + number} to port {35_000 + number}",
                ends=Known((LinkEnd(ranks[number % len(ranks)], True, 18, False, "sglang::schedul", None),)),
                weak=True,
            )
            for number in range(FLOWS)
        )
        return Links(links if thorough else (), Known(flows), thorough=thorough)

    def _stacks(self, one: Process) -> Stacks:
        tids = _tids(one, 6)
        stands = "load" if one.rank.get("tp") == len(self._ranks) - 1 else "all_reduce"
        names = ["MainThread", *(f"Thread-{number}" for number in range(1, 6))]
        stacks = [_stack(stands if number == 0 else f"helper_{number}") for number in range(6)]
        return Stacks(
            tuple(
                ThreadStack(tid, name, False, False, self.builder.intern(stack))
                for tid, name, stack in zip(tids, names, stacks, strict=True)
            )
        )


def _rank(number: int) -> Process:
    return Process(
        key=ProcessKey(1001 + number, 5001 + number),
        ppid=1000,
        role="scheduler",
        rank={"tp": number},
        title=f"sglang::scheduler_TP{number}",
        member_because="child of 1000",
    )


def _tids(one: Process, count: int) -> list[int]:
    return [one.key.pid, *(one.key.pid * 1000 + number for number in range(1, count))]


def _state(clock: ThreadClock) -> ThreadState:
    return ThreadState(clock.tid, "pt_gloo_runloop", "S", 900, 3, 7, 0, Known(clock.slices), Known(4))


def _wait(clock: ThreadClock) -> ThreadWait:
    call = SystemCall(FUTEX, (0x7F00_0000_0000 + clock.tid * 64, 393, 0, 0, 0, 2**32 - 1))
    return ThreadWait(clock.tid, "S", Known(call), Known("futex_do_wait"))


def _files(count: int) -> OpenFiles:
    none = Missing("fds", "unsupported", "not a pipe")
    return OpenFiles(
        complete=count == FILES,
        files=tuple(
            OpenFile(
                fd=1 + number,
                kind="file" if number < 2 else "socket",
                target="/srv/log/server.log" if number < 2 else f"socket:[{40_000 + number}]",
                access="w",
                position=Known(99_000) if number < 2 else none,
                size_bytes=Known(99_000) if number < 2 else none,
                modified_wall_ns=Known(BEGIN_WALL_NS - 600 * SECOND_NS) if number < 2 else none,
                pipe=none,
            )
            for number in range(count)
        ),
        nvidia=(),
    )


def _stack(innermost: str) -> Stack:
    files = (
        f"{PACKAGES}/torch/distributed/distributed_c10d.py",
        f"{PACKAGES}/sglang/srt/managers/scheduler.py",
        "/usr/lib/python3.12/threading.py",
    )
    inner = Frame(innermost, files[0], 2_501)
    return (inner, *(Frame(f"{innermost}_caller_{depth}", files[depth % 3], 100 + depth) for depth in range(1, 24)))
