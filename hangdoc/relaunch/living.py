"""Read how a living launch was started: argv, working directory, environment, limits of its root."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from hangdoc.ending.kinship import user_of
from hangdoc.ending.named import refuse_callers
from hangdoc.ending.plan import targets
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.find import PROC, find_launch
from hangdoc.launch.marker import VARIABLE
from hangdoc.launch.table import Entry, is_same, read_entry
from hangdoc.model.process import Launch, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.relaunch.records import Command, Origin

NAMESPACES = ("mnt", "pid", "net", "user")
"""In another one of these the same command line means something else."""

LIMITS = tuple(sorted(name for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"))
"""RLIMIT_OFILE is another name of RLIMIT_NOFILE."""

AS_IT_STANDS = "give its whole command line: hangdoc relaunch -- PROGRAM ARGUMENTS"


def from_living(pid: int, proc: Path = PROC) -> Origin:
    """Return the command of the launch that a process belongs to; HangdocError when it cannot be told or not be used.

    The engine's own process counts, not the script above it: what the script set up is in its environment.
    """
    refuse_callers(pid, proc)
    launch = find_launch(pid, None, proc)
    root = targets(pid, None, proc)[0]
    entry = read_entry(proc, root.pid)
    if entry is None or entry.key != root:
        raise _gone(root.pid)
    _refuse(entry, launch, proc)
    command = _command(entry, proc)
    if not is_same(proc, root):
        raise _gone(root.pid)
    version = launch.engine_version.value if isinstance(launch.engine_version, Known) else ""
    return Origin("process", f"process {root.pid}", command, launch.engine, root, _notes(entry, launch), version)


def _refuse(entry: Entry, launch: Launch, proc: Path) -> None:
    pid = entry.pid
    owner = user_of(proc, pid)
    if owner not in {None, os.geteuid()}:
        message = f"process {pid} ({entry.comm}) belongs to another user (uid {owner})"
        raise HangdocError(message, "run hangdoc as that user", ExitCode.UNOBSERVABLE)
    for name in NAMESPACES:
        if _namespace(proc, "self", name) != _namespace(proc, str(pid), name):
            message = f"process {pid} runs in another container ({name} namespace): its command means nothing here"
            raise HangdocError(message, "run hangdoc inside that container", ExitCode.UNOBSERVABLE)
    role = next((one.role for one in launch.processes if one.key == entry.key), "other")
    if entry.state in "ZX" or not entry.argv:
        message = f"process {pid} has ended: its command line is gone"
        raise HangdocError(message, f"{AS_IT_STANDS}, or --from a trace of it", ExitCode.UNOBSERVABLE)
    if entry.sighting.is_titled or (launch.engine != "generic" and role != "launcher" and entry.key == launch.root):
        message = f"the launcher of this launch is gone, and process {pid} ({entry.comm}) does not tell its command"
        raise HangdocError(message, f"{AS_IT_STANDS}, or --from a trace of it")


def _namespace(proc: Path, who: str, name: str) -> str:
    try:
        return str((proc / who / "ns" / name).readlink())
    except OSError:
        return ""


def _command(entry: Entry, proc: Path) -> Command:
    home = proc / str(entry.pid)
    try:
        environment = parse_environment((home / "environ").read_bytes())
        cwd = str((home / "cwd").readlink())
        argv = tuple(os.fsdecode(word) for word in (home / "cmdline").read_bytes().removesuffix(b"\0").split(b"\0"))
        limits = {name: resource.prlimit(entry.pid, getattr(resource, name)) for name in LIMITS}
        cpus = frozenset(os.sched_getaffinity(entry.pid))
    except PermissionError as error:
        message = f"how process {entry.pid} was started may not be read"
        raise HangdocError(message, "run hangdoc as the launch's owner", ExitCode.UNOBSERVABLE) from error
    except OSError as error:
        raise _gone(entry.pid) from error
    return Command(argv, Path(cwd), environment, limits, cpus)


def parse_environment(data: bytes) -> dict[str, str]:
    r"""Read the variables that a program was started with; of two of one name the first counts, as for getenv(3).

    >>> parse_environment(b"A=1\0B=x=y\0A=2\0\0nonsense\0")
    {'A': '1', 'B': 'x=y'}
    """
    found: dict[str, str] = {}
    for item in data.split(b"\0"):
        name, equals, value = os.fsdecode(item).partition("=")
        if name and equals and name != VARIABLE:
            found.setdefault(name, value)
    return found


def _notes(entry: Entry, launch: Launch) -> tuple[str, ...]:
    started_by = [one for one in launch.processes if one.member_because.startswith("started the launch of")]
    names = [f"{one.key.pid} ({Path(one.argv[0]).name})" for one in started_by if one.argv]
    what = f"what is started again is process {entry.pid} itself, with the environment it got"
    return (f"it had been started by process {names[0]}, which is left out: {what}",) if names else ()


def _gone(pid: int) -> HangdocError:
    return HangdocError(f"process {pid} ended while it was looked at", f"{AS_IT_STANDS}", ExitCode.UNOBSERVABLE)


def is_running(key: ProcessKey, proc: Path = PROC) -> bool:
    """Say whether a process lives, as the same one."""
    entry = read_entry(proc, key.pid)
    return entry is not None and entry.key == key and entry.state not in "ZX"
