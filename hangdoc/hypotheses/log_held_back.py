"""HD503: the launch is further than its log says: the text is held back in a buffer on its way."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.phases import ORDER
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def _every_stack_says_ready(case: Case) -> Outcome:
    """Every rank is in its event loop."""
    for member in case.features.movers:
        if isinstance(member.main, Missing):
            return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
        if not member.main.value.always_does("event-loop", "idle-poll"):
            return Absent(f"{signs.name_of(member.process)} is not in its event loop")
    return Present("by its stacks every rank is in its event loop")


def _log_is_behind(case: Case) -> Outcome:
    """The log does not name the milestones that the stacks show to be passed, and does not grow."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says")
    phase = log.value.phase
    behind = phase == "unknown" or ORDER.index(phase) < ORDER.index("warmup")
    if behind and log.value.grown_bytes == 0:
        return Present(f"its log stands at {phase} and does not grow")
    return Absent(f"its log says {phase}: it keeps up")


def _ranks_move(case: Case) -> Outcome:
    """No rank stands still: whatever its log says, the launch is alive."""
    for member in case.features.movers:
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value == "still":
            return Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
    return Present("every rank moves")


HYPOTHESIS = Hypothesis(
    id="HD503",
    name="log-held-back",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_every_stack_says_ready, _log_is_behind, _ranks_move),
    supporting=(_log_is_behind,),
    confirm_at=1,
    excluding=(signs.nobody_died,),
    headline="The server is further than its log says: the text is held back in a buffer.",
    action="Start the server with PYTHONUNBUFFERED=1, or without the pipe that buffers its output.",
    playbook="log-held-back",
)
