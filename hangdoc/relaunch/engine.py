"""Find the engine in a command line that is to be started: where its own words begin, its version, its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.commands import base_name, is_python_name, kind_of
from hangdoc.launch.interpreter import Interpreter, expected
from hangdoc.launch.recognise import engine_named, recognise
from hangdoc.launch.settings import read_settings
from hangdoc.launch.version import loaded_version, package_directory
from hangdoc.model.process import EngineName
from hangdoc.relaunch.records import Command

VOCABULARY_FILES = ("srt/server_args.py", "srt/arg_groups/**/*.py")
"""Where SGLang declares its options: all in the first up to 0.5.8, in 0.5.23 as fields under the second."""

LITERAL = re.compile(r'"(--[a-z][a-z0-9-]+)"')
FIELD = re.compile(r"^ {4}([a-z][a-z0-9_]+):", re.MULTILINE)
STARTERS = frozenset({"sglang", "vllm", "torchrun", "accelerate"})


@dataclass(frozen=True)
class EngineCommand:
    """The engine inside a command line. begin: its first word's index; options: None when its sources are not found.

    is_found: its package is there for the interpreter that would run it.
    """

    name: EngineName
    begin: int
    interpreter: Interpreter | None
    version: str = ""
    options: frozenset[str] | None = None
    is_found: bool = False


def engine_in(command: Command) -> EngineCommand | None:
    """Find the launcher of an engine that a command starts, behind `timeout`, `env` and the like; None for a script."""
    for begin in _starts(command.argv):
        words = command.argv[begin:]
        sighting = recognise(kind_of(0, words, ""), words, "")
        if sighting.is_launcher and sighting.engine is not None:
            return _described(sighting.engine, begin, command)
    return None


def port_of(command: Command, engine: EngineCommand | None) -> int | None:
    """Return the port that a launch will listen on; None when its command line does not tell."""
    if engine is None:
        return None
    text = read_settings(command.argv[engine.begin :], engine_named(engine.name).options).get("port", "")
    return int(text) if text.isdigit() and engine.name != "torchrun" else None


def _starts(argv: tuple[str, ...]) -> Iterator[int]:
    for begin, word in enumerate(argv):
        name = base_name(word)
        if begin == 0 or is_python_name(name) or name in STARTERS:
            yield begin


def _described(name: EngineName, begin: int, command: Command) -> EngineCommand:
    variables = {**command.environment, **dict(_assigned(command.argv[:begin]))}
    interpreter = expected(command.argv[begin:], str(command.cwd), variables)
    package = engine_named(name).distribution
    if interpreter is None or not package:
        return EngineCommand(name, begin, interpreter)
    inside = package_directory(interpreter, package)
    version = loaded_version(interpreter, package) or ""
    options = None if inside is None else read_options(inside)
    return EngineCommand(name, begin, interpreter, version, options, is_found=bool(version) or inside is not None)


def _assigned(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What `env NAME=VALUE` sets in front of the engine."""
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            yield name, value


def read_options(package: Path) -> frozenset[str] | None:
    """Read the options that an installed SGLang knows from its sources, without importing it; None without any.

    Rule: quoted words that begin with two dashes, and the names of annotated fields, in the files that declare options.
    It may find more than the options there are, never less; what a profile asks for is a name that means one thing.
    """
    found: set[str] = set()
    for pattern in VOCABULARY_FILES:
        for path in package.glob(pattern):
            text = path.read_text(errors="replace")
            found.update(LITERAL.findall(text))
            found.update(f"--{name.replace('_', '-')}" for name in FIELD.findall(text))
    return frozenset(found) or None


def given_options(argv: tuple[str, ...]) -> Mapping[str, str]:
    """Return the options of a command line as they were typed, each with its value ("" for a switch).

    >>> given_options(("--tp", "2", "--attention-backend=triton", "--disable-radix-cache"))["--attention-backend"]
    'triton'
    """
    found: dict[str, str] = {}
    for position, word in enumerate(argv):
        if not word.startswith("--"):
            continue
        option, equals, value = word.partition("=")
        following = argv[position + 1] if position + 1 < len(argv) else ""
        found[option.replace("_", "-")] = value if equals else ("" if following.startswith("--") else following)
    return found
