"""The report as Markdown for an issue: the fields of SGLang's bug form, filled as far as a recording tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from hangdoc import __version__
from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.lacking import rounds_of
from hangdoc.features.ranks import compare, without_wrappers
from hangdoc.hypotheses._signs import place_of
from hangdoc.model.diagnosis import Culprit, Finding
from hangdoc.model.reading import Known
from hangdoc.report.document import timestamp
from hangdoc.report.lacks import grouped, of_a_log
from hangdoc.report.material import UNREDACTED, Material, together
from hangdoc.report.plain import plain
from hangdoc.report.ranks import MOTION_WORDS
from hangdoc.report.reasons import carried_by, still_open
from hangdoc.report.short import shortened
from hangdoc.report.waitgraph import is_sure
from hangdoc.report.words import GRADE_WORDS, duration, rank_text, ratio

MOST_CHARACTERS = 60_000
"""Length of the whole text in UTF-8 bytes. GitHub takes 65,536 characters; the rest is for who reports."""

MOST_LINES = 60
"""Lines of one list or block. Arbitrary: what somebody reads in an issue."""

MOST_WAITS = 8
"""Waits that are listed, those that the verdict rests on first. Arbitrary."""

MOST_OF_A_LINE = 400
"""Characters of one line. Arbitrary."""

SMALL_CHARACTERS = 1_000
"""Blocks up to this length always stay: headings, and what the form cannot do without. Arbitrary."""

_FOLD = "<details>"

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_BEGINS = re.compile(r"^(\s*(?:\d{1,9})?)([-+=.)])")
"""What makes a list, a heading or a line at the beginning of a block."""


_LINKS = re.compile(r"(@|#|:(?=//)|(?<=[Ww])\.|(?<=[Gg][Hh])-)")

CHECKLIST = (
    "I searched related issues but found no solution.",
    "The bug persists in the latest version.",
    "I know that an issue without environment info and a minimal demo may get no answer.",
    "This is a bug report and no general question.",
    "It is in English.",
)
"""What SGLang's form asks to tick, in order; whoever reports ticks it."""


def inline(words: str) -> str:
    r"""Return text of the target as Markdown that is nothing but text: no markup, link, mention or reference.

    >>> inline("a_b <img> @you #1")
    'a\\_b &lt;img&gt; @<!-- -->you \\#<!-- -->1'
    """
    shown = shortened(plain(words))[:MOST_OF_A_LINE]
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = _LINKS.sub(r"\1<!-- -->", shown)
    return _BEGINS.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", shown))


def fenced(lines: Iterable[str], language: str = "text") -> str:
    """Return lines as a block of code that none of them can end: its fence is longer than any in them."""
    kept, left = _first([plain(line)[:MOST_OF_A_LINE] for line in lines])
    shown = [*kept, *([f"... and {left} more lines"] if left else [])]
    longest = max((len(run) for line in shown for run in re.findall("[`~]+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *shown, fence])


def markdown(material: Material) -> str:
    """Return the whole text, never longer than an issue may be: what is folded is left out first, from its end on."""
    tail = f"_Made by hangdoc {__version__} from a recording{_redaction(material)}_"
    blocks = [*_blocks(material), tail]
    spare_bytes = MOST_CHARACTERS - sum(len(block.encode()) + 2 for block in blocks)
    kept = dict(enumerate(blocks))
    for number in sorted(kept, key=lambda number: (not blocks[number].startswith(_FOLD), -number)):
        if spare_bytes >= 0:
            break
        if len(blocks[number]) > SMALL_CHARACTERS:
            spare_bytes += len(kept.pop(number).encode()) + 2
    return "\n\n".join(kept.values()) + "\n"


def _redaction(material: Material) -> str:
    if material.is_redacted:
        return "; names, paths and free text are tokens such as `<path-1>`."
    return "; **not redacted**."


def _blocks(material: Material) -> Iterator[str]:
    is_sglang = material.diagnosis.target.engine == "sglang"
    if is_sglang:
        yield "### Checklist"
        yield "\n".join(f"- [ ] {line}" for line in CHECKLIST)
    yield "### Describe the bug"
    yield from _bug(material)
    yield "### Reproduction"
    yield from _reproduction(material)
    yield "### Environment"
    yield from _environment(material)


def _bug(material: Material) -> Iterator[str]:
    diagnosis = material.diagnosis
    grade = "" if diagnosis.verdict == "undetermined" else f" ({GRADE_WORDS[diagnosis.grade]})"
    phase = "" if diagnosis.phase == "unknown" else f" in phase {diagnosis.phase}"
    if not material.is_redacted:
        yield f"> **{UNREDACTED}**"
    yield f"**{diagnosis.verdict.upper()}**{grade}{phase}: {inline(diagnosis.headline)}"
    if diagnosis.culprits:
        yield f"Who has to move:\n\n{_list(_culprit(one, material) for one in diagnosis.culprits)}"
    if diagnosis.next_steps:
        steps = (f"{inline(one.action)} (`hangdoc explain {one.playbook}`)" for one in diagnosis.next_steps)
        yield f"What to do next:\n\n{_list(steps)}"
    stood = diagnosis.no_progress_s
    if stood is not None and diagnosis.verdict not in ("healthy", "slow-start"):
        yield f"No progress for {duration(stood)}; watched for {material.whole.seconds:.1f} s."
    for finding in carried_by(diagnosis):
        yield f"Evidence for `{finding.name}` ({finding.id}, {GRADE_WORDS[finding.grade]}):\n\n{_evidence(finding)}"
    if not carried_by(diagnosis):
        left = [one for one in still_open(diagnosis) if one.missing]
        yield f"Not ruled out, with what could not be read:\n\n{_list(_open(one) for one in left[:6])}"
    waits = [_wait_line(material, number) for number, one in enumerate(diagnosis.waits) if is_sure(one)]
    if waits:
        yield f"Who waits for whom:\n\n{_list(waits, MOST_WAITS)}"
    yield from _folds(material)


def _folds(material: Material) -> Iterator[str]:
    stacks = list(_stacks(material))
    if stacks:
        yield _folded("Where the ranks stand (Python, innermost frame first)", fenced(stacks))
    accused = list(_accused(material))
    if accused:
        yield _folded("Python threads of who has to move", fenced(accused))
    log = material.diagnosis.log
    lines = (
        []
        if log is None
        else [*(f"{step.at}  {step.text}".strip() for step in log.steps), *log.failures, *log.complaints]
    )
    if log is not None and log.next_text is not None:
        lines.append(f"(not reached: {log.next_text})")
    if lines:
        yield _folded("Its log, as far as hangdoc knows its lines", fenced(lines))
    out = [one for one in material.diagnosis.hypotheses if one.grade == "ruled-out" and one.against]
    if out:
        yield _folded(f"{len(out)} explanations that are ruled out", _list(_ruled_out(one) for one in out))
    lacks = material.diagnosis.missing
    lack_lines = of_a_log(lacks) if material.diagnosis.target.kind == "log" else grouped(lacks)
    if lack_lines:
        yield _folded("What could not be read", _list(inline(one.sentence) for one in lack_lines))


def _folded(summary: str, body: str) -> str:
    return f"{_FOLD}\n<summary>{inline(summary)}</summary>\n\n{body}\n\n</details>"


def _list(items: Iterable[str], most: int = MOST_LINES) -> str:
    kept, left = _first(list(items), most)
    return "\n".join(f"- {item}" for item in [*kept, *([f"and {left} more"] if left else [])])


def _first(lines: Sequence[str], most: int = MOST_LINES) -> tuple[Sequence[str], int]:
    return lines[:most], max(0, len(lines) - most)


def _culprit(one: Culprit, material: Material) -> str:
    who = "outside the launch" if one.outside else rank_text(one.role, one.rank)
    absent = "pid not known" if material.diagnosis.target.kind == "log" else "not there at all"
    pid = absent if one.pid is None else f"pid {one.pid}"
    thread = "" if one.tid in (None, one.pid) else f", thread {one.tid}"
    return f"**{inline(who)}**, {pid}{thread}: {inline(one.reason)}"


def _evidence(finding: Finding) -> str:
    lines = [*finding.for_, *(f"against it: {line}" for line in finding.against)]
    return _list(inline(line) for line in [*lines, *(f"could not be read: {line}" for line in finding.missing)])


def _open(finding: Finding) -> str:
    return f"`{finding.name}`: {inline(finding.missing[0])}"


def _ruled_out(finding: Finding) -> str:
    return f"`{finding.name}`: {inline(finding.against[0])}"


def _wait_line(material: Material, number: int) -> str:
    wait = material.diagnosis.waits[number]
    detail = f", {wait.detail}" if wait.detail else ""
    start, end = (f"{material.name(one.pid)} {one.pid}{_thread(one.pid, one.tid)}" for one in (wait.from_, wait.to))
    return inline(f"{start} waits for {end} ({wait.through}{detail})")


def _thread(pid: int, tid: int | None) -> str:
    return "" if tid in (None, pid) else f" thread {tid}"


def _stacks(material: Material) -> Iterator[str]:
    for compared in compare(material.seen):
        for one in compared.classes:
            ranks = together(material.processes[key] for key in one.members)
            odd = "  <- the odd one out" if one in compared.odd else ""
            yield f"{ranks}, {MOTION_WORDS[one.motion]}:{odd}"
            yield from (f"    {place_of(frame)}" for frame in without_wrappers(one.stack)[:MOST_FRAMES])


MOST_FRAMES = 20
"""Frames of one stack. Arbitrary: from the wait to the engine's loop."""


def _accused(material: Material) -> Iterator[str]:
    for key, member in material.seen.members.items():
        if key.pid in material.accused and isinstance(member.dumps, Known):
            yield f"{material.name(key.pid)} {key.pid}"
            for thread in member.dumps.value.threads.values():
                yield from _of_thread(thread, key.pid)


def _of_thread(thread: ThreadHistory, pid: int) -> Iterator[str]:
    name = "main thread" if thread.tid == pid else thread.last.name or "thread"
    held = ", holds the interpreter lock" if thread.last.owns_gil else ""
    yield f"  {name} {thread.tid}{held}"
    yield from (f"    {place_of(frame)}" for frame in thread.last.stack[:MOST_FRAMES])


def _reproduction(material: Material) -> Iterator[str]:
    launch = material.trace.header.launch
    root = material.processes.get(launch.root)
    if root is not None and root.argv:
        yield fenced([" ".join(root.argv)], "shell")
    elif launch.settings:
        yield fenced([f"--{name.replace('_', '-')} {value}" for name, value in sorted(launch.settings.items())])
    yield "<!-- Model, and what was done until it came to this: please fill in. -->"


def _environment(material: Material) -> Iterator[str]:
    diagnosis, header = material.diagnosis, material.trace.header
    target = diagnosis.target
    rows = [
        ("engine", target.engine if target.engine_version is None else f"{target.engine} {target.engine_version}"),
        ("machine", f"{header.machine}, {header.cpus} CPUs"),
        ("GPUs", _gpus(material)),
        (
            "recorded",
            f"{rounds_of(material.trace)}, until {timestamp(diagnosis.taken_wall_ns)}, by hangdoc {header.hangdoc}",
        ),
    ]
    rows += [(f"limit {name}", f"{seconds:g} s") for name, seconds in sorted(header.launch.limits.items())]
    yield "\n".join(["| | |", "|---|---|", *(f"| {inline(name)} | {inline(value)} |" for name, value in rows)])
    processes = [
        f"{one.pid or '?':>8}  {rank_text(one.role, one.rank):<20} {one.state or '?'}  cpu {ratio(one.cpu_ratio)}  "
        f"demand {ratio(one.demand_ratio)}  {one.phase}"
        for one in diagnosis.processes
    ]
    yield _folded("Processes", fenced(processes))
    if target.engine == "sglang":
        yield "Output of `python3 -m sglang.check_env`:\n\n<!-- please paste it here -->"


def _gpus(material: Material) -> str:
    gpus = material.diagnosis.gpus
    if gpus is None:
        return "not read"
    counts: dict[str, int] = {}
    for gpu in gpus:
        counts[gpu.name] = counts.get(gpu.name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "none"
