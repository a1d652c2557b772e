"""The rest of the page: GPUs, the log and the outputs, the environment, what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from hangdoc import __version__
from hangdoc.features.lacking import rounds_of
from hangdoc.model.diagnosis import LogReport, MissingReading
from hangdoc.model.gpu import Gpu, Gpus
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.reading import Known, Reading
from hangdoc.report.document import timestamp
from hangdoc.report.lacks import grouped, of_a_log
from hangdoc.report.lanes import MOST_SLICES
from hangdoc.report.material import Material
from hangdoc.report.page.blocks import Cell, facts, folded, listed, many, note, section, table
from hangdoc.report.page.markup import Child, Html, code, each, element, together
from hangdoc.report.page.strips import level_strip
from hangdoc.report.words import OUTPUT_WORDS, bytes_text, duration, rank_text, ratio

T = TypeVar("T")

MOST_LINES = 40
"""Lines of the log that the excerpt has, the newest. Arbitrary: a screen."""


def gpus(material: Material) -> Html:
    """Return the section on the GPUs."""
    readings = [gpus.devices for _, gpus in material.index.known("gpu", None, Gpus, material.whole)]
    title = "GPUs"
    if material.diagnosis.gpus is None:
        return section("gpus", title, note("The GPUs were not read; why, stands under What could not be read."))
    if not readings or not readings[-1]:
        return section("gpus", title, note("There is no GPU here, and no process of the launch has one open."))
    rows = [_gpu(gpu, readings, material) for gpu in readings[-1]]
    titles = ("GPU", "Busy", "Over time", "Power", "Memory", "Used by")
    return section("gpus", title, table("GPUs", titles, rows, "gpus"))


def _gpu(gpu: Gpu, readings: Sequence[tuple[Gpu, ...]], material: Material) -> tuple[Cell | str, ...]:
    history = [next((one for one in devices if one.index == gpu.index), None) for devices in readings[-MOST_SLICES:]]
    levels = [None if one is None else _value(one.util_ratio) for one in history]
    busy = _value(gpu.util_ratio)
    power, limit = _value(gpu.power_w), _value(gpu.power_limit_w)
    used, total = _value(gpu.used_bytes), _value(gpu.total_bytes)
    watts = "?" if power is None else f"{power:.0f} W" + ("" if limit is None else f" of {limit:.0f} W")
    memory = "?" if used is None else bytes_text(used) + ("" if total is None else f" of {bytes_text(total)}")
    words = f"GPU {gpu.index}: utilisation over {many(len(levels), 'reading')}"
    return (
        Cell(together(f"{gpu.index} ", element("span", gpu.name, class_="small")), order=gpu.index),
        Cell("?" if busy is None else f"{busy:.0%}", order=-1.0 if busy is None else busy, number=True),
        Cell(level_strip(levels, words, "ran"), order=busy or 0.0),
        Cell(watts, order=power or 0.0),
        Cell(memory, order=used or 0),
        _users(gpu, material),
    )


def _users(gpu: Gpu, material: Material) -> str:
    if not isinstance(gpu.processes, Known):
        return "not read"
    names = [
        f"{material.name(use.pid)} {use.pid}"
        + (f" {bytes_text(use.used_bytes.value)}" if isinstance(use.used_bytes, Known) else "")
        for use in gpu.processes.value
    ]
    return ", ".join(names) or "nobody"


def _value(reading: Reading[T]) -> T | None:
    return reading.value if isinstance(reading, Known) else None


def log(material: Material) -> Html:
    """Return the section on the log and on what never reached it."""
    excerpt = _excerpt(material)
    found = material.diagnosis.log
    outputs = _outputs(material)
    nothing = None if excerpt or outputs or found else note("No log of the launch could be read.")
    return section("log", "Log and output", _state(found), excerpt, nothing, outputs)


def _state(found: LogReport | None) -> Html | None:
    if found is None:
        return None
    pairs: list[tuple[str, Child]] = [("File", code(found.path)), ("Size", bytes_text(found.size_bytes))]
    if found.last_at:
        pairs.append(("Last line at", found.last_at))
    if found.silent_s is not None:
        pairs.append(("Silent for", duration(found.silent_s)))
    if found.bar is not None:
        pairs.append(("Progress bar", found.bar))
    told = [("Failures", found.failures), ("Complaints", found.complaints), ("Beside good starts", found.baseline)]
    lists = (together(element("h3", title), listed(lines)) for title, lines in told if lines)
    return together(facts(pairs), each(lists))


def _excerpt(material: Material) -> Html | None:
    tails = material.index.known("log", None, LogTail, material.whole)
    events = [event for _, tail in tails for event in tail.events]
    if not events:
        return None
    lines = [_line(event) for event in events[-MOST_LINES:]]
    told = note(
        "The lines that hangdoc knows, in the wording of its tables: a recording keeps no free text. Newest last."
    )
    return together(element("h3", "Excerpt"), told, element("pre", each(lines), class_="log"))


def _line(event: LogEvent) -> Html:
    rank = rank_text("", event.rank).strip()
    parts = [
        event.stamp,
        f"line {event.line}" if event.line else "",
        f"[{rank}]" if rank else "",
        event.text or event.name,
    ]
    words = "  ".join(part for part in parts if part)
    return together(
        element("span", words, class_=event.kind if event.kind in ("crash", "error", "watchdog") else None), Html("\n")
    )


def _outputs(material: Material) -> Html | None:
    rows = [
        (
            Cell(f"{material.name(one.pid)} {one.pid}", order=one.pid),
            Cell(str(one.fd), order=one.fd, number=True),
            Cell(code(one.path or one.kind)),
            OUTPUT_WORDS[one.state]
            + ("" if not one.hidden_bytes else f"; {bytes_text(one.hidden_bytes)} still inside"),
            Cell("" if one.silent_s is None else duration(one.silent_s), order=one.silent_s or 0.0),
        )
        for one in material.diagnosis.outputs
    ]
    if not rows:
        return None
    hidden = [one.hidden_tail for one in material.diagnosis.outputs if one.hidden_tail]
    tails = each(
        together(element("h3", "Text that never reached its file"), _pre(tail)) for tail in dict.fromkeys(hidden)
    )
    titles = ("Process", "Descriptor", "Goes to", "State", "Silent for")
    return together(tails, folded(f"{many(len(rows), 'output')}: where the text is", table("Outputs", titles, rows)))


def _pre(words: str) -> Html:
    return element("pre", each(together(line, Html("\n")) for line in words.splitlines()), class_="log")


def environment(material: Material) -> Html:
    """Return the section on what it ran on, and with which options."""
    header = material.trace.header
    launch = header.launch
    root = material.processes.get(launch.root)
    command = " ".join(root.argv) if root is not None and root.argv else ""
    settings = [(name, code(value or "not given")) for name, value in sorted(launch.settings.items())]
    return section(
        "environment",
        "Environment",
        facts(_machine(material)),
        together(element("h3", "Command"), element("pre", command)) if command else None,
        together(element("h3", "Options that count here"), facts(settings)) if settings else None,
        _processes(material),
    )


def _machine(material: Material) -> Iterator[tuple[str, Child]]:
    header, target = material.trace.header, material.diagnosis.target
    yield "Engine", target.engine if target.engine_version is None else f"{target.engine} {target.engine_version}"
    yield "Host", f"{header.host or 'not known'}, {header.machine}, {many(header.cpus, 'CPU')} for hangdoc"
    yield (
        "Recorded",
        f"{rounds_of(material.trace)} every {header.interval_s:g} s from {timestamp(header.started_wall_ns)}",
    )
    yield "Recorded by", f"hangdoc {header.hangdoc}"
    yield "Report by", f"hangdoc {__version__}"
    yield "Names", "are tokens: redacted" if material.is_redacted else "are as they were: not redacted"
    for name, seconds in sorted(header.launch.limits.items()):
        yield f"Limit {name}", f"{seconds:g} s"


def _processes(material: Material) -> Html:
    rows = [
        (
            rank_text(one.role, one.rank),
            Cell("?" if one.pid is None else str(one.pid), order=one.pid or 0, number=True),
            one.state or "?",
            Cell(ratio(one.cpu_ratio), order=one.cpu_ratio or 0.0, number=True),
            Cell(ratio(one.demand_ratio), order=one.demand_ratio or 0.0, number=True),
            one.phase,
            _because(material, one.pid),
        )
        for one in material.diagnosis.processes
    ]
    titles = ("Process", "Pid", "State", "CPU", "Demand", "Phase", "Member because")
    return together(element("h3", many(len(rows), "process", "processes")), table("Processes", titles, rows))


def _because(material: Material, pid: int | None) -> str:
    return next((one.member_because for key, one in material.processes.items() if key.pid == pid), "")


def missing(material: Material) -> Html:
    """Return the section on the readings that were not to be had."""
    lacks: tuple[MissingReading, ...] = material.diagnosis.missing
    lines = of_a_log(lacks) if material.diagnosis.target.kind == "log" else grouped(lacks)
    title = "What could not be read"
    if not lines:
        return section("missing", title, note("Everything that hangdoc asked for was read."))
    rows = [(one.sentence, one.remedy or "nothing that is known") for one in lines]
    return section(
        "missing", title, table("Readings that are missing", ("Reading and reason", "What would change that"), rows)
    )
