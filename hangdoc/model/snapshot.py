"""One moment of the launch: the roster and every probe's samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from hangdoc.model.buffer import Buffers
from hangdoc.model.ending import Ended
from hangdoc.model.fd import OpenFiles
from hangdoc.model.flight import Flight
from hangdoc.model.gpu import Gpus
from hangdoc.model.http import Http
from hangdoc.model.kernel_dump import KernelDump
from hangdoc.model.link import Links
from hangdoc.model.lock_file import LockFiles
from hangdoc.model.locks import Locks
from hangdoc.model.log import LogTail
from hangdoc.model.places import Places
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.ras import Ras
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Stacks
from hangdoc.model.surroundings import Surroundings
from hangdoc.model.thread import CpuUse, Progress, Waits


class Plain(Struct, frozen=True, tag="plain"):
    """A reading of a probe that hangdoc itself has no record for (a third party's)."""

    values: dict[str, str | int | float | bool | None]


Payload: TypeAlias = (
    CpuUse
    | Progress
    | OpenFiles
    | Waits
    | Stacks
    | Gpus
    | LogTail
    | Locks
    | Links
    | Buffers
    | Http
    | LockFiles
    | Surroundings
    | Ended
    | Places
    | Ras
    | Flight
    | KernelDump
    | Plain
)


class Sample(Struct, frozen=True, kw_only=True):
    """One probe's reading of one process, or of the host (process None), at one time.

    taken_ns: CLOCK_BOOTTIME at the reading.
    """

    probe: str
    process: ProcessKey | None
    taken_ns: int
    reading: Known[Payload] | Missing


class Snapshot(Struct, frozen=True, kw_only=True):
    """One round of sampling.

    at_ns: CLOCK_BOOTTIME at the start of the round, the clock start_ticks counts on; wall_ns: the same moment in
    Unix time; processes: the members alive (or zombies) at that moment, sorted by key; tally: how many samples each
    probe gave, so that a trace which lost some of them shows it; empty where nobody counted (older traces).
    """

    index: int
    at_ns: int
    wall_ns: int
    processes: tuple[Process, ...]
    samples: tuple[Sample, ...]
    tally: dict[str, int] = {}


def tally_of(samples: Iterable[Sample]) -> dict[str, int]:
    """Count the samples of each probe."""
    return dict(Counter(sample.probe for sample in samples))
