"""The first screen: what it is, how sure that is, who has to move, what to type next."""

from __future__ import annotations

from collections.abc import Iterator

from hangdoc.model.diagnosis import HANG_VERDICTS
from hangdoc.report.commands import commands
from hangdoc.report.document import timestamp
from hangdoc.report.material import UNREDACTED, Material
from hangdoc.report.page.blocks import facts
from hangdoc.report.page.markup import Child, Html, each, element, sentence, together
from hangdoc.report.page.who import who
from hangdoc.report.words import GRADE_MEANINGS, GRADE_WORDS, VERDICT_MEANINGS, duration


def head(material: Material) -> Html:
    """Return the first screen."""
    return element(
        "header",
        _banner(material),
        element("h1", sentence(material.diagnosis.headline)),
        _meaning(material),
        element("div", who(material), _next(material), class_="answers"),
        _facts(material),
        class_=f"head {tone(material)}",
    )


def tone(material: Material) -> str:
    """Return the class that colours the page: how bad it is."""
    verdict = material.diagnosis.verdict
    return "bad" if verdict in HANG_VERDICTS else "open" if verdict == "undetermined" else "good"


def _banner(material: Material) -> Html:
    diagnosis = material.diagnosis
    is_open = diagnosis.verdict == "undetermined"
    return element(
        "p",
        element("span", diagnosis.verdict, class_="verdict"),
        None if is_open else element("span", GRADE_WORDS[diagnosis.grade], class_="grade"),
        None if diagnosis.phase == "unknown" else element("span", f"in phase {diagnosis.phase}", class_="phase"),
        class_="banner",
    )


def _meaning(material: Material) -> Html:
    diagnosis = material.diagnosis
    sure = "" if diagnosis.verdict == "undetermined" else f" {_capital(GRADE_WORDS[diagnosis.grade])}: "
    grade = _small_first(GRADE_MEANINGS[diagnosis.grade]) if sure else ""
    warning = None if material.is_redacted else element("p", UNREDACTED, class_="warning")
    return together(element("p", f"{VERDICT_MEANINGS[diagnosis.verdict]}{sure}{grade}", class_="meaning"), warning)


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]


def _small_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _next(material: Material) -> Html:
    steps = [element("p", step.action) for step in material.diagnosis.next_steps]
    typed = [
        element("li", element("code", one.line, class_="command"), element("span", one.does, class_="small"))
        for one in commands(material.diagnosis)
    ]
    where = element("p", "To type, on the machine where it runs:", class_="small") if typed else None
    lines = element("ul", each(typed), class_="commands") if typed else None
    return element("div", element("h2", "What to do next"), each(steps), where, lines, class_="answer")


def _facts(material: Material) -> Html:
    return facts(_pairs(material), class_="facts")


def _pairs(material: Material) -> Iterator[tuple[str, Child]]:
    diagnosis = material.diagnosis
    target = diagnosis.target
    engine = target.engine if target.engine_version is None else f"{target.engine} {target.engine_version}"
    yield "Launch", engine + ("" if target.pid is None else f", pid {target.pid}")
    if target.host:
        yield "Host", target.host
    count = len(diagnosis.processes)
    yield "Processes", f"{count}"
    yield "Watched", f"{material.whole.seconds:.1f} s until {timestamp(diagnosis.taken_wall_ns)}"
    if diagnosis.no_progress_s is not None and diagnosis.verdict not in ("healthy", "slow-start"):
        yield "No progress for", duration(diagnosis.no_progress_s)
    silent_s = [one.silent_s for one in diagnosis.outputs if one.silent_s is not None and one.path]
    if silent_s:
        yield "Log silent for", duration(min(silent_s))
    due = next((one for one in diagnosis.limits if one.left_s is not None), None)
    if due is not None and due.left_s is not None and diagnosis.verdict not in ("healthy", "slow-start"):
        yield "Ends by itself", f"{due.ends}, in {duration(due.left_s)} or later"
