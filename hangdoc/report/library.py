"""What can be looked up: every hypothesis with its reasoning, every playbook, by identifier or name."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import ModuleType

from hangdoc.discovery import modules
from hangdoc.errors import HangdocError

_IDENTIFIER = re.compile(r"hd\d{1,9}", re.ASCII)

_SIDE = re.compile(r"^(?:Essential|Supporting|Contrary|Excluding)(?: when present)?: ")
"""Which list a sign belongs in, as docstrings say; here the list's title says it."""


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
    """Return every hypothesis, in the order of their identifiers, then every other playbook, by name."""
    pages = playbooks()
    entries = {name: Entry(name, text) for name, text in pages.items()}
    for module in modules("hangdoc.hypotheses"):
        entry = _of_hypothesis(module, pages)
        entries[entry.name] = entry
    return dict(sorted(entries.items(), key=lambda item: (item[1].id is None, item[1].id or "", item[0])))


def look_up(wanted: str, among: dict[str, Entry]) -> Entry:
    """Return the entry with this identifier or name; HangdocError with the nearest ones when there is none."""
    spelled = {name.lower(): name for entry in among.values() for name in (entry.name, entry.id) if name is not None}
    entries = {name: entry for entry in among.values() for name in (entry.name, entry.id) if name is not None}
    key = wanted.lower().removesuffix(".md")
    if key in spelled:
        return entries[spelled[key]]
    contained = sorted(name for name in spelled if key and key in name)
    near = _nearest_numbers(key, spelled) or difflib.get_close_matches(key, spelled, n=3, cutoff=0.5)
    likely = [spelled[name] for name in dict.fromkeys([*contained, *near])][:3]
    remedy = f"did you mean {_or(likely)}?" if likely else "hangdoc explain without a name lists all"
    raise HangdocError(f"there is no hypothesis or playbook {wanted}", remedy)


def _nearest_numbers(key: str, names: Iterable[str]) -> list[str]:
    """Return the identifiers with the nearest numbers; none when this is not an identifier.

    >>> _nearest_numbers("hd118", ["hd101", "hd120", "hd501", "stopped"])
    ['hd120', 'hd101', 'hd501']
    """
    if not _IDENTIFIER.fullmatch(key):
        return []
    known = [name for name in names if _IDENTIFIER.fullmatch(name)]
    return sorted(known, key=lambda name: (abs(int(name[2:]) - int(key[2:])), name))


def _of_hypothesis(module: ModuleType, pages: dict[str, str]) -> Entry:
    hypothesis = module.HYPOTHESIS
    playbook = pages.get(hypothesis.playbook, "")
    return Entry(hypothesis.name, playbook, hypothesis.id, hypothesis.verdict, reasoning(module))


def reasoning(module: ModuleType) -> str:
    """Return what a hypothesis says of itself: its sentence, and what each of its signs looks for."""
    hypothesis = module.HYPOTHESIS
    sentence = inspect.cleandoc(module.__doc__ or "").removeprefix(f"{hypothesis.id}: ")
    blocks = [
        ("It is this only if", hypothesis.essential),
        (f"Certain with {hypothesis.confirm_at} of", hypothesis.supporting),
        ("At most likely if", hypothesis.contrary),
        ("Ruled out if", hypothesis.excluding),
    ]
    lists = [f"{title}:\n\n" + "\n".join(f"- {_sign(sign)}" for sign in signs) for title, signs in blocks if signs]
    return "\n\n".join([sentence[:1].upper() + sentence[1:], *lists])


def _sign(sign: Callable[..., object]) -> str:
    """Return what a sign looks for: its docstring, that of the function that made it, or its name."""
    outer = getattr(sys.modules.get(sign.__module__), sign.__qualname__.split(".")[0], None)
    for described in (sign, outer):
        text = inspect.getdoc(described) if described is not None else None
        if text:
            sentence = _SIDE.sub("", " ".join(text.split("\n\n")[0].split()))
            return sentence[:1].upper() + sentence[1:]
    return sign.__name__.strip("_").replace("_", " ")


def _pages(package: Traversable) -> Iterable[Traversable]:
    return sorted((item for item in package.iterdir() if item.name.endswith(".md")), key=lambda item: item.name)


def _or(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
