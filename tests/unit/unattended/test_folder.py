"""The folder of an unattended watch: every file can be replayed, all together stay small, no disk ends the watch."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hangdoc.errors import HangdocError
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe.ring import Ring
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from hangdoc.unattended import shelf as module
from hangdoc.unattended.folder import Folder
from hangdoc.unattended.segment import write_compact
from hangdoc.unattended.shelf import Shelf
from tests.unit.cli.commands import LONGEST_S, WAITS, complaint, program, python, run, start, wait_until
from tests.unit.observe.rounds import HEADER, RANK, alive, log, snapshot, stack, stacks
from tests.unit.unattended.launches import files_in


class Recorded:
    """A folder that is recorded to, and what it complained of."""

    def __init__(self, path: Path, limit_bytes: int = module.LIMIT_BYTES) -> None:
        self.complaints: list[str] = []
        self.ring = Ring(HEADER, 4)
        self.shelf = Shelf(path, self.complaints.append, limit_bytes)

    def add(self, one: Snapshot) -> None:
        self.ring.add(one)
        self.shelf.add(one, self.ring.trace())

    def play(self, rounds: range) -> None:
        for index in rounds:
            self.add(alive(index))

    def keep(self) -> None:
        self.shelf.keep(self.shelf.evidence("hang"), self.ring.trace(), lambda trace: f"{len(trace.snapshots)}\n")


def test_the_window_rolls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file of the window begins with the rounds in memory and goes on to the first round of the next one."""
    monkeypatch.setattr(module, "WINDOW_ROUNDS", 10)
    recorded = Recorded(tmp_path / "new" / "folder")
    recorded.play(range(25))
    recorded.shelf.end(recorded.shelf.written)
    spans = [[one.index for one in read(path).snapshots] for path in files_in(tmp_path / "new" / "folder", "window-*")]
    assert sorted((span[0], span[-1]) for span in spans) == [(0, 9), (6, 19), (16, 24)]
    assert all(span == sorted(set(span)) for span in spans)
    assert all(read(path).complete for path in files_in(tmp_path / "new" / "folder", "window-*"))


def test_the_past_is_in_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later file of the window still has the milestones of the log, which left the memory long ago."""
    monkeypatch.setattr(module, "WINDOW_ROUNDS", 10)
    recorded = Recorded(tmp_path)
    recorded.add(snapshot(0, log("load-begin", first=True)))
    recorded.play(range(1, 25))
    last = max(files_in(tmp_path, "window-*"), key=lambda path: read(path).snapshots[-1].index)
    assert b"load-begin" in b"".join(repr(one).encode() for one in read(last).snapshots)


def test_stacks_are_numbered_anew(tmp_path: Path) -> None:
    """A file has the stacks that its rounds refer to, and none of those that came before."""
    numbers = Ring(HEADER, 2)
    for line in range(500):
        numbers.intern(stack(line))
    rounds = (snapshot(0, stacks(RANK, 498)), snapshot(1, stacks(RANK, 3)), snapshot(2, stacks(RANK, 498)))
    write_compact(tmp_path / "a.hangtrace", Trace(header=HEADER, stacks=tuple(numbers.stacks), snapshots=rounds))
    trace = read(tmp_path / "a.hangtrace")
    assert [frames[0].line for frames in trace.stacks] == [498, 3]
    assert [sample.reading.value.threads[0].stack for one in trace.snapshots for sample in one.samples] == [0, 1, 0]  # type: ignore[union-attr]


def test_the_size_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest parts of the window go first, then the oldest evidence, never the newest; others' files stay."""
    monkeypatch.setattr(module, "WINDOW_ROUNDS", 5)
    (tmp_path / "mine.hangtrace").write_text("x" * 10_000)
    recorded = Recorded(tmp_path, limit_bytes=4000)
    for begin in range(0, 200, 20):
        recorded.play(range(begin, begin + 20))
        recorded.keep()
    ours = [path for path in files_in(tmp_path, "*-*") if path.name != "mine.hangtrace"]
    assert sum(path.stat().st_size for path in ours) < 4000 + 2000
    hangs = files_in(tmp_path, "hang-*.hangtrace")
    assert max(read(path).snapshots[-1].index for path in hangs) == 199
    assert (tmp_path / "mine.hangtrace").exists()


def test_a_second_watch_goes_on(tmp_path: Path) -> None:
    """A watch that begins again on a folder leaves what is there as it is, and counts it."""
    first = Recorded(tmp_path)
    first.play(range(3))
    first.keep()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    second = Recorded(tmp_path)
    second.play(range(3))
    second.keep()
    assert len(list(tmp_path.iterdir())) == 2 * len(before)
    assert {path: path.read_bytes() for path in before} == before
    third = Recorded(tmp_path, limit_bytes=1)
    third.play(range(1))
    assert len(files_in(tmp_path, "window-*")) == 3  # the others are still being written
    assert not files_in(tmp_path, "hang-*")
    for recorded in (first, second):
        recorded.shelf.end(recorded.shelf.written)
    third.keep()
    assert len(files_in(tmp_path, "window-*")) == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """It is said at once, before anything is watched."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HangdocError, match="file/folder"):
        Folder(tmp_path / "file" / "folder", print)


def test_a_disk_that_fails_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One complaint, no exception; when the disk is back, recording goes on in a new file."""
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    folder = tmp_path / "folder"
    recorded = Recorded(folder)
    recorded.play(range(3))
    folder.rename(tmp_path / "away")
    monkeypatch.setattr(module, "WINDOW_ROUNDS", 3)
    recorded.play(range(3, 6))
    recorded.keep()
    assert len(recorded.complaints) == 1
    assert str(folder) in recorded.complaints[0]
    folder.mkdir()
    recorded.play(range(6, 9))
    assert (recorded.shelf.lost, len(recorded.complaints)) == (0, 1)
    (window,) = files_in(folder, "window-*")
    assert read(window).snapshots[-1].index == 8
    (former,) = files_in(tmp_path / "away", "window-*")
    assert [one.index for one in read(former).snapshots] == [0, 1, 2]


class FullFor:
    """A document that a full disk does not take so many times."""

    def __init__(self, times: int) -> None:
        self._times = times

    def __call__(self, _: Trace) -> str:
        self._times -= 1
        if self._times >= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return "{}\n"


def test_evidence_takes_the_place_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk the complete parts of the window go for evidence; the one that is being written stays."""
    monkeypatch.setattr(module, "WINDOW_ROUNDS", 5)
    recorded = Recorded(tmp_path)
    recorded.play(range(12))
    assert len(files_in(tmp_path, "window-*")) == 3
    assert recorded.shelf.keep(recorded.shelf.evidence("hang"), recorded.ring.trace(), FullFor(1))
    (window,) = files_in(tmp_path, "window-*")
    assert read(window).snapshots[-1].index == 11
    assert [path.suffix for path in files_in(tmp_path, "hang-*")] == [".hangtrace", ".json"]
    assert recorded.complaints == []


def test_evidence_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence counts as written when trace, document and their names are on the disk, not in the kernel alone."""
    synced: list[str] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", noted)
    recorded = Recorded(tmp_path)
    recorded.play(range(3))
    assert synced == []
    evidence = recorded.shelf.evidence("hang")
    assert recorded.shelf.keep(evidence, recorded.ring.trace(), FullFor(0))
    assert synced == [evidence.trace.name, evidence.document.name, tmp_path.name]


def test_evidence_that_finds_no_room(tmp_path: Path) -> None:
    """Where there is nothing to give up, it is complained of, and no half of the evidence is left."""
    recorded = Recorded(tmp_path)
    recorded.play(range(3))
    assert not recorded.shelf.keep(recorded.shelf.evidence("hang"), recorded.ring.trace(), FullFor(9))
    assert files_in(tmp_path, "hang-*") == []
    assert "No space left" in recorded.complaints[0]


FULL = ("/bin/sh", "-c", 'ulimit -f 4; exec "$@"', "sh")
"""No file may get larger than 4 blocks of 512 bytes: a disk that is full."""


def test_a_full_disk(tmp_path: Path) -> None:
    """Following goes on when nothing can be written any more, says so once, and what was written is readable."""
    with program(*python(WAITS)) as patient:
        ended = run("watch", str(patient.pid), "--timeout", "12", "--record", str(tmp_path), prefix=FULL)
    assert ended.code in (1, 3)
    assert ended.err.count("cannot be written") == 1, ended.err
    (window,) = files_in(tmp_path, "window-*")
    assert read(window).snapshots


@pytest.mark.skipif(os.geteuid() != 0, reason="cannot be had here: another user needs root")
def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    """A folder that may not be written to is complained of, and the launch is watched all the same."""
    prefix = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    with program(*prefix, *python(WAITS)) as patient, TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        ended = run("watch", str(patient.pid), "--timeout", "5", "--record", folder, prefix=prefix)
        unseen = run("watch", str(patient.pid), "--record", str(tmp_path / "folder"), prefix=prefix)
    assert ended.code in (1, 3)
    assert unseen.code == 2
    assert "Permission denied" in complaint(unseen)
    assert ended.err.count("cannot be written") == 1, ended.err


def test_killed_while_recording(tmp_path: Path) -> None:
    """After SIGKILL the window reads up to its last round, and a new watch goes on beside it."""
    with program(*python(WAITS)) as patient:
        kill_while_recording(patient.pid, tmp_path)
        kill_while_recording(patient.pid, tmp_path)
    traces = [read(path) for path in files_in(tmp_path, "window-*")]
    assert len(traces) == 2
    assert not any(trace.complete for trace in traces)
    assert run("replay", str(files_in(tmp_path, "window-*")[0])).code in (0, 1, 3)


def kill_while_recording(pid: int, folder: Path) -> None:
    before = set(files_in(folder, "window-*"))
    watching = start("watch", str(pid), "--record", str(folder))
    wait_until(lambda: rounds_in_new(folder, before) > 1)
    watching.send_signal(signal.SIGKILL)
    watching.communicate(timeout=LONGEST_S)


def rounds_in_new(folder: Path, before: set[Path]) -> int:
    for path in set(files_in(folder, "window-*")) - before:
        try:
            return len(read(path).snapshots)
        except HangdocError:
            return 0
    return 0
