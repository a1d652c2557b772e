"""Take a launch's command from a trace, and fill in what redaction took out of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.launch.commands import parse_python
from hangdoc.launch.find import PROC
from hangdoc.launch.interpreter import expected
from hangdoc.launch.table import read_entry
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.observe.replay import read_trace
from hangdoc.relaunch.living import is_running
from hangdoc.relaunch.records import Command, Origin
from hangdoc.trace import arguments
from hangdoc.trace.records import Trace
from hangdoc.trace.tokens import Tokens, is_token, tokens_in

PACKAGES = ("site-packages/", "dist-packages/")


@dataclass
class _Filling:
    """What is known for the tokens of one command line, and what is not. used: keys of --map that were of use."""

    maps: Mapping[str, str]
    environment: Mapping[str, str]
    unresolved: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


def from_trace(path: Path, maps: Mapping[str, str], environment: Mapping[str, str]) -> tuple[Origin, Trace]:
    """Return the command of a trace's launch, whole again; HangdocError (2) names what stays unresolved.

    maps: what the user gave by --map, by token ("path-1" or "<path-1>") or by a word of the recorded command;
    environment: the present one, --set included. It and the present directory are the new launch's: a trace has none.
    """
    trace = read_trace(path)
    launch = trace.header.launch
    process = next((one for one in launch.processes if one.key == launch.root), None)
    if process is None or not process.argv or (process.role != "launcher" and launch.engine != "generic"):
        message = f"{path} does not have the command of its launch: the launcher was gone when it was recorded"
        raise HangdocError(message, "give the whole command line: hangdoc relaunch -- PROGRAM ARGUMENTS")
    old = _still_running(process)
    filling = _Filling(maps, environment)
    argv = _filled(process.argv, filling)
    _complain(path, filling, old)
    command = Command(argv, Path.cwd(), environment)
    version = launch.engine_version.value if isinstance(launch.engine_version, Known) else ""
    return Origin("trace", str(path), command, launch.engine, old, tuple(filling.notes), version), trace


def _still_running(process: Process) -> ProcessKey | None:
    """Return the recorded launch's root when it lives here: same pid and start, and its command line redacts alike."""
    if not is_running(process.key):
        return None
    entry = read_entry(PROC, process.key.pid)
    is_alike = entry is not None and _shape(arguments.argv(Tokens(), entry.argv)) == _shape(process.argv)
    return process.key if is_alike else None


def _shape(argv: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("<>" if tokens_in(word) else word for word in argv)


def _filled(argv: tuple[str, ...], filling: _Filling) -> tuple[str, ...]:
    done: list[str] = []
    for position, word in enumerate(argv):
        option = argv[position - 1] if position and argv[position - 1].startswith("--") else ""
        if word in filling.maps:
            filling.used.add(word)
            done.append(filling.maps[word])
        elif tokens_in(word):
            done.append(_without_tokens(word, option, filling))
        else:
            done.append(_program(word, position, tuple(done), filling))
    return tuple(done)


def _without_tokens(word: str, option: str, filling: _Filling) -> str:
    flag, equals, _ = word.partition("=")
    named = flag if equals and flag.startswith("--") else option
    for token in tokens_in(word):
        value = _value(token, named if word in (token, f"{flag}={token}") else "", filling)
        if value is None:
            filling.unresolved.append(f"{token} ({named})" if named else token)
        else:
            word = word.replace(token, value, 1)
    return word


def _value(token: str, option: str, filling: _Filling) -> str | None:
    for key in (token, token.partition(">")[0].removeprefix("<")):
        if key in filling.maps:
            filling.used.add(key)
            return filling.maps[key]
    variable = option.lstrip("-").replace("-", "_").upper()
    if variable and variable in filling.environment:
        filling.notes.append(f"the value of {option} comes from the variable {variable} ({token} in the trace)")
        return filling.environment[variable]
    return None


def _program(word: str, position: int, before: tuple[str, ...], filling: _Filling) -> str:
    """Find again what redaction reduced to a file's name: the interpreter, an engine's script, an installed file."""
    is_script = position > 0 and _is_script(before, word)
    if position and not is_script:
        return word
    if "/" not in word:
        found = shutil.which(word, path=filling.environment.get("PATH", os.defpath))
        if found is None:
            filling.unresolved.append(f"{word} (the program: not on PATH)")
            return word
        filling.notes.append(f"{word} of the trace is {found} here, the first on PATH")
        return found
    if is_script and not word.startswith("/") and not Path(word).exists():
        return _installed(word, before, filling)
    return word


def _is_script(before: tuple[str, ...], word: str) -> bool:
    """Say whether a word is the script that a Python interpreter runs: the last thing that it needs to know."""
    python = parse_python((*before, word))
    return python is not None and python.way == "script" and not python.arguments and python.program == word


def _installed(word: str, before: tuple[str, ...], filling: _Filling) -> str:
    interpreter = expected((*before, "x"), str(Path.cwd()), filling.environment)
    rest = next((word.removeprefix(one) for one in PACKAGES if word.startswith(one)), word)
    for directory in interpreter.search_path if interpreter is not None else ():
        if (Path(directory) / rest).is_file():
            return str(Path(directory) / rest)
    filling.unresolved.append(word)
    return word


def _complain(path: Path, filling: _Filling, old: ProcessKey | None) -> None:
    if filling.unresolved:
        named = ", ".join(dict.fromkeys(filling.unresolved))
        first = filling.unresolved[0].partition(" ")[0]
        key = first.partition(">")[0].removeprefix("<") if is_token(first) else first
        still = f"; or, since it still runs: hangdoc relaunch {old.pid}" if old is not None else ""
        message = f"{path} is redacted, and nothing says what is meant by {named}: nothing was started or ended"
        raise HangdocError(message, f"fill it in: --map {key}=VALUE{still}")
    unknown = sorted(set(filling.maps) - filling.used)
    if unknown:
        raise HangdocError(f"--map {unknown[0]}: the command in {path} has no such token", "look at the spelling")
