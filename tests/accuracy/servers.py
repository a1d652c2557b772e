"""The real SGLang on the CPU: its ill launches, and healthy ones seen at work, idle and importing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from msgspec.structs import replace

from tests.accuracy.beds import loaded
from tests.accuracy.records import Book, Record, Round
from tests.accuracy.symptoms import moment, not_dead, not_shown, not_slow
from tests.patients.stage import HANGS
from tests.patients.ward import TRACE_FILE
from tests.sglang.cases import split
from tests.sglang.launches import DEADLINE_S, Launch, LaunchError, start
from tests.sglang.provision import Rig
from tests.sglang.scenarios import CHILD_IMPORTS, LAUNCHER_IMPORTS, READY, SCENARIOS, Scenario
from tests.sglang.test_diagnosis import SICK, WAITS, Truth, edges, watch

SLEEPY = Scenario("healthy-sleep-on-idle", "none", (READY,), flags=("--sleep-on-idle",))
LONG_TOKENS, SHORT_TOKENS, ASKERS = 400, 16, 3
"""Tokens of a long answer (the servers take 512 with the question) and of a short one; who ask at the same time."""


@dataclass(frozen=True)
class Case:
    """One ill launch: what has to be said of it. who: the culprit, as records name one; waits: that must be listed."""

    verdict: str
    phase: str
    who: str
    waits: frozenset[tuple[str, str, str]] = frozenset()


def _case(name: str, truth: Truth) -> Case:
    assert truth.rank is not None
    return Case(truth.verdict, truth.phase, f"{truth.rank[0]}{truth.rank[1]}", frozenset(WAITS.get(name, ())))


KILLED = "killed-scheduler@0.5.8"
"""A server that was well until its scheduler was killed: 0.5.8 does not notice."""

CASES = {name: _case(name, truth) for name, truth in SICK.items()} | {
    "busy-warmup@0.5.8": Case("busy-wait", "warmup", "tp0"),
    "proxied-warmup": Case("blocked", "warmup", "launcher"),
    KILLED: Case("crashed", "ready", "tp0"),
}


def look_at_scenarios(names: set[str], rig: Rig, now: Round) -> None:
    """Launch each ill scenario that has not been looked at in this round yet, and look at it once."""
    for case in CASES:
        if case in names and now.lacks("sglang", case):
            with folder() as directory:
                now.enter(_ill(case, rig, directory, now), directory / TRACE_FILE)


def _ill(case: str, rig: Rig, directory: Path, now: Round) -> Record:
    scenario, version = split("healthy-tp1@0.5.8" if case == KILLED else case)
    blank = now.blank("sglang", case, CASES[case].verdict)
    with start(scenario, directory=directory, version=version, rig=rig) as launch:
        try:
            launch.wait_until_ill()
        except LaunchError as error:
            return replace(blank, state="inconclusive", why=f"never fell ill: {error}"[:300])
        victim = _kill(launch) if case == KILLED else None
        before = moment(launch)
        with loaded(now.load):
            record, document = _look(launch, blank, directory)
        lacks = not_dead(victim) if victim is not None else not_shown(scenario.ranks, before, moment(launch))
        if not lacks and blank.accepted == ("slow-start",):
            lacks = not_slow(launch)
    if lacks:
        record = replace(record, state="inconclusive", why=lacks)
    return record if document is None else _judged(case, record, document)


def _kill(launch: Launch) -> int:
    victim = launch.scheduler_pids()[0]
    os.kill(victim, signal.SIGKILL)
    return victim


def _judged(case: str, record: Record, document: dict[str, object]) -> Record:
    truth, seen = CASES[case], edges(document)
    judged = record.verdict in HANGS and record.is_ill
    return replace(
        record,
        waits_known=len(truth.waits),
        waits_right=len(truth.waits & seen),
        culprit_right=record.culprits == (truth.who,) if judged else None,
        phase_right=document["phase"] == truth.phase,
    )


def _look(launch: Launch, blank: Record, directory: Path) -> tuple[Record, dict[str, object] | None]:
    began_s = time.monotonic()
    try:
        document, _ = watch(launch.pid, directory / TRACE_FILE)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return replace(blank, state="failed", why=str(error)[:300]), None
    took_s = round(time.monotonic() - began_s, 2)
    culprits, hypotheses = document["culprits"], document["hypotheses"]
    assert isinstance(culprits, list)
    assert isinstance(hypotheses, list)
    names = ["".join(f"{axis}{rank}" for axis, rank in sorted(one["rank"].items())) or one["role"] for one in culprits]
    record = replace(
        blank,
        verdict=str(document["verdict"]),
        grade=str(document["grade"]),
        hypothesis=hypotheses[0]["id"],
        culprits=tuple(names),
        took_s=took_s,
    )
    return record, document


@contextmanager
def folder() -> Iterator[Path]:
    """Have a folder for one launch."""
    directory = Path(tempfile.mkdtemp(prefix="hangdoc-accuracy-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class Traffic:
    """Requests that clients send one after the other; answered: how many came back."""

    launch: Launch
    tokens: int
    askers: int
    answered: int = 0

    def __enter__(self) -> Traffic:
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(self.askers)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._enough.is_set():
            self.launch.generate(tokens=self.tokens)
            self.answered += 1


CONDITIONS: dict[str, tuple[Scenario, int, int]] = {
    "idle": (SCENARIOS["healthy-tp1"], 0, 0),
    "steady-load": (SCENARIOS["healthy-tp1"], SHORT_TOKENS, ASKERS),
    "long-generation": (SCENARIOS["healthy-tp1"], LONG_TOKENS, 1),
    "sleep-on-idle": (SLEEPY, 0, 0),
}
"""What a healthy server does while it is looked at: its launch, the tokens of each request, and how many ask."""


def look_at_healthy_servers(count: int, only: str, rig: Rig, book: Book, kept: Path) -> None:
    """Look so many times at servers that are well: a fifth while they import, the others in equal parts.

    only: the pattern of the conditions (see CONDITIONS, and "imports") that are looked at.
    """
    rounds = [Round(number, "none", book, kept) for number in range(count)]
    importing = [now for now in rounds[: count // 5] if fnmatch(IMPORTS, only) and now.lacks("healthy", IMPORTS)]
    for pair in range(0, len(importing), len(IMPORTING)):
        with folder() as directory, tolerated():
            _see_imports(importing[pair : pair + len(IMPORTING)], rig, directory)
    each, more = divmod(count - count // 5, len(CONDITIONS))
    wanted = [
        (name, now)
        for place, name in enumerate(CONDITIONS)
        for now in rounds[: each + (place < more)]
        if fnmatch(name, only)
    ]
    for scenario in (SCENARIOS["healthy-tp1"], SLEEPY):
        ours = [(name, now) for name, now in wanted if CONDITIONS[name][0] is scenario and now.lacks("healthy", name)]
        if ours:
            with folder() as directory, tolerated(), start(scenario, directory=directory, rig=rig) as launch:
                launch.wait_until_ill().generate()
                for name, now in ours:
                    now.enter(
                        _see_healthy(now.blank("healthy", name, "healthy"), launch, directory), directory / TRACE_FILE
                    )


IMPORTS, IMPORTING = "imports", (LAUNCHER_IMPORTS, CHILD_IMPORTS)


def _see_imports(rounds: list[Round], rig: Rig, directory: Path) -> None:
    with start("healthy-tp1", directory=directory, rig=rig) as launch:
        seen: list[Record] = []
        for now, sign in zip(rounds, IMPORTING, strict=False):
            launch.wait_for(sign)
            seen.append(_look(launch, now.blank("healthy", IMPORTS, "slow-start"), directory)[0])
        launch.wait_for(READY)  # it was well: it came up
        for now, record in zip(rounds, seen, strict=True):
            now.enter(record, directory / TRACE_FILE)


def _see_healthy(blank: Record, launch: Launch, directory: Path) -> Record:
    _, tokens, askers = CONDITIONS[blank.name]
    with Traffic(launch, tokens, askers) as traffic:
        if askers:
            _wait_until(lambda: traffic.answered > 0)
        before = traffic.answered
        record, _ = _look(launch, blank, directory)
    launch.generate()  # raises unless it still answers
    if askers and traffic.answered == before:
        return replace(record, state="inconclusive", why="nothing was answered meanwhile")
    return record


def _wait_until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + DEADLINE_S
    while not true():
        if time.monotonic() > until_s:
            raise TimeoutError(f"nothing was answered in {DEADLINE_S:.0f} s")
        time.sleep(0.05)


@contextmanager
def tolerated() -> Iterator[None]:
    """Go on without a server that did not come up, or stopped answering: what is missing is looked at next time."""
    try:
        yield
    except (LaunchError, OSError) as error:
        print(f"accuracy: a healthy server was lost: {error}", file=sys.stderr)
