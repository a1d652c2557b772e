"""Older traces, brought to the present schema: one pure function for each step.

A step takes one line of the file as plain data in schema N and returns it in schema N + 1. Schema 1 is the first, so
there is no step yet; the step from 1 to 2 goes in as `STEPS[1]`, and is never changed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

STEPS: dict[int, Step] = {}
"""The step that leads away from a schema, by that schema's number."""


def can_upgrade(schema: int, to: int, steps: Mapping[int, Step] = STEPS) -> bool:
    """Say whether steps lead from one schema to the other."""
    return schema <= to and all(number in steps for number in range(schema, to))


def upgrade(record: dict[str, Any], schema: int, to: int, steps: Mapping[int, Step] = STEPS) -> dict[str, Any]:
    """Return one line of an older schema in the newer one."""
    for number in range(schema, to):
        record = steps[number](record)
    return record
