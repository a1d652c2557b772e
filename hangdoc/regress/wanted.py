"""Expectations written: from a diagnosis, anew or so that the old one fits again, as TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from hangdoc.criteria import RANK
from hangdoc.report.expectation import differences
from hangdoc.report.fields import ACCEPT, FLOOR, RULED_OUT

_KEPT = ("verdict", "grade", "phase")
_KEPT_OF_CULPRITS = ("pid", "role", "rank")

_COMMENTS = re.compile(r"(?:[ \t]*(?:#.*)?\n)*")


def wanted(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a replay of this document's trace has to say again."""
    culprits = [_named(one, _KEPT_OF_CULPRITS) for one in said["culprits"]]
    return {**{name: said[name] for name in _KEPT}, "culprits": culprits}


def corrected(expected: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expectation with those of its fields changed that the document does not fit."""
    found = dict(expected)
    if differences({name: expected[name] for name in ("verdict", ACCEPT) if name in expected}, said):
        found["verdict"] = said["verdict"]
    if FLOOR in expected and RANK[said["grade"]] < RANK[expected[FLOOR]]:
        found[FLOOR] = said["grade"]
    for name in expected.keys() - {"verdict", ACCEPT, FLOOR, RULED_OUT}:
        if differences({name: expected[name]}, said):
            found[name] = _like(expected[name], said[name], name)
    if RULED_OUT in expected:
        found[RULED_OUT] = [one for one in expected[RULED_OUT] if not differences({RULED_OUT: [one]}, said)]
    return found


def _like(expected: Any, said: Any, name: str) -> Any:
    """Return of what was said as much as the expectation named."""
    if isinstance(expected, dict) and isinstance(said, dict):
        return {key: _like(value, said[key], key) for key, value in expected.items() if key in said}
    if isinstance(expected, list) and isinstance(said, list):
        if len(expected) == len(said):
            return [_like(want, have, name) for want, have in zip(expected, said, strict=True)]
        named = dict.fromkeys(key for one in expected if isinstance(one, dict) for key in one)
        keys = tuple(named) or (_KEPT_OF_CULPRITS if name == "culprits" else ())
        return [_named(one, keys) if keys else one for one in said]
    return said


def _named(record: Any, keys: tuple[str, ...]) -> Any:
    return {key: record[key] for key in keys if key in record} if isinstance(record, dict) else record


def rewritten(text: str, changed: Mapping[str, Any]) -> str:
    """Return the text of an expectation with these fields; the lines of the others, and comments, stay as they are."""
    before = tomllib.loads(text)
    lines = text.splitlines()
    for name in [name for name, value in changed.items() if value != before.get(name)]:
        places = [number for number, line in enumerate(lines) if re.match(rf"{re.escape(name)}\s*=", line)]
        if places:
            lines[places[0]] = f"{name} = {_toml(changed[name])}"
    found = "\n".join(lines) + "\n"
    if _fields(found) == changed:
        return found
    head = _COMMENTS.match(text)
    return (head.group() if head else "") + text_of(changed)


def _fields(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def text_of(fields: Mapping[str, Any]) -> str:
    """Return an expectation as TOML, a field a line."""
    return "".join(f"{name} = {_toml(value)}\n" for name, value in fields.items())


def _toml(value: Any) -> str:
    """Return a value as TOML, which has no null: "null" stands for it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_key(name)} = {_toml(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if value is None:
        return '"null"'
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name, re.ASCII) else _toml(name)
