"""Case files: prose with a launch and what has to be said of it under each heading."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from hangdoc.diagnosis import diagnose
from hangdoc.features.baseline import Baseline
from hangdoc.model.diagnosis import Diagnosis, Finding, Grade
from hangdoc.trace.records import Trace
from tests.cases.from_log import baseline_of
from tests.cases.notation import trace_of

FILES = sorted(path for path in Path(__file__).parent.glob("*.md") if path.name != "README.md")
EXPECTED = frozenset({"grade", "verdict", "culprits", "headline", "phase", "for", "against", "missing"})
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```toml (launch|expect)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class LiterateCase:
    """One heading of a case file. told: the launch, that of an earlier heading included; expected: what is said."""

    file: Path
    title: str
    told: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.file.stem}: {self.title}"

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.told)

    @cached_property
    def baseline(self) -> Baseline | None:
        return baseline_of(self.told)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        return self.said_of(self.trace)

    def said_of(self, trace: Trace) -> Diagnosis:
        """Return the diagnosis of the case's trace, or of one that was made from it, with all else that is told."""
        return diagnose(trace, "log" if trace.header.launch.known_from == "log" else "trace", self.baseline)

    @property
    def finding(self) -> Finding:
        """What the diagnosis says of the hypothesis that the file is about."""
        return next(one for one in self.diagnosis.hypotheses if one.name == self.file.stem)

    def differences(self) -> list[str]:
        """Return one line for each thing that is not said as it is expected."""
        found, finding = self.diagnosis, self.finding
        said: dict[str, Any] = {"grade": finding.grade, "verdict": found.verdict, "phase": found.phase}
        said["culprits"] = [one.pid if one.pid is not None else one.rank for one in found.culprits]
        wrong = [
            f"{key}: expected {self.expected[key]!r}, found {said[key]!r}" for key in said if self._differs(said, key)
        ]
        sentences = {"for": finding.for_, "against": finding.against, "missing": finding.missing}
        sentences["headline"] = (found.headline,)
        for key, texts in sentences.items():
            parts = self.expected.get(key, [])
            unsaid = [part for part in _listed(parts) if not any(part in text for text in texts)]
            wrong += [f"{key}: nothing says {part!r}, but: {' | '.join(texts)}" for part in unsaid]
        return wrong

    def _differs(self, said: Mapping[str, Any], key: str) -> bool:
        return key in self.expected and self.expected[key] != said[key]


def _listed(parts: str | list[str]) -> list[str]:
    return [parts] if isinstance(parts, str) else parts


def cases_of(file: Path) -> tuple[LiterateCase, ...]:
    """Return the cases of one file, in their order. ValueError says what cannot be read."""
    pieces = _SECTION.split(file.read_text())[1:]
    launches: dict[str, Mapping[str, Any]] = {}
    found = []
    for title, text in zip(pieces[::2], pieces[1::2], strict=True):
        blocks = _blocks(file, title, text)
        if not blocks:
            continue  # prose only
        launches[title] = _whole(file, title, blocks["launch"], launches)
        found.append(LiterateCase(file, title, launches[title], blocks["expect"]))
    return tuple(found)


def _blocks(file: Path, title: str, text: str) -> dict[str, Mapping[str, Any]]:
    try:
        blocks = {kind: tomllib.loads(body) for kind, body in _BLOCK.findall(text)}
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{file.name}, {title}: {error}") from error
    if blocks and set(blocks) != {"launch", "expect"}:
        raise ValueError(f"{file.name}, {title}: one block `toml launch` and one `toml expect` are wanted")
    if blocks and set(blocks["expect"]) - EXPECTED:
        raise ValueError(f"{file.name}, {title}: what is expected may be {', '.join(sorted(EXPECTED))}")
    if blocks and blocks["expect"].get("grade") not in get_args(Grade):
        raise ValueError(f"{file.name}, {title}: the grade expected is one of {', '.join(get_args(Grade))}")
    if blocks and "verdict" not in blocks["expect"]:
        raise ValueError(f"{file.name}, {title}: no verdict is expected")
    return blocks


def _whole(
    file: Path, title: str, told: Mapping[str, Any], earlier: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return a launch with everything of the one that it is like, but for what it says itself."""
    if "like" not in told:
        return told
    if told["like"] not in earlier:
        raise ValueError(f"{file.name}, {title}: no heading above is called {told['like']}")
    model = earlier[told["like"]]
    merged = {**model, **told}
    if "process" in told:
        merged["process"] = _merged(model["process"], told["process"])
    return merged


def _merged(model: list[dict[str, Any]], changes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    changed = {one["pid"]: one for one in changes}
    known = {one["pid"] for one in model}
    same = [{**one, **changed.get(one["pid"], {})} for one in model]
    return same + [one for one in changes if one["pid"] not in known]
