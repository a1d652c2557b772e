"""Results of a regression run: as a table for people, as JSON, as JUnit's XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from rich.console import RenderableType
from rich.table import Table

from hangdoc.regress.judge import Result, State
from hangdoc.report.plain import plain
from hangdoc.report.rows import bullet, harmless, section

_WORDS: dict[State, str] = {"same": "as expected", "differs": "DIFFERS", "unusable": "UNUSABLE"}
_STYLES: dict[State, str] = {"same": "green", "differs": "bold red", "unusable": "bold yellow"}
_JUNIT: dict[State, str] = {"differs": "failure", "unusable": "error"}


def parts(results: Sequence[Result]) -> Iterator[RenderableType]:
    """Yield the table, what differs in words, and the sum."""
    table = Table(box=None, pad_edge=False)
    for title in ("trace", "result", "diagnosis"):
        table.add_column(title, overflow="fold")
    for one in results:
        table.add_row(harmless(one.case.name), harmless(_WORDS[one.state], _STYLES[one.state]), harmless(one.in_words))
    yield table
    for one in results:
        yield from section(one.case.name, [bullet("-", line) for line in one.lines])
    yield harmless("")
    yield harmless(sum_of(results))


def sum_of(results: Sequence[Result]) -> str:
    """Return "3 traces: 1 as expected, 2 differ"."""
    counts = Counter(one.state for one in results)
    words = [
        (counts["same"], "as expected"),
        (counts["differs"], "different"),
        (counts["unusable"], "not to be judged"),
    ]
    told = ", ".join(f"{number} {what}" for number, what in words if number or what == "as expected")
    return f"{len(results)} trace{'s' * (len(results) != 1)}: {told}"


def as_plain(results: Sequence[Result]) -> dict[str, Any]:
    """Return the results for --json."""
    counts = Counter(one.state for one in results)
    return {
        "schema": 1,
        "traces": len(results),
        **{state: counts[state] for state in _WORDS},
        "results": [_plain(one) for one in results],
    }


def _plain(result: Result) -> dict[str, Any]:
    names = ("verdict", "grade", "phase")
    said = dict.fromkeys(names) if result.said is None else {name: result.said[name] for name in names}
    return {"name": result.case.name, "state": result.state, **said, "lines": list(result.lines)}


def junit(results: Sequence[Result]) -> str:
    """Return the results as JUnit's XML: a difference is a failure, a case that cannot be judged an error."""
    suite = ElementTree.Element("testsuite", name="hangdoc regress", tests=str(len(results)))
    counts = Counter(_JUNIT.get(one.state, "") for one in results)
    suite.attrib |= {"failures": str(counts["failure"]), "errors": str(counts["error"])}
    suite.set("time", f"{sum(one.took_s for one in results):.3f}")
    for one in results:
        name = plain(one.case.name)
        case = ElementTree.SubElement(suite, "testcase", classname="hangdoc", name=name, time=f"{one.took_s:.3f}")
        if kind := _JUNIT.get(one.state):
            lines = [plain(line) for line in one.lines]
            ElementTree.SubElement(case, kind, message=lines[0]).text = "\n".join(lines)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text.decode()
