"""What can be looked up: every hypothesis with its reasoning, every playbook, by identifier or name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import ModuleType

from hangdoc.discovery import modules
from hangdoc.errors import HangdocError


@dataclass(frozen=True)
class Entry:
    """One thing that can be explained. id, verdict: of a hypothesis; reasoning: its own text; playbook: Markdown."""

    name: str
    playbook: str
    id: str | None = None
    verdict: str | None = None
    reasoning: str | None = None

    def text(self) -> str:
        """Return everything about it, in Markdown."""
        if self.id is None:
            return self.playbook
        return f"# {self.id} {self.name} (verdict: {self.verdict})\n\n{self.reasoning}\n\n{self.playbook}"


def playbooks() -> dict[str, str]:
    """Return every playbook by its name: Markdown files of the packages that the entry points name."""
    packages = sorted({point.value for point in entry_points(group="hangdoc.playbooks")})
    pages = [page for package in packages for page in _pages(files(package))]
    return {page.name.removesuffix(".md"): page.read_text(encoding="utf-8") for page in pages}


def library() -> dict[str, Entry]:
    """Return every hypothesis and every playbook, by name."""
    pages = playbooks()
    entries = {name: Entry(name, text) for name, text in pages.items()}
    for module in modules("hangdoc.hypotheses"):
        entry = _of_hypothesis(module, pages)
        entries[entry.name] = entry
    return dict(sorted(entries.items()))


def look_up(wanted: str, among: dict[str, Entry]) -> Entry:
    """Return the entry with this identifier or name; HangdocError with the nearest ones when there is none."""
    names = {name.lower(): entry for name, entry in among.items()}
    names |= {entry.id.lower(): entry for entry in among.values() if entry.id is not None}
    found = names.get(wanted.lower().removesuffix(".md"))
    if found is not None:
        return found
    near = difflib.get_close_matches(wanted.lower(), names, n=3, cutoff=0.5)
    contained = sorted(name for name in names if wanted and wanted.lower() in name)
    likely = list(dict.fromkeys([*contained, *near]))[:3]
    remedy = f"did you mean {_or(likely)}?" if likely else "hangdoc explain without a name lists all"
    raise HangdocError(f"there is no hypothesis or playbook {wanted}", remedy)


def _of_hypothesis(module: ModuleType, pages: dict[str, str]) -> Entry:
    hypothesis = module.HYPOTHESIS
    reasoning = inspect.cleandoc(module.__doc__ or "")
    playbook = pages.get(hypothesis.playbook, "")
    return Entry(hypothesis.name, playbook, hypothesis.id, hypothesis.verdict, reasoning)


def _pages(package: Traversable) -> Iterable[Traversable]:
    return sorted((item for item in package.iterdir() if item.name.endswith(".md")), key=lambda item: item.name)


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
