"""Which fields an expectation may name, and which values they may have: those that a document can have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from hangdoc.model.diagnosis import Diagnosis, Grade, Verdict

ACCEPT, FLOOR, RULED_OUT = "accept", "grade_floor", "ruled_out"
"""What an expectation has beyond the document."""

_OWN: dict[str, Any] = {ACCEPT: tuple[Verdict, ...], FLOOR: Grade, RULED_OUT: tuple[str, ...]}
_HEAD: dict[str, Any] = {"schema": int, "hangdoc": str, "taken_at": str}


def misfits(expected: Mapping[str, Any]) -> list[str]:
    """Return one clause for each name or value that no document can have.

    >>> misfits({"vredict": "blocked", "phase": "warm-up"})
    ['there is no field "vredict" (verdict?)', 'phase cannot be "warm-up" (warmup?)']
    """
    found = _object(expected, {**_HEAD, **_fields(Diagnosis), **_OWN}, "")
    return (
        [*found, f"{ACCEPT} needs a verdict beside it"] if ACCEPT in expected and "verdict" not in expected else found
    )


def _fields(record: type) -> dict[str, Any]:
    return {field.name.rstrip("_"): field.type for field in msgspec.structs.fields(record)}


def _object(expected: Mapping[str, Any], fields: Mapping[str, Any], where: str) -> list[str]:
    found: list[str] = []
    for name, value in expected.items():
        at = f"{where}.{name}".lstrip(".")
        if name in fields:
            found += _value(value, fields[name], at)
        else:
            found.append(f"there is no field {json.dumps(at)}{_nearest(name, tuple(fields))}")
    return found


def _value(value: Any, kind: Any, where: str) -> list[str]:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if value in ("null", None) and NoneType in get_args(kind):
            return []
        (kind,) = [one for one in get_args(kind) if one is not NoneType]
        return _value(value, kind, where)
    if origin is Literal:
        words = get_args(kind)
        return [] if value in words else [f"{where} cannot be {_shown(value)}{_nearest(value, words)}"]
    if origin is tuple:
        if not isinstance(value, list):
            return [f"{where} has to be a list, not {_shown(value)}"]
        item = get_args(kind)[0]
        return [line for number, one in enumerate(value) for line in _value(one, item, f"{where}[{number}]")]
    return _plain(value, dict if origin is dict else kind, where)


def _plain(value: Any, kind: type, where: str) -> list[str]:
    is_record = issubclass(kind, msgspec.Struct)
    if (is_record or kind is dict) and not isinstance(value, dict):
        return [f"{where} has to be a table, not {_shown(value)}"]
    if is_record:
        return _object(value, _fields(kind), where)
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    return [] if fits else [f"{where} cannot be {_shown(value)}"]


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]


def _nearest(word: Any, words: tuple[str, ...]) -> str:
    near = get_close_matches(str(word), words, n=1)
    return f" ({near[0]}?)" if near else ""
