"""Read the engine's version from the files that the target loaded it from, without importing anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hangdoc.launch.commands import parse_python
from hangdoc.launch.interpreter import Interpreter, look_at
from hangdoc.launch.table import Entry, is_same
from hangdoc.model.engine import Engine
from hangdoc.model.reading import Known, Missing, Reading

MOST_ASKED = 4
"""Members that are asked at most; arbitrary: all run the same interpreter."""

VERSION_FILES = ("version.py", "_version.py", "__init__.py")
VERSION_LINE = re.compile(r"""^(?:__version__|version)\s*(?::\s*str\s*)?(?:=\s*\w+\s*)*=\s*["']([^"'\s]+)["']""", re.M)
METADATA_LINE = re.compile(r"^Version:\s*(\S+)", re.M)


def read_version(proc: Path, engine: Engine, members: Sequence[Entry]) -> Reading[str]:
    """Read the version of the engine's package as the target finds it.

    Rule: the first directory of the target's module search path that holds the package counts, as for the target's own
    import; a file of the package that is mapped into the target decides before that. Its version is in the METADATA of
    the dist-info beside it, else a literal in the package's version.py. It fails for a package that is reached
    through a .pth file or that sys.path was changed for at run time: then the only dist-info found is believed.
    """
    if not engine.distribution:
        return Missing("launch", "unsupported", "the engine was not recognised")
    complaint: Missing | None = None
    for entry in [member for member in members if parse_python(member.argv) is not None][:MOST_ASKED]:
        found = _read_from(proc, entry, engine.distribution)
        if isinstance(found, Known):
            return found
        complaint = complaint or found
    return complaint or Missing("launch", "unsupported", "no member is a Python process that can be asked")


def _read_from(proc: Path, entry: Entry, package: str) -> Reading[str]:
    try:
        interpreter = look_at(proc, entry)
    except PermissionError:
        detail = f"the files of process {entry.pid} may not be looked at"
        return Missing("launch", "denied", detail, "run hangdoc as the launch's owner, or with sudo")
    except OSError:
        return Missing("launch", "gone", f"process {entry.pid} ended")
    version = loaded_version(interpreter, package)
    if not is_same(proc, entry.key):
        return Missing("launch", "gone", f"process {entry.pid} ended")
    if version is None:
        return Missing("launch", "failed", f"no single {package} was found on the module path of process {entry.pid}")
    return Known(version)


def package_directory(interpreter: Interpreter, package: str) -> Path | None:
    """Return where a package is loaded from; None for one that only a .pth file or sys.path leads to."""
    found = _package(interpreter, package)
    return None if found is None else found[1]


def loaded_version(interpreter: Interpreter, package: str) -> str | None:
    """Return the version of a package as an interpreter finds it; None when none or more than one is found."""
    found = _package(interpreter, package)
    beside = None if found is None else _version_beside(*found, package)
    return beside or _editable(interpreter, package)


def _package(interpreter: Interpreter, package: str) -> tuple[Path, Path] | None:
    """Return the directory that a package is found in, and its own: a link may lead that elsewhere."""
    for directory in (*interpreter.mapped_from(package), *interpreter.search_path):
        inside = interpreter.inside(f"{directory}/{package}")
        if (inside / "__init__.py").is_file():
            return interpreter.inside(directory), inside
    return None


def _version_beside(directory: Path, inside: Path, package: str) -> str | None:
    """Read the dist-info beside a package; what the package says of itself decides between two of them."""
    named = _dist_info_versions(directory, package)
    if len(named) == 1:
        return named.pop()
    literal = _literal_version(inside)
    return literal if not named or literal in named else None


def _editable(interpreter: Interpreter, package: str) -> str | None:
    """An editable install leaves its dist-info without the package beside it."""
    versions: set[str] = set()
    for directory in interpreter.search_path:
        if not interpreter.inside(f"{directory}/{package}/__init__.py").is_file():
            versions |= _dist_info_versions(interpreter.inside(directory), package)
    return versions.pop() if len(versions) == 1 else None


def _dist_info_versions(directory: Path, package: str) -> set[str]:
    versions: set[str] = set()
    for metadata in directory.glob(f"{package}-*.dist-info/METADATA"):
        match = METADATA_LINE.search(_text(metadata))
        if match:
            versions.add(match[1])
    return versions


def _literal_version(inside: Path) -> str | None:
    for name in VERSION_FILES:
        match = VERSION_LINE.search(_text(inside / name))
        if match:
            return match[1]
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
