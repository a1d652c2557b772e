"""Work out where a Python process looks for its modules, from the outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hangdoc.launch.commands import base_name, is_python_name, parse_python
from hangdoc.launch.table import Entry

VARIABLES = frozenset({"PYTHONPATH", "PATH", "VIRTUAL_ENV"})
"""All that is ever looked at in a target's environment here."""

MOST_LINKS = 40
"""Symbolic links followed in one path, as the kernel does (MAXSYMLINKS)."""

MOST_SCRIPT_HEAD = 4096
"""Bytes of a script in which its interpreter stands; the kernel itself reads 256."""

SHELL_WRAPPED = re.compile(r"#!/bin/sh\n'''exec' \"?(/[^\n\" ]+)")
ROOT = Path("/")

PACKAGES = re.compile(r"^(/.*?/(?:site|dist)-packages)/")
PYTHON_NAME = re.compile(r"python(\d+\.\d+)")


@dataclass(frozen=True)
class Interpreter:
    """A Python process's module path. root: where its "/" is reached; mapped: the files mapped into it.

    called: the interpreter's path as it is called, "" where that was not asked.
    """

    root: Path
    search_path: tuple[str, ...]
    mapped: tuple[str, ...]
    called: str = ""

    def inside(self, path: str) -> Path:
        """Translate a path of the target into one of ours; its absolute links lead into its own root too."""
        return resolve_in(self.root, path)

    def mapped_from(self, package: str) -> tuple[str, ...]:
        """Return the directories that files of a package of this name were mapped from."""
        part = f"/{package}/"
        return tuple(dict.fromkeys(path.rpartition(part)[0] for path in self.mapped if part in path))


def resolve_in(root: Path, path: str) -> Path:
    """Resolve a path below another root directory; a path that does not exist is returned as it stands."""
    parts = list(PurePosixPath(path).parts[1:])[::-1]
    done: list[str] = []
    links = 0
    while parts:
        part = parts.pop()
        if part == "..":
            done = done[:-1]
            continue
        here = root.joinpath(*done, part)
        if not here.is_symlink() or links >= MOST_LINKS:
            done.append(part)
            continue
        links += 1
        target = here.readlink()
        done = [] if target.is_absolute() else done
        parts.extend(reversed([piece for piece in target.parts if piece != "/"]))
    return root.joinpath(*done)


def look_at(proc: Path, entry: Entry) -> Interpreter:
    """Read what tells a process's module path; OSError when it may not be looked at or is gone."""
    home = proc / str(entry.pid)
    (home / "root").readlink()
    executable = str((home / "exe").readlink()).removesuffix(" (deleted)")
    cwd = str((home / "cwd").readlink())
    variables, mapped = _variables(home), _mapped(home)
    root = home / "root"
    path = _search_path(entry.argv, cwd, variables, executable, root)
    path += [match[1] for name in mapped if (match := PACKAGES.match(name))]
    return Interpreter(root, tuple(dict.fromkeys(path)), mapped)


def expected(argv: tuple[str, ...], cwd: str, variables: Mapping[str, str], root: Path = ROOT) -> Interpreter | None:
    """Work out where a program that is not yet started will look; None when it is no Python program or not there.

    A script is followed to the interpreter of its first line, as the kernel does.
    """
    called = _called(argv[0], cwd, variables, root) if argv else None
    if called is not None and not is_python_name(base_name(called)):
        argv = (*_script_interpreter(resolve_in(root, called)), called, *argv[1:])
        called = _called(argv[0], cwd, variables, root)
    if called is None or not is_python_name(base_name(called)) or not resolve_in(root, called).is_file():
        return None
    executable = str(PurePosixPath("/", resolve_in(root, called).relative_to(root)))
    search_path = tuple(dict.fromkeys(_search_path(argv, cwd, variables, executable, root)))
    return Interpreter(root, search_path, (), called)


def _script_interpreter(path: Path) -> tuple[str, ...]:
    """Read what runs a script from its first lines; pip writes a shell's for a path that is too long for the kernel."""
    try:
        with path.open("rb") as file:
            head = file.read(MOST_SCRIPT_HEAD).decode("utf-8", "replace")
    except OSError:
        return ()
    line = head.partition("\n")[0]
    if not line.startswith("#!"):
        return ()
    if (wrapped := SHELL_WRAPPED.match(head)) is not None:
        return (wrapped[1],)
    words = line.removeprefix("#!").split()
    return tuple(words[1:] if words and base_name(words[0]) == "env" else words)


def _search_path(
    argv: tuple[str, ...], cwd: str, variables: Mapping[str, str], executable: str, root: Path
) -> list[str]:
    prefixes = _prefixes(argv, cwd, variables, executable, root)
    return [*_given(argv, cwd, variables), *(directory for prefix in prefixes for directory in prefix)]


def _given(argv: tuple[str, ...], cwd: str, variables: Mapping[str, str]) -> list[str]:
    """The directories before the installation's own: that of the script or the working directory, then PYTHONPATH."""
    python = parse_python(argv)
    if python is None or "I" in python.flags:
        return []
    first = str(PurePosixPath(cwd, python.program).parent) if python.way == "script" else cwd
    given = [] if "P" in python.flags else [first]
    entries = "" if python.ignores_environment else variables.get("PYTHONPATH", "")
    return given + [str(PurePosixPath(cwd, one)) for one in entries.split(":") if one]


def _prefixes(
    argv: tuple[str, ...], cwd: str, variables: Mapping[str, str], executable: str, root: Path
) -> list[list[str]]:
    """The package directories of the interpreter as it was called (a venv's is a link), then of the real one."""
    called = _called(argv[0], cwd, variables, root)
    binaries = [called] if called else []
    binaries += [f"{venv}/bin/python"] if (venv := variables.get("VIRTUAL_ENV")) and not called else []
    version = PYTHON_NAME.search(base_name(executable))
    names = [f"python{version[1]}"] if version else []
    found: list[list[str]] = []
    for binary in [*binaries, executable]:
        prefix = str(PurePosixPath(binary).parent.parent).rstrip("/")
        lib = resolve_in(root, f"{prefix}/lib")
        found.append([f"{prefix}/lib/{name}/site-packages" for name in names or _python_names(lib)])
        found.append([f"{prefix}/local/lib/{name}/dist-packages" for name in names])
        found.append([f"{prefix}/lib/python3/dist-packages"])
    return found


def _called(first: str, cwd: str, variables: Mapping[str, str], root: Path) -> str | None:
    if "/" in first:
        return str(PurePosixPath(cwd, first))
    places = (f"{directory}/{first}" for directory in variables.get("PATH", "").split(":") if directory)
    return next((place for place in places if resolve_in(root, place).exists()), None)


def _python_names(lib: Path) -> list[str]:
    return sorted((one.name for one in lib.glob("python3.*")), reverse=True)


def _variables(home: Path) -> dict[str, str]:
    try:
        data = (home / "environ").read_bytes()
    except PermissionError:
        return {}
    pairs = (item.partition("=") for item in data.decode("utf-8", "surrogateescape").split("\0"))
    return {name: value for name, _, value in pairs if name in VARIABLES}


def _mapped(home: Path) -> tuple[str, ...]:
    try:
        lines = (home / "maps").read_text(errors="replace").splitlines()
    except PermissionError:
        return ()
    paths = (line[line.index("/") :] for line in lines if "/" in line)
    return tuple(dict.fromkeys(path for path in paths if ".so" in path))
