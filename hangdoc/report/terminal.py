"""The report for a person at a terminal at three in the morning: the answer first, then why, then what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hangdoc.diagnosis import UNSURE
from hangdoc.model.diagnosis import (
    HANG_VERDICTS,
    Culprit,
    Diagnosis,
    Finding,
    GpuState,
    LimitState,
    Output,
    ProcessState,
    Target,
    Wait,
    WaitEnd,
)
from hangdoc.report.document import timestamp
from hangdoc.report.lacks import Lack, grouped, of_a_log
from hangdoc.report.log import log_rows
from hangdoc.report.plain import plain
from hangdoc.report.ranks import ranks_compared
from hangdoc.report.reasons import carried_by
from hangdoc.report.rows import bullet, harmless, section
from hangdoc.report.words import GRADE_WORDS, OUTPUT_WORDS, bytes_text, duration, rank_text, ratio

MOST_HOLDERS = 3
"""Processes named beside an output. Arbitrary: what fits into a line."""

MOST_HIDDEN_LINES, MOST_HIDDEN_CHARACTERS = 5, 400
"""Text of a buffer that is shown. Arbitrary: the last thing that it printed, and a little before."""

MOST_PROCESSES = 24
"""Rows of the process table; the JSON has them all. Arbitrary: a screen."""

UNREDACTED = (
    "This trace is not redacted: it has command lines, paths and names as they were. Think before you share it."
)

VERDICT_STYLES = {
    "busy-wait": "bold red",
    "blocked": "bold red",
    "hung": "bold red",
    "crashed": "bold red",
    "slow-start": "bold green",
    "healthy": "bold green",
    "undetermined": "bold yellow",
}


def parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Yield the report's sections in the order in which a tired person needs them."""
    yield from _head(diagnosis)
    yield from section("Who has to move", [_culprit(one, diagnosis.target) for one in diagnosis.culprits])
    yield from section("Next", _next_steps(diagnosis))
    log = list(section("Log", log_rows(diagnosis.log)))
    is_log = diagnosis.target.kind == "log"
    if is_log:  # all that there is; elsewhere the processes themselves say more
        yield from log
    yield from _evidence(diagnosis)
    yield from section("Who waits for whom", _waits(diagnosis))
    yield from section("Ranks compared", ranks_compared(diagnosis))
    if not is_log:
        yield from log
    yield from _verdicts_of_log(diagnosis) if is_log else _verdicts(diagnosis)
    yield from section("Output", _outputs(diagnosis.outputs))
    if diagnosis.verdict in HANG_VERDICTS or diagnosis.verdict == "undetermined":
        yield from section("Time left", [_limit(one) for one in diagnosis.limits])
    yield from section("GPUs", [_gpu(one) for one in diagnosis.gpus or ()])
    lacks = of_a_log(diagnosis.missing) if is_log else grouped(diagnosis.missing)
    yield from section("Not read", [_lack(one) for one in lacks])
    if not is_log or any(one.phase != "unknown" or one.state for one in diagnosis.processes):
        yield from _processes(diagnosis.processes)
    yield _foot(diagnosis)


def _head(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    style = VERDICT_STYLES.get(diagnosis.verdict, "bold")
    grade = "" if diagnosis.verdict == "undetermined" else f"  ({GRADE_WORDS[diagnosis.grade]})"
    line = Text.assemble((diagnosis.verdict.upper(), style), grade)
    if diagnosis.phase != "unknown":
        line.append(f"  in phase {diagnosis.phase}")
    yield line
    yield harmless(diagnosis.headline, "bold")
    if diagnosis.target.kind == "trace" and not diagnosis.target.redacted:
        yield harmless(UNREDACTED, "bold yellow")


def _culprit(culprit: Culprit, target: Target) -> RenderableType:
    who = rank_text(culprit.role, culprit.rank)
    if culprit.outside:
        who = "outside the launch"
    absent = "pid not known" if target.kind == "log" and not culprit.outside else "not there at all"
    pid = absent if culprit.pid is None else f"pid {culprit.pid}"
    thread = "" if culprit.tid in (None, culprit.pid) else f", thread {culprit.tid}"
    return bullet(">", f"{who}, {pid}{thread}: {culprit.reason}", "bold red")


def _next_steps(diagnosis: Diagnosis) -> list[RenderableType]:
    steps = enumerate(diagnosis.next_steps, 1)
    return [bullet(str(number), f"{step.action}  [hangdoc explain {step.playbook}]") for number, step in steps]


def _evidence(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Give the evidence of every hypothesis that carries the verdict; the others are one line each, further down."""
    for finding in carried_by(diagnosis):
        rows = [bullet("+", line, "green") for line in finding.for_]
        rows += [bullet("-", line, "red") for line in finding.against]
        rows += [bullet("?", line, "yellow") for line in finding.missing]
        yield from section(f"Why: {finding.name} ({finding.id}, {GRADE_WORDS[finding.grade]})", rows)


def _verdicts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    carrying = {finding.id for finding in carried_by(diagnosis)}
    others = [finding for finding in diagnosis.hypotheses if finding.id not in carrying]
    out = [finding for finding in others if finding.grade == "ruled-out"]
    still = [finding for finding in others if finding.grade in ("confirmed", "likely")]
    left = [finding for finding in others if finding.grade == "undetermined"]
    yield from section("Also found", [_finding(one, one.for_) for one in still])
    if diagnosis.verdict == "undetermined":  # what is open is what there is to read; what it is not helps nobody yet
        yield from section("Neither shown nor ruled out", _first([_finding(one, one.missing) for one in left]))
        yield from section("Ruled out", [bullet("x", f"{len(out)} hypotheses (see --json)", "dim")] if out else [])
        return
    yield from section("Ruled out", [_finding(one, one.against) for one in out])
    yield from section("Neither shown nor ruled out", [_finding(one, one.missing or one.against) for one in left])


def _verdicts_of_log(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Name what a log can speak of; the hypotheses that rest on readings which no log gives are only counted."""
    carrying = {finding.id for finding in carried_by(diagnosis)}
    others = [finding for finding in diagnosis.hypotheses if finding.id not in carrying]
    still = [finding for finding in others if finding.grade in ("confirmed", "likely")]
    left = [finding for finding in others if finding.grade == "undetermined"]
    told = [finding for finding in left if not any(_NOT_IN_INPUT in reason for reason in finding.missing[:1])]
    rows = [_finding(one, one.missing or one.against) for one in told]
    ruled_out = len(others) - len(still) - len(left)
    rows.append(bullet("~", f"{len(left) - len(told)} more that rest on readings that no log gives", "dim"))
    rows.append(bullet("x", f"{ruled_out} that this log rules out (--json says why)", "dim"))
    yield from section("Also found", [_finding(one, one.for_) for one in still])
    yield from section("Other hypotheses", rows)


_NOT_IN_INPUT = "not-in-input"
MOST_OPEN = 6
"""Hypotheses that an undetermined report names. Arbitrary: those that a tired person still reads."""


def _first(rows: list[RenderableType]) -> list[RenderableType]:
    more = len(rows) - MOST_OPEN
    return rows if more <= 0 else [*rows[:MOST_OPEN], bullet("~", f"{more} more (see --json)", "dim")]


def _finding(finding: Finding, reasons: Sequence[str]) -> RenderableType:
    reason = reasons[0] if reasons else "no evidence for it"
    return bullet("x" if finding.grade == "ruled-out" else "~", f"{finding.name}: {reason}", "dim")


def _waits(diagnosis: Diagnosis) -> list[RenderableType]:
    names = {one.pid: rank_text(one.role, one.rank) for one in diagnosis.processes if one.pid is not None}
    sure = [wait for wait in diagnosis.waits if not wait.detail.endswith(UNSURE)]
    rows = [_wait(one, names) for one in sure]
    if left := len(diagnosis.waits) - len(sure):
        rows.append(bullet("~", f"{left} more that look the same when nothing is wrong (see --json)", "dim"))
    return rows


def _wait(wait: Wait, names: Mapping[int, str]) -> RenderableType:
    detail = f", {wait.detail}" if wait.detail else ""
    return bullet("-", f"{_end(wait.from_, names)} waits for {_end(wait.to, names)} ({wait.through}{detail})")


def _end(end: WaitEnd, names: Mapping[int, str]) -> str:
    thread = "" if end.tid in (None, end.pid) else f" thread {end.tid}"
    return f"{names.get(end.pid, 'process')} {end.pid}{thread}"


def _gpu(gpu: GpuState) -> RenderableType:
    busy = "utilisation not read" if gpu.util_ratio is None else f"{gpu.util_ratio:.0%} busy"
    power = "" if gpu.power_w is None else f", {gpu.power_w:.0f} W"
    used = "" if gpu.used_bytes is None else f", {bytes_text(gpu.used_bytes)} used"
    line = f"{gpu.name}: {busy}{power}{used}"
    if gpu.processes is None:
        line += ", by whom is not read"
    elif gpu.processes:
        holders = [
            f"pid {use.pid}" + ("" if use.used_bytes is None else f" {bytes_text(use.used_bytes)}")
            for use in gpu.processes
        ]
        line += f" ({', '.join(holders)})"
    return bullet(str(gpu.index), line)


def _limit(limit: LimitState) -> RenderableType:
    after = f"after {duration(limit.seconds)} without progress"
    if limit.left_s is None or limit.latest_s is None:
        return bullet("-", f"{limit.ends} {after}; how much of that is over is not read")
    left = f"in {duration(limit.left_s)} at the earliest" if limit.left_s else "any moment now"
    latest = f", {duration(limit.latest_s)} at the latest" if limit.latest_s > limit.left_s else ""
    return bullet("-", f"{limit.ends} {after}: {left}{latest}")


def _outputs(outputs: Sequence[Output]) -> list[RenderableType]:
    """Put descriptors of one file in one state on one line: all processes of a launch write to the same log."""
    groups: dict[tuple[object, ...], list[Output]] = {}
    for one in outputs:
        key = (one.kind, one.path or (one.pid, one.fd), one.state, one.hidden_bytes, one.hidden_tail)
        groups.setdefault(key, []).append(one)
    return [_output(members) for members in groups.values()]


def _output(members: Sequence[Output]) -> RenderableType:
    first = members[0]
    holders = [f"pid {pid} {fds}" for pid, fds in _descriptors(members)]
    named = ", ".join(holders[:MOST_HOLDERS])
    more = f" and {len(holders) - MOST_HOLDERS} more" if len(holders) > MOST_HOLDERS else ""
    silences = [one.silent_s for one in members if one.silent_s is not None]
    silent = f", silent for {duration(min(silences))}" if silences else ""
    line = f"{first.path or first.kind} ({named}{more}): {OUTPUT_WORDS[first.state]}{silent}"
    if first.hidden_bytes:
        line += f"; {bytes_text(first.hidden_bytes)} still in the process"
    if first.hidden_tail:
        line += f"; its last lines: {_last_lines(first.hidden_tail)}"
    return bullet("-", line)


def _last_lines(text: str) -> str:
    """Return what fits into a few lines of a terminal; --json has more."""
    lines = [plain(line) for line in text.splitlines()[-MOST_HIDDEN_LINES:]]
    shown = " | ".join(line for line in lines if line.strip())
    return shown if len(shown) <= MOST_HIDDEN_CHARACTERS else f"...{shown[-MOST_HIDDEN_CHARACTERS:]}"


def _descriptors(members: Sequence[Output]) -> list[tuple[int, str]]:
    by_pid: dict[int, list[int]] = {}
    for one in members:
        by_pid.setdefault(one.pid, []).append(one.fd)
    return [(pid, f"fd {'+'.join(str(fd) for fd in sorted(set(fds)))}") for pid, fds in sorted(by_pid.items())]


def _lack(lack: Lack) -> RenderableType:
    remedy = f" -> {lack.remedy}" if lack.remedy else ""
    return bullet("?", f"{lack.sentence}{remedy}", "yellow")


def _processes(processes: Sequence[ProcessState]) -> Iterator[RenderableType]:
    if not processes:
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("pid", "role", "state"):
        table.add_column(title, no_wrap=True)
    for title in ("cpu", "demand"):
        table.add_column(title, no_wrap=True, justify="right")
    table.add_column("phase", no_wrap=True)
    for one in processes[:MOST_PROCESSES]:
        table.add_row(*_row(one))
    rows: list[RenderableType] = [Padding(table, (0, 0, 0, 2))]
    if len(processes) > MOST_PROCESSES:
        rows.append(bullet("", f"and {len(processes) - MOST_PROCESSES} more: --json lists them all"))
    yield from section("Processes", [Group(*rows)])


def _row(one: ProcessState) -> Iterable[Text]:
    role = rank_text(one.role, one.rank)
    cells = (str(one.pid or "?"), role, one.state or "?", ratio(one.cpu_ratio), ratio(one.demand_ratio), one.phase)
    return [harmless(cell) for cell in cells]


def _foot(diagnosis: Diagnosis) -> RenderableType:
    target = diagnosis.target
    engine = target.engine if target.engine_version is None else f"{target.engine} {target.engine_version}"
    where = "" if target.pid is None else f" pid {target.pid}"
    host = "" if target.host is None else f" on {target.host}"
    how = "read from a log" if target.kind == "log" else f"watched for {diagnosis.window_s:.1f} s"
    seen = f"{how}, {timestamp(diagnosis.taken_wall_ns)}"
    return Padding(harmless(f"{engine}{where}{host}, {seen}", "dim"), (1, 0, 0, 0))
