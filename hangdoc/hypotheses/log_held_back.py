"""HD503: the launch is further than its log says: the text is held back in a buffer on its way."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.phases import ORDER
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses import idle_poll, serving
from hangdoc.model.reading import Missing


def _is_healthy(case: Case) -> Outcome:
    """By all but its log the launch is ready: its ranks go round without a batch, or results come out."""
    idle = [sign(case) for sign in idle_poll.HYPOTHESIS.essential]
    busy = [sign(case) for sign in serving.HYPOTHESIS.essential]
    for outcomes in (idle, busy):
        if all(isinstance(outcome, Present) for outcome in outcomes):
            return outcomes[0]
    unread = [outcome for outcome in (*idle, *busy) if isinstance(outcome, Unread)]
    return unread[0] if unread else next(outcome for outcome in busy if isinstance(outcome, Absent))


def _log_is_behind(case: Case) -> Outcome:
    """The log does not name the milestones that the stacks show to be passed, and does not grow."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "what its log says")
    phase = log.value.phase
    if phase == "unknown" and not isinstance(_text_is_in_the_process(case), Present):
        return Unread("whether its log ever named a milestone: it may have been rotated, or log less")
    behind = phase == "unknown" or ORDER.index(phase) < ORDER.index("warmup")
    if behind and log.value.grown_bytes == 0:
        return Present(f"its log stands at {phase} and does not grow")
    return Absent(f"its log says {phase}: it keeps up")


def _text_is_in_the_process(case: Case) -> Outcome:
    """Text that a process printed is still in its own output buffer."""
    unread: Unread | None = None
    for output in case.features.outputs:
        if isinstance(output.hidden, Missing):
            unread = unread or Unread.of(output.hidden, f"text still in {signs.name_of(output.process)}")
        elif size_bytes := output.hidden.value.size_bytes:
            process = signs.name_of(output.process)
            return Present(f"{size_bytes:,} bytes of its text are still in {process}, for descriptor {output.file.fd}")
    if not case.features.outputs:
        return Unread("text still in the processes: no output could be read")
    return unread or Absent("no text is in the buffers of the processes")


HYPOTHESIS = Hypothesis(
    id="HD503",
    name="log-held-back",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(_is_healthy, _log_is_behind),
    supporting=(_log_is_behind, _text_is_in_the_process),
    excluding=(idle_poll.still_starting, signs.nobody_died),
    headline="The server is further than its log says: the text is held back in a buffer.",
    action="Start the server with PYTHONUNBUFFERED=1. Opening /proc/PID/fd/1 proves nothing: it is the file once more.",
    playbook="log-held-back",
)
