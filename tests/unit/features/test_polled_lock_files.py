"""Lock files that are polled for: only what stood over two readings, and what is missing says why."""

from __future__ import annotations

import pytest

from hangdoc.features.index import Index
from hangdoc.features.lock_files import polled_lock_files
from hangdoc.model.link import LinkEnd
from hangdoc.model.lock_file import LockFile, LockFiles
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from tests.unit.features.synthetic import KEY, trace, whole

HOLDER = ProcessKey(999, 1)


def asked(path: str = "/cache/lock", ticks: int = 0, tid: int = 100) -> LockFiles:
    holders = Known((LinkEnd(HOLDER, False, tree_ticks=ticks),))
    file = LockFile(tid=tid, kind="existence", path=path, holders=holders, elsewhere=False, quiet_s=Known(1.0))
    return LockFiles((file,))


def polled(*readings: LockFiles | Missing) -> object:
    of = trace([{("lock-files", KEY): reading} for reading in readings])
    return polled_lock_files(Index(of), KEY, whole(of))


def test_what_stood_over_two_readings() -> None:
    """The same thread asks for the same file twice: that is a wait, and what its holder used in between is known."""
    found = polled(asked(ticks=3), asked(ticks=45))
    assert isinstance(found, Known)
    (one,) = found.value
    assert one.file.path == "/cache/lock"
    (end,) = one.file.holders.value
    assert one.used_ticks(end) == 42


@pytest.mark.parametrize("before", [asked("/other/lock"), asked(tid=101), LockFiles(())])
def test_a_moment_is_no_wait(before: LockFiles) -> None:
    """Another file, another thread or none before: it may be passing."""
    assert polled(before, asked()) == Known(())


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        ((asked(),), "not-taken"),
        ((Missing("lock-files", "denied"), Missing("lock-files", "denied")), "denied"),
        ((asked(), LockFiles((), unnamed=(100,))), "failed"),
    ],
)
def test_what_is_missing(readings: tuple[LockFiles | Missing, ...], reason: str) -> None:
    """One reading only, a refusal, a file that was not found: each is missing for its reason."""
    found = polled(*readings)
    assert isinstance(found, Missing)
    assert found.reason == reason
