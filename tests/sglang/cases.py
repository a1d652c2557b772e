"""Cases: a scenario on a version, written `busy-init` or `busy-init@0.5.8`, and a decorator to run a test on some."""

from __future__ import annotations

import pytest

from tests.sglang.scenarios import LIST, NEWEST, SCENARIOS, Scenario


def split(case: str) -> tuple[Scenario, str]:
    name, _, version = case.partition("@")
    return SCENARIOS[name], version or NEWEST


def name(scenario: Scenario, version: str) -> str:
    return scenario.name if version == NEWEST else f"{scenario.name}@{version}"


ALL = tuple(
    sorted((name(known, version) for known in LIST for version in known.versions), key=lambda case: "@" in case)
)


def on(*cases: str) -> pytest.MarkDecorator:
    """Run the test once on each case; it takes the fixture `launch` (already ill) or `started` (just started)."""
    unknown = set(cases) - set(ALL)
    assert not unknown, f"no such cases: {sorted(unknown)}"
    return pytest.mark.parametrize("started", cases, indirect=True, scope="session")
