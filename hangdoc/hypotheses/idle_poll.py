"""HD501: the server is ready and polls for requests; it burns a core doing so, and that is normal."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.frames import bare_name
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._event_loops import place_below_event_loop
from hangdoc.hypotheses._http import http_answers, http_is_silent
from hangdoc.hypotheses._stops import no_rank_is_stopped
from hangdoc.model.reading import Missing


def _every_rank_goes_round(case: Case) -> Outcome:
    """Every rank was in its event loop in every stack, and never in a batch."""
    movers = case.features.movers
    for member in movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        main = member.main.value
        if not main.always_does("event-loop", "idle-poll") or main.ever_does("forward"):
            return Absent(f"{signs.name_of(member.process)} does not just go round its event loop: {signs.where(main)}")
        if (place := place_below_event_loop(main)) is not None:
            name = signs.name_of(member.process)
            return Unread(f"whether {name} comes back to its event loop: all its stacks are in {place.frame.function}")
    return Present("every rank goes round its event loop without a batch") if movers else Absent("there is no rank")


def _the_loop_turns(case: Case) -> Outcome:
    """Every rank's loop turns, or sleeps between polls because it was told to; none is in state T or t."""
    if not isinstance(runs := no_rank_is_stopped(case), Present):
        return runs
    for member in case.features.movers:
        name = signs.name_of(member.process)
        if not isinstance(member.main, Missing) and member.main.value.always_does("idle-poll"):
            continue
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {name} does")
        if done.value == "still":
            return Absent(f"{name} {signs.describe(done.value)}: its loop does not turn")
    return Present("the loop of every rank turns")


def still_starting(case: Case) -> Outcome:
    """The launcher still waits for its ranks, or for the answer to its own warm-up request."""
    for member in case.features.members.values():
        if member.process.role != "launcher":
            continue
        if isinstance(member.dumps, Missing):
            return Unread.of(member.dumps, f"stack of {signs.name_of(member.process)}")
        for thread in member.dumps.value.threads.values():
            if thread.last.meaning.does("warmup-request"):
                return Present("the launcher still waits for its warm-up request")
            if any(bare_name(frame.function) == "_wait_for_scheduler_ready" for frame in thread.last.stack):
                return Present("the launcher still waits for its ranks")
    return Absent("the launcher waits for nobody")


def _log_says_ready(case: Case) -> Outcome:
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says")
    return Present("its log says it is ready") if log.value.reached("ready") else Absent("its log does not say ready")


HYPOTHESIS = Hypothesis(
    id="HD501",
    name="healthy-idle-poll",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_every_rank_goes_round, _the_loop_turns),
    supporting=(_log_says_ready, http_answers),
    confirm_at=1,
    contrary=(http_is_silent,),
    excluding=(still_starting, signs.nobody_died),
    headline="The server is ready and polls for requests; the core it burns doing so is normal.",
    action="Nothing to do. --sleep-on-idle stops the polling where the core is wanted.",
    playbook="healthy-idle-poll",
)
