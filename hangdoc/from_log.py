"""What is said of a log: its own section of the report, and why it does not suffice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hangdoc.features.baseline import TYPICAL_S
from hangdoc.features.clock import seconds_between
from hangdoc.features.features import Features
from hangdoc.features.outputs import LogState, refused_words
from hangdoc.features.startup import Reached, Start, bar_at_end, rank_of
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses._signs import place_of
from hangdoc.model.diagnosis import LogReport, LogStep
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Known, Missing, Reading

MOST_LINES = 20
"""Failures and complaints that are told. Arbitrary: the first ones say what began."""


PARTS = frozenset({"debug-info", "held-request"})
"""Lines that only say more of the one beside them: they are read, and not told one by one."""


def log_report(seen: Features) -> LogReport | None:
    """Return what the log says by itself; None when no log was read."""
    if isinstance(seen.log, Missing) or isinstance(seen.start, Missing):
        return None
    log, start = seen.log.value, seen.start.value
    bar = bar_at_end(log)
    return LogReport(
        path=log.path,
        lines=log.lines,
        size_bytes=log.size_bytes,
        last_at=log.last_stamp or _newest(log),
        steps=tuple(_step(seen, start, one) for one in start.reached),
        next=None if start.next is None else start.next.name,
        next_text=None if start.next is None else start.texts[start.next.name],
        absent=tuple(dict(rank) for rank in start.absent),
        silent_s=log.silent_s if log.until_known else None,
        changed_s=log.silent_s if log.has_file_time else None,
        bar=None if bar is None else f"{bar.text}: {bar.done:.0f} of {bar.total:.0f}, {bar.step_s:.1f} s each",
        left_s=_value(bar.left_s) if bar is not None else None,
        failures=_told(logs.failures(seen)),
        complaints=_told([event for event in log.complaints if event.name not in PARTS]),
        baseline=compared(seen, log, start),
    )


def _step(seen: Features, start: Start, one: Reached) -> LogStep:
    return LogStep(
        name=one.step.name,
        text=one.first.text,
        at=one.first.stamp,
        ranks=len(one.by),
        took_s=_value(start.took(one)),
        last_rank=one.last.rank,
        spread_s=_value(seconds_between(one.first.stamp, one.last.stamp)),
        usual_s=None if seen.baseline is None else seen.baseline.gaps_s(one.step.name),
    )


def _value(reading: Reading[float]) -> float | None:
    return reading.value if isinstance(reading, Known) else None


def _newest(log: LogState) -> str:
    return max((event.stamp for event in (*log.milestones, *log.endless)), default="")


def _told(events: Sequence[LogEvent]) -> tuple[str, ...]:
    """Return each text once, with the line where it first stands, and how often it came."""
    counts = Counter(f"{_who(event)}{event.text}" for event in events)
    first: dict[str, int] = {}
    for event in events:
        first.setdefault(f"{_who(event)}{event.text}", event.line)
    told = [
        (f"line {line}: " if line else "") + text + (f" ({counts[text]} times)" if counts[text] > 1 else "")
        for text, line in first.items()
    ]
    return tuple(told[:MOST_LINES])


def _who(event: LogEvent) -> str:
    return f"{logs.rank_words(rank_of(event))}: " if event.rank else ""


def compared(seen: Features, log: LogState, start: Start) -> tuple[str, ...]:
    """Return how the start differs from good ones; without any, what is usual for the step it stands at."""
    if start.last is None or start.next is None:
        return ()
    last = start.last.step.name
    if seen.baseline is None:
        return _usual(last)
    most = seen.baseline.longest_gap_s(last)
    lines = sorted(one.lines for one in seen.baseline.starts if one.lines)  # a live log's lines are not counted
    said = []
    if log.lines and lines:
        said.append(f"line {log.lines} of {lines[0]}" + (f" to {lines[-1]}" if lines[-1] != lines[0] else ""))
    if (times := seen.baseline.reached_at_s(start.next.name)) is not None:
        when = " to ".join(dict.fromkeys(_minutes(one) for one in times))
        said.append(f"good launches say {start.texts[start.next.name]} {when} after their start")
    if log.until_known:
        said.append(f"this one has been silent for {_minutes(log.silent_s)} since {start.last.first.text}")
    if most is not None:
        said.append(f"good launches went on {_minutes(most)} after that at the latest")
    if seen.baseline.other:
        said.append(f"none of these good launches is of its version: they are of {', '.join(seen.baseline.other)}")
    if seen.baseline.unlike:
        said.append(f"none of these good launches is of its size: they differ in {', '.join(seen.baseline.unlike)}")
    slower = [text for one in start.reached if (text := _slower(seen, start, one)) is not None]
    return (*said, *slower)


def _usual(step: str) -> tuple[str, ...]:
    if step not in TYPICAL_S:
        return ()
    least, most, source = TYPICAL_S[step]
    return (f"good starts go on {least:g} s to {most:g} s after this step: {source}",)


def _slower(seen: Features, start: Start, one: Reached) -> str | None:
    assert seen.baseline is not None
    took, usual = _value(start.took(one)), seen.baseline.longest_gap_s(one.step.name)
    if took is None or usual is None or took <= SLOWER_BY * usual + SLOWER_S:
        return None
    return f"after {one.first.text} it took {_minutes(took)}, good launches {_minutes(usual)} at most"


SLOWER_BY, SLOWER_S = 2.0, 5.0
"""How much longer than the slowest good start a step has to take to be told. Arbitrary: caches are cold and warm."""


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def undetermined_log(seen: Features) -> str:
    """Return the headline when a log does not tell: what it last said, and what is missing."""
    if isinstance(seen.log, Missing):
        return "Stacks of one moment do not tell whether anything moves: a second look would."
    log, start = seen.log.value, seen.start.value if isinstance(seen.start, Known) else None
    until = "" if log.until_known else ", and not until when it stayed like this"
    behind = _behind(seen)
    if log.unexplained_end is not None or behind is not None:
        still = f"{behind}: at one moment that does not tell whether it still moves{until}."
        return _ended(log, log.unexplained_end) if log.unexplained_end is not None else still
    if start is not None and start.behind:
        more = f" and {len(start.behind) - 1} more have" if len(start.behind) > 1 else " has"
        return (
            f"{logs.rank_words(start.behind[0])}{more} not come as far as the others, in {seen.phase}: a log alone "
            f"does not tell whether that is slow or hung{until}."
        )
    if start is None or start.last is None:
        return f"{_last_words(seen, log)}: a log alone does not tell whether the launch moves{until}."
    if log.reached("ready") and seen.phase in {"ready", "serving", "shutdown"}:
        return f"Its log says that it became ready{_since_ready(log)}{until}."
    return f"{_end_of(seen, log, start)}{until}."


def _since_ready(log: LogState) -> str:
    if log.phase == "shutdown":
        told = next(event.stamp for event in log.milestones if event.phase == "shutdown")
        since_s = _value(seconds_between(told, log.last_stamp))
        after = f" {_minutes(since_s)} later" if since_s is not None else " at its end"
        open_ones = f";{after} it still waited for {log.draining} of its requests" if log.draining else ""
        return f" and was told to end{open_ones}; a log alone does not tell whether it ends"
    if log.refused:
        return f", but {refused_words(log.refused[-1])}: a log alone does not tell why"
    if (stood := _without_tokens(log)) is not None:
        return stood
    return "; a log alone does not tell whether it still answers"


LONG_WITHOUT_TOKENS_S = 60.0
"""Requests that run without one token for so long are told. Arbitrary: long prompts take seconds."""


def _without_tokens(log: LogState) -> str | None:
    """Return for how long requests ran at the log's end without a token, by what vLLM prints each 10 s."""
    done = [one.offset for one in log.endless if one.name in {"throughput", "throughput-idle", "generate-done"}]
    stood = [one for one in log.endless if one.name == "throughput-none" and one.offset > max(done, default=-1)]
    took_s = _value(seconds_between(stood[0].stamp, stood[-1].stamp)) if stood else None
    if took_s is None or took_s < LONG_WITHOUT_TOKENS_S:
        return None
    running = stood[-1].numbers["running"]
    return f", and at its end {running:.0f} requests ran for {_minutes(took_s)} or more without one token"


def _ended(log: LogState, end: LogEvent) -> str:
    """Return that it ended, and what the log leaves open: whoever cancels a job may do so because it hangs."""
    at = f" (line {end.line})" if end.line else ""
    before = "after it was ready" if log.reached("ready") else f"in {log.phase}, before it was ready"
    if end.name == "cancelled":
        return f"It was ended from outside {before}{at}: the log does not tell whether it hung by then."
    return f"It ended {before}, and its log does not say why: {end.text}{at}."


def _end_of(seen: Features, log: LogState, start: Start) -> str:
    """Return where a start's log ends: within a progress bar, or after a step."""
    bar = bar_at_end(log)
    if bar is not None and bar.done < bar.total:
        place = f"{bar.text}, {bar.done:.0f} of {bar.total:.0f}"
        return f"The log ends with {place}: a log alone does not tell whether it goes on"
    after = f"; {start.texts[start.next.name]} has not come" if start.next is not None else ""
    after = _not_connected(log) or after
    last = f" after {start.last.first.text}{_not_said(seen, start.last)}" if start.last is not None else ""
    return f"The log ends{last}{after}: a log alone does not tell whether that is slow or hung"


def _not_connected(log: LogState) -> str:
    """Return which ranks have not said that Gloo connected them, where the log ends in that and only few are missing.

    Rule: of the last group, by the number of its peers. Fails where two such lines were written into one.
    """
    said = [event for event in log.milestones if event.name == "gloo-connected"]
    if not said or said[-1].offset < max(event.offset for event in log.milestones):
        return ""
    size = int(said[-1].numbers.get("expected", 0)) + 1
    ranks = {int(event.numbers["rank"]) for event in said if int(event.numbers.get("expected", 0)) + 1 == size}
    absent = sorted({*range(min(size, MOST_RANKS))} - ranks)
    if len(ranks) < 2 or not 0 < len(absent) <= MOST_NAMED:
        return ""
    return f"; rank {', '.join(map(str, absent))} has not said that Gloo connected it, and {len(ranks)} have"


MOST_NAMED = 3
"""Ranks that a headline names. Arbitrary: more are rather all than those to look at."""


def _not_said(seen: Features, last: Reached) -> str:
    """Return which ranks have not said a step that each rank says; those count, too, that printed nothing at all."""
    said = {rank for rank in last.by if rank}
    if not last.step.every_rank or not said:
        return ""
    absent = sorted({rank for one in seen.movers if (rank := tuple(sorted(one.process.rank.items())))} - said)
    if not absent:
        return ""
    more = f" and {len(absent) - MOST_NAMED} more" if len(absent) > MOST_NAMED else ""
    have = "has" if len(absent) == 1 else "have"
    return f", which {', '.join(map(logs.rank_words, absent[:MOST_NAMED]))}{more} {have} not said and {len(said)} have"


def _last_words(seen: Features, log: LogState) -> str:
    """Return what a log without a step of a start last says: a complaint, a stack, or any line that is known."""
    if log.complaints:
        return f"Its log says: {_complaint(log)}"
    mains = [member.main.value for member in seen.members.values() if isinstance(member.main, Known)]
    frames = [main.leaf for main in mains if main.leaf is not None]
    if frames:
        return f"A main thread stands in {place_of(frames[0])}"
    known = sorted((*log.milestones, *log.endless), key=lambda event: event.offset)
    return f"The last line that says something is: {known[-1].text}" if known else "No line of it says how it goes"


def _complaint(log: LogState) -> str:
    """Return the newest complaint; of a barrier that counts, also the ranks that have not said that they wait."""
    last = log.complaints[-1]
    if last.name != "store-barrier":
        return last.text
    said = {int(event.numbers["printer"]) for event in log.complaints if event.name == last.name}
    world = int(last.numbers.get("world", 0))
    absent = [str(rank) for rank in range(min(world, MOST_RANKS)) if rank not in said]
    return last.text + (f"; rank {', '.join(absent)} has not said so" if len(said) > 1 and 0 < len(absent) < 4 else "")


MOST_RANKS = 4096
"""Ranks that are looked for. Arbitrary: more than any job of this kind has."""


def _behind(seen: Features) -> str | None:
    """Return which ranks have launched fewer collectives than the others, where counts of the ranks say so."""
    least, most = logs.behind(seen)
    ranks = [f"{event.numbers['rank']:.0f}" for event in least if "rank" in event.numbers]
    if not ranks:
        return None
    came = next(least[0].numbers[name] for name in ("operation", "enqueued") if name in least[0].numbers)
    more = f" and {len(ranks) - MOST_NAMED} more" if len(ranks) > MOST_NAMED else ""
    who = f"Rank {ranks[0]} is" if len(ranks) == 1 else f"Ranks {', '.join(ranks[:MOST_NAMED])}{more} are"
    return f"{who} behind the others, at collective {came:.0f}, others at {most:.0f}"
