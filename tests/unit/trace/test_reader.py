"""Reading what may or may not be a trace."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.trace import codec, limits, migrate
from hangdoc.trace.codec import to_json
from hangdoc.trace.reader import read
from hangdoc.trace.records import SCHEMA, EndLine, SnapshotLine, StackLine, lines_of
from hangdoc.trace.writer import encode
from tests.unit.trace import sample

NOBODY = 65534


def refusal(source: Path | bytes) -> str:
    """The one clear line that reading ends in."""
    with pytest.raises(HangdocError) as caught:
        read(source)
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in caught.value.message
    return caught.value.message


def packed(*lines: Any) -> bytes:
    return zstandard.compress(b"".join(to_json(line) for line in lines))


@pytest.mark.parametrize(
    "content",
    [b"[2026-11-29 12:00:00] server_args=...\n", b"PK\x03\x04" + bytes(60), bytes(range(256)), b"(\xb5", b"\x7fELF"],
    ids=["text", "zip", "binary", "two bytes", "elf"],
)
def test_other_content_is_named(tmp_path: Path, content: bytes) -> None:
    """A file that is no trace is called that, by its name."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert refusal(path) == f"{path} is not a hangdoc trace"


@pytest.mark.parametrize("content", [b"hello\n", b'{"type":"stack","id":0,"frames":[]}\n', b"[1]\n", b"\xff\xfe\n"])
def test_other_compressed_content_is_named(content: bytes) -> None:
    """A zstd file of something else is no trace either."""
    assert refusal(zstandard.compress(content)).startswith("the input is not a hangdoc trace: ")


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    """Empty: the message says so."""
    path = tmp_path / "empty.hangtrace"
    path.touch()
    assert "is empty" in refusal(path)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A directory, a device and a FIFO nobody writes to: refused without waiting."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, Path("/dev/zero"), tmp_path / "fifo"):
        assert "not a regular file" in refusal(path)


def test_what_cannot_be_opened_is_told_with_the_reason(tmp_path: Path) -> None:
    """No such file, a path through a file, a name no file can have."""
    (tmp_path / "file").touch()
    assert "No such file" in refusal(tmp_path / "none.hangtrace")
    assert "Not a directory" in refusal(tmp_path / "file" / "x")
    assert "null byte" in refusal(Path("a\0b"))


def test_an_unreadable_file_is_told_with_the_reason(tmp_path: Path) -> None:
    """A file without read permission; root, who reads everything, looks as nobody."""
    (tmp_path / "closed").touch(mode=0)
    user = os.geteuid()
    os.seteuid(NOBODY if user == 0 else user)
    try:
        assert "Permission denied" in refusal(tmp_path / "closed")
    finally:
        os.seteuid(user)


def test_a_newer_schema_is_refused_with_both_numbers() -> None:
    """Whatever else a newer trace holds, the message says which schema it has and which this hangdoc reads."""
    newer = msgspec.json.encode({"type": "header", "schema": SCHEMA + 1, "host": [1, {}]}) + b"\n"
    expected = f"was written by a newer hangdoc (schema {SCHEMA + 1}); this one reads up to {SCHEMA}"
    assert expected in refusal(zstandard.compress(newer))


@pytest.mark.parametrize("schema", [0, -7, "1", None, 1.5])
def test_a_schema_that_never_was_is_refused(schema: object) -> None:
    """No step leads from such a schema."""
    refusal(zstandard.compress(msgspec.json.encode({"type": "header", "schema": schema}) + b"\n"))


def test_an_older_schema_is_read_through_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of schema N is read as if its lines had been written in schema N + 1."""

    def host_got_its_name(record: dict[str, Any]) -> dict[str, Any]:
        if record["type"] != "header":
            return record
        return {**{key: value for key, value in record.items() if key != "node"}, "host": record["node"]}

    trace = sample.trace()
    old = [msgspec.to_builtins(line) for line in lines_of(trace)]
    old[0]["node"] = old[0].pop("host")
    old[0]["schema"] = SCHEMA - 1
    data = zstandard.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in old))
    assert "there is no schema 0" in refusal(data)
    monkeypatch.setitem(migrate.STEPS, SCHEMA - 1, host_got_its_name)
    found = read(data)
    assert msgspec.structs.replace(found.header, schema=SCHEMA) == trace.header
    assert (found.stacks, found.snapshots) == (trace.stacks, trace.snapshots)


def test_fields_that_a_later_version_added_are_ignored() -> None:
    """A field with a default does not raise the schema, so a reader of today meets it."""
    lines = [msgspec.to_builtins(line) for line in lines_of(sample.trace())]
    lines[0]["kernel"] = "6.18"
    data = zstandard.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    assert read(data) == sample.trace()


def test_a_cut_file_is_read_up_to_the_cut() -> None:
    """A cut in the last round leaves the others, and the trace says that it is not complete."""
    trace = sample.trace()
    data = encode(trace)
    found = read(data[:-2000])
    assert not found.complete
    assert 0 < len(found.snapshots) < len(trace.snapshots)
    assert found.snapshots == trace.snapshots[: len(found.snapshots)]


def test_a_file_cut_in_its_header_is_refused() -> None:
    """Without a header there is nothing to say about the rest."""
    assert "no whole header" in refusal(encode(sample.trace())[:100])


SNAPSHOTS = sample.trace().snapshots


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([SnapshotLine(SNAPSHOTS[0])], "absent stack"),
        ([StackLine(1, ())], "stack 1 follows 0 stacks"),
        ([EndLine(3)], "speaks of 3"),
        ([EndLine(0), EndLine(0)], "follows the end record"),
        ([sample.header()], "second header"),
        ([SnapshotLine(SNAPSHOTS[1]), {"type": "snapshot"}], "after 1 snapshots"),
    ],
)
def test_damage_in_the_middle_is_told_with_its_place(lines: list[Any], reason: str) -> None:
    """Lines that cannot follow each other are damage, not a cut."""
    data = zstandard.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in (sample.header(), *lines)))
    message = refusal(data)
    assert "damaged after" in message
    assert reason in message


def test_bytes_after_the_end_are_damage() -> None:
    """Two traces in one file, or rubbish behind one, are not silently half read."""
    data = encode(sample.trace())
    for tail in (data, b"x", bytes(5000)):
        assert "bytes follow" in refusal(data + tail)


def test_a_header_alone_is_a_trace_without_snapshots() -> None:
    """Whoever interrupts a recording at once still has a readable file."""
    found = read(packed(sample.header()))
    assert (found.header, found.snapshots, found.complete) == (sample.header(), (), False)


def bomb(size_bytes: int, chunk: bytes) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    yield packer.compress(to_json(sample.header()))
    for _ in range(size_bytes // len(chunk)):
        yield packer.compress(chunk)
    yield packer.flush()


def test_a_huge_line_does_not_eat_the_memory() -> None:
    """256 MiB without a line feed in a few KiB: refused when the limit for a line is reached."""
    data = b"".join(bomb(256 << 20, bytes(1 << 20)))
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        assert f"a line of more than {limits.MAX_LINE_BYTES >> 20} MiB" in refusal(data)
        assert tracemalloc.get_traced_memory()[1] < 3 * limits.MAX_LINE_BYTES
    finally:
        tracemalloc.stop()


def test_a_trace_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More text than a trace may hold is refused, however well each line is formed."""
    monkeypatch.setattr(codec, "MAX_TRACE_BYTES", 1 << 20)
    stacks = b"".join(to_json(StackLine(number, ())) for number in range(50_000))
    data = b"".join(bomb(len(stacks), stacks))
    assert "unpacks to more than 1 MiB" in refusal(data)


def test_a_window_larger_than_the_writers_is_refused() -> None:
    """A frame that asks for a gigabyte of window gets none."""
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=30)
    data = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    refusal(data.compress(to_json(sample.header())) + data.flush())


def test_deep_nesting_is_damage() -> None:
    """A line nested deeper than Python recurses is refused like any other."""
    deep = b'{"type":"header","schema":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    refusal(zstandard.compress(deep))
