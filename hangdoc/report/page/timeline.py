"""The course of things: the steps of the start as the log has them, then what was said while it was watched."""

from __future__ import annotations

from collections.abc import Sequence

from hangdoc.model.diagnosis import HANG_VERDICTS, LogReport, LogStep
from hangdoc.report.course import Stretch, course
from hangdoc.report.material import Material
from hangdoc.report.page.blocks import Cell, note, section, table, wide
from hangdoc.report.page.markup import Html, each, element, together
from hangdoc.report.words import duration

WIDTH, ROW, GAP = 900, 26, 22
"""The drawing's own units. Arbitrary: the text of a row fits into it."""

LETTER = 7
"""Width of a letter, about: what does not fit into its stretch is left to the list below."""


def timeline(material: Material) -> Html:
    """Return the section."""
    stretches = course(material)
    return section("timeline", "Phases and verdict over time", _watched(stretches), _start(material.diagnosis.log))


def _watched(stretches: Sequence[Stretch]) -> Html:
    end_s = stretches[-1].end_s
    if end_s <= 0:
        return note("One moment only was recorded.")
    verdicts = [(one.start_s, one.end_s, one.says, _tone(one)) for one in stretches]
    phases = [(one.start_s, one.end_s, one.phase, "phase") for one in stretches]
    drawn = together(_row("Verdict", 0, verdicts, end_s), _row("Phase", ROW + GAP, phases, end_s), _axis(end_s))
    words = [element("li", _words(one)) for one in stretches]
    picture = element(
        "svg",
        drawn,
        viewBox=f"0 0 {WIDTH} {2 * ROW + 2 * GAP + 16}",
        width=WIDTH,
        height=2 * ROW + 2 * GAP + 16,
        role="img",
        aria_label="Verdict and phase while it was watched; the list below says the same",
        class_="timeline",
    )
    told = note(
        "What would have been said after each round. A hang is called only after three rounds that look the same."
    )
    return together(told, wide("Timeline", picture), element("ol", each(words), class_="course"))


def _row(title: str, y: int, parts: Sequence[tuple[float, float, str, str]], end_s: float) -> Html:
    marks = [_part(y, part, end_s) for part in _joined(parts)]
    return element("g", element("text", title, x=0, y=y + 12, class_="label"), each(marks))


def _joined(parts: Sequence[tuple[float, float, str, str]]) -> list[tuple[float, float, str, str]]:
    found: list[tuple[float, float, str, str]] = []
    for start, end, words, tone in parts:
        is_same = bool(found) and found[-1][2:] == (words, tone)
        found.append((found.pop()[0] if is_same else start, end, words, tone))
    return found


def _part(y: int, part: tuple[float, float, str, str], end_s: float) -> Html:
    start, end, words, tone = part
    x, width = WIDTH * start / end_s, WIDTH * (end - start) / end_s
    fits = len(words) * LETTER < width - 12
    return together(
        element("rect", x=round(x, 1), y=y + 18, width=max(1.0, round(width - 2, 1)), height=ROW, rx=3, class_=tone),
        element("text", words, x=round(x + 8, 1), y=y + 18 + ROW / 2 + 4, class_="inside") if fits else None,
    )


def _axis(end_s: float) -> Html:
    y = 2 * ROW + 2 * GAP + 12
    marks = [(0.0, "start", "0 s"), (WIDTH / 2, "middle", f"{end_s / 2:.1f} s"), (WIDTH, "end", f"{end_s:.1f} s")]
    return each(element("text", words, x=x, y=y, text_anchor=anchor, class_="label") for x, anchor, words in marks)


def _tone(one: Stretch) -> str:
    if one.verdict == "undetermined":
        return "open"
    return "bad" if one.verdict in HANG_VERDICTS else "good"


def _words(one: Stretch) -> str:
    phase = "" if one.phase == "unknown" else f", in phase {one.phase}"
    return f"{one.start_s:.1f} s to {one.end_s:.1f} s: {one.says}{phase}"


def _start(log: LogReport | None) -> Html | None:
    if log is None or not log.steps:
        return None
    longest_s = max((step.took_s or 0.0 for step in log.steps), default=0.0)
    rows = [_step(number, step, longest_s) for number, step in enumerate(log.steps, 1)]
    if log.next_text is not None:
        missing = element("span", f"not reached: {log.next_text}", class_="absent")
        rows.append((Cell("", order=len(rows) + 1), missing, "", "", "", ""))
    titles = ("Order", "Step of the start", "At", "Until the next", "", "Ranks")
    kept = [n for n in range(len(titles)) if any(_has_something(row[n]) for row in rows)]
    columns = [[row[n] for n in kept] for row in rows]
    return table("Steps of the start, as the log has them", [titles[n] for n in kept], columns, "steps")


def _has_something(cell: Cell | str) -> bool:
    return bool(cell.shown if isinstance(cell, Cell) else cell)


def _step(number: int, step: LogStep, longest_s: float) -> tuple[Cell | str, ...]:
    took = "" if step.took_s is None else duration(step.took_s)
    share = (step.took_s or 0.0) / longest_s if longest_s else 0.0
    bar = element("meter", took, value=round(share, 3), min=0, max=1, aria_label=f"{took} until the next step")
    usual = "" if step.usual_s is None else f"good starts: {duration(step.usual_s[0])} to {duration(step.usual_s[1])}"
    return (
        Cell(str(number), order=number),
        step.text,
        step.at or "",
        Cell(together(took, element("span", usual, class_="small") if usual else None), order=step.took_s or 0.0),
        Cell(bar if took else None, order=step.took_s or 0.0),
        Cell(str(step.ranks), order=step.ranks, number=True),
    )
