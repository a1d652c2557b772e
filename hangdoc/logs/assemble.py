"""Makes a trace of what logs and dumps say: one moment, in which everything that no log tells is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hangdoc import __version__
from hangdoc.logs.pyspy import DumpedProcess, DumpedThread
from hangdoc.logs.roster import Roster
from hangdoc.model.engine import Engine
from hangdoc.model.gpu import Gpus
from hangdoc.model.log import LogTail
from hangdoc.model.process import Launch, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample, Snapshot
from hangdoc.model.stack import Stacks, ThreadStack
from hangdoc.trace.builder import StackTable
from hangdoc.trace.records import Header, Trace

OF_PROCESSES = ("cpu", "progress", "fds", "stacks", "futex", "locks", "links", "buffers")
"""Probes that look at processes."""

REMEDY = "run hangdoc watch on the machine while it stands still"


@dataclass(frozen=True)
class Material:
    """What was found in the inputs. log: None where there were only dumps; ended_wall_ns: the moment they are of.

    lacks: what of the inputs could not be read.
    """

    engine: Engine
    log: LogTail | None
    ended_wall_ns: int
    dumps: Sequence[DumpedProcess] = ()
    gpus: Gpus | None = None
    settings: dict[str, str] = field(default_factory=dict)
    version: str = ""
    lacks: Sequence[Missing] = ()


def trace_of(material: Material) -> Trace:
    """Return the trace of logs and dumps; Launch.known_from says what it is."""
    roster, table = Roster(material.engine), StackTable()
    dumped = dict(roster.dumped(material.dumps))
    roster.logged(material.log.events if material.log is not None else (), material.settings)
    processes = roster.processes()
    snapshot = Snapshot(
        index=0,
        at_ns=0,
        wall_ns=material.ended_wall_ns,
        processes=processes,
        samples=(
            *_of_host(material),
            *(sample for one in processes for sample in _of_process(one.key, dumped.get(one.key), table)),
        ),
    )
    launch = Launch(
        root=roster.root(),
        engine=material.engine.name,
        engine_version=_version(material.version),
        settings=dict(material.settings),
        processes=processes,
        known_from="log",
    )
    return Trace(header=_header(launch, material), stacks=tuple(table), snapshots=(snapshot,))


def _header(launch: Launch, material: Material) -> Header:
    return Header(
        hangdoc=__version__,
        host="",
        machine="",
        cpus=0,
        clock_ticks_per_s=100,
        started_wall_ns=material.ended_wall_ns,
        interval_s=0.0,
        launch=launch,
    )


def _version(found: str) -> Reading[str]:
    if found:
        return Known(found)
    return Missing("launch", "not-in-input", "the log does not name the version", "add it to the report")


def _of_host(material: Material) -> Iterator[Sample]:
    log: Reading[Payload] = Known(material.log) if material.log is not None else _lack("log", "no log was given")
    yield Sample(probe="log", process=None, taken_ns=0, reading=log)
    gpus: Reading[Payload] = Known(material.gpus) if material.gpus is not None else _lack("gpu", "no nvidia-smi table")
    yield Sample(probe="gpu", process=None, taken_ns=0, reading=gpus)
    yield Sample(probe="launch", process=None, taken_ns=0, reading=_lack("launch", "host and pids"))
    if material.lacks:
        yield Sample(probe="input", process=None, taken_ns=0, reading=_together(material.lacks))


MOST_LACKS = 5
"""Inputs that could not be read and are told one by one. Arbitrary."""


def _together(lacks: Sequence[Missing]) -> Missing:
    told = "; ".join(dict.fromkeys(one.detail for one in lacks[:MOST_LACKS]))
    more = f"; and {len(lacks) - MOST_LACKS} more" if len(lacks) > MOST_LACKS else ""
    return Missing("input", lacks[0].reason, told + more, lacks[0].remedy)


def _of_process(key: ProcessKey, dump: DumpedProcess | None, table: StackTable) -> Iterable[Sample]:
    for probe in OF_PROCESSES:
        reading: Reading[Payload] = _lack(probe, "a log does not tell")
        if probe == "stacks" and dump is not None and dump.threads:
            reading = Known(Stacks(tuple(_thread(thread, key, table) for thread in dump.threads)))
        yield Sample(probe=probe, process=key, taken_ns=0, reading=reading)


def _thread(thread: DumpedThread, key: ProcessKey, table: StackTable) -> ThreadStack:
    tid = key.pid if thread.name == "MainThread" else thread.tid
    return ThreadStack(tid, thread.name, thread.active, thread.owns_gil, table.intern(thread.frames))


def _lack(probe: str, detail: str) -> Missing:
    return Missing(probe, "not-in-input", detail, REMEDY)
