"""HD211: the launcher's own warm-up request goes to an HTTP proxy, and never comes to the server."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Features, Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def _launchers(features: Features) -> tuple[Member | None, ...]:
    return tuple(member for member in features.members.values() if member.process.role == "launcher")


def _waits_for_its_warm_up(case: Case) -> Outcome:
    """A thread of the launcher waited for its own first request in every stack."""
    dumps, name = case.patient.dumps, signs.name_of(case.patient.process)
    if isinstance(dumps, Missing):
        return Unread.of(dumps, f"stacks of {name}")
    for thread in dumps.value.threads.values():
        if thread.always_does("warmup-request"):
            return Present(f"{name} waits for its own warm-up request: {signs.where(thread)}")
    return Absent(f"{name} sends no warm-up request")


def _it_goes_to_a_proxy(case: Case) -> Outcome:
    """The launcher was started with a proxy for HTTP, and nothing in its environment excepts its own address."""
    around = case.features.surroundings
    proxied = around if isinstance(around, Missing) else around.value.proxied
    if isinstance(proxied, Missing):
        return Unread.of(proxied, "whether its environment names a proxy")
    if proxied.value:
        return Present("its environment names an HTTP proxy, and no_proxy does not except the server's own address")
    return Absent("its requests to itself go to no proxy")


def _no_request_has_come(case: Case) -> Outcome:
    """Every rank goes round its event loop and was never seen in a batch: nobody has asked it anything."""
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        main = member.main.value
        if not main.always_does("event-loop", "idle-poll") or main.ever_does("forward"):
            return Absent(f"{signs.name_of(member.process)} is not idle: {signs.where(main)}")
    return Present("every rank is ready and has no request") if case.features.movers else Absent("there is no rank")


def _the_server_listens(case: Case) -> Outcome:
    """The server listened on its port in two readings some seconds apart: a request could have come."""
    listened = case.features.listened
    if isinstance(listened, Missing):
        return Unread.of(listened, "whether the server listens on its port")
    return Present("the server listens on its port") if listened.value else Absent("the server does not listen yet")


HYPOTHESIS = Hypothesis(
    id="HD211",
    name="warmup-through-proxy",
    verdict="blocked",
    suspects=_launchers,
    essential=(
        _waits_for_its_warm_up,
        _it_goes_to_a_proxy,
        _the_server_listens,
        _no_request_has_come,
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_it_goes_to_a_proxy, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline="The server is ready, but the launcher sends its own warm-up request to an HTTP proxy.",
    culprits=lambda case: (signs.culprit(case.patient, "sends its warm-up request to a proxy"),),
    action="Start again with NO_PROXY=127.0.0.1,localhost,0.0.0.0 (and no_proxy the same) in the environment.",
    playbook="warmup-through-proxy",
)
