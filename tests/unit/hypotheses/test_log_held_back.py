"""HD503 is certain only with text that was seen in the process; without the reading no grade rises."""

from __future__ import annotations

import re

import pytest

from hangdoc.criteria import RANK, Weighed, weigh
from hangdoc.features.features import features
from hangdoc.hypotheses.log_held_back import HYPOTHESIS
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.diagnosis import Grade
from hangdoc.model.engine import Engine, FrameRule
from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.log import LogEvent
from hangdoc.model.reading import Known, Missing
from tests.unit.features.synthetic import (
    KEY,
    SECOND_NS,
    Readings,
    clock,
    cpu,
    dump,
    process,
    progress,
    stack,
    tail,
    trace,
    waits,
    whole,
)

UNREAD = Missing("buffers", "denied", "no", "run as root")
ENGINE = Engine(name="generic", frames=(FrameRule("event-loop", re.compile("serve")),))
LOADING = LogEvent(kind="milestone", name="load-begin", phase="weight-load")
FILE = OpenFile(
    fd=1,
    kind="file",
    target="server.log",
    access="w",
    position=Known(100),
    size_bytes=Known(100),
    modified_wall_ns=Known(-SECOND_NS),
    pipe=Missing("fds", "unsupported", "not a pipe"),
)


def weighed(buffers: Buffers | Missing) -> Weighed:
    rounds: list[Readings] = [
        {
            ("cpu", KEY): cpu(clock(run_s=number * 0.5, slices=number * 100)),
            ("progress", KEY): progress(),
            ("futex", KEY): waits((100, None)),
            ("stacks", KEY): dump((100, 0)),
            ("fds", KEY): OpenFiles(complete=True, files=(FILE,), nvidia=()),
            ("log", None): tail(LOADING),
            ("buffers", KEY): buffers,
        }
        for number in range(4)
    ]
    of = trace(rounds, processes=[process()], stacks=[stack("serve", "main")])
    return weigh(HYPOTHESIS, features(of, ENGINE, whole(of), steady=True))


def holding(size: int) -> Buffers:
    text = HiddenText(stream="stdout", fd=1, size_bytes=size, tail="x" * size)
    return Buffers(python=Known((text,)), c=Known(()))


@pytest.mark.parametrize(
    ("buffers", "grade", "sentence"),
    [
        (holding(62), "confirmed", "62 bytes of its text are still in process (pid 100), for descriptor 1"),
        (holding(0), "likely", None),
        (UNREAD, "likely", "text still in process (pid 100): buffers denied (no)"),
        (Buffers(python=UNREAD, c=Known(())), "likely", "text still in process (pid 100): buffers denied (no)"),
    ],
    ids=["62 bytes", "none", "unread", "half unread"],
)
def test_grades(buffers: Buffers | Missing, grade: Grade, sentence: str | None) -> None:
    """Seen text confirms; none, or none that could be looked for, leaves what log and stacks say."""
    found = weighed(buffers)
    assert found.grade == grade
    if sentence is not None:
        assert sentence in (found.for_ if grade == "confirmed" else found.missing)


def test_without_the_reading_no_grade_rises() -> None:
    """Whatever was read, taking it away leaves the grade or lowers it."""
    assert all(RANK[weighed(UNREAD).grade] <= RANK[weighed(holding(size)).grade] for size in (0, 1, 62))
