"""Who of the tests runs beside whom under `pytest -n N`: in acts, one after the other, each with its own crowd."""

from __future__ import annotations

import enum
import re
from collections import Counter
from typing import NamedTuple

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.conftest import LIVE

MANY = 25
"""Tests of one file that go to a worker together, so that what a file sets up is made seldom. Arbitrary."""


class Act(enum.IntEnum):
    """What runs at the same time, in this order: a quick mistake should not come after half an hour of servers."""

    SMALL = 0
    """Small processes and pure functions: the ones wait while the others compute."""

    PATIENTS = 1
    """Alone: the ward fills all cores by itself, and a core that somebody else has makes its patients inconclusive."""

    SERVERS = 2
    """Real servers, one after the other: some of their tests end launches."""


MOST_WORKERS = {Act.PATIENTS: 1, Act.SERVERS: 1}


class Place(NamedTuple):
    """Where a test belongs. Those of one unit run one after the other in one worker: they share what is dear."""

    act: Act
    unit: str


LIVE_TESTS = re.compile(rf"tests/({'|'.join(LIVE)})/")

RULES = (
    (r"tests/patients/test_patients\.py", Act.PATIENTS, "the ward"),
    # In a pid namespace of their own they see nobody else's.
    (r"(tests/unit/ending/test_namespaces\.py.*reused_pid.*)", Act.SMALL, r"\1"),
    # These end launches, and whatever appears and ends meanwhile on this machine may be of theirs.
    (r"tests/unit/(ending|launch|relaunch)/", Act.PATIENTS, "the stage"),
    (r"tests/capture/test_launches\.py::\w+\[(.*)\]", Act.SERVERS, r"capture \1"),
    (r"(tests/capture/test_faults\.py.*)", Act.SERVERS, r"\1"),
    (r"tests/(torchrun/|sglang/test_(relaunch|unattended))", Act.SERVERS, "servers of their own"),
    (r"tests/sglang/", Act.SERVERS, "servers of the deck, in the order of their cases"),
    (r"tests/packaging/", Act.SMALL, "the wheel"),
    (r".*(another_pid_namespace|target_in_a_container)", Act.SMALL, "pid namespaces"),
    # These mostly wait, each by itself.
    (rf"({LIVE_TESTS.pattern}.*)", Act.SMALL, r"\1"),
    (r"(.*?)(::|$)", Act.SMALL, r"\1"),
)
"""What the identifiers of tests begin with, and where those belong: the first that fits."""


def places(tests: list[str]) -> dict[str, Place]:
    """Return where each test belongs; a file of many small ones is split, so that the last worker is not late."""
    found: dict[str, Place] = {}
    counts: Counter[str] = Counter()
    for test in tests:
        act, unit = next(
            (act, match.expand(unit)) for rule, act, unit in RULES if (match := re.match(rule, test)) is not None
        )
        if test.startswith(f"{unit}::"):
            counts[unit] += 1
            unit = f"{unit} {counts[unit] // MANY}"
        found[test] = Place(act, unit)
    return found


class Scheduling(LoadScopeScheduling):
    """Hands out one unit after the other; one of the next act only when nothing of the act before is under way."""

    def schedule(self) -> None:
        """Begin, or go on after a worker was lost and replaced."""
        if self.collection is None and self._check_nodes_have_same_collection():
            self.collection = list(next(iter(self.registered_collections.values())))
            self._places = places(self.collection)
            self._act = Act.SMALL
            for test in sorted(self.collection, key=self._order):
                self.workqueue.setdefault(self._split_scope(test), {})[test] = False
        for node in self.nodes * 2:
            self._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests of a worker that is gone to others, but not the one that it was at: it has failed."""
        units = self.assigned_work.pop(node)
        left = [(unit, test) for unit, tests in units.items() for test, is_done in tests.items() if not is_done]
        if not left:
            return None
        (at, crashed), others = left[0], left[1:]
        units[at][crashed] = True
        for unit in dict.fromkeys(unit for unit, _ in reversed(others)):
            self.workqueue[unit] = units[unit]
            self.workqueue.move_to_end(unit, last=False)
        for one in self.nodes:
            self._reschedule(one)
        return crashed

    def _order(self, test: str) -> tuple[bool, ...]:
        """The order of the collection, but what mostly waits before what computes: its end is not the run's."""
        return self._places[test].act, not LIVE_TESTS.match(test)

    def _split_scope(self, nodeid: str) -> str:
        return "{0.act} {0.unit}".format(self._places[nodeid])

    def _reschedule(self, node: WorkerController) -> None:
        if not self.workqueue and not node.shutting_down:
            node.shutdown()  # it ends what it has
        if node.shutting_down or self._is_busy(node):
            return
        coming = Act(int(next(iter(self.workqueue)).split()[0]))
        if coming == self._act:
            if self.nodes.index(node) < MOST_WORKERS.get(coming, len(self.nodes)):
                self._assign_work_unit(node)
        elif not any(map(self._is_busy, self.nodes)):
            self._act = coming
            for one in self.nodes:
                self._reschedule(one)

    def _is_busy(self, node: WorkerController) -> bool:
        """A worker begins a test only when it knows the one after it: a single one that is left waits for company."""
        return self._pending_of(self.assigned_work[node]) > 1
