"""Why: the evidence for the verdict, and every other explanation with what rules it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hangdoc.model.diagnosis import Finding, Grade
from hangdoc.report.material import Material
from hangdoc.report.page.blocks import Cell, folded, listed, many, note, section, table
from hangdoc.report.page.markup import Child, Html, each, element, sentence, together
from hangdoc.report.reasons import carried_by, still_open
from hangdoc.report.words import GRADE_WORDS

_GRADES: tuple[Grade, ...] = ("confirmed", "likely", "undetermined", "ruled-out")


def evidence(material: Material) -> Html:
    """Return the section on what carries the verdict; without a verdict, on what is still open."""
    diagnosis = material.diagnosis
    carrying = carried_by(diagnosis)
    if carrying:
        return section("why", "Why hangdoc says so", each(_whole(one) for one in carrying))
    left = still_open(diagnosis)
    told = note(
        "No explanation was shown to be true. These fit best; what would decide is marked with a question mark."
    )
    return section("why", "Why there is no verdict", told, each(_whole(one) for one in left[:MOST_OPEN]))


MOST_OPEN = 3
"""Explanations that a page without a verdict begins with; the table has all. Arbitrary."""


def hypotheses(material: Material) -> Html:
    """Return the section with every explanation that was tried."""
    found = material.diagnosis.hypotheses
    counts = {grade: sum(one.grade == grade for one in found) for grade in _GRADES}
    told = ", ".join(f"{count} {GRADE_WORDS[grade]}" for grade, count in counts.items() if count)
    titles = ("Explanation", "Verdict", "Grade", "Because")
    return section(
        "hypotheses",
        "Every explanation that was tried",
        note(f"{many(len(found), 'explanation')}: {told}. What each one looks for: hangdoc explain NAME."),
        table("Explanations and what speaks for or against them", titles, [_row(one) for one in found], "hypotheses"),
    )


def _whole(finding: Finding) -> Html:
    title = element("h3", element("span", finding.name), element("span", _label(finding), class_="small"))
    return element("div", title, _signs(finding), class_="finding")


def _label(finding: Finding) -> str:
    return f"{finding.id}, {finding.verdict}, {GRADE_WORDS[finding.grade]}"


def _signs(finding: Finding) -> Html:
    groups: tuple[tuple[str, str, Sequence[str]], ...] = (
        ("for", "Speaks for it", finding.for_),
        ("against", "Speaks against it", finding.against),
        ("missing", "Could not be read", finding.missing),
    )
    return each(
        together(element("h4", title), listed(map(sentence, lines), class_=f"signs {name}"))
        for name, title, lines in groups
        if lines
    )


def _row(finding: Finding) -> tuple[Cell | str, ...]:
    head = together(finding.name, " ", element("span", finding.id, class_="small"))
    grade = element("span", GRADE_WORDS[finding.grade], class_=f"graded {finding.grade}")
    return (head, finding.verdict, Cell(grade, order=_GRADES.index(finding.grade)), Cell(_because(finding)))


def _because(finding: Finding) -> Child:
    """Return the reason that decided, with all the others folded behind it."""
    first, *others = [*_reasons(finding)] or ["no evidence for it"]
    return folded(sentence(first), _signs(finding)) if others else sentence(first)


def _reasons(finding: Finding) -> Iterator[str]:
    order = {
        "ruled-out": (finding.against, finding.missing, finding.for_),
        "undetermined": (finding.missing, finding.against, finding.for_),
    }
    for lines in order.get(finding.grade, (finding.for_, finding.against, finding.missing)):
        yield from lines
