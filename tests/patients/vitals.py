"""Whether a patient was ill at all while it was looked at, from readings that are not hangdoc's."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.patients.stage import HANGS, PULSE_FILE, Patient

BURNT_RATIO = 0.05
"""Share of a core that a part which burns CPU gets at least, on a machine that others keep busy: a loop of sleep(0) was
measured at 0.09 of one, who stands at 0. Arbitrary between them."""

PULSE_WAIT_S = 30.0
"""How long after a look a patient that goes on may take to do so."""

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Vitals:
    """A part at one moment. alive: neither gone nor a zombie; ticks: CPU time so far."""

    alive: bool
    ticks: int


@dataclass(frozen=True)
class Chart:
    """All parts of a patient at one moment, by pid, and its pulse."""

    at_s: float
    parts: Mapping[int, Vitals]
    pulse: int


def chart(parts: Mapping[int, str], folder: Path) -> Chart:
    """Return how the parts are now."""
    return Chart(time.monotonic(), {pid: _vitals(pid) for pid in parts}, _pulse(folder))


def _vitals(pid: int) -> Vitals:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return Vitals(alive=False, ticks=0)
    # A leader that ended while its threads live is a zombie, too: the process is not gone before they are.
    alive = fields[0] not in "ZX" or int(fields[17]) > 1
    return Vitals(alive, int(fields[11]) + int(fields[12]))


def _pulse(folder: Path) -> int:
    return int.from_bytes((folder / PULSE_FILE).read_bytes(), "little")


def not_seen(patient: Patient, parts: Mapping[int, str], before: Chart, folder: Path) -> str:
    """Return what of the patient's truth did not show during the look that has just ended; "" when all did."""
    after = chart(parts, folder)
    seconds = after.at_s - before.at_s
    for pid, name in parts.items():
        was, now = before.parts[pid], after.parts[pid]
        burnt = (now.ticks - was.ticks) / CLOCK_TICKS / seconds
        if was.alive != now.alive:
            return f"{name} ended during the look"
        if name in patient.burns and burnt < BURNT_RATIO:
            return f"{name} used {burnt:.2f} of a core only"
        if _has_to_stand(patient, name) and burnt > BURNT_RATIO:
            return f"{name} used {burnt:.2f} of a core"
    return "" if not patient.goes_on or _went_on(before, folder) else "it never went on"


def _has_to_stand(patient: Patient, name: str) -> bool:
    truth = patient.truth
    return name == truth.culprit and not patient.burns and truth.accepted & HANGS == {"blocked"}


def _went_on(before: Chart, folder: Path) -> bool:
    until_s = time.monotonic() + PULSE_WAIT_S
    while _pulse(folder) == before.pulse:
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True
