"""HD108: NCCL's own counts say which rank has not come to a collective that the others have launched.

Tested with a stand-in for RAS and by answers measured on one H200; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

from hangdoc.criteria import Case, Hypothesis
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._ras import counts_name_it, flight_recorder_names_it
from hangdoc.hypotheses.blocked_in_host_collective import stands_still
from hangdoc.hypotheses.gpu_kernel_spins import waits_for_requests
from hangdoc.hypotheses.rank_out_of_gpu_collective import is_asleep_or_in_another_collective
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.reading import Missing


def _culprits(case: Case) -> tuple[Culprit, ...]:
    main = case.patient.main
    place = "an unknown place" if isinstance(main, Missing) else signs.where(main.value)
    return (signs.culprit(case.patient, f"has launched fewer collectives than the others; it stands in {place}"),)


def _waits(case: Case) -> tuple[Wait, ...]:
    to = WaitEnd(pid=case.patient.key.pid, tid=case.patient.key.pid)
    return tuple(
        Wait(
            from_=WaitEnd(pid=member.key.pid, tid=member.key.pid),
            to=to,
            through="barrier",
            detail="has launched a collective that the other one has not",
        )
        for member in case.features.movers
        if member.key != case.patient.key
    )


HYPOTHESIS = Hypothesis(
    id="HD108",
    name="collective-short-of-a-rank",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        counts_name_it,
        stands_still,
        signs.positive_or_patience(is_asleep_or_in_another_collective),
        signs.nothing_moves_on_the_host,
        signs.readings_are_steady,
    ),
    supporting=(
        counts_name_it,
        is_asleep_or_in_another_collective,
        flight_recorder_names_it,
        signs.log_is_silent_too_long,
    ),
    confirm_at=2,
    excluding=(waits_for_requests, signs.nobody_died),
    headline=lambda case: (
        f"{signs.name_of(case.patient.process)} never came to a collective on the GPU that the others have launched."
    ),
    culprits=_culprits,
    waits=_waits,
    action="Look at the frames of the rank that NCCL counts behind: what it waits for there is the cause.",
    playbook="rank-out-of-gpu-collective",
)
