"""The provisioned SGLang, and its launches: each case is launched once, in the order of cases.ALL, and then removed."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.sglang import cases
from tests.sglang.launches import Launch, start
from tests.sglang.provision import ProvisionError, Rig, provision

HERE = Path(__file__).parent
PREFETCH_VARIABLE = "HANGDOC_SGLANG_PREFETCH"
LOWEST = 19


class Deck:
    """Hands out launches; while one is examined the next of the plan already starts, on processor time left over."""

    def __init__(self, rig: Rig, directory: Path, plan: Sequence[str], prefetch: bool) -> None:
        self.rig, self.directory, self.plan, self.prefetch = rig, directory, plan, prefetch
        self.ahead: dict[str, Launch] = {}

    def take(self, case: str) -> Launch:
        launch = self.ahead.pop(case, None)
        if launch:
            launch.prefer(0)
        else:
            self.close()
            launch = self.begin(case)
        if self.prefetch:
            self.begin_next(case)
        return launch

    def begin(self, case: str) -> Launch:
        scenario, version = cases.split(case)
        return start(scenario, directory=self.directory / case, version=version, rig=self.rig)

    def begin_next(self, case: str) -> None:
        """Not one that passes by itself: it might be over when its turn comes."""
        coming = self.plan[self.plan.index(case) + 1 :][:1]
        for following in coming:
            if not cases.split(following)[0].passing:
                self.ahead[following] = self.begin(following)
                self.ahead[following].prefer(LOWEST)

    def close(self) -> None:
        while self.ahead:
            self.ahead.popitem()[1].close()


def case_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("started") if callspec else None


def position(item: pytest.Item) -> tuple[int, bool, bool, bool]:
    """Without a launch first; in a case, first what sees it start, then the rig's checks, last what ends it."""
    case = case_of(item)
    seen_late = "launch" in getattr(item, "fixturenames", ())
    ends_it = item.path.name == "test_kill_clean.py"
    return -1 if case is None else cases.ALL.index(case), ends_it, seen_late, item.path.name != "test_rig.py"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark before -m selects; sort after all others, so that a case used in several files is launched once."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        # All that launches needs this fixture; the rest is quick and runs everywhere.
        if "rig" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.sglang)
    yield
    left = [item for item in items if HERE not in item.path.parents]
    items[:] = left + sorted((item for item in items if HERE in item.path.parents), key=position)


@pytest.fixture(scope="session")
def rig() -> Rig:
    try:
        return provision()
    except ProvisionError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def deck(rig: Rig, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deck]:
    used = [case for case in map(case_of, request.session.items) if case]
    prefetch = os.environ.get(PREFETCH_VARIABLE, "1") != "0"
    dealt = Deck(rig, tmp_path_factory.mktemp("launches"), list(dict.fromkeys(used)), prefetch)
    yield dealt
    dealt.close()


@pytest.fixture(scope="session")
def started(deck: Deck, request: pytest.FixtureRequest) -> Iterator[Launch]:
    """A launch of the case as soon as it runs: nothing of it may have been imported yet."""
    with deck.take(request.param) as launch:
        yield launch


@pytest.fixture
def launch(started: Launch) -> Launch:
    """A launch of the case that has shown all its signs: ill, or ready where it is healthy."""
    return started.wait_until_ill()
