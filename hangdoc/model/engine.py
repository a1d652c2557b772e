"""What an engine's tables say: process titles, options, log lines, frames; data without logic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hangdoc.model.limit import LimitName
from hangdoc.model.log import LogEventKind, Phase
from hangdoc.model.process import EngineName, Role

Activity: TypeAlias = Literal[
    "import",
    "spawn",
    "idle-poll",
    "parent-wait",
    "collective",
    "rendezvous",
    "lock",
    "queue",
    "future",
    "sleep",
    "file-lock",
    "load",
    "model-init",
    "memory-pool",
    "compile",
    "graph-capture",
    "warmup-request",
    "forward",
    "event-loop",
    "helper",
]
"""What a frame tells about its thread; "helper": a thread that exists to wait (a pool's worker, a progress bar)."""


@dataclass(frozen=True)
class Title:
    """A process title or command line, and the role it gives.

    pattern: searched in the title; its named groups (tp, dp, pp, ep, ...) become the rank.
    """

    pattern: re.Pattern[str]
    role: Role


@dataclass(frozen=True)
class Option:
    """A launcher's option that the reasoning needs. flags: every spelling; default: its value when it is not given."""

    name: str
    flags: tuple[str, ...]
    default: str | None = None
    is_switch: bool = False


@dataclass(frozen=True)
class LogLine:
    """A line that the engine prints.

    pattern: searched in the line after its prefix; its groups may appear in text ("{elapsed} s").
    since, until: engine versions that print it ("" = all); first and last seen in a released wheel;
    victim: who prints it suffers from somebody else's failure.
    """

    name: str
    kind: LogEventKind
    pattern: re.Pattern[str]
    text: str
    phase: Phase = "unknown"
    since: str = ""
    until: str = ""
    victim: bool = False


@dataclass(frozen=True)
class Step:
    """A milestone of a start, in the order in which a good one passes them.

    name: of the log lines that say so; every_rank: each rank prints it; optional: a good start may leave it out
    (graphs are switched off); dated: only versions print it whose time stamps have a date.
    """

    name: str
    every_rank: bool = False
    optional: bool = False
    dated: bool = False


@dataclass(frozen=True)
class FrameRule:
    """A Python frame that tells what its thread is doing.

    function: regular expression for the whole function name; file: end of the path, in whole
    components ("" = any);
    innermost: only as the innermost frame (a pool's worker that waits for work, not one that does some).
    """

    activity: Activity
    function: re.Pattern[str]
    file: str = ""
    phase: Phase = "unknown"
    innermost: bool = False


Switch: TypeAlias = tuple[str, frozenset[str]]
"""A variable of the environment, and values of it in small letters."""


@dataclass(frozen=True)
class TimeLimit:
    """A timer that ends a launch which stands still.

    option: the setting that sets it; variable: the environment's variable that does, both in seconds; default_s:
    without either; phases: in which it runs; ends: what it does, as the rest of a sentence; latest_ratio: it comes
    after its time at the earliest, after this multiple of it at the latest; of_ranks: only where several ranks wait for
    each other; of_gpus: only on GPUs; off: variables, with the values that switch it off; on: those that switch it on
    all the same.
    """

    name: LimitName
    ends: str
    phases: frozenset[Phase]
    option: str = ""
    variable: str = ""
    default_s: float | None = None
    latest_ratio: float = 1.0
    of_ranks: bool = False
    of_gpus: bool = False
    off: tuple[Switch, ...] = ()
    on: tuple[Switch, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Every variable that has a say."""
        return tuple(name for name in (self.variable, *(name for name, _ in (*self.off, *self.on))) if name)


@dataclass(frozen=True, eq=False)
class Engine:
    """One engine's tables; equal by identity only, because they are asked for with every frame.

    launchers: patterns of a launcher's command line (argv joined by blanks); distribution: the package whose
    dist-info names the version; frames: rules of this engine, tried before the common ones of features;
    steps: its start in order; dull: how the lines begin that a serving engine prints without end (a regular expression
    for bytes, without groups), so that a long log is read fast; rank_axis: the axis that a bare rank number counts on;
    limits: the timers that end it when it stands still.
    """

    name: EngineName
    launchers: tuple[re.Pattern[str], ...] = ()
    distribution: str = ""
    titles: tuple[Title, ...] = ()
    options: tuple[Option, ...] = ()
    log_prefix: re.Pattern[str] | None = None
    log_lines: tuple[LogLine, ...] = ()
    steps: tuple[Step, ...] = ()
    dull: bytes = b""
    rank_axis: str = "rank"
    frames: tuple[FrameRule, ...] = ()
    limits: tuple[TimeLimit, ...] = ()
