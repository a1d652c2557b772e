"""What NCCL's own counts of collectives say: which rank is behind, for how long, and whether the counts go on."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.index import Index, Window
from hangdoc.model.process import ProcessKey
from hangdoc.model.ras import Ras, RasRank
from hangdoc.model.reading import Known, Missing, Reading

PROBE = "ras"

KEPT = 12
"""Answers that are looked at: as many as come in half a minute, and some more."""

_WHY = {
    "off": "RAS is switched off (NCCL_RAS_ENABLE=0)",
    "refused": "nobody listens for RAS: no communicator yet, or an NCCL before 2.24",
    "stranger": "RAS is answered by another job",
    "silent": "RAS listens and does not answer",
    "cut": "RAS ended the connection without an answer",
    "garbled": "what listens gives no answer of RAS",
    "too-long": "the answer of RAS is too long",
}


@dataclass(frozen=True)
class RasState:
    """The answers up to the end of a window, as far as they are all alike with the newest one.

    newest: the last answer; stood_s: for how long back from it every answer had the same counts; advances: an older
    answer had others, so that collectives were launched meanwhile.
    """

    newest: Ras
    stood_s: float
    advances: bool

    @property
    def behind(self) -> tuple[RasRank, ...]:
        """The ranks that launched fewer collectives than another one."""
        leading = self.newest.leading
        if leading is None:
            return ()
        return tuple(one for one in self.newest.ranks if one.operations is not None and one.operations < leading)

    @property
    def short(self) -> tuple[RasRank, ...]:
        """The ranks that are behind, and those that RAS cannot reach."""
        return (*self.behind, *self.newest.unreached)

    def of(self, key: ProcessKey) -> RasRank | None:
        """Return what is short of a member; None when nothing is."""
        return next((one for one in self.short if one.process == key), None)


NOT_ASKED: Reading[RasState | None] = Known(None)


def ras_state(index: Index, window: Window) -> Reading[RasState | None]:
    """Return what RAS answered up to the end of a window.

    Known(None): it was not asked, or there is none to ask. Missing: it was there and gave no answer of this launch.
    """
    if not index.was_taken(PROBE):
        return NOT_ASKED
    whole = Window(0, window.last, 0, window.end_ns)
    found = index.known(PROBE, None, Ras, whole)[-KEPT:]
    if not found:
        return index.missing(PROBE, None, whole)
    taken_ns, newest = found[-1]
    if taken_ns < window.start_ns:
        return Missing(PROBE, "not-taken", "RAS was not asked in this window")
    if newest.outcome in {"off", "refused"}:
        return Known(None)
    if newest.outcome != "answered":
        return Missing(PROBE, "timeout" if newest.outcome == "silent" else "unsupported", _WHY[newest.outcome])
    alike_since_ns, advances = taken_ns, False
    for at_ns, one in reversed(found):
        if one.outcome == "answered":
            if _counts(one) != _counts(newest):
                advances = True
                break
            alike_since_ns = at_ns
    return Known(RasState(newest, (taken_ns - alike_since_ns) / 1e9, advances))


def _counts(one: Ras) -> tuple[object, ...]:
    return one.ranks, one.leading, one.unreached
