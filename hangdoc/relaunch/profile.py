"""Read launch profiles: tables that say what a kind of GPU needs, each entry with its source and reason."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from hangdoc.errors import HangdocError
from hangdoc.regular import open_regular

When: TypeAlias = Literal["always", "capture", "broken-peers", "hint"]

HOW = "docs/relaunch.md shows what a profile looks like"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One decision: words of the command or a variable. The profile's own file says what each field means."""

    when: When
    reason: str
    source: str
    words: tuple[tuple[str, ...], ...] = ()
    rivals: tuple[str, ...] = ()
    variable: str = ""
    value: str = ""
    evidence: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A table. compute_capability_major: of the GPUs that it is for; None: its user knows."""

    name: str
    title: str
    change: tuple[Entry, ...]
    compute_capability_major: int | None = None


def builtin() -> dict[str, Profile]:
    """Return the profiles that hangdoc brings, by name."""
    folder = files("hangdoc.relaunch") / "profiles"
    found = [_read(path) for path in folder.iterdir() if path.name.endswith(".toml")]
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def named(text: str) -> Profile:
    """Return a profile by its name or file; HangdocError (2) when there is none or the file is none."""
    known = builtin()
    if text in known:
        return known[text]
    if "/" not in text and not Path(text).exists():
        names = ", ".join(["auto", *known, "none"])
        raise HangdocError(f"there is no profile {text}", f"take one of {names}, or the path of a file")
    return _read(Path(text))


def _read(path: Path | Traversable) -> Profile:
    try:
        data = tomllib.loads(_text(path))
        profile = msgspec.convert(data, Profile)
    except OSError as error:
        raise HangdocError(f"the profile {path} cannot be read: {error.strerror}", "look at the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise HangdocError(f"{path} is no profile: {error}", HOW) from error
    _check(profile, data, path)
    return profile


def _text(path: Path | Traversable) -> str:
    if not isinstance(path, Path):
        return path.read_text(encoding="utf-8")
    with open_regular(path) as file:
        return file.read().decode()


def _check(profile: Profile, data: Mapping[str, Any], path: Path | Traversable) -> None:
    """Refuse what would silently do nothing, or something else than was meant."""
    known = {field.name for field in fields(Entry)}
    for entry, row in zip(profile.change, data["change"], strict=True):
        complaint = ""
        if set(row) - known:
            complaint = f"{min(set(row) - known)} is no field of a change"
        elif bool(entry.words) == bool(entry.variable):
            complaint = "a change has either words or a variable"
        elif any(not words or not words[0].startswith("--") for words in entry.words):
            complaint = "words begin with an option (--name)"
        elif "=" in entry.variable or "\0" in entry.variable + entry.value:
            complaint = f"{entry.variable!r} is no name of a variable"
        elif entry.when == "hint" and not entry.hint:
            complaint = 'a change that is made when = "hint" needs a hint'
        if complaint:
            raise HangdocError(f"{path} is no profile: {complaint}", HOW)
    unknown = set(data) - {field.name for field in fields(Profile)}
    if unknown:
        raise HangdocError(f"{path} is no profile: {min(unknown)} is no field of one", HOW)
