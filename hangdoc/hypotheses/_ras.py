"""What counts of collectives say of a rank, NCCL's and torch's: shared by the hypotheses of those that lack one."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.ras import RasState
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._ranks import STANDS_S
from hangdoc.model.ras import RasRank
from hangdoc.model.reading import Missing


def counts_name_it(case: Case) -> Outcome:
    """NCCL counts fewer collectives of it than of the others, or cannot reach it, and that stood for 9 s.

    Why: every rank of a communicator launches the same collectives in the same order. Counts that go on are those of a
    rank that is slow. Equal counts say nothing: what CUDA graphs replay is not counted.
    """
    found, name = case.features.ras, signs.name_of(case.patient.process)
    if isinstance(found, Missing):
        return Unread.of(found, "which rank NCCL counts behind")
    if found.value is None:
        return Absent("NCCL's counts of collectives are not to be had")
    if not found.value.short:
        return Absent("NCCL counts no rank behind the others")
    own = found.value.of(case.patient.key)
    return _somebody_else(found.value, name) if own is None else _stands_behind(found.value, own, name)


def _stands_behind(state: RasState, own: RasRank, name: str) -> Outcome:
    leaders = [one for one in state.newest.ranks if one.operations == state.newest.leading]
    if leaders and len(state.short) > len(leaders):
        return Unread("most ranks are behind the others: which of them is astray")
    if state.stood_s >= STANDS_S:
        return Present(f"{_sentence(state, own, name)}, for {state.stood_s:.0f} s")
    if state.advances:
        return Absent(f"{_sentence(state, own, name)}, and the counts go on: it is slow, and comes")
    return Unread(f"whether the counts stand: {_sentence(state, own, name)}, for {state.stood_s:.0f} s only")


def _somebody_else(state: RasState, name: str) -> Outcome:
    nameless = [one for one in state.short if one.process is None]
    if nameless:
        return Unread(f"which process rank {nameless[0].rank} is, which NCCL counts behind")
    return Absent(f"NCCL counts another rank behind, not {name}")


def _sentence(state: RasState, own: RasRank, name: str) -> str:
    if own.operations is None:
        return f"NCCL cannot reach {name}"
    return f"NCCL counts {own.operations} collectives of {name}, {state.newest.leading} of the others"


def flight_recorder_names_it(case: Case) -> Outcome:
    """Supporting: by the dumps of torch's flight recorder it enqueued fewer collectives than the others."""
    flight, name = case.features.flight, signs.name_of(case.patient.process)
    ranks = () if flight is None else flight.ranks
    own = next((one for one in ranks if one.process == case.patient.key), None)
    if own is None or len(ranks) < 2:
        return Absent(f"there is no dump of torch's flight recorder that tells of {name} and others")
    most = max(one.enqueued for one in ranks)
    sentence = f"torch's flight recorder: {name} enqueued collective {own.enqueued} last, others {most}"
    return Present(sentence) if own.enqueued < most else Absent(sentence)
