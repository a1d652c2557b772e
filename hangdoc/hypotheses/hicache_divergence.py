"""HD221: ranks are out of step in the hierarchical cache: some wait in one of its collectives, the others elsewhere."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _divergence as divergence
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs


def _some_wait_in_hicache(case: Case) -> Outcome:
    """Some ranks, not all, wait in a collective of the hierarchical cache."""
    found, compared = divergence.hicache_classes(case), ranks.compared(case)
    if isinstance(found, Unread) or isinstance(compared, Unread):
        return found if isinstance(found, Unread) else Unread("where the ranks stand")
    if not found:
        return Absent("no rank waits in the hierarchical cache")
    if len(found) == len(compared.classes):
        return Absent("every rank waits in the hierarchical cache")
    who = ranks.names(case.features, (key for one in found for key in one.members))
    return Present(f"{who} waits in the hierarchical cache: {ranks.place_of_class(found[0])}")


def _headline(case: Case) -> str:
    found = divergence.hicache_classes(case)
    who = "" if isinstance(found, Unread) else ranks.names(case.features, (key for one in found for key in one.members))
    return f"{who} waits in a collective of the hierarchical cache to which the other ranks do not come."


HYPOTHESIS = Hypothesis(
    id="HD221",
    name="hicache-divergence",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _some_wait_in_hicache,
        divergence.all_wait_in_collectives,
        divergence.is_astray,
        signs.positive_or_patience(divergence.nobody_else_can_come),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(divergence.nobody_else_can_come, _some_wait_in_hicache, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=divergence.culprits,
    waits=divergence.waits,
    action="Restart without --enable-hierarchical-cache, or without its storage prefetch; upgrade SGLang.",
    playbook="hicache-divergence",
)
