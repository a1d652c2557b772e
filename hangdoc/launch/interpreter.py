"""Work out where a Python process looks for its modules, from the outside."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hangdoc.launch.commands import base_name, parse_python
from hangdoc.launch.table import Entry

VARIABLES = frozenset({"PYTHONPATH", "PATH", "VIRTUAL_ENV"})
"""All that is ever looked at in a target's environment here."""

MOST_LINKS = 40
"""Symbolic links followed in one path, as the kernel does (MAXSYMLINKS)."""

PACKAGES = re.compile(r"^(/.*?/(?:site|dist)-packages)/")
PYTHON_NAME = re.compile(r"python(\d+\.\d+)")


@dataclass(frozen=True)
class Interpreter:
    """A Python process's module path. root: where its "/" is reached; mapped: the files mapped into it."""

    root: Path
    search_path: tuple[str, ...]
    mapped: tuple[str, ...]

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
    path = [*_given(entry, cwd, variables)]
    path += [directory for prefix in _prefixes(entry, cwd, variables, executable, root) for directory in prefix]
    path += [match[1] for name in mapped if (match := PACKAGES.match(name))]
    return Interpreter(root, tuple(dict.fromkeys(path)), mapped)


def _given(entry: Entry, cwd: str, variables: dict[str, str]) -> list[str]:
    """The directories before the installation's own: that of the script or the working directory, then PYTHONPATH."""
    python = parse_python(entry.argv)
    if python is None or "I" in python.flags:
        return []
    first = str(PurePosixPath(cwd, python.program).parent) if python.way == "script" else cwd
    given = [] if "P" in python.flags else [first]
    entries = "" if python.ignores_environment else variables.get("PYTHONPATH", "")
    return given + [str(PurePosixPath(cwd, one)) for one in entries.split(":") if one]


def _prefixes(entry: Entry, cwd: str, variables: dict[str, str], executable: str, root: Path) -> list[list[str]]:
    """The package directories of the interpreter as it was called (a venv's is a link), then of the real one."""
    called = _called(entry.argv[0], cwd, variables, root)
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


def _called(first: str, cwd: str, variables: dict[str, str], root: Path) -> str | None:
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
