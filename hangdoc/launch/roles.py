"""Turn a member's table entry into the model's Process: role, rank and why it is a member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.table import Entry, is_same
from hangdoc.model.process import EngineName, Process, ProcessKey, Role

RANK_VARIABLES = {b"RANK": "rank", b"LOCAL_RANK": "local_rank"}
"""What torchrun gives its workers; no other variable is looked at."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a member's role depends on beside the member itself."""

    launcher: ProcessKey | None
    engine: EngineName
    settings: Mapping[str, str]
    proc: Path


def describe(entry: Entry, because: str, setting: Setting) -> Process:
    """Make the record of a member."""
    role, rank = _role(entry, setting), dict(entry.sighting.rank)
    if role == "scheduler" and setting.engine == "sglang" and setting.settings.get("tp_size") == "1":
        # Its title names only the dimensions that are larger than 1.
        rank.setdefault("tp", 0)
    if role == "worker" and setting.engine == "torchrun":
        rank = rank or read_rank(setting.proc, entry)
    return Process(
        key=entry.key,
        ppid=entry.ppid,
        role=role,
        rank=rank,
        title=entry.title,
        argv=entry.argv,
        member_because=because,
    )


def _role(entry: Entry, setting: Setting) -> Role:
    sighting = entry.sighting
    if entry.key == setting.launcher:
        return "launcher"
    if sighting.is_launcher:
        # A launcher below a launcher: a forked copy that has no title yet, or an engine below torchrun.
        return "other"
    if setting.engine == "torchrun" and entry.kind == "program" and sighting.role == "other" and not sighting.is_kin:
        return "worker"
    return sighting.role


def read_rank(proc: Path, entry: Entry) -> dict[str, int]:
    """Read the rank that torchrun set in a worker's environment; empty when it may not be read or has none."""
    try:
        data = (proc / str(entry.pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    rank = {RANK_VARIABLES[n]: int(v) for n, _, v in pairs if n in RANK_VARIABLES and v.isdigit()}
    return rank if is_same(proc, entry.key) else {}
