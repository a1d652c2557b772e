"""A disk that does not answer stops neither the rounds nor the exit code, and what is lost is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hangdoc.observe.ring import Ring
from hangdoc.trace.aside import MOST_ROUNDS
from hangdoc.trace.reader import read
from hangdoc.unattended import folder as module
from hangdoc.unattended.folder import Folder
from tests.unit.cli.commands import LONGEST_S, SPINS, program, python, start, wait_until
from tests.unit.observe.rounds import HEADER, alive
from tests.unit.trace.test_scribe import Held
from tests.unit.unattended.launches import files_in
from tests.unit.unattended.slow_disk import SlowDisk, slow_disk


@pytest.fixture
def disk(tmp_path: Path) -> SlowDisk:
    return slow_disk(tmp_path)


class Stuck:
    """A folder whose scribe is held up, and what was complained of."""

    def __init__(self, path: Path) -> None:
        self.complaints: list[str] = []
        self.ring = Ring(HEADER, 4)
        self.folder = Folder(path, self.complaints.append).attach(HEADER, self.ring.trace)
        self.held = Held()
        self.index = 0

    def hold(self) -> None:
        self.held = Held()
        self.folder._scribe.put(self.held.job, urgent=True)
        self.held.wait()

    def wait_until_written(self, index: int) -> None:
        wait_until(lambda: self.folder._shelf.written == index)

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            self.ring.add(alive(self.index))
            self.folder.add(alive(self.index), self.ring.stacks)
            self.index += 1


def test_rounds_that_find_no_room(tmp_path: Path) -> None:
    """Rounds go on while the disk is stuck; afterwards what memory still has is in a new file, the rest is counted."""
    stuck = Stuck(tmp_path)
    stuck.play(3)
    stuck.wait_until_written(2)
    stuck.hold()
    stuck.play(50)
    stuck.held.let_go()
    stuck.wait_until_written(2 + MOST_ROUNDS)
    stuck.play(1)
    stuck.folder.__exit__(None, None, None)
    stuck.folder.close()
    rounds = {one.index for path in files_in(tmp_path, "window-*") for one in read(path).snapshots}
    lost = sorted(set(range(54)) - rounds)
    assert lost
    # The first of a file is what is left of all before it, so it counts as lost, too.
    assert stuck.folder.lost == len(lost) + 1
    assert stuck.complaints == [
        f"{tmp_path}: {len(lost) + 1} rounds are in no file, the disk did not take them in time"
    ]


def test_evidence_goes_first(tmp_path: Path) -> None:
    """Evidence is written before the rounds that wait for the disk longer."""
    stuck = Stuck(tmp_path)
    stuck.hold()
    stuck.play(20)
    seen: list[int] = []
    kept = stuck.folder.keep(
        "hang", stuck.ring.trace(), lambda _: f"{seen.append(len(files_in(tmp_path, 'window-*')))}"
    )
    stuck.held.let_go()
    evidence = kept.result(LONGEST_S)
    assert evidence is not None
    assert read(evidence.trace).complete
    assert seen == [0]
    stuck.folder.close()


def test_evidence_that_waits_is_bounded(tmp_path: Path) -> None:
    """A disk that is stuck for ever does not fill the memory with evidence; what is given up is told."""
    stuck = Stuck(tmp_path)
    stuck.hold()
    stuck.play(2)
    kept = [stuck.folder.keep("limit", stuck.ring.trace(), lambda _: "") for _ in range(module.MOST_EVIDENCE + 1)]
    assert [one.done() for one in kept] == [False] * module.MOST_EVIDENCE + [True]
    assert "the evidence is lost" in stuck.complaints[0]
    stuck.held.let_go()


def test_the_end_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch ends although its disk never answers again, and says what is not on it."""
    monkeypatch.setattr(module, "EVIDENCE_S", 0.1)
    stuck = Stuck(tmp_path)
    stuck.hold()
    stuck.play(5)
    stuck.folder.keep("hang", stuck.ring.trace(), lambda _: "")
    stuck.folder.close()
    first, second = stuck.complaints
    assert "has not answered" in first
    assert "has not taken the evidence" in first
    assert "5 rounds are in no file" in second
    stuck.held.let_go()


def test_a_watch_goes_on_beside_a_stuck_disk(disk: SlowDisk, tmp_path: Path) -> None:
    """The state stays fresh while the disk of --record does not answer; then the evidence of the hang arrives whole."""
    state, told = tmp_path / "state", tmp_path / "told"
    disk.shut()
    options = ("--until", "hang", "--state", str(state), "--record", str(disk.folder), "--on-hang", f"echo >>{told}")
    with program(*python(SPINS)) as patient:
        watching = start("watch", str(patient.pid), *options, **disk.environment)
        # The verdict comes although not even the header of the window is written.
        wait_until(lambda: state.exists() and json.loads(state.read_text())["verdict"] == "busy-wait")
        assert not any(path.stat().st_size for path in disk.folder.iterdir())
        assert watching.poll() is None
        assert not told.exists()  # the command finds the evidence on the disk
        disk.open()
        watching.communicate(timeout=LONGEST_S)
    assert watching.returncode == 1
    (trace,) = files_in(disk.folder, "hang-*.hangtrace")
    assert read(trace).complete
    assert told.exists()


def test_the_rounds_of_an_observation_that_has_ended_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that never answers costs all rounds, and they are counted although the observation is over."""
    monkeypatch.setattr(module, "ANSWER_S", 0.1)
    stuck = Stuck(tmp_path)
    stuck.hold()
    stuck.play(3)
    stuck.folder.__exit__(None, None, None)
    stuck.folder.close()
    assert "3 rounds are in no file" in stuck.complaints[-1]
    stuck.held.let_go()
