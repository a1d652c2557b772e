"""Keep the evidence: one whole look at the launch in a file, before the first signal destroys what it shows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.look import NO_REASONING, Window, look
from hangdoc.observe.reasoning import lazily
from hangdoc.report.exit_code import exit_code

ONE_ROUND = Window(0.0, 0.0)


@dataclass(frozen=True)
class Evidence:
    """The trace that was written; hang: what one look shows to be a hang beyond doubt, "" otherwise."""

    path: Path
    hang: str


def default_path(pid: int) -> Path:
    """Name the trace: in the directory hangdoc was started in, by launch and time."""
    return Path(f"hangdoc-{pid}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.hangtrace")


def record(pid: int, path: Path) -> Evidence:
    """Take one thorough round of every probe and write it. HangdocError when that cannot be done: nothing is signalled.

    KeyboardInterrupt when Ctrl-C came meanwhile; what was recorded until then is in the file.

    What one round shows is what stands still by definition (a stop, a circle of locks); a spin needs a longer look.
    """
    try:
        with attach(pid, None, Setting(record=path, kept_rounds=2)) as attached:
            seen = look(attached, ONE_ROUND, NO_REASONING)
    except HangdocError as error:
        remedy = f"{error.remedy}; or leave the evidence out: --no-snapshot".removeprefix("; or ")
        raise HangdocError(f"no snapshot could be recorded: {error.message}", remedy, error.exit_code) from error
    if seen.end == "stopped":
        raise KeyboardInterrupt  # the look took it for "that will do"; who asked for an ending wants none any more
    diagnosis = lazily(as_json=True).diagnose(seen.trace)
    hangs = exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG
    return Evidence(path, diagnosis.headline if hangs else "")
