"""One ward for all tests: it knows from the collected tests which patients it has to look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import NOT_TO_BE_HAD
from tests.patients.needs import RIGHTS, lacking
from tests.patients.stage import PATIENTS
from tests.patients.ward import Ward


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = patient_of(item)
        for need in PATIENTS[name].needs.split() if name is not None else ():
            item.add_marker(mark_of(need))


def mark_of(need: str) -> pytest.MarkDecorator:
    """A right that is not to be had skips by name, under CI too; a program that is absent does not, there."""
    if need in RIGHTS:
        return pytest.mark.skipif(need in lacking(need), reason=f"{NOT_TO_BE_HAD}{need}")
    return pytest.mark.needs(need)


def patient_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    name = None if callspec is None or "ward" not in getattr(item, "fixturenames", ()) else callspec.params.get("name")
    return name if isinstance(name, str) else None


@pytest.fixture(scope="session")
def ward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    names = dict.fromkeys(name for item in request.session.items if (name := patient_of(item)) is not None)
    here = [name for name in names if not lacking(PATIENTS[name].needs)]
    ward = Ward(here, tmp_path_factory.mktemp("ward"))
    yield ward
    ward.close()
