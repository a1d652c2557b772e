"""The playbook of the verdict, in the page: who reads a ticket may have no hangdoc at hand."""

from __future__ import annotations

from markdown_it import MarkdownIt

from hangdoc.report.library import playbooks
from hangdoc.report.material import Material
from hangdoc.report.page.blocks import folded, note, section
from hangdoc.report.page.markup import Html, verbatim

_HEADING = "\n## "


def playbook(material: Material) -> Html:
    """Return the section: what the playbook says, without its title."""
    name = next((step.playbook for step in material.diagnosis.next_steps), None)
    words = playbooks().get(name) if name is not None else None
    if name is None or words is None:
        return section("playbook", "What to do, step by step", note("There is no playbook for this."))
    _, _, rest = words.partition(_HEADING)
    parts = [f"### {part.strip()}" for part in rest.split(_HEADING)]
    first = [part for part in parts if part.startswith(("### What to do", "### What to change"))]
    others = "\n\n".join(part for part in parts if part not in first)
    is_open = material.diagnosis.verdict == "undetermined"  # then it is of the explanation that fits best
    title = f"What to do if it is {name}" if is_open else f"What to do, step by step: {name}"
    whole = folded("What it looks like, why it happens, how to confirm it by hand", rendered(others))
    # Who comes from the first screen looks for what to do.
    return section("playbook", title, rendered("\n\n".join(first)), whole if others else None)


def rendered(words: str) -> Html:
    """Return Markdown as markup; HTML within it stays text, and a link leads to http, https or mail only."""
    return verbatim(MarkdownIt("commonmark", {"html": False}).render(words))
