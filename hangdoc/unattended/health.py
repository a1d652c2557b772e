"""Read the state that a running watch keeps: cheap, since probes ask every few seconds."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hangdoc.report.plain import plain

SCHEMA = 1
MOST_BYTES = 65536
"""A state is some hundred bytes. Arbitrary."""

CLOCK_S = 5.0
"""How far the clock may have been set back since. Arbitrary."""

HANGS = frozenset({"busy-wait", "blocked", "hung", "crashed"})
"""Verdicts that a probe may end a container for, once they are confirmed; the names of model.diagnosis, which a probe
does not import (a test compares them)."""


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
        with path.open("rb") as file:
            state = json.loads(file.read(MOST_BYTES))
        age_s = time.time() - float(state["written_at"])
        stale_after_s = float(state["stale_after_s"])
        told = f"{state['verdict']} ({state['grade']}) in phase {state['phase']}"
    except OSError as error:
        return False, f"no state: {path}: {error.strerror}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return False, f"no state: {path} is not what hangdoc watch --state writes"
    if state.get("schema") != SCHEMA:
        return False, f"no state: {path} is of another hangdoc (schema {state.get('schema')})"
    if not -CLOCK_S <= age_s <= stale_after_s:
        return False, f"stale state: written {age_s:.0f} s ago, by a watch that may be gone; it said {told}"
    return _ill(state), told if _ill(state) or _unsure(state) else ""


def _ill(state: dict[str, Any]) -> bool:
    return state["verdict"] in HANGS and state["grade"] == "confirmed"


def _unsure(state: dict[str, Any]) -> bool:
    return state["verdict"] in HANGS or state["verdict"] == "undetermined"
