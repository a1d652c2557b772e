"""The lock files that a process's threads poll for, as they stood over two readings."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.index import Index, Window
from hangdoc.model.link import LinkEnd
from hangdoc.model.lock_file import LockFile, LockFiles
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading

PROBE = "lock-files"


@dataclass(frozen=True)
class Polled:
    """A lock file that one thread asked for in two readings. before: the earlier one, for what its holders did."""

    file: LockFile
    before: LockFile

    def used_ticks(self, end: LinkEnd) -> int | None:
        """Return the CPU time that a holder and its children used in between; None when it was not read twice."""
        return used_ticks(end, self.before.holders)


def used_ticks(end: LinkEnd, before: Reading[tuple[LinkEnd, ...]]) -> int | None:
    """Return the CPU time that somebody used since an earlier reading of the same wait, in clock ticks."""
    earlier = {one.process: one.tree_ticks for one in before.value} if isinstance(before, Known) else {}
    was = earlier.get(end.process)
    return None if was is None or end.tree_ticks is None else end.tree_ticks - was


def polled_lock_files(index: Index, process: ProcessKey, window: Window) -> Reading[tuple[Polled, ...]]:
    """Return the lock files of the newest reading that the one before had too, for the same thread.

    Missing with fewer than two readings, with none in the window, or when a thread asks for one that was not found.
    """
    readings = index.known(PROBE, process, LockFiles, Window(0, window.last, 0, window.end_ns))
    if not readings or readings[-1][0] < window.start_ns:
        return index.missing(PROBE, process, window)
    if len(readings) < 2:
        return Missing(PROBE, "not-taken", "the lock files were read only once")
    (_, before), (_, newest) = readings[-2:]
    if newest.unnamed:
        return Missing(PROBE, "failed", f"which file thread {newest.unnamed[0]} asks for is not known")
    earlier = {(file.tid, file.path): file for file in before.files}
    pairs = ((file, earlier.get((file.tid, file.path))) for file in newest.files)
    return Known(tuple(Polled(file, was) for file, was in pairs if was is not None))
