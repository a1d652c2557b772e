"""The wait graph, drawn: who waits stands left, who has to move stands right."""

from __future__ import annotations

from collections.abc import Mapping

from hangdoc.model.diagnosis import Wait, WaitEnd
from hangdoc.report.material import Material
from hangdoc.report.page.blocks import folded, listed, many, note, section, wide
from hangdoc.report.page.markup import Attribute, Html, each, element, together
from hangdoc.report.waitgraph import Arrow, Graph, Node, graph, is_sure

BOX_WIDTH, BOX_HEIGHT, ACROSS, DOWN, EDGE = 232, 50, 110, 24, 12
"""The drawing's own units, which are pixels on the screen. Arbitrary: a column and its arrows fit a telephone."""

SPREAD, BOW = 15, 48
"""How far apart arrows between two boxes are, and how far out one goes that stays in its column."""

MOST_LISTED = 8
"""Waits that are listed outright. Arbitrary: of 64 ranks they are all alike."""

MOST_LETTERS = 25
"""Letters of a line in a box; the list below has all. Arbitrary: what fits."""


def waits(material: Material) -> Html:
    """Return the section."""
    found = graph(material)
    title = "Who waits for whom"
    if not found.nodes:
        return section("waits", title, note(_nothing(found)), _in_words(material))
    return section("waits", title, note(_told(found)), wide(title, _picture(found)), _in_words(material))


def _nothing(found: Graph) -> str:
    if not found.unsure:
        return "No process of the launch was seen to wait for another one."
    return "Every wait that was seen looks the same when nothing is wrong: there is nothing to draw."


def _told(found: Graph) -> str:
    left = (
        f" {many(found.unsure, 'more wait')} that look the same when nothing is wrong are in the list."
        if found.unsure
        else ""
    )
    return f"An arrow leads from who waits to who is waited for.{left}"


def _picture(found: Graph) -> Html:
    places = _placed(found)
    bows = any(places[arrow.start][0] == places[arrow.end][0] for arrow in found.arrows)
    right = max(x for x, _ in places.values()) + BOX_WIDTH + (2 * ACROSS if bows else EDGE)
    bottom = max(y for _, y in places.values()) + BOX_HEIGHT + EDGE
    arrows = each(_arrow(one, places, found) for one in found.arrows)
    boxes = each(_box(node, places[node.number]) for node in found.nodes)
    return element(
        "svg",
        _head(),
        arrows,
        boxes,
        viewBox=f"0 0 {right} {bottom}",
        width=right,
        height=bottom,
        role="img",
        aria_label="Wait graph; the list below says the same",
        class_="graph",
    )


def _placed(found: Graph) -> dict[int, tuple[int, int]]:
    """Return the corner of each box: columns from left to right, each in the middle of the tallest one."""
    columns: dict[int, list[Node]] = {}
    for node in found.nodes:
        columns.setdefault(node.column, []).append(node)
    tallest = max(map(len, columns.values()))
    places: dict[int, tuple[int, int]] = {}
    for position, column in enumerate(sorted(columns)):
        nodes = columns[column]
        top = EDGE + (tallest - len(nodes)) * (BOX_HEIGHT + DOWN) // 2
        for row, node in enumerate(nodes):
            places[node.number] = (EDGE + position * (BOX_WIDTH + ACROSS), top + row * (BOX_HEIGHT + DOWN))
    return places


def _head() -> Html:
    point = element("path", d="M0 0 L8 4 L0 8 Z")
    size: dict[str, Attribute] = {
        "markerWidth": 8,
        "markerHeight": 8,
        "refX": 7,
        "refY": 4,
        "markerUnits": "userSpaceOnUse",
    }
    return element("defs", element("marker", point, id="head", class_="point", orient="auto", **size))


def _box(node: Node, place: tuple[int, int]) -> Html:
    x, y = place
    kind = "box accused" if node.accused else "box"
    texts = (
        element("text", _cut(node.title), x=x + 12, y=y + 21, class_="title"),
        element("text", _cut(node.below), x=x + 12, y=y + 38, class_="below"),
    )
    shape = element(
        "rect", x=x, y=y, width=BOX_WIDTH, height=BOX_HEIGHT, rx=6, class_="absent" if node.absent else None
    )
    return element("g", element("title", f"{node.title}, {node.below}"), shape, *texts, class_=kind)


def _cut(line: str) -> str:
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _arrow(arrow: Arrow, places: Mapping[int, tuple[int, int]], found: Graph) -> Html:
    """Draw a wait: between columns an S, within one a bow to its right, the further out the more there are."""
    (x0, y0), (x1, y1) = places[arrow.start], places[arrow.end]
    between = [one for one in found.arrows if {one.start, one.end} == {arrow.start, arrow.end}]
    number = between.index(arrow)
    shift = round((number - (len(between) - 1) / 2) * SPREAD)
    y0, y1 = y0 + BOX_HEIGHT // 2 + shift, y1 + BOX_HEIGHT // 2 + shift
    label = f"{arrow.through} x{arrow.count}" if arrow.count > 1 else arrow.through
    middle_y = (y0 + y1) // 2
    if x0 == x1:
        out = x0 + BOX_WIDTH + BOW + number * 2 * BOW // 3
        y0, y1 = (y0 - SPREAD, y1 + SPREAD) if arrow.start == arrow.end else (y0, y1)
        path = f"M{x0 + BOX_WIDTH} {y0} C{out} {y0} {out} {y1} {x1 + BOX_WIDTH} {y1}"
        words = element("text", label, x=out - BOW // 4 + 4, y=middle_y + 4 + number * SPREAD)
    else:
        start, end, bend = (x0 + BOX_WIDTH, x1, ACROSS // 2) if x1 > x0 else (x0, x1 + BOX_WIDTH, -ACROSS // 2)
        path = f"M{start} {y0} C{start + bend} {y0} {end - bend} {y1} {end} {y1}"
        words = element("text", label, x=(start + end) // 2, y=middle_y - 5, text_anchor="middle")
    return element("g", element("path", d=path, marker_end="url(#head)"), words, class_="arrow")


def _in_words(material: Material) -> Html:
    waits_ = material.diagnosis.waits
    sure = [_wait(one, material) for one in waits_ if is_sure(one)]
    unsure = [_wait(one, material) for one in waits_ if not is_sure(one)]
    first, more = sure[:MOST_LISTED], sure[MOST_LISTED:]
    return together(
        listed(first, class_="waits") if first else None,
        folded(many(len(more), "more wait"), listed(more)) if more else None,
        folded(f"{many(len(unsure), 'wait')} that look the same when nothing is wrong", listed(unsure))
        if unsure
        else None,
    )


def _wait(wait: Wait, material: Material) -> str:
    detail = f", {wait.detail}" if wait.detail else ""
    return f"{_end(wait.from_, material)} waits for {_end(wait.to, material)} ({wait.through}{detail})"


def _end(end: WaitEnd, material: Material) -> str:
    thread = "" if end.tid in (None, end.pid) else f" thread {end.tid}"
    return f"{material.name(end.pid)} {end.pid}{thread}"
