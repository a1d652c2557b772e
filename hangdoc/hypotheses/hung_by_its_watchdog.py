"""HD901: a watchdog of the server, of NCCL or of torch measured a standstill, and the log says so."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses import _watchdog_words as words
from hangdoc.hypotheses._plumbing import is_plumbing
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Known, Missing


def _watchdog_fired(case: Case) -> Outcome:
    """A watchdog that measures progress gave up: a forward batch for minutes, or a collective until its time-out."""
    if isinstance(case.features.log, Missing):
        return Unread.of(case.features.log, "whether a watchdog fired")
    fired = logs.watchdogs(case.features)
    if not fired:
        return Absent("no watchdog is in the log")
    if _is_soft(fired) and not case.features.log.value.reached("ready"):
        return Unread(f"its log says: {fired[0].text}; in a start a compile sets that off as well")
    return Present(f"its log says: {fired[0].text}" + (f" ({len(fired)} such lines)" if len(fired) > 1 else ""))


def _is_soft(fired: tuple[LogEvent, ...]) -> bool:
    return bool(fired) and all(event.name == "watchdog-soft" for event in fired)


def _somebody_failed_first(case: Case) -> Outcome:
    """A member failed before any watchdog fired: then those who waited for it ran into theirs."""
    own = logs.own_failures(case.features)
    if logs.first_is_older(own, logs.watchdogs(case.features)):
        return Present(f"before that its log says: {own[0].text}")
    return Absent("nothing failed before the watchdog fired")


def _it_went_on(case: Case) -> Outcome:
    """Batches or steps of the start came after the last watchdog: it was slow, or came free again."""
    fired = logs.watchdogs(case.features)
    return logs.went_on(case.features, fired[-1] if fired else None)


def _server_ended_itself(case: Case) -> Outcome:
    """After the watchdog the server ended itself, as it does after a hang."""
    fired, ended = logs.watchdogs(case.features), logs.failures(case.features)
    after = [event for event in ended if fired and event.offset > fired[0].offset]
    return Present(f"then it ended itself: {after[0].text}") if after else Absent("no end of the server is in the log")


def _several_ranks_say_so(case: Case) -> Outcome:
    """Watchdogs of several ranks fired."""
    ranks = {tuple(sorted(event.rank.items())) for event in logs.watchdogs(case.features) if event.rank}
    return Present(f"{len(ranks)} ranks say so") if len(ranks) > 1 else Absent("one rank says so")


def _only_a_soft_one(case: Case) -> Outcome:
    """Only a watchdog fired that a slow step sets off as well: the soft one, or the limit of a call to the workers."""
    if _is_soft(logs.watchdogs(case.features)):
        return Present("only the soft watchdog fired, which a slow step sets off as well")
    if all(event.name in _SHORT for event in logs.watchdogs(case.features)):
        return Present("it had 10 to 300 s for a step, and a first one that compiles may take longer")
    return Absent("it is a watchdog that ends the server")


_SHORT = frozenset({"rpc-timeout", "no-heartbeat", "engine-iteration"})
"""Limits of vLLM that a step which only takes long may pass."""


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return who is lost, behind by the counts of collectives, holds another batch, or stands elsewhere."""
    if blamed := (_lost(case) or logs.behind(case.features)[0] or _stuck(case))[:MOST_BLAMED]:
        return tuple(culprit for event in blamed for culprit in logs.culprit_of(case.features, event))
    if astray := words.with_another_batch(case):
        return astray
    absent = _absent_one(case.features.movers)
    if absent is not None:
        return (signs.culprit(absent, f"stays out of the collective that the others wait in: {_place(absent)}"),)
    odd = _odd_one(case.features.movers)
    return () if odd is None else (signs.culprit(odd, f"stands elsewhere than the others: {_place(odd)}"),)


MOST_BLAMED = 8
"""Ranks that are named. Arbitrary: those of one node are often lost, or behind, together."""


def _lost(case: Case) -> tuple[LogEvent, ...]:
    """Return whom RAS calls dead, or in whom NCCL failed."""
    return tuple(event for event in logs.watchdogs(case.features) if event.name in logs.LOST_BY_RAS)


def _stuck(case: Case) -> tuple[LogEvent, ...]:
    """Return in whom NCCL's watchdog itself was stuck, each rank once."""
    said = [event for event in logs.watchdogs(case.features) if event.name == "nccl-heartbeat"]
    ranks = {event.numbers["rank"]: event for event in reversed(said) if "rank" in event.numbers}
    return tuple(event for event in said if event in ranks.values())


def _action(case: Case) -> str:
    pids = [f"{event.numbers['pid']:.0f}" for event in _lost(case)[:MOST_BLAMED] if event.numbers.get("pid", 0) > 0]
    if not pids:
        return "The end of the server is the watchdog's doing: look for what stood still before it, not for a crash."
    return f"On the node of the process that RAS names: ps -o stat,wchan -p {','.join(pids)}, then what dmesg -T says."


def _headline(case: Case) -> str:
    first = logs.watchdogs(case.features)[0]
    who = "NCCL" if first.name in logs.LOST_BY_RAS else "a watchdog"
    told = f"It hung, and {who} noticed: {first.text.removeprefix('NCCL counts: ')}"
    for sign in (words.first_never_ended, words.batches_differ):
        if isinstance(said := sign(case), Present):
            return f"{told}; {said.because}."
    return f"{told}."


def _absent_one(movers: tuple[Member, ...]) -> Member | None:
    """Return the one rank that is outside a collective while all others, at least one, are in one."""
    seen = [(member, member.main.value) for member in movers if isinstance(member.main, Known)]
    outside = [member for member, main in seen if not main.last.meaning.does("collective")]
    return outside[0] if len(outside) == 1 and len(seen) > 1 else None


def _odd_one(movers: tuple[Member, ...]) -> Member | None:
    """Return the one rank whose innermost function differs where at least two others agree."""
    places = {member.key: place for member in movers if (place := _function(member))}
    values = list(places.values())
    odd = [member for member in movers if values.count(places.get(member.key, "")) == 1]
    return odd[0] if len(odd) == 1 and len(values) >= 3 and len(set(values)) == 2 else None


def _function(member: Member) -> str:
    if isinstance(member.main, Missing) or not member.main.value.last.stack:
        return ""
    frame = next((f for f in member.main.value.last.stack if not is_plumbing(f)), member.main.value.last.stack[0])
    return f"{frame.function} {frame.file}"


def _place(member: Member) -> str:
    return signs.where(member.main.value) if isinstance(member.main, Known) else "unknown"


HYPOTHESIS = Hypothesis(
    id="HD901",
    name="hung-by-its-watchdog",
    verdict="hung",
    suspects=signs.the_launch,
    essential=(logs.log_is_all, _watchdog_fired),
    supporting=(_server_ended_itself, _several_ranks_say_so, words.batches_differ, words.first_never_ended),
    confirm_at=1,
    contrary=(_only_a_soft_one,),
    excluding=(_somebody_failed_first, _it_went_on),
    headline=_headline,
    culprits=_culprits,
    action="The end of the server is the watchdog's doing: look for what stood still before it, not for a crash.",
    action_in=_action,
    playbook="hung-by-its-watchdog",
)
