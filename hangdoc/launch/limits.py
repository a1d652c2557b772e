"""Read which timers would end a launch that stands still, as it was configured: options, environment, defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path

from hangdoc.model.engine import Switch, TimeLimit
from hangdoc.model.limit import LimitName


def read_limits(
    limits: Iterable[TimeLimit], settings: Mapping[str, str], environment: Mapping[str, str] | None
) -> dict[LimitName, float]:
    """Return the seconds of each timer; one that is switched off, or whose setting may not be read, is left out.

    settings: see Launch; environment: the launcher's, None when it may not be read. An option counts before the
    environment, and that before the default. No option known at all (they stand in a file) leaves options unread.
    """
    found: dict[LimitName, float] = {}
    for limit in limits:
        given = settings.get(limit.option, "") if limit.option else ""
        if not given and limit.variable and environment is not None:
            given = environment.get(limit.variable, "")
        if _is_off(limit, environment or {}):
            continue
        is_unread = (limit.option and not settings) or (limit.variable and environment is None)
        seconds = _seconds(given) if given else (None if is_unread else limit.default_s)
        if seconds is not None:
            found[limit.name] = seconds
    return found


def _is_off(limit: TimeLimit, environment: Mapping[str, str]) -> bool:
    """Say whether it is switched off for certain; where the environment may not be read it is taken to be on."""
    return _is_set(limit.off, environment) and not _is_set(limit.on, environment)


def _is_set(switches: Iterable[Switch], environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").strip().lower() in values for name, values in switches)


def read_environment(proc: Path, pid: int, names: Iterable[str]) -> dict[str, str] | None:
    """Return those variables of a process's environment that are asked for; None when it may not be read."""
    wanted = set(names)
    if not wanted:
        return {}
    try:
        data = (proc / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (item.partition("=") for item in data.decode("utf-8", "replace").split("\0"))
    return {name: value for name, _, value in pairs if name in wanted}


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds > 0 else None
