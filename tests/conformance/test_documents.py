"""Documents of real recordings: valid by the committed schema, and whatever is null is accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hangdoc.diagnosis import diagnose, hypotheses
from hangdoc.report.document import document
from hangdoc.trace.reader import read

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.hangtrace"))
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "schema.json").read_text()))

READ_BY = {"state": "cpu", "cpu_ratio": "cpu", "demand_ratio": "cpu"}
"""Which probe fills a field of a process."""


def test_there_are_recordings() -> None:
    """The checks below look at something."""
    assert GOLDEN


@pytest.fixture(scope="module", params=GOLDEN, ids=lambda path: path.stem)
def replayed(request: pytest.FixtureRequest) -> dict[str, Any]:
    return document(diagnose(read(request.param), "trace"))


def test_schema(replayed: dict[str, Any]) -> None:
    """The document has every field of the schema, of the right type, and no other."""
    SCHEMA.validate(replayed)


def test_every_hypothesis_is_weighed(replayed: dict[str, Any]) -> None:
    """No hypothesis is dropped; what is ruled out says by what."""
    assert sorted(one["id"] for one in replayed["hypotheses"]) == [one.id for one in hypotheses()]
    assert not [one["id"] for one in replayed["hypotheses"] if one["grade"] == "ruled-out" and not one["against"]]


def test_null_is_accounted_for(replayed: dict[str, Any]) -> None:
    """A field that is null has an entry in missing, of the probe that would have filled it."""
    lacks = {(lack["probe"], lack["pid"]) for lack in replayed["missing"]}
    unread = [
        (probe, process["pid"])
        for process in replayed["processes"]
        for field, probe in READ_BY.items()
        if process[field] is None
    ]
    assert [one for one in unread if one not in lacks and (one[0], None) not in lacks] == []
    gpus = replayed["gpus"]
    blind = gpus is None or any(None in one.values() for gpu in gpus for one in (gpu, *(gpu["processes"] or ())))
    assert not blind or any(probe == "gpu" for probe, _ in lacks)


def test_culprits_are_members(replayed: dict[str, Any]) -> None:
    """Who has to move is in the table of processes, unless outside, not there at all, or dead."""
    listed = {process["pid"] for process in replayed["processes"]}
    strangers = [one for one in replayed["culprits"] if one["pid"] not in listed and not one["outside"]]
    assert all(one["pid"] is None or replayed["verdict"] == "crashed" for one in strangers)


def test_a_hang_has_a_next_step(replayed: dict[str, Any]) -> None:
    """A verdict comes with what to do and a playbook to read."""
    if replayed["verdict"] != "undetermined":
        assert replayed["next_steps"]
