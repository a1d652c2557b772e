"""The first card of the first screen: who has to move, where it stands, and who waits for it."""

from __future__ import annotations

from hangdoc.features.ranks import without_wrappers
from hangdoc.hypotheses._signs import place_of
from hangdoc.model.diagnosis import Culprit, Diagnosis, Verdict
from hangdoc.model.reading import Known
from hangdoc.report.material import Material
from hangdoc.report.material import together as named
from hangdoc.report.page.blocks import listed
from hangdoc.report.page.markup import Html, code, each, element, sentence, together
from hangdoc.report.reasons import still_open
from hangdoc.report.waitgraph import is_sure
from hangdoc.report.words import rank_text

MOST_CULPRITS = 6
"""Culprits that the first screen names. Arbitrary: more push the next step below the fold."""

MOST_LACKS = 3
"""Readings that the first screen names as missing. Arbitrary."""

MOST_FRAMES = 5
"""Frames of a stack on the first screen. Arbitrary: the wait, and who asked for it."""

MOST_STACKS = 2
"""Culprits up to which the first screen has their stacks. Arbitrary: more push the rest below the fold."""

_QUESTIONS: dict[Verdict, str] = {
    "crashed": "Who failed",
    "slow-start": "Who is at work",
    "undetermined": "What is still to be read",
}
"""What the card answers; of a hang, who has to move."""


def who(material: Material) -> Html:
    """Return the card."""
    diagnosis = material.diagnosis
    title = element("h2", _QUESTIONS.get(diagnosis.verdict, "Who has to move"))
    rows = [_culprit(one, material) for one in diagnosis.culprits[:MOST_CULPRITS]]
    more = len(diagnosis.culprits) - MOST_CULPRITS
    if more > 0:
        rows.append(element("li", f"and {more} more, see the threads below"))
    told = element("ul", each(rows), class_="culprits") if rows else _nobody(diagnosis)
    return element("div", title, told, class_="answer")


def _nobody(diagnosis: Diagnosis) -> Html:
    if diagnosis.verdict in ("healthy", "slow-start"):
        return element("p", "Nobody: the launch moves as it should.")
    if diagnosis.verdict != "undetermined":
        return element("p", "Not known.")
    lacks = dict.fromkeys(lack for one in still_open(diagnosis)[:MOST_LACKS] for lack in one.missing[:1])
    if not lacks:
        return element("p", "Nothing that was asked for; see the explanations below.")
    return listed(map(sentence, lacks), class_="signs missing")


def _culprit(one: Culprit, material: Material) -> Html:
    who = "outside the launch" if one.outside else rank_text(one.role, one.rank)
    if one.pid is None and material.diagnosis.target.kind != "log":
        return element("li", element("strong", one.reason, class_="accused"), class_="culprit")
    pid = "pid not known" if one.pid is None else f"pid {one.pid}"
    thread = "" if one.tid in (None, one.pid) else f", thread {one.tid}"
    return element(
        "li",
        element("strong", who, class_="accused"),
        f", {pid}{thread}: ",
        sentence(one.reason),
        _who_waits(one, material),
        _stack(one, material),
        class_="culprit",
    )


def _who_waits(culprit: Culprit, material: Material) -> Html | None:
    """Return who waits for it, directly or through others; waits that look the same when all is well do not count."""
    waits = [(one.from_.pid, one.to.pid) for one in material.diagnosis.waits if is_sure(one)]
    found: dict[int, None] = {}
    todo = [culprit.pid]
    while todo:
        target = todo.pop(0)
        for start, end in waits:
            if end == target and start not in found and start != culprit.pid:
                found[start] = None
                todo.append(start)
    processes = {key.pid: one for key, one in material.processes.items()}
    waiting = [processes[pid] for pid in found if pid in processes]
    return element("p", f"Waits for it: {named(waiting)}", class_="small block") if waiting else None


def _stack(culprit: Culprit, material: Material) -> Html | None:
    """Return where its thread stands; nothing where several have to move: the stacks are below."""
    member = next((one for key, one in material.seen.members.items() if key.pid == culprit.pid), None)
    if member is None or not isinstance(member.dumps, Known) or len(material.diagnosis.culprits) > MOST_STACKS:
        return None
    thread = member.dumps.value.threads.get(culprit.tid or member.key.pid)
    frames = without_wrappers(thread.last.stack)[:MOST_FRAMES] if thread is not None else ()
    shown = element("ol", each(element("li", code(place_of(frame))) for frame in frames), class_="run")
    title = element("p", "Its newest stack, innermost frame first:", class_="small block")
    return together(title, shown) if frames else None
