"""What a diagnosis is expected to be: a part of the document, in JSON or TOML, and where the document differs.

Beside fields of the document an expectation may have three of its own: `accept` (verdicts that pass as well as
`verdict`), `grade_floor` (the least grade that passes) and `ruled_out` (hypotheses, by identifier or name, that have to
be ruled out).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hangdoc.criteria import RANK
from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import Grade
from hangdoc.regular import open_regular
from hangdoc.report.fields import ACCEPT, FLOOR, RULED_OUT, misfits
from hangdoc.report.words import GRADE_WORDS, rank_text

_FORMAT = 'it is TOML or JSON with fields of the document, e.g. verdict = "blocked"'

MOST_BYTES = 1 << 20
"""Longest expectation that is read. Arbitrary: a whole document of 500 processes is shorter."""


def read_expectation(path: Path) -> dict[str, Any]:
    """Return the fields that a file names; a name ending in .json is JSON, any other is TOML.

    HangdocError (exit 2): no such file or no regular one, no TOML or JSON, no field, a field or a value that no
    document can have.
    """
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1).decode("utf-8")
        if len(text) > MOST_BYTES:
            raise HangdocError(f"{path} is no expectation: it has more than {MOST_BYTES >> 20} MiB", _FORMAT)
        fields = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise HangdocError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise HangdocError(f"{path} is no expectation: {error}", _FORMAT) from error
    if not isinstance(fields, dict) or not fields:
        raise HangdocError(f"{path} names no field: it would fit any diagnosis", _FORMAT)
    if wrong := misfits(fields):
        raise HangdocError(f"{path} is no expectation: {'; '.join(wrong)}", _FORMAT)
    return fields


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return one line for each place where the document is not as expected.

    Objects: every expected field, others may be there. Lists: as many entries, each as expected. TOML has no null:
    a field expected as "null" is one that could not be read.

    >>> differences({"verdict": "blocked", "target": {"pid": 1}}, {"verdict": "healthy", "target": {"pid": 1}})
    ['verdict: expected "blocked", found "healthy"']
    >>> differences({"verdict": "blocked", "accept": ["hung"]}, {"verdict": "hung"})
    []
    """
    lines: list[str] = []
    for name, value in expected.items():
        if name == "verdict":
            lines += _verdict(value, expected.get(ACCEPT, ()), found)
        elif name == FLOOR:
            lines += _floor(value, found)
        elif name == RULED_OUT:
            lines += [line for one in value for line in _ruled_out(one, found)]
        elif name != ACCEPT:
            lines += _field(value, found, name, name)
    return lines


def _verdict(wanted: Any, accepted: Sequence[str], found: Mapping[str, Any]) -> list[str]:
    if found.get("verdict") in (wanted, *accepted):
        return []
    others = "".join(f" or {json.dumps(one)}" for one in accepted)
    return [f"verdict: expected {json.dumps(wanted)}{others}, found {json.dumps(found.get('verdict'))}"]


def _floor(least: Grade, found: Mapping[str, Any]) -> list[str]:
    grade = found["grade"]
    if RANK[grade] >= RANK[least]:
        return []
    return [f'grade: expected at least "{least}", found "{grade}"']


def _ruled_out(named: str, found: Mapping[str, Any]) -> list[str]:
    for one in found["hypotheses"]:
        if named in (one["id"], one["name"]):
            if one["grade"] == "ruled-out":
                return []
            return [f"{one['name']} ({one['id']}): expected to be ruled out, found {GRADE_WORDS[one['grade']]}"]
    return [f"{RULED_OUT}: there is no hypothesis {json.dumps(named)}"]


def _field(expected: Any, found: Mapping[str, Any], name: str, where: str) -> list[str]:
    if name not in found:
        return [f"{where}: there is no such field"]
    return _compared(expected, found[name], where)


def _compared(expected: Any, found: Any, where: str) -> list[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        return [line for name, value in expected.items() for line in _field(value, found, name, f"{where}.{name}")]
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) == len(found):
            pairs = enumerate(zip(expected, found, strict=True))
            return [line for number, (want, have) in pairs for line in _compared(want, have, f"{where}[{number}]")]
        if where == "culprits":
            return [f"culprits: expected {_who(expected)}, found {_who(found)}"]
    if expected == found or (expected == "null" and found is None):
        return []
    return [f"{where}: expected {json.dumps(expected, default=str)}, found {json.dumps(found)}"]


def _who(culprits: Sequence[Any]) -> str:
    """Return the culprits of an expectation or a document in words: "scheduler TP1 (pid 7)", or "nobody"."""
    return ", ".join(map(_one, culprits)) or "nobody"


def _one(culprit: Any) -> str:
    if not isinstance(culprit, dict):
        return json.dumps(culprit, default=str)
    rank = culprit.get("rank")
    who = rank_text(str(culprit.get("role", "process")), rank if isinstance(rank, dict) else {})
    return f"{who} (pid {culprit['pid']})" if culprit.get("pid") is not None else who
