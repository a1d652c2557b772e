"""Nouns of a relaunch: the command, where it comes from, what a profile changes in it. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from hangdoc.model.process import EngineName, ProcessKey

if TYPE_CHECKING:
    from hangdoc.relaunch.capturing import Capture

Kind: TypeAlias = Literal["process", "trace", "command"]
Place: TypeAlias = Literal["command", "environment"]
Outcome: TypeAlias = Literal["made", "already", "yours", "impossible"]
"""made: it is changed; already: it stood there; yours: the user's own setting wins; impossible: says why."""


@dataclass(frozen=True)
class Command:
    """What is started. environment: all of it; limits: soft and hard by the resource module's name; None: any CPU."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    cpus: frozenset[int] | None = None


@dataclass(frozen=True)
class Origin:
    """Where a command comes from. old: the root of the launch that is ended first; notes: what the user should know.

    name: of the process or file, for people; was: what an earlier diagnosis found, by hypothesis ("HD106").
    """

    kind: Kind
    name: str
    command: Command
    engine: EngineName = "generic"
    old: ProcessKey | None = None
    notes: tuple[str, ...] = ()
    version: str = ""


@dataclass(frozen=True)
class Change:
    """One thing that a profile says, and what came of it. text: as it is typed; detail: why it came to that."""

    place: Place
    text: str
    outcome: Outcome
    reason: str
    source: str
    detail: str = ""


@dataclass(frozen=True)
class Treatment:
    """What came of a profile. name: "" when none applies; because: why this one or none; hints: not forced."""

    name: str
    because: str
    changes: tuple[Change, ...] = ()
    hints: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All that is going to happen. command: as it will be started; given: variables that the user set by --set."""

    origin: Origin
    command: Command
    treatment: Treatment
    log: Path
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    port: int | None = None
    capture: Capture | None = None
