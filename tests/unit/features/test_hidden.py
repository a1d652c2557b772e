"""What is hidden of an output: found text always counts, and "nothing" has to be proven."""

from __future__ import annotations

import msgspec
import pytest

from hangdoc.features.hidden import IN_A_WRITE, NOT_RECORDED, OVERTAKEN, Hidden, Look, hidden, holding, last_look
from hangdoc.features.index import Index
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.fd import OpenFile
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import ProcessIo, Progress, SystemCall, Waits
from tests.unit.features.synthetic import KEY, SECOND_NS, Readings, trace, waits, whole

TAKEN_NS = 100 * SECOND_NS
UNREAD = Missing("buffers", "unsupported", "another layout")
NO_SIZE = Missing("fds", "unsupported", "only a regular file has one")
FILE = OpenFile(
    fd=1,
    kind="file",
    target="server.log",
    access="w",
    position=Known(0),
    size_bytes=Known(100),
    modified_wall_ns=Known(TAKEN_NS - SECOND_NS),
    pipe=NO_SIZE,
)
PIPE = msgspec.structs.replace(FILE, kind="pipe", size_bytes=NO_SIZE, modified_wall_ns=NO_SIZE)


def text(tail: str = "", size: int | None = None, fd: int = 1, replaced_by: str = "") -> HiddenText:
    found = len(tail.encode()) if size is None else size
    return HiddenText(stream="stdout", fd=fd, size_bytes=found, tail=tail, replaced_by=replaced_by)


def looked(
    python: tuple[HiddenText, ...] | Missing,
    c: tuple[HiddenText, ...] | Missing = (),
    calls: Waits | None = None,
    file: OpenFile = FILE,
    quiet: bool = False,
) -> Reading[Hidden]:
    readings = [one if isinstance(one, Missing) else Known(one) for one in (python, c)]
    return hidden(Known(Look(TAKEN_NS, Buffers(*readings), quiet, calls)), file)


def test_the_sum_of_both_libraries() -> None:
    """Text in CPython's and in the C library's buffer adds up, and both are shown."""
    assert looked((text("one\n"),), (text("two"),)) == Known(Hidden(7, Known("one\ntwo")))


def test_other_descriptors_do_not_count() -> None:
    """What waits for descriptor 2 is not hidden from descriptor 1."""
    assert looked((text("one"), text("two", fd=2))) == Known(Hidden(3, Known("one")))


def test_nothing_is_hidden() -> None:
    """A stream that prints to it and is empty, with both libraries read: that is known."""
    assert looked((text(),)) == Known(Hidden(0, Known("")))


@pytest.mark.parametrize(("python", "c"), [(UNREAD, (text(),)), ((text(),), UNREAD), (UNREAD, UNREAD)])
def test_an_unread_library_proves_nothing(python: tuple[HiddenText, ...] | Missing, c: tuple[HiddenText, ...]) -> None:
    """Without one of the two, an empty other one does not say that nothing is hidden."""
    assert looked(python, c) == UNREAD


def test_found_text_counts_whatever_else_is_unread() -> None:
    """Text that was seen is there, and what may be beyond it is named."""
    assert looked(UNREAD, (text("one"),)) == Known(Hidden(3, Known("one"), (UNREAD,)))


def test_no_stream_that_prints_to_it() -> None:
    """A program that prints in a way of its own may hide anything."""
    found = looked((), ())
    assert isinstance(found, Missing)
    assert found.reason == "unsupported"


def test_a_tee_may_hide_more() -> None:
    """An object in the stream's place has its own buffer, perhaps: "nothing" is not known, text below it is."""
    nothing = looked((text(replaced_by="Tee"),))
    assert isinstance(nothing, Missing)
    assert "sys.stdout is a Tee" in nothing.detail
    some = looked((text("one", replaced_by="Tee"),))
    assert isinstance(some, Known)
    assert (some.value.size_bytes, len(some.value.lacks)) == (3, 1)


@pytest.mark.parametrize(("fd", "found"), [(1, IN_A_WRITE), (2, Known(Hidden(0, Known(""))))])
def test_a_thread_that_is_writing(fd: int, found: Reading[Hidden]) -> None:
    """What a thread hands to the kernel has left the buffers and may not have arrived."""
    assert looked((text(),), calls=waits((100, SystemCall(1, (fd, 0x7F00, 10))))) == found


def test_a_later_write_makes_it_old_news() -> None:
    """A file that was written after the buffers were read says nothing of them; a pipe has no such time."""
    later = msgspec.structs.replace(FILE, modified_wall_ns=Known(TAKEN_NS + 1))
    assert looked((text("one"),), file=later) == OVERTAKEN
    assert looked((text("one"),), file=PIPE) == Known(Hidden(3, Known("one")))


def test_a_write_of_another_rank_does_not() -> None:
    """Ranks share a log: a process that wrote nothing since still has what it had."""
    later = msgspec.structs.replace(FILE, modified_wall_ns=Known(TAKEN_NS + 1))
    assert looked((text("one"),), file=later, quiet=True) == Known(Hidden(3, Known("one")))


def wrote(calls: int | None) -> Progress:
    io = Missing("progress", "denied") if calls is None else Known(ProcessIo(0, 0, 0, calls, 0, 0))
    return Progress(io, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("counts", "quiet"), [((5, 5, 5), True), ((4, 5, 5), False), ((5, 5, 6), False), ((5, None, None), False)]
)
def test_a_process_is_quiet_when_its_count_of_writes_stands(counts: tuple[int | None, ...], quiet: bool) -> None:
    """From the last count before its buffers were read until now; an unread count proves nothing."""
    buffers = Buffers(Known((text("one"),)), Known(()))
    first, then, last = ({("progress", KEY): wrote(count)} for count in counts)
    rounds: list[Readings] = [first, {("buffers", KEY): buffers}, then, last]
    of = trace(rounds)
    found = last_look(Index(of), KEY, whole(of), 0)
    assert isinstance(found, Known)
    assert (found.value.quiet, holding(found)) == (quiet, {1})


def test_a_redacted_trace_has_the_size_only() -> None:
    """Size without text: the text is missing, not empty."""
    assert looked((text("", size=62),)) == Known(Hidden(62, NOT_RECORDED))


def test_an_unread_process() -> None:
    """Without a reading its own reason stands."""
    denied = Missing("buffers", "denied", "no", "run as root")
    assert hidden(denied, FILE) == denied
