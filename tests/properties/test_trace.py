"""What holds for every trace: it comes back whole, cut or twice, and redaction lets nothing through."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.model.fd import OpenFiles
from hangdoc.model.log import LogEvent
from hangdoc.model.places import ThreadPlaces
from hangdoc.model.reading import Missing
from hangdoc.model.snapshot import Plain, Sample, Snapshot
from hangdoc.model.stack import Frame
from hangdoc.model.thread import ThreadWait
from hangdoc.trace.codec import LIVE_LEVEL, Packer, to_json
from hangdoc.trace.reader import read
from hangdoc.trace.records import Header, SnapshotLine, StackLine, Trace, lines_of
from hangdoc.trace.redact import Redactor, redact
from hangdoc.trace.writer import Writer, encode
from tests.unit.trace.strategies import every_variant, traces

SECRET = "zqxsecret"

NOT_NAMES = (
    f"/home/{SECRET}/models/m.log",
    f"{SECRET}@mail.example.com",
    f"https://{SECRET}:8000/v1",
    f"[Errno 13] Permission denied: '/home/{SECRET}/x'",
    f"owned by {SECRET}, see --api-key={SECRET}",
    f"\x1b[31m{SECRET}\n",
    f"/opt/{SECRET}/lib/python3.11/threading.py",
    f"/opt/{SECRET}/site-packages/torch/serialization.py",
    f"/srv/{SECRET}/torch/distributed/rendezvous.py",
    f"Thread-1 {SECRET}-7",
    f"gpu-7.{SECRET}.example.com:5000",
)
"""Texts that no rule may let through, in whatever field they turn up."""

SECRETS = (
    *NOT_NAMES,
    SECRET,
    SECRET.upper(),
    f"sk-live-{SECRET}",
    f"{SECRET}.py",
    f"--{SECRET}=1",
    f"python3 {SECRET}",
)
"""The same, and texts that could also be the name of a function or of a probe."""

NAMED_IN_CODE = {
    (Frame, "function"),
    (ThreadPlaces, "function"),
    (Missing, "probe"),
    (Sample, "probe"),
    (Snapshot, "tally"),
    (LogEvent, "name"),
    (LogEvent, "numbers"),
    (ThreadWait, "wait_channel"),
    (Plain, "values"),
}
"""Fields whose names stay, because code gave them and reasoning needs them."""


def secrets(record: type[Struct], field: str) -> st.SearchStrategy[str]:
    return st.sampled_from(NOT_NAMES if (record, field) in NAMED_IN_CODE else SECRETS)


def texts_and_numbers(value: Any) -> tuple[list[str], list[Any]]:
    """All texts (keys too) and everything else of a record, in order."""
    texts: list[str] = []
    others: list[Any] = []
    todo = [msgspec.to_builtins(value)]
    while todo:
        match todo.pop():
            case dict() as mapping:
                todo += [*mapping.keys(), *mapping.values()]
            case list() | tuple() as items:
                todo += items
            case str() as text:
                texts.append(text)
            case other:
                others.append(other)
    return texts, others


def packed(trace: Trace) -> bytes:
    """The trace's file; a live level, because the small one allocates its 8 MiB for every example."""
    return encode(trace, LIVE_LEVEL)


def read_or_refuse(data: bytes) -> Trace | None:
    """The trace, or None for one clear error; anything else is the test's failure."""
    try:
        return read(data)
    except HangdocError as error:
        clear = error.exit_code == ExitCode.USAGE and "\n" not in error.message
        return None if clear else pytest.fail(f"not one clear line: {error.message}")


@given(traces())
def test_a_trace_comes_back_as_it_was_written(trace: Trace) -> None:
    """Decoding what was encoded gives an equal trace, an incomplete one included, and twice the same."""
    data = packed(trace)
    assert read(data) == trace
    assert read(data) == read(data)


@given(traces(), st.data())
def test_a_file_cut_anywhere_gives_back_what_was_flushed(trace: Trace, data: st.DataObject) -> None:
    """Any cut leaves a prefix of the snapshots, as long as the header is whole; else it is one clear error."""
    whole = packed(trace)
    found = read_or_refuse(whole[: data.draw(st.integers(0, len(whole) - 1))])
    if found is not None:
        assert found.header == trace.header
        assert found.snapshots == trace.snapshots[: len(found.snapshots)]
        assert found.stacks == trace.stacks[: len(found.stacks)]
        assert trace.complete or not found.complete


@given(traces())
def test_what_was_flushed_is_read_before_the_next_line_begins(trace: Trace) -> None:
    """After each line's bytes, the file read at that moment has exactly the lines so far."""
    packer, data = Packer(), b""
    for count, line in enumerate(lines_of(trace), start=1):
        data += packer.pack(line)
        found = read(data)
        assert 1 + len(found.stacks) + len(found.snapshots) + found.complete == count


@given(traces(), st.data())
def test_a_changed_byte_ends_in_a_trace_or_in_one_clear_error(trace: Trace, data: st.DataObject) -> None:
    """No damage reaches the caller as anything but a HangdocError."""
    whole = bytearray(packed(trace))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read_or_refuse(bytes(whole))


@given(traces(), st.integers(0), st.binary(min_size=1, max_size=3))
def test_changed_text_ends_in_a_trace_or_in_one_clear_error(trace: Trace, place: int, change: bytes) -> None:
    """The same for damage that zstd does not notice: well packed lines that are no records."""
    text = bytearray(b"".join(map(to_json, lines_of(trace))))
    place %= len(text)
    text[place : place + len(change)] = change
    read_or_refuse(zstandard.compress(bytes(text)))


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_trace_or_in_one_clear_error(data: bytes) -> None:
    """What is not a trace is said to be none."""
    with pytest.raises(HangdocError):
        read(data)


@given(traces())
def test_the_writer_gives_the_redacted_trace(trace: Trace) -> None:
    """A recording, read back, is the redacted trace; equal input gives equal bytes; only used stacks are written."""
    trace = msgspec.structs.replace(trace, header=msgspec.structs.replace(trace.header, redaction="tokens"))
    with TemporaryDirectory() as directory:
        paths = [Path(directory) / f"{number}.hangtrace" for number in (1, 2)]
        for path in paths:
            with Writer.open(path, trace.header) as writer:
                for snapshot in trace.snapshots:
                    writer.add(snapshot, trace.stacks)
        assert paths[0].read_bytes() == paths[1].read_bytes()
        found, expected = read(paths[0]), redact(trace)
        assert (found.header, found.snapshots) == (expected.header, expected.snapshots)
        assert found.stacks == expected.stacks[: len(found.stacks)]


@given(traces())
def test_redaction_is_idempotent(trace: Trace) -> None:
    """A redacted trace, redacted again, is the same."""
    once = redact(trace)
    assert redact(once) == once


@given(traces())
def test_redaction_leaves_every_number(trace: Trace) -> None:
    """Numbers, pids, times, flags and the shape of every record stay, so that the diagnosis does."""
    assert texts_and_numbers(redact(trace))[1] == texts_and_numbers(trace)[1]


@pytest.mark.parametrize("secret", NOT_NAMES)
def test_no_secret_gets_through_any_field(secret: str) -> None:
    """Each secret, put into every text of every kind of record, is in no text of the redacted records."""
    redactor = Redactor()
    for line in [
        *every_variant(Header, secret),
        *every_variant(StackLine, secret),
        *every_variant(SnapshotLine, secret),
    ]:
        assert SECRET in str(texts_and_numbers(line)[0])
        assert SECRET not in str(texts_and_numbers(redactor.line(line))[0]).lower()


@settings(max_examples=400)
@given(traces(secrets))
def test_no_secret_gets_through(trace: Trace) -> None:
    """Secrets planted in every text of every record are in no text of the redacted trace."""
    texts, _ = texts_and_numbers(redact(trace))
    assert not [text for text in texts if SECRET in text.lower()]


@given(traces(secrets))
def test_equal_texts_get_equal_tokens(trace: Trace) -> None:
    """Two descriptors with the same target have the same token, different ones different tokens."""
    before = [file.target for file in open_files(trace)]
    after = [file.target for file in open_files(redact(trace))]
    assert len(set(zip(before, after, strict=True))) == len(set(before)) == len(set(after))


def open_files(trace: Trace) -> list[Any]:
    readings = [getattr(sample.reading, "value", None) for shot in trace.snapshots for sample in shot.samples]
    return [file for reading in readings if isinstance(reading, OpenFiles) for file in reading.files]
