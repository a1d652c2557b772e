"""The trace in memory: header, table of stacks, snapshots."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.process import Launch
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.stack import Stack

SCHEMA = 1
"""Version of the trace file; a reader takes this one and older ones, through migrate."""


class Header(Struct, frozen=True, kw_only=True):
    """What does not change while recording.

    host: the host's name (a token in a redacted trace); machine: platform.machine(); cpus: CPUs hangdoc may use;
    started_wall_ns: Unix time of the first round; kind: what the readings came from.
    """

    schema: int = SCHEMA
    hangdoc: str
    host: str
    machine: str
    cpus: int
    clock_ticks_per_s: int
    started_wall_ns: int
    interval_s: float
    launch: Launch


class Trace(Struct, frozen=True, kw_only=True):
    """A whole recording. complete: the end record was there; a cut file is read up to the cut."""

    header: Header
    stacks: tuple[Stack, ...]
    snapshots: tuple[Snapshot, ...]
    complete: bool = True
