"""HD107: every rank has its NCCL communicator, and all spin on the GPU in the first collective: the transport fails.

Tested with a stand-in for NVML and by public reports; not yet seen by hangdoc itself on a card.
"""

from __future__ import annotations

import re

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._kernels import every_gpu_spins
from hangdoc.hypotheses._watchdog_words import counts_collectives, first_never_ended
from hangdoc.hypotheses.peer_to_peer_broken import in_the_rendezvous, nccl_lines
from hangdoc.model.reading import Missing

_RANK_OF = re.compile(r"rank (\d+) of (\d+)")


def _every_communicator_is_there(case: Case) -> Outcome:
    """The log has NCCL's "Init COMPLETE" of every rank, or it stops at NCCL's version on one of several nodes.

    The line is printed with NCCL_DEBUG=INFO; without it, and on one node, see peer-to-peer-broken. As good is what
    NCCL's watchdogs say when every rank has launched its first collective and none ever ended.
    """
    lines, log = nccl_lines(case), case.features.log
    if isinstance(lines, Unread) or isinstance(log, Missing):
        return lines if isinstance(lines, Unread) else Unread("what its log says last")
    if log.value.reached("rendezvous-end"):
        return Absent("its log names the end of the rendezvous: the first collective is over")
    watched = first_never_ended(case)
    if isinstance(watched, Present) or (isinstance(watched, Absent) and counts_collectives(log.value)):
        return watched
    seen = [match.groups() for line in lines if (match := _RANK_OF.search(line.text)) is not None]
    if seen:
        return _counted({rank for rank, _ in seen}, max(int(size) for _, size in seen), case)
    if log.value.reached("nccl-version") and isinstance(ranks.several_nodes(case), Present):
        return Present("its log stops at the version of NCCL, on one of several nodes")
    return watched if isinstance(watched, Unread) else Absent("its log names no communicator of NCCL that is complete")


def _counted(seen: set[str], size: int, case: Case) -> Outcome:
    wanted = min(size, len(case.features.movers)) if isinstance(ranks.several_nodes(case), Present) else size
    sentence = f"NCCL said Init COMPLETE for {len(seen)} of {size} ranks"
    return Present(sentence) if len(seen) >= wanted else Absent(sentence)


HYPOTHESIS = Hypothesis(
    id="HD107",
    name="first-collective-never-finishes",
    verdict="busy-wait",
    suspects=signs.each_mover,
    essential=(
        ranks.several_ranks,
        _every_communicator_is_there,
        in_the_rendezvous,
        ranks.all_stand_together,
        every_gpu_spins,
        signs.nothing_moves_on_the_host,
        signs.readings_are_steady,
    ),
    supporting=(every_gpu_spins, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline="Every rank has its NCCL communicator, and the first collective over it never ends: the transport fails.",
    action="Start once with NCCL_P2P_DISABLE=1, then with NCCL_SHM_DISABLE=1 or NCCL_IB_DISABLE=1: one of them runs.",
    playbook="first-collective-never-finishes",
)
