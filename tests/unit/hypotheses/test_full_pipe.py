"""A full pipe is named with whoever could drain it."""

from __future__ import annotations

import msgspec
import pytest

from hangdoc.criteria import weigh
from hangdoc.features.features import features
from hangdoc.hypotheses.blocked_on_full_pipe import HYPOTHESIS
from hangdoc.model.engine import Engine
from hangdoc.model.fd import OpenFile, OpenFiles, PipeFill
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import KEY, Readings, clock, cpu, dump, process, progress, stack, trace, waits, whole

NONE = Missing("fds", "unsupported", "not a file")
OTHER = ProcessKey(50, 1)
FULL = OpenFile(
    fd=1,
    kind="pipe",
    target="pipe:[7]",
    access="w",
    position=NONE,
    size_bytes=NONE,
    modified_wall_ns=NONE,
    pipe=Known(PipeFill(65536, 65536)),
)
READING = msgspec.structs.replace(FULL, fd=5, access="r")
ELSEWHERE = msgspec.structs.replace(READING, target="pipe:[8]")


def files(*open_files: OpenFile) -> OpenFiles:
    return OpenFiles(complete=True, files=open_files, nvidia=())


@pytest.mark.parametrize(
    ("own", "others", "says"),
    [
        (files(FULL), files(READING), "its reading end is open in launcher (pid 50)"),
        (files(FULL), files(ELSEWHERE), "no other member has its reading end open"),
        (files(FULL, READING), files(FULL), "no other member has its reading end open"),
        (files(FULL), Missing("fds", "denied"), "who has its reading end open is not known"),
    ],
    ids=["a member", "nobody", "itself only", "unread"],
)
def test_the_reader_of_a_full_pipe(own: OpenFiles, others: Payload | Missing, says: str) -> None:
    """Whoever of the launch has the reading end open is named, and so it is when that is nobody or not known."""
    one: Readings = {
        ("cpu", KEY): cpu(clock()),
        ("progress", KEY): progress(),
        ("futex", KEY): waits((100, SystemCall(1, (1, 0x7F00, 4096)))),
        ("stacks", KEY): dump((100, 0)),
        ("fds", KEY): own,
        ("cpu", OTHER): cpu(clock(tid=50)),
        ("progress", OTHER): progress(),
        ("fds", OTHER): others,
    }
    members = [process(50, role="launcher"), process(100, role="scheduler", ppid=50)]
    of = trace([one] * 4, processes=members, stacks=[stack("write", "main")])
    weighed = weigh(HYPOTHESIS, features(of, Engine(name="generic"), whole(of), steady=True))
    assert says in weighed.headline
    assert [says in culprit.reason for culprit in weighed.culprits] == [True]


@pytest.mark.parametrize(("queued_bytes", "is_full"), [(65536, True), (65481, True), (61440, False), (0, False)])
def test_less_than_a_page_may_stay_free(queued_bytes: int, is_full: bool) -> None:
    """A pipe that has no room for a whole write of PIPE_BUF bytes is full."""
    assert PipeFill(queued_bytes, 65536).is_full == is_full
