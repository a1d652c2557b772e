"""From the notation of the case files to a trace: what each process shows in each round, and nothing a test invents.

Only raw readings are made here, those that probes take; rates, waits and phases are for hangdoc to find in them. The
notation itself is told in README.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import structs

from hangdoc.launch.recognise import engine_named, recognise
from hangdoc.logs.lines import events
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.ending import Ended
from hangdoc.model.fd import OpenFiles
from hangdoc.model.gpu import Gpus
from hangdoc.model.link import Link, LinkEnd, Links, SocketFlow
from hangdoc.model.lock_file import LockFile, LockFiles
from hangdoc.model.locks import FutexWait, Gil, Locks, PythonLock
from hangdoc.model.log import LogTail
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload
from hangdoc.model.stack import Stack, Stacks, ThreadStack
from hangdoc.model.surroundings import Room, Surroundings
from hangdoc.model.thread import ProcessIo, Progress, ThreadClock, ThreadState, ThreadWait, Waits
from hangdoc.trace.records import Trace
from tests.cases import counts, from_log
from tests.cases.gpus import KEYS as GPU_KEYS
from tests.cases.gpus import gpu
from tests.cases.words import at, call, frame, open_file
from tests.unit.features import synthetic

ROUNDS, SECOND_NS, TICKS_PER_S = 5, synthetic.SECOND_NS, 100
BUSY = 0.8
"""Share of a core from which a thread is shown as running unless the case says otherwise."""

SLICES_PER_S = 250
"""How often a thread that uses a whole core is put on it, where the case does not say."""

NO_LOG = Missing("log", "unsupported", "no member has a log file open for writing")
DENIED = "denied"
T = TypeVar("T")

LAUNCH_KEYS = frozenset(
    {
        "like",
        "engine",
        "version",
        "settings",
        "rounds",
        "process",
        "gpu",
        "log",
        "outside",
        "unread",
        "surroundings",
        "ras",
    }
)
THREAD_KEYS = frozenset(
    {"tid", "name", "cpu", "system", "starved", "wakes", "state", "wait", "sleep_left", "channel", "stack", "gil"}
)
PROCESS_KEYS = THREAD_KEYS | {
    "pid", "parent", "title", "role", "rank", "from", "until", "threads", "reads", "calls", "disk", "faults",
    "major_faults", "memory", "children_cpu", "tcp", "files", "nvidia", "waits_for", "locks", "python_locks",
    "gil_holder", "hidden", "lock_files", "ended", "handles", "unread",
}  # fmt: skip
WAIT_KEYS = frozenset({"through", "to", "detail", "weak", "tid", "ticks", "inherited"})
LOCK_FILE_KEYS = frozenset({"tid", "path", "kind", "holders", "ticks", "elsewhere", "quiet"})
ENDED_KEYS = frozenset({"code", "signal"})
AROUND_KEYS = frozenset({"shared_memory", "listeners", "listening", "proxied", "orphans"})
ROOM = [64 << 30, 63 << 30]
"""Total and free bytes of /dev/shm where a case does not say."""
LOG_KEYS = frozenset({"path", "before", "after", "silent"})


def trace_of(told: Mapping[str, Any]) -> Trace:
    """Return the trace of one launch block. ValueError says which word of it is not of the notation."""
    if told.get("from_log", False):
        _check_of_log(told)
        return from_log.trace_of_log(told)
    _only(told, LAUNCH_KEYS, "launch")
    return Scene(told).trace()


def _check_of_log(told: Mapping[str, Any]) -> None:
    _only(told, from_log.LAUNCH_KEYS, "launch known from a log")
    _only(told.get("log", {}), from_log.LOG_KEYS, "log that is all there is")
    for one in told.get("process", ()):
        _only(one, from_log.PROCESS_KEYS, "dumped process")
        for thread in one.get("threads", ()):
            _only(thread, from_log.THREAD_KEYS, "dumped thread")


def _only(told: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    if unknown := sorted(set(told) - known):
        raise ValueError(f"a {what} has no {', '.join(unknown)}; it may have {', '.join(sorted(known))}")


def total(rate: Any, number: int) -> float:
    """Return what came together in the slices before a round, of a rate that may change from slice to slice."""
    return float(sum(at(rate, slice_) for slice_ in range(number)))


@dataclass
class Scene:
    """A launch block while it becomes a trace: the table of stacks fills up on the way."""

    told: Mapping[str, Any]
    stacks: list[Stack] = field(default_factory=list)

    def trace(self) -> Trace:
        rounds = range(self.told.get("rounds", ROUNDS))
        rosters = [self._roster(number) for number in rounds]
        readings = [self._readings(number, roster) for number, roster in zip(rounds, rosters, strict=True)]
        engine = self.told.get("engine", "sglang")
        return synthetic.trace(readings, rosters, self.stacks, engine=engine, settings=self.told.get("settings"))

    def _roster(self, number: int) -> list[Process]:
        first = self.told["process"][0]["pid"]
        present = [one for one in self.told["process"] if one.get("from", 0) <= number < one.get("until", 10**6)]
        return sorted((_process(one, first) for one in present), key=lambda process: process.key)

    def _readings(self, number: int, roster: list[Process]) -> synthetic.Readings:
        pids = {process.key.pid for process in roster}
        found: dict[tuple[str, ProcessKey | None], Payload | Missing] = {}
        for one in self.told["process"]:
            _only(one, PROCESS_KEYS, "process")
            if (reading := _ending(one, number)) is not None:
                found["exits", ProcessKey(one["pid"], 1)] = reading
            if one["pid"] not in pids:
                continue
            for probe, take in PROBES.items():
                refused = probe in one.get("unread", ())
                key = ProcessKey(one["pid"], 1)
                found[probe, key] = Missing(probe, DENIED) if refused else take(self, one, number)
        for probe, read in HOST_PROBES.items():
            refused = probe in self.told.get("unread", ())
            if probe in ASKED_SELDOM and not refused and probe not in self.told:
                continue
            found[probe, None] = Missing(probe, DENIED) if refused else read(self, number)
        return found

    def cpu(self, one: Mapping[str, Any], number: int) -> Payload:
        threads = _threads(one)
        state = at(one.get("state", _state(one)), number)
        clocks = tuple(_clock(thread, number) for thread in threads)
        return synthetic.cpu(*clocks, state=state, states=tuple(_thread_state(thread, number) for thread in threads))

    def progress(self, one: Mapping[str, Any], number: int) -> Payload:
        read_bytes = round(total(one.get("reads", 0), number))
        calls = round(total(one.get("calls", 0), number)) or read_bytes // 4096
        disk_bytes = round(total(one.get("disk", 0), number))
        return Progress(
            io=Known(ProcessIo(read_bytes, 0, calls, 0, disk_bytes, 0)),
            rss_bytes=round(total(one.get("memory", 0), number)),
            minor_faults=round(total(one.get("faults", 0), number)),
            major_faults=round(total(one.get("major_faults", 0), number)),
            child_minor_faults=0,
            child_cpu_ticks=round(total(one.get("children_cpu", 0), number) * TICKS_PER_S),
        )

    def futex(self, one: Mapping[str, Any], number: int) -> Payload:
        caught = sum(1 << (signal - 1) for signal in one.get("handles", ()))
        return Waits("x86_64", 0, tuple(_wait(thread, number) for thread in _threads(one)), caught)

    def stacks_of(self, one: Mapping[str, Any], number: int) -> Payload:
        python = [thread for thread in _threads(one) if "stack" in thread]
        if not python:
            return Missing("stacks", "unsupported", "not a Python process")
        return Stacks(tuple(self._thread_stack(thread, number) for thread in python))

    def _thread_stack(self, thread: Mapping[str, Any], number: int) -> ThreadStack:
        seen = thread["stack"]
        text = seen[number % len(seen)] if isinstance(seen, list) else seen
        stack = tuple(frame(line) for line in text.strip().splitlines())
        if stack not in self.stacks:
            self.stacks.append(stack)
        busy = at(thread.get("cpu", 0), number) >= BUSY
        name = thread.get("name", "MainThread")
        return ThreadStack(thread["tid"], name, busy, thread.get("gil", busy), self.stacks.index(stack))

    def fds(self, one: Mapping[str, Any], _number: int) -> Payload:
        files = tuple(open_file(text) for text in one.get("files", ()))
        devices = tuple(f"/dev/nvidia{index}" for index in one.get("nvidia", ()))
        return OpenFiles(complete=True, files=files, nvidia=devices)

    def links(self, one: Mapping[str, Any], number: int) -> Payload:
        found = tuple(self._link(wait, one["pid"], number) for wait in one.get("waits_for", ()))
        received = round(total(one.get("tcp", 0), number))
        flows = (SocketFlow(5, received, 0, received // 1400),) if "tcp" in one else ()
        return Links(links=found, tcp=Known(flows))

    def _link(self, wait: Mapping[str, Any], pid: int, number: int) -> Link:
        _only(wait, WAIT_KEYS, "wait")
        ticks = wait.get("ticks")
        ends = tuple(self._end(other, ticks, number, inherited=wait.get("inherited", False)) for other in wait["to"])
        detail = wait.get("detail", f"{wait['through']} on descriptor 3")
        tid, weak = wait.get("tid", pid), wait.get("weak", False)
        return Link(tid=tid, through=wait["through"], detail=detail, ends=Known(ends), weak=weak)

    def _end(self, pid: int, ticks: Any, number: int, *, inherited: bool = False) -> LinkEnd:
        """Return a process at the other end of a wait; ticks: the CPU time it uses a second, None when unread."""
        members = {other["pid"] for other in self.told["process"]}
        commands = {other["pid"]: other.get("command", "python") for other in self.told.get("outside", ())}
        used = None if ticks is None else round(total(ticks, number))
        end = LinkEnd(ProcessKey(pid, 1), pid in members, None, inherited, commands.get(pid, "python"), used)
        told = next((other for other in self.told.get("outside", ()) if other["pid"] == pid), {})
        stopped, rests = told.get("stopped", False), told.get("rests", False) if told else None
        return structs.replace(end, stopped=stopped, awaited_pid=told.get("awaits"), rests=rests)

    def lock_files(self, one: Mapping[str, Any], number: int) -> Payload:
        return LockFiles(tuple(self._lock_file(file, one["pid"], number) for file in one.get("lock_files", ())))

    def _lock_file(self, told: Mapping[str, Any], pid: int, number: int) -> LockFile:
        _only(told, LOCK_FILE_KEYS, "lock file")
        ends = tuple(self._end(other, told.get("ticks"), number) for other in told.get("holders", ()))
        return LockFile(
            tid=told.get("tid", pid),
            kind=told.get("kind", "existence"),
            path=told.get("path", "/cache/build/lock"),
            holders=Known(ends),
            elsewhere=told.get("elsewhere", False),
            quiet_s=Known(float(told.get("quiet", 0))),
        )

    def surroundings(self, number: int) -> Payload:
        told = self.told.get("surroundings", {})
        _only(told, AROUND_KEYS, "surroundings")
        total_bytes, free_bytes = told.get("shared_memory", ROOM)
        return Surroundings(
            shared_memory=Known(Room(total_bytes, free_bytes)),
            listeners=Known(tuple(self._end(pid, None, number) for pid in told.get("listeners", ()))),
            listening=Known(told.get("listening", True)),
            proxied=Known(told.get("proxied", False)),
            orphans=Known(tuple(self._end(pid, None, number) for pid in told.get("orphans", ()))),
        )

    def locks(self, one: Mapping[str, Any], number: int) -> Payload:
        futexes = tuple(
            FutexWait(
                lock["tid"],
                lock.get("address", 0x7F00),
                lock.get("shared", ""),
                lock.get("kind", "mutex"),
                Known(lock.get("owner")),
                lock.get("owner_alive", True),
                outsiders=self._outsiders(lock, number),
                by_name=lock.get("by_name", False),
            )
            for lock in one.get("locks", ())
        )
        python = tuple(
            PythonLock(lock["tid"], lock.get("holder"), lock.get("address", 0x7F10), lock.get("through", "with"))
            for lock in one.get("python_locks", ())
        )
        holder = one.get("gil_holder")
        waiting = tuple(holder["waiting"]) if holder else ()
        switches = round(total(holder.get("switches", 0), number)) if holder else number
        gil = Gil(holder["tid"] if holder else None, holder is not None, switches, waiting)
        return Locks(futexes=futexes, gil=Known(gil), python=Known(python))

    def _outsiders(self, lock: Mapping[str, Any], number: int) -> Reading[tuple[LinkEnd, ...]]:
        if lock.get("outside_unread", False):
            return Missing("locks", DENIED)
        return Known(tuple(self._end(pid, None, number) for pid in lock.get("outside", ())))

    def buffers(self, one: Mapping[str, Any], number: int) -> Payload:
        held = at(one.get("hidden", 0), number)
        texts = tuple(HiddenText(stream="stdout", fd=fd, size_bytes=held if fd == 1 else 0) for fd in (1, 2))
        return Buffers(python=Known(texts), c=Known(()))

    def gpu(self, number: int) -> Payload:
        told = self.told.get("gpu", ())
        for one in told:
            _only(one, GPU_KEYS, "gpu")
        return Gpus(tuple(gpu(one, number) for one in told))

    def ras(self, number: int) -> Payload:
        _only(self.told["ras"], counts.KEYS, "ras")
        return counts.ras(self.told["ras"], number, frozenset(one["pid"] for one in self.told["process"]))

    def log(self, number: int) -> Payload | Missing:
        log = self.told.get("log")
        if log is None:
            return NO_LOG
        _only(log, LOG_KEYS, "log")
        before, after = _text(log.get("before", ())), _text(log.get("after", ()))
        engine = engine_named(self.told.get("engine", "sglang"))
        middle = self.told.get("rounds", ROUNDS) // 2
        new = {0: (before, 0), middle: (after, len(before))}.get(number, (b"", 0))
        end_s = self.told.get("rounds", ROUNDS)
        return LogTail(
            path=log.get("path", "/var/log/server.log"),
            writers=(self.told["process"][0]["pid"],),
            size_bytes=len(before) + (len(after) if number >= middle else 0),
            modified_wall_ns=round((end_s - log.get("silent", 0)) * SECOND_NS),
            events=tuple(events(new[0], engine, new[1])),
            first=number == 0,
        )


Take = Callable[[Scene, Mapping[str, Any], int], "Payload | Missing"]
PROBES: dict[str, Take] = {
    "cpu": Scene.cpu,
    "progress": Scene.progress,
    "futex": Scene.futex,
    "stacks": Scene.stacks_of,
    "fds": Scene.fds,
    "links": Scene.links,
    "locks": Scene.locks,
    "buffers": Scene.buffers,
    "lock-files": Scene.lock_files,
}
HOST_PROBES: dict[str, Callable[[Scene, int], Payload | Missing]] = {
    "gpu": Scene.gpu,
    "log": Scene.log,
    "surroundings": Scene.surroundings,
    "ras": Scene.ras,
}
ASKED_SELDOM = frozenset({"ras"})
"""Host probes that most launches were recorded without: they are told, or not there."""


def _ending(one: Mapping[str, Any], number: int) -> Ended | Missing | None:
    """Return how a process ended: while it is a zombie, or in the first round that it is not there any more."""
    how, left = one.get("ended"), one.get("until")
    is_zombie = one.get("state") == "Z" and (left is None or number < left)
    if how is None or not (is_zombie or number == left):
        return None
    _only(how, ENDED_KEYS, "way to end")
    refused = "exits" in one.get("unread", ())
    return Missing("exits", DENIED) if refused else Ended(how.get("code", 0) << 8 | how.get("signal", 0))


def _process(one: Mapping[str, Any], first: int) -> Process:
    title = one.get("title", "")
    seen = recognise("program", tuple(shlex.split(title)), "")
    pid = one["pid"]
    return synthetic.process(
        pid,
        role=one.get("role", seen.role),
        ppid=one.get("parent", 1 if pid == first else first),
        title=title,
        rank=one.get("rank", seen.rank),
    )


def _threads(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the main thread, which is told with its process, and the others."""
    main = {key: one[key] for key in THREAD_KEYS if key in one}
    others = one.get("threads", [])
    for thread in others:
        _only(thread, THREAD_KEYS, "thread")
    return [{**main, "tid": one["pid"]}, *others]


def _state(thread: Mapping[str, Any]) -> str:
    return "R" if at(thread.get("cpu", 0), 0) >= BUSY else "S"


def _clock(thread: Mapping[str, Any], number: int) -> ThreadClock:
    share = thread.get("cpu", 0)
    run_s = total(share, number)
    wakes = thread.get("wakes")
    slices = run_s * SLICES_PER_S if wakes is None else total(wakes, number)
    return synthetic.clock(run_s, total(thread.get("starved", 0), number), round(slices), thread["tid"])


def _thread_state(thread: Mapping[str, Any], number: int) -> ThreadState:
    ticks = total(thread.get("cpu", 0), number) * TICKS_PER_S
    system = round(ticks * thread.get("system", 0))
    name, state = thread.get("name", "python"), at(thread.get("state", _state(thread)), number)
    switches = Known(round(total(thread.get("wakes", 0), number)))
    return ThreadState(thread["tid"], name, state, round(ticks) - system, system, 0, 0, switches, Known(0))


def _wait(thread: Mapping[str, Any], number: int) -> ThreadWait:
    words = at(thread.get("wait", "running" if _state(thread) == "R" else "epoll 4"), number).split()
    left_ns = None if "sleep_left" not in thread else round(thread["sleep_left"] * SECOND_NS)
    channel = thread.get("channel", "")
    return ThreadWait(thread["tid"], _state(thread), Known(call(words)), Known(channel), Known(left_ns))


def _text(lines: list[str] | tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
