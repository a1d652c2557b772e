"""Find the whole launch that a process belongs to, that listens on a port, or that is the user's only one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.launch import complaints
from hangdoc.launch.complaints import Candidate
from hangdoc.launch.compose import compose, launch_members, program_of
from hangdoc.launch.forest import Forest
from hangdoc.launch.ports import holders
from hangdoc.launch.recognise import engine_named
from hangdoc.launch.settings import read_settings
from hangdoc.launch.table import Entry, Table, read_table
from hangdoc.launch.wrapping import wrappers
from hangdoc.model.process import Launch
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.status import parse_status

PROC = Path("/proc")


def find_launch(pid: int | None = None, port: int | None = None, proc: Path = PROC) -> Launch:
    """Find one launch.

    pid: of any member, or of a shell, wrapper or supervisor above exactly one launch. port: the launch that listens
    there, else the one that was started with it. Neither: the calling user's only launch (SGLang, vLLM, torchrun).
    Raises HangdocError with the contract's exit code; SeveralLaunchesError (2) carries the candidates.
    """
    if pid is not None and port is not None:
        raise HangdocError("both a pid and --port were given", "give one of them")
    own_pid = os.getpid()
    if pid is not None:
        complaints.check_pid(pid, proc, own_pid)
    table = read_table(proc)
    never = own_and_callers(table, own_pid) - {pid}
    forest = Forest(table, proc, frozenset(never))
    if pid is not None:
        root = _root_from_pid(forest, pid)
    else:
        root = _only_root(forest) if port is None else _root_from_port(forest, port)
    return compose(forest, root)


def own_and_callers(table: Table, own_pid: int) -> set[int]:
    """Return hangdoc's own pid and those above it that are no part of an engine: never members."""
    never: set[int] = {own_pid}
    above = table.get(table[own_pid].ppid) if own_pid in table else None
    while above is not None and above.pid not in never:
        if above.sighting.is_launcher or above.sighting.is_kin:
            break
        never.add(above.pid)
        above = table.get(above.ppid)
    return never


def _root_from_pid(forest: Forest, pid: int) -> int:
    entry = forest.table.get(pid)
    if entry is None:
        raise HangdocError(f"process {pid} ended while it was looked at", "", complaints.UNOBSERVABLE)
    home = forest.home(entry)
    if home is not None and forest.is_engine_root(home.root):
        return home.root
    below = _roots_below(forest, entry)
    # Ranks that have ended and that a notebook does not wait for are no launches any more.
    below = {root for root in below if any(forest.table[one].state not in "ZX" for one in forest.members(root))}
    engines = {root for root in below if forest.is_engine_root(root)}
    if engines:
        return _one(forest, engines, f"{pid} ({complaints.shown(entry.title)}) runs several launches")
    beside = _wrapped_beside(forest, entry)
    if beside is not None:
        return beside
    if home is not None:
        return home.root
    if entry.kind == "host" or (entry.kind == "wrapper" and not below):
        return pid
    if not below:
        raise complaints.no_launch_below(pid, entry.title)
    return _one(forest, below, f"{pid} ({complaints.shown(entry.title)}) runs several launches")


def _wrapped_beside(forest: Forest, entry: Entry) -> int | None:
    """Find the launch that a tee (or a script's other small child) accompanies."""
    above = forest.table.get(entry.ppid)
    while above is not None and above.kind == "wrapper" and above.pid not in forest.never:
        for root in _roots_below(forest, above):
            if entry.pid in wrappers(forest, root):
                return root
        above = forest.table.get(above.ppid)
    return None


def _roots_below(forest: Forest, top: Entry) -> set[int]:
    """Roots of the launches below a process, or left behind in a script's process group; a tee or sleep is none."""
    found: set[int] = set()
    if top.kind == "wrapper" and top.pid == top.group:
        left = [e for e in forest.table.values() if e.group == top.pid and e.sighting.is_titled]
        found |= {home.root for entry in left if (home := forest.home(entry)) is not None}
    for child in forest.children.get(top.pid, []):
        if child.pid in forest.never:
            continue
        home = forest.home(child)
        if home is not None and not (home.root == child.pid and child.kind == "companion"):
            found.add(home.root)
        found |= _roots_below(forest, child)
    return found


def _one(forest: Forest, roots: Iterable[int], complaint: str) -> int:
    wanted = sorted(roots)
    if len(wanted) == 1:
        return wanted[0]
    raise complaints.several_launches(complaint, [candidate(forest, root) for root in wanted])


def candidate(forest: Forest, root: int) -> Candidate:
    """Describe a launch for a list."""
    entry = forest.table[root]
    return Candidate(
        entry.key, complaints.shown(entry.title), complaints.age_s(entry.key), len(launch_members(forest, root))
    )


def _engine_roots(forest: Forest) -> set[int]:
    homes = (forest.home(entry) for entry in forest.table.values() if entry.sighting.engine is not None)
    return {home.root for home in homes if home is not None}


def _only_root(forest: Forest) -> int:
    users = {os.geteuid()}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        users.add(int(os.environ["SUDO_UID"]))
    own = {root for root in _engine_roots(forest) if _owner(forest.proc, root) in users}
    if not own:
        raise complaints.no_launch()
    return _one(forest, own, f"{len(own)} launches of yours are running")


def _owner(proc: Path, pid: int) -> int | None:
    try:
        return parse_status((proc / str(pid) / "status").read_bytes()).user_id
    except (OSError, ProcParseError):
        return None


def _root_from_port(forest: Forest, port: int) -> int:
    listening = holders(forest.proc, forest.table, port)
    holding = [forest.table[pid] for pid in sorted(listening.pids) if pid in forest.table]
    roots = {home.root for entry in holding if (home := forest.home(entry)) is not None}
    roots = roots or {root for root in _engine_roots(forest) if _started_with(forest, root, port)}
    if not roots:
        raise complaints.no_launch_on_port(port, holding[0].title if holding else "", is_hidden=listening.is_hidden)
    return _one(forest, roots, f"several launches have port {port}")


def _started_with(forest: Forest, root: int, port: int) -> bool:
    entry = program_of(forest, root)
    if entry is None or entry.sighting.engine is None:
        return False
    return read_settings(entry.argv, engine_named(entry.sighting.engine).options).get("port") == str(port)
