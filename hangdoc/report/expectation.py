"""What a diagnosis is expected to be: a part of the document, in JSON or TOML, and where the document differs."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from hangdoc.errors import HangdocError

_FORMAT = 'it is TOML or JSON with fields of the document, e.g. verdict = "blocked"'


def read_expectation(path: Path) -> dict[str, Any]:
    """Return the fields that a file names; a name ending in .json is JSON, any other is TOML."""
    try:
        text = path.read_text(encoding="utf-8")
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise HangdocError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise HangdocError(f"{path} is no expectation: {error}", _FORMAT) from error
    if not isinstance(fields, dict) or not fields:
        raise HangdocError(f"{path} names no field: it would fit any diagnosis", _FORMAT)
    return fields


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Return one line for each place where the document is not as expected.

    Objects: every expected field, others may be there. Lists: as many entries, each as expected. TOML has no null:
    a field expected as "null" is one that could not be read.

    >>> differences({"verdict": "blocked", "target": {"pid": 1}}, {"verdict": "healthy", "target": {"pid": 1}})
    ['verdict: expected "blocked", found "healthy"']
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        paired = [(f"{where}.{name}".lstrip("."), value, name) for name, value in expected.items()]
        return [line for at, value, name in paired for line in _field(value, found, name, at)]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for number, (want, have) in pairs for line in differences(want, have, f"{where}[{number}]")]
    if expected == found or (expected == "null" and found is None):
        return []
    return [f"{where}: expected {json.dumps(expected, default=str)}, found {json.dumps(found)}"]


def _field(expected: Any, found: dict[str, Any], name: str, where: str) -> list[str]:
    if name not in found:
        return [f"{where}: there is no such field"]
    return differences(expected, found[name], where)
