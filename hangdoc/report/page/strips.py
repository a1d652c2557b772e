"""Strips: a row of slices drawn side by side, as high as what they show."""

from __future__ import annotations

from collections.abc import Sequence

from hangdoc.report.lanes import Slice
from hangdoc.report.page.markup import Html, each, element, together

HEIGHT = 22
"""Of a strip, in its own units; its width is one unit of SLICE for each slice and stretches with the page."""

SLICE = 10


def lane_strip(slices: Sequence[Slice], label: str) -> Html:
    """Draw a thread: what it ran, on top of it what it waited for a CPU, and what it could not do."""
    return _strip(len(slices), label, each(_marks(*run) for run in _runs(slices)))


def level_strip(levels: Sequence[float | None], label: str, class_: str) -> Html:
    """Draw one number from 0 to 1 a slice; None was not read."""
    bars = [
        _bar(position, 1, class_, level) if level is not None else _bar(position, 1, "unread", 1.0)
        for position, level in enumerate(levels)
    ]
    return _strip(len(levels), label, each(bars))


def _strip(count: int, label: str, drawn: Html) -> Html:
    size = f"0 0 {max(1, count) * SLICE} {HEIGHT}"
    base = element("rect", class_="base", x=0, y=HEIGHT - 1, width=max(1, count) * SLICE, height=1)
    return element(
        "svg", drawn, base, viewBox=size, preserveAspectRatio="none", role="img", aria_label=label, class_="strip"
    )


def _runs(slices: Sequence[Slice]) -> list[tuple[int, int, Slice]]:
    """Return (position, count, slice), equal neighbours together: a thread that sleeps for an hour is one mark."""
    found: list[tuple[int, int, Slice]] = []
    for position, one in enumerate(slices):
        rounded = Slice(one.doing, round(one.run_ratio, 2), round(one.demand_ratio, 2))
        if found and found[-1][2] == rounded:
            begin, count, _ = found[-1]
            found[-1] = (begin, count + 1, rounded)
        else:
            found.append((position, 1, rounded))
    return found


def _marks(position: int, count: int, one: Slice) -> Html | None:
    if one.doing == "slept":
        return None
    if one.doing != "ran":
        return _bar(position, count, one.doing, 1.0 if one.doing in ("disk", "stopped") else 0.35)
    wait = one.demand_ratio - one.run_ratio
    queued = _bar(position, count, "queued", wait, one.run_ratio) if wait > 0 else None
    return together(_bar(position, count, "ran", one.run_ratio), queued)


def _bar(position: int, count: int, class_: str, level: float, top: float = 0.0) -> Html:
    """Draw a bar that stands on top of another one; both are shares of the height."""
    height = max(0.0, min(1.0, level)) * (HEIGHT - 2)
    y = HEIGHT - 1 - top * (HEIGHT - 2) - height
    return element(
        "rect", class_=class_, x=position * SLICE, y=round(y, 1), width=count * SLICE, height=round(height, 1)
    )
