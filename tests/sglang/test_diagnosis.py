"""The main job on the real server: verdict, phase and culprit of each illness, and a target that notices nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.recording import keep
from tests.sglang.cases import on
from tests.sglang.launches import Launch
from tests.sglang.scenarios import CHILD_IMPORTS, LAUNCHER_IMPORTS

HANGDOC = (str(Path(sys.executable).with_name("hangdoc")),)
LIMIT_S = 180.0  # only a safety net: an observation takes 5 to 30 s
CODES = {"busy-wait": 1, "blocked": 1, "crashed": 1, "slow-start": 0, "healthy": 0}


@dataclass(frozen=True)
class Truth:
    """What has to be said of a case. rank: of the culprit; None where a healthy launch has none."""

    verdict: str
    phase: str
    rank: tuple[str, int] | None = None


SICK = {
    "busy-init": Truth("busy-wait", "weight-load", ("tp", 0)),
    "busy-warmup": Truth("busy-wait", "warmup", ("tp", 0)),
    "busy-between-batches": Truth("busy-wait", "warmup", ("tp", 0)),
    "busy-one-rank": Truth("busy-wait", "weight-load", ("tp", 1)),
    "absent-warmup": Truth("blocked", "warmup", ("tp", 1)),
    "absent-barrier": Truth("blocked", "weight-load", ("tp", 1)),
    "absent-allreduce": Truth("blocked", "weight-load", ("tp", 1)),
    "blocked-fifo": Truth("blocked", "weight-load", ("tp", 0)),
    "blocked-lock": Truth("blocked", "weight-load", ("tp", 0)),
    "blocked-open-worker": Truth("blocked", "weight-load", ("tp", 0)),
    "slow-sleep": Truth("slow-start", "weight-load", ("tp", 0)),
    "slow-read": Truth("slow-start", "weight-load", ("tp", 0)),
    "missing-node": Truth("blocked", "rendezvous", ("node", 1)),
    "busy-init@0.5.8": Truth("busy-wait", "weight-load", ("tp", 0)),
    "absent-barrier@0.5.8": Truth("blocked", "weight-load", ("tp", 1)),
    "blocked-fifo@0.5.8": Truth("blocked", "weight-load", ("tp", 0)),
    "slow-sleep@0.5.8": Truth("slow-start", "weight-load", ("tp", 0)),
}
LAUNCHER_WAITS = {("launcher", "scheduler 0", "pipe")}
RANK_0_WAITS = {("scheduler 0", "scheduler 1", "barrier")}
WAITS = {
    "busy-init": LAUNCHER_WAITS,
    "slow-sleep": LAUNCHER_WAITS,
    "absent-barrier": LAUNCHER_WAITS | RANK_0_WAITS,
    "absent-allreduce": LAUNCHER_WAITS | RANK_0_WAITS,
    "absent-warmup": RANK_0_WAITS,
}
IDLE = Truth("healthy", "ready")
SERVING = Truth("healthy", "serving")


def watch(pid: int, trace: Path) -> tuple[dict[str, object], int]:
    """Return the document of one observation, and the exit code."""
    command = [*HANGDOC, "watch", str(pid), "--once", "--json", "--record", str(trace)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    assert run.stdout, run.stderr
    document: dict[str, object] = json.loads(run.stdout)
    return document, run.returncode


def replayed(trace: Path) -> dict[str, object]:
    """Return the document of a replay, which is the same byte for byte on every run."""
    command = [*HANGDOC, "replay", str(trace), "--json"]
    first, second = (
        subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S) for _ in range(2)
    )
    assert first.stdout == second.stdout
    document: dict[str, object] = json.loads(first.stdout)
    return document


def check(document: dict[str, object], truth: Truth) -> None:
    told = {key: document[key] for key in ("verdict", "grade", "phase", "headline", "culprits")}
    assert (document["verdict"], document["phase"]) == (truth.verdict, truth.phase), json.dumps(document, indent=1)
    assert document["grade"] in {"likely", "confirmed"}, told
    culprits = document["culprits"]
    assert isinstance(culprits, list)
    if truth.rank is None:
        assert culprits == []
    else:
        axis, number = truth.rank
        assert [culprit["rank"].get(axis) for culprit in culprits] == [number], told


def check_twin(document: dict[str, object], trace: Path) -> None:
    """The recorded twin says the same as the live observation; only texts may carry redaction tokens."""
    twin = replayed(trace)
    for key in ("verdict", "grade", "phase", "waits"):
        assert twin[key] == document[key], key
    assert [finding["grade"] for finding in twin["hypotheses"]] == [  # type: ignore[attr-defined,index]
        finding["grade"]
        for finding in document["hypotheses"]  # type: ignore[attr-defined]
    ]


def check_undisturbed(launch: Launch, before: Iterable[int]) -> None:
    """Every member is still there, none is stopped or traced, and no dumper is left on it."""
    assert set(before) <= set(launch.members())
    for pid in launch.members():
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        assert status["State"][0] not in "Tt", f"pid {pid} was left stopped"
        assert status["TracerPid"] == "0", f"pid {pid} is still traced"


@pytest.fixture
def twin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The file for the recorded twin; kept, with what a replay of it says, where the variable names a directory."""
    name = re.sub(r"^test_(?:sick|healthy)?_?", "", request.node.originalname).replace("_", "-")
    case = request.node.callspec.params["started"]
    stem = "-".join(part for part in (case, name) if part)
    trace = tmp_path / f"{stem}.hangtrace"
    yield trace
    keep(trace, stem)


def edges(document: dict[str, object]) -> set[tuple[str, str, str]]:
    """Return who waits for whom through what, by role and rank."""
    processes, waits = document["processes"], document["waits"]
    assert isinstance(processes, list)
    assert isinstance(waits, list)
    names = {one["pid"]: " ".join([one["role"], *map(str, one["rank"].values())]) for one in processes}
    return {(names.get(wait["from"]["pid"], ""), names.get(wait["to"]["pid"], ""), wait["through"]) for wait in waits}


def examine(launch: Launch, pid: int, truth: Truth, trace: Path) -> dict[str, object]:
    before = launch.members()
    document, code = watch(pid, trace)
    check(document, truth)
    assert code == CODES[truth.verdict]
    check_undisturbed(launch, before)
    check_twin(document, trace)
    return document


@on(*SICK)
def test_sick(launch: Launch, request: pytest.FixtureRequest, twin: Path) -> None:
    """An ill launch gets its verdict, its phase, its culprit and who waits for whom, and stays as it was."""
    case = request.node.callspec.params["started"]
    document = examine(launch, launch.pid, SICK[case], twin)
    assert WAITS.get(case, set()) <= edges(document)


def importing(document: dict[str, object]) -> None:
    assert (document["verdict"], document["phase"]) == ("slow-start", "launch"), json.dumps(document, indent=1)
    assert document["grade"] in {"likely", "confirmed"}


@on("healthy-tp1", "healthy-tp1@0.5.8")
def test_launcher_imports(started: Launch, twin: Path) -> None:
    """A launcher that imports its modules at 100 % CPU is a slow start, not a busy-wait."""
    started.wait_for(LAUNCHER_IMPORTS)
    document, code = watch(started.pid, twin)
    importing(document)
    assert code == 0


@on("healthy-tp1", "healthy-tp1@0.5.8")
def test_children_import(started: Launch, twin: Path) -> None:
    """Children that import at 100 % CPU, holding the GIL, are a slow start, before they have a name or a rank."""
    started.wait_for(CHILD_IMPORTS)
    document, code = watch(started.pid, twin)
    importing(document)
    assert code == 0


@on("healthy-tp1", "healthy-tp2", "healthy-tp1@0.5.8")
def test_healthy_idle(launch: Launch, twin: Path) -> None:
    """A healthy idle server that polls at 100 % is healthy, found from a scheduler's pid, and still answers."""
    examine(launch, launch.scheduler_pids()[0], IDLE, twin)
    assert launch.generate()["text"] is not None


@on("healthy-tp1", "healthy-tp2")
def test_healthy_serving(launch: Launch, twin: Path) -> None:
    """A server that works on requests is healthy and serving, and answers each of them."""
    enough = threading.Event()
    answers: list[dict[str, object]] = []

    def ask() -> None:
        while not enough.is_set():
            answers.append(launch.generate(tokens=200))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        launch.wait_for(r"Decode batch")
        examine(launch, launch.pid, SERVING, twin)
    finally:
        enough.set()
        asking.join()
    assert answers
    assert all(answer["text"] is not None for answer in answers)


@on("proxied-warmup")
def test_warmup_through_a_proxy(launch: Launch, twin: Path) -> None:
    """A warm-up request that goes to a proxy holds the launch up: blocked, and the launcher is who has to move."""
    document, code = watch(launch.pid, twin)
    assert (document["verdict"], document["phase"], code) == ("blocked", "warmup", 1), json.dumps(document, indent=1)
    assert [culprit["role"] for culprit in document["culprits"]] == ["launcher"]  # type: ignore[attr-defined]


@on("healthy-tp1@0.5.8")
def test_killed_scheduler(launch: Launch, twin: Path) -> None:
    """A launch of 0.5.8 whose scheduler was killed keeps its zombie and waits: crashed, the dead named."""
    victim = launch.scheduler_pids()[0]
    os.kill(victim, signal.SIGKILL)
    document, code = watch(launch.pid, twin)
    check(document, Truth("crashed", "ready", ("tp", 0)))
    assert code == CODES["crashed"]
    check_twin(document, twin)
