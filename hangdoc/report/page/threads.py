"""The lanes of the threads: who ran, who slept, who could not be woken, round after round."""

from __future__ import annotations

from hangdoc.report.lanes import Lane, Lanes, Rest, lanes
from hangdoc.report.material import Material, together
from hangdoc.report.page.blocks import Cell, folded, many, note, section, table
from hangdoc.report.page.markup import Html, code, each, element
from hangdoc.report.page.markup import together as joined
from hangdoc.report.page.strips import lane_strip
from hangdoc.report.words import ratio

LEGEND = (
    ("ran", "on a CPU"),
    ("queued", "waits for a CPU"),
    ("slept", "asleep"),
    ("disk", "asleep, cannot be woken (D)"),
    ("stopped", "stopped or traced (T)"),
    ("ended", "ended"),
    ("unread", "not read"),
)

MOST_NAMES = 4
"""Names of threads that the row of a process has. Arbitrary: what fits into a line."""


def threads(material: Material) -> Html:
    """Return the section."""
    found = lanes(material)
    return section(
        "threads",
        "What each thread did",
        _legend(found),
        table(
            "Threads that say something", _TITLES, [_row(lane, material.accusation) for lane in found.shown], "lanes"
        ),
        _rest(found),
    )


_TITLES = ("Thread", "Where it stands", "Demand", "Over time")


def _legend(found: Lanes) -> Html:
    span = f"{found.ends_s[-1]:.1f} s in {many(len(found.ends_s), 'slice')}" if found.ends_s else "one moment only"
    marks = (element("li", element("span", class_=f"key {name}"), words) for name, words in LEGEND)
    return joined(
        note(
            f"Left to right: {span}. The height of a mark is the share of one core. Demand is time on a CPU or waiting "
            "for one: 1.00 is a thread that never pauses."
        ),
        element("ul", each(marks), class_="legend"),
    )


def _row(lane: Lane, accusation: str) -> tuple[Cell | str, ...]:
    who = together(lane.processes)
    name = "main thread" if lane.is_main else lane.name or "thread"
    number = f"pid {lane.process.key.pid}" if lane.is_main else f"{lane.process.key.pid}/{lane.tid}"
    alike = f", the busiest of {lane.alike}" if lane.alike > 1 else ""
    head = joined(
        element("strong", who, class_="accused" if lane.accused else None),
        element("span", f"{name}, {number}{alike}", class_="small"),
        element("span", accusation, class_="tag") if lane.accused else None,
    )
    words = f"{who}, {name}: {_in_words(lane)}"
    return (
        Cell(head, order=lane.order),
        Cell(code(lane.place) if lane.place else element("span", "no Python stack", class_="small")),
        Cell(ratio(lane.demand_ratio), order=lane.demand_ratio or 0.0, number=True),
        Cell(lane_strip(lane.slices, words), order=lane.demand_ratio or 0.0),
    )


def _in_words(lane: Lane) -> str:
    """Return what a strip shows, for who cannot see it."""
    counts: dict[str, int] = {}
    for one in lane.slices:
        counts[one.doing] = counts.get(one.doing, 0) + 1
    words = dict(LEGEND) | {"ran": "ran"}
    return ", ".join(f"{words[doing]} in {count} of {len(lane.slices)} slices" for doing, count in counts.items())


def _rest(found: Lanes) -> Html | None:
    if not found.rest:
        return None
    count = sum(one.threads for one in found.rest)
    slept = sum(one.slept for one in found.rest)
    summary = f"{many(count, 'other thread')}, of which {slept:,} slept all the time"
    titles = ("Process", "Pid", "Threads", "Slept all the time", "Names")
    rows = [_rest_row(one) for one in found.rest]
    return folded(summary, table("Threads that have no lane", titles, rows))


def _rest_row(one: Rest) -> tuple[Cell | str, ...]:
    named = [
        f"{name or 'without a name'} x{count}" if count > 1 else name or "without a name" for name, count in one.names
    ]
    more = f" and {len(named) - MOST_NAMES} more" if len(named) > MOST_NAMES else ""
    return (
        together([one.process]),
        Cell(str(one.process.key.pid), order=one.process.key.pid, number=True),
        Cell(f"{one.threads:,}", order=one.threads, number=True),
        Cell(f"{one.slept:,}", order=one.slept, number=True),
        ", ".join(named[:MOST_NAMES]) + more,
    )
