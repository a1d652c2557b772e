"""Everything the hypotheses may ask about a window of a trace, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hangdoc.features.baseline import Baseline
from hangdoc.features.dumps import Dumps, ThreadHistory, dumps
from hangdoc.features.gpu import GpuHistory, gpu_histories, gpu_memory_moved
from hangdoc.features.http import HttpState, http_state
from hangdoc.features.index import Index, Window
from hangdoc.features.links import recent_links
from hangdoc.features.lock_files import Polled, polled_lock_files
from hangdoc.features.locks import TimedLocks, recent_locks
from hangdoc.features.motion import Flow, Motion, ThreadMotion, flow, motion
from hangdoc.features.native import NativePlace, dumped_kernels, native_place
from hangdoc.features.outputs import LogState, OutputFile, descriptors, log_state, opened_gpu, outputs
from hangdoc.features.phases import launch_phase, member_phase
from hangdoc.features.ras import NOT_ASKED, RasState, ras_state
from hangdoc.features.startup import Start, log_phase, start_of
from hangdoc.model.ending import Ended
from hangdoc.model.engine import Engine
from hangdoc.model.fd import OpenFile
from hangdoc.model.flight import Flight
from hangdoc.model.gpu import Gpus
from hangdoc.model.link import Links
from hangdoc.model.log import Phase
from hangdoc.model.patience import Stage
from hangdoc.model.places import Places
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.surroundings import Surroundings
from hangdoc.model.thread import CpuUse, ThreadWait, Waits
from hangdoc.trace.records import Trace

BURNS_RATIO = 0.8
"""Share of a core from which a thread without Python counts as burning CPU: a proxy that polls measured 1.0."""


@dataclass(frozen=True)
class Member:
    """One process of the launch over the window.

    waits: of every round, oldest first; links: the last two thorough readings, oldest first; locks: every reading so
    far, oldest first, none in a trace that is older than the probe; lock_files: polled for in the last two readings;
    places: of its running threads, Known(()) in a trace that is older than the probe; native: where its main thread
    stands below Python, None without a native stack, which is taken at the end and only on request;
    kernels: that its card stood in, by a CUDA core dump, for which the same holds.
    """

    process: Process
    motion: Reading[Motion]
    flow: Reading[Flow]
    dumps: Reading[Dumps]
    waits: Reading[tuple[Waits, ...]]
    links: Reading[tuple[Links, ...]]
    locks: Reading[tuple[TimedLocks, ...]]
    lock_files: Reading[tuple[Polled, ...]]
    files: Reading[tuple[OpenFile, ...]]
    has_gpu: Reading[bool]
    phase: Phase
    places: Reading[tuple[Places, ...]]
    native: NativePlace | None = None
    kernels: tuple[str, ...] = ()

    @property
    def key(self) -> ProcessKey:
        """Its identity."""
        return self.process.key

    @cached_property
    def waits_of(self) -> dict[int, list[tuple[str, ThreadWait]]]:
        """Its waits by thread, oldest first, each with the machine of its numbers; empty when they are missing."""
        found: dict[int, list[tuple[str, ThreadWait]]] = {}
        for waits in self.waits.value if isinstance(self.waits, Known) else ():
            for thread in waits.threads:
                found.setdefault(thread.tid, []).append((waits.machine, thread))
        return found

    @cached_property
    def found_waits(self) -> dict[int, Any]:
        """What was found of each thread's wait (see activity.waiting), which every hypothesis asks again."""
        return {}

    @cached_property
    def found(self) -> dict[str, Any]:
        """What was found of it as a whole (see activity), which every hypothesis asks again."""
        return {}

    @cached_property
    def burning_natives(self) -> tuple[str, ...]:
        """The names of its threads without a Python stack that burn CPU, such as NCCL's proxy; none when unread."""
        clocks = self.clocks
        if isinstance(clocks, Missing) or isinstance(self.dumps, Missing):
            return ()
        python = self.dumps.value.threads
        return tuple(
            one.name for one in clocks.value.values() if one.tid not in python and one.demand_ratio >= BURNS_RATIO
        )

    @property
    def clocks(self) -> Reading[dict[int, ThreadMotion]]:
        """How much each of its threads ran, by thread."""
        return self.motion if isinstance(self.motion, Missing) else self.motion.value.threads

    @property
    def main(self) -> Reading[ThreadHistory]:
        """The stacks of its main thread."""
        if isinstance(self.dumps, Missing):
            return self.dumps
        history = self.dumps.value.threads.get(self.key.pid)
        if history is None:
            return Missing("stacks", "unsupported", "the main thread has no Python stack")
        return Known(history)


@dataclass(frozen=True)
class Departure:
    """A member that ended while it was watched, or is a zombie. died_at: the first round that saw it so."""

    process: Process
    died_at: int
    how: Reading[Ended]


@dataclass(frozen=True, eq=False)
class Features:
    """A window of a trace, read. members: alive at its end, sorted by key; steady: its slices are of one kind.

    gpu_moved_bytes: by how much the memory in use on all GPUs changed, either way; gpu_histories: each GPU over the
    window, sample by sample; surroundings: as last read; listened: a member listened on the launch's port in the last
    two readings of them; standing_s: for how long the totals of the ranks have not moved; patience_set: seconds of
    patience that the user gave stages; http: of the launch's own server; ras: NCCL's own counts; flight: the newest
    dumps of torch's flight recorder, None where none was looked for, or there is none.

    Equal by identity only, so that what is drawn from it can be kept.
    """

    launch: Launch
    window: Window
    members: dict[ProcessKey, Member]
    departed: tuple[Departure, ...]
    zombies: tuple[Departure, ...]
    log: Reading[LogState]
    outputs: tuple[OutputFile, ...]
    gpus: Reading[Gpus]
    gpu_moved_bytes: Reading[int]
    surroundings: Reading[Surroundings]
    gpu_histories: Reading[tuple[GpuHistory, ...]]
    listened: Reading[bool]
    phase: Phase
    steady: bool | Missing
    standing_s: Reading[float]
    patience_set: Mapping[Stage, float]
    http: Reading[HttpState | None]
    start: Reading[Start]
    baseline: Baseline | None = None
    ras: Reading[RasState | None] = NOT_ASKED
    flight: Flight | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nobody is alive any more: every member has left, or is a zombie."""
        return self.members.keys() <= {death.process.key for death in self.zombies}

    @property
    def is_log(self) -> bool:
        """Whether a log is all there is: nobody looked at the processes."""
        return self.launch.known_from == "log"

    @cached_property
    def compilers(self) -> tuple[Member, ...]:
        """The members that compile for the others."""
        return tuple(member for member in self.members.values() if member.process.role == "compiler")

    @cached_property
    def movers(self) -> tuple[Member, ...]:
        """The members that have to move for the launch to move."""
        return tuple(self.members[key] for key in mover_keys(tuple(m.process for m in self.members.values())))


def mover_keys(processes: tuple[Process, ...]) -> tuple[ProcessKey, ...]:
    """Return which processes have to move for the launch to move.

    Rule: schedulers and workers; without any, every process but the launcher, the detokenizer, compilers and
    trackers; without any of these, the launcher. Why: in every start-up hang the launcher and the detokenizer look
    the same, they wait. Fails when an engine's titles are unknown and its parent does the work.
    """
    for roles in ({"scheduler", "worker"}, {"other", "router", "tokenizer"}, {"launcher"}):
        found = tuple(p.key for p in processes if p.role in roles and not is_tracker(p))
        if found:
            return found
    return ()


def is_tracker(process: Process) -> bool:
    """Tell whether a process is multiprocessing's resource tracker, which waits for ever by design."""
    return "resource_tracker" in process.title


@dataclass(frozen=True)
class Beyond:
    """What a window alone does not tell. standing_s: for how long the totals stand; baseline: what good starts took.

    index: of the trace, where there is one.
    """

    standing_s: Reading[float]
    baseline: Baseline | None = None
    index: Index | None = None


_NOTHING_BEYOND = Beyond(Missing("progress", "not-taken", "since when the totals stand was not asked"))


def features(
    trace: Trace, engine: Engine, window: Window, *, steady: bool | Missing, beyond: Beyond = _NOTHING_BEYOND
) -> Features:
    """Compute everything about one window of a trace; steady: its last slices are of one kind."""
    index = beyond.index or Index(trace)
    launch = trace.header.launch
    last = trace.snapshots[window.last]
    log = log_state(index, window, last.wall_ns)
    zombies = _zombies(trace)
    processes = sorted(last.processes, key=lambda process: process.key)
    members = {process.key: _member(index, trace, process, engine, window) for process in processes}
    until_now = Window(0, window.last, 0, window.end_ns)
    gpus = index.known("gpu", None, Gpus, until_now)
    around = index.known("surroundings", None, Surroundings, until_now)
    shell = Features(
        launch=launch,
        window=window,
        members=members,
        departed=_departed(trace, index, window, zombies),
        zombies=_still_zombies(index, window, processes, zombies),
        log=log,
        outputs=outputs(index, last.processes, window, last.wall_ns - last.at_ns),
        gpus=Known(gpus[-1][1]) if gpus else index.missing("gpu", None, window),
        gpu_moved_bytes=gpu_memory_moved(index, window),
        surroundings=Known(around[-1][1]) if around else index.missing("surroundings", None, until_now),
        gpu_histories=gpu_histories(index, window, trace.header.interval_s),
        listened=_listened([one.listening for _, one in around[-2:]]),
        phase="unknown",
        steady=steady,
        standing_s=beyond.standing_s,
        patience_set=trace.header.patience_s,
        http=http_state(index, window),
        ras=ras_state(index, window),
        flight=dumped[-1][1] if (dumped := index.known("flight", None, Flight, until_now)) else None,
        baseline=beyond.baseline,
        start=Known(start_of(log.value.milestones, engine)) if isinstance(log, Known) else log,
    )
    return _with_phase(shell, engine)


def _listened(readings: list[Reading[bool]]) -> Reading[bool]:
    if len(readings) < 2:
        return Missing("surroundings", "not-taken", "who listens on the launch's port was not read twice")
    for reading in readings:
        if isinstance(reading, Missing):
            return reading
    return Known(all(reading == Known(True) for reading in readings))


def _with_phase(shell: Features, engine: Engine) -> Features:
    if shell.is_log and isinstance(shell.log, Known):
        phase = log_phase(shell.log.value, engine)
        if phase != "unknown":
            return replace(shell, phase=phase)
    movers = {member.key for member in shell.movers}
    asks_warmup = any(_asks_warmup(member) for member in shell.members.values())
    phase = launch_phase([member.phase for member in shell.movers], shell.log, asks_warmup=asks_warmup)
    if shell.has_ended:
        phase = "shutdown"
    follows = {"unknown", "ready", "serving"} if phase == "warmup" else {"unknown"}
    members = {
        key: replace(member, phase=phase) if key in movers and member.phase in follows else member
        for key, member in shell.members.items()
    }
    return replace(shell, phase=phase, members=members)


def _asks_warmup(member: Member) -> bool:
    if isinstance(member.dumps, Missing):
        return False
    return any(thread.last.meaning.does("warmup-request") for thread in member.dumps.value.threads.values())


def _member(index: Index, trace: Trace, process: Process, engine: Engine, window: Window) -> Member:
    stacks = dumps(index, process.key, window, trace.stacks, engine)
    waits = index.known("futex", process.key, Waits, window)
    return Member(
        process=process,
        motion=motion(index, process.key, window, trace.header.clock_ticks_per_s),
        flow=flow(index, process.key, window),
        dumps=stacks,
        waits=Known(tuple(reading for _, reading in waits)) if waits else index.missing("futex", process.key, window),
        links=recent_links(index, process.key, window),
        locks=recent_locks(index, process.key, window),
        lock_files=polled_lock_files(index, process.key, window),
        files=descriptors(index, process.key, window),
        has_gpu=opened_gpu(index, process.key, window),
        phase=member_phase(stacks, process.key.pid),
        places=_places(index, process.key, window),
        native=native_place(index, process.key, window, trace.stacks),
        kernels=dumped_kernels(index, process.key, window),
    )


def _places(index: Index, process: ProcessKey, window: Window) -> Reading[tuple[Places, ...]]:
    readings = tuple(reading for _, reading in index.known("places", process, Places, window))
    return Known(readings) if readings or not index.was_taken("places") else index.missing("places", process, window)


def _departed(trace: Trace, index: Index, window: Window, zombies: dict[ProcessKey, int]) -> tuple[Departure, ...]:
    last = {process.key for process in trace.snapshots[window.last].processes}
    seen: dict[ProcessKey, Departure] = {}
    for position in range(window.last):
        for process in trace.snapshots[position].processes:
            if process.key not in last:
                died_at = zombies.get(process.key, position + 1)
                seen[process.key] = Departure(process, died_at, _how(index, process.key, window))
    return tuple(seen[key] for key in sorted(seen))


def _still_zombies(
    index: Index, window: Window, processes: list[Process], zombies: dict[ProcessKey, int]
) -> tuple[Departure, ...]:
    return tuple(
        Departure(process, zombies[process.key], _how(index, process.key, window))
        for process in processes
        if process.key in zombies
    )


def _how(index: Index, process: ProcessKey, window: Window) -> Reading[Ended]:
    until_now = Window(0, window.last, 0, window.end_ns)
    readings = index.known("exits", process, Ended, until_now)
    return Known(readings[-1][1]) if readings else index.missing("exits", process, until_now)


def _zombies(trace: Trace) -> dict[ProcessKey, int]:
    """Map each process that was seen as a zombie to the first round that saw it so."""
    found: dict[ProcessKey, int] = {}
    for position, snapshot in enumerate(trace.snapshots):
        for sample in snapshot.samples:
            use = sample.reading.value if isinstance(sample.reading, Known) else None
            if sample.process is not None and isinstance(use, CpuUse) and use.stat.is_zombie:
                found.setdefault(sample.process, position)
    return found
