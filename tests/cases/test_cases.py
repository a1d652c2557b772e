"""Every case file says what hangdoc says; every hypothesis has one, and in it all that can become of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import hypotheses
from hangdoc.report.document import document
from hangdoc.trace.redact import redact
from tests.cases.literate import FILES, LiterateCase, cases_of
from tests.cases.notation import trace_of
from tests.properties.test_missing_readings import check, groups_of, without

CASES = [case for file in FILES for case in cases_of(file)]
SHOWN = [case for case in CASES if case.expected["grade"] in {"confirmed", "likely"}]
NAMES = sorted(hypothesis.name for hypothesis in hypotheses())


def ids(case: LiterateCase) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_case(case: LiterateCase) -> None:
    """What the file expects is what is said."""
    assert case.differences() == []


@pytest.mark.parametrize("name", NAMES)
def test_every_hypothesis_has_its_cases(name: str) -> None:
    """A hypothesis has a case that shows it, one that rules it out, and one in which a reading is missing."""
    cases = [case for case in CASES if case.file.stem == name]
    grades = {case.expected["grade"] for case in cases}
    assert cases, f"write tests/cases/{name}.md: tests/cases/README.md says how"
    assert grades & {"confirmed", "likely"}
    assert "ruled-out" in grades
    assert any(case.expected["grade"] == "undetermined" and case.expected.get("missing") for case in cases)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_has_its_hypothesis(file: Path) -> None:
    """A case file is called after a hypothesis and opens with its identifier; why it is never confirmed it says."""
    hypothesis = next((one for one in hypotheses() if one.name == file.stem), None)
    assert hypothesis is not None
    text = file.read_text()
    assert text.startswith(f"# {hypothesis.id} {hypothesis.name}\n")
    confirmed = any(case.expected["grade"] == "confirmed" for case in cases_of(file))
    assert confirmed or "never confirmed" in text.lower()


@pytest.mark.parametrize("case", SHOWN, ids=ids)
def test_one_reading_less(case: LiterateCase) -> None:
    """Without any one probe of any one process, no grade of a case rises; its verdict is the same or undetermined."""
    for group in groups_of(case.trace):
        check(case.diagnosis, case.said_of(without(case.trace, frozenset({group}))), str(group))


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_redacted(case: LiterateCase) -> None:
    """Redaction changes no verdict, grade, phase, culprit or hypothesis of a case."""
    whole, redacted = document(case.diagnosis), document(case.said_of(redact(case.trace)))
    for field in ("verdict", "grade", "phase"):
        assert whole[field] == redacted[field]
    assert [one["pid"] for one in whole["culprits"]] == [one["pid"] for one in redacted["culprits"]]
    grades = [{one["id"]: one["grade"] for one in given["hypotheses"]} for given in (whole, redacted)]
    assert grades[0] == grades[1]


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"process": [{"pid": 1, "cups": 1.0}]}, "a process has no cups"),
        ({"processes": []}, "a launch has no processes"),
        ({"process": [{"pid": 1, "threads": [{"tid": 2, "reads": 1}]}]}, "a thread has no reads"),
        ({"from_log": True, "gpu": []}, "a launch known from a log has no gpu"),
        ({"from_log": True, "log": {"before": [], "after": []}}, "a log that is all there is has no after"),
        ({"from_log": True, "process": [{"pid": 1, "stack": "", "cpu": 1}]}, "a dumped process has no cpu"),
    ],
)
def test_a_word_that_is_none_is_named(told: dict[str, object], says: str) -> None:
    """A misspelt word does not leave a reading out in silence."""
    with pytest.raises(ValueError, match=says):
        trace_of(told)


def test_a_block_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The file and the heading stand in the error."""
    file = tmp_path / "x.md"
    file.write_text("# HD000 x\n\n## One\n\n```toml launch\nprocess = \n```\n")
    with pytest.raises(ValueError, match=r"x\.md, One"):
        cases_of(file)
