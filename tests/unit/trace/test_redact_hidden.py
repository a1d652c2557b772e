"""Text out of a process's buffers is its own: no trace has it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Sample
from hangdoc.trace.records import SnapshotLine
from hangdoc.trace.redact import Redactor
from tests.unit.trace import sample


def redacted(*texts: HiddenText) -> Buffers:
    value = Buffers(python=Known(texts), c=Known(texts))
    one = Sample(probe="buffers", process=ProcessKey(1, 2), taken_ns=1, reading=Known(value))
    line = Redactor().line(SnapshotLine(msgspec.structs.replace(sample.trace().snapshots[0], samples=(one,))))
    assert isinstance(line, SnapshotLine)
    reading = line.snapshot.samples[0].reading
    assert isinstance(reading, Known)
    assert isinstance(reading.value, Buffers)
    return reading.value


@given(st.text(max_size=40), st.sampled_from(["stdout", "stderr", "c-stdout", "c-stderr", "file"]))
def test_the_text_becomes_empty_and_its_size_stays(text: str, stream: str) -> None:
    """Whatever was printed, a word of hangdoc's own too, nothing of it stays, not even a token; its size does."""
    found = redacted(HiddenText(stream=stream, fd=1, size_bytes=62, tail=text))  # type: ignore[arg-type]
    for one in (found.python, found.c):
        assert one == Known((HiddenText(stream=stream, fd=1, size_bytes=62),))  # type: ignore[arg-type]


def test_the_name_of_a_replacement_becomes_a_token() -> None:
    """A class of the program's author is a name of the outside world."""
    found = redacted(HiddenText(stream="stdout", fd=1, size_bytes=0, replaced_by="AliceTee"))
    assert not isinstance(found.python, Missing)
    assert found.python.value[0].replaced_by == "<text-1>"
