"""Read the state that a running watch keeps: cheap, since probes ask every few seconds."""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from hangdoc.regular import open_regular
from hangdoc.report.plain import plain

SCHEMA = 1
MOST_BYTES = 65536
"""A state is some hundred bytes. Arbitrary."""

CLOCK_S = 5.0
"""How far the clock may have been set back since. Arbitrary."""

STALE_AFTER_S = 60.0
"""Age from which a state says nothing any more. Arbitrary: twelve times the pace at which it is written."""

HANGS = frozenset({"busy-wait", "blocked", "hung", "crashed"})
"""Verdicts that a probe may end a container for, once they are confirmed; the names of model.diagnosis, which a probe
does not import (a test compares them)."""


OTHERS = frozenset({"healthy", "slow-start", "undetermined"})
"""The other verdicts."""


def answer(path: Path, *, as_json: bool = False) -> int:
    """Say how it stands on standard error, where there is something to say; return the exit code, 1 for ill."""
    ill, told = judge(path)
    if as_json:
        sys.stdout.write(json.dumps({"ill": ill, "told": told}) + "\n")
    elif told:
        sys.stderr.write(f"hangdoc: {plain(told)}\n")
    return int(ill)


def judge(path: Path) -> tuple[bool, str]:
    """Return whether the launch is known to be ill, and one line that says how it stands; "" where there is nothing.

    Only a fresh state with a confirmed hang or crash is ill. Whatever cannot be told is not: a probe must not end a
    server because its watcher is late, may not look, or cannot tell.
    """
    try:
        state = json.loads(_read(path))
        written_s, stale_after_s = float(state["written_at"]), float(state["stale_after_s"])
        told = f"{state['verdict']} ({state['grade']}) in phase {state['phase']}"
    except OSError as error:
        return False, f"no state: {path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return False, f"no state: {path} is not what hangdoc watch --state writes"
    if state.get("schema") != SCHEMA:
        return False, f"no state: {path} is of another hangdoc (schema {state.get('schema')})"
    if old := _too_old(time.time() - written_s, stale_after_s):
        return False, f"{old}; it said {told}"
    if not isinstance(state["verdict"], str) or state["verdict"] not in HANGS | OTHERS:
        return False, f"no state: {path} has a verdict that this hangdoc does not know: {state['verdict']}"
    return _ill(state), told if _ill(state) or _unsure(state) else ""


def _read(path: Path) -> bytes:
    """Return the beginning of a regular file; OSError for anything else, and never a wait (a FIFO has no writer)."""
    with open_regular(path) as file:
        return file.read(MOST_BYTES)


def _too_old(age_s: float, stale_after_s: float) -> str:
    """Say why a state of this age says nothing; "" when it does."""
    if not math.isfinite(age_s) or not math.isfinite(stale_after_s):
        return "stale state: it does not say when it was written"
    if age_s < -CLOCK_S:
        return f"stale state: written {-age_s:.0f} s in the future, the clocks differ"
    if age_s > min(stale_after_s, STALE_AFTER_S):
        return f"stale state: written {age_s:.0f} s ago, by a watch that may be gone"
    return ""


def _ill(state: dict[str, Any]) -> bool:
    return state["verdict"] in HANGS and state["grade"] == "confirmed"


def _unsure(state: dict[str, Any]) -> bool:
    return state["verdict"] in HANGS or state["verdict"] == "undetermined"
