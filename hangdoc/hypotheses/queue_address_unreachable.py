"""HD224: ranks on several nodes wait for a message queue whose advertised address is not reachable from here."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing

QUEUE_FILE = "distributed/device_communicators/shm_broadcast.py"


def _shakes_hands(member: Member) -> bool:
    return ranks.is_inside(member, QUEUE_FILE, "wait_until_ready")


def _waits_for_its_queue(case: Case) -> Outcome:
    """Its main thread waits in the handshake of a message queue (wait_until_ready) for 9 s or more.

    Why it works: every rank has got the address over a collective just before, so that all of them are there, and
    whoever can reach it answers within milliseconds.
    """
    main, name = case.patient.main, signs.name_of(case.patient.process)
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {name}")
    if not _shakes_hands(case.patient):
        return Absent(f"{name} is not in the handshake of a message queue: {signs.where(main.value)}")
    return ranks.stands(case.patient)


def _sleeps(case: Case) -> Outcome:
    """No rank of this node burns CPU or works."""
    return ranks.all_sleep(case.features, (member.key for member in case.features.movers))


def _log_says_several_nodes(case: Case) -> Outcome:
    """The log says that the process group is on several nodes, and not that the rendezvous ended."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says last")
    if log.value.reached("rendezvous-end"):
        return Absent("its log names the end of the rendezvous")
    if log.value.reached("group-on-several-nodes"):
        return Present("its log says that the process group is on several nodes, and nothing after it")
    return Absent("its log does not speak of several nodes")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    own = case.features.launch.settings.get("node_rank", "0")
    reason = "the address that its message queue advertises is not reachable from the other nodes"
    if own == "0":
        return (signs.culprit(case.patient, reason),)
    head = Culprit(
        pid=None, start_ticks=None, tid=None, role="scheduler", rank={"node": 0}, outside=True, reason=reason
    )
    return (head,)


HYPOTHESIS = Hypothesis(
    id="HD224",
    name="queue-address-unreachable",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        ranks.several_nodes,
        _waits_for_its_queue,
        _sleeps,
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_log_says_several_nodes, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"{signs.name_of(case.patient.process)} waits for the message queue of another node, whose address it gets no "
        "answer from."
    ),
    culprits=_culprits,
    action="Set SGLANG_HOST_IP on every node to its address in the network that the nodes share.",
    playbook="queue-address-unreachable",
)
