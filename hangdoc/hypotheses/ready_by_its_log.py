"""HD520: the log says that the server became ready, or ended in order, and names nothing that went wrong."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.outputs import refused_words
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Known, Missing


def _ready_or_ended(case: Case) -> Outcome:
    """The log says that the server is ready, or that it was told to end."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether it became ready")
    start = case.features.start
    if isinstance(start, Known) and start.value.behind:
        return Absent(f"{logs.rank_words(start.value.behind[0])} has not come as far as the others")
    if (end := log.value.unexplained_end) is not None:
        return Absent(f"its log says: {end.text}; not whether it was well before")
    if log.value.phase == "shutdown":
        started = isinstance(start, Known) and start.value.reached and not log.value.reached("ready")
        return Absent("it was told to end before it was ready") if started else Present("it was told to end")
    if log.value.reached("ready"):
        return Present("its log says that it is ready")
    return Absent("its log does not say that it is ready")


def _nothing_is_open(case: Case) -> Outcome:
    """No request is open at the end of the log: an answer was the last thing, or there was none since it is ready."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "whether requests are open")
    ready = [event.offset for event in log.value.milestones if event.name == "ready"]
    since = [event for event in log.value.endless if event.kind == "batch" and event.offset > (ready or [0])[-1]]
    if log.value.phase == "shutdown" and log.value.draining:
        return Unread(f"whether the last {log.value.draining} requests end: it was told to end and waits for them")
    if not since or log.value.phase == "shutdown":
        return Present("no request came after that")
    last = since[-1]
    if last.name in {"generate-done", "request-failed"} or last.numbers.get("running") == 0:
        return Present("the last request was answered")
    return Unread("whether the last request was answered")


def _something_is_wrong(case: Case) -> Outcome:
    """A failure, a watchdog or a complaint is in the log after it became ready."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether something failed")
    found = (*logs.lasting(case.features), *case.features.log.value.complaints)
    ready = [event.offset for event in case.features.log.value.milestones if event.name == "ready"]
    later = [event for event in found if event.offset > (ready or [0])[-1]]
    told = [event.offset for event in case.features.log.value.milestones if event.phase == "shutdown"]
    if later and not (told and told[0] < later[0].offset):
        return Present(f"its log says: {later[0].text}")
    refused = [event for event in case.features.log.value.refused if event.offset > (ready or [0])[-1]]
    if refused and not told:
        return Present(refused_words(refused[-1]))
    return Absent("the log names no failure")


def _headline(case: Case) -> str:
    log = case.features.log
    if isinstance(log, Known) and log.value.phase == "shutdown":
        return "Its log says that it was told to end and names nothing that went wrong before."
    return "Its log says that it became ready and names nothing that went wrong since."


HYPOTHESIS = Hypothesis(
    id="HD520",
    name="ready-by-its-log",
    verdict="healthy",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _ready_or_ended, _nothing_is_open),
    contrary=(logs.still_lives,),
    excluding=(_something_is_wrong,),
    headline=_headline,
    action="If it does not answer now, the log does not show why: run hangdoc watch on the machine.",
    playbook="ready-by-its-log",
)
