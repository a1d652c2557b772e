"""HD220: ranks are out of step: they wait for each other in different collectives, and none of them can end."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _divergence as divergence
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._watchdog_words import batches_differ
from hangdoc.hypotheses.exception_behind_collective import capture_was_left_early


def _is_in_hicache(case: Case) -> Outcome:
    """Excluding: some of them wait in the hierarchical cache, which is a hypothesis of its own."""
    found = divergence.hicache_classes(case)
    if isinstance(found, Unread):
        return found
    if found:
        return Present(f"{ranks.names(case.features, found[0].members)} waits in the hierarchical cache")
    return Absent("no rank waits in the hierarchical cache")


def _headline(case: Case) -> str:
    found = divergence.astray(case)
    places = (f"{ranks.names(case.features, one.members)} waits in {ranks.place_of_class(one)}" for one in found[:2])
    others = "" if len(found) > 1 else ", the other ranks wait elsewhere"
    return f"{', '.join(places)}{others}: they are out of step."


HYPOTHESIS = Hypothesis(
    id="HD220",
    name="rank-divergence",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        divergence.all_wait_in_collectives,
        divergence.is_astray,
        signs.positive_or_patience(divergence.nobody_else_can_come),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(
        divergence.nobody_else_can_come,
        divergence.all_wait_in_collectives,
        signs.log_is_silent_too_long,
        batches_differ,
    ),
    excluding=(_is_in_hicache, capture_was_left_early, signs.nobody_died),
    headline=_headline,
    culprits=divergence.culprits,
    waits=divergence.waits,
    action="Find what each rank decides for itself (sampling, clocks, time limits) before these two collectives.",
    playbook="rank-divergence",
)
