"""Refuse before anything is touched what could not be started: one clear line each."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.launch.find import PROC
from hangdoc.launch.forest import Forest
from hangdoc.launch.ports import holders
from hangdoc.launch.table import read_table
from hangdoc.model.process import ProcessKey
from hangdoc.relaunch.engine import EngineCommand
from hangdoc.relaunch.executable import refusal
from hangdoc.relaunch.records import Command

NOTHING = "nothing was started or ended"


def default_log() -> Path:
    """Name the log: in the directory hangdoc was started in, by time."""
    return Path.cwd() / f"hangdoc-relaunch-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.log"


def check_command(command: Command, engine: EngineCommand | None, *, guessed: bool) -> None:
    """Raise HangdocError (2) when the working directory or the program is not there.

    guessed: the interpreter was looked for on PATH; then it must have the engine, too.
    """
    if not command.cwd.is_dir():
        raise HangdocError(f"the working directory {command.cwd} is not there: {NOTHING}", "make it again")
    if any("\0" in text for text in (*command.argv, *command.environment, *command.environment.values())):
        raise HangdocError(f"a word of the command or a variable has a zero byte in it: {NOTHING}", "leave it out")
    program = command.argv[0]
    path = command.environment.get("PATH", os.defpath)
    found = shutil.which(command.cwd / program if "/" in program else program, path=path)
    if not program or found is None:
        where = "" if "/" in program else " on the PATH of the new launch"
        message = f"there is no program {program!r}{where} that may be run: {NOTHING}"
        raise HangdocError(message, "give the command as you would type it in a shell")
    if why := refusal(command.cwd / found, command.cwd, path):
        message = f"the program {program!r} cannot be executed, {why}: {NOTHING}"
        raise HangdocError(message, "give a program that runs; a script without a #! line goes as: bash SCRIPT")
    if guessed and engine is not None and engine.interpreter is not None and not engine.is_found:
        python = command.argv[engine.begin]
        message = f"{engine.name} is not installed where {python} looks for modules: {NOTHING}"
        raise HangdocError(message, f"name the right interpreter: --map {Path(python).name}=/path/to/python")


def check_log(log: Path) -> None:
    """Raise HangdocError (2) unless the log is a new file, or an empty one: an old start's lines are not this one's."""
    if not log.parent.is_dir() or not os.access(log.parent, os.W_OK | os.X_OK):
        raise HangdocError(
            f"the log {log} cannot be written: no such directory, or not yours", "give another --log FILE"
        )
    if not log.exists():
        return
    if not log.is_file() or not os.access(log, os.W_OK):
        raise HangdocError(f"the log {log} is no file that may be written", "give another --log FILE")
    if log.stat().st_size:
        message = f"the log {log} is there already: what an earlier launch said would be taken for this one's"
        raise HangdocError(message, "give another --log FILE, or remove it")


def check_port(port: int | None, old: ProcessKey | None, proc: Path = PROC) -> None:
    """Raise HangdocError (2) when somebody else than the launch that is ended first listens on the port."""
    if port is None:
        return
    table = read_table(proc)
    forest = Forest(table, proc)
    for pid in sorted(holders(proc, table, port).pids):
        entry = table.get(pid)
        home = forest.home(entry) if entry is not None else None
        if old is not None and (pid == old.pid or (home is not None and home.root == old.pid)):
            continue
        name = Path(entry.argv[0]).name if entry is not None and entry.argv else "?"
        message = f"port {port} of the new launch is taken by process {pid} ({name}): {NOTHING}"
        raise HangdocError(message, f"end it first (hangdoc kill-clean --port {port}), or relaunch that: give its PID")
