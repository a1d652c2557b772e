"""HD403: a rank failed while it captured graphs, and the error is hidden behind a collective that it left for."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing

NOTHING_TO_REGISTER = "graph addresses: 0"
ALL_REDUCE_FILE = "device_communicators/custom_all_reduce.py"


def _left_the_capture_early(case: Case) -> Outcome:
    """The log's last word on the graphs is that 0 addresses are registered, or that a peer closed the connection.

    Why it works: leaving the capture, in order or by an exception, runs a collective that exchanges the addresses of
    what was captured; with nothing captured it was left by an exception, whose text comes only after the collective.
    """
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says of the graphs")
    if any(event.name == "capture-failed-by-peer" for event in log.value.crashes):
        return Present("its log says that the capture failed because a peer closed the connection")
    last = [event for event in log.value.milestones if event.name in {"graph-addresses", "capture-end", "ready"}][-1:]
    if last and last[0].text == NOTHING_TO_REGISTER:
        return Present("its log registers 0 graph addresses: the capture was left by an exception")
    return Absent("its log does not show a capture that was left early")


def _nothing_goes_on(case: Case) -> Outcome:
    """A rank is dead, or nothing moves on the host and every rank of this node stands."""
    if signs.the_dead(case.features):
        return Present(f"{signs.name_of(signs.the_dead(case.features)[0])} is dead")
    alive = signs.nobody_died(case)
    host = signs.nothing_moves_on_the_host(case)
    for outcome in (host, ranks.all_stand(case.features, (member.key for member in case.features.movers))):
        if not isinstance(outcome, Present):
            return outcome
    return alive if isinstance(alive, Unread) else host


def _leavers(case: Case) -> tuple[Member, ...]:
    return tuple(
        member
        for member in case.features.movers
        if ranks.is_inside(member, ALL_REDUCE_FILE, "register_graph_buffers", "capture", "register_buffer")
    )


def capture_was_left_early(case: Case) -> Outcome:
    """Excluding: ranks have left a capture in which nothing was captured, which explains who is where."""
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
    if not _leavers(case):
        return Absent("no rank is on its way out of a capture")
    return _left_the_capture_early(case)


def _some_left_and_some_did_not(case: Case) -> Outcome:
    """Some ranks are in the collective that ends the capture, and others are not, or a rank is dead."""
    if signs.the_dead(case.features):
        return Present("a rank is dead")
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
    left = _leavers(case)
    if left and len(left) < len(case.features.movers):
        return Present(
            f"{', '.join(signs.name_of(member.process) for member in left)} has left the capture, the others have not"
        )
    return Absent("the ranks are not seen apart")


def _culprits(case: Case) -> tuple[Culprit, ...]:
    dead = signs.the_first_dead(case.features) if signs.the_dead(case.features) else ()
    if dead:
        return tuple(signs.process_as_culprit(process, "died while graphs were captured") for process in dead)
    left = _leavers(case)
    if len(left) == len(case.features.movers):
        return ()
    return tuple(signs.culprit(member, "failed in the capture; its error is not printed yet") for member in left)


HYPOTHESIS = Hypothesis(
    id="HD403",
    name="exception-behind-collective",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(_left_the_capture_early, _nothing_goes_on),
    supporting=(_left_the_capture_early, _some_left_and_some_did_not),
    confirm_at=2,
    excluding=(),
    headline="A rank failed while graphs were captured, and its error is hidden: the others wait in a collective.",
    culprits=_culprits,
    action="Start once with --disable-custom-all-reduce to see the error; often memory: lower --mem-fraction-static.",
    playbook="exception-behind-collective",
)
