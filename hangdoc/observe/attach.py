"""Find the launch and open every probe on it."""

from __future__ import annotations

import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hangdoc import __version__, discovery
from hangdoc.launch.find import find_launch
from hangdoc.launch.roster import Roster
from hangdoc.model.patience import Stage
from hangdoc.model.process import Launch
from hangdoc.observe.ring import KEPT_ROUNDS, Ring
from hangdoc.observe.tape import Recording, Tape
from hangdoc.sampling.collect import INTERVAL_S, Observer
from hangdoc.sampling.probe import Context
from hangdoc.trace.records import Header, Trace

if TYPE_CHECKING:
    from hangdoc.features.baseline import Baseline

Recorder: TypeAlias = Callable[[Header, Callable[[], Trace]], AbstractContextManager[Recording]]
"""Opens a recording: gets the header, and what returns the trace so far."""


@dataclass(frozen=True)
class Setting:
    """How to observe. record: also write the trace to this file, or open what takes it; kept_rounds: held in memory.

    patience_s: seconds of patience that the user gave stages; they stand in the trace, so that a replay has them too;
    http_generate: ask the server for a token as well; baseline: good starts that the launch's log is compared with;
    redact: no name leaves for a recording as it is; native: take native stacks at the end, if it hangs;
    coredump: ask CUDA for a core dump then, too.
    """

    interval_s: float = INTERVAL_S
    record: Path | Recorder | None = None
    kept_rounds: int = KEPT_ROUNDS
    patience_s: Mapping[Stage, float] = field(default_factory=dict)
    http_generate: bool = False
    baseline: Baseline | None = None
    redact: bool = True
    native: bool = False
    coredump: bool = False


@dataclass(frozen=True)
class Attached:
    """A launch with every probe open on it."""

    launch: Launch
    observer: Observer
    tape: Tape
    baseline: Baseline | None = None
    native: bool = False
    coredump: bool = False


@contextmanager
def attach(pid: int | None, port: int | None, setting: Setting) -> Iterator[Attached]:
    """Find the launch and open the probes; everything is closed again on the way out, the recording last."""
    launch = find_launch(pid, port)
    header = _header(launch, setting)
    with ExitStack() as stack:
        ring = Ring(header, setting.kept_rounds)
        writer = None if setting.record is None else stack.enter_context(_recording(setting.record, header, ring))
        roster = Roster(launch)
        context = Context(launch=launch, intern=ring.intern, http_generate=setting.http_generate)
        observer = stack.enter_context(Observer(context, discovery.probes(), roster.refresh, setting.interval_s))
        yield Attached(launch, observer, Tape(ring, writer), setting.baseline, setting.native, setting.coredump)


def _recording(record: Path | Recorder, header: Header, ring: Ring) -> AbstractContextManager[Recording]:
    if not isinstance(record, Path):
        return record(header, ring.trace)
    # Compression and redaction, only for a recording.
    from hangdoc.trace.aside import Aside  # noqa: PLC0415
    from hangdoc.trace.writer import Writer  # noqa: PLC0415

    return Aside(record, lambda: Writer.open(record, header))


def _header(launch: Launch, setting: Setting) -> Header:
    return Header(
        hangdoc=__version__,
        host=socket.gethostname(),
        machine=platform.machine(),
        cpus=len(os.sched_getaffinity(0)),
        clock_ticks_per_s=os.sysconf("SC_CLK_TCK"),
        started_wall_ns=time.time_ns(),
        interval_s=setting.interval_s,
        launch=launch,
        patience_s=dict(setting.patience_s),
        redaction="tokens" if setting.redact else "none",
    )
