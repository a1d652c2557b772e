"""HD203: ranks wait in the rendezvous for others that are not there."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.features import Features
from hangdoc.features.frames import is_file
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


def _every_rank_is_in_rendezvous(case: Case) -> Outcome:
    """Every rank of this node stands in the rendezvous in every stack."""
    movers = case.features.movers
    for member in movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        if not member.main.value.always_does("rendezvous"):
            return Absent(f"{signs.name_of(member.process)} is elsewhere: {signs.where(member.main.value)}")
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value in {"works", "spins"}:
            return Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
    first = movers[0].main if movers else Missing("launch", "not-taken")
    if isinstance(first, Missing):
        return Absent("the launch has no rank")
    return Present(f"every rank of this node waits in the rendezvous: {signs.where(first.value)}")


def absent_nodes(features: Features) -> tuple[int, ...]:
    """Return the ranks of the nodes that the launch was told of and that are not this one."""
    settings = features.launch.settings
    nodes, own = settings.get("nnodes", "1"), settings.get("node_rank", "0")
    if not (nodes.isdigit() and own.isdigit()):
        return ()
    return tuple(node for node in range(int(nodes)) if node != int(own))


def _others_are_expected(case: Case) -> Outcome:
    """The launch was told of more nodes than this one."""
    absent = absent_nodes(case.features)
    if absent:
        nodes = ", ".join(str(node) for node in absent)
        return Present(f"the launch expects node {nodes} as well, and the rendezvous ends only when it has come")
    return Absent("the launch expects no node but this one")


MET_FILES = ("distributed/device_communicators/pynccl.py", "distributed/device_communicators/shm_broadcast.py")
"""Files of what follows the meeting: NCCL's set-up and the message queues between ranks."""


def _has_met(case: Case) -> Outcome:
    """Excluding: a rank is in a collective or in NCCL's set-up, which begin when every rank has come."""
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        main = member.main.value
        met = any(is_file(frame.file, file) for frame in main.last.stack for file in MET_FILES)
        if met or main.last.meaning.does("collective"):
            return Present(f"{signs.name_of(member.process)} has met the others: {signs.where(main)}")
    return Absent("no rank is past the meeting point")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    return tuple(
        Culprit(
            pid=None,
            start_ticks=None,
            tid=None,
            role="scheduler",
            rank={"node": node},
            outside=True,
            reason=f"node {node} has not come to the rendezvous",
        )
        for node in absent_nodes(case.features)
    )


def _headline(case: Case) -> str:
    nodes = ", ".join(str(node) for node in absent_nodes(case.features))
    return (
        f"Every rank here waits in the rendezvous; node {nodes} has not come."
        if nodes
        else ("Every rank here waits in the rendezvous and nobody else is expected.")
    )


HYPOTHESIS = Hypothesis(
    id="HD203",
    name="blocked-in-rendezvous",
    verdict="blocked",
    suspects=signs.the_launch,
    essential=(
        _every_rank_is_in_rendezvous,
        signs.nothing_progresses,
        signs.positive_or_patience(_others_are_expected),
        signs.readings_are_steady,
    ),
    supporting=(_others_are_expected, signs.log_is_silent_too_long),
    excluding=(_has_met, signs.nobody_died),
    headline=_headline,
    culprits=_culprits,
    action="Start the missing node, or check --dist-init-addr, its port and the firewall between the nodes.",
    playbook="blocked-in-rendezvous",
)
