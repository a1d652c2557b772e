"""HD502: the server is working on requests, and results come out."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._http import counters_rise, http_is_silent
from hangdoc.hypotheses._stops import no_rank_is_stopped
from hangdoc.hypotheses.idle_poll import still_starting
from hangdoc.model.reading import Missing

FEWEST_WAKES_PER_S = 1.0
"""Times a second that the detokenizer's main thread wakes when tokens come out; it sleeps in a receive when none do
(idle: 0). Arbitrary above 0."""


def _some_rank_runs_batches(case: Case) -> Outcome:
    """Every rank is in its event loop, and at least one was seen in a batch."""
    seen = False
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        if not member.main.value.always_does("event-loop", "idle-poll"):
            return Absent(f"{signs.name_of(member.process)} is not in its event loop")
        seen = seen or member.main.value.ever_does("forward")
    return Present("batches are being run") if seen else Absent("no rank was seen in a batch")


def _results_come_out(case: Case) -> Outcome:
    """The detokenizer wakes, batch lines stand in the log or tokens are counted: something came through."""
    if isinstance(counted := counters_rise(case.features), Absent):
        return Present(counted.because)
    log = case.features.log
    if not isinstance(log, Missing):
        batches = [event for event in log.value.fresh if event.kind == "batch"]
        if batches:
            return Present(f"its log goes on: {batches[-1].text}")
    rates = [(member, _wakes_per_s(member)) for member in _detokenizers(case)]
    for member, rate in rates:
        if rate is None:
            return Unread(f"how often {signs.name_of(member.process)} wakes")
        if rate >= FEWEST_WAKES_PER_S:
            return Present(f"{signs.name_of(member.process)} wakes {rate:.0f} times a second")
    if case.features.is_log:
        return Unread("whether results come out since then")
    return Absent("no result came out: the detokenizer sleeps and the log stands")


def _detokenizers(case: Case) -> list[Member]:
    return [member for member in case.features.members.values() if member.process.role == "detokenizer"]


def _wakes_per_s(member: Member) -> float | None:
    if isinstance(member.motion, Missing) or isinstance(member.motion.value.threads, Missing):
        return None
    main = member.motion.value.threads.value.get(member.key.pid)
    return None if main is None else main.slices / member.motion.value.seconds


HYPOTHESIS = Hypothesis(
    id="HD502",
    name="healthy-serving",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_some_rank_runs_batches, no_rank_is_stopped, _results_come_out),
    supporting=(_results_come_out,),
    confirm_at=1,
    contrary=(http_is_silent,),
    excluding=(still_starting, signs.nobody_died),
    headline="The server is working on requests and results come out.",
    action="Nothing to do.",
    playbook="healthy-serving",
)
