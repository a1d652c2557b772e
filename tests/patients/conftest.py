"""One ward for all tests: it knows from the collected tests which patients it has to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.patients.stage import PATIENTS
from tests.patients.ward import Ward


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if (needs := needs_of(item)) is not None:
            item.add_marker(pytest.mark.needs(needs))


def needs_of(item: pytest.Item) -> str | None:
    name = patient_of(item)
    return PATIENTS[name].needs or None if name is not None else None


def patient_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    name = None if callspec is None or "ward" not in getattr(item, "fixturenames", ()) else callspec.params.get("name")
    return name if isinstance(name, str) else None


@pytest.fixture(scope="session")
def ward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    names = dict.fromkeys(name for item in request.session.items if (name := patient_of(item)) is not None)
    ward = Ward(names, tmp_path_factory.mktemp("ward"))
    yield ward
    ward.close()
