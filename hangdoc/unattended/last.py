"""What the last view of a launch that hangdoc started says: who was asked to end, and what goes on without it."""

from __future__ import annotations

import os
import time

from msgspec.structs import replace as changed

from hangdoc.launch.start import Started
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.follow import View
from hangdoc.unattended.supervise import Halt

LEAVING_S, LOOK_AGAIN_S = 1.0, 0.1
"""How long helpers of a launch may outlive it, and how often that is looked at. Arbitrary: trackers take milliseconds.
"""

MOST_NAMED = 5
"""Pids that one line names. Arbitrary."""

SIGNALLED = 128
"""Exit codes above are those of signals."""


def last_view(view: View, started: Started, halt: Halt) -> View:
    """Return the view of a launch that is gone, with what only its supervisor knows.

    Its end after a signal that hangdoc passed on, with an exit code of its own, is a shutdown; by a signal it may still
    be a crash, but not for certain. A first process that left in order while others of the launch go on has not ended.
    """
    if view.end != "gone":
        return view
    diagnosis = view.diagnosis
    if diagnosis.verdict == "crashed" and halt.asked_by is not None:
        return View(_after_signal(diagnosis, halt.asked_by.name, started.code), "gone", view.rounds)
    if diagnosis.verdict == "healthy" and (others := _who_goes_on(started)):
        return View(_went_on(diagnosis, others, started.code), "stopped", view.rounds)
    return view


def _after_signal(diagnosis: Diagnosis, name: str, code: int | None) -> Diagnosis:
    if code is None or code > SIGNALLED:
        return changed(diagnosis, grade="likely")
    headline = f"The launch was asked to end by {name}, which it was passed, and ended with exit code {code}."
    return changed(diagnosis, verdict="healthy", grade="likely", headline=headline, culprits=())


def _went_on(diagnosis: Diagnosis, others: list[int], code: int | None) -> Diagnosis:
    named = ", ".join(map(str, others[:MOST_NAMED])) + (", ..." if len(others) > MOST_NAMED else "")
    headline = f"The first process left with {code}; others of the launch still run, unwatched: pid {named}."
    return changed(diagnosis, verdict="undetermined", grade="undetermined", headline=headline)


def _who_goes_on(started: Started) -> list[int]:
    """Return the pids that have the launch's marker and stay."""
    deadline_s = time.monotonic() + LEAVING_S
    while (found := _beside(started)) and time.monotonic() < deadline_s:
        time.sleep(LOOK_AGAIN_S)
    return found


def _beside(started: Started) -> list[int]:
    return [pid for pid in started.living() if pid not in (os.getpid(), started.pid)]
