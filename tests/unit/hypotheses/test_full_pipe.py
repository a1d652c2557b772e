"""A full pipe is named with whoever could drain it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from hangdoc.criteria import Weighed, weigh
from hangdoc.features.features import features
from hangdoc.hypotheses.blocked_on_full_pipe import HYPOTHESIS
from hangdoc.model.engine import Engine
from hangdoc.model.fd import OpenFile, OpenFiles, PipeFill
from hangdoc.model.locks import Locks
from hangdoc.model.process import EngineName, ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import (
    KEY,
    Readings,
    clock,
    cpu,
    dump,
    link,
    links,
    process,
    progress,
    stack,
    trace,
    waits,
    whole,
)

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
UNSEEN = Missing("links", "denied", "descriptors of other users")


def weighed(
    *ends: int,
    readings: Readings | None = None,
    unread: Missing | None = None,
    member: bool = True,
    rounds: Sequence[Readings] = ({},) * 4,
    engine: EngineName = "generic",
) -> Weighed:
    """Weigh a scheduler that writes to a full pipe whose reading end these processes have."""
    write = link(100, *ends, member=member)
    write = write if unread is None else msgspec.structs.replace(write, ends=unread)
    one: Readings = {
        ("cpu", KEY): cpu(clock()),
        ("progress", KEY): progress(),
        ("futex", KEY): waits((100, SystemCall(1, (1, 0x7F00, 4096)))),
        ("stacks", KEY): dump((100, 0)),
        ("fds", KEY): OpenFiles(complete=True, files=(FULL,), nvidia=()),
        ("links", KEY): links(write),
        ("cpu", OTHER): cpu(clock(tid=50)),
        ("progress", OTHER): progress(),
        ("fds", OTHER): OpenFiles(complete=True, files=(), nvidia=()),
        ("links", OTHER): links(),
        ("locks", OTHER): Locks((), Known(None), Known(())),
        **(readings or {}),
    }
    members = [process(50, role="launcher"), process(100, role="scheduler", ppid=50)]
    of = trace([{**one, **more} for more in rounds], processes=members, stacks=[stack("write", "main")], engine=engine)
    return weigh(HYPOTHESIS, features(of, Engine(name="generic"), whole(of), steady=True))


def test_the_reader_has_to_move() -> None:
    """Of a full pipe whose reading end a member has open, that member is the culprit, and not the writer."""
    parked = waits((50, SystemCall(202, (0x7F00, 0x189, 0, 0, 0, 0xFFFFFFFF))))
    found = weighed(50, readings={("futex", OTHER): parked})
    assert found.grade == "confirmed"
    assert "launcher (pid 50), which has its reading end open, does not read it" in found.headline
    assert [(one.pid, one.outside) for one in found.culprits] == [(50, False)]


def test_a_reader_that_rests_is_only_slow() -> None:
    """A reader in a wait with a time limit, and one whose wait was not read, may read on: that is no hang."""
    resting = waits((50, SystemCall(202, (0x7F00, 0x189, 0, 0x7FFE, 0, 0xFFFFFFFF))))
    assert weighed(50, readings={("futex", OTHER): resting}).grade == "undetermined"
    assert weighed(50).grade == "undetermined"


def test_a_reader_outside_the_launch_has_to_move() -> None:
    """A reader outside the launch is named as such, by its command."""
    found = weighed(77, member=False)
    assert "pid 77 (python), which has its reading end open, does not read it" in found.headline
    assert [(one.pid, one.outside) for one in found.culprits] == [(77, True)]
    assert "outside the launch, does not read the full output pipe" in found.culprits[0].reason


def test_whom_the_reader_waits_for_has_to_move() -> None:
    """A reader that waits for somebody else has its own culprit: the end of the chain."""
    found = weighed(50, readings={("links", OTHER): links(link(50, 77, through="file-lock", member=False))})
    assert [(one.pid, one.outside) for one in found.culprits] == [(77, True)]
    assert "holds up the reader of the output" in found.culprits[0].reason


def test_a_launcher_that_waits_for_the_writer_is_no_culprit() -> None:
    """The launcher of a server that waits for the end of the writer leaves the writer alone as culprit."""
    readings: Readings = {("links", OTHER): links(link(50, 100, through="child"))}
    found = weighed(50, readings=readings, engine="sglang")
    assert [one.pid for one in found.culprits] == [100]
    assert "launcher (pid 50), which has its reading end open" in found.culprits[0].reason


def test_a_parent_that_waits_for_the_writer_has_to_read() -> None:
    """Where no engine is known, the parent that waits for the end of a writer which it alone could free is named."""
    parked: Readings = {("futex", OTHER): waits((50, SystemCall(61, (100, 0, 0, 0))))}
    found = weighed(50, readings={("links", OTHER): links(link(50, 100, through="child")), **parked})
    assert [one.pid for one in found.culprits] == [50]
    assert "waits for the end of" in found.culprits[0].reason


def test_a_pipe_that_only_its_writer_could_read() -> None:
    """Where nobody else has the reading end, the writer is named."""
    found = weighed(100)
    assert "nobody else has its reading end open" in found.headline
    assert [one.pid for one in found.culprits] == [100]


def test_a_pipe_that_somebody_empties_slowly_is_no_hang() -> None:
    """A reader of a few bytes a second wakes no writer for a minute, but the fill of the pipe tells of it."""
    rounds = [slowly_emptied(65536 - 60 * number) for number in range(4)]
    assert weighed(50, rounds=rounds).grade in {"ruled-out", "undetermined"}


def slowly_emptied(queued_bytes: int) -> Readings:
    file = msgspec.structs.replace(FULL, pipe=Known(PipeFill(queued_bytes, 65536)))
    return {("fds", KEY): OpenFiles(complete=True, files=(file,), nvidia=())}


def test_an_unknown_reader_is_not_guessed() -> None:
    """Where the reading end could not be looked for, nobody is accused."""
    found = weighed(unread=UNSEEN)
    assert "who has its reading end open is not known (denied)" in found.headline
    assert found.culprits == ()


@pytest.mark.parametrize(("queued_bytes", "is_full"), [(65536, True), (65481, True), (61440, False), (0, False)])
def test_less_than_a_page_may_stay_free(queued_bytes: int, is_full: bool) -> None:
    """A pipe that has no room for a whole write of PIPE_BUF bytes is full."""
    assert PipeFill(queued_bytes, 65536).is_full == is_full
