"""HD222: all nodes have met, and NCCL's set-up between them does not end: the network between the nodes."""

from __future__ import annotations

import re

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses.peer_to_peer_broken import in_the_rendezvous, log_stops_at_nccl
from hangdoc.model.reading import Missing

_PEERS_OF = re.compile(r"connected to (\d+) of (\d+) peers")
NCCL_FILE = "distributed/device_communicators/pynccl.py"


def _is_in_nccl(case: Case) -> Outcome:
    """Its main thread is in the set-up of NCCL, which begins when every rank has come, or in a collective there."""
    main = case.patient.main
    name = signs.name_of(case.patient.process)
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if ranks.is_inside(case.patient, NCCL_FILE) or main.value.always_does("collective"):
        return Present(f"{name} has met the other ranks and is in {signs.where(main.value)}")
    return Absent(f"{name} is not in the set-up of NCCL: {signs.where(main.value)}")


def _sleeps(case: Case) -> Outcome:
    """It sleeps, or wakes now and then, without burning CPU."""
    return ranks.all_sleep(case.features, (case.patient.key,))


def _all_peers_are_connected(case: Case) -> Outcome:
    """Every line of Gloo in the log says that as many peers are connected as are expected."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether Gloo reached every rank")
    lines = [event.text for event in log.value.milestones if event.name == "gloo-connected"]
    found = [match.groups() for text in lines if (match := _PEERS_OF.search(text)) is not None]
    if not found:
        return Absent("its log has no line of Gloo")
    short = [peers for peers in found if peers[0] != peers[1]]
    if short:
        return Absent(f"Gloo reached {short[0][0]} of {short[0][1]} peers")
    return Present(f"Gloo reached every peer: {len(found)} lines say so")


HYPOTHESIS = Hypothesis(
    id="HD222",
    name="cross-node-transport",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        ranks.several_nodes,
        log_stops_at_nccl,
        in_the_rendezvous,
        _is_in_nccl,
        ranks.all_stand_together,
        _sleeps,
        signs.nothing_progresses,
        ranks.patience_is_over,
        signs.readings_are_steady,
    ),
    supporting=(_all_peers_are_connected, _is_in_nccl),
    excluding=(signs.nobody_died,),
    headline="The nodes have met, and NCCL's set-up between them does not end: look at the network between the nodes.",
    action="Find the transport: start with NCCL_DEBUG=INFO, then with NCCL_IB_DISABLE=1 or NCCL_MNNVL_ENABLE=0.",
    playbook="cross-node-transport",
)
